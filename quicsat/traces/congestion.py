"""The congestion control of a server over time, as its qlogs report it: window, threshold, states, packets given up."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quicsat.model.arrays import Floats
from quicsat.model.stored_files import walk
from quicsat.model.text import counted, first_few, printable
from quicsat.traces import qlog
from quicsat.traces.series import Samples

WINDOWS = ("congestion_window", "cwnd", "current_cwnd")
"""Names of the window in the drafts of draft-ietf-quic-qlog-quic-events, and in mvfst's qlogs."""
THRESHOLDS = ("ssthresh",)
LOST, STATE = "packet_lost", "congestion_state_updated"
WORDS = (*WINDOWS, *THRESHOLDS, LOST, STATE)
MEMBERS = (*WINDOWS, *THRESHOLDS, "new")
PACKED = (".xz", ".bz2", ".lz4", ".br", ".zip")
MOST_STATES = 500
MOST_NOTES, MOST_NAMES = 3, 20
"""Notes on the qlogs of a run, and names of further qlogs in a last one."""
UNLIMITED = 2**31
"""Bytes from which on a threshold is none: stacks write their largest integer."""
LARGEST = 2**64
"""Bytes above which a value is no number of bytes."""
NO_VALUE = "events without a usable value"

Change = tuple[float, float]
"""Time in seconds, and the new value."""
Timed = tuple[float, qlog.QlogEvent]
Note = tuple[str, str]
"""The name of a qlog, and a sentence on it."""


@dataclass(frozen=True, eq=False)
class Recovery:
    """What a server's qlogs say. Times are seconds on the clock of the ``start`` that is given to :func:`recovery`.

    A qlog counts from a moment of its own: its first event is taken to be the arrival of the client's first packet,
    which is good to a few milliseconds. Events of several connections are in the order of time.
    """

    window: Samples
    """Congestion window, bytes, at each change."""
    threshold: Samples
    """Slow start threshold, bytes, at each change; without values that stand for none."""
    given_up: Floats
    """When the server declared a packet lost."""
    states: tuple[tuple[float, str], ...]
    """When its congestion controller changed to which state, in its own words, printable; the first ``MOST_STATES``.

    Without numbers, which picoquic writes for states of its own.
    """
    notes: tuple[str, ...] = ()
    """Sentences on qlogs that could not be read completely; only the events on congestion control are looked at."""


def recovery(folder: Path, start: float, *, read_before: bool = False) -> Recovery:
    """What all qlogs below ``folder`` say; ``start``: when the client's first packet arrived at the server, seconds.

    ``read_before``: all their events were, so notes name only what is missing in those on congestion control.
    """
    given_up, notes = list[float](), list[Note]()
    windows, thresholds, states = list[Change](), list[Change](), list[tuple[float, str]]()
    room = qlog.Room()
    for path, state in sorted(walk(folder)):
        name, packed = qlog.shown_name(path, folder), path.name.endswith(PACKED) and "qlog" in path.name
        if not (packed or qlog.NAME.fullmatch(path.name) or _begins_as_qlog(path)):
            continue
        if packed or not stat.S_ISREG(state.st_mode):
            notes.append((name, f"{name} is not read: {_obstacle(state.st_mode)}."))
            continue
        try:
            found = qlog.read(path, *WORDS, members=MEMBERS, room=room, name=name)
        except OSError as error:
            notes.append((name, f"{name} cannot be read: {error.strerror or error}."))
            continue
        except ValueError as error:
            notes.append((name, str(error)))
            continue
        faults = Counter({} if read_before else found.passed_over)
        mine = _timed(found, start, notes, name)
        windows += _changes(mine, WINDOWS, faults)
        thresholds += [each for each in _changes(mine, THRESHOLDS, faults) if 0 < each[1] < UNLIMITED]
        states += _states(mine, faults)
        given_up += [time for time, event in mine if event.name == LOST]
        if faults:
            listed = ", ".join(f"{reason} ({count})" for reason, count in faults.items())
            notes.append((name, f"{name}: passed over of the events on congestion control: {listed}."))
    told, others = [note for _, note in notes[:MOST_NOTES]], dict.fromkeys(name for name, _ in notes[MOST_NOTES:])
    if others:
        named = first_few(others, MOST_NAMES)
        told.append(f"{counted(len(others), 'more qlog')} could not be read as a whole: {named}.")
    states.sort(key=lambda each: each[0])
    return Recovery(
        Samples.in_order(windows),
        Samples.in_order(thresholds),
        np.sort(np.array(given_up)),
        tuple(states[:MOST_STATES]),
        tuple(told),
    )


def _begins_as_qlog(path: Path) -> bool:
    with suppress(OSError):
        return qlog.is_qlog(path)
    return False


def _obstacle(mode: int) -> str:
    """Why an entry with the name of a qlog is not read."""
    if stat.S_ISLNK(mode):
        return "it is a symbolic link"
    return "of compressed qlogs, only those of gzip and zstd are" if stat.S_ISREG(mode) else "it is no regular file"


def _timed(found: qlog.Qlog, start: float, notes: list[Note], name: str) -> list[Timed]:
    """The events of the server's traces in a file with their times; a note tells what is not known of several."""
    traces = [trace for trace in found.traces if trace.vantage_point == "server"] or list(found.traces)
    if len(traces) < len(found.traces):
        notes.append((name, f"{name} holds {len(found.traces)} traces; only those of the server are read."))
    dated = [(trace.epoch, trace) for trace in traces if trace.epoch is not None]
    if len(traces) == 1 or len(dated) < len(traces):
        begins = [(trace.events[0].time, trace) for trace in traces]
    else:
        first = min(epoch + trace.events[0].time for epoch, trace in dated)
        begins = [(first - epoch, trace) for epoch, trace in dated]
    if len(traces) > max(len(dated), 1):
        notes.append(
            (name, f"{name} holds {len(traces)} traces; each is taken to begin with the client's first packet.")
        )
    timed = [(start + event.time - begin, event) for begin, trace in begins for event in trace.events]
    return sorted(timed, key=lambda each: each[0]) if len(traces) > 1 else timed


def _changes(events: Sequence[Timed], names: Sequence[str], faults: Counter[str]) -> Iterator[Change]:
    """Each change of a quantity in one qlog."""
    last = None
    for time, event in events:
        key = next((name for name in names if name in event.data), None)
        if key is None:
            continue
        value = qlog.number(event.data[key])
        if value is None or value > LARGEST:
            faults[NO_VALUE] += 1
        elif value != last:
            last = value
            yield time, value


def _states(events: Sequence[Timed], faults: Counter[str]) -> Iterator[tuple[float, str]]:
    for time, event in events:
        word = event.data.get("new") if event.name == STATE else None
        if isinstance(word, str):
            if not word.isdecimal():
                yield time, printable(word, 40)
        elif event.name == STATE:
            faults[NO_VALUE] += 1
