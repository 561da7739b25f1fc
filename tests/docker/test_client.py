"""The connection to a daemon: it is refused, lost and reported, and its errors become harness faults."""

from __future__ import annotations

import docker
import pytest

from interop.docker.client import Daemon
from interop.docker.containers import ContainerSpec, create_container
from interop.model.errors import HarnessFault, MachineError
from interop.model.outcomes import ErrorCode
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


def test_the_cpus_are_those_of_the_machine_not_those_that_a_local_engine_keeps_to(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "APIClient", engine.client)
    monkeypatch.setattr("os.cpu_count", lambda: 48)
    told = Daemon("tcp://far", "mine").info["NCPU"]
    assert told != 48
    assert Daemon("unix:///run/docker.sock", "mine").info["NCPU"] == 48


def test_no_daemon(engine: FakeEngine, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interop.docker.containers.QUICK", 0)
    assert daemon.answers()
    engine.gone = True
    assert not daemon.answers()
    with pytest.raises(HarnessFault, match="Connection refused") as caught, create_container(daemon, spec()):
        pass
    assert caught.value.code == ErrorCode.DAEMON_FAULT
    with pytest.raises(MachineError, match="make setup"):
        connect(engine)


@pytest.mark.parametrize("url", ["unix:///no/such/socket", "tcp://127.0.0.1:1", "nonsense://x"])
def test_nothing_answers_at_the_url(url: str) -> None:
    with pytest.raises(MachineError, match="No Docker daemon answers"):
        Daemon(url, "mine")


def test_subnets(daemon: Daemon) -> None:
    assert daemon.subnets() == {"bridge": ("172.17.0.0/16",), "none": ()}
