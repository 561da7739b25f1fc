"""Algorithm or implementation: congestion controls of the same servers."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping

from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.report.table import Column, Table
from scripts.paper.goodput import most
from scripts.paper.markdown import rendered

CONTROLS: Mapping[str, str] = {"reno": "Reno", "newreno": "Reno", "cubic": "CUBIC", "bbr": "BBR"}
"""Variants of servers that several implementations have, and their congestion control."""


def algorithm_or_implementation(results: ResultSet) -> Iterator[str]:
    """What changes with the congestion control of a server, and what with its implementation."""
    yield "## Algorithm or implementation"
    yield ""
    yield (
        f"Servers with different congestion controls, each with the clients {', '.join(results.manifest.clients)}. "
        "Variants select the congestion control and nothing else. A mean with ≤ is a bound: it includes runs that "
        "timed out, as the whole file at the time limit, or failed, as 0."
    )
    yield ""
    for case in results.manifest.test_cases:
        means = means_of_controls(results, case)
        names = list(dict.fromkeys(name for name, _ in means))
        columns = (Column("server"), *(Column(f"{control} [Mbit/s]") for control in dict.fromkeys(CONTROLS.values())))
        rows = [
            (name, *(_mean_in_words(means.get((name, control))) for control in dict.fromkeys(CONTROLS.values())))
            for name in names
        ]
        title = f"Congestion controls over {case.name}"
        yield from rendered(Table("controls", title, columns, tuple(rows), ()))
        yield from _ratios(means, case)
        yield from _drops(results, case)
        yield ""
    yield (
        "picoquic's CUBIC hardly slows down if the link loses single packets: it reduces its window only if a smoothed "
        "loss rate exceeds a threshold (`picoquic_hystart_loss_test` in its `cubic.c`). CUBIC as in [RFC "
        "9438](https://www.rfc-editor.org/rfc/rfc9438#section-4.6) reduces it after every loss."
    )


def _drops(results: ResultSet, case: TestCase) -> Iterator[str]:
    """Names the server that lost the largest share of its packets in the queue."""
    shares: dict[str, list[float]] = {}
    for each in results.results:
        if each.test_case == case.name and each.measurement is not None:
            share = each.measurement.values.get("queue_loss")
            if share is not None:
                shares.setdefault(each.server, []).append(share)
    if not shares:
        return
    means = {name: statistics.fmean(found) for name, found in shares.items()}
    first = max(means, key=means.__getitem__)
    yield (
        f"- The queue dropped {100 * means[first]:.0f} % of the packets of {first}, the largest share of all servers. "
        f"The median over the servers is {100 * statistics.median(means.values()):.1f} %."
    )


def means_of_controls(results: ResultSet, case: TestCase) -> dict[tuple[str, str], tuple[float, bool]]:
    """Mean goodput over all runs of a server and congestion control, bit/s, and whether it is only a bound."""
    runs: dict[tuple[str, str], list[RunResult]] = {}
    for each in results.results:
        name, _, variant = each.server.partition(":")
        if each.test_case == case.name and variant in CONTROLS:
            runs.setdefault((name, CONTROLS[variant]), []).append(each)
    return {
        key: (
            statistics.fmean(most(each, case) for each in found),
            any(each.verdict.outcome is not Outcome.SUCCEEDED for each in found),
        )
        for key, found in runs.items()
    }


def _mean_in_words(mean: tuple[float, bool] | None) -> str:
    return "" if mean is None else f"{'≤ ' if mean[1] else ''}{mean[0] / 1e6:.2f}"


def _ratios(means: Mapping[tuple[str, str], tuple[float, bool]], case: TestCase) -> Iterator[str]:
    """By which factor goodput changes with one of the two while the other is the same."""
    by_name: dict[str, list[float]] = {}
    by_control: dict[str, list[float]] = {}
    for (name, control), (mean, _) in means.items():
        by_name.setdefault(name, []).append(mean)
        by_control.setdefault(control, []).append(mean)
    factors = [max(found) / min(found) for found in by_name.values() if len(found) > 1 and min(found) > 0]
    if factors:
        yield (
            f"- Over `{case.name}`, the fastest congestion control of an implementation has {min(factors):.1f} to "
            f"{max(factors):.1f} times the goodput of its slowest (median {statistics.median(factors):.1f}, "
            f"{len(factors)} implementations)."
        )
    for control, found in by_control.items():
        if len(found) > 1 and min(found) > 0:
            yield (
                f"- With {control}, the fastest implementation has {max(found) / min(found):.1f} times the goodput of "
                f"the slowest ({len(found)} implementations)."
            )
