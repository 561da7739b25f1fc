"""The engine's lock for tests that run containers by themselves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from quicsat.docker.client import Daemon
from quicsat.execution.lock import exclusive
from quicsat.model.errors import LockedError


@contextmanager
def held(daemon: Daemon, holder: str, patience: float) -> Iterator[None]:
    """The lock, as soon as nobody else has it; the test fails if that takes more than ``patience`` seconds."""
    deadline = time.monotonic() + patience
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(exclusive(daemon.id, holder))
                break
            except LockedError as error:
                if time.monotonic() > deadline:
                    pytest.fail(f"the engine is busy: {error}")
                time.sleep(1)
        yield
