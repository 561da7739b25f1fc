"""Small differences between the repetitions of a campaign in virtual time, where nothing else differs but the losses.

Repetition k is *member* k of an ensemble. What no real path holds constant differs from member to member: delay and
rate of the link, when the client starts, what computing costs, and how late a program runs after it has waited. A
member has the same differences for every pair, in every test case and in every campaign: they follow from its number
alone. The first member has none.
See docs/guide/virtual-time.md.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

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
    wake_up: float = 0.0
    """Latency of endpoints after they have waited, a multiple of ``WAKE_UP_LATENCIES``."""

    @property
    def words(self) -> str:
        """``delay=1%,rate=1%,cpu=10%,wake-up=100%,start=10ms``, or ``0``: as ``--perturb`` reads it."""
        if self == NONE:
            return "0"
        shares = {"delay": self.delay, "rate": self.rate, "cpu": self.cpu, "wake-up": self.wake_up}
        texts = {name: f"{share / PERCENT:.9g}%" for name, share in shares.items()}
        return ",".join(f"{name}={text}" for name, text in {**texts, "start": f"{self.start / MS:.9g}ms"}.items())


NONE = Amplitudes()
"""Of campaigns in real time, and of those of versions without ensembles."""
USUAL = Amplitudes(delay=0.01, rate=0.01, start=0.01, cpu=0.1, wake_up=1.0)
WAKE_UP_LATENCIES = (
    15_100, 16_000, 16_400, 16_800, 17_100, 17_400, 17_600, 17_900, 18_100, 18_300, 18_400, 18_600, 18_800, 19_000,
    19_100, 19_300, 19_400, 19_600, 19_700, 19_900, 20_000, 20_200, 20_400, 20_500, 20_700, 20_900, 21_000, 21_200,
    21_400, 21_600, 21_800, 22_000, 22_200, 22_400, 22_700, 22_900, 23_100, 23_300, 23_600, 23_800, 24_000, 24_300,
    24_500, 24_800, 25_000, 25_300, 25_500, 25_800, 26_100, 26_500, 26_800, 27_200, 27_600, 28_000, 28_500, 29_100,
    29_700, 30_500, 31_400, 32_600, 34_100, 36_600, 43_100, 50_500, 50_800, 51_100, 51_400, 51_700, 52_000, 52_400,
    52_900, 53_300, 53_700, 54_000, 54_500, 54_900, 55_300, 55_700, 56_200, 56_800, 57_500, 58_300, 59_000, 59_700,
    60_300, 60_900, 61_500, 62_200, 62_900, 63_700, 64_400, 65_100, 65_800, 66_700, 67_700, 68_600, 69_800, 71_300,
    72_500, 73_800, 74_800, 75_500, 76_300, 77_200, 78_800, 80_400, 81_600, 82_900, 84_800, 86_600, 88_100, 90_300,
    93_700, 96_800, 99_600, 103_800, 112_600, 121_900, 136_500, 156_100, 204_800, 259_700, 298_700, 386_700,
    453_400, 749_000, 1_665_700,
)  # fmt: skip
"""Nanoseconds, as measured on 2026-11-28 (docs/measurements/virtual-time.md): 63 values stand for a 64th of all
wake-ups each, in ascending order, and the others for a 64th of the last 64th."""


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
    wake_up: float = 0.0
    """Multiple of ``WAKE_UP_LATENCIES``; 0 for no latency."""
    wake_up_seed: int = 0
    """Of the latencies; 0 without."""

    def cpu(self, role: str) -> float:
        """Factor of the CPU costs in a role, ``server`` or ``client``."""
        return self.server_cpu if role == "server" else self.client_cpu


NOMINAL = Perturbation()


def perturbation_of(member: int, amplitudes: Amplitudes, *, placebo: bool = False) -> Perturbation:
    """The perturbation of a member, counted from 1: independent of all others, and uniform within the amplitudes.

    A placebo differs from the member in its CPU costs, also from the first one, and in the random numbers of its
    latencies.
    """
    shares, others = random.Random(f"member {member}"), random.Random(f"placebo of member {member}")

    def factor(amplitude: float, source: random.Random) -> float:
        """A number is drawn also where there is no amplitude, so that amplitudes do not change one another."""
        return round(1 + amplitude * (2 * source.random() - 1), 9)

    delay, rate = factor(amplitudes.delay, shares), factor(amplitudes.rate, shares)
    start = round(amplitudes.start * shares.random(), 9)
    changing = others if placebo else shares
    server_cpu, client_cpu = factor(amplitudes.cpu, changing), factor(amplitudes.cpu, changing)
    seed = changing.randrange(1, 2**31)
    if member == 1:
        return Perturbation(server_cpu=server_cpu, client_cpu=client_cpu) if placebo else NOMINAL
    return Perturbation(
        delay, rate, start, server_cpu, client_cpu, amplitudes.wake_up, seed if amplitudes.wake_up else 0
    )
