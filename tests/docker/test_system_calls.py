"""System calls that the kernel counts, of programs that make a known number of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from quicsat.docker import system_calls
from quicsat.docker.system_calls import TRACEPOINT, SystemCallCounter

PROGRAM = """
import os, sys, threading
sys.stdin.read(1)
def call():
    for _ in range({times}): os.getppid()
thread = threading.Thread(target=call); thread.start(); thread.join()
child = os.fork()
if child == 0: call(); os._exit(0)
os.waitpid(child, 0); call()
"""
"""Calls in a thread, in a process that it starts, and itself."""


def calls(times: int) -> int:
    """What the program makes; Linux answers ``getppid`` in the kernel each time."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM.format(times=times)], stdin=subprocess.PIPE) as program:
        assert program.stdin is not None
        counter = SystemCallCounter(lambda: [program.pid])
        program.stdin.write(b" ")
        program.stdin.close()
        program.wait()
    count = counter.count
    counter.close()
    return count


may_count = pytest.mark.skipif(
    os.geteuid() != 0 or not TRACEPOINT.exists(), reason="only root may count, on a machine with tracefs"
)


@may_count
def test_threads_and_children_count_and_those_that_have_ended() -> None:
    assert calls(21_000) - calls(1_000) == pytest.approx(60_000, rel=0.01)


def test_a_kernel_that_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_calls, "PERF_EVENT_OPEN", {})
    with pytest.raises(OSError, match="architecture"):
        SystemCallCounter(lambda: [os.getpid()])


@may_count
def test_threads_that_begin_while_counters_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are opened anew, and none of the first ones stays open."""
    monkeypatch.setattr(system_calls, "ATTEMPTS", 3)
    own, other, files = os.getpid(), os.getppid(), open_files()
    lists = [[own], [own, other], [own, other]]
    counter = SystemCallCounter(lambda: lists.pop(0))
    assert open_files() == files + 2
    counter.close()
    restless = [[own], [own, other], [own], [own, other]]
    with pytest.raises(OSError, match="all the time"):
        SystemCallCounter(lambda: restless.pop(0))
    with pytest.raises(FileNotFoundError):
        SystemCallCounter(gone_after([[own]]))
    assert open_files() == files


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def gone_after(lists: list[list[int]]) -> Callable[[], list[int]]:
    def threads() -> list[int]:
        if not lists:
            raise FileNotFoundError
        return lists.pop(0)

    return threads
