"""Measures how often both clocks are wrongly called equivalent or different, and how often rightly equivalent.

Run it with `make bench-equivalence`; docs/measurements/statistics.md holds its output. All numbers are simulated, with
fixed seeds.
"""

# ruff: noqa: T201 - a script

import argparse
import math
import sys
from dataclasses import dataclass, replace

import numpy as np

from quicsat.model.arrays import Floats
from quicsat.statistics.equivalence import MARGIN, Agreement, BothClocks, MeasuredRun, equivalence

BORDER = math.log(1 + MARGIN)
ALLOWED = 0.05
OF_MANY = 3.0
"""Standard errors by which a row may exceed the level: there are dozens of rows."""
LOW = 0.2
"""Share of the runs on the lower of two levels."""
REPETITIONS = ((3, 5), (5, 20), (10, 10), (10, 20), (13, 20), (20, 20))
"""In real time, and members."""
SPREADS = (0.01, 0.02, 0.03, 0.05, 0.1)
"""Standard deviations of the logarithm."""
SHAPES = ("normal", "skewed", "two levels")


@dataclass(frozen=True)
class Design:
    """What is measured with both clocks."""

    real: int = 10
    virtual: int = 20
    shape: str = "normal"
    """Of what chance does with both clocks; ``real only``, ``virtual only``: two levels with one of them."""
    spread: float = 0.03
    pairs: int = 1
    common: float = 0.0
    """What a repetition in real time does to all pairs, relative to ``spread``."""
    blocks: int = 1
    """Days, or machines."""
    block_spread: float = 0.0
    """What a block does to all runs in real time."""
    losses: float = 0.0
    """What a seed does to the runs with both clocks; with it, the clocks have the same losses."""
    shift: float = BORDER
    """Logarithm of the true ratio."""


def chance(design: Design, clock: str, rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    """What chance does to the logarithms, with a mean of 0; shape (pairs, repetitions)."""
    if design.shape == "normal":
        return rng.normal(0, design.spread, size)
    if design.shape == "skewed":
        return (2 - rng.gamma(2, 1, size)) / math.sqrt(2) * design.spread
    gap, little = design.spread / math.sqrt(LOW * (1 - LOW)), rng.normal(0, design.spread / 20, size)
    if design.shape in ("two levels", f"{clock} only"):
        return gap * LOW - gap * (rng.uniform(size=size) < LOW) + little
    return little


def drawn(design: Design, rng: np.random.Generator) -> list[BothClocks]:
    """Runs of all pairs."""
    logs = {clock: chance(design, clock, rng, (design.pairs, count))
            for clock, count in (("real", design.real), ("virtual", design.virtual))}  # fmt: skip
    effects = rng.normal(0, design.block_spread, design.blocks)
    blocks = np.arange(design.real) * design.blocks // design.real
    logs["real"] += effects[blocks] + rng.normal(0, design.common * design.spread, design.real)
    logs["virtual"] += design.shift
    of_seeds = rng.normal(0, design.losses, max(design.real, design.virtual))
    return [
        BothClocks(
            *(
                tuple(
                    MeasuredRun(math.exp(row[place] + of_seeds[place]), str(place), str(blocks[place]), place)
                    if clock == "real"
                    else MeasuredRun(math.exp(row[place] + of_seeds[place]), str(place), seed=place)
                    for place in range(len(row))
                )
                for clock, row in (("real", logs["real"][pair]), ("virtual", logs["virtual"][pair]))
            )
        )
        for pair in range(design.pairs)
    ]


def shares(design: Design, trials: int) -> tuple[float, float]:
    """Of the verdicts equivalent and different."""
    rng = np.random.default_rng(20261128)
    counts = dict.fromkeys(Agreement, 0)
    for _ in range(trials):
        found = equivalence(drawn(design, rng), same_losses=design.losses > 0)
        counts[found.verdict if found else Agreement.UNDECIDED] += 1
    return counts[Agreement.EQUIVALENT] / trials, counts[Agreement.DIFFERENT] / trials


def worst(design: Design, trials: int) -> tuple[float, float]:
    """The same at the border of the margin, on both of its sides, with the worst spread."""
    found = [
        shares(replace(design, spread=spread, shift=shift), trials) for spread in SPREADS for shift in (BORDER, -BORDER)
    ]
    return max(each[0] for each in found), max(each[1] for each in found)


def level_row(name: str, design: Design, trials: int, *, judged: bool = True) -> bool:
    """Print the rates of wrong verdicts; whether they are allowed."""
    rates = worst(design, trials)
    bar = ALLOWED + OF_MANY * math.sqrt(ALLOWED * (1 - ALLOWED) / trials)
    held = max(rates) <= bar
    verdict = ("yes" if held else "NO") if judged else ""
    cells = [name, design.real, design.virtual, *(f"{100 * each:.1f} %" for each in rates), verdict]
    print(f"| {' | '.join(map(str, cells))} |", flush=True)
    return held or not judged


def levels(trials: int) -> bool:
    """Print the table of wrong verdicts; whether the level holds in all rows that state it."""
    print("| data | real | virtual | wrongly equivalent | wrongly different | at most 5 % |")
    print("|---|---|---|---|---|---|")
    held = True
    for real, virtual in REPETITIONS:
        for shape in SHAPES:
            held &= level_row(f"pair, {shape}", Design(real, virtual, shape), trials)
    for real, virtual in REPETITIONS[2:]:
        for clock in ("real", "virtual"):
            design = Design(real, virtual, f"{clock} only")
            level_row(f"pair, two levels in {clock} time only", design, trials, judged=False)
    for real, virtual in REPETITIONS[3:]:
        for shape in SHAPES:
            design = Design(real, virtual, shape, losses=0.3)
            held &= level_row(f"pair, {shape}, same losses", design, trials)
    for blocks, spread in ((2, 0.01), (3, 0.01), (5, 0.01), (5, 0.03)):
        name = f"{blocks} days that differ by {100 * spread:.0f} %"
        level_row(f"pair, {name}", Design(10, 20, blocks=blocks, block_spread=spread), trials, judged=False)
    for real, virtual in ((3, 5), (10, 20)):
        for shape in SHAPES:
            held &= level_row(f"server with 6 clients, {shape}", Design(real, virtual, shape, pairs=6), trials)
        design = Design(real, virtual, pairs=6, common=1.0)
        held &= level_row("server with 6 clients, common spread", design, trials)
    return held


def power(trials: int) -> None:
    """Print how often equal clocks are called equivalent, and clocks that differ by 10 % different."""
    print("\n| | real | virtual | true ratio | verdict | " + " | ".join(f"{100 * s:.0f} %" for s in SPREADS) + " |")
    print("|---|---|---|---|---|" + "---|" * len(SPREADS))
    for pairs, name in ((1, "pair"), (6, "server with 6 clients")):
        for real, virtual in ((3, 5), (10, 20), (20, 20)):
            for place, ratio, verdict in ((0, 1.0, "equivalent"), (0, 1.02, "equivalent"), (1, 1.1, "different")):
                design = Design(real, virtual, pairs=pairs, shift=math.log(ratio))
                found = [shares(replace(design, spread=spread), trials)[place] for spread in SPREADS]
                cells = [name, real, virtual, ratio, verdict, *(f"{100 * each:.0f} %" for each in found)]
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


def main() -> int:
    """Exit status: 0 if the level holds, 1 if not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=2000, help="simulated measurements of each kind; default: 2000")
    options = parser.parse_args()
    held = levels(options.trials)
    power(options.trials)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
