"""Measures by simulation how often `gate` blames equal builds, and how often it finds a change, over both of its looks.

Run it with `make bench-gate-looks`; docs/measurements/ci.md holds its output. Intervals are Wilson's, 95 %.

The five pairs of an implementation and two partners in two test cases are ten cells. Each member has a factor of its
own that both builds share, as they share delay and rate. What is left differs between builds by chance, which is the
worst case: a few system calls can do that to a chaotic pair.
"""
# ruff: noqa: T201 - a script

import itertools
import sys
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from bench.compare import FOUND_WANTED, shown, wilson
from bench.script import judged, options_parser
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.gate import FIRST, SECOND
from quicsat.cli.outcome_status import exit_status_for
from quicsat.model.expectations import Expectations
from quicsat.model.results import ResultSet, RunResult
from quicsat.statistics import comparison
from quicsat.statistics.comparison import Cell
from quicsat.statistics.judgement import judge
from tests.results_builder import SAT, SATLOSS, result_set, run_result, virtual

OWN, PARTNERS = "own", ("a", "b")
NAMES = (OWN, *PARTNERS)
PAIRS = tuple((server, client) for server in NAMES for client in NAMES if OWN in (server, client))
CASES = (SAT, SATLOSS)
SHARED = 0.005
"""Standard deviation of the factor that both builds share."""
LOW, LOSS_OF_LOW = 0.2, 0.25
"""Share of runs on the lower of two levels, and how much lower it is."""
RED_ALLOWED = 0.05
CALM, CHAOTIC, LEVELS = "calm", "chaotic", "two levels"
SPREADS = {CALM: 0.005, CHAOTIC: 0.15, LEVELS: 0.005}
BITS, SIZE, EARLY = 8.0, 10 * 2**20, 2e6
MEMBERS_EARLY = 0.3
"""How much of the spread of goodput the time to 2 MB has; see docs/measurements/virtual-time.md."""


@dataclass(frozen=True)
class World:
    """Two builds."""

    name: str
    kinds: tuple[str, ...] = (CALM,)
    """Of the cells in turn."""
    loss: float = 0.0
    """Share of goodput that the change costs."""
    cells: frozenset[tuple[str, str]] = field(default_factory=lambda: frozenset(PAIRS[: len(NAMES)]))
    """Pairs that lose it, in both test cases: by default those with the server under test."""
    wanted: bool = False
    """Whether a bar asks that the loss be found."""


ONE = frozenset(PAIRS[:1])
WORLDS = (
    World("equal builds, calm"),
    World("equal builds, chaotic", (CHAOTIC,)),
    World("equal builds, two levels", (LEVELS,)),
    World("equal builds, calm and chaotic", (CALM, CHAOTIC)),
    World("equal builds, all three", (CALM, CHAOTIC, LEVELS)),
    World("server -2 %, calm", loss=0.02, wanted=True),
    World("server -2 %, calm and chaotic", (CALM, CHAOTIC), loss=0.02),
    World("server -10 %, chaotic", (CHAOTIC,), loss=0.1, wanted=True),
    World("server -10 %, two levels", (LEVELS,), loss=0.1, wanted=True),
    World("one pair -2 %, calm", loss=0.02, cells=ONE),
    World("one pair -10 %, chaotic", (CHAOTIC,), loss=0.1, cells=ONE),
)


def campaign(world: World, shared: np.ndarray, rng: np.random.Generator, *, changed: bool) -> list[RunResult]:
    """All runs of a build; ``shared``: a factor for each member."""
    found = []
    cells = itertools.product(CASES, PAIRS)
    for (case, pair), kind in zip(cells, itertools.cycle(world.kinds), strict=False):
        noise = rng.normal(0, SPREADS[kind], len(shared))
        if kind == LEVELS:
            noise += np.log1p(-LOSS_OF_LOW) * (rng.uniform(size=len(shared)) < LOW)
        lost = np.log1p(-world.loss) if changed and pair in world.cells else 0.0
        for member, (own, common) in enumerate(zip(noise, shared, strict=True), 1):
            goodput = 8e6 * float(np.exp(common + own + lost))
            early = 8e6 * float(np.exp(common + MEMBERS_EARLY * own + lost))
            run = run_result(goodput, server=pair[0], client=pair[1], test_case=case.name, repetition=member)
            assert run.measurement is not None
            times = {"completion_time": BITS * SIZE / goodput, "time_to_2_mb": BITS * EARLY / early}
            found.append(replace(run, measurement=replace(run.measurement, values={**run.measurement.values, **times})))
    return found


def part(runs: list[RunResult], first: int, last: int, cells: frozenset[Cell] | None = None) -> ResultSet:
    """The campaign of these members."""
    chosen = [
        run
        for run in runs
        if first <= run.repetition <= last and (cells is None or (run.server, run.client, run.test_case) in cells)
    ]
    results = result_set(chosen, servers=NAMES, clients=NAMES, test_cases=CASES, repetitions=last)
    manifest = replace(results.manifest, must_include=(OWN,), planned_runs=len(chosen))
    return virtual(replace(results, manifest=manifest))


def gate(before: list[RunResult], after: list[RunResult]) -> tuple[ExitStatus, int]:
    """What `gate` says of two builds, and how many cells it measures again."""
    expected = Expectations()
    base, change = part(before, 1, FIRST), part(after, 1, FIRST)
    found = comparison.campaigns(base, change, CASES, expected.regression, 2, by_case=True)
    cells = found.suspects(expected.regression) if not found.worse else frozenset()
    if cells:
        again = part(before, FIRST + 1, SECOND, cells), part(after, FIRST + 1, SECOND, cells)
        found = found.decided_by(comparison.campaigns(*again, CASES, expected.regression, 2, by_case=True))
    return exit_status_for(judge(change, expected, base, (), found)), len(cells)


def main() -> int:
    """Simulate, and print a line per world; the exit status is 1 if a bar is missed."""
    arguments = options_parser(__doc__, {"--gates": 1000}).parse_args()
    bad = False
    print(f"{'builds':34} {'red':>22} {'undecided':>10} {'green':>7} {'cells again':>12}")
    for number, world in enumerate(WORLDS):
        rng = np.random.default_rng((2, number))
        counts, again = Counter[ExitStatus](), 0
        for _ in range(arguments.gates):
            shared = rng.normal(0, SHARED, SECOND)
            before, after = (campaign(world, shared, rng, changed=changed) for changed in (False, True))
            status, cells = gate(before, after)
            counts[status] += 1
            again += cells
        red, of = counts[ExitStatus.FAILURE], arguments.gates
        rest = [counts[status] / of for status in (ExitStatus.UNDECIDED, ExitStatus.SUCCESS)]
        print(f"{world.name:34} {shown(red, of):>22} {rest[0]:10.1%} {rest[1]:7.1%} {again / of:12.1f}", flush=True)
        low, high = wilson(red, of)
        bad |= low > RED_ALLOWED if not world.loss else world.wanted and high < FOUND_WANTED
    return judged(bad)


if __name__ == "__main__":
    sys.exit(main())
