"""Do the findings hold in real time: outcomes, shares of the variance and order of the servers with both clocks."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import replace

from interop.model.emulated_link import loss_share
from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.report.table import Column, Table, Unit
from interop.statistics.samples import GOODPUT, samples
from scripts.paper.goodput import of_case
from scripts.paper.influence import in_words, means_of_servers, share_of_server
from scripts.paper.lines import rendered
from scripts.paper.queues import rank_correlation
from scripts.paper.real_time import Both, with_the_same_seeds
from scripts.paper.words import listed, part_of

FEWEST_REPETITIONS = 3
"""With fewer, one repetition cannot be compared with the range of the others."""
COUNTED = (Outcome.SUCCEEDED, Outcome.TIMEOUT, Outcome.FAILED)


def findings_in_real_time(virtual: ResultSet, real: ResultSet) -> Iterator[str]:
    """The table, and sentences about repetitions and outcomes; nothing without pairs of both clocks."""
    if told := between_repetitions(real):
        yield told
        yield ""
    if told := outcomes_with_both_clocks(virtual, real):
        yield told
        yield ""
    table = shares_with_both_clocks(virtual, real)
    if table.rows:
        yield from rendered(table)


def left_out(real: ResultSet, case: TestCase) -> list[Both]:
    """Each repetition in place of virtual time, beside the others of its pair; none over links with random loss.

    Over these, repetitions have different losses.
    """
    if loss_share(case.emulated.forward_loss):
        return []
    return [
        Both(sample.server, sample.client, value, (*sample.values[:place], *sample.values[place + 1 :]))
        for sample in samples(real, case.name, GOODPUT)
        if len(sample.values) >= FEWEST_REPETITIONS
        for place, value in enumerate(sample.values)
    ]


def between_repetitions(real: ResultSet) -> str:
    """How well repetitions in real time agree with each other, by the criterion for virtual time."""
    told = list[str]()
    for case in real.manifest.test_cases:
        if found := left_out(real, case):
            error = math.sqrt(statistics.fmean(math.log(each.ratio) ** 2 for each in found))
            agree = part_of(sum(each.agrees for each in found), len(found), "repetition")
            told.append(f"{agree} over `{case.name}` (RMS {100 * error:.1f} %)")
    if not told:
        return ""
    return (
        "How well would real time agree with itself? If each repetition in real time takes the place of virtual time, "
        f"and is compared with the other repetitions of its pair, {listed(told)} agree. The range of these other "
        "repetitions is narrower than that of all repetitions. Over links with random loss, repetitions have "
        "different losses, so we cannot compare them in this way."
    )


def outcomes_with_both_clocks(virtual: ResultSet, real: ResultSet) -> str:
    """In how many runs the outcome is the same, and in which it is not; over random loss, with the same losses."""
    same, different, succeeded = 0, list[tuple[str, RunResult, Outcome]](), True
    for case in real.manifest.test_cases:
        lossy = bool(loss_share(case.emulated.forward_loss))
        known = {_key(run, lossy): run.verdict.outcome for run in of_case(virtual, case) if _counts(run)}
        for run in of_case(real, case):
            other = known.get(_key(run, lossy))
            if _counts(run) and other is not None:
                same += run.verdict.outcome is other
                different += [] if run.verdict.outcome is other else [(case.name, run, other)]
                succeeded &= {run.verdict.outcome, other} == {Outcome.SUCCEEDED}
    total = same + len(different)
    if not total:
        return ""
    named = dict.fromkeys(
        f"{run.server} with {run.client} over `{name}` ({run.verdict.outcome} in real time, {other} in virtual time)"
        for name, run, other in different
    )
    exceptions = f" It differs for {listed(named)}." if named else ""
    return (
        f"The outcome is the same with both clocks in {part_of(same, total, 'run')} that can be compared."
        f"{exceptions}{NO_FAILURES if succeeded else ''} Virtual time can hide failures that depend on the timing of "
        "programs, so numbers of failures in virtual time may be too low."
    )


NO_FAILURES = (
    " All of these runs succeeded, so they do not show whether runs that fail or time out with one clock do so with "
    "the other."
)


def _counts(run: RunResult) -> bool:
    return run.verdict.outcome in COUNTED


def _key(run: RunResult, lossy: bool) -> tuple[str, str, int | None]:
    return run.server, run.client, run.evidence.seed if lossy else None


def shares_with_both_clocks(virtual: ResultSet, real: ResultSet) -> Table:
    """A row for each link: the server's share of the variance with both clocks, and the order of the servers."""
    columns = (
        Column("test case"), Column("servers", Unit.COUNT), Column("clients", Unit.COUNT),
        Column("server's share, virtual time"), Column("server's share, real time"),
        Column("rank correlation of the servers", Unit.RATIO),
    )  # fmt: skip
    rows = list[tuple[float | int | str | None, ...]]()
    for case in real.manifest.test_cases:
        both = of_the_same_pairs(virtual, real, case)
        shares = [share_of_server(results, case) for results in both]
        order = rank_correlation(*(means_of_servers(results, case) for results in both))
        if shares[0] is not None and shares[1] is not None:
            pairs = {(run.server, run.client) for run in both[1].results}
            names = (len({server for server, _ in pairs}), len({client for _, client in pairs}))
            rows.append((case.name, *names, in_words(shares[0]), in_words(shares[1]), order))
    note = (
        "The table shows the server's share of the variance of the logarithm of goodput, with its 95 % confidence "
        "interval, of the pairs that succeeded with both clocks and whose server has several clients in real time. "
        "The last column is the rank correlation between the servers' means with the two clocks."
    )
    title = "Influence of the server with both clocks"
    return Table("both-clocks", title, columns, tuple(rows), (note,))


def of_the_same_pairs(virtual: ResultSet, real: ResultSet, case: TestCase) -> tuple[ResultSet, ResultSet]:
    """The successful runs of pairs with both clocks, of servers with several clients; over random loss, of the same
    losses."""
    if loss_share(case.emulated.forward_loss):
        virtual, real = with_the_same_seeds(virtual, real, case)
    good = [
        {(run.server, run.client) for run in of_case(results, case) if run.verdict.outcome is Outcome.SUCCEEDED}
        for results in (virtual, real)
    ]
    pairs = good[0] & good[1]
    servers = [server for server, _ in pairs]
    kept = {(server, client) for server, client in pairs if servers.count(server) > 1}
    one, other = (
        replace(
            results,
            results=tuple(
                run
                for run in of_case(results, case)
                if (run.server, run.client) in kept and run.verdict.outcome is Outcome.SUCCEEDED
            ),
        )
        for results in (virtual, real)
    )
    return one, other
