"""Analysis beside runs that are under way: in processes of its own that take the CPU only when nobody else wants it.

A thread cannot give way like that. The lowest priority counts among tasks of one group only, and Linux makes groups of
sessions (sched(7), "The autogroup feature"); and a thread that runs Python keeps all others of its process waiting.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from interop.errors import HarnessFault
from interop.execution.host import LOWEST
from interop.model import ErrorCode

AUTOGROUP = Path("/proc/self/autogroup")
T = TypeVar("T")
END_PATIENCE = 5.0
"""Seconds within which a process that has nothing to do ends."""


@contextmanager
def background(act: Callable[..., T]) -> Iterator[Callable[..., T]]:
    """A function that carries ``act`` out, which must be importable, in as many processes as there are calls at a time.

    It raises what ``act`` raises, and :class:`HarnessFault` if its process was killed. The processes end with the
    block, or with the process that called, however that ends.
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

    def call(self, *arguments: Any) -> Any:
        with self._lock:
            process = self._idle.pop() if self._idle else _Process(self._act)
        result, error = process.call(arguments)
        with self._lock:
            self._idle.append(process)
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        for process in self._idle:
            process.close()


class _Process:
    """One process, and our end of the pipe that joins it to us: when that is closed it ends."""

    def __init__(self, act: Callable[..., Any]) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._connection, other = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(act, other), daemon=True, name="analysis")
        self._process.start()
        other.close()

    def call(self, arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
        try:
            self._connection.send(arguments)
            answer: tuple[Any, Exception | None] = self._connection.recv()
        except (EOFError, OSError) as error:
            self.close()
            ended = f"The analysis ended with exit status {self._process.exitcode}; was memory short?"
            raise HarnessFault(ErrorCode.HARNESS_FAULT, ended) from error
        return answer

    def close(self) -> None:
        self._connection.close()
        self._process.join(END_PATIENCE)
        self._process.kill()
        self._process.join()


def _serve(act: Callable[..., Any], connection: Connection) -> None:
    _give_way()
    with contextlib.suppress(EOFError, OSError):
        while True:
            arguments = connection.recv()
            answer: tuple[Any, Exception | None]
            try:
                answer = act(*arguments), None
            except Exception as error:  # noqa: BLE001 - whatever it is, the caller hears of it
                error.add_note(traceback.format_exc())
                answer = None, error
            connection.send(answer)


def _give_way() -> None:
    """A session of its own, so that the priority of this process is that of its group, and no key press ends it."""
    os.setsid()
    os.setpriority(os.PRIO_PROCESS, 0, LOWEST)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError):
        AUTOGROUP.write_text(str(LOWEST), encoding="ascii")
