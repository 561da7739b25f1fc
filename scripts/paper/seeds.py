"""Several seeds: how far the results depend on the sequence of losses."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from interop.model.arrays import Floats
from interop.model.implementation import Role
from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.report.table import Column, Table, Unit
from interop.statistics.overview import Marginal, marginals
from interop.statistics.samples import EFFICIENCY, GOODPUT, find, samples, value_of
from scripts.paper.complete_design import shares
from scripts.paper.data_set import Part, seeds_in_words, seeds_on_another_machine
from scripts.paper.goodput import known, of_case, with_timeouts
from scripts.paper.lines import rendered
from scripts.paper.words import listed, named_campaigns


def seeds(results: ResultSet, spread: ResultSet | None, parts: Mapping[str, ResultSet] | None = None) -> Iterator[str]:
    """The efficiency of each server with its interval, the spread, and tables by seed; nothing with one seed.

    ``spread``: runs of the other links with further seeds. ``parts``: all campaigns.
    """
    case = find(results, "satloss")
    count = len({run.evidence.seed for run in results.results if case and run.test_case == case.name})
    if case is None or count < 2:
        return
    yield "## Seeds"
    yield ""
    yield (
        f"Over `satloss`, the link drops different packets with each of {count} seeds. In a repetition, all pairs have "
        "the same seed. The confidence intervals therefore treat both clients and seeds as random."
    )
    yield ""
    yield from rendered(with_intervals(results))
    runs = (*results.results, *(spread.results if spread else ()))
    yield from rendered(spreads(runs, [case.name for case in results.manifest.test_cases]))
    if spread is not None and (moved := seeds_on_another_machine(spread)):
        links = listed(f"`{case.name}`" for case in spread.manifest.test_cases)
        yield (
            f"Over {links}, the runs with {seeds_in_words(moved)} also differ from the others in the machine and in "
            "the [image of the virtual machine](#data-set)."
        )
        yield ""
    yield from _together(results, case)
    yield from rendered(goodput_by_seed(results, case))
    yield from rendered(drops_by_seed(results, case))
    yield f"{_means_of_seeds(results, case)}{_with_one_seed(results, case, parts or {})}"
    yield ""


def _together(results: ResultSet, case: TestCase) -> Iterator[str]:
    """How far a seed acts on single servers and clients; nothing with too few runs."""
    values = complete(results, case)
    if min(values.shape) < 2:
        return
    found = shares(values)
    at_server, at_client = (f"{100 * found[factor, 'seed']:.1f}" for factor in ("server", "client"))
    yield (
        f"A seed could also change the results of one server only, or of one client only. For the {len(values)} "
        f"servers that always succeeded over `{case.name}`, seed and server together account for {at_server} % of the "
        f"variance of the logarithm of goodput, seed and client together for {at_client} %, and seed alone for "
        f"{100 * found['seed',]:.1f} %. In the table *Sources of the variance of the efficiency*, the first two are "
        "part of *repetition*."
    )
    yield ""


def complete(results: ResultSet, case: TestCase) -> Floats:
    """Logarithms of goodput, servers x clients x seeds, of the servers whose runs all succeeded."""
    runs = by_seed(results, case)
    found = {
        (run.server, run.client, seed): math.log(value)
        for seed, each in runs.items()
        for run in each
        if (value := value_of(run, GOODPUT)) is not None
    }
    clients = results.manifest.clients
    rows = [
        [[found.get((server, client, seed), math.nan) for seed in runs] for client in clients]
        for server in results.manifest.servers
    ]
    whole = np.array(rows)
    return np.asarray(whole[~np.isnan(whole).any(axis=(1, 2))])


def by_seed(results: ResultSet, case: TestCase) -> dict[int, list[RunResult]]:
    """The runs over a link, by their repetition: the number of their seed."""
    found: dict[int, list[RunResult]] = {}
    for run in of_case(results, case):
        found.setdefault(run.repetition, []).append(run)
    return dict(sorted(found.items()))


def goodput_by_seed(results: ResultSet, case: TestCase) -> Table:
    """A row for each server: its mean goodput with each seed."""
    runs = by_seed(results, case)
    columns = (Column("server"), *(Column(f"seed {seed}", Unit.RATE) for seed in runs))
    rows: list[tuple[float | int | str | None, ...]] = [
        (server, *(mean_so_far([run for run in each if run.server == server]) for each in runs.values()))
        for server in results.manifest.servers
    ]
    rows.append(("all", *map(mean_so_far, runs.values())))
    note = (
        "Each cell shows the mean of all runs of the server with that seed; the row *all* shows the mean of all runs "
        "with that seed."
    )
    return Table("goodput-by-seed", f"Goodput by seed over {case.name}", columns, tuple(rows), (note,))


def mean_so_far(runs: Sequence[RunResult]) -> float | None:
    """Mean goodput of all runs for which it is known."""
    found = known(runs)
    return statistics.fmean(found) if found else None


def drops_by_seed(results: ResultSet, case: TestCase) -> Table:
    """A row for each server: what the queue dropped with each seed, and in how many runs."""
    runs = by_seed(results, case)
    columns = (Column("server"), *(Column(f"seed {seed} [%]") for seed in runs))
    rows = tuple(
        (server, *(_dropped([run for run in each if run.server == server]) for each in runs.values()))
        for server in results.manifest.servers
    )
    note = (
        "The table shows the packets that the queue dropped in all runs (successful or not), as a share of all packets "
        "that the server sent in them, and, in parentheses, the number of runs in which the queue dropped packets. The "
        "data set does not say which packets the link lost, except for the first ones of runs that timed out."
    )
    return Table("drops-by-seed", f"Queue drops by seed over {case.name}", columns, rows, (note,))


def _dropped(runs: Sequence[RunResult]) -> str:
    """``0.54 (14)``; empty if the simulator counted nothing."""
    counts = [each.evidence.simulator.forward for each in runs if each.evidence.simulator]
    packets = sum(each.received for each in counts)
    if not packets:
        return ""
    return f"{100 * sum(each.queue_drops for each in counts) / packets:.2f} ({runs_with_drops(runs)})"


def runs_with_drops(runs: Sequence[RunResult]) -> int:
    """In how many runs the queue dropped packets of the server."""
    return sum(bool(each.evidence.simulator and each.evidence.simulator.forward.queue_drops) for each in runs)


def _means_of_seeds(results: ResultSet, case: TestCase) -> str:
    means = {seed: mean for seed, each in by_seed(results, case).items() if (mean := mean_so_far(each))}
    first, *rest = [f"{mean / 1e6:.2f}" for mean in means.values()]
    others = [mean / 1e6 for mean in [*means.values()][1:]]
    span = rest[0] if len(rest) == 1 else f"{min(others):.2f} to {max(others):.2f}"
    return (
        f"The mean goodput of all runs over `{case.name}` is {first} Mbit/s with seed {next(iter(means))} and {span} "
        f"Mbit/s with the other seed{'' if len(rest) == 1 else 's'}."
    )


def _with_one_seed(results: ResultSet, case: TestCase, parts: Mapping[str, ResultSet]) -> str:
    """Which campaigns have a single seed over links with the same loss, and what that means."""
    numbers = {run.evidence.seed: run.repetition for run in of_case(results, case)}
    names, used = list[str](), set[int]()
    for part, each in parts.items():
        if each is results or part == Part.REPEAT:
            continue
        lossy = {name.name for name in each.manifest.test_cases if name.name.startswith(case.name)}
        found = {run.evidence.seed for run in each.results if run.test_case in lossy}
        if len(found) == 1 and found <= numbers.keys():
            names.append(part)
            used |= {numbers[seed] for seed in found}
    if not names:
        return ""
    return (
        f" Over this link, the {named_campaigns(names)} {'has' if len(names) == 1 else 'have'} only "
        f"{seeds_in_words(sorted(used))}, so {'its' if len(names) == 1 else 'their'} results hold for "
        f"{'one sequence' if len(used) == 1 else f'{len(used)} sequences'} of losses only."
    )


def spreads(runs: Sequence[RunResult], cases: Sequence[str]) -> Table:
    """A row for each link: how far the goodputs of a pair differ from seed to seed."""
    columns = (
        Column("link"), Column("pairs", Unit.COUNT), Column("seeds", Unit.COUNT), Column("median", Unit.SHARE, 1),
        Column("90th percentile", Unit.SHARE, 1), Column("largest", Unit.SHARE, 1), Column("pair with the largest"),
    )  # fmt: skip
    found = dict[tuple[str, str, str], dict[int | None, float | None]]()
    for run in runs:
        goodput = run.measurement.values.get("goodput") if run.measurement else None
        key = run.test_case, run.server, run.client
        found.setdefault(key, {})[run.evidence.seed] = goodput
    rows = list[tuple[float | int | str | None, ...]]()
    for case in cases:
        mine = {key[1:]: list(values.values()) for key, values in found.items() if key[0] == case}
        most = max(map(len, mine.values()), default=0)
        deviations = {
            pair: statistics.stdev(those) / statistics.mean(those)
            for pair, values in mine.items()
            if len(values) == most > 1 and len(those := [value for value in values if value is not None]) == most
        }
        if deviations:
            worst = max(deviations, key=lambda pair: deviations[pair])
            values = sorted(deviations.values())
            middle, ninety = statistics.median(values), percentile(values, 90)
            rows.append((case, len(values), most, middle, ninety, values[-1], f"{worst[0]} with {worst[1]}"))
    notes = [
        (
            "The spread of a pair is the standard deviation over the seeds, divided by the mean. The table includes "
            "the pairs that succeeded with all seeds. Without random loss, a seed determines only the random numbers "
            "of the endpoints."
        )
    ]
    return Table("spread", "Spread of the goodput of a pair over seeds", columns, tuple(rows), tuple(notes))


def percentile(values: Sequence[float], number: int) -> float:
    """Of at least one value; ``number``: a multiple of 10."""
    return statistics.quantiles(values, n=10, method="inclusive")[number // 10 - 1] if len(values) > 1 else values[0]


def with_intervals(results: ResultSet) -> Table:
    """A row for each server: its efficiency over each link, with its interval."""
    cases = results.manifest.test_cases
    every = with_timeouts(results)
    found = {
        (case.name, each.implementation): each
        for case in cases
        for each in marginals(samples(every, case.name, EFFICIENCY))
        if each.role is Role.SERVER
    }
    columns = (Column("server"), *(Column(f"{case.name} [%]") for case in cases))
    rows = tuple(
        (server, *(_in_words(found.get((case.name, server))) for case in cases)) for server in results.manifest.servers
    )
    note = (
        "The table shows geometric means and the limits of their 95 % confidence intervals. "
        f"{_generalized(cases)} For runs that timed out, goodput is based on the bytes that had arrived."
    )
    return Table("intervals", "Efficiency of servers, with confidence intervals", columns, rows, (note,))


def _generalized(cases: Sequence[TestCase]) -> str:
    """To what the intervals generalize: over links with one seed, only to other clients."""
    several, one = ([f"`{case.name}`" for case in cases if (case.repetitions > 1) is many] for many in (True, False))
    told = [f"{listed(several)}, the intervals generalize to other clients and seeds"] if several else []
    told += [f"{listed(one)}, where there is only one seed, they generalize to other clients only"] if one else []
    return f"Over {'; over '.join(told)}."


def _in_words(each: Marginal | None) -> str:
    """``35.2 (29.3 to 42.3)``."""
    if each is None or each.typical is None:
        return ""
    limits = "" if each.low is None or each.high is None else f" ({_percent(each.low)} to {_percent(each.high)})"
    return f"{_percent(each.typical)}{limits}"


def _percent(share: float) -> str:
    """With three digits: ``39.0``, ``100``."""
    return f"{100 * share:#.3g}".removesuffix(".")
