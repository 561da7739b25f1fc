"""Says whether a trace file is whole, and which packets it holds; others may look into them in the same walk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

import numpy as np

from quicsat.model.bounds import LEAST_PACKETS
from quicsat.traces.columns import Datagrams
from quicsat.traces.network import UDP, Segment, digest, segment
from quicsat.traces.records import NANOSECONDS, Condition, DamagedTraceError, records, simulated

_ROW = Struct("qqqQ")
Take = Callable[[int, int, Segment], None]
"""Takes a packet: its time in nanoseconds, the number of its record from 1, and what it holds."""


@dataclass(frozen=True, eq=False)
class TraceState:
    """The structure of a trace file."""

    condition: Condition
    packets: int
    """Good records up to the end, or up to the fault."""
    datagrams: Datagrams
    """The packets between client and server among them."""
    reason: str = ""
    """One sentence; empty if the file is whole."""
    cut: int = 0
    """Records that hold less than the packet had, because of the snap length."""
    duration: float = 0.0
    """Seconds from the first to the last good record."""
    simulated: bool = False
    """Times count from the start of a simulation, not from 1970."""


def check(
    path: Path, protocol: int = UDP, flow: int = 1, most: int = LEAST_PACKETS, take: Take | None = None
) -> TraceState:
    """Walk the whole file and say whether it is a complete trace.

    Raises HarnessFault (trace-limit) if it has more than ``most`` packets, and what ``take`` raises.

    ``protocol`` and ``flow`` say whose packets are wanted, those of ``UDP`` or of ``TCP``; ``take`` is given each of
    them with its time and the number of its record, those before the fault of a damaged file.
    """
    packets = cut = first = last = 0
    condition, reason = Condition.OK, ""
    table = _Table()
    try:
        for packets, record in enumerate(records(path, most), 1):
            first, last = first if packets > 1 else record.time, record.time
            found = segment(record)
            whole = found is not None and len(found.payload) == found.size  # a trailer of the link layer may be missing
            cut += record.length > len(record.data) and not whole
            if found is not None and (found.protocol, found.flow) == (protocol, flow):
                table.add(record.time, found)
                if take is not None:
                    take(record.time, packets, found)
    except DamagedTraceError as broken:
        condition, reason = broken.condition, broken.reason
    if condition is Condition.OK and not packets:
        condition, reason = Condition.EMPTY, f"{path.name} holds no packet."
    clock = packets > 0 and simulated(first)
    return TraceState(condition, packets, table.datagrams(), reason, cut, (last - first) / NANOSECONDS, clock)


class _Table:
    """Packets between client and server, as they are found."""

    def __init__(self) -> None:
        self._rows = bytearray()

    def add(self, time: int, found: Segment) -> None:
        self._rows += _ROW.pack(time, found.from_server, found.size + len(found.header), _digest(found))

    def datagrams(self) -> Datagrams:
        rows = np.frombuffer(self._rows, dtype=np.int64).reshape(-1, 4)
        time, from_server, size, marks = rows.T
        epoch = int(time[0]) // NANOSECONDS if len(rows) else 0
        return Datagrams(
            epoch=epoch,
            time=(time - epoch * NANOSECONDS) / NANOSECONDS,
            from_server=from_server.astype(np.bool_),
            size=size.copy(),
            digest=marks.astype(np.uint64),
        )


def _digest(found: Segment) -> int:
    """Fingerprint of what no link changes: the payload, and of TCP all but ports and checksum."""
    return digest(found.header[4:16] + found.header[18:] + found.payload if found.header else found.payload)
