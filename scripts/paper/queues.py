"""The queue of the paper's simulator, which holds 125 packets, beside queues of exactly 25 packets."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.report.table import Column, Table, Unit
from interop.statistics.intervals import Mean, of_repetitions
from interop.statistics.samples import value_of
from scripts.paper.goodput import goodput_so_far, of_case
from scripts.paper.lines import rendered
from scripts.paper.matrix import row_of
from scripts.paper.published import TABLE_II

SUFFIX = "-paper-queue"


def queues(matrix: ResultSet, longer: ResultSet) -> Iterator[str]:
    """Both queues in Table II, the difference of each server, and its reason."""
    yield "## Queue of the paper's simulator"
    yield ""
    yield (
        "The paper states queues of 25 packets, but its simulator kept up to 125. These runs differ from the matrix in "
        "the queue, and over `satloss` also in the sequence of losses, which depends on the name of the test case. The "
        "tables compare the same pairs."
    )
    yield ""
    one, other = same_runs(matrix, longer)
    yield from rendered(both(one, other))
    for case in other.manifest.test_cases:
        if not of_case(other, case):
            continue
        yield from rendered(by_server(one, other, case.name))
        yield from reason(one, other, case.name)
        yield ""


def same_runs(matrix: ResultSet, longer: ResultSet) -> tuple[ResultSet, ResultSet]:
    """The runs that both have."""
    theirs = {(run.server, run.client, base(run.test_case), run.repetition): run for run in longer.results}
    mine = {tuple(run.key): run for run in matrix.results}
    shared = [key for key in mine if key in theirs]
    return (
        replace(matrix, results=tuple(mine[key] for key in shared)),
        replace(longer, results=tuple(theirs[key] for key in shared)),
    )


def base(test_case: str) -> str:
    """The test case of the matrix that differs in the queue only."""
    return test_case.removesuffix(SUFFIX)


def both(matrix: ResultSet, longer: ResultSet) -> Table:
    """Rows of Table II with each queue, and the paper's."""
    columns = (
        Column("test case"), Column("queue"), Column("mean", Unit.RATE), Column("mean, all runs", Unit.RATE),
        Column("median, all runs", Unit.RATE), Column("max", Unit.RATE, 1), Column("T", Unit.COUNT),
        Column("×", Unit.COUNT), Column("pairs", Unit.COUNT),
    )  # fmt: skip
    rows = list[tuple[float | int | str | None, ...]]()
    for case in longer.manifest.test_cases:
        exact = results_case(matrix, base(case.name))
        rows.append((exact.name, "25 packets", *_of_pairs(matrix, exact.name)))
        rows.append((exact.name, "as in the simulator of the paper", *_of_pairs(longer, case.name)))
        if paper := TABLE_II.get(exact.name):
            counts = (paper.timeouts, paper.failures, None)
            rows.append((exact.name, "the paper's results", paper.mean, None, None, paper.maximum, *counts))
    return Table("queues", "Table II with both queues", columns, tuple(rows))


def _of_pairs(results: ResultSet, name: str) -> tuple[float | int | None, ...]:
    return row_of(results, results_case(results, name))


def ratios(matrix: ResultSet, longer: ResultSet, name: str) -> dict[str, Mean]:
    """By how much the longer queue multiplies the goodput of each server: geometric mean over clients."""
    before = {(run.server, run.client, run.repetition): run for run in matrix.results if run.test_case == base(name)}
    found: dict[str, list[float]] = {}
    for run in longer.results:
        other = before.get((run.server, run.client, run.repetition))
        if run.test_case == name and other is not None:
            one, two = goodput_so_far(other), goodput_so_far(run)
            if one and two:
                found.setdefault(run.server, []).append(two / one)
    return {server: mean for server, each in found.items() if (mean := of_repetitions(each)) is not None}


def by_server(matrix: ResultSet, longer: ResultSet, name: str) -> Table:
    """The factor of each server, and what the queues dropped."""
    columns = (
        Column("server"), Column("factor"), Column("low"), Column("high"), Column("clients", Unit.COUNT),
        Column("dropped, 25 packets", Unit.SHARE, 1), Column("dropped, longer queue", Unit.SHARE, 1),
    )  # fmt: skip
    rows = [
        (
            server,
            f"{mean.value:.2f}",
            "" if mean.low is None else f"{mean.low:.2f}",
            "" if mean.high is None else f"{mean.high:.2f}",
            mean.count,
            _dropped([run for run in matrix.results if (run.server, run.test_case) == (server, base(name))]),
            _dropped([run for run in longer.results if (run.server, run.test_case) == (server, name)]),
        )
        for server, mean in ratios(matrix, longer, name).items()
    ]
    note = (
        "The factor is that of goodput with the longer queue: the geometric mean over the clients, with the limits of "
        "its 95 % confidence interval for further clients. Dropped: share of packets, mean over the clients."
    )
    return Table("queue-factors", f"Goodput with the longer queue over {base(name)}", columns, tuple(rows), (note,))


def _dropped(runs: Sequence[RunResult]) -> float | None:
    found = [value for run in runs if (value := value_of(run, "queue_loss")) is not None]
    return statistics.fmean(found) if found else None


def reason(matrix: ResultSet, longer: ResultSet, name: str) -> Iterator[str]:
    """How many servers are faster or slower beyond doubt, and what changes with the queue."""
    found = ratios(matrix, longer, name)
    faster = [server for server, mean in found.items() if mean.low is not None and mean.low > 1]
    slower = [server for server, mean in found.items() if mean.high is not None and mean.high < 1]
    named = f" ({', '.join(slower)})" if slower else ""
    yield (
        f"- Over `{base(name)}`, {len(faster)} of {len(found)} servers are faster with the longer queue beyond doubt, "
        f"and {len(slower)} are slower{named}."
    )
    dropped = [_all(matrix, base(name), "queue_loss"), _all(longer, name, "queue_loss")]
    flying = [_all(matrix, base(name), "in_flight_max"), _all(longer, name, "in_flight_max")]
    shared = flying[0].keys() & flying[1].keys()
    if shared:
        shares = [100 * statistics.fmean(each.values()) for each in dropped]
        growth = statistics.median(flying[1][key] / flying[0][key] for key in shared)
        yield (
            f"- The queues drop {shares[0]:.1f} and {shares[1]:.1f} % of the packets on average. The most bytes in "
            f"flight are {growth:.2f} times as many with the longer queue (median of the pairs)."
        )
    rows = {row[1]: row[2] for row in both(matrix, longer).rows if row[0] == base(name)}
    paper = TABLE_II.get(base(name))
    means = [rows["25 packets"], rows["as in the simulator of the paper"]]
    if paper is not None and all(means):
        changes = [f"{100 * (float(mean or 0) / paper.mean - 1):+.0f} %" for mean in means]
        yield (
            f"- The mean differs from the paper's by {changes[0]} with 25 packets, and by {changes[1]} with the longer "
            "queue, which the paper used."
        )


def _all(results: ResultSet, name: str, metric: str) -> dict[tuple[str, str, int], float]:
    return {
        (run.server, run.client, run.repetition): value
        for run in of_case(results, results_case(results, name))
        if (value := value_of(run, metric)) is not None
    }


def results_case(results: ResultSet, name: str) -> TestCase:
    """The test case of this name."""
    return next(case for case in results.manifest.test_cases if case.name == name)
