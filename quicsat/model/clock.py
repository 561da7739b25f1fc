"""The clock of a campaign's runs."""

from enum import StrEnum


class Clock(StrEnum):
    """By which clock endpoints, links and deadlines of a campaign go."""

    REAL = "real"
    """The host's: computing takes the time that the host's CPUs need."""
    VIRTUAL = "virtual"
    """A simulated one inside a virtual machine: it stands still while programs compute."""


def clock_in_words(clock: Clock, costs: str, differences: str = "", *, placebo: bool = False) -> str:
    """``real time``, or ``virtual time (CPU costs of cost models; perturbed by delay=1%; placebo)``.

    ``costs``: what computing takes, in words; ``differences`` of repetitions, in words; empty for none.
    """
    if clock is Clock.REAL:
        return "real time"
    perturbed = [f"perturbed by {differences}"] if differences else []
    return f"virtual time ({'; '.join([costs, *perturbed, *(['placebo'] if placebo else [])])})"
