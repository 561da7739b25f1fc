"""What happened in a run, event by event, at both ends of the link: the data behind every figure, one file per run.

Times are seconds since the client's first packet; the clocks of both ends are brought together (``ClockOffset``). QUIC
and TCP look the same: over TCP a segment is a packet, its packet number is its position among the segments of its
direction, each connection has one stream, 0, and an offset counts from the first byte that a side sent, TLS records
included. If HTTP/2 could be decrypted, its streams have their own numbers and offsets of data alone, and stream 0 has
the other bytes. Streams and packets are numbered per connection; ``connection`` says in which, counted from 0 in the
order in which they begin in the client's trace (TCP: in the trace that shows the event), ``UNKNOWN`` where it cannot be
told.

    series = series.load(run_directory)
    if series is not None:
        rate = window_rate(series.arrived.time, series.arrived.new)

The file, ``series.parquet``, has one row per event, ``kind`` says of which table; docs of the columns are those of the
tables here. Times in it are whole microseconds.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quicsat.model.arrays import Flags, Floats, Integers
from quicsat.model.bounds import bounded_memory
from quicsat.model.implementation import Protocol
from quicsat.model.stored_files import is_file, open_file
from quicsat.model.units import MIB
from quicsat.model.whole_file import new_file
from quicsat.traces.clock_offset import ClockOffset
from quicsat.traces.columns import ColumnTable, column_types

FILE_NAME = "series.parquet"
VERSION = 1
MOST_ROWS, ROWS_AT_ONCE = 4_000_000, 65_536
"""Events of a file that is read; a run of 10 MiB has about 60,000."""
MEMORY = 700 * MIB
"""Bytes that reading a file may take; ``MOST_ROWS`` take 350 MB."""
MICROSECONDS = 1_000_000
UNKNOWN = -1
"""In place of a packet number that could not be read."""


class SeriesError(ValueError):
    """A file of series that is damaged, or that another version of this program wrote; ``analyse`` writes it again."""


@dataclass(frozen=True, eq=False)
class StreamData(ColumnTable):
    """The STREAM frames of the responses (server to client), as seen at one end."""

    time: Floats
    stream: Integers
    offset: Integers
    """Position of the first byte in the stream."""
    length: Integers
    """Bytes, 0 in a frame that only ends the stream."""
    number: Integers
    """Packet number."""
    new: Integers
    """How many of the bytes no earlier frame of the same stream had, at this end."""
    connection: Integers

    @property
    def retransmission(self) -> Flags:
        """Whether most of a frame's bytes had been seen at this end before."""
        repeated: Flags = 2 * self.new < self.length
        return repeated


@dataclass(frozen=True, eq=False)
class Packets(ColumnTable):
    """Every datagram (TCP: segment) of one direction, at both ends."""

    sent: Floats
    """When it left the sender's end of the link."""
    arrived: Floats
    """When it arrived at the receiver's end; NaN if it is not in that trace."""
    lost: Flags
    """It did not arrive. What may have been under way when the trace ended neither arrived nor is lost."""
    number: Integers
    """Packet number of its 1-RTT packet, else of its last; ``UNKNOWN`` if it could not be read."""
    size: Integers
    """Bytes of UDP payload; TCP: of TCP header and payload."""
    connection: Integers

    @property
    def delay(self) -> Floats:
        """One-way delay, seconds; NaN if it did not arrive. As good as the ``ClockOffset``."""
        return self.arrived - self.sent

    @property
    def judged(self) -> Flags:
        """Whether each packet whose fate is known was lost."""
        lost: Flags = self.lost[self.lost | ~np.isnan(self.arrived)]
        return lost


@dataclass(frozen=True, eq=False)
class Samples(ColumnTable):
    """A quantity over time."""

    time: Floats
    value: Floats

    @classmethod
    def in_order(cls, values: Collection[tuple[float, float]]) -> Self:
        """Times with their values, by time; those of one time in the given order."""
        table = np.array(sorted(values, key=lambda each: each[0]), dtype=np.float64).reshape(-1, 2)
        return cls(table[:, 0], table[:, 1])


@dataclass(frozen=True, eq=False)
class Requests(ColumnTable):
    """What the client asked for: the first bytes of each request stream, in the order of sending."""

    stream: Integers
    sent: Floats
    """When the first byte left the client."""
    arrived: Floats
    """When it arrived at the server; NaN if unknown."""
    first_byte: Floats
    """When the first byte of the response arrived at the client; NaN if none did."""
    last_byte: Floats
    """When the last new byte of the response arrived at the client; NaN if none did."""
    connection: Integers


@dataclass(frozen=True, eq=False)
class Series:
    """All events of a run."""

    protocol: Protocol
    clock: ClockOffset
    sent: StreamData
    """Response data at the server's end of the link, before queue and loss."""
    arrived: StreamData
    """Response data at the client's end of the link."""
    forward: Packets
    """Server to client."""
    back: Packets
    """Client to server (``return`` is no name in Python)."""
    rtt: Samples
    """At the server's end: from a packet to the first acknowledgement of it, at the time of the latter; seconds."""
    in_flight: Samples
    """At the server's end: bytes (as in ``Packets.size``) sent, not yet acknowledged nor given up, at each change."""
    cwnd: Samples
    """The server's congestion window, bytes, from its qlog, or over TCP from its kernel; empty if there is neither."""
    requests: Requests
    spin: Samples
    """At the server's end: periods of the spin bit in its packets, at the end of each; seconds. Empty over TCP."""


TABLES: Mapping[str, type[ColumnTable]] = {
    "sent": StreamData,
    "arrived": StreamData,
    "forward": Packets,
    "back": Packets,
    "rtt": Samples,
    "in_flight": Samples,
    "cwnd": Samples,
    "requests": Requests,
    "spin": Samples,
}
"""The tables of ``Series`` in the order of the file; their names are the values of its column ``kind``."""
TIMES = frozenset({"time", "sent", "arrived", "first_byte", "last_byte"})
"""Columns that are times; they are stored in microseconds."""
LONGEST, LATEST = 1e6, 1e11
"""Seconds beyond which no event of a run, and no difference between two clocks can be."""
AMOUNTS = (0, 2**62)
"""Range of bytes, positions and seconds."""
RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(TIMES, (-LONGEST, LONGEST)), "number": (UNKNOWN, 2**62), "connection": (UNKNOWN, 2**31)
}  # fmt: skip
"""Of the other columns."""
ADDED = frozenset({"connection"})
"""Columns that files of earlier releases lack; they read as 0."""


def of_connection(series: Series, connection: int) -> Series:
    """The events of one connection, at the times of the run.

    ``rtt``, ``in_flight``, ``cwnd`` and ``spin`` name no connection: they are cut to the time from its first to its
    last packet.
    """
    tables: dict[str, Any] = {
        name: _where(getattr(series, name), getattr(series, name).connection == connection)
        for name, kind in TABLES.items()
        if kind is not Samples
    }
    packets = tables["forward"], tables["back"]
    times = np.concatenate([each for table in packets for each in (table.sent, table.arrived)])
    first, last = (np.nanmin(times), np.nanmax(times)) if np.isfinite(times).any() else (0.0, 0.0)
    tables |= {
        name: _where(samples, (samples.time >= first) & (samples.time <= last))
        for name, samples in ((name, getattr(series, name)) for name, kind in TABLES.items() if kind is Samples)
    }
    return replace(series, **tables)


def _where(table: ColumnTable, rows: Flags) -> ColumnTable:
    return type(table)(**{name: column[rows] for name, column in vars(table).items()})


# ---- rates ----------------------------------------------------------------------------------

MOST_WINDOWS = 1_000_000
"""In which a rate is taken: every 0.1 s of 28 hours. A foreign capture, or a qlog, can be of many days."""


def window_rate(
    times: Floats, sizes: Integers, *, window: float = 1.0, step: float = 0.1, until: float | None = None
) -> Samples:
    """Bit/s within the ``window`` seconds that end at each multiple of ``step``, up to the first one after ``until``.

    ``sizes`` are bytes. ``until`` is the last time if it is not given. A window that begins before time zero is
    divided by its full width, as in the QIR-SE paper's figures. Times that are NaN (packets lost) do not count.
    ``step`` is a multiple of the given one if there would be more than ``MOST_WINDOWS`` windows.
    """
    known = ~np.isnan(times)
    order = np.argsort(times[known], kind="stable")
    moments, total = times[known][order], np.concatenate([[0], np.cumsum(sizes[known][order])])
    end = until if until is not None else float(moments[-1]) if len(moments) else 0.0
    step *= max(1.0, np.ceil(max(end, 0.0) / step / MOST_WINDOWS))
    at = np.arange(0, int(np.ceil(max(end, 0.0) / step)) + 1) * step
    count = total[np.searchsorted(moments, at, "right")] - total[np.searchsorted(moments, at - window, "right")]
    return Samples(at.astype(np.float64), 8.0 * count / window)


# ---- the file -------------------------------------------------------------------------------


def save(series: Series, directory: Path) -> Path:
    """Write the series of the run in ``directory``, in one step; the file's path. Raises OSError."""
    pieces = [_rows(name, getattr(series, name)) for name in TABLES]
    metadata = {
        "version": str(VERSION),
        "protocol": series.protocol.value,
        "clock_offset": repr(series.clock.offset),
        "clock_uncertainty": repr(series.clock.uncertainty),
    }
    table = pa.concat_tables(pieces, promote_options="default").replace_schema_metadata(metadata)
    path = directory / FILE_NAME
    numbers = [name for name in table.column_names if name not in ("kind", "lost", "value")]
    with new_file(path) as file:
        pq.write_table(
            table, file, compression="zstd", use_dictionary=["kind"],
            column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        )  # fmt: skip
    return path


def load(directory: Path) -> Series | None:
    """The series of the run in ``directory``, None if it has none; a link is none. Raises SeriesError."""
    path = directory / FILE_NAME
    if not is_file(path):
        return None
    try:
        with open_file(path) as stored, bounded_memory(MEMORY):
            file = pq.ParquetFile(stored, read_dictionary=["kind"])
            if (rows := file.metadata.num_rows) > MOST_ROWS:
                raise SeriesError(f"{path} has {rows} events, more than the {MOST_ROWS} that are read.")
            metadata = {key.decode(): value.decode() for key, value in (file.schema_arrow.metadata or {}).items()}
            pieces = _pieces(file)
        if metadata.get("version") != str(VERSION):
            raise SeriesError(f"{path} is of version {metadata.get('version')}, not {VERSION}: analyse the run again.")
        clock = ClockOffset(float(metadata["clock_offset"]), float(metadata["clock_uncertainty"]))
        if not (abs(clock.offset) <= LATEST and clock.uncertainty >= 0):
            raise ValueError("its clocks cannot be brought together")
        names = set(file.schema_arrow.names)
        tables: dict[str, Any] = {name: _table(kind, pieces[name], names) for name, kind in TABLES.items()}
        return Series(Protocol(metadata["protocol"]), clock, **tables)
    except (pa.ArrowException, MemoryError, OSError, KeyError, ValueError) as error:
        if isinstance(error, SeriesError):
            raise
        fault = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise SeriesError(f"{path} cannot be read ({fault}): analyse the run again.") from error


def _pieces(file: pq.ParquetFile) -> dict[str, dict[str, list[pa.Array]]]:
    """The columns of each table in pieces; its rows stand together, as ``save`` has put them. ValueError if not."""
    wanted = {name: [*column_types(kind)] for name, kind in TABLES.items()}
    known = [name for name in file.schema_arrow.names if name in {"kind", *chain.from_iterable(wanted.values())}]
    found: dict[str, dict[str, list[pa.Array]]] = {name: {column: [] for column in wanted[name]} for name in TABLES}
    order = list[str]()
    for batch in file.iter_batches(ROWS_AT_ONCE, columns=known, use_threads=False):
        stretches = pc.run_end_encode(batch.column("kind").cast(pa.string()))
        names, ends = stretches.values.to_pylist(), stretches.run_ends.to_pylist()
        for name, begin, end in zip(names, [0, *ends], ends, strict=False):
            order += [name] if name not in order[-1:] else []
            rows = batch.slice(begin, end - begin)
            for column, pieces in found.get(name, {}).items():
                if column in known:
                    pieces.append(rows.column(column))
        if len(set(order)) < len(order):
            raise ValueError("the rows of a table do not stand together")
    return found


def _rows(name: str, table: ColumnTable) -> pa.ColumnTable:
    """A table as rows of the file."""
    columns = {"kind": pa.array([name] * len(table), pa.string()).dictionary_encode()}
    return pa.table(columns | dict(_stored(table)))


def _stored(table: ColumnTable) -> Iterator[tuple[str, pa.Array]]:
    for name, column in table.__dict__.items():
        if name in TIMES:
            whole = np.round(np.nan_to_num(column * MICROSECONDS)).astype(np.int64)
            yield name, pa.array(whole, mask=np.isnan(column))
        else:
            yield name, pa.array(column)


def _table(kind: type[ColumnTable], pieces: dict[str, list[pa.Array]], names: Collection[str]) -> ColumnTable:
    """A table from its columns in pieces, which it takes; ``names``: the columns of the file. KeyError if one lacks."""
    columns: dict[str, Any] = {}
    length = sum(map(len, next(iter(pieces.values()))))
    for name, dtype in column_types(kind).items():
        if name in ADDED and name not in names:
            columns[name] = np.zeros(length, dtype=dtype)
            continue
        if name not in names:
            raise KeyError(name)
        mine = pieces.pop(name)
        found = _numbers(name, dtype, pa.chunked_array(mine)) if mine else np.zeros(0, dtype=dtype)
        columns[name] = _checked(name, found / MICROSECONDS if name in TIMES else found.astype(dtype))
    return kind(**columns)


def _numbers(name: str, dtype: Any, column: pa.ChunkedArray) -> Any:
    """The numbers of a column as they are stored; ValueError if they are of another type, or some are missing."""
    fits = {np.int64: pa.types.is_integer, np.bool_: pa.types.is_boolean, np.float64: pa.types.is_floating}
    if not fits[np.int64 if name in TIMES else dtype](column.type) or (column.null_count and name not in TIMES):
        raise ValueError(f"its column {name} is no column of such numbers")
    return column.to_numpy()


def _checked(name: str, numbers: Any) -> Any:
    """The same; ValueError if a number is out of its range. Missing times are NaN."""
    known = numbers[~np.isnan(numbers)] if name in TIMES else numbers
    least, most = RANGES.get(name, AMOUNTS)
    if len(known) and not (least <= known.min() and known.max() <= most):
        raise ValueError(f"its column {name} has a number that no run can have")
    return numbers
