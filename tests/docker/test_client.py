"""The connection to a daemon: it is refused, lost and reported, and its errors become harness faults."""

import os
import uuid
from pathlib import Path
from typing import Any

import docker
import pytest

from quicsat.docker.client import Daemon
from quicsat.docker.containers import create_container
from quicsat.model.errors import HarnessFault, MachineError
from quicsat.model.outcomes import ErrorCode
from tests.docker.conftest import spec
from tests.fakes import FakeEngine, connect


def test_the_cpus_are_those_of_the_machine_not_those_that_a_local_engine_keeps_to(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "APIClient", engine.client)
    monkeypatch.setattr("os.cpu_count", lambda: 48)
    told = Daemon("tcp://far", "mine").info["NCPU"]
    assert told != 48
    assert Daemon("unix:///run/docker.sock", "mine").info["NCPU"] == 48


STORAGE = "/home/me/.local/share/containers/storage"


class Podman(FakeEngine):
    """Reports as podman does: with another identifier each time."""

    def info(self) -> dict[str, Any]:
        own = {"ID": str(uuid.uuid4()), "Name": "here", "DockerRootDir": STORAGE, "Architecture": "amd64"}
        return super().info() | own

    def version(self) -> dict[str, Any]:
        return {"Components": [{"Name": "Podman Engine"}, {"Name": "Conmon"}]}


def test_the_identity_of_podman_is_that_of_its_storage() -> None:
    one, again = connect(Podman(), "a"), connect(Podman(), "b")
    assert one.info["ID"] != again.info["ID"]
    assert one.id == again.id == f"podman here {STORAGE}"
    assert (one.info["ServerVersion"], one.info["Architecture"]) == ("podman 99.0", "x86_64")
    assert connect(FakeEngine(), "a").info["ServerVersion"] == "99.0"


@pytest.mark.parametrize(
    ("told", "rootless", "limits"),
    [
        ({}, False, True),
        ({"SecurityOptions": ["name=seccomp", "name=rootless"], "CgroupVersion": "2"}, True, True),
        ({"SecurityOptions": ["name=rootless"], "CgroupVersion": "1"}, True, False),
        ({"SecurityOptions": None, "CgroupVersion": "1"}, False, True),
    ],
)
def test_limits_without_root(
    told: dict[str, Any], rootless: bool, limits: bool, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = engine.info()
    monkeypatch.setattr(engine, "info", lambda: known | told)
    daemon = connect(engine, "mine")
    assert (daemon.rootless, daemon.limits_containers) == (rootless, limits)


def test_the_owner_of_a_socket_tells_that_podman_has_no_root(
    tmp_path: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "APIClient", Podman().client)
    path = tmp_path / "podman.sock"
    path.touch()
    os.chown(path, os.getuid(), os.getgid())
    assert Daemon(f"unix://{path}", "mine").rootless is (os.getuid() != 0)
    monkeypatch.setattr("quicsat.docker.client._owner", lambda _path: 1001)
    assert Daemon(f"unix://{path}", "mine").rootless
    monkeypatch.setattr(docker, "APIClient", engine.client)
    assert not Daemon("unix:///tmp/tunnel.sock", "mine").rootless  # it leads to Docker


def test_no_daemon(engine: FakeEngine, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quicsat.docker.containers.QUICK", 0)
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
