"""The engine of tests that run containers by themselves, and its lock."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from quicsat.docker.client import Daemon
from quicsat.execution.lock import exclusive
from quicsat.model.errors import LockedError, MachineError

URL = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


@pytest.fixture(scope="session")
def daemon() -> Daemon:
    """The real engine."""
    try:
        return Daemon(URL, f"test-{os.getpid()}")
    except MachineError as error:
        pytest.skip(f"NO DOCKER ENGINE, nothing of these tests was run: {error}")


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
