"""Virtual and real time: the same pairs, measured with both clocks."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace

from interop.model.emulated_link import loss_share
from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.report.table import Column, Table, Unit
from interop.statistics.intervals import of_repetitions
from interop.statistics.samples import GOODPUT, samples
from scripts.paper.goodput import of_case
from scripts.paper.lines import rendered

CLOSE = 0.03
"""Difference of the means up to which they agree, also outside the range of the repetitions in real time."""

NONE_IN_COMMON = "No run in real time has such a seed."


@dataclass(frozen=True)
class Both:
    """The goodput of a pair with both clocks, bit/s."""

    server: str
    client: str
    virtual: float
    real: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Virtual time over the mean in real time."""
        return self.virtual / statistics.fmean(self.real)

    @property
    def agrees(self) -> bool:
        """Within the range of the repetitions in real time, or close to their mean."""
        return min(self.real) <= self.virtual <= max(self.real) or abs(self.ratio - 1) <= CLOSE


def both_clocks(virtual: ResultSet, real: ResultSet, case: TestCase) -> list[Both]:
    """Pairs that succeeded with both clocks in a test case; over random loss, only with the same sequence of losses."""
    if loss_share(case.emulated.forward_loss):
        virtual, real = with_the_same_seeds(virtual, real, case)
    means = {(sample.server, sample.client): sample.mean for sample in samples(virtual, case.name, GOODPUT)}
    return [
        Both(sample.server, sample.client, mean, sample.values)
        for sample in samples(real, case.name, GOODPUT)
        if sample.values and (mean := means.get((sample.server, sample.client))) is not None
    ]


def with_the_same_seeds(virtual: ResultSet, real: ResultSet, case: TestCase) -> tuple[ResultSet, ResultSet]:
    """The runs of each pair that succeeded with the same seed with both clocks."""
    good = [
        {_pair_and_seed(run) for run in of_case(results, case) if run.verdict.outcome is Outcome.SUCCEEDED}
        for results in (virtual, real)
    ]
    common = good[0] & good[1]
    kept = [
        replace(results, results=tuple(run for run in of_case(results, case) if _pair_and_seed(run) in common))
        for results in (virtual, real)
    ]
    return kept[0], kept[1]


def _pair_and_seed(run: RunResult) -> tuple[str, str, int | None]:
    return run.server, run.client, run.evidence.seed


def real_time(virtual: ResultSet, real: ResultSet) -> Iterator[str]:
    """How far the clocks agree, and the ratio of each pair."""
    repetitions = ", ".join(repetitions_of(real, case) for case in real.manifest.test_cases if of_case(real, case))
    yield "## Virtual and real time"
    yield ""
    random_loss = [case for case in real.manifest.test_cases if loss_share(case.emulated.forward_loss)]
    yield (
        f"{len(real.manifest.servers)} servers and {len(real.manifest.clients)} clients also ran in real time "
        f"({repetitions}). A pair *agrees* if its mean in virtual time is within the range of the "
        f"repetitions in real time, or within {100 * CLOSE:.0f} % of their mean. [Virtual and real time compared]"
        "(../measurements/virtual-time.md) explains differences that we found earlier."
    )
    for case in random_loss:
        kept = with_the_same_seeds(virtual, real, case)[1]
        numbers = " and ".join(map(str, sorted({run.repetition for run in kept.results})))
        yield (
            f"Over `{case.name}`, the seed decides which packets the link drops. Only runs with the same seed in both "
            "clocks are therefore compared. We chose this after we had compared means over different sequences of "
            "losses, with which fewer pairs agreed. "
            + (f"In real time, these have the repetition number {numbers}." if numbers else NONE_IN_COMMON)
        )
    yield ""
    yield from rendered(agreement(virtual, real))
    for case in real.manifest.test_cases:
        yield from rendered(by_pair(virtual, real, case))


def repetitions_of(results: ResultSet, case: TestCase) -> str:
    """``3 repetitions over `sat```, or how many runs there are if some pairs have fewer."""
    runs = of_case(results, case)
    most = max(run.repetition for run in runs)
    planned = most * len(results.manifest.servers) * len(results.manifest.clients)
    some = "" if len(runs) == planned else f", with {len(runs)} of {planned} runs so far"
    return f"{_count(most, 'repetition')} over `{case.name}`{some}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def agreement_in_words(virtual: ResultSet, real: ResultSet) -> str:
    """``over `sat`, 30 of 36 pairs agree, …``; empty if no pair succeeded with both clocks."""
    return "; ".join(
        f"over `{case}`, {agree} of {pairs} pairs agree, and goodput in virtual time is {mean} times that in real time "
        f"(geometric mean; {least} to {most} for single pairs)"
        for case, pairs, agree, mean, _, _, least, most in agreement(virtual, real).rows
    )


def agreement(virtual: ResultSet, real: ResultSet) -> Table:
    """Per test case: pairs that agree, and the ratios."""
    columns = (
        Column("test case"), Column("pairs", Unit.COUNT), Column("agree", Unit.COUNT), Column("mean ratio"),
        Column("low"), Column("high"), Column("least ratio"), Column("greatest ratio"),
    )  # fmt: skip
    rows = list[tuple[float | int | str | None, ...]]()
    for case in real.manifest.test_cases:
        found = both_clocks(virtual, real, case)
        mean = of_repetitions([each.ratio for each in found])
        if mean is None:
            continue
        ends = (each.ratio for each in (min(found, key=lambda e: e.ratio), max(found, key=lambda e: e.ratio)))
        low, high = ("" if end is None else f"{end:.3f}" for end in (mean.low, mean.high))
        agree = sum(each.agrees for each in found)
        rows.append((case.name, len(found), agree, f"{mean.value:.3f}", low, high, *(f"{end:.2f}" for end in ends)))
    note = (
        "Ratios are the goodput in virtual time over that in real time. The mean is geometric; low and high are the "
        "limits of its 95 % confidence interval, as if pairs were independent."
    )
    return Table("agreement", "Agreement of virtual and real time", columns, tuple(rows), (note,))


def by_pair(virtual: ResultSet, real: ResultSet, case: TestCase) -> Table:
    """The ratio of each pair; those that do not agree are marked."""
    found = {(each.server, each.client): each for each in both_clocks(virtual, real, case)}
    columns = (Column("server"), *(Column(client) for client in real.manifest.clients))
    rows = [
        (server, *(_ratio(found.get((server, client))) for client in real.manifest.clients))
        for server in real.manifest.servers
    ]
    note = "Columns are clients. A pair marked with * does not agree."
    return Table("ratios", f"Virtual over real time over {case.name}", columns, tuple(rows), (note,))


def _ratio(both: Both | None) -> str:
    return "" if both is None else f"{both.ratio:.2f}{'' if both.agrees else ' *'}"
