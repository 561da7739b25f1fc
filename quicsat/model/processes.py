"""Processes that share the work of a command, and end with it, also if it is killed."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from quicsat.model.errors import MachineError


@contextmanager
def process_pool(most: int, begin: Callable[[], object] | None = None) -> Iterator[ProcessPoolExecutor]:
    """A pool of at most ``most`` processes, which are forked; ``begin``: what each of them does first.

    Those of a killed command would wait for work for ever, and hold the locks that they have inherited from it.
    Raises :class:`MachineError` at the end of the block if one of them was killed.
    """

    def initialise() -> None:
        end_with_caller()
        if begin is not None:
            begin()

    fork = multiprocessing.get_context("fork")  # nothing has to be sent to them
    try:
        with ProcessPoolExecutor(most, fork, initialise) as pool:
            try:
                yield pool
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    except BrokenProcessPool as error:
        raise MachineError(
            "A process that shared the work was killed, as the kernel does when memory runs out. Try again."
        ) from error


def end_with_caller() -> None:
    """Let this process end with the process that has started it."""
    threading.Thread(target=_end_with_caller, daemon=True).start()


def _end_with_caller() -> None:
    caller = multiprocessing.parent_process()
    assert caller is not None
    caller.join()
    os._exit(1)
