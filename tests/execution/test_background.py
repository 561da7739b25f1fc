"""Functions that are carried out in processes that give way to all others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from interop.errors import HarnessFault
from interop.execution.background import aside, background
from interop.execution.host import LOWEST
from interop.model import ErrorCode

ROOT = Path(__file__).resolve().parents[2]
CALLER = """
import time
from interop.execution.background import background
from tests.execution.test_background import place
with background(place) as call:
    print(call(0)[0], flush=True)
    BUSY
    time.sleep(60)
"""


def place(seconds: float) -> tuple[int, int, int, int, set[int]]:
    """Where this is carried out: process and session, how it is scheduled, and on which CPUs."""
    time.sleep(seconds)
    priority = os.getpriority(os.PRIO_PROCESS, 0)
    return os.getpid(), os.getsid(0), priority, os.sched_getscheduler(0), os.sched_getaffinity(0)


def fail() -> None:
    raise HarnessFault(ErrorCode.TRACE_CORRUPT, "broken")


def die(status: int) -> None:
    os._exit(status)


def die_once(mark: Path) -> str:
    if not mark.exists():
        mark.touch()
        os._exit(9)
    return "well"


@pytest.mark.parametrize(("cpus", "ours"), [({5}, {5}), ({0, 1}, {0}), (range(7), {0}), (range(2, 18), {2, 3, 4, 5})])
def test_a_quarter_of_the_cpus_and_one_at_least(cpus: Collection[int], ours: set[int]) -> None:
    assert aside(cpus) == ours


def test_it_gives_way_to_all_others() -> None:
    with background(place) as call:
        process, session, priority, policy, cpus = call(0.0)
    assert process != os.getpid()
    assert (session, priority, policy) == (process, LOWEST, os.SCHED_IDLE)
    assert cpus == aside(os.sched_getaffinity(0))
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


def test_a_process_that_was_killed_is_replaced_once(tmp_path: Path) -> None:
    with background(die_once) as call:
        assert call(tmp_path / "died") == "well"
    with background(die) as call:
        for status in (3, 4):
            with pytest.raises(HarnessFault, match=f"exit status {status}, then {status}"):
                call(status)


def test_a_busy_process_ends_with_the_block() -> None:
    with ExitStack() as context:
        call = context.enter_context(background(place))
        process = call(0.0)[0]
        with ThreadPoolExecutor(1) as pool:
            cut = pool.submit(call, 60.0)
            time.sleep(0.3)
            context.close()
            with pytest.raises(HarnessFault, match="cut short"):
                cut.result()
    assert not Path(f"/proc/{process}").exists()


@pytest.mark.parametrize("busy", ["", "call(60)"])
def test_it_ends_with_a_caller_that_was_killed(busy: str) -> None:
    command = [sys.executable, "-c", CALLER.replace("BUSY", busy)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        process = int(caller.stdout.readline())
        time.sleep(0.3)
        assert Path(f"/proc/{process}").exists()
        caller.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 5
    while Path(f"/proc/{process}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{process}").exists()
