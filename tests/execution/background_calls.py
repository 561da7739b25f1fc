"""Functions for tests of background processes, which load this module at the lowest priority: it must stay small."""

import os
import time
from pathlib import Path

from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode


def meet(folder: Path, processes: int) -> int:
    """Come to ``folder``, and wait until so many processes are there, this one among them; the id of this one."""
    (folder / str(os.getpid())).touch()
    while len([*folder.iterdir()]) < processes:
        time.sleep(0.01)
    return os.getpid()


def place() -> tuple[int, int, int, int, set[int]]:
    """Where this runs: process and session, priority and scheduling policy, CPUs."""
    priority = os.getpriority(os.PRIO_PROCESS, 0)
    return os.getpid(), os.getsid(0), priority, os.sched_getscheduler(0), os.sched_getaffinity(0)


def compute(duration: float) -> float:
    """Use so many seconds of CPU time; all that this process has used."""
    end = time.process_time() + duration
    while time.process_time() < end:
        pass
    return time.process_time()


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


def ask_for_memory() -> str:
    """What happens to a request for most of the machine's memory."""
    try:
        bytearray(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4)
    except MemoryError:
        return "refused"
    return "granted"
