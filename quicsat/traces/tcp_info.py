"""The congestion window of a server's TCP over time, as its kernel told it (``tcp_info``)."""

from __future__ import annotations

import csv
from collections.abc import Collection
from contextlib import suppress
from io import TextIOWrapper
from itertools import islice
from pathlib import Path

from quicsat.model.stored_files import open_file
from quicsat.model.units import MIB
from quicsat.traces.records import NANOSECONDS
from quicsat.traces.series import Samples

MOST_ROWS, LARGEST = 1_000_000, 64 * MIB
"""Rows that are read of a file, and bytes of a file of which any are."""


def kernel_window(path: Path, epoch: int, start: float, ports: Collection[int] | None = None) -> Samples:
    """Bytes over time since ``start``, seconds after ``epoch`` by the server's clock; empty if there is no such file.

    Each row is a change, as often as the kernel was asked. Of several connections all windows are there, in the order
    of time; with ``ports`` only those from these ports of the client. What cannot be read ends the series.
    """
    found: list[tuple[float, float]] = []
    with suppress(OSError, ValueError, KeyError, TypeError), open_file(path, LARGEST) as file:
        for row in islice(csv.DictReader(TextIOWrapper(file, encoding="ascii", newline="")), MOST_ROWS):
            time = (int(row["time"]) - epoch * NANOSECONDS) / NANOSECONDS - start
            window = float(int(row["congestion_window"]))
            if ports is None or int(row["port"]) in ports:
                found.append((time, window))
    return Samples.in_order(sorted(found))
