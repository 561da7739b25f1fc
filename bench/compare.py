"""Measures how often `compare` raises false alarms between equal campaigns, and how often it overlooks changes.

Run it with `make bench-compare`; docs/measurements/statistics.md holds its output. Intervals are Wilson's, 95 %.
"""

# ruff: noqa: T201 - a script

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from quicsat.model.outcomes import Outcome
from quicsat.statistics.comparison import SHARE_OF_A_TIME, TIMES, WORSE, Change, Comparison, compare
from quicsat.statistics.samples import Sample

SPREAD = 0.1
DROP = 0.3
ALARMS_ALLOWED, FOUND_WANTED = 0.05, 0.95
REPETITIONS = (1, 2, 3, 5, 10)
RATES = (0.9, 0.95, 0.98, 1.0)
SEED_EFFECT = 0.5
"""Standard deviations of what a seed does to the log odds of success of all pairs, and to those of each server."""
LOW = 0.2
"""Share of the runs on the lower of two levels, which are two ``SPREAD`` apart."""
SIZES = ((1, 1), (1, 7), (5, 5), (16, 14))
"""Servers and clients in the table of power."""
DATA = (
    ("independent", "normal", False), ("blocked", "normal", True),
    ("two levels", "two levels", False), ("two levels, blocked", "two levels", True),
)  # fmt: skip
"""Name, shape of the noise, and whether seeds have an effect."""
MEMBERS = (("same seeds, virtual", True, True), ("same seeds, real", True, False), ("other seeds", False, False))
STATES = (0.003, 0.05)
"""States of the machine, on an idle one and beside other programs."""
OF_MANY = 3.3
"""Standard errors by which a row must exceed the bar: the tests are exact, and there are a hundred rows."""
OF_A_TIME = {"completion_time": 0.5, "time_to_2_mb": 0.1}
"""Spread of a time beyond that of goodput, as a share of ``SPREAD``; the time to 2 MB has no spread of goodput."""
SHAPES = ("normal", "skewed", "two levels", "flaky")


@dataclass(frozen=True)
class Design:
    """Campaigns of one kind."""

    servers: int = 12
    clients: int = 12
    cases: int = 1
    repetitions: int = 10
    rate: float = 1.0
    """Share of repetitions that succeed."""
    functional: bool = False
    """Pass or fail, without a goodput."""
    seed_effect: bool = False
    """Seeds change the goodput of all pairs by 10 %, and the log odds of success, see ``SEED_EFFECT``."""
    same_seeds: bool = False
    virtual: bool = False
    shape: str = "normal"
    broken_server: bool = False
    """In the second campaign, the first server always fails."""
    slower_pair: bool = False
    """In the second campaign, one pair has lost 30 %."""
    broken_pair: bool = False
    """In the second campaign, one pair always fails."""
    slower: float = 0.0
    """In the second campaign, all pairs have lost this share."""
    state: float = 0.0
    """Standard deviation of what the machine does to all pairs of a repetition of one of the campaigns, as a share."""


@dataclass
class World:
    """What two campaigns have in common."""

    means: np.ndarray
    """Goodput, bit/s; shape (cases, servers, clients)."""
    odds: np.ndarray
    """Log odds of success; same shape."""


def world(design: Design, rng: np.random.Generator) -> World:
    """Means between 1 and 18 Mbit/s; a flaky campaign has pairs that fail with any chance, one in five."""
    shape = design.cases, design.servers, design.clients
    rates = np.full(shape, design.rate)
    if design.shape == "flaky":
        rates = np.where(rng.uniform(size=shape) < 0.2, rng.uniform(size=shape), 1.0)
    with np.errstate(divide="ignore"):
        return World(rng.uniform(1e6, 18e6, shape), np.log(rates / (1 - rates)))


def seeds(design: Design, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """What seeds do to log odds (cases, servers, 1, repetitions) and to goodput (cases, 1, 1, repetitions)."""
    scale = SEED_EFFECT * design.seed_effect
    common = rng.normal(0, scale, (design.cases, 1, 1, design.repetitions))
    own = rng.normal(0, scale, (design.cases, design.servers, 1, design.repetitions))
    return common + own, 1 + rng.normal(0, SPREAD * design.seed_effect, common.shape)


def campaign(
    design: Design, here: World, rng: np.random.Generator, effect: tuple[np.ndarray, np.ndarray], first_seed: int
) -> list[Sample]:
    """Samples of all pairs and test cases."""
    shape = (*here.means.shape, design.repetitions)
    noise = rng.normal(1, SPREAD, shape)
    if design.shape == "skewed":
        sigma = math.sqrt(math.log(1 + SPREAD**2))
        noise = rng.lognormal(-(sigma**2) / 2, sigma, shape)
    elif design.shape == "two levels":
        noise = 1 - 2 * SPREAD * (rng.uniform(size=shape) < LOW) + rng.normal(0, 0.005, shape)
    state = 1 + rng.normal(0, design.state, design.repetitions)
    goodput = here.means[..., None] * noise * effect[1] * state
    chances = 1 / (1 + np.exp(-(here.odds[..., None] + effect[0])))
    good = rng.uniform(size=shape) < chances
    found = []
    for case, server, client in np.ndindex(here.means.shape):
        fates = good[case, server, client]
        places = tuple(int(place) for place in np.flatnonzero(fates)) if not design.functional else ()
        found.append(
            Sample.of(
                f"s{server}", f"c{client}", f"t{case}",
                tuple(float(goodput[case, server, client, place]) for place in places),
                tuple(Outcome.SUCCEEDED if fate else Outcome.FAILED for fate in fates),
                seeds=tuple(first_seed + 100 * case + number for number in range(design.repetitions)),
            )
        )  # fmt: skip
    return found


def once(design: Design, rng: np.random.Generator) -> list[Comparison]:
    """Two campaigns, compared by goodput and, unless there is none, by both times."""
    here = world(design, rng)
    effect = seeds(design, rng)
    first = campaign(design, here, rng, effect, 0)
    if design.broken_server:
        here.odds[:, 0, :] = -np.inf
    if design.broken_pair:
        here.odds[0, 0, 0] = -np.inf
    if design.slower_pair:
        here.means[0, 0, 0] *= 1 - DROP
    here.means *= 1 - design.slower
    second_effect = effect if design.same_seeds else seeds(design, rng)
    second = campaign(design, here, rng, second_effect, 0 if design.same_seeds else 50)
    if design.functional:
        return [compare(first, second, virtual=design.virtual)]
    times = [[speeds(many, metric, rng) for many in (first, second)] for metric in TIMES]
    return [
        compare(first, second, virtual=design.virtual, share=1 - SHARE_OF_A_TIME * len(times)),
        *(compare(*both, virtual=design.virtual, share=SHARE_OF_A_TIME) for both in times),
    ]


def speeds(many: list[Sample], metric: str, rng: np.random.Generator) -> list[Sample]:
    """The inverse of a time, of the runs that succeeded."""
    found = []
    for each in many:
        runs = tuple(
            replace(run, value=(run.value if metric != "time_to_2_mb" else 1.0)
                    * math.exp(rng.normal(0, OF_A_TIME[metric] * SPREAD)))
            for run in each.repetitions if run.value is not None
        )  # fmt: skip
        found += [replace(each, repetitions=runs)] if runs else []
    return found


def any_alarm(found: Comparison) -> bool:
    """Whether the comparison reports any significant change."""
    return found.alarms > 0


def slower_found(found: Comparison) -> bool:
    """Whether the comparison reports the one pair that lost 30 % as slower."""
    return any((pair.first.server, pair.first.client, pair.first.test_case) == ("s0", "c0", "t0")
               and pair.change is Change.SLOWER for pair in found.pairs)  # fmt: skip


def pair_found(found: Comparison) -> bool:
    """Whether the comparison reports the pair that always fails as significant."""
    return any((pair.first.server, pair.first.client, pair.first.test_case) == ("s0", "c0", "t0")
               and pair.change in WORSE for pair in found.pairs)  # fmt: skip


def server_found(found: Comparison) -> bool:
    """Whether the comparison reports the server that always fails in a line of its own."""
    return any(each.change in WORSE and each.first.server == "s0" for each in found.groups)


def worse_found(found: Comparison) -> bool:
    """Whether the comparison reports that something is worse."""
    return found.worse


def count(design: Design, told: Callable[[Comparison], bool], campaigns: int, number: int) -> int:
    """Of so many pairs of campaigns, those in which ``told`` holds."""
    rng = np.random.default_rng((1, number))
    return sum(any(map(told, once(design, rng))) for _ in range(campaigns))


def wilson(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Interval of a share, by default of 95 % (Wilson 1927)."""
    share = hits / of
    middle, half = share + z**2 / (2 * of), z * math.sqrt(share * (1 - share) / of + z**2 / (4 * of**2))
    return max(0.0, middle - half) / (1 + z**2 / of), (middle + half) / (1 + z**2 / of)


def shown(hits: int, of: int) -> str:
    """``1.5 % [0.5, 4.3]``."""
    low, high = wilson(hits, of)
    return f"{hits / of:6.1%} [{100 * low:.1f}, {100 * high:.1f}]"


def null_designs() -> list[tuple[str, Design]]:
    """Campaigns of the same thing, twice."""
    found = []
    for repetitions in REPETITIONS:
        for words, same, virtual in MEMBERS:
            for name, shape, effect in DATA:
                design = Design(5, 5, 1, repetitions, 1.0, False, effect, same, virtual, shape)
                found.append((f"goodput, 25 pairs, {name}, {words}", design))
        for state in STATES:
            design = Design(5, 5, 1, repetitions, same_seeds=True, state=state)
            found.append((f"goodput, 25 pairs, states of {state:.1%}, same seeds, real", design))
        for rate in RATES[::2]:
            pass_or_fail = Design(5, 5, 8, repetitions, rate, functional=True)
            found += [
                ("8 functional tests, 25 pairs", pass_or_fail),
                ("8 functional tests, seed effect", replace(pass_or_fail, seed_effect=True)),
            ]
        few = Design(3, 2, 1, repetitions, shape="two levels")
        found += [
            ("goodput, 6 pairs, two levels, other seeds", few),
            ("goodput, 144 pairs, seed effect", Design(12, 12, 1, repetitions, 0.9, seed_effect=True)),
        ]
    found += [(f"goodput, 144 pairs, {shape}", Design(shape=shape)) for shape in SHAPES]
    return found


def power_table(campaigns: int) -> bool:
    """Print how often a loss of 20 % of all pairs is reported; whether the bar is missed."""
    missed = False
    print("\nall pairs 20 % slower: share of comparisons that report it [%]; 1, 7, 25, 224 pairs")
    for words, same, virtual in MEMBERS:
        for name, shape, effect in DATA[1:]:
            for number, repetitions in enumerate(REPETITIONS):
                row = []
                for servers, clients in SIZES:
                    design = Design(servers, clients, 1, repetitions, 1.0, False, effect, same, virtual, shape)
                    trials = max(10, campaigns // (20 if servers > 5 else 4))
                    hits = count(replace(design, slower=0.2), worse_found, trials, 2000 + number)
                    row.append(f"{100 * hits / trials:4.0f}")
                    barred = virtual and repetitions > 1 and clients > 1
                    missed |= barred and wilson(hits, trials)[1] < FOUND_WANTED
                print(f"{words:20} {name:24} {repetitions:3} repetitions {' '.join(row)}", flush=True)
    return missed


def changed_designs() -> list[tuple[str, Design, Callable[[Comparison], bool], bool]]:
    """A change, whether the comparison reports it, and whether the bar applies to it."""
    found: list[tuple[str, Design, Callable[[Comparison], bool], bool]] = [
        (f"pair 30 % slower, 144 pairs, {shape}", Design(shape=shape, slower_pair=True), slower_found, True)
        for shape in SHAPES
        if shape != "flaky"
    ]
    for same in (False, True):
        words = "same seeds" if same else "other seeds"
        design = Design(3, 3, seed_effect=True, same_seeds=same, slower_pair=True)
        found.append((f"pair 30 % slower, 9 pairs, seed effect, {words}", design, slower_found, False))
    found += [
        (f"pair always fails, 144 pairs of {rate:.0%}", Design(rate=rate, broken_pair=True), pair_found, rate >= 0.95)
        for rate in RATES
    ]
    for servers, cases in ((5, 1), (5, 3), (12, 1), (12, 3)):
        for repetitions in REPETITIONS if servers * cases == 5 else REPETITIONS[:3]:
            for rate in (0.9, 1.0):
                design = Design(servers, servers, cases, repetitions, rate, broken_server=True)
                words = f"server always fails, {servers} x {servers} x {cases} cells of {rate:.0%}"
                found.append((words, design, server_found, servers * cases * repetitions >= 30))
    return found


def main() -> int:
    """Print the tables; 1 if a bar is missed with significance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=200,
                        help="pairs of campaigns per line of ten repetitions; with fewer, twice as many")  # fmt: skip
    parser.add_argument("--only", default="", help="only rows of the first and the last table with these words")
    options = parser.parse_args()
    campaigns = options.campaigns
    started, missed = time.monotonic(), False
    print("nothing has changed: share of pairs of campaigns with any alarm [95 % interval]")
    together: dict[int, list[int]] = {}
    for number, (name, design) in enumerate(null_designs()):
        if options.only not in name:
            continue
        trials = campaigns * (1 if design.repetitions > 3 else 2)
        hits = count(design, any_alarm, trials, number)
        words = f"{name:56} {design.repetitions:3} repetitions {design.rate:5.0%}"
        print(f"{words}  {shown(hits, trials)} of {trials}", flush=True)
        if design.state == max(STATES) and design.repetitions == 2:
            continue  # two repetitions cannot tell a state of the machine from a change; see the reference
        missed |= wilson(hits, trials, OF_MANY)[0] > ALARMS_ALLOWED
        if design.same_seeds and (design.virtual or design.repetitions > 1):
            hits_of, trials_of = together.get(design.repetitions, (0, 0))
            together[design.repetitions] = [hits_of + hits, trials_of + trials]
    for repetitions, (hits, trials) in together.items():
        print(f"{'all with the same seeds':56} {repetitions:3} repetitions        {shown(hits, trials)} of {trials}")
        missed |= wilson(hits, trials)[0] > ALARMS_ALLOWED
    missed |= not options.only and power_table(campaigns)
    print("\na real change: share of comparisons that report it")
    for number, (name, design, told, barred) in enumerate(changed_designs()):
        if options.only not in name:
            continue
        hits = count(design, told, campaigns // 2, 1000 + number)
        star = "*" if barred else " "
        words = f"{name:52} {design.repetitions:3} repetitions {star}"
        print(f"{words} {shown(hits, campaigns // 2)} of {campaigns // 2}", flush=True)
        missed |= barred and wilson(hits, campaigns // 2)[1] < FOUND_WANTED
    print(f"\nbars: alarms ≤ {ALARMS_ALLOWED:.0%}, told ≥ {FOUND_WANTED:.0%} at *; {time.monotonic() - started:.0f} s")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
