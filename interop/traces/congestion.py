"""The congestion window of a server over time, as its qlog tells it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np

from interop.traces import qlog
from interop.traces.series import Samples

KEYS = ("congestion_window", "cwnd")
"""Names of the window in the drafts of draft-ietf-quic-qlog-quic-events."""
SUFFIXES = (".qlog", ".sqlog")


def congestion_window(folder: Path, start: float) -> Samples:
    """Bytes over time; empty if no qlog in ``folder`` tells any.

    A qlog counts from a moment of its own: its first event is taken to be the arrival of the client's first packet,
    ``start``, which is good to a few milliseconds. Of several connections all windows are there, in the order of time.
    """
    found: list[tuple[float, float]] = []
    for path in sorted(folder.glob("*")) if folder.is_dir() else []:
        if path.suffix in SUFFIXES and path.is_file() and not path.is_symlink():
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
