"""``./run.py explain``: tells the course of a run in about ten lines, with the packets that show it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from interop.cli import console
from interop.cli.exit_status import ExitStatus
from interop.model.errors import HarnessFault, InputError
from interop.model.implementation import Protocol
from interop.model.outcomes import Outcome
from interop.model.text import command_line, printable

if TYPE_CHECKING:
    from interop.cli.parser import Parser
    from interop.model.results import ResultSet, RunResult
    from interop.report.run_story import StoryEvent

DESCRIPTION = (
    "Explain a run in about ten lines: its outcome and its cause, what happened when, and the packets that show it."
)
EXAMPLES = ("explain results/latest/quic-go_aioquic/sat/1",)
NAMED = 5
"""Runs of a campaign that a message names."""


def add_options(parser: Parser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="Directory of a run; example: results/latest/quic-go_aioquic/sat/1."
    )


def run(options: argparse.Namespace) -> int:
    """Print the outcome, the events, and how to look at their packets; InputError if there is no such run."""
    from interop.report.run_story import end_of, story
    from interop.traces.series import SeriesError, load

    directory: Path = options.run
    results, result = _found(directory)
    verdict = result.verdict
    case = next(each for each in results.manifest.test_cases if each.name == result.test_case)
    kind = ", ".join(filter(None, (verdict.code, verdict.cause)))
    console.show(f"{result.key}: {verdict.outcome}{f' ({kind})' if kind else ''}")
    if verdict.reason or result.evidence.fault:
        console.show(printable(verdict.reason or result.evidence.fault))
    try:
        series = load(directory)
    except SeriesError as error:
        series = None
        console.message(f"{error}")
    events = story(case.total_size, series) if series is not None else []
    for event in events:
        console.show(f"{event.time:9.3f} s  {event.text}")
    if series is None:
        console.show("quicsat has stored no packets of this run; its logs are in output.txt.")
    console.show(end_of(result))
    if result.protocol is not Protocol.TCP and (frames := _frames(directory, events)):
        console.show(f"To see these packets: {command_line('packets', directory, *frames)}")
    return ExitStatus.SUCCESS


def _found(directory: Path) -> tuple[ResultSet, RunResult]:
    """The campaign of a run's directory, and the run's result."""
    from interop.results import store

    place = directory.resolve()
    if any((place / name).is_file() for name in (store.JOURNAL, store.DOCUMENT)):
        results = store.load(place).result_set
        bad = [each.key for each in results.results if each.verdict.outcome is not Outcome.SUCCEEDED][:NAMED]
        some = f"Runs that did not succeed: {', '.join(str(directory / key.path) for key in bad)}" if bad else ""
        raise InputError(f"{directory}: is a campaign. Pass the directory of a run. {some}".rstrip())
    if len(place.parents) > 2:
        campaign = place.parents[2]
        try:
            results = store.load(campaign).result_set
        except InputError as error:
            raise InputError(
                f"{directory}: is in no campaign. Pass a directory like {EXAMPLES[0].split()[1]}"
            ) from error
        for result in results.results:
            if campaign / result.key.path == place:
                return results, result
    raise InputError(f"{directory}: no such run. Pass a directory like {EXAMPLES[0].split()[1]}")


def _frames(directory: Path, events: list[StoryEvent]) -> list[int]:
    """Numbers in the client's trace of the packets that show the events and arrived there."""
    from interop.traces.columns import Form
    from interop.traces.key_log import key_lines
    from interop.traces.run_traces import CLIENT_TRACE, KEY_LOGS
    from interop.traces.trace import read

    if not (directory / CLIENT_TRACE).is_file():
        return []
    try:
        trace = read(directory / CLIENT_TRACE, key_lines(*(directory / log for log in KEY_LOGS)))
    except HarnessFault:
        return []
    found = set(trace.frame[:1].tolist())
    for event in events:
        rows = (trace.number == event.number) & (trace.from_server == event.from_server) & (trace.form == Form.ONE_RTT)
        if event.number >= 0 and rows.any():
            found.add(int(trace.frame[rows][-1]))
    return sorted(found)
