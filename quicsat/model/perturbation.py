"""Small differences between the repetitions of a campaign in virtual time, where nothing else differs but the losses.

Repetition k is *member* k of an ensemble. What no real path holds constant differs from member to member: delay and
rate of the link, when the client starts, what computing costs, and how late a program runs after it has waited. A
member has the same differences for every pair, in every test case and in every campaign: they follow from its number
alone. The first member has none.
See docs/guide/virtual-time.md.
"""

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
LARGEST = Amplitudes(delay=0.5, rate=0.5, start=1.0, cpu=0.5, wake_up=10.0)
"""Each at its most; larger ones are taken for errors."""
WAKE_UP_LATENCIES = (
    16_900, 30_000, 43_600, 56_700, 61_700, 62_100, 62_300, 62_400, 62_600, 62_800, 62_900, 63_000, 63_100, 63_100,
    63_200, 63_200, 63_300, 63_400, 63_400, 63_500, 63_500, 63_600, 63_600, 63_700, 63_700, 63_800, 63_900, 63_900,
    64_000, 64_000, 64_100, 64_200, 64_300, 64_300, 64_400, 64_500, 64_600, 64_600, 64_700, 64_800, 64_900, 64_900,
    65_000, 65_200, 65_400, 65_600, 65_800, 66_000, 66_400, 66_700, 67_200, 67_800, 68_500, 69_400, 70_800, 72_600,
    74_700, 77_400, 81_600, 89_600, 101_300, 123_500, 180_500, 288_100, 292_500, 296_800, 301_900, 307_600, 312_600,
    317_700, 323_600, 328_500, 335_700, 341_000, 345_000, 352_300, 359_600, 364_600, 369_300, 374_800, 379_200,
    384_000, 390_100, 395_900, 402_300, 408_800, 417_500, 426_400, 438_500, 445_700, 455_700, 464_500, 474_800,
    487_900, 499_400, 507_400, 522_100, 535_700, 550_500, 569_700, 592_200, 620_300, 653_200, 689_500, 713_800,
    749_100, 788_400, 823_600, 866_000, 901_300, 959_900, 1_039_900, 1_147_200, 1_247_500, 1_373_800, 1_452_500,
    1_561_400, 1_695_700, 1_869_000, 2_168_300, 2_522_600, 2_986_900, 3_216_200, 3_465_500, 3_816_800, 4_160_100,
    6_892_400,
)  # fmt: skip
"""Nanoseconds, as measured beside a run on 2026-11-29 (docs/measurements/virtual-time.md): 63 values stand for a 64th
of all wake-ups each, in ascending order, and the others for a 64th of the last 64th."""


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
