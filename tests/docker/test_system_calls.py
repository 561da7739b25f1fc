"""System calls that the kernel counts, of programs that make a known number of them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from quicsat.docker import system_calls
from quicsat.docker.system_calls import ALL, ARCHITECTURES, SystemCallCounter
from tests.waiting import until

PROGRAM = """
import ctypes, os, select, socket, sys, threading
library, word = ctypes.CDLL(None), ctypes.c_int(1)
wait = lambda flags: library.syscall({futex}, ctypes.byref(word), flags, 0, None, None, 0)
sys.stdin.read(1)
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(("127.0.0.1", 0))
own = end.getsockname()
def call():
    for _ in range({times}):
        os.getppid(); end.sendto(b"1", own); end.sendmsg([b"2"], [], 0, own)
        end.recvfrom(1); select.select([end], [], []); end.recvmsg(1); wait(128 + 9)
        for wakes in (1, 128 + 10): wait(wakes)
thread = threading.Thread(target=call); thread.start(); thread.join()
child = os.fork()
if child == 0: call(); os._exit(0)
os.waitpid(child, 0); call()
"""
"""Calls in a thread, in a process that it starts, and itself."""


FUTEX = {"x86_64": 202, "aarch64": 98}


def calls(times: int) -> dict[str, int]:
    """What the program makes; Linux answers ``getppid`` in the kernel each time."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(times=times, futex=FUTEX[os.uname().machine])], stdin=subprocess.PIPE
    ) as program:
        counter = SystemCallCounter(lambda: [program.pid])
        program.stdin.write(b" ")
        program.stdin.close()
        assert program.wait() == 0
    counts = counter.counts
    counter.close()
    return counts


may_count = pytest.mark.skipif(os.geteuid() != 0, reason="only root may count")


@may_count
def test_threads_and_children_count_and_those_that_have_ended() -> None:
    """Three times each."""
    few, many = calls(1_000), calls(6_000)
    more = {kind: many[kind] - few[kind] for kind in many}
    assert (more["sends"], more["receives"]) == pytest.approx((30_000, 30_000), abs=20)
    assert more["waits"] == pytest.approx(30_000, abs=200)  # locks of the interpreter
    assert more["system_calls"] == pytest.approx(135_000, abs=1_000)


@may_count
def test_a_busy_program_has_only_the_calls_that_it_makes() -> None:
    """Counters are opened while it makes calls of no kind all the time."""
    program = "import os\nprint(flush=True)\nwhile True: os.getppid()"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as busy:
        assert busy.stdout
        busy.stdout.readline()
        try:
            counters = [SystemCallCounter(lambda: [busy.pid]) for _ in range(20)]
            assert until(lambda: counters[-1].counts["system_calls"] > 0)
        finally:
            busy.kill()
    for counter in counters:
        counts = counter.counts
        counter.close()
        assert (counts["sends"], counts["receives"], counts["waits"]) == (0, 0, 0)


def test_no_system_call_is_of_two_kinds() -> None:
    for each in ARCHITECTURES.values():
        numbers = (*each.sends, *each.receives, *each.waits, each.perf_event_open)
        assert len(set(numbers)) == len(numbers)


@may_count
def test_the_tracepoint_is_found_where_tracefs_is_mounted_and_where_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_calls, "TRACING", tmp_path)
    before = traces_mounted(), open_files()
    found = system_calls._number(ALL)
    assert (traces_mounted(), open_files()) == before
    (tmp_path / f"events/{ALL}").mkdir(parents=True)
    (tmp_path / f"events/{ALL}/id").write_text(f"{found + 1}\n")
    assert system_calls._number(ALL) == found + 1


def test_a_kernel_that_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_calls, "ARCHITECTURES", {})
    with pytest.raises(OSError, match="architecture"):
        SystemCallCounter(lambda: [os.getpid()])


@may_count
def test_threads_that_begin_while_counters_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are opened anew, and none of the first ones stays open."""
    monkeypatch.setattr(system_calls, "ATTEMPTS", 3)
    own, other, files = os.getpid(), os.getppid(), open_files()
    lists = [[own], [own, other], [own, other]]
    counter = SystemCallCounter(lambda: lists.pop(0))
    assert open_files() == files + 2 * len(ARCHITECTURES[os.uname().machine].events)
    counter.close()
    restless = [[own], [own, other], [own], [own, other]]
    with pytest.raises(OSError, match="all the time"):
        SystemCallCounter(lambda: restless.pop(0))
    with pytest.raises(FileNotFoundError):
        SystemCallCounter(gone_after([[own]]))
    assert open_files() == files


def traces_mounted() -> int:
    return Path("/proc/self/mounts").read_text().count("tracefs")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def gone_after(lists: list[list[int]]) -> Callable[[], list[int]]:
    def threads() -> list[int]:
        if not lists:
            raise FileNotFoundError
        return lists.pop(0)

    return threads
