"""Runs with several flows: who gets which share of the link, for tables and figures."""

from collections.abc import Iterable, Sequence

from quicsat.model.results import FlowResult, ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.report.successes import mean, successes
from quicsat.report.table import Column, Table, Unit


def with_flows(results: Iterable[RunResult], case: TestCase) -> list[RunResult]:
    """The runs of a test case that succeeded and have several flows, in the order of ``results``."""
    return [each for each in successes(results, case) if flows_of(each)]


def flows_of(run: RunResult) -> tuple[FlowResult, ...]:
    """All flows of a run; none if it has one alone."""
    return run.measurement.flows if run.measurement else ()


def pair_of(flow: FlowResult) -> str:
    """``nginx-tcp/curl``."""
    return f"{flow.server}/{flow.client}"


def flows(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """Means over the repetitions of each flow of each pair."""
    columns = (
        Column("test case"), Column("pair"), Column("flow", Unit.COUNT), Column("server"), Column("client"),
        Column("start", Unit.SECONDS, 1), Column("share", Unit.SHARE, 1), Column("competing goodput", Unit.RATE),
        Column("goodput", Unit.RATE), Column("loss", Unit.SHARE, 2), Column("queueing delay, median", Unit.SECONDS, 3),
        Column("queueing delay, 95 %", Unit.SECONDS, 3), Column("Jain's index", Unit.WORDS),
        Column("converged after", Unit.SECONDS, 1), Column("n", Unit.COUNT),
    )  # fmt: skip
    rows = []
    for case in cases:
        runs = with_flows(results.results, case)
        for server, client in dict.fromkeys((each.server, each.client) for each in runs):
            mine = [each for each in runs if (each.server, each.client) == (server, client)]
            for number, several in enumerate(zip(*map(flows_of, mine), strict=True), start=1):
                rows.append((
                    case.abbreviation, f"{server}/{client}", number, several[0].server, several[0].client,
                    *(mean(getattr(flow, name) for flow in several) for name in _NUMBERS),
                    *(_of_run(mine) if number == 1 else (None, None)), len(mine),
                ))  # fmt: skip
    note = (
        "Values are means of n successful repetitions. Share, competing goodput and Jain's index count the new bytes "
        "that arrive while all flows receive data. A run has converged when every share is within 10 % of fair. The "
        "mean time is over the repetitions that converge."
    )
    return Table("flows", "Flows on one link", columns, tuple(rows), (note,))


_NUMBERS = (
    "start", "share", "competing_goodput", "goodput", "loss_forward", "queueing_delay_median", "queueing_delay_95",
)  # fmt: skip


def _of_run(runs: Sequence[RunResult]) -> tuple[str | None, float | None]:
    """Jain's index and convergence time."""
    values = [each.measurement.values if each.measurement else {} for each in runs]
    jain = mean(each.get("jain_index") for each in values)
    return None if jain is None else f"{jain:.3f}", mean(each.get("convergence_time") for each in values)
