"""Processes that share the work of a command, and end with it, also if it is killed."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor


def process_pool(most: int) -> ProcessPoolExecutor:
    """A pool of at most ``most`` processes.

    Those of a killed command would wait for work for ever, and hold the locks that they have inherited from it.
    """
    return ProcessPoolExecutor(most, initializer=end_with_caller)


def end_with_caller() -> None:
    """Let this process end with the process that has started it."""
    threading.Thread(target=_end_with_caller, daemon=True).start()


def _end_with_caller() -> None:
    caller = multiprocessing.parent_process()
    assert caller is not None
    caller.join()
    os._exit(1)
