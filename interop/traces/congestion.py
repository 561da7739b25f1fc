"""The congestion control of a server over time, as its qlog tells it: window, threshold, states, packets given up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from interop.model.arrays import Floats
from interop.model.text import printable
from interop.traces import qlog
from interop.traces.series import Samples

KEYS = ("congestion_window", "cwnd")
"""Names of the window in the drafts of draft-ietf-quic-qlog-quic-events."""
SUFFIXES = (".qlog", ".sqlog")


THRESHOLDS = ("ssthresh",)
LOST, STATE, METRICS = "recovery:packet_lost", "recovery:congestion_state_updated", "recovery:metrics_updated"
MOST_STATES = 500
UNLIMITED = 2**31
"""Bytes from which on a threshold is none: stacks write their largest integer."""


@dataclass(frozen=True, eq=False)
class Recovery:
    """What a server tells beyond its window; times as those of ``congestion_window``."""

    threshold: Samples
    """Slow start threshold, bytes, at each change; without values that stand for none."""
    given_up: Floats
    """When it declared a packet lost."""
    states: tuple[tuple[float, str], ...]
    """When its congestion controller changed to which state, in its own words, printable; the first ``MOST_STATES``.

    Without numbers, which picoquic writes for states of its own.
    """


def recovery(folder: Path, start: float) -> Recovery:
    """What all qlogs in ``folder`` tell; empty if none can be read. ``start`` is that of ``congestion_window``."""
    found = [each for path in _qlogs(folder) for each in _recovery_events(path, start)]
    found.sort(key=lambda each: each[0])
    thresholds, states, last = list[tuple[float, float]](), list[tuple[float, str]](), -1.0
    for time, event in found:
        value = next((event.data[key] for key in THRESHOLDS if isinstance(event.data.get(key), int | float)), None)
        if value is not None and 0 < value < UNLIMITED and value != last:
            last = float(value)
            thresholds.append((time, last))
        if event.name == STATE and isinstance(word := event.data.get("new"), str) and not word.isdecimal():
            states.append((time, printable(word, 40)))
    table = np.array(thresholds, dtype=np.float64).reshape(-1, 2)
    given_up = np.array([time for time, event in found if event.name == LOST], dtype=np.float64)
    return Recovery(Samples(table[:, 0], table[:, 1]), given_up, tuple(states[:MOST_STATES]))


def _recovery_events(path: Path, start: float) -> Iterator[tuple[float, qlog.QlogEvent]]:
    with suppress(ValueError, OSError):
        words = (*THRESHOLDS, LOST.partition(":")[2], STATE.partition(":")[2])
        events = qlog.read(path, *(word.encode() for word in words))
        for event in events:
            if event.name in (LOST, STATE, METRICS):
                yield start + event.time - events[0].time, event


def _qlogs(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*")) if folder.is_dir() else []
    return [path for path in found if path.suffix in SUFFIXES and path.is_file() and not path.is_symlink()]


def congestion_window(folder: Path, start: float) -> Samples:
    """Bytes over time; empty if no qlog in ``folder`` tells any.

    A qlog counts from a moment of its own: its first event is taken to be the arrival of the client's first packet,
    ``start``, which is good to a few milliseconds. Of several connections all windows are there, in the order of time.
    """
    found: list[tuple[float, float]] = []
    for path in _qlogs(folder):
        with suppress(ValueError, OSError):
            found += _windows(path, start)
    table = np.array(sorted(found), dtype=np.float64).reshape(-1, 2)
    return Samples(table[:, 0], table[:, 1])


def _windows(path: Path, start: float) -> list[tuple[float, float]]:
    """Each change of the window in one qlog."""
    events = qlog.read(path, *(key.encode() for key in KEYS))
    begin, last = events[0].time, -1.0
    changes = []
    for event in events:
        value = next((event.data[key] for key in KEYS if isinstance(event.data.get(key), int | float)), None)
        if value is not None and value != last and event.name.endswith("metrics_updated"):
            last = float(value)
            changes.append((start + event.time - begin, last))
    return changes
