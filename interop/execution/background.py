"""Analysis beside runs that are under way: in processes of its own that take the CPU only when nobody else wants it.

A thread cannot give way like that. The lowest priority counts among tasks of one group only, and Linux makes groups of
sessions (sched(7), "The autogroup feature"), unless systemd has made others; and a thread that runs Python keeps all
others of its process waiting.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from interop.errors import HarnessFault
from interop.execution.host import LOWEST
from interop.model import ErrorCode

AUTOGROUP = Path("/proc/self/autogroup")
ASIDE = 4
"""One CPU in so many, and one at least, is for analysis and engine; links and endpoints may use all."""
TRIES = 2
"""Processes that may be killed over one call."""


@contextmanager
def background(act: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """A function that carries ``act`` out, which must be importable, in as many processes as there are calls at a time.

    It raises what ``act`` raises, and :class:`HarnessFault` if its process was killed, and another one, too. The
    processes end with the block, or with the process that called, however that ends.
    """
    processes = _Processes(act)
    try:
        yield processes.call
    finally:
        processes.close()


class _Processes:
    def __init__(self, act: Callable[..., Any]) -> None:
        self._act = act
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._all: list[_Process] = []
        self._closed = False

    def call(self, *arguments: Any) -> Any:
        statuses = []
        for _ in range(TRIES):
            process = self._take()
            try:
                result, error = process.call(arguments)
            except (EOFError, OSError):
                statuses.append(str(process.end()))
                continue
            with self._lock:
                self._idle.append(process)
            if error is not None:
                raise error
            return result
        ended = f"The analysis ended with exit status {', then '.join(statuses)}; was memory short?"
        raise HarnessFault(ErrorCode.HARNESS_FAULT, ended)

    def _take(self) -> _Process:
        with self._lock:
            if self._closed:
                raise HarnessFault(ErrorCode.HARNESS_FAULT, "The analysis was cut short: the campaign is over.")
            if not self._idle:
                self._idle.append(_Process(self._act))
                self._all.append(self._idle[-1])
            return self._idle.pop()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        for process in self._all:
            process.end()


class _Process:
    """One process, and our end of the pipe that joins it to us."""

    def __init__(self, act: Callable[..., Any]) -> None:
        self._ending = threading.Lock()
        spawn = multiprocessing.get_context("spawn")
        self._connection, other = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(other,), daemon=True, name="analysis")
        self._process.start()
        other.close()
        with suppress(OSError):  # it has ended already, which the first call will see
            self._connection.send(act)

    def call(self, arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
        self._connection.send(arguments)
        answer: tuple[Any, Exception | None] = self._connection.recv()
        return answer

    def end(self) -> int | None:
        """End it, whatever it does; its exit status. Who waits for its answer, in another thread, gets EOFError."""
        with self._ending:
            self._process.kill()
            self._process.join()
            return self._process.exitcode


def _serve(connection: Connection) -> None:
    _give_way()
    threading.Thread(target=_end_with_caller, daemon=True).start()
    with suppress(EOFError, OSError):
        act = connection.recv()  # its modules are loaded here, and not before this process gives way
        while True:
            arguments = connection.recv()
            answer: tuple[Any, Exception | None]
            try:
                answer = act(*arguments), None
            except Exception as error:  # noqa: BLE001 - whatever it is, the caller hears of it
                error.add_note(traceback.format_exc())
                answer = None, error
            connection.send(answer)


def aside(cpus: Collection[int]) -> set[int]:
    """Those for whatever is no part of a link: a quarter of them, at least one; ``scripts/setup`` takes the same."""
    return set(sorted(cpus)[: max(1, len(cpus) // ASIDE)])


def _give_way() -> None:
    """A session of its own, so that the priority of this process is that of its group, and no key press ends it.

    It keeps to some of the CPUs, so that whoever it keeps waiting, for the kernel cannot be interrupted, has another to
    go to. What a machine does not know or allow is left.
    """
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP):  # they are for the caller, who ends it
        signal.signal(number, signal.SIG_IGN)
    os.setpriority(os.PRIO_PROCESS, 0, LOWEST)
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with suppress(OSError, AttributeError):
        os.sched_setaffinity(0, aside(os.sched_getaffinity(0)))
    with suppress(OSError):
        AUTOGROUP.write_text(str(LOWEST), encoding="ascii")


def _end_with_caller() -> None:
    """Nothing is left of a campaign that was killed, not even what it was about to find out."""
    caller = multiprocessing.parent_process()
    assert caller is not None
    caller.join()
    os._exit(1)
