"""The clock of a campaign's runs."""

from __future__ import annotations

from enum import StrEnum


class Clock(StrEnum):
    """By which clock endpoints, links and deadlines of a campaign go."""

    REAL = "real"
    """The host's: computing takes the time that the host's CPUs need."""
    VIRTUAL = "virtual"
    """A simulated one inside a virtual machine: it stands still while programs compute."""


def clock_in_words(clock: Clock, cpu_cost: float | None, *, own_cpu_costs: bool, differences: str = "") -> str:
    """``real time``, or ``virtual time (3 µs per system call)``; ``cpu_cost``: seconds, None or 0 if there is none.

    ``own_cpu_costs``: implementations for which one was measured have their own cost, and the others that default.
    ``differences`` of repetitions, in words; empty for none.
    """
    if clock is Clock.REAL:
        return "real time"
    cost = f"{cpu_cost * 1e6:g} µs per system call" if cpu_cost else "computing takes no time"
    facts = ["measured or default CPU costs" if own_cpu_costs else cost]
    if differences:
        facts.append(f"perturbed by {differences}")
    return f"virtual time ({'; '.join(facts)})"
