"""The page: its sections in their order, the introduction and the findings."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.paper import SEEDS
from interop.model.clock import Clock
from interop.model.results import Manifest, ResultSet
from interop.statistics.overview import scenario
from scripts.paper.acknowledgements import finding as msquic_finding
from scripts.paper.algorithms import algorithms
from scripts.paper.algorithms import finding as algorithms_finding
from scripts.paper.claims import claims
from scripts.paper.data_set import Part, by_seed, data_sheet, elsewhere, fewer_seeds, others, single_campaigns, size_of
from scripts.paper.delays import delays
from scripts.paper.endpoints import conditions, servers_with_larger_starts
from scripts.paper.failures import failures
from scripts.paper.figures import PLOTS, Figures
from scripts.paper.findings_in_real_time import findings_in_real_time
from scripts.paper.goodput import known, of_case
from scripts.paper.influence import finding as influence_finding
from scripts.paper.influence import influence
from scripts.paper.lines import Line, moment, numbered, rendered
from scripts.paper.matrix import (
    about_groups,
    beside_the_paper,
    clients,
    congestion_controls,
    differences,
    time_limits,
)
from scripts.paper.method import definitions, idle_time, limitations, link_conditions, links, method, sizes_in_words
from scripts.paper.packets import EXPLAINED, OF_THE_PAPER, STARTS, WITH_QLOG, packets, series_of, stored_series
from scripts.paper.queues import finding as queue_finding
from scripts.paper.queues import over_the_same_links, queues
from scripts.paper.real_time import finding as real_time_finding
from scripts.paper.real_time import real_time
from scripts.paper.repeated import Sample, repeated, without_a_version
from scripts.paper.seeds import seeds
from scripts.paper.senders import senders
from scripts.paper.sweeps import finding as sweeps_finding
from scripts.paper.sweeps import sweeps
from scripts.paper.theory import INITIAL_BYTES, INITIAL_WINDOW, PER_PACKET, QUIC_OVERHEAD, fastest, theory
from scripts.paper.unpaced_start import LINK, unpaced_start
from scripts.paper.unpaced_start import finding as start_finding
from scripts.paper.variants import algorithm_or_implementation
from scripts.paper.variants import finding as variants_finding
from scripts.paper.virtual_time_images import virtual_time_images
from scripts.paper.windows import finding as windows_finding
from scripts.paper.windows import in_real_time as windows_in_real_time
from scripts.paper.windows import windows
from scripts.paper.words import counted, listed, named_campaigns


def page(parts: Mapping[str, ResultSet], figures: Figures, data: Path) -> str:
    """Markdown of the report; ``data``: directory of the data set."""
    return "\n".join(numbered(lines(parts, figures, data))).rstrip() + "\n"


def lines(parts: Mapping[str, ResultSet], figures: Figures, data: Path) -> Iterator[Line]:
    """The sections in their order; those of parts that are not stored are left out."""
    measured_again = samples_of(data)
    few = fewer_seeds(single_campaigns(data), SEEDS)
    yield from matrix(parts, figures, measured_again, starts_of(parts, data), few)
    if Part.VARIANTS in parts:
        yield from algorithm_or_implementation(
            parts[Part.VARIANTS], figures.get((Part.VARIANTS, "congestion-controls"), ()), parts.get(Part.COUNTER)
        )
        yield ""
    yield from seeds(parts[Part.MATRIX], parts.get(Part.SPREAD), parts)
    if measured_again:
        yield from repeated(measured_again)
        yield ""
    if Part.QUEUES in parts:
        yield from queues(parts[Part.MATRIX], parts[Part.QUEUES], parts.get(Part.REAL))
    if Part.DELAYS in parts:
        yield from delays(parts[Part.DELAYS], parts[Part.MATRIX], parts.get(Part.VARIANTS), parts.get(Part.WINDOWS))
    if Part.SWEEPS in parts:
        maps_and_lines = [each for plot in PLOTS[Part.SWEEPS] for each in figures.get((Part.SWEEPS, plot), ())]
        yield from sweeps(parts[Part.SWEEPS], parts[Part.MATRIX], maps_and_lines, parts.get(Part.REAL))
    if Part.REAL in parts:
        yield from real_time(parts[Part.MATRIX], parts[Part.REAL], parts.get(Part.SPREAD))
        yield from findings_in_real_time(parts[Part.MATRIX], parts[Part.REAL])
    if Part.WINDOWS in parts:
        shown = (*figures.get((Part.WINDOWS, "negotiated"), ()), *figures.get(("packets", "windows"), ()))
        runs = series_of(data, EXPLAINED), series_of(data, EXPLAINED, WITH_QLOG)
        yield from windows(parts[Part.WINDOWS], parts.get(Part.LARGE_WINDOWS), shown, runs)
        yield from windows_in_real_time(parts[Part.WINDOWS], parts[Part.MATRIX], parts.get(Part.REAL))
        yield ""
    if offsets := [figure for name in OF_THE_PAPER.values() for figure in figures.get(("packets", name), ())]:
        yield from packets(parts[Part.MATRIX], offsets, data, parts.get(Part.REAL))
        yield ""
    yield "## What these measurements do not show"
    yield ""
    yield from limitations(parts[Part.MATRIX], parts.get(Part.REAL))
    yield ""
    yield from data_sheet(parts, size_of(data), virtual_time_images(single_campaigns(data)), stored_series(data))


def longer_of(parts: Mapping[str, ResultSet]) -> ResultSet | None:
    """The runs with the queue of the paper's simulator, over links with the names of those of the matrix."""
    return over_the_same_links(parts[Part.QUEUES]) if Part.QUEUES in parts else None


def starts_of(parts: Mapping[str, ResultSet], data: Path) -> list[str]:
    """The section about the first bursts of quic-go; empty without its campaign."""
    if Part.START not in parts:
        return []
    series = {pair: found for pair in STARTS if (found := series_of(data, pair, WITH_QLOG)) is not None}
    real = parts.get(Part.REAL)
    return list(unpaced_start(parts[Part.MATRIX], parts[Part.START], series, longer_of(parts), real))


REPEATED = tuple(
    (part, f"{name}{also}")
    for name in (Part.REPEAT, Part.ANOTHER_MACHINE)
    for part, also in ((Part.MATRIX, ""), (Part.SPREAD, f"-{Part.SPREAD}"))
)
"""Campaigns, and those that repeat a sample of their runs."""


def samples_of(data: Path) -> list[Sample]:
    """The campaigns that repeat a sample of another one, in `bench/paper.py`'s names."""
    return [
        Sample(part, first[seed], again)
        for part, name in REPEATED
        for first in [by_seed(data, part)]
        for seed, again in by_seed(data, name).items()
        if seed in first
    ]


def matrix(
    parts: Mapping[str, ResultSet],
    figures: Figures,
    again: Sequence[Sample],
    starts: Sequence[str] = (),
    seeds: str = "",
) -> list[Line]:
    """The introduction, the findings, and the sections about all clients with all servers.

    ``again``: repeated runs. ``starts``: the section about the first bursts of quic-go, or nothing.
    """
    results, longer = parts[Part.MATRIX], longer_of(parts)
    unversioned = without_a_version(results, again)
    shown = {plot: figures.get((Part.MATRIX, plot), ()) for plot in PLOTS[Part.MATRIX]}
    return [
        "# arXiv 2202.08228 revisited", "",
        *introduction(parts), "",
        "## Findings", "",
        *findings(parts), "",
        *(rendered(table) if (table := claims(results, longer)).rows else ()),
        "## Method", "",
        *method(results, parts.get(Part.REAL), with_delays=Part.DELAYS in parts, unversioned=unversioned, seeds=seeds),
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
        *senders(results),
        *rendered(clients(results)),
        *shown["heatmap"], *shown["violin"],
        *algorithms(results, parts.get(Part.VARIANTS), parts.get(Part.COUNTER), longer), "",
        *about_groups(shown["two-case-scatter"]), *shown["two-case-scatter"],
        "## Formulas of Reno and CUBIC", "",
        *theory(results), "",
        "## Influence of server and client", "",
        *influence(results, parts.get(Part.COUNTER), LINK if starts else ""), "",
        *starts,
        "## Reasons for failures", "",
        *failures(results, parts.get(Part.LIMITS)), "",
    ]  # fmt: skip


def _repetitions(manifest: Manifest) -> str:
    """``one seed over `sat`, and 4 seeds over `satloss```."""
    counts: dict[int, list[str]] = {}
    for case in manifest.test_cases:
        counts.setdefault(case.repetitions, []).append(f"`{case.name}`")
    found = sorted(counts.items())
    if len(found) == 1:
        return _seeds(found[0][0])
    return ", and ".join(f"{_seeds(count)} over {listed(links)}" for count, links in found)


def _seeds(count: int) -> str:
    return "one seed" if count == 1 else f"{count} seeds"


def _clock(manifest: Manifest) -> str:
    if manifest.clock is Clock.VIRTUAL:
        return "virtual time: a simulated clock on which each system call takes a fixed time"
    return manifest.time


def _further_seeds(parts: Mapping[str, ResultSet]) -> str:
    """The pairs that were measured with further seeds: ``For 36 pairs of …, we used a further seed over `sat```."""
    spread = parts.get(Part.SPREAD)
    if spread is None:
        return ""
    known = {(run.test_case, run.evidence.seed) for run in parts[Part.MATRIX].results}
    runs = [run for run in spread.results if (run.test_case, run.evidence.seed) not in known]
    found: dict[tuple[int, int], list[str]] = {}
    for case in spread.manifest.test_cases:
        mine = [run for run in runs if run.test_case == case.name]
        if mine:
            pairs = {(run.server, run.client) for run in mine}
            numbers = len({run.evidence.seed for run in mine})
            found.setdefault((len(pairs), numbers), []).append(f"`{case.name}`")
    return "".join(
        f" For {counted(pairs, 'pair')} of a server and a client, we used "
        f"{'a further seed' if number == 1 else f'{number} further seeds'} over {listed(links)} (see [Seeds](#seeds))."
        for (pairs, number), links in found.items()
    )


def _performed(parts: Mapping[str, ResultSet]) -> str:
    names = others(parts)
    return f" except those of the {named_campaigns(names)}, which we started with `./run.py run`" if names else ""


def introduction(parts: Mapping[str, ResultSet]) -> Iterator[str]:
    """What was measured, with what, and what it took."""
    results = parts[Part.MATRIX]
    manifest = results.manifest
    began = min(each.evidence.started for each in results.results)
    done, planned = len(results.results), manifest.planned_runs
    yield (
        "This page revisits the measurements of [arXiv 2202.08228](https://arxiv.org/abs/2202.08228) (*the paper*), "
        f"with {counted(len(manifest.servers), 'server')} and {counted(len(manifest.clients), 'client')} over the "
        f"links {listed(f'`{case.name}`' for case in manifest.test_cases)}. The paper measured 14 servers and 13 "
        "clients over the same links, with ten repetitions in real time."
    )
    yield ""
    yield (
        f"The measurements began on {began[:10]} and used {_clock(manifest)}. We used "
        f"{_repetitions(manifest)}; the seed of a run determines all of its random numbers.{_further_seeds(parts)} "
        f"{_with_result(done, planned)}{_machines(parts)} `make paper` performed all runs on this page"
        f"{_performed(parts)}. `make paper-report` computed all numbers and drew all figures on this page from the "
        "[data set](#data-set)."
    )
    last = max(each.evidence.started for each in results.results)
    phases = [sum(each.evidence.phases.values()) for each in results.results]
    yield ""
    yield (
        f"In this campaign, the median wall-clock time of a run was {statistics.median(phases):.1f} s; the sum was "
        f"{sum(phases) / 3600:.1f} h. {_machine(results)}The first run began at {moment(began)} UTC, and the last one "
        f"at {moment(last)} UTC."
    )


def _machines(parts: Mapping[str, ResultSet]) -> str:
    """The campaigns that took place on another machine than the matrix, as a sentence; or nothing."""
    moved = list(elsewhere(parts))
    return (
        f" The matrix took place on one machine; {listed(moved)} took place on another one (see [Data set](#data-set))."
        if moved
        else ""
    )


def _with_result(done: int, planned: int) -> str:
    if done == planned:
        return f"All {planned} planned runs of the campaign `matrix` have a result."
    return (
        f"Of {planned} planned runs of the campaign `matrix`, {done} have a result; the other runs have not been "
        "measured yet."
    )


def _machine(results: ResultSet) -> str:
    """CPUs, runs at a time, and the load of the machine, from what each run recorded."""
    hosts = [each.evidence.host for each in results.results if each.evidence.host is not None]
    if not hosts:
        return ""
    cpus = " or ".join(map(str, sorted({host.cpus for host in hosts})))
    load = statistics.median(host.load_before for host in hosts)
    most = 1 + max(host.neighbours for host in hosts)
    return (
        f"{'One run' if most == 1 else f'Up to {most} runs'} took place at a time on {cpus} CPUs. The median load "
        f"average was {load:.1f}, because other programs were running as well. "
    )


def efficiency_finding(results: ResultSet) -> Iterator[str]:
    """How far goodput is below the link's rate, as an item of a list; nothing without a success."""
    cases = results.manifest.test_cases
    good = {case.name: scenario(results, case).mean for case in cases}
    every = {case.name: statistics.fmean(values) for case in cases if (values := known(of_case(results, case)))}
    rates = {case.name: case.emulated.forward_rate for case in cases}
    shares = [f"{100 * mean / rates[name]:.0f} % over `{name}`" for name, mean in good.items() if mean is not None]
    all_shares = [f"{100 * mean / rates[name]:.0f} %" for name, mean in every.items()]
    if shares:
        yield (
            f"- With a file of {sizes_in_words(results)} and the short [queues](#links) of these links, goodput over "
            "satellite links is far below the link's rate. The mean efficiency of the successful runs "
            f"is {listed(shares)}; for all runs, it is {listed(all_shares)}.{_possible(results)} See [Table "
            "II](#table-ii)."
        )


def _possible(results: ResultSet) -> str:
    """What slow start allows for the size of the file over links without loss; empty if there are none."""
    most = [
        f"{goodput / 1e6:.1f} Mbit/s ({100 * goodput / case.emulated.forward_rate:.0f} %) over `{case.name}`"
        for case in results.manifest.test_cases
        if case.emulated.forward_loss is None
        if (goodput := fastest(sum(case.file_sizes), case.emulated))
    ]
    if not most:
        return ""
    more = len(servers_with_larger_starts(results))
    return (
        f" For comparison, consider a sender that starts with {INITIAL_WINDOW} packets ({INITIAL_BYTES:,} bytes, as in "
        "RFC 9002), doubles this number in each round trip until it reaches the link's rate, and then sends at that "
        f"rate without loss. With {PER_PACKET:,} bytes of the file in each packet (the largest UDP payload of "
        f"{PER_PACKET + QUIC_OVERHEAD:,} bytes minus about {QUIC_OVERHEAD} bytes of QUIC headers), it would reach "
        f"{listed(most)}, from the first to the last byte of the file.{_with_idle_time(results)} In the first round "
        f"trip, {counted(more, 'server') if more else 'no server'} {'send' if more > 1 else 'sends'} more than "
        f"{INITIAL_BYTES:,} bytes of the response."
    )


def _with_idle_time(results: ResultSet) -> str:
    """What the same sender reaches if its time includes the median time without bytes of the file; or nothing."""
    told = list[str]()
    for case in results.manifest.test_cases:
        size = sum(case.file_sizes)
        idle = [value for run in of_case(results, case) if (value := idle_time(run, size)) is not None]
        if case.emulated.forward_loss is None and idle and (goodput := fastest(size, case.emulated)):
            rate = 8 * size / (8 * size / goodput + statistics.median(idle))
            told.append(f"{rate / 1e6:.1f} Mbit/s over `{case.name}`")
    return (
        f" With the median time without bytes of the file that our goodput also includes (see [Method](#method)), it "
        f"would reach {listed(told)}."
        if told
        else ""
    )


def findings(parts: Mapping[str, ResultSet]) -> Iterator[str]:
    """What all parts show, as a list; each item begins with its subject."""
    results, longer, real = parts[Part.MATRIX], longer_of(parts), parts.get(Part.REAL)
    variants, counter = parts.get(Part.VARIANTS), parts.get(Part.COUNTER)
    yield from _about("Efficiency", efficiency_finding(results))
    yield from _about("Server or client", influence_finding(results, longer))
    yield from _about("Congestion control", algorithms_finding(results, variants, counter, longer))
    yield from _about("Underflow in msquic", msquic_finding(results, counter))
    if Part.QUEUES in parts:
        yield from _about("Queue", queue_finding(results, parts[Part.QUEUES]))
    if variants is not None:
        yield from _about("Algorithm or implementation", variants_finding(variants, counter))
    if Part.SWEEPS in parts:
        yield from _about("Sweeps", sweeps_finding(parts[Part.SWEEPS], results))
    if Part.WINDOWS in parts:
        yield from _about("Receive windows", windows_finding(parts[Part.WINDOWS], results, real))
    if Part.START in parts:
        yield from _about("quic-go with kwik and lsquic", start_finding(results, longer, real))
    if real is not None:
        yield from _about("Real time", real_time_finding(results, real))


def _about(subject: str, items: Iterable[str]) -> Iterator[str]:
    """Items of a list with their subject in front."""
    return (f"- **{subject}:** {item.removeprefix('- ')}" for item in items)
