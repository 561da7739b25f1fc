"""Algorithm or implementation: congestion controls of the same servers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.report.table import Column, Table, Unit
from interop.statistics.intervals import of_repetitions
from interop.statistics.samples import GOODPUT, samples, value_of
from scripts.paper.crossed import Crossed, Difference, decompose_crossed
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
    yield from shares(results)
    yield from conclusion(results)
    yield ""
    for case in results.manifest.test_cases:
        yield from _of_case(results, case)
    yield (
        "picoquic's CUBIC hardly slows down if the link loses single packets: it reduces its window only if a smoothed "
        "loss rate exceeds a threshold (`picoquic_hystart_loss_test` in its `cubic.c`). CUBIC as in [RFC "
        "9438](https://www.rfc-editor.org/rfc/rfc9438#section-4.6) reduces it after every loss."
    )


def _of_case(results: ResultSet, case: TestCase) -> Iterator[Line]:
    means = means_of_controls(results, case)
    names = list(dict.fromkeys(name for name, _ in means))
    factors = [(slower, faster, factors_of(results, case, slower, faster)) for slower, faster in pairwise(ORDER)]
    columns = (
        Column("server"), *(Column(f"{control} [Mbit/s]") for control in ORDER),
        *(Column(f"{faster} / {slower}") for slower, faster, _ in factors),
    )  # fmt: skip
    rows = [
        (
            name,
            *(_mean_in_words(means.get((name, control))) for control in ORDER),
            *(f"{found[name]:.1f}" if name in found else "" for _, _, found in factors),
        )
        for name in names
    ]
    note = "The factors are geometric means over the clients."
    yield from rendered(Table("controls", f"Congestion controls over {case.name}", columns, tuple(rows), (note,)))
    for slower, faster, found in factors:
        ratio = of_repetitions(list(found.values()))
        if ratio is not None and ratio.low is not None and ratio.high is not None:
            yield (
                f"- {faster} instead of {slower} multiplies the goodput of an implementation by {ratio.value:.1f} "
                f"({ratio.low:.1f} to {ratio.high:.1f}; geometric mean of {ratio.count} implementations). "
                f"{_without_one_factor(found)}"
            )
    yield from _ratios(means)
    yield from _drops(results, case)
    yield ""


def _without_one_factor(found: Mapping[str, float]) -> str:
    """Which implementation changes the mean of the factors most, in each direction."""
    without = {
        name: statistics.geometric_mean([value for other, value in found.items() if other != name]) for name in found
    }
    return f"Without one of them, it is {_least_and_most(without, 1)}."


# ---- shares of the variance -----------------------------------------------------------------


def crossed(results: ResultSet, case: TestCase) -> Crossed | None:
    """Shares of implementation and congestion control; each pair counts once, with the mean of its logarithms."""
    cells = {}
    for sample in samples(with_timeouts(with_known_controls(results)), case.name, GOODPUT):
        name, _, variant = sample.server.partition(":")
        if sample.values and min(sample.values) > 0:
            cells[name, CONTROLS[variant], sample.client] = statistics.fmean(map(math.log, sample.values))
    return decompose_crossed(cells)


def of_cases(results: ResultSet) -> dict[str, Crossed]:
    """By test case, where an interval is possible."""
    return {case.name: each for case in results.manifest.test_cases if (each := crossed(results, case)) is not None}


def shares(results: ResultSet) -> Iterator[str]:
    """How much of the variance is due to each source, and how sure the difference of two shares is."""
    found = of_cases(results)
    if not found:
        return
    columns = (
        Column("test case"), Column("implementation", Unit.SHARE, 0), Column("congestion control", Unit.SHARE, 0),
        Column("combination", Unit.SHARE, 0), Column("client", Unit.SHARE, 0), Column("rest", Unit.SHARE, 0),
    )  # fmt: skip
    rows = [tuple[str | float, ...]((case, *each.shares.values())) for case, each in found.items()]
    implementations = len(next(iter(found.values())).difference.without)
    notes = (
        (
            f"Variance components of the logarithm of goodput, of the {implementations} implementations with at "
            "least two congestion controls."
        ),
        (
            "*Congestion control* is what an algorithm changes in all implementations alike, and *implementation* what "
            "an implementation changes with all algorithms alike. *Combination* is what both have beyond that, such as "
            "an implementation whose CUBIC differs from that of the others."
        ),
    )
    title = "Sources of the variance of servers with variants"
    yield from rendered(Table("crossed", title, columns, tuple(rows), notes))
    yield from rendered(_differences(found))


def _differences(found: Mapping[str, Crossed]) -> Table:
    columns = (
        Column("test case"), Column("combination"), Column("difference", Unit.SHARE, 0), Column("low", Unit.SHARE, 0),
        Column("high", Unit.SHARE, 0), Column("without one implementation"),
    )  # fmt: skip
    rows = [
        (case, counts, each.value, each.low, each.high, _least_and_most(each.without, 0, 100))
        for case, both in found.items()
        for counts, each in (
            ("counts as neither", both.difference), ("counts as implementation", both.with_combination)
        )
    ]  # fmt: skip
    notes = (
        (
            "Low and high are the limits of the 95 % confidence interval, for further implementations "
            "with these algorithms: a jackknife that leaves out one implementation at a time, with all its runs."
        ),
        "The last column has the smallest and the largest difference without one of the implementations.",
    )
    title = "Share of the implementation minus share of the congestion control"
    return Table("difference", title, columns, tuple(rows), notes)


def _least_and_most(without: Mapping[str, float], digits: int, times: float = 1) -> str:
    """``1.2 (without quinn) to 1.6 (without picoquic)``."""
    names = (choose(without, key=without.__getitem__) for choose in (min, max))
    return " to ".join(f"{times * without[name]:.{digits}f} (without {name})" for name in names)


def conclusion(results: ResultSet) -> Iterator[str]:
    """What the intervals of the difference allow to say, for each test case."""
    for case, found in of_cases(results).items():
        implementation, control, combination, *_ = (f"{100 * share:.0f} %" for share in found.shares.values())
        yield (
            f"- Over `{case}`, the implementation has {implementation} of the variance, the congestion control "
            f"{control}, and their combination {combination}. The difference of the first two is "
            f"{_points(found.difference)}, so {_larger(found.difference)}. If the combination counts as "
            f"implementation, the difference is {_points(found.with_combination)}, so "
            f"{_larger(found.with_combination)}."
        )


def _larger(difference: Difference) -> str:
    if difference.low > 0:
        return "the implementation has the larger share"
    if difference.high < 0:
        return "the congestion control has the larger share"
    return "these data do not show which share is larger"


def _points(each: Difference) -> str:
    """``55 percentage points (10 to 82)``."""
    return f"{100 * each.value:.0f} percentage points ({100 * each.low:.0f} to {100 * each.high:.0f})"


# ---- means ----------------------------------------------------------------------------------


def factors_of(results: ResultSet, case: TestCase, slower: str, faster: str) -> dict[str, float]:
    """By what a congestion control multiplies the goodput of each implementation that has both."""
    found: dict[str, dict[str, float]] = {}
    for server in with_known_controls(results).manifest.servers:
        values = known(run for run in of_case(results, case) if run.server == server)
        name, _, variant = server.partition(":")
        if values and min(values) > 0:
            found.setdefault(name, {})[CONTROLS[variant]] = statistics.geometric_mean(values)
    return {name: each[faster] / each[slower] for name, each in found.items() if {slower, faster} <= each.keys()}


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
