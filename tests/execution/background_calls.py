"""Functions for tests of background processes, which load this module at the lowest priority: it must stay small."""

from __future__ import annotations

import os
import time
from pathlib import Path

from interop.model.errors import HarnessFault
from interop.model.outcomes import ErrorCode


def place(seconds: float) -> tuple[int, int, int, int, set[int]]:
    """Where this runs, after ``seconds``: process and session, priority and scheduling policy, CPUs."""
    time.sleep(seconds)
    priority = os.getpriority(os.PRIO_PROCESS, 0)
    return os.getpid(), os.getsid(0), priority, os.sched_getscheduler(0), os.sched_getaffinity(0)


def fail() -> None:
    """Raise a fault."""
    raise HarnessFault(ErrorCode.TRACE_CORRUPT, "broken")


def die(status: int) -> None:
    """End the process."""
    os._exit(status)


def die_once(mark: Path) -> str:
    """End the process, unless ``mark`` exists."""
    if not mark.exists():
        mark.touch()
        os._exit(9)
    return "well"
