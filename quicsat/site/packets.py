"""The events of a run as a compact file for the browser: whole numbers, delta-coded, in byte planes, deflated.

A file is zlib of: the length of the header (4 bytes, little endian), the header (JSON) and the planes. The header has
``columns``: name, count, ``scale`` (a number is the whole number times the scale) and ``planes``; ``every``: of so many
events one is there; and ``texts`` that numbers of columns point to. Values are differences to the one before,
zigzag-coded (0, -1, 1, -2 -> 0, 1, 2, 3), modulo 2^32. The first plane has the low bytes of all values of all columns,
the next one the second bytes of the columns that have two or more ``planes``, and so on; bytes beyond are zero. Columns
that resemble each other are neighbours in a plane, so that deflate, which looks back 32 KiB, finds what they share.
``web/assets/packets.js`` reads it.

In a site, a file is the text of such a file (base64) as an argument in a script: a page that was opened from a file may
load scripts, and nothing else.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quicsat.traces.series import Packets, Samples, Series, StreamData, window_rate

TICK = 1e-5
"""Seconds; finer times cost twice the space and are not seen."""
LEVEL = 6
_SAMPLES = 3000
"""Most values of a curve: two per pixel of a wide screen."""

Numbers = NDArray[Any]


class PackedColumn(NamedTuple):
    """Numbers of one kind."""

    name: str
    values: Numbers
    scale: float


def encode(
    series: Series, most: int | None = None, more: Sequence[PackedColumn] = (), texts: Sequence[str] = ()
) -> bytes:
    """The file of one run, with ``more`` columns, which may point to ``texts``.

    With ``most``, of each table only every n-th event so that no more are left.
    """
    longest = max(len(series.sent), len(series.forward), len(series.back), 1)
    every = 1 if most is None else -(-longest // most)
    values = _SAMPLES if every == 1 else min(_SAMPLES, most or _SAMPLES)
    return pack([*_columns(series, every, values), *more], every, texts)


def pack(columns: Sequence[PackedColumn], every: int = 1, texts: Sequence[str] = ()) -> bytes:
    """Columns as a file. Whole numbers must fit into 32 bits; ValueError if one is not finite."""
    coded = [_coded(each) for each in columns]
    planes = [(int(each.max(initial=0)).bit_length() + 7) // 8 for each in coded]
    head = {
        "every": every,
        "columns": [
            {"name": each.name, "count": len(each.values), "scale": each.scale, "planes": used}
            for each, used in zip(columns, planes, strict=True)
        ],
        "texts": list(texts),
    }
    text = json.dumps(head).encode()
    content = [len(text).to_bytes(4, "little"), text]
    for plane in range(max(planes, default=0)):
        content += [_bytes(each, plane) for each, used in zip(coded, planes, strict=True) if plane < used]
    return zlib.compress(b"".join(content), LEVEL)


def script(content: bytes) -> bytes:
    """A packed file as the script that ``web/assets/packets.js`` loads."""
    return b'packetFile.take("%s");\n' % b64encode(content)


def unpack(content: bytes) -> dict[str, NDArray[np.float64]]:
    """What ``pack`` was given, as its reader in the browser has it."""
    plain = zlib.decompress(content)
    begin = 4 + int.from_bytes(plain[:4], "little")
    columns = json.loads(plain[4:begin])["columns"]
    coded = [np.zeros(column["count"], np.uint32) for column in columns]
    for plane in range(max((column["planes"] for column in columns), default=0)):
        for column, values in zip(columns, coded, strict=True):
            if plane < column["planes"]:
                values |= np.frombuffer(plain, np.uint8, len(values), begin).astype(np.uint32) << 8 * plane
                begin += len(values)
    found = {}
    for column, values in zip(columns, coded, strict=True):
        steps = (values >> 1).astype(np.int64) ^ -(values & 1).astype(np.int64)
        found[column["name"]] = np.cumsum(steps) * column["scale"]
    return found


def _coded(column: PackedColumn) -> NDArray[np.uint32]:
    if not np.isfinite(column.values).all():
        raise ValueError(f"the column {column.name} has values that are no numbers")
    whole = np.round(np.asarray(column.values, dtype=np.float64) / column.scale).astype(np.int64)
    steps = np.diff(whole, prepend=0)
    return ((steps << 1) ^ (steps >> 63)).astype(np.uint32)


def _bytes(values: NDArray[np.uint32], plane: int) -> bytes:
    return (values >> np.uint32(8 * plane)).astype(np.uint8).tobytes()


# ---- which columns --------------------------------------------------------------------------


def _columns(series: Series, every: int, values: int) -> Iterator[PackedColumn]:
    forward = _packets("forward", series.forward, _first(series.sent.time), every)
    for alike in zip(
        _stream("sent", series.sent, every), forward, _stream("arrived", series.arrived, every), strict=True
    ):
        yield from alike
    yield from _packets("back", series.back, _first(series.requests.sent), every)
    until = max((float(table.time[-1]) for table in (series.sent, series.arrived) if len(table)), default=0.0)
    for name, times, sizes in (
        ("rate_sent", series.forward.sent, series.forward.size),
        ("rate_goodput", series.arrived.time, series.arrived.new),
        ("rate_back", series.back.sent, series.back.size),
    ):
        yield from _samples(name, window_rate(times, sizes, until=until), 1000.0, values)
    yield from _samples("rtt", series.rtt, TICK, values)
    yield from _samples("in_flight", series.in_flight, 1.0, values)
    yield from _samples("cwnd", series.cwnd, 1.0, values)
    for name in ("sent", "first_byte", "last_byte"):
        times = getattr(series.requests, name)
        yield PackedColumn(f"request_{name}", times[~np.isnan(times)], TICK)


def _stream(name: str, table: StreamData, every: int) -> Iterator[PackedColumn]:
    yield PackedColumn(f"{name}_time", table.time[::every], TICK)
    yield PackedColumn(f"{name}_offset", table.offset[::every], 1.0)
    yield PackedColumn(f"{name}_again", table.retransmission[::every], 1.0)


def _first(times: Numbers) -> float:
    """The first of them; before all times if there is none."""
    return float(np.nanmin(times)) if np.isfinite(times).any() else -np.inf


def _packets(name: str, table: Packets, since: float, every: int) -> Iterator[PackedColumn]:
    """Those from ``since`` on: packets of the handshake are numbered apart (RFC 9000, 12.3), by some from afar."""
    rows = np.flatnonzero((table.number >= 0) & (table.sent >= since))[::every]
    yield PackedColumn(f"{name}_time", table.sent[rows], TICK)
    yield PackedColumn(f"{name}_number", table.number[rows], 1.0)
    yield PackedColumn(f"{name}_lost", table.lost[rows], 1.0)


def _samples(name: str, table: Samples, scale: float, most: int) -> Iterator[PackedColumn]:
    rows = _telling(table, most)
    yield PackedColumn(f"{name}_time", table.time[rows], TICK)
    yield PackedColumn(f"{name}_value", table.value[rows], scale)


def _telling(table: Samples, most: int) -> Numbers:
    """Rows of a curve that show it: all, or the lowest and the highest of each of ``most`` / 2 stretches."""
    count = len(table)
    if count <= most:
        return np.arange(count)
    stretches = most // 2
    stretch = np.arange(count) * stretches // count
    ordered = np.lexsort((table.value, stretch))
    ends = np.searchsorted(stretch, np.arange(stretches + 1))
    return np.unique(ordered[np.concatenate([ends[:-1], ends[1:] - 1])])
