"""Which bytes of which stream a trace shows; pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from interop.traces.columns import Flags, Integers, Trace


def response_frames(trace: Trace) -> Flags:
    """Which STREAM frames come from the server, on streams that carry requests (client-initiated, bidirectional)."""
    frames = trace.frames
    answers: Flags = trace.from_server[frames.packet] & (frames.stream % 4 == 0)
    return answers


@lru_cache(maxsize=2)  # several numbers need it, and it is the same for each
def new_bytes(trace: Trace) -> Integers:
    """For each STREAM frame: how many of its bytes no frame before it had, in the same direction of the same stream."""
    frames = trace.frames
    news = np.zeros(len(frames), dtype=np.int64)
    seen: dict[tuple[int, bool], ByteRanges] = {}
    server = trace.from_server[frames.packet].tolist()
    rows = zip(frames.stream.tolist(), server, frames.offset.tolist(), frames.length.tolist(), strict=True)
    for row, (stream, from_server, offset, length) in enumerate(rows):
        news[row] = seen.setdefault((stream, from_server), ByteRanges()).add(offset, offset + length)
    return news


class ByteRanges:
    """A set of bytes, as disjoint ranges that do not touch, in order."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        for start, end in ranges:
            self.add(start, end)

    def add(self, start: int, end: int) -> int:
        """Put in the bytes from ``start`` to before ``end``; how many of them are new."""
        if end <= start:
            return 0
        first = bisect_left(self.ends, start)
        last = bisect_right(self.starts, end)
        covered = sum(min(end, self.ends[i]) - max(start, self.starts[i]) for i in range(first, last))
        low, high = min([start, *self.starts[first:last]]), max([end, *self.ends[first:last]])
        self.starts[first:last], self.ends[first:last] = [low], [high]
        return end - start - covered

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return sum(self.ends) - sum(self.starts)


def arrived_bytes(client: Trace) -> dict[int, tuple[int, int]]:
    """For each request stream: bytes that arrived at the client, and the highest byte's position plus one."""
    rows = np.flatnonzero(response_frames(client))
    ranges: dict[int, ByteRanges] = {}
    frames = client.frames
    for row in rows.tolist():
        offset = int(frames.offset[row])
        ranges.setdefault(int(frames.stream[row]), ByteRanges()).add(offset, offset + int(frames.length[row]))
    return {stream: (have.size, have.ends[-1] if have.ends else 0) for stream, have in ranges.items()}
