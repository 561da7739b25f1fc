"""The queue of the paper's simulator, which holds 125 packets, beside queues of exactly 25 packets."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

from interop.model.results import ResultSet, RunResult
from interop.report.table import Column, Table, Unit
from interop.statistics.intervals import Mean, of_repetitions
from interop.statistics.samples import value_of
from scripts.paper.goodput import goodput_so_far
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
        "the queue only. The tables compare the same pairs and seeds."
    )
    yield ""
    one, other = same_runs(matrix, longer)
    yield from rendered(both(one, other))
    for case in other.manifest.test_cases:
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
        exact = next(each for each in matrix.manifest.test_cases if each.name == base(case.name))
        rows.append((exact.name, "25 packets", *_of_pairs(matrix, exact.name)))
        rows.append((exact.name, "as in the simulator of the paper", *_of_pairs(longer, case.name)))
        if paper := TABLE_II.get(exact.name):
            counts = (paper.timeouts, paper.failures, None)
            rows.append((exact.name, "the paper's results", paper.mean, None, None, paper.maximum, *counts))
    return Table("queues", "Table II with both queues", columns, tuple(rows))


def _of_pairs(results: ResultSet, name: str) -> tuple[float | int | None, ...]:
    return row_of(results, next(case for case in results.manifest.test_cases if case.name == name))


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
    """How many servers are faster or slower beyond doubt, and whether drops explain it."""
    found = ratios(matrix, longer, name)
    faster = [server for server, mean in found.items() if mean.low is not None and mean.low > 1]
    slower = [server for server, mean in found.items() if mean.high is not None and mean.high < 1]
    dropped = [
        statistics.fmean(values)
        for results, case in ((matrix, base(name)), (longer, name))
        if (values := [share for run in results.results if run.test_case == case
                       if (share := value_of(run, "queue_loss")) is not None])
    ]  # fmt: skip
    yield (
        f"Over `{base(name)}`, {len(faster)} of {len(found)} servers are faster with the longer queue beyond doubt, "
        f"and {len(slower)} are slower"
        + (f" ({', '.join(slower)})." if slower else ".")
        + (
            f" The queues drop {100 * dropped[0]:.1f} and {100 * dropped[1]:.1f} % of the packets on average."
            if len(dropped) == 2
            else ""
        )
    )
