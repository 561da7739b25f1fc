"""How busy the CPUs of this machine are: sampled twice a second, and kept for the time of a run.

The CPU time of all programs counts, whatever their priority, but for processes that :func:`leave_out` names.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

STAT = Path("/proc/stat")
PROCESSES = Path("/proc")
USER_TIME = 11
"""Place of the CPU time in user mode after the name in ``/proc/PID/stat`` (proc(5)); that in the kernel follows."""
PERIOD = 0.5
"""Seconds between two samples."""
WINDOW = 2.0
"""Seconds over which CPU time is averaged: shorter peaks do not disturb transfers."""
LASTING = 10
"""Samples in a row that show that a program does not only have a peak."""
NOTABLE = 0.25
"""Share of the CPU time that other programs may use before a campaign begins."""
MAX_SAMPLES = 7200
"""Samples that are kept, of one hour: longer than the deadline of any usual run."""


class CpuSample(NamedTuple):
    """The CPUs of the machine at one moment."""

    at: float
    """Time on the monotonic clock, seconds."""
    busy: float
    """CPU time used so far, but for that of processes that are left out."""
    total: float
    """All CPU time so far, in the unit of ``busy``."""


class CpuMonitor:
    """Samples the CPUs while a block runs, see :meth:`watching`."""

    def __init__(self) -> None:
        self._samples: deque[CpuSample] = deque(maxlen=MAX_SAMPLES)
        self._ended = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[CpuMonitor]:
        """Sample the CPUs from a background thread until the block is left."""
        thread = threading.Thread(target=self._watch, daemon=True, name="load")
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            thread.join()

    def _watch(self) -> None:
        while (sample := take_sample()) is not None:
            self._samples.append(sample)
            if self._ended.wait(PERIOD):
                return

    def now(self) -> float | None:
        """Share of the CPU time in use over the last two seconds, 0..1; None if unknown."""
        return busiest(tuple(self._samples)[-round(WINDOW / PERIOD) - 1 :])

    def since(self, moment: float) -> float | None:
        """Largest share of the CPU time in use over two seconds since ``moment`` of the monotonic clock, 0..1."""
        return busiest(self._after(moment))

    def busy_share(self, moment: float, above: float) -> float | None:
        """Share of the two-second windows since ``moment`` of the monotonic clock in which more than the share
        ``above`` of the CPU time was in use, 0..1; None if unknown."""
        shares = _shares(self._after(moment))
        return sum(share > above for share in shares) / len(shares) if shares else None

    def _after(self, moment: float) -> tuple[CpuSample, ...]:
        return tuple(each for each in tuple(self._samples) if each.at >= moment)


def take_sample() -> CpuSample | None:
    """The CPUs now; None where Linux does not report them."""
    try:
        words = STAT.read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return None
    user, nice, system, idle, iowait, *rest = map(float, words[1:9])
    busy = user + nice + system + sum(rest)
    return CpuSample(time.monotonic(), busy - _time_left_out(), busy + idle + iowait)


_left_out: dict[IO[bytes], float] = {}
"""The CPU time of each process that does not count, in clock ticks, by its open file in ``/proc``, which no later
process with the same number can take over."""


def leave_out(process: int) -> None:
    """Count the CPU time of a new process of this program as idle: other work has precedence over it."""
    with suppress(OSError):
        _left_out[(PROCESSES / str(process) / "stat").open("rb", buffering=0)] = 0.0


def _time_left_out() -> float:
    for file in tuple(_left_out):
        with suppress(OSError):  # the process has ended
            file.seek(0)
            words = file.read().rpartition(b")")[2].split()
            _left_out[file] = float(words[USER_TIME]) + float(words[USER_TIME + 1])
    return sum(_left_out.values())


def lasting_share() -> float | None:
    """Share of the CPU time that is in use at least in each half second of the next five seconds, 0..1.

    None if it is at most ``NOTABLE``, which is known at once on an idle machine; also if it is unknown.
    """
    if os.getloadavg()[0] <= NOTABLE * (os.cpu_count() or 1):
        return None
    lowest, before = 1.0, take_sample()
    for _ in range(LASTING):
        time.sleep(PERIOD)
        now = take_sample()
        share = None if before is None or now is None else busiest((before, now))
        if share is None or share <= NOTABLE:
            return None
        lowest, before = min(lowest, share), now
    return lowest


def busiest(samples: tuple[CpuSample, ...]) -> float | None:
    """Largest share in use over two seconds; over all of them if they span less. None if there are fewer than two."""
    return max(_shares(samples), default=None)


def _shares(samples: tuple[CpuSample, ...]) -> list[float]:
    """Share of the CPU time in use in each window of two seconds; in one window if ``samples`` span less."""
    step = max(1, min(round(WINDOW / PERIOD), len(samples) - 1))
    windows = zip(samples, samples[step:], strict=False)
    return [max(0.0, b.busy - a.busy) / (b.total - a.total) for a, b in windows if b.total > a.total]
