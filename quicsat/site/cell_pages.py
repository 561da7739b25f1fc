"""Writes what the site has about single cells: the pages of pairs, cells and logs, and the packets of their runs."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from quicsat.analysis.link_qlog import LinkRun
from quicsat.analysis.qlog_export import qlogs
from quicsat.analysis.reanalysis import planned
from quicsat.analysis.run_capture import write_capture
from quicsat.analysis.time_shares import run_time_shares
from quicsat.model.errors import HarnessFault
from quicsat.model.implementation import Protocol
from quicsat.model.names import folder_name, pair_folder
from quicsat.model.outcomes import Outcome
from quicsat.model.results import RunResult
from quicsat.model.stored_files import is_directory, status
from quicsat.model.test_case import TestCase
from quicsat.model.text import numbered
from quicsat.model.trace_size import trace_packets
from quicsat.model.units import KIB
from quicsat.report.time_share_tables import shares_of
from quicsat.results.summary import VIRTUAL_ONLY
from quicsat.site import address, cell_view, figures, files, logs, packets, sequence, side_by_side
from quicsat.site.campaigns import Key, SiteCampaign
from quicsat.site.construction import Site
from quicsat.site.matrix_cell_text import PARTIAL
from quicsat.site.time_share_band import time_share_columns
from quicsat.site.workers import working
from quicsat.traces.congestion import recovery
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.records import Condition
from quicsat.traces.run_traces import QLOGS, RunTraces, check_traces, read_run
from quicsat.traces.series import FILE_NAME, SeriesError, load

Pair = tuple[str, str]
"""Server and client."""
MOST_BYTES = 24_000_000
"""Of the series of a campaign as they are stored, up to which the packets of all its runs are shown in full."""
THINNED = 600
"""Events per table that are left of a run that is not its cell's representative, in a campaign larger than that."""
WORTHWHILE = 200
"""Runs of a campaign from which on several processes share the work on its pages."""
_NICENESS = 10
"""Of these processes: what the main process does meanwhile must not be the last that is done."""
_MOST_OTHERS = 8
"""Other test cases of its pair that the page of a cell names."""
_LOG = 16 * KIB
_LOG_OF_FAILURE = 64 * KIB


@contextmanager
def writing(site: Site, campaign: SiteCampaign, say: Callable[[str], None], *, files: bool) -> Iterator[None]:
    """Write all pages below ``runs/<campaign>/p/`` until the block is left, by several processes if there are many.

    ``say`` gets a sentence for each run whose series cannot be read.
    """
    pairs: dict[Pair, list[Key]] = {}
    for key in campaign.runs:
        pairs.setdefault(key[:2], []).append(key)
    full = _size_of_series(campaign, pairs) <= MOST_BYTES
    job = _Job(site, campaign, pairs.keys(), full=full, files=files, figures=figures.find(campaign.directory))
    several = len(campaign.results.results) >= WORTHWHILE and bool(campaign.cells and campaign.attempts)
    with working(site, partial(_pair, job), list(pairs.items()), several=several, niceness=_NICENESS) as written:
        yield
        for sentence in chain.from_iterable(written):
            say(sentence)


@dataclass(frozen=True)
class _Job:
    """What is the same for all cells of a campaign."""

    site: Site
    campaign: SiteCampaign
    pairs: Collection[Pair]
    full: bool
    """The packets and logs of all runs."""
    files: bool
    figures: tuple[figures.Figure, ...]


def run_directory(campaign: SiteCampaign, result: RunResult) -> Path:
    """Where the files of a run are; the names in it were checked when the results were read."""
    return campaign.directory / result.key.path


def _size_of_series(campaign: SiteCampaign, pairs: Mapping[Pair, Sequence[Key]]) -> int:
    total = 0
    for pair, keys in pairs.items():
        if not is_directory(campaign.directory / pair_folder(*pair)):
            continue  # results can be without the files of their runs
        for result in chain.from_iterable(campaign.runs[key] for key in keys):
            state = status(run_directory(campaign, result) / FILE_NAME)
            total += 0 if state is None else state.st_size
    return total


def _cell(job: _Job, key: Key, cases: Sequence[str], unreadable: list[str]) -> cell_view.CellView:
    """Write the page of a cell; ``cases``: the names of all test cases of its pair.

    ``unreadable`` is extended by a sentence for each run whose series cannot be read.
    """
    site, campaign = job.site, job.campaign
    results = campaign.runs[key]
    folder = PurePosixPath("runs", campaign.folder) / address.cell(*key)
    middle = cell_view.representative(results)
    shown_whole = {middle, cell_view.slowest(results)} | {
        each.repetition for each in results if job.full or _failed(each)
    }
    found = {each.repetition: _logs(job, each) for each in results if each.repetition in shown_whole}
    shown = cell_view.detail(campaign, key, found)
    unread = [each.repetition for each in results if each.repetition not in found]
    plots, without_packets = list[Mapping[str, Any]](), list[int]()
    for result in results:
        try:
            plots += _packets(
                job, folder, result, median=result.repetition == middle, whole=result.repetition in shown_whole
            )
        except SeriesError as error:
            without_packets.append(result.repetition)
            unreadable.append(f"{error} The website leaves out its packets.")
    taken = {
        each.repetition: _files(job, folder, each, each.repetition in shown_whole) for each in results if job.files
    }
    page = folder / "index.html"
    place = results[0].key.path.parent
    site.show(
        page, "cell.html", campaign, "",
        detail=shown, plots=plots, uplot=site.uplot, files=taken, place=str(place), unread=unread, middle=middle,
        others=_others(key, cases), pictures=_pictures(job, key), beside=side_by_side.beside(campaign, shown),
        without_packets=numbered("repetition", without_packets) if without_packets else "", virtual_only=VIRTUAL_ONLY,
    )  # fmt: skip
    for run in shown.repetitions:
        for each in run.logs:
            name = files.taken_as(each.log.name)
            whole = next((file.address for file in taken.get(run.number, ()) if file.name == name), "")
            site.show(
                folder / each.address, "log.html", campaign, "",
                log=each.log, key=key, repetition=run.number, whole=whole,
            )  # fmt: skip
    return shown


def _others(key: Key, cases: Sequence[str]) -> list[tuple[str, str]]:
    """Name and address of the pair's other test cases; none if a page has no room for them."""
    if len(cases) > 1 + _MOST_OTHERS:
        return []
    return [(name, f"../{name}/index.html") for name in cases if name != key[2]]


def _pictures(job: _Job, key: Key) -> list[figures.Figure]:
    """The figures that were drawn of the cell's runs: their names end with the pair's folder and the test case."""
    if not job.figures:
        return []
    server, client, name = key
    end = f"-{pair_folder(server, client)}-{job.campaign.cases[name].abbreviation}"
    return [figure for figure in job.figures if figure.stem.endswith(end)]


def _failed(result: RunResult) -> bool:
    return result.verdict.outcome is not Outcome.SUCCEEDED


def _logs(job: _Job, result: RunResult) -> list[logs.Log]:
    """In a large campaign only the representative and those that did not succeed are asked for."""
    return logs.logs(run_directory(job.campaign, result), _LOG_OF_FAILURE if _failed(result) else _LOG)


def _packets(
    job: _Job, folder: PurePosixPath, result: RunResult, *, median: bool, whole: bool
) -> Iterator[Mapping[str, Any]]:
    """Put the files with the packets of a run, if it has series, and give what its page says of them.

    ``median``: whether it is the representative of its cell. ``whole``: with all packets, flow control, and a sequence
    diagram. Raises SeriesError.
    """
    series = load(run_directory(job.campaign, result))
    if series is None:
        return
    name = address.packets(result.repetition)
    told = {"number": result.repetition, "file": name, "outcome": result.verdict.outcome.value, "median": median}
    more: list[packets.PackedColumn] = []
    texts: list[str] = []
    if whole:
        traces = _traces(job, result) if job.full or job.files else None
        found = sequence.of_traces(traces) if traces else None
        if traces:
            more += sequence.flow_control(traces)
        more += _time_shares(job, result, traces)
        if result.protocol is not Protocol.TCP:
            came = series.back.arrived[np.isfinite(series.back.arrived)]
            qlogs = run_directory(job.campaign, result) / QLOGS
            told_by_qlog, texts = sequence.congestion(recovery(qlogs, float(came.min()) if len(came) else 0.0))
            more += told_by_qlog
        told |= {"sequence": address.sequence(result.repetition), "frames": found is not None}
        diagram = sequence.encode(found or sequence.of_series(series))
        job.site.put(folder / address.sequence(result.repetition), packets.script(diagram))
    packed = packets.encode(series, None if whole else THINNED, more, texts)
    job.site.put(folder / name, packets.script(packed))
    yield told


def _time_shares(job: _Job, result: RunResult, traces: RunTraces | None) -> list[packets.PackedColumn]:
    """What the run waited for, and if its ``traces`` are here, at each moment; nothing if it is not known.

    As in the analysis, from series with the times of the traces: the times of stored ones are rounded.
    """
    if not (stored := shares_of(result)) or traces is None:
        return time_share_columns(None, stored)
    found = traces.optional(
        "time shares", lambda: run_time_shares(traces, traces.series(), _case(job, result), result.evidence), None
    )
    return time_share_columns(found, stored)


def _traces(job: _Job, result: RunResult) -> RunTraces | None:
    """Both traces of a run; None if they are not here any more, or cannot be read."""
    directory = run_directory(job.campaign, result)
    case = job.campaign.cases[result.test_case]
    try:
        found = check_traces(directory, result.protocol, most=trace_packets(case))
        if {found.client.condition, found.server.condition} != {Condition.OK} and not found.incomplete:
            return None
        return read_run(directory, result.protocol, case.link, found)
    except (HarnessFault, OSError):
        return None


def _files(job: _Job, folder: PurePosixPath, result: RunResult, whole: bool) -> list[files.TakenFile]:
    """The files of a run that were put into the site.

    ``whole``: also what ``export`` makes of the run.
    """
    taken = list[files.TakenFile]()
    exported = _exported(job, result) if whole else []
    for name, content in chain(files.downloads(run_directory(job.campaign, result)), exported):
        target = f"files-{result.repetition}/{name}"
        job.site.put(folder / target, content)
        taken.append(files.TakenFile(name, target, files.opens_in_qvis(name, content)))
    return taken


def _exported(job: _Job, result: RunResult) -> list[tuple[str, bytes]]:
    """Names and contents of qlogs and capture of a run over QUIC with traces of both ends."""
    traces = _traces(job, result)
    if traces is None or not isinstance(traces.trace_pair, QuicTracePair):
        return []
    return traces.optional("exports", lambda: _export(job, result, traces), [])


def _export(job: _Job, result: RunResult, traces: RunTraces) -> list[tuple[str, bytes]]:
    case, evidence = _case(job, result), result.evidence
    link = LinkRun(case.link, evidence.simulator, evidence.seed, traces.start)
    found = [(f"run-{files.harmless(name)}", b"".join(parts)) for name, parts in qlogs(str(result.key), traces, link)]
    capture = BytesIO()
    write_capture(capture, run_directory(job.campaign, result), traces, case, evidence)
    return [*found, ("run.pcapng", capture.getvalue())]


def _case(job: _Job, result: RunResult) -> TestCase:
    """The test case of a run as it was perturbed."""
    return planned(job.campaign.results.manifest, result).under(result.evidence.perturbation).endpoint_test_case


def _pair(job: _Job, pair_and_keys: tuple[Pair, Sequence[Key]]) -> list[str]:
    """Write the pages of a pair's cells, and its own; a sentence for each run whose series cannot be read."""
    site, campaign, ((server, client), keys) = job.site, job.campaign, pair_and_keys
    cases = [name for name in campaign.cases if (server, client, name) in campaign.cells]
    unreadable = list[str]()
    cells = [_cell(job, key, cases, unreadable) for key in keys]
    folder = PurePosixPath("runs", campaign.folder) / address.pair(server, client)
    results = [result for key in keys for result in campaign.runs[key]]
    site.put(folder / "pair.csv", cell_view.as_csv(results))
    site.put(folder / "pair.json", cell_view.as_json(results))
    back = ""
    if server != client and (client, server) in job.pairs:
        back = f"../../{folder_name(client)}/{folder_name(server)}/index.html"
    order = sorted(cells, key=lambda each: each.shown.state.key in (Outcome.SUCCEEDED, Outcome.UNSUPPORTED))
    order = sorted(order, key=lambda each: (each.shown.state.key == PARTIAL) - (not each.cell.succeeded))
    site.show(
        folder / "index.html", "pair.html", campaign, "",
        server=server, client=client, cells=order, back=back, facts=cells[0].images,
    )  # fmt: skip
    return unreadable
