"""Analysis in processes of its own: of the lowest priority beside other runs, so that it uses only idle CPU time.

A thread is not enough. Priorities count only among the tasks of one group, and Linux groups tasks by session (sched(7),
"The autogroup feature") unless systemd groups them; and a thread that runs Python code blocks the other threads of its
process.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import threading
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from quicsat.execution.cpu_monitor import leave_out
from quicsat.execution.host_facts import LOWEST
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode
from quicsat.model.processes import end_with_caller

AUTOGROUP = Path("/proc/self/autogroup")
ASIDE = 4
"""One CPU in so many, but at least one, serves analysis and engine; links and endpoints may use all CPUs."""
TRIES = 2
"""Processes that may be killed over one call."""


@contextmanager
def analysis_pool(act: Callable[..., Any], *, low_priority: bool = True) -> Iterator[Callable[..., Any]]:
    """A function that calls ``act``, which must be importable, in one of as many processes as there are parallel calls.

    ``low_priority``: runs are under way at the same time. Where none is, a low priority protects nothing, and on a busy
    machine each run would wait minutes for the analysis of the one before it.

    The function raises what ``act`` raises, and :class:`HarnessFault` if ``TRIES`` processes were killed over one call.
    The processes end with the block, or with the calling process, however that ends.
    """
    with closing(_Processes(act, low_priority)) as processes:
        yield processes.call


class _Processes:
    def __init__(self, act: Callable[..., Any], low_priority: bool) -> None:
        self._act = act
        self._low_priority = low_priority
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
                self._idle.append(_Process(self._act, self._low_priority))
                self._all.append(self._idle[-1])
            return self._idle.pop()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        for process in self._all:
            process.end()


class _Process:
    """One process, and this end of the pipe to it."""

    def __init__(self, act: Callable[..., Any], low_priority: bool) -> None:
        self._ending = threading.Lock()
        spawn = multiprocessing.get_context("spawn")
        self._connection, other = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(other, low_priority), daemon=True, name="analysis")
        self._process.start()
        if low_priority:
            leave_out(self._process.ident or 0)
        other.close()
        with suppress(OSError):  # it has ended already, which the first call will see
            self._connection.send(act)

    def call(self, arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
        self._connection.send(arguments)
        answer: tuple[Any, Exception | None] = self._connection.recv()
        return answer

    def end(self) -> int | None:
        """Kill it; returns its exit status. A thread that waits for its answer gets EOFError."""
        with self._ending:
            self._process.kill()
            self._process.join()
            return self._process.exitcode


def _serve(connection: Connection, low_priority: bool) -> None:
    _leave_terminal()
    _limit_memory()
    if low_priority:
        _lower_priority()
    end_with_caller()
    with suppress(EOFError, OSError):
        act = connection.recv()  # this imports its modules, after the priority has been lowered
        while True:
            arguments = connection.recv()
            answer: tuple[Any, Exception | None]
            try:
                answer = act(*arguments), None
            except Exception as error:  # noqa: BLE001 - the caller raises it
                error.add_note(traceback.format_exc())
                answer = None, error
            connection.send(answer)


def analysis_cpus(cpus: Collection[int]) -> set[int]:
    """The CPUs for everything but links and endpoints: a quarter of them, at least one, as in ``scripts/setup``."""
    return set(sorted(cpus)[: max(1, len(cpus) // ASIDE)])


def _leave_terminal() -> None:
    """Start a session: the terminal sends it no signals, and its priority is that of its group of tasks."""
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP):  # the caller handles them and ends this process
        signal.signal(number, signal.SIG_IGN)


def _limit_memory() -> None:
    """Let a request for most of the machine's memory fail, as what an endpoint has written may cause: the process can
    then say what it was reading, and the kernel need not end it."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = memory // 2 if hard == resource.RLIM_INFINITY else min(memory // 2, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _lower_priority() -> None:
    """Use only idle CPU time, and some of the CPUs.

    Tasks that wait while the kernel cannot be preempted have the other CPUs. Whatever the machine does not support or
    allow is skipped.
    """
    os.setpriority(os.PRIO_PROCESS, 0, LOWEST)
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with suppress(OSError, AttributeError):
        os.sched_setaffinity(0, analysis_cpus(os.sched_getaffinity(0)))
    with suppress(OSError):
        AUTOGROUP.write_text(str(LOWEST), encoding="ascii")
