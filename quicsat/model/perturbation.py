"""Small differences between the repetitions of a campaign in virtual time, where nothing else differs but the losses.

Repetition k is *member* k of an ensemble. What no real path holds constant differs from member to member: delay and
rate of the link, when the client starts, and what computing costs. A member has the same differences for every pair, in
every test case and in every campaign: they follow from its number alone. The first member has none.
See docs/guide/virtual-time.md.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from quicsat.model.units import MS, PERCENT


@dataclass(frozen=True)
class Amplitudes:
    """The largest differences from the nominal run; 0 for none."""

    delay: float = 0.0
    """Of one-way delays, a share of each."""
    rate: float = 0.0
    """Of the rates of the link, the same."""
    start: float = 0.0
    """Seconds by which the client starts later."""
    cpu: float = 0.0
    """Of the CPU costs of each endpoint, a share of them."""

    @property
    def words(self) -> str:
        """``delay=1%,rate=1%,start=10ms,cpu=10%``, or ``0``: as ``--perturb`` reads it."""
        if self == NONE:
            return "0"
        shares = {"delay": self.delay, "rate": self.rate, "cpu": self.cpu}
        texts = {name: f"{share / PERCENT:.9g}%" for name, share in shares.items()}
        return ",".join(f"{name}={text}" for name, text in {**texts, "start": f"{self.start / MS:.9g}ms"}.items())


NONE = Amplitudes()
"""Of campaigns in real time, and of those of versions without ensembles."""
USUAL = Amplitudes(delay=0.01, rate=0.01, start=0.01, cpu=0.1)


@dataclass(frozen=True)
class Perturbation:
    """How a run differs from the nominal one; factors, and seconds."""

    delay: float = 1.0
    """Factor of all one-way delays of the link."""
    rate: float = 1.0
    """Factor of its rates."""
    start: float = 0.0
    """Seconds from when the link carries packets to the start of the client."""
    server_cpu: float = 1.0
    """Factor of the server's CPU costs."""
    client_cpu: float = 1.0

    def cpu(self, role: str) -> float:
        """Factor of the CPU costs in a role, ``server`` or ``client``."""
        return self.server_cpu if role == "server" else self.client_cpu


NOMINAL = Perturbation()


def perturbation_of(member: int, amplitudes: Amplitudes, *, placebo: bool = False) -> Perturbation:
    """The perturbation of a member, counted from 1: all differences are uniform within the amplitudes.

    Members 2 and 3, 4 and 5, and so on are opposites, so that their means are nominal. A placebo differs from the
    member in its CPU costs, also from the first one.
    """

    def share(name: str) -> float:
        """From 0 to 1; each quantity has random numbers of its own, so that no other amplitude changes it."""
        found = random.Random(f"{name} of members {member // 2 * 2}").random()
        return 1 - found if member % 2 else found

    def factor(name: str, amplitude: float) -> float:
        return round(1 + amplitude * (2 * share(name) - 1), 9)

    found = NOMINAL
    if member > 1:
        found = Perturbation(
            factor("delay", amplitudes.delay),
            factor("rate", amplitudes.rate),
            round(amplitudes.start * share("start"), 9),
        )
    if placebo or member > 1:
        kind = "CPU of placebo" if placebo else "CPU"
        found = replace(
            found,
            server_cpu=factor(f"server {kind}", amplitudes.cpu),
            client_cpu=factor(f"client {kind}", amplitudes.cpu),
        )
    return found
