"""The page: its sections in their order, the introduction and the findings."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path

from interop.model.clock import Clock
from interop.model.results import Manifest, ResultSet
from interop.statistics.overview import scenario
from scripts.paper.acknowledgements import finding as msquic_finding
from scripts.paper.data_set import Part, by_seed, data_sheet, size_of
from scripts.paper.delays import delays
from scripts.paper.endpoints import conditions, servers_with_larger_starts
from scripts.paper.failures import failures
from scripts.paper.figures import PLOTS, Figures
from scripts.paper.goodput import known, of_case
from scripts.paper.influence import effects, in_words, influence, share_of_server, shares_that_one_server_makes
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
from scripts.paper.variants import algorithm_or_implementation
from scripts.paper.variants import finding as variants_finding
from scripts.paper.windows import finding as windows_finding
from scripts.paper.windows import windows


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
        *influence(results, parts.get(Part.COUNTER)), "",
        "## Reasons for failures", "",
        *failures(results, parts.get(Part.LIMITS)), "",
    ]  # fmt: skip


def _repetitions(manifest: Manifest) -> str:
    """``There is one seed over `sat`, and there are 4 over `satloss```."""
    counts: dict[int, list[str]] = {}
    for case in manifest.test_cases:
        counts.setdefault(case.repetitions, []).append(f"`{case.name}`")
    found = sorted(counts.items())
    if len(found) == 1:
        return f"There {_are(found[0][0], 'seed')}"
    first, *others = (f"there {_are(count, '')} over {' and '.join(links)}" for count, links in found)
    first = first.replace(" over", f" {'seed' if found[0][0] == 1 else 'seeds'} over", 1)
    return f"{first[0].upper()}{first[1:]}{''.join(f', and {each}' for each in others)}"


def _are(count: int, word: str) -> str:
    number = "is one" if count == 1 else f"are {count}"
    return f"{number} {word}{'s' if count != 1 else ''}" if word else number


def _clock(manifest: Manifest) -> str:
    if manifest.clock is Clock.VIRTUAL:
        return "They ran in virtual time: a simulated clock on which each system call takes a fixed time."
    return f"They ran in {manifest.time}."


def introduction(results: ResultSet) -> Iterator[str]:
    """What was measured, with what, and what it took."""
    manifest = results.manifest
    began = min(each.evidence.started for each in results.results)
    done, planned = len(results.results), manifest.planned_runs
    yield (
        "This page measures again what [arXiv 2202.08228](https://arxiv.org/abs/2202.08228), *the paper*, measured, "
        f"with {len(manifest.servers)} servers and {len(manifest.clients)} clients over the links "
        f"{', '.join(f'`{case.name}`' for case in manifest.test_cases)}. The paper measured 14 servers and 13 clients "
        "over the same links, ten times in real time."
    )
    yield ""
    yield (
        f"The measurements began on {began[:10]}. {_clock(manifest)} {_repetitions(manifest)}; a seed decides all "
        f"random numbers of a run. Of {planned} planned runs, {done} have a "
        f"result{'' if done == planned else '; the other runs have not been measured yet'}. `make paper` made the "
        "runs, and `make paper-report` computed all numbers and drew all figures on this page from the [data "
        "set](#data-set)."
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
    cases = results.manifest.test_cases
    good = {case.name: scenario(results, case).mean for case in cases}
    every = {case.name: statistics.fmean(values) for case in cases if (values := known(of_case(results, case)))}
    rates = {case.name: case.emulated.forward_rate for case in cases}
    shares = [f"{100 * mean / rates[name]:.0f} % over `{name}`" for name, mean in good.items() if mean is not None]
    all_shares = [f"{100 * mean / rates[name]:.0f} %" for name, mean in every.items()]
    if shares:
        yield (
            "- Goodput is far below the rate of a satellite link. The mean efficiency of the successful runs is "
            f"{', '.join(shares)}; of all runs, it is {', '.join(all_shares)}. {_possible(results)} See [Table "
            "II](#table-ii)."
        )
    parts = []
    for case in cases:
        server = share_of_server(results, case)
        if server is not None:
            parts.append(f"{in_words(server)} over `{case.name}`")
    if parts:
        sizes = [(case, servers, clients) for case, servers, _, clients, _ in effects(results).rows]
        exceptions = "".join(f" {told}" for told in shares_that_one_server_makes(results))
        yield (
            "- The goodput of a pair depends mostly on its server. The server's share of the variance of the logarithm "
            f"of goodput is {', '.join(parts)}.{exceptions} From the 10th to the 90th percentile, the means of servers "
            f"rise by a factor of {', '.join(f'{servers} over `{case}`' for case, servers, _ in sizes)}, and those of "
            f"clients by {', '.join(f'{clients}' for _, _, clients in sizes)}. See [Influence of server and "
            "client](#influence-of-server-and-client)."
        )
    if any(each.above for servers in exceeding(results).values() for each in servers):
        yield (
            f"- Over `satloss`, {_exceeding(results)} exceed an efficiency of 10 %, by their default congestion "
            "control. See [Servers and clients](#servers-and-clients)."
        )


def _exceeding(results: ResultSet) -> str:
    """``3 of 3 servers with BBR, 1 of 7 with CUBIC (msquic, in 23 of 70 runs), and 0 of 6 with Reno``."""
    parts = list[str]()
    for control, servers in exceeding(results).items():
        above = [each for each in servers if each.above]
        some = [f"{each.server}, in {each.above} of {each.runs} runs" for each in above if each.above < each.runs]
        whose = f" ({'; '.join(some)})" if some else ""
        parts.append(f"{len(above)} of {len(servers)}{'' if parts else ' servers'} with {control}{whose}")
    return ", and ".join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else parts[0]


def _possible(results: ResultSet) -> str:
    """What slow start allows for the size of the file, over links without loss."""
    most = [
        f"{goodput / 1e6:.1f} Mbit/s ({100 * goodput / case.emulated.forward_rate:.0f} %) over `{case.name}`"
        for case in results.manifest.test_cases
        if case.emulated.forward_loss is None
        if (goodput := fastest(sum(case.file_sizes), case.emulated))
    ]
    more = servers_with_larger_starts(results)
    return (
        f"A sender that starts with {INITIAL_WINDOW} packets, doubles this in each round trip, and then uses the full "
        f"rate without loss would reach {' and '.join(most)}; {len(more)} servers send more than that in the first "
        "round trip."
    )


def findings_of_parts(parts: Mapping[str, ResultSet]) -> Iterator[str]:
    """What parts beside the matrix show, as a list."""
    yield from msquic_finding(parts[Part.MATRIX], parts.get(Part.COUNTER))
    if Part.QUEUES in parts:
        yield from queue_finding(parts[Part.MATRIX], parts[Part.QUEUES])
    if Part.VARIANTS in parts:
        yield from variants_finding(parts[Part.VARIANTS])
    if Part.WINDOWS in parts:
        yield from windows_finding(parts[Part.WINDOWS])
