"""Times of the objects of a workload, from the series of a run; pure."""

from __future__ import annotations

import statistics
from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from itertools import takewhile

import numpy as np

from quicsat.model.results import ObjectTimes
from quicsat.model.role import Protocol
from quicsat.model.workload import ObjectType, RequestOrder, Workload
from quicsat.traces.series import Series, StreamData
from quicsat.traces.streams import ByteRanges, Stream

Placed = tuple[Stream, int, int]
"""A sequence of bytes that a receiver hands over in order, and a range of it: its begin, and its end plus one."""


def object_times(series: Series, sizes: Sequence[int], workload: Workload) -> tuple[ObjectTimes, ...]:
    """Times of the objects in the order of their requests; empty if the streams do not show all of them.

    An object is told by its size: HTTP/3 adds headers to each, so that the largest stream is that of the largest
    object, and so on. Streams of further requests are left out.
    """
    asked = _asked(series)
    streams = {stream: length for stream, length in _lengths(series.arrived).items() if stream in asked}
    kinds: Sequence[ObjectType | None] = workload.types or (None,) * len(sizes)
    wanted = sorted(zip(sizes, kinds, strict=True), key=lambda each: -each[0])
    ordered = sorted(streams, key=lambda stream: -streams[stream])
    if len(ordered) < len(wanted):
        return ()
    which = dict(zip(ordered, wanted, strict=False))
    if any(streams[stream] < size for stream, (size, _) in which.items()):
        return ()
    own = workload.requests is RequestOrder.SEPARATE
    began = _connection_begins(series) if own else {}
    over_tcp = series.protocol is Protocol.TCP
    waited = blocked(series.arrived, in_one_stream(series.sent) if over_tcp else in_its_stream)
    found = []
    rows = series.requests.rows("connection", "stream", "sent", "first_byte", "last_byte")
    for connection, stream, sent, first, last in rows:
        if (connection, stream) in which and np.isfinite(last):
            size, kind = which[connection, stream]
            start = began.get(connection, sent)
            found.append(ObjectTimes(size, kind, *map(_whole, (start, first, last, waited[connection, stream]))))
    return tuple(found) if len(found) == len(wanted) else ()


def object_metrics(series: Series, objects: Sequence[ObjectTimes]) -> dict[str, float]:
    """Numbers of a run over its objects, by their names in ``METRICS``, seconds; none without objects."""
    if not objects:
        return {}
    durations = [each.duration for each in objects]
    answers = [each.first_byte - each.requested for each in objects]
    asked = _asked(series)
    together = blocked(series.arrived, in_one_stream(series.sent))
    return {
        "object_time_median": statistics.median(durations),
        "object_time_95": float(np.percentile(durations, 95)),
        "response_time_median": statistics.median(answers),
        "response_time_95": float(np.percentile(answers, 95)),
        "head_of_line_blocking": statistics.fmean(each.blocked for each in objects),
        "head_of_line_blocking_one_stream": sum(together[stream] for stream in asked & together.keys()) / len(objects),
    }


def _asked(series: Series) -> set[Stream]:
    """The streams on which the client asked for something."""
    return {(connection, stream) for connection, stream in series.requests.rows("connection", "stream")}


def _whole(time: float) -> float:
    """Whole microseconds, as in the file of series."""
    return round(time, 6)


def _lengths(arrived: StreamData) -> dict[Stream, int]:
    """New bytes of each stream."""
    lengths: dict[Stream, int] = {}
    for connection, stream, new in arrived.rows("connection", "stream", "new"):
        lengths[connection, stream] = lengths.get((connection, stream), 0) + new
    return lengths


def _connection_begins(series: Series) -> dict[int, float]:
    """When the client sent its first packet on each connection."""
    first: dict[int, float] = {}
    for connection, sent in series.back.rows("connection", "sent"):
        first[connection] = min(sent, first.get(connection, sent))
    return first


def in_its_stream(stream: Stream, begin: int, end: int) -> list[Placed]:
    """Each stream is a sequence of its own."""
    return [(stream, begin, end)]


def blocked(arrived: StreamData, place: Callable[[Stream, int, int], list[Placed]]) -> dict[Stream, float]:
    """For each stream: how long bytes of it that had arrived waited for earlier ones, seconds.

    ``place`` says where a range of a stream's bytes is in which sequence: that of the stream itself, or one that
    several streams share.
    """
    have: dict[Stream, ByteRanges] = {}
    furthest: dict[Stream, tuple[Stream, int]] = {}
    """Of each stream: its sequence, and the end of what has arrived in there."""
    since: dict[Stream, float] = {}
    waited: dict[Stream, float] = {}
    rows = arrived.rows("time", "connection", "stream", "offset", "length", "new")
    for time, connection, number, offset, length, new in rows:
        stream = (connection, number)
        waited.setdefault(stream, 0.0)
        for sequence, begin, end in place(stream, offset, offset + length) if new else []:
            ranges = have.setdefault(sequence, ByteRanges())
            ranges.add(begin, end)
            reached = ranges.ends[0] if ranges.starts[0] == 0 else 0
            furthest[stream] = sequence, max(end, furthest.get(stream, (sequence, 0))[1])
            if furthest[stream][1] > reached:
                since.setdefault(stream, time)
            for other in [each for each in since if furthest[each][0] == sequence and furthest[each][1] <= reached]:
                waited[other] += time - since.pop(other)
    return waited


def in_one_stream(sent: StreamData) -> Callable[[Stream, int, int], list[Placed]]:
    """Places of all bytes of a connection in one sequence, in the order in which the server first sent them."""
    pieces: dict[Stream, list[tuple[int, int, int]]] = {}
    """Of each stream: begin, end, and place of the begin, in order."""
    total: dict[int, int] = {}
    for connection, number, offset, length, new in sent.rows("connection", "stream", "offset", "length", "new"):
        known = pieces.setdefault((connection, number), [])
        for begin, end in _gaps(known, offset, offset + length) if new else []:
            insort(known, (begin, end, total.get(connection, 0)))
            total[connection] = total.get(connection, 0) + end - begin

    def place(stream: Stream, begin: int, end: int) -> list[Placed]:
        known = pieces.get(stream, [])
        first = max(bisect_right(known, begin, key=lambda piece: piece[0]) - 1, 0)
        sequence, found = (stream[0], -1), list[Placed]()
        for low, high, at in takewhile(lambda piece: piece[0] < end, known[first:]):
            if high > begin:
                found.append((sequence, at + max(begin, low) - low, at + min(end, high) - low))
        return found

    return place


def _gaps(known: Sequence[tuple[int, int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    """The parts of a range that are in none of the ``known`` pieces, which are in order."""
    found = []
    first = max(bisect_right(known, begin, key=lambda piece: piece[0]) - 1, 0)
    for low, high, _ in known[first:]:
        if low >= end:
            break
        if low > begin:
            found.append((begin, low))
        begin = max(begin, high)
    return [*found, (begin, end)] if begin < end else found
