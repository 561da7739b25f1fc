"""Algorithm or implementation: congestion controls of the same servers."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.report.table import Column, Table, Unit
from interop.statistics.intervals import Mean, of_repetitions
from interop.statistics.samples import GOODPUT, samples, value_of
from interop.statistics.variance import decompose_nested
from scripts.paper.goodput import known, of_case, with_timeouts
from scripts.paper.lines import Line, rendered

CONTROLS: Mapping[str, str] = {"reno": "Reno", "newreno": "Reno", "cubic": "CUBIC", "bbr": "BBR"}
"""Variants of servers that several implementations have, and their congestion control."""
ORDER = tuple(dict.fromkeys(CONTROLS.values()))


def with_known_controls(results: ResultSet) -> ResultSet:
    """The results of the servers whose variant is in ``CONTROLS``."""
    servers = tuple(name for name in results.manifest.servers if name.partition(":")[2] in CONTROLS)
    kept = tuple(each for each in results.results if each.server in servers)
    return replace(results, results=kept, manifest=replace(results.manifest, servers=servers))


def algorithm_or_implementation(results: ResultSet, figures: Sequence[Line]) -> Iterator[Line]:
    """What changes with the congestion control of a server, and what with its implementation."""
    yield "## Algorithm or implementation"
    yield ""
    yield (
        f"Servers with different congestion controls, each with the clients {', '.join(results.manifest.clients)}. "
        "Variants select the congestion control and nothing else. Runs that timed out count with what had arrived over "
        "the time that the client ran; a T marks means that include such runs."
    )
    yield ""
    yield from figures
    yield from rendered(shares(results))
    yield from conclusion(results)
    yield ""
    for case in results.manifest.test_cases:
        yield from _of_case(results, case)
    yield (
        "picoquic's CUBIC hardly slows down if the link loses single packets: it reduces its window only if a smoothed "
        "loss rate exceeds a threshold (`picoquic_hystart_loss_test` in its `cubic.c`). CUBIC as in [RFC "
        "9438](https://www.rfc-editor.org/rfc/rfc9438#section-4.6) reduces it after every loss."
    )


def _of_case(results: ResultSet, case: TestCase) -> Iterator[str]:
    means = means_of_controls(results, case)
    names = list(dict.fromkeys(name for name, _ in means))
    columns = (Column("server"), *(Column(f"{control} [Mbit/s]") for control in ORDER))
    rows = [(name, *(_mean_in_words(means.get((name, control))) for control in ORDER)) for name in names]
    yield from rendered(Table("controls", f"Congestion controls over {case.name}", columns, tuple(rows), ()))
    for slower, faster in pairwise(ORDER):
        ratio = instead_of(results, case, slower, faster)
        if ratio is not None and ratio.low is not None and ratio.high is not None:
            yield (
                f"- {faster} instead of {slower} multiplies the goodput of an implementation by {ratio.value:.1f} "
                f"({ratio.low:.1f} to {ratio.high:.1f}; geometric mean of {ratio.count} implementations)."
            )
    yield from _ratios(means)
    yield from _drops(results, case)
    yield ""


# ---- shares of the variance -----------------------------------------------------------------


def shares(results: ResultSet) -> Table:
    """How much of the variance is due to the implementation, its congestion control, and the client."""
    columns = (
        Column("test case"), Column("source"), Column("share of variance", Unit.SHARE, 0), Column("low", Unit.SHARE, 0),
        Column("high", Unit.SHARE, 0),
    )  # fmt: skip
    every = with_timeouts(with_known_controls(results))
    rows = []
    for case in results.manifest.test_cases:
        found = decompose_nested(samples(every, case.name, GOODPUT))
        for part in found.shares if found else ():
            source = "congestion control" if part.source == "variant" else part.source
            rows.append((case.abbreviation, source, part.share, part.low, part.high))
    note = (
        "Variance components of the logarithm of goodput, with the congestion control nested in the implementation. "
        "Low and high are the limits of the 95 % confidence interval, for further implementations."
    )
    return Table("nested", "Sources of the variance of servers with variants", columns, tuple(rows), (note,))


def conclusion(results: ResultSet) -> Iterator[str]:
    """The sentence that the shares allow, for each test case."""
    by_case: dict[str, dict[str, tuple[float, float, float]]] = {}
    for case, source, share, low, high in shares(results).rows:
        by_case.setdefault(str(case), {})[str(source)] = (float(share or 0), float(low or 0), float(high or 0))
    names = {case.abbreviation: case.name for case in results.manifest.test_cases}
    for case, found in by_case.items():
        control, implementation = found["congestion control"], found["implementation"]
        if control[1] > implementation[2]:
            which = "The congestion control has a larger share than the rest of the implementation"
        elif implementation[1] > control[2]:
            which = "The implementation has a larger share than its congestion control"
        else:
            which = "These data do not show which share is larger"
        yield (
            f"- Over `{names[case]}`, the congestion control within an implementation has {_in_words(control)} of the "
            f"variance, and the implementation {_in_words(implementation)}. {which}."
        )


def _in_words(part: tuple[float, float, float]) -> str:
    share, low, high = (100 * each for each in part)
    return f"{share:.0f} % ({low:.0f} to {high:.0f} %)"


# ---- means ----------------------------------------------------------------------------------


def instead_of(results: ResultSet, case: TestCase, slower: str, faster: str) -> Mean | None:
    """By what a congestion control multiplies the goodput of the implementations that have both."""
    found: dict[str, dict[str, float]] = {}
    for server in with_known_controls(results).manifest.servers:
        values = known(run for run in of_case(results, case) if run.server == server)
        name, _, variant = server.partition(":")
        if values and min(values) > 0:
            found.setdefault(name, {})[CONTROLS[variant]] = statistics.geometric_mean(values)
    return of_repetitions([each[faster] / each[slower] for each in found.values() if {slower, faster} <= each.keys()])


def means_of_controls(results: ResultSet, case: TestCase) -> dict[tuple[str, str], tuple[float, bool]]:
    """Mean goodput over all runs of a server and congestion control, bit/s, and whether some did not succeed."""
    runs: dict[tuple[str, str], list[RunResult]] = {}
    for each in of_case(results, case):
        name, _, variant = each.server.partition(":")
        if variant in CONTROLS:
            runs.setdefault((name, CONTROLS[variant]), []).append(each)
    return {
        key: (statistics.fmean(values), any(each.verdict.outcome is not Outcome.SUCCEEDED for each in found))
        for key, found in runs.items()
        if (values := known(found))
    }


def _mean_in_words(mean: tuple[float, bool] | None) -> str:
    return "" if mean is None else f"{mean[0] / 1e6:.2f}{' T' if mean[1] else ''}"


def _ratios(means: Mapping[tuple[str, str], tuple[float, bool]]) -> Iterator[str]:
    """How far implementations differ with the same congestion control."""
    by_control: dict[str, list[float]] = {}
    for (_, control), (mean, _) in means.items():
        by_control.setdefault(control, []).append(mean)
    for control, found in by_control.items():
        if len(found) > 1 and min(found) > 0:
            yield (
                f"- With {control}, the fastest implementation has {max(found) / min(found):.1f} times the goodput of "
                f"the slowest ({len(found)} implementations)."
            )


def _drops(results: ResultSet, case: TestCase) -> Iterator[str]:
    """Names the server that lost the largest share of its packets in the queue."""
    dropped: dict[str, list[float]] = {}
    for each in of_case(results, case):
        if (share := value_of(each, "queue_loss")) is not None:
            dropped.setdefault(each.server, []).append(share)
    if not dropped:
        return
    means = {name: statistics.fmean(found) for name, found in dropped.items()}
    first = max(means, key=means.__getitem__)
    yield (
        f"- The queue dropped {100 * means[first]:.0f} % of the packets of {first}, the largest share of all servers. "
        f"The median over the servers is {100 * statistics.median(means.values()):.1f} %."
    )
