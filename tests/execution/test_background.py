"""Functions that are carried out in processes that give way to all others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from interop.errors import HarnessFault
from interop.execution.background import background
from interop.execution.host import LOWEST
from interop.model import ErrorCode

ROOT = Path(__file__).resolve().parents[2]
CALLER = """
import time
from interop.execution.background import background
from tests.execution.test_background import place
with background(place) as call:
    print(call(0)[0], flush=True)
    time.sleep(60)
"""


def place(seconds: float) -> tuple[int, int, int, int]:
    """Where this is carried out: process and session, how it is scheduled."""
    time.sleep(seconds)
    return os.getpid(), os.getsid(0), os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)


def fail() -> None:
    raise HarnessFault(ErrorCode.TRACE_CORRUPT, "broken")


def die(status: int) -> None:
    os._exit(status)


def test_it_gives_way_to_all_others() -> None:
    with background(place) as call:
        process, session, priority, policy = call(0.0)
    assert process != os.getpid()
    assert (session, priority, policy) == (process, LOWEST, os.SCHED_IDLE)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_calls_at_the_same_time_have_processes_of_their_own_and_others_do_not() -> None:
    with background(place) as call, ThreadPoolExecutor(2) as pool:
        both = {process for process, *_ in pool.map(call, [1.0, 1.0])}
        assert len(both) == 2
        assert call(0.0)[0] in both


def test_what_a_function_raises_is_raised_with_where_it_was() -> None:
    with background(fail) as call:
        for _ in range(2):
            with pytest.raises(HarnessFault, match="broken") as caught:
                call()
            assert caught.value.code is ErrorCode.TRACE_CORRUPT
            assert "in fail" in caught.value.__notes__[0]


def test_a_process_that_was_killed_costs_one_call() -> None:
    with background(die) as call:
        for status in (3, 4):
            with pytest.raises(HarnessFault, match=f"exit status {status}"):
                call(status)


def test_it_ends_with_a_caller_that_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", CALLER], cwd=ROOT, stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        process = int(caller.stdout.readline())
        assert Path(f"/proc/{process}").exists()
        caller.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 5
    while Path(f"/proc/{process}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{process}").exists()
