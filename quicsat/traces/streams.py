"""Which bytes of which stream a trace shows; pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from quicsat.model.arrays import Flags, Integers
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode
from quicsat.traces.columns import Trace

MOST_GAPS = 20_000
"""Of a stream at a time: those of 24 MB in packets of which each second one is lost."""


def response_frames(trace: Trace) -> Flags:
    """Which STREAM frames come from the server, on streams that carry requests (client-initiated, bidirectional)."""
    frames = trace.frames
    answers: Flags = trace.from_server[frames.packet] & (frames.stream % 4 == 0)
    return answers


@lru_cache(maxsize=2)  # several numbers need it, and it is the same for each
def new_bytes(trace: Trace) -> Integers:
    """For each STREAM frame: how many of its bytes no frame before it had, in the same direction of the same stream.

    A stream is known by its connection and its number. Numbers restart in each connection (RFC 9000, section 2.1).
    """
    frames = trace.frames
    news = np.zeros(len(frames), dtype=np.int64)
    seen: dict[tuple[int, int, bool], ByteRanges] = {}
    connections = trace.connection[frames.packet].tolist()
    server = trace.from_server[frames.packet].tolist()
    rows = zip(connections, server, frames.rows("stream", "offset", "length"), strict=True)
    for row, (connection, from_server, (stream, offset, length)) in enumerate(rows):
        key = connection, stream, from_server
        if (ranges := seen.get(key)) is None:
            ranges = seen[key] = ByteRanges()
        news[row] = ranges.add(offset, offset + length)
    return news


class ByteRanges:
    """A set of bytes, as disjoint ranges that do not touch, in order."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        for start, end in ranges:
            self.add(start, end)

    def add(self, start: int, end: int) -> int:
        """Put in the bytes from ``start`` to before ``end``; how many of them are new.

        Raises HarnessFault (trace-limit) if there are too many gaps: each takes time whenever bytes are put in.
        """
        if end <= start:
            return 0
        if self.ends and start == self.ends[-1]:  # most bytes come in order
            self.ends[-1] = end
            return end - start
        first = bisect_left(self.ends, start)
        last = bisect_right(self.starts, end)
        covered = sum(min(end, self.ends[i]) - max(start, self.starts[i]) for i in range(first, last))
        low, high = min([start, *self.starts[first:last]]), max([end, *self.ends[first:last]])
        self.starts[first:last], self.ends[first:last] = [low], [high]
        if len(self.starts) > MOST_GAPS:
            raise HarnessFault(ErrorCode.TRACE_LIMIT, f"a stream has more than {MOST_GAPS} gaps at a time")
        return end - start - covered

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return sum(self.ends) - sum(self.starts)


Stream = tuple[int, int]
"""Number of the connection in its trace, and number of the stream in the connection."""


class Response(NamedTuple):
    """What arrived at the client on a request stream."""

    arrived: int
    """Different bytes."""
    highest: int
    """The highest byte's position plus one."""
    final: int | None
    """Bytes of the whole response; None if its end is missing."""

    @property
    def whole(self) -> bool:
        return self.arrived == self.final


def responses(client: Trace) -> dict[Stream, Response]:
    """What arrived on each request stream on which the server answered."""
    found: dict[Stream, Response] = {}
    frames, news = client.frames, new_bytes(client)
    ends = frames.offset + frames.length
    for row in np.flatnonzero(response_frames(client)).tolist():
        stream, end = _stream(client, row), int(ends[row])
        before = found.get(stream, Response(0, 0, None))
        highest = max(before.highest, end if frames.length[row] else 0)
        found[stream] = Response(before.arrived + int(news[row]), highest, end if frames.fin[row] else before.final)
    return found


def requested_streams(client: Trace) -> set[Stream]:
    """The request streams on which the client asked for something."""
    asked = ~client.from_server[client.frames.packet] & (client.frames.stream % 4 == 0)
    return {_stream(client, row) for row in np.flatnonzero(asked).tolist()}


def finished_connections(client: Trace) -> set[int]:
    """Connections on which the client asked for something, and got every byte and the end of each response."""
    answers, requests = responses(client), requested_streams(client)
    open_ = {stream[0] for stream in requests if stream not in answers or not answers[stream].whole}
    return {stream[0] for stream in requests} - open_ - {-1}


def _stream(trace: Trace, row: int) -> Stream:
    return int(trace.connection[trace.frames.packet[row]]), int(trace.frames.stream[row])
