"""Fixtures of containers: an engine of threads with images for each kind of program, and a connection to it."""

import pytest

from quicsat.docker.client import Daemon
from quicsat.docker.containers import ContainerSpec
from tests.fakes import FakeEngine, Life, connect, end_with, hang


def wait_for_term(life: Life) -> int:
    life.say("hello")
    life.terminated.wait()
    return 0


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine(idle=wait_for_term, deaf=hang, short=end_with(3))


@pytest.fixture
def daemon(engine: FakeEngine) -> Daemon:
    return connect(engine, "mine")


def spec(image: str = "idle", name: str = "quicsat-mine-x") -> ContainerSpec:
    return ContainerSpec(name, image)
