"""The page: its sections in their order, the introduction and the findings."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path

from interop.model.outcomes import Outcome
from interop.model.results import Manifest, ResultSet
from interop.model.test_case import TestCase
from interop.report import campaign_tables
from interop.statistics.overview import scenario
from interop.statistics.samples import EFFICIENCY, samples
from interop.statistics.variance import Share, decompose
from scripts.paper.data_set import Part, by_seed, data_sheet, size_of
from scripts.paper.delays import delays
from scripts.paper.endpoints import conditions
from scripts.paper.failures import failures
from scripts.paper.figures import PLOTS, Figures
from scripts.paper.goodput import of_case, with_timeouts
from scripts.paper.lines import Line, moment, numbered, rendered
from scripts.paper.matrix import (
    beside_the_paper,
    clients,
    clusters,
    congestion_controls,
    differences,
    exceeding,
    time_limits,
)
from scripts.paper.method import definitions, limitations, link_conditions, links, method
from scripts.paper.packets import EXPLAINED, OF_THE_PAPER, WITH_QLOG, packets, series_of
from scripts.paper.queues import finding as queue_finding
from scripts.paper.queues import queues
from scripts.paper.real_time import real_time
from scripts.paper.repeated import Sample, repeated
from scripts.paper.seeds import seeds
from scripts.paper.sweeps import sweeps
from scripts.paper.theory import INITIAL_WINDOW, fastest, theory
from scripts.paper.variants import algorithm_or_implementation, conclusion
from scripts.paper.windows import gain, windows


def page(parts: Mapping[str, ResultSet], figures: Figures, data: Path) -> str:
    """Markdown of the report; ``data``: directory of the data set."""
    return "\n".join(numbered(lines(parts, figures, data))).rstrip() + "\n"


def lines(parts: Mapping[str, ResultSet], figures: Figures, data: Path) -> Iterator[Line]:
    """The sections in their order; those of parts that are not stored are left out."""
    yield from matrix(parts, figures)
    if Part.VARIANTS in parts:
        yield from algorithm_or_implementation(
            parts[Part.VARIANTS], figures.get((Part.VARIANTS, "congestion-controls"), ())
        )
        yield ""
    yield from seeds(parts[Part.MATRIX], parts.get(Part.SPREAD))
    if measured_again := samples_of(data):
        yield from repeated(measured_again)
        yield ""
    if Part.QUEUES in parts:
        yield from queues(parts[Part.MATRIX], parts[Part.QUEUES])
    if Part.DELAYS in parts:
        yield from delays(parts[Part.DELAYS])
    if Part.SWEEPS in parts:
        maps_and_lines = [each for plot in PLOTS[Part.SWEEPS] for each in figures.get((Part.SWEEPS, plot), ())]
        yield from sweeps(parts[Part.SWEEPS], parts[Part.MATRIX], maps_and_lines)
    if Part.REAL in parts:
        yield from real_time(parts[Part.MATRIX], parts[Part.REAL])
    if Part.WINDOWS in parts:
        shown = (*figures.get((Part.WINDOWS, "negotiated"), ()), *figures.get(("packets", "windows"), ()))
        runs = series_of(data, EXPLAINED), series_of(data, EXPLAINED, WITH_QLOG)
        yield from windows(parts[Part.WINDOWS], parts.get(Part.LARGE_WINDOWS), shown, runs)
        yield ""
    if offsets := [figure for name in OF_THE_PAPER.values() for figure in figures.get(("packets", name), ())]:
        yield from packets(parts[Part.MATRIX], offsets)
        yield ""
    yield "## What these measurements do not show"
    yield ""
    yield from limitations(parts[Part.MATRIX], parts.get(Part.REAL))
    yield ""
    yield from data_sheet(parts, size_of(data))


def samples_of(data: Path) -> list[Sample]:
    """The campaigns that repeat a sample of another one, in `bench/paper.py`'s names."""
    return [
        Sample(part, first[seed], again)
        for part, name in ((Part.MATRIX, Part.REPEAT), (Part.SPREAD, f"{Part.REPEAT}-{Part.SPREAD}"))
        for first in [by_seed(data, part)]
        for seed, again in by_seed(data, name).items()
        if seed in first
    ]


def matrix(parts: Mapping[str, ResultSet], figures: Figures) -> list[Line]:
    """The introduction, the findings, and the sections about all clients with all servers."""
    results = parts[Part.MATRIX]
    cases = results.manifest.test_cases
    shown = {plot: figures.get((Part.MATRIX, plot), ()) for plot in PLOTS[Part.MATRIX]}
    return [
        "# arXiv 2202.08228, measured again", "",
        *introduction(results), "",
        "## Findings", "",
        *findings(results),
        *findings_of_parts(parts), "",
        "## Method", "",
        *method(results, parts.get(Part.REAL), with_delays=Part.DELAYS in parts),
        *rendered(links(results)),
        *rendered(link_conditions(results)),
        *definitions(),
        "## Endpoints", "",
        *conditions(results), "",
        "## Goodput per link", "",
        *rendered(beside_the_paper(results)),
        *differences(results), "",
        *time_limits(results),
        *shown["cdf"],
        "## Servers and clients", "",
        *rendered(congestion_controls(results)),
        *rendered(clients(results)),
        *shown["heatmap"], *shown["violin"],
        *clusters(results), "",
        *shown["two-case-scatter"],
        "## Formulas of Reno and CUBIC", "",
        *theory(results), "",
        "## Influence of server and client", "",
        *rendered(campaign_tables.variance(results, cases)),
        *shares_with_timeouts(results), "",
        "## Reasons for failures", "",
        *failures(results), "",
    ]  # fmt: skip


def shares_with_timeouts(results: ResultSet) -> Iterator[str]:
    """The server's share of the variance if runs that timed out count, too."""
    every, parts = with_timeouts(results), []
    for case in results.manifest.test_cases:
        late = any(run.verdict.outcome is Outcome.TIMEOUT for run in of_case(results, case))
        server = share_of_server(every, case)
        if late and server is not None:
            parts.append(f"{in_words(server)} over `{case.name}`")
    if parts:
        yield (
            "If runs that timed out count with what had arrived over the time that the client ran, the share of the "
            f"server is {', '.join(parts)}."
        )


def share_of_server(results: ResultSet, case: TestCase) -> Share | None:
    """The server's share of the variance of the efficiency."""
    found = decompose(samples(results, case.name, EFFICIENCY))
    return next((part for part in found.shares if part.source == "server"), None) if found else None


def in_words(part: Share) -> str:
    """``72 % (57 to 86 %)``."""
    return f"{100 * part.share:.0f} % ({100 * part.low:.0f} to {100 * part.high:.0f} %)"


def _links_with(manifest: Manifest, repetitions: int) -> str:
    return ", ".join(f"`{case.name}`" for case in manifest.test_cases if case.repetitions == repetitions)


def introduction(results: ResultSet) -> Iterator[str]:
    """What was measured, with what, and what it took."""
    manifest = results.manifest
    most = max((case.repetitions for case in manifest.test_cases), default=0)
    seeds = " and ".join(
        f"{'one seed' if count == 1 else f'{count} seeds'}"
        f"{f' over {links}' if (links := _links_with(manifest, count)) and most > 1 else ''}"
        for count in sorted({case.repetitions for case in manifest.test_cases})
    )
    began = min(each.evidence.started for each in results.results)
    done, planned = len(results.results), manifest.planned_runs
    yield (
        f"This page repeats the measurements of [arXiv 2202.08228](https://arxiv.org/abs/2202.08228), *the paper*, "
        f"with {len(manifest.servers)} servers and {len(manifest.clients)} clients over the links "
        f"{', '.join(f'`{case.name}`' for case in manifest.test_cases)}. The paper measured 14 servers and 13 clients "
        "over the same links, ten times in real time."
    )
    yield ""
    yield (
        f"`make paper` made the measurements from {began[:10]} on in {manifest.time}, with {seeds}. "
        f"Of {planned} planned runs, {done} have a result"
        f"{'' if done == planned else '; the other runs have not been measured yet'}. "
        f"`make paper-report` computed all numbers and drew all figures on this page from the [data set](#data-set)."
    )
    last = max(each.evidence.started for each in results.results)
    phases = [sum(each.evidence.phases.values()) for each in results.results]
    yield ""
    yield (
        f"A run took {statistics.median(phases):.1f} s of wall-clock time at the median. The sum over all runs is "
        f"{sum(phases) / 3600:.1f} h. {_machine(results)}The first run began at {moment(began)} UTC, and the last one "
        f"at {moment(last)}."
    )


def _machine(results: ResultSet) -> str:
    """CPUs, runs at a time, and the load of the machine, from what each run recorded."""
    hosts = [each.evidence.host for each in results.results if each.evidence.host is not None]
    if not hosts:
        return ""
    cpus = " or ".join(map(str, sorted({host.cpus for host in hosts})))
    load = statistics.median(host.load_before for host in hosts)
    return (
        f"Up to {1 + max(host.neighbours for host in hosts)} runs were made at a time on {cpus} CPUs, with a load "
        f"average of {load:.1f} at the median, so that other programs ran as well. "
    )


def findings(results: ResultSet) -> Iterator[str]:
    """The paper's conclusions, and whether they hold here, as a list."""
    means = {case.name: scenario(results, case).mean for case in results.manifest.test_cases}
    rates = {case.name: case.emulated.forward_rate for case in results.manifest.test_cases}
    shares = [f"{100 * mean / rates[name]:.0f} % over `{name}`" for name, mean in means.items() if mean is not None]
    if shares:
        yield (
            "- Goodput is far below the rate of a satellite link. The mean efficiency of the successful runs is "
            f"{', '.join(shares)}. {_possible(results)} See [Table II](#table-ii)."
        )
    parts = []
    for case in results.manifest.test_cases:
        server = share_of_server(results, case)
        if server is not None:
            parts.append(f"{in_words(server)} over `{case.name}`")
    if parts:
        yield (
            "- The goodput of a pair depends mostly on its server. The server's share of the variance of the logarithm "
            f"of goodput is {', '.join(parts)}. See [Influence of server and client](#influence-of-server-and-client)."
        )
    fast = {name: len(set(servers)) for name, (servers, _) in exceeding(results).items() if servers}
    if fast:
        yield (
            f"- Over `satloss`, {sum(fast.values())} servers exceed an efficiency of 10 % with at least one client; "
            f"{fast.get('BBR', 0)} of them use BBR. See [Servers and clients](#servers-and-clients)."
        )


def _possible(results: ResultSet) -> str:
    """What slow start allows for the size of the file, over links without loss."""
    most = [
        f"{goodput / 1e6:.1f} Mbit/s ({100 * goodput / case.emulated.forward_rate:.0f} %) over `{case.name}`"
        for case in results.manifest.test_cases
        if case.emulated.forward_loss is None
        if (goodput := fastest(sum(case.file_sizes), case.emulated))
    ]
    return (
        f"Slow start bounds it for a file of this size: an initial window of {INITIAL_WINDOW} packets that doubles in "
        f"each round trip, and then the full rate without any loss, give {' and '.join(most)}."
    )


def findings_of_parts(parts: Mapping[str, ResultSet]) -> Iterator[str]:
    """What parts beside the matrix show, as a list."""
    if Part.QUEUES in parts:
        yield from queue_finding(parts[Part.MATRIX], parts[Part.QUEUES])
    if Part.VARIANTS in parts:
        for sentence in conclusion(parts[Part.VARIANTS]):
            yield f"{sentence} See [Algorithm or implementation](#algorithm-or-implementation)."
    if Part.WINDOWS in parts and Part.LARGE_WINDOWS in parts:
        factor = gain(parts[Part.WINDOWS], parts[Part.LARGE_WINDOWS])
        if factor is not None:
            yield (
                f"- The receive windows of a client can decide, too: with larger ones, quic-go's client receives "
                f"{factor:.1f} times as fast from picoquic's server over `sat`. See "
                "[Receive windows of clients](#receive-windows-of-clients)."
            )
