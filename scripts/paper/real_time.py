"""Virtual and real time: the same pairs, measured with both clocks."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from interop.model.emulated_link import loss_share
from interop.model.outcomes import ErrorCode, Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.report.table import Column, Table, Unit
from interop.statistics.intervals import Mean, of_repetitions
from interop.statistics.samples import GOODPUT, samples
from scripts.paper.data_set import processor_of
from scripts.paper.endpoints import has_measured_cost
from scripts.paper.goodput import of_case
from scripts.paper.lines import rendered
from scripts.paper.words import counted, listed, part_of

CLOSE = 0.03
"""Difference of the means up to which they agree, also outside the range of the repetitions in real time."""

NEAR = (0.03, 0.1)
"""Further differences of the means, with the number of pairs within each."""
NONE_IN_COMMON = "No pair succeeded with the same seed in virtual and in real time."


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


def real_time(virtual: ResultSet, real: ResultSet, spread: ResultSet | None = None) -> Iterator[str]:
    """How far the clocks agree, and the ratio of each pair; ``spread``: further seeds in virtual time."""
    cases = [case for case in real.manifest.test_cases if of_case(real, case)]
    repetitions = listed(repetitions_of(real, case) for case in cases)
    yield "## Virtual and real time"
    yield ""
    yield (
        f"We also measured some pairs in real time: {repetitions}. For each run, we "
        f"[checked](../reference/valid-attempts.md) whether the machine was too busy. {at_a_time(real)} "
        f"{outcomes(real)}{on_another_machine(real)}"
    )
    yield ""
    yield (
        "A pair *agrees* if its mean in virtual time is within the range of the repetitions in real time, or within "
        f"{100 * CLOSE:.0f} % of their mean. [Virtual and real time compared](../measurements/virtual-time.md) "
        "examines differences that we found earlier."
    )
    yield ""
    for case in cases:
        if loss_share(case.emulated.forward_loss):
            yield _with_which_seeds(virtual, real, case)
            yield ""
    if told := numbers_of_runs(virtual, real):
        yield told
        yield ""
    yield from rendered(agreement(virtual, real))
    if told := servers_with_a_bias(virtual, real):
        yield told
        yield ""
    if told := far_apart(virtual, real):
        yield told
        yield ""
    yield from with_more_seeds(virtual, spread, real)
    for case in cases:
        yield from rendered(by_pair(virtual, real, case))


def on_another_machine(real: ResultSet) -> str:
    """The servers that were measured on another machine than most, by link; empty if there are none."""
    processors = Counter(processor for run in real.results if (processor := processor_of(run)))
    if len(processors) < 2:
        return ""
    usual = processors.most_common(1)[0][0]
    elsewhere: dict[tuple[str, ...], list[str]] = {}
    for case in real.manifest.test_cases:
        servers = tuple(
            dict.fromkeys(run.server for run in of_case(real, case) if processor_of(run) not in ("", usual))
        )
        if servers:
            elsewhere.setdefault(servers, []).append(f"`{case.name}`")
    told = listed(f"{listed(servers)} over {listed(links)}" for servers, links in elsewhere.items())
    return f" We measured most of them on the machine of the matrix, and the following ones on another machine: {told}."


def at_a_time(real: ResultSet) -> str:
    """How many runs took place at the same time, and over which links."""
    found = {
        case.name: [run.evidence.host.neighbours for run in of_case(real, case) if run.evidence.host]
        for case in real.manifest.test_cases
    }
    most = max((number for numbers in found.values() for number in numbers), default=0)
    if not most:
        return "quicsat performed one run at a time."
    told = listed(
        f"{part_of(sum(map(bool, numbers)), len(numbers), 'run')} over `{name}`"
        for name, numbers in found.items()
        if any(numbers)
    )
    return (
        f"quicsat performed up to {most + 1} runs at a time: other runs took place at the same time as {told}. If such "
        "a run lacks CPU time, quicsat measures it again, alone."
    )


def outcomes(real: ResultSet) -> str:
    """How many runs succeeded, and which ones did not, and why."""
    runs = real.results
    bad = [run for run in runs if run.verdict.outcome is not Outcome.SUCCEEDED]
    again = f" quicsat repeated {counted(len(real.earlier), 'invalid attempt')}." if real.earlier else ""
    if not bad:
        return f"All {len(runs)} runs succeeded.{again}"
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for run in bad:
        groups.setdefault((_end(run), run.verdict.code), []).append(run)
    told = listed(
        f"{len(each)} {end.replace('were', 'was') if len(each) == 1 else end} ({code and f'`{code}`: '}{_which(each)})"
        for (end, code), each in groups.items()
    )
    return (
        f"Of the {len(runs)} runs, {len(runs) - len(bad)} succeeded. Of the others, {told}. The comparison does not "
        f"include {'this run' if len(bad) == 1 else f'these {len(bad)} runs'}.{again}"
    )


def _end(run: RunResult) -> str:
    """``failed because the server closed the connection with PROTOCOL_VIOLATION``."""
    verdict = run.verdict
    word = {Outcome.TIMEOUT: "timed out", Outcome.FAILED: "failed"}.get(verdict.outcome, "were invalid")
    reason = WHY_INVALID.get(verdict.code, "")
    if closed := re.search(r"The (client|server) closed the connection .*?with ([A-Z_]+)", verdict.reason):
        reason = f"the {closed[1]} closed the connection with {closed[2]}"
    return f"{word}{reason and f' because {reason}'}"


WHY_INVALID = {
    ErrorCode.HOST_STARVED: "the machine was too busy",
    ErrorCode.SIMULATOR_LAG: "the simulator sent packets late",
}
"""Reasons for attempts in real time that do not count."""


def _which(runs: Sequence[RunResult]) -> str:
    """``quiche with quic-go twice over `satloss`; …``: by link."""
    found = Counter((run.test_case, run.server, run.client) for run in runs)
    links = dict.fromkeys(test_case for test_case, _, _ in found)
    return "; ".join(
        ", ".join(
            f"{server} with {client}{TIMES.get(number, f' {number} times')}"
            for (test_case, server, client), number in found.items()
            if test_case == link
        )
        + f" over `{link}`"
        for link in links
    )


TIMES = {1: "", 2: " twice"}
"""By a number of runs."""


def numbers_of_runs(virtual: ResultSet, real: ResultSet) -> str:
    """How many runs in real time the mean of a pair has; empty if nothing is compared."""
    found = list[str]()
    for case in real.manifest.test_cases:
        counts = Counter(len(each.real) for each in both_clocks(virtual, real, case))
        if counts:
            every = "all " if len(counts) == 1 < sum(counts.values()) else ""
            told = listed(f"{number} for {every}{counted(pairs, 'pair')}" for number, pairs in sorted(counts.items()))
            found.append(f"{told} over `{case.name}`")
    if not found:
        return ""
    *others, last = found
    told = f"{'; '.join(others)}; and {last}" if others else last
    return f"The number of real-time runs behind a pair's mean is {told}."


def _with_which_seeds(virtual: ResultSet, real: ResultSet, case: TestCase) -> str:
    kept = with_the_same_seeds(virtual, real, case)[1]
    repetitions = sorted({run.repetition for run in kept.results})
    return (
        f"Over `{case.name}`, the seed determines which packets the link drops. We therefore compare only runs with "
        "the same seed in virtual and in real time. We made this choice before these measurements, after an earlier "
        "comparison of means over different sequences of losses, in which fewer pairs agreed. "
        + (
            f"The real-time runs that we compare are those of repetition{'' if len(repetitions) == 1 else 's'} "
            f"{listed(map(str, repetitions))}."
            if repetitions
            else NONE_IN_COMMON
        )
    )


def repetitions_of(results: ResultSet, case: TestCase) -> str:
    """``36 pairs with 3 repetitions over `sat```, or how many runs there are if some pairs have fewer."""
    runs = of_case(results, case)
    most, pairs = max(run.repetition for run in runs), len({(run.server, run.client) for run in runs})
    some = "" if len(runs) == most * pairs else f" ({len(runs)} of {most * pairs} runs so far)"
    return f"{counted(pairs, 'pair')} with {counted(most, 'repetition')} over `{case.name}`{some}"


def agreement_in_words(virtual: ResultSet, real: ResultSet) -> str:
    """How many pairs agree over each link, and how far goodput differs; empty if no pair succeeded with both clocks."""
    found = list(_of_cases(virtual, real))
    if not found:
        return ""
    near, far = NEAR
    close = listed(
        f"{each.within(near)} and {each.within(far)} of {counted(each.pairs, 'pair')} over `{each.case}`"
        for each in found
    )
    agree = listed(f"{each.agree} over `{each.case}`" for each in found)
    ratios = listed(
        f"{each.mean.value:.3f} over `{each.case}` ({each.least:.2f} to {each.greatest:.2f}"
        f"{' for individual pairs' if each is found[0] else ''})"
        for each in found
    )
    errors = listed(f"{100 * each.error:.1f} % over `{each.case}`" for each in found)
    return (
        f"Goodput in virtual time differs from the mean goodput in real time by at most {100 * near:.0f} and "
        f"{100 * far:.0f} % for {close}. By a criterion that also considers the range of the repetitions in real time, "
        f"the following numbers of pairs agree: {agree}. The geometric mean, over the servers, of goodput in "
        f"virtual time divided by goodput in real time is {ratios}. In this mean, ratios above and below 1 cancel out. "
        "They do not in the root mean square, over all pairs, of the logarithm of the ratio, which is "
        f"{errors}. {coverage(virtual, real)}"
    )


def errors_of_servers(virtual: ResultSet, real: ResultSet, case: TestCase) -> dict[str, float]:
    """Root mean square of the logarithms of each server's ratios over a link; servers with pairs of both clocks."""
    return {each.servers: each.error for each in _by_server(virtual, real, case)}


def finding(virtual: ResultSet, real: ResultSet) -> Iterator[str]:
    """How far the clocks agree and for which servers not, as an item of a list; nothing without pairs of both."""
    found = list(_of_cases(virtual, real))
    if not found:
        return
    far = NEAR[-1]
    told = listed(f"{each.within(far)} of {counted(each.pairs, 'pair')} over `{each.case}`" for each in found)
    yield (
        f"- Goodput in virtual time differs from goodput in real time by at most {100 * far:.0f} % for {told}. "
        f"{coverage(virtual, real)} {far_apart(virtual, real)}".rstrip()
        + " See [Virtual and real time](#virtual-and-real-time)."
    )


def coverage(virtual: ResultSet, real: ResultSet) -> str:
    """Which servers and clients have runs in real time, as sentences; empty without such runs."""
    manifest, covered = virtual.manifest, list[str]()
    clients = [name for name in manifest.clients if any(run.client == name for run in real.results)]
    few, missing = dict[tuple[str, ...], list[str]](), dict[tuple[str, ...], list[str]]()
    for case in real.manifest.test_cases:
        runs = of_case(real, case)
        found = {name: {run.client for run in runs if run.server == name} for name in manifest.servers}
        covered.append(f"{part_of(sum(map(bool, found.values())), len(found), 'server')} over `{case.name}`")
        for count, groups in ((1, few), (0, missing)):
            if names := tuple(name for name, own in found.items() if len(own) == count):
                groups.setdefault(names, []).append(f"`{case.name}`")
    if not clients:
        return ""
    single = [f"{listed(names)} over {listed(links)}" for names, links in few.items()]
    never = [f"{listed(names)} over {listed(links)}" for names, links in missing.items()]
    return (
        f"We measured {listed(covered)} in real time, with {len(clients)} of {len(manifest.clients)} clients "
        f"({listed(clients)})."
        + (f" The following servers have a single client in real time: {'; '.join(single)}." if single else "")
        + (f" There are no runs in real time of {'; '.join(never)}." if never else "")
    )


def servers_with_a_bias(virtual: ResultSet, real: ResultSet) -> str:
    """Servers that virtual time makes faster or slower over a link; empty if there are none."""
    found, certain, count = list[str](), list[str](), 0
    for case in real.manifest.test_cases:
        means = {each.servers: each.mean for each in _by_server(virtual, real, case) if each.pairs > 1}
        biased = {server: mean for server, mean in means.items() if abs(mean.value - 1) > CLOSE}
        count += len(biased)
        certain += [f"{server} over `{case.name}`" for server, mean in biased.items() if is_apart(mean)]
        if biased:
            told = listed(f"{server} ({mean.value:.2f}{_limits(mean)})" for server, mean in biased.items())
            found.append(f"{told} over `{case.name}`")
    if not found:
        return ""
    every = "" if count == 1 else "for all of these servers, "
    return (
        f"The geometric mean of a server's ratios is more than {100 * CLOSE:.0f} % from 1 for {'; '.join(found)}. The "
        "parentheses contain this mean and its 95 % confidence interval over the clients; "
        f"{f'the interval excludes 1 for {listed(certain)}' if certain else f'{every}the interval includes 1'}."
    )


def far_apart(virtual: ResultSet, real: ResultSet) -> str:
    """Servers whose goodput differs much, by their CPU cost; empty if there are none."""
    measured = {each.name for each in virtual.manifest.implementations if has_measured_cost(each)}
    found: dict[bool, dict[str, list[str]]] = {False: {}, True: {}}
    for case in real.manifest.test_cases:
        for each in _by_server(virtual, real, case):
            if abs(each.mean.value - 1) > NEAR[-1]:
                own = found[each.servers in measured].setdefault(each.servers, [])
                own.append(f"{each.mean.value:.2f} over `{case.name}`")
    groups = [
        f"of those with {'a measured' if cost else 'the default'} CPU cost, "
        f"{listed(f'{server} ({listed(ratios)})' for server, ratios in own.items())}"
        for cost, own in found.items()
        if own
    ]
    if not groups:
        return ""
    open_ones = _includes_1(virtual, real)
    hidden = [f"{server} ({listed(errors)})" for server, errors in _hidden(virtual, real).items()]
    return (
        "For the following servers, goodput in virtual time differs from goodput in real time by more than "
        f"{100 * NEAR[-1]:.0f} % (geometric mean over the clients): {'; '.join(groups)}. The parentheses contain "
        "goodput in virtual time divided by goodput in real time. "
        + (
            f"In this mean, ratios above and below 1 cancel out; by the RMS, {listed(hidden)} also "
            f"{'differs' if len(hidden) == 1 else 'differ'} by more. "
            if hidden
            else ""
        )
        + (f"The 95 % confidence interval over the clients includes 1 for {listed(open_ones)}. " if open_ones else "")
        + "What this page says about these servers over these links holds in virtual time only."
    )


def _includes_1(virtual: ResultSet, real: ResultSet) -> list[str]:
    """Servers with several clients whose mean differs much, although its interval includes 1."""
    return [
        f"{each.servers} over `{case.name}`"
        for case in real.manifest.test_cases
        for each in _by_server(virtual, real, case)
        if each.pairs > 1 and abs(each.mean.value - 1) > NEAR[-1]
        if each.mean.low is not None and each.mean.high is not None and each.mean.low <= 1 <= each.mean.high
    ]


def _hidden(virtual: ResultSet, real: ResultSet) -> dict[str, list[str]]:
    """Servers whose ratios differ much and cancel out in their mean: the RMS over each link, in words."""
    found: dict[str, list[str]] = {}
    for case in real.manifest.test_cases:
        for each in _by_server(virtual, real, case):
            if abs(each.mean.value - 1) <= NEAR[-1] < each.error:
                found.setdefault(each.servers, []).append(f"{100 * each.error:.1f} % over `{case.name}`")
    return found


def with_more_seeds(virtual: ResultSet, spread: ResultSet | None, real: ResultSet) -> Iterator[str]:
    """How many pairs are near with one seed in virtual time, and with the mean of several; nothing without these.

    ``spread``: runs in virtual time with further seeds.
    """
    told = list[str]()
    for case in real.manifest.test_cases if spread is not None else ():
        more = of_case(spread, case) if spread is not None else []
        if not more or loss_share(case.emulated.forward_loss):
            continue
        pairs = {(run.server, run.client) for run in more}
        every = replace(virtual, results=(*of_case(virtual, case), *more))
        seeds = {run.evidence.seed for run in every.results if (run.server, run.client) in pairs}
        counts = []
        for results in (virtual, every):
            found = [each for each in both_clocks(results, real, case) if (each.server, each.client) in pairs]
            counts.append(sum(abs(each.ratio - 1) <= NEAR[-1] for each in found))
        told.append(
            f"over `{case.name}`, {counts[1]} instead of {counts[0]} of {counted(len(pairs), 'pair')} "
            f"({len(seeds)} seeds)"
        )
    if told:
        yield (
            "Over links without random loss, virtual time has one seed in this comparison, so a ratio also contains "
            "the spread of a single run. With the mean of all seeds of the pairs that have several, the following "
            "numbers of "
            f"pairs are within {100 * NEAR[-1]:.0f} %: {'; '.join(told)}."
        )
        yield ""


def is_apart(mean: Mean) -> bool:
    """Whether the interval excludes 1."""
    return mean.low is not None and mean.high is not None and not mean.low <= 1 <= mean.high


def _limits(mean: Mean) -> str:
    return "" if mean.low is None or mean.high is None else f", {mean.low:.2f} to {mean.high:.2f}"


@dataclass(frozen=True)
class Agreement:
    """How far the clocks agree over a link."""

    case: str
    servers: str
    """Which servers: those with this kind of CPU cost, or one of them."""
    found: Sequence[Both]
    mean: Mean
    """Geometric mean of the ratios: of several servers, each counts once; of one server, its pairs."""

    @property
    def pairs(self) -> int:
        """Pairs that succeeded with both clocks."""
        return len(self.found)

    @property
    def agree(self) -> int:
        """Pairs that agree."""
        return sum(each.agrees for each in self.found)

    @property
    def least(self) -> float:
        """The smallest ratio."""
        return min(each.ratio for each in self.found)

    @property
    def greatest(self) -> float:
        """The largest ratio."""
        return max(each.ratio for each in self.found)

    @property
    def error(self) -> float:
        """Root mean square of the logarithms of the ratios, which do not cancel as in the mean."""
        return math.sqrt(statistics.fmean(math.log(each.ratio) ** 2 for each in self.found))

    def within(self, share: float) -> int:
        """Pairs whose means differ by no more than that."""
        return sum(abs(each.ratio - 1) <= share for each in self.found)


def _of_cases(virtual: ResultSet, real: ResultSet) -> Iterator[Agreement]:
    """One for each link."""
    for case in real.manifest.test_cases:
        yield from _agreement(case, "all", both_clocks(virtual, real, case))


def _by_cost(virtual: ResultSet, real: ResultSet) -> Iterator[Agreement]:
    """For each link, one for servers with a measured CPU cost, and one for the others."""
    measured = {each.name for each in virtual.manifest.implementations if has_measured_cost(each)}
    for case in real.manifest.test_cases:
        found = both_clocks(virtual, real, case)
        for cost in ("measured", "default"):
            yield from _agreement(
                case, cost, [each for each in found if (each.server in measured) == (cost == "measured")]
            )


def _by_server(virtual: ResultSet, real: ResultSet, case: TestCase) -> Iterator[Agreement]:
    """One for each server over a link."""
    found = both_clocks(virtual, real, case)
    for server in dict.fromkeys(each.server for each in found):
        yield from _agreement(case, server, [each for each in found if each.server == server])


def _agreement(case: TestCase, servers: str, found: Sequence[Both]) -> Iterator[Agreement]:
    by_server: dict[str, list[float]] = {}
    for each in found:
        by_server.setdefault(each.server, []).append(each.ratio)
    means = list(map(statistics.geometric_mean, by_server.values()))
    mean = of_repetitions(means if len(means) > 1 else [each.ratio for each in found])
    if mean is not None:
        yield Agreement(case.name, servers, found, mean)


def agreement(virtual: ResultSet, real: ResultSet) -> Table:
    """Per test case and CPU cost of the server: pairs that agree, and the ratios."""
    near, far = NEAR
    columns = (
        Column("test case"), Column("CPU cost of the server"), Column("pairs", Unit.COUNT), Column("agree", Unit.COUNT),
        Column(f"within {100 * near:.0f} %", Unit.COUNT), Column(f"within {100 * far:.0f} %", Unit.COUNT),
        Column("mean ratio", Unit.RATIO, 3), Column("low", Unit.RATIO, 3), Column("high", Unit.RATIO, 3),
        Column("RMS", Unit.SHARE, 1), Column("least ratio", Unit.RATIO), Column("greatest ratio", Unit.RATIO),
    )  # fmt: skip
    rows = []
    for each in _by_cost(virtual, real):
        counts = each.pairs, each.agree, each.within(near), each.within(far)
        ratios = each.mean.value, each.mean.low, each.mean.high, each.error, each.least, each.greatest
        rows.append((each.case, each.servers, *counts, *ratios))
    notes = (
        (
            "Ratios are the goodput in virtual time divided by the goodput in real time. The mean is the "
            "geometric mean of the servers' geometric means; *low* and *high* are the limits of its 95 % confidence "
            "interval over the servers, because the ratios of a server's pairs are not independent. In the mean, "
            "ratios above and below 1 cancel out. They do not in the *RMS*, the root mean square, over all pairs, "
            "of the natural logarithm of the ratio; an RMS of 5 % means that ratios are typically near 0.95 or 1.05."
        ),
        (
            "The more the repetitions in real time differ, the more pairs *agree*. The numbers of pairs within "
            f"{100 * near:.0f} and {100 * far:.0f} % use only the mean in real time, not the range, so they depend "
            "less on these differences."
        ),
    )
    return Table("agreement", "Agreement of virtual and real time", columns, tuple(rows), notes)


def by_pair(virtual: ResultSet, real: ResultSet, case: TestCase) -> Table:
    """The ratio of each pair; those that do not agree are marked."""
    found = {(each.server, each.client): each for each in both_clocks(virtual, real, case)}
    columns = (
        Column("server"), *(Column(client) for client in real.manifest.clients),
        Column("mean ratio", Unit.RATIO), Column("RMS", Unit.SHARE, 1),
    )  # fmt: skip
    rows: list[tuple[float | int | str | None, ...]] = [
        (
            each.servers,
            *(_ratio(found.get((each.servers, client))) for client in real.manifest.clients),
            each.mean.value,
            each.error,
        )
        for each in sorted(_by_server(virtual, real, case), key=lambda each: real.manifest.servers.index(each.servers))
    ]
    note = (
        "Columns between the server and *mean ratio* are clients. A pair marked with * does not agree. The last two "
        "columns are the geometric mean and the RMS of the server's pairs."
    )
    title = f"Goodput in virtual time relative to real time, over {case.name}"
    return Table("ratios", title, columns, tuple(rows), (note,))


def _ratio(both: Both | None) -> str:
    return "" if both is None else f"{both.ratio:.2f}{'' if both.agrees else ' *'}"
