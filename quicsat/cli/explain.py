"""``./run.py explain``: tells the course of a run in about ten lines, with the packets that show it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import console, foreign_inputs
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import Program
from quicsat.cli.stored_run import stored_run
from quicsat.model.errors import HarnessFault
from quicsat.model.implementation import Protocol, Role
from quicsat.model.outcomes import Outcome
from quicsat.model.stored_files import is_file
from quicsat.model.text import command_line, printable

if TYPE_CHECKING:
    from quicsat.report.run_story import StoryEvent
    from quicsat.results.qir_logs import ForeignRun
    from quicsat.traces.columns import Trace
    from quicsat.traces.series import Series

GROUP = "Results", 7
SUMMARY = "Explain a run in about ten lines, with the packets in which each event is visible."
DESCRIPTION = (
    "Explain a run in about ten lines: its outcome, the cause, and a list of events, each with the "
    "packets in which it is visible."
)
EXAMPLES = (
    "explain results/latest/quic-go_aioquic/sat/1",
    "explain logs/quic-go_ngtcp2/goodput/1   # a run of another runner",
)


class Options(foreign_inputs.FileSizeOptions):
    """The options of the command."""

    run: Path = foreign_inputs.RUN


def run(options: Options, program: Program) -> int:
    """Print the outcome, the events, and how to look at their packets; InputError if there is no such run."""
    from quicsat.analysis.endpoint_log_tail import CUT
    from quicsat.analysis.run_outcome import cited_frames
    from quicsat.model.run import OUTPUT
    from quicsat.report.parity_line import parity_line
    from quicsat.report.run_story import end_of, fragility, help_line, hop_lines, time_line
    from quicsat.report.time_share_tables import enough_window, shares_of, values_of
    from quicsat.report.unused_link import why_slow
    from quicsat.results.compression import stored
    from quicsat.results.summary import VIRTUAL_ONLY
    from quicsat.traces.run_traces import SERVER_TRACE
    from quicsat.traces.series import SeriesError, load

    if (foreign := foreign_inputs.one_run(program, options.run)) is not None:
        return _explain_foreign(options, program, foreign)
    results, result, place, directory = stored_run(options.run, EXAMPLES[0])
    verdict = result.verdict
    case = next(each for each in results.manifest.test_cases if each.name == result.test_case)
    number = f", attempt {result.attempt}" if result in results.earlier else ""
    console.show(f"{result.key}{number}: {verdict.summary}")
    reason = printable(verdict.reason or result.evidence.fault, None)
    virtual_only = (result.server, result.client, result.test_case) in results.virtual_only
    shares, window = shares_of(result), enough_window(values_of(result), case.link) or 0.0
    spent = time_line(shares, whole=verdict.outcome is not Outcome.TIMEOUT), help_line(shares, window)
    beside = parity_line(results, result, case)
    measured = result.measurement.notes if result.measurement is not None else ()
    notes = [printable(note, None) for note in (*result.evidence.notes, *measured)]
    for line in filter(None, (reason, f"This pair {VIRTUAL_ONLY}." if virtual_only else "", *spent, beside, *notes)):
        console.show(line)
    output = stored(place / OUTPUT)
    logs = directory / output.name if is_file(output) else None
    if CUT in reason:
        whole = f"all of it is in {logs}" if logs else "the log with all of it is not stored"
        console.show(f"The endpoint's line is cut here; {whole}.")
    try:
        series = load(place)
    except SeriesError as error:
        series = None
        console.message(f"{error}")
    trace = None if result.protocol is Protocol.TCP else _client_trace(place)
    shown = _show_events(series, case.total_size, trace)
    if series is None:
        kept = f"no packets of this run; its logs are in {logs}" if logs else "neither packets nor logs of this run"
        console.show(f"quicsat has stored {kept}.")
    if series is not None and not shares and (slow := why_slow(result, case, series)):
        console.show(slow)
    for line in (end_of(result), *hop_lines(result)):
        console.show(line)
    if fragile := fragility(results, result):
        console.show(fragile)
    side, cited = cited_frames(verdict)
    _show_command(directory, trace, {*shown, *(cited if side is Role.CLIENT else ())})
    if cited and side is Role.SERVER and is_file(place / SERVER_TRACE):
        again = command_line("packets", directory, *sorted({*cited}), "--server")
        console.show(f"To see the frames of the server's trace that the reason names: {again}")
    return ExitStatus.SUCCESS


def _explain_foreign(options: Options, program: Program, run: ForeignRun) -> int:
    """Print what the files of a run of another runner say."""
    from quicsat.analysis.foreign_runs import NO_CAPTURED_LINK, examine
    from quicsat.model.emulated_link import unknown_link
    from quicsat.report.run_story import help_line, time_line
    from quicsat.report.time_share_tables import enough_window, shares_in
    from quicsat.traces.foreign_captures import plain_captures
    from quicsat.traces.series import load

    place = foreign_inputs.scratch(program)
    found = examine(run, options.file_size, place)
    console.show(f"{run.name}: {found.outcome}")
    shares, window = shares_in(found.values), enough_window(found.values, unknown_link(found.rate or 0.0)) or 0.0
    spent = time_line(shares, whole=found.complete is not False), help_line(shares, window)
    without = NO_CAPTURED_LINK if found.values and not found.counts else ""
    for line in filter(None, (*spent, *found.notes, without)):
        console.show(printable(line, None))
    if (own := foreign_inputs.one_qlog(options.run, Role.CLIENT)) is not None:
        trace = own.packets if own.role is Role.CLIENT else None
    else:
        with plain_captures(run.directory) as captures:
            trace = _client_trace(captures.directory)
    _show_command(options.run, trace, _show_events(load(place), found.size or 0, trace))
    return ExitStatus.SUCCESS


def _show_events(series: Series | None, size: int, trace: Trace | None) -> set[int]:
    """Print the events of a run whose files have ``size`` bytes; the frames that show them in the client's trace."""
    from quicsat.report.run_story import story

    events = story(size, series) if series is not None else []
    shown = [_frame(trace, event) for event in events]
    for event, frame in zip(events, shown, strict=True):
        text = event.text if frame is None else f"{event.text.removesuffix('.')}; frame {frame}."
        console.show(f"{event.time:9.3f} s  {text}")
    return {*filter(None, shown)}


def _show_command(run: Path, trace: Trace | None, frames: set[int]) -> None:
    """Print how to see the first frame of the client's trace, and those of ``frames`` that are QUIC packets."""
    if trace is not None and len(trace):
        known = sorted({int(trace.frame[0]), *frames}.intersection(trace.frame.tolist()))
        console.show(f"To see these frames of the client's trace: {command_line('packets', run, *known)}")


def _client_trace(directory: Path) -> Trace | None:
    """None if it is not stored, or cannot be read."""
    from quicsat.traces.key_log import key_lines
    from quicsat.traces.run_traces import CLIENT_TRACE, KEY_LOGS
    from quicsat.traces.trace import read

    if not is_file(directory / CLIENT_TRACE):
        return None
    try:
        return read(directory / CLIENT_TRACE, key_lines(*(directory / log for log in KEY_LOGS)))
    except HarnessFault:
        return None


def _frame(trace: Trace | None, event: StoryEvent) -> int | None:
    """Number in the client's trace of the packet that shows an event; None if there is none, or it did not arrive."""
    from quicsat.traces.columns import Form

    if trace is None or event.number < 0:
        return None
    rows = (trace.number == event.number) & (trace.from_server == event.from_server) & (trace.form == Form.ONE_RTT)
    return int(trace.frame[rows][-1]) if rows.any() else None
