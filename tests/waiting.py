"""Waiting for what other threads and processes bring about, and time that passes when a test says so."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def until(true: Callable[[], object], patience: float = math.inf) -> bool:
    """Whether it becomes true within ``patience`` seconds; without them, the time limit of the test ends the wait."""
    deadline = time.monotonic() + patience
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def has_ended(process: int) -> bool:
    """Whether a process has ended, by its id."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@dataclass
class Later:
    """In place of the module ``time``: a deadline is over when a test says so, not when the machine is busy."""

    passed: float = 0.0
    """Seconds by which it is later."""

    def monotonic(self) -> float:
        """Seconds on the monotonic clock, moved on."""
        return time.monotonic() + self.passed

    def pass_by(self, seconds: float) -> None:
        """Move it on."""
        self.passed += seconds
