"""How busy the CPUs of this machine are: looked at twice a second, remembered for the time of a run."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

STAT = Path("/proc/stat")
PERIOD = 0.5
"""Seconds between two looks."""
WINDOW = 2.0
"""Seconds over which CPU time is averaged: shorter peaks disturb no transfer."""
MEMORY = 7200
"""Looks that are remembered, an hour's worth: longer than any deadline of a usual run."""


class Look(NamedTuple):
    """The CPUs of the machine at one moment."""

    at: float
    """On the monotonic clock, seconds."""
    busy: float
    """CPU time used so far at normal priority or above; what yields to everybody (``nice``) does not count."""
    total: float
    """All CPU time so far, in the unit of ``busy``."""


class Meter:
    """Looks at the CPUs while a block runs, see :meth:`watching`."""

    def __init__(self) -> None:
        self._looks: deque[Look] = deque(maxlen=MEMORY)
        self._ended = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[Meter]:
        """Look at the CPUs from a thread of its own until the block is left."""
        thread = threading.Thread(target=self._watch, daemon=True, name="load")
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            thread.join()

    def _watch(self) -> None:
        while (seen := look()) is not None:
            self._looks.append(seen)
            if self._ended.wait(PERIOD):
                return

    def now(self) -> float | None:
        """Share of the CPU time in use over the last two seconds, 0..1; None if the machine does not tell."""
        return busiest(tuple(self._looks)[-round(WINDOW / PERIOD) - 1 :])

    def since(self, moment: float) -> float | None:
        """Largest share of the CPU time in use over two seconds since ``moment`` of the monotonic clock, 0..1."""
        return busiest(self._after(moment))

    def crowded(self, moment: float, above: float) -> float | None:
        """Share of the two-second windows since ``moment`` of the monotonic clock in which more than the share
        ``above`` of the CPU time was in use, 0..1; None if the machine does not tell."""
        shares = _shares(self._after(moment))
        return sum(share > above for share in shares) / len(shares) if shares else None

    def _after(self, moment: float) -> tuple[Look, ...]:
        return tuple(each for each in tuple(self._looks) if each.at >= moment)


def look() -> Look | None:
    """The CPUs now; None on a machine that does not tell."""
    try:
        words = STAT.read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return None
    user, nice, system, idle, iowait, *rest = map(float, words[1:9])
    busy = user + system + sum(rest)
    return Look(time.monotonic(), busy, busy + nice + idle + iowait)


def busiest(looks: tuple[Look, ...]) -> float | None:
    """Largest share in use over two seconds; over all of them if they span less. None if there are not two looks."""
    return max(_shares(looks), default=None)


def _shares(looks: tuple[Look, ...]) -> list[float]:
    """Share of the CPU time in use in each window of two seconds; in one window if ``looks`` span less."""
    step = max(1, min(round(WINDOW / PERIOD), len(looks) - 1))
    windows = zip(looks, looks[step:], strict=False)
    return [(b.busy - a.busy) / (b.total - a.total) for a, b in windows if b.total > a.total]
