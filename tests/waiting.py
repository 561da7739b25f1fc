"""Waiting for what other threads and processes bring about."""

import time
from collections.abc import Callable


def until(true: Callable[[], object], patience: float = 60.0) -> bool:
    """Whether it becomes true within ``patience`` seconds."""
    deadline = time.monotonic() + patience
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
