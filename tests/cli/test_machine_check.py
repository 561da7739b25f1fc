"""Checks of a machine: each problem is a line with a remedy."""

import os
import shutil
from pathlib import Path

import docker
import pytest

from quicsat.cli import machine_check
from quicsat.cli.machine_check import MachineCheck, State
from quicsat.docker.containers import ContainerSpec, create_container
from quicsat.model.errors import MachineError
from quicsat.model.real_link import Host
from tests.fakes import FakeEngine, Life, connect, simulate

IMAGES = {"simulator": "quicsat/simulator:1", "good": "quicsat/good:1"}


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    engine = FakeEngine(good=lambda _life: 0)
    monkeypatch.setattr(docker, "APIClient", engine.client)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.1, 0.1, 0.1))
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=2**40))
    return engine


def examine(images: dict[str, str] | None = None, url: str = "fake") -> dict[str, MachineCheck]:
    findings = list(machine_check.examine(Host("", url, named_by=""), images or IMAGES, Path("/no/such/results")))
    for finding in findings:
        assert finding.remedy or not finding.fails
        assert finding.text
        assert "\n" not in finding.text
    return {finding.what: finding for finding in findings}


def test_a_healthy_machine(engine: FakeEngine) -> None:
    found = examine()
    assert [finding for finding in found.values() if finding.state is not State.OK] == []
    assert set(found) == {
        "python", "tshark", "disk for results", "engine", "limits", "subnets", "leftovers", "load", "image simulator",
        "image good", "memlock", "real time",
    }  # fmt: skip
    assert engine.lives == {}


def test_no_engine(engine: FakeEngine) -> None:
    engine.gone = True
    found = examine()
    assert found["engine"].state is State.FAIL
    assert "make setup" in found["engine"].remedy
    assert "leftovers" not in found


def test_an_engine_that_breaks_down_meanwhile(engine: FakeEngine) -> None:
    engine.refused = {"networks"}
    assert examine()["engine"].state is State.FAIL


def test_no_tshark(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise MachineError("tshark is missing.\nInstall it.")

    monkeypatch.setattr(machine_check, "tshark_version", missing)
    assert examine()["tshark"] == MachineCheck("tshark", "tshark is missing.", "Install it.")


def test_a_full_disk(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=2**20))
    monkeypatch.setattr(machine_check, "LOCAL_SOCKET", "fake")
    found = examine()
    assert found["disk for results"].state is found["disk for images"].state is State.WARN


def test_an_old_or_odd_engine(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeEngine, "api_version", "1.39")
    assert "newer" in examine()["engine"].remedy
    monkeypatch.setattr(FakeEngine, "api_version", "1.44")
    assert examine()["engine"].state is State.OK
    info = engine.info()
    monkeypatch.setattr(engine, "info", lambda: info | {"Architecture": "aarch64"})
    assert "x86-64" in examine()["engine"].remedy


def test_an_engine_without_limits(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    info = engine.info()
    monkeypatch.setattr(engine, "info", lambda: info | {"SecurityOptions": ["name=rootless"]})
    assert "cgroup v2" in examine()["limits"].remedy


@pytest.mark.parametrize("subnet", ["193.167.0.0/24", "193.167.100.0/24", "fd00:cafe:cafe::/64", "193.0.0.0/8"])
def test_another_runner_has_the_contracts_addresses(
    engine: FakeEngine, subnet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = {"Name": "leftnet", "IPAM": {"Config": [{"Subnet": subnet}]}}
    monkeypatch.setattr(engine, "networks", lambda: [network])
    found = examine()["subnets"]
    assert found.state is State.OK
    assert f"leftnet ({subnet})" in found.text


def test_leftovers(engine: FakeEngine) -> None:
    with create_container(connect(engine, "dead"), ContainerSpec("a", "good")):
        assert "1 container" in examine()["leftovers"].text


def test_a_busy_machine(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (1.9, 1.0, 1.0))
    assert examine()["load"].state is State.WARN


def test_images_that_are_not_here(engine: FakeEngine) -> None:
    found = examine({"simulator": "quicsat/none:1"})
    assert found["image simulator"].state is State.OK
    assert "is not here" in found["image simulator"].text
    assert "memlock" not in found


def test_what_the_engine_refuses(engine: FakeEngine) -> None:
    def refuse(life: Life) -> int:
        return 1 if life.command[:1] == ("chrt",) or life.host_config["ulimits"] else simulate(life)

    engine.programs["simulator"] = refuse
    found = examine()
    assert (found["memlock"].state, found["real time"].state) == (State.OK, State.WARN)
    assert "cannot get" in found["memlock"].text


# ---- machines of real links -----------------------------------------------------------------


def of_hosts(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, skew: float = 0.0, *, host_network: bool = False
) -> dict[str, tuple[State, str]]:
    monkeypatch.setattr("docker.APIClient", engine.client)
    host = Host("far", "unix:///fake", clock_skew=skew, host_network=host_network)
    return {found.text.split()[0]: (found.state, found.text) for found in machine_check.examine_hosts([host])}


def test_each_host_is_visited(monkeypatch: pytest.MonkeyPatch) -> None:
    found = of_hosts(FakeEngine(), monkeypatch)
    assert {words: state for words, (state, _) in found.items()} == {
        "99.0,": State.OK, "none": State.OK, "its": State.OK,
    }  # fmt: skip
    assert "unix:///fake" not in found["99.0,"][1]


def test_a_host_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine()
    engine.gone = True
    assert of_hosts(engine, monkeypatch)["No"] == (
        State.FAIL, "No Docker daemon answers at far: Connection refused",
    )  # fmt: skip


def test_a_clock_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    state, text = of_hosts(FakeEngine(), monkeypatch, skew=-3600.0)["its"]
    assert state is State.WARN
    assert "1 h 0 min ahead" in text


def test_a_daemon_without_a_bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine()
    monkeypatch.setattr(engine, "networks", lambda: [{"Name": "none", "IPAM": {"Config": None}}])
    assert of_hosts(engine, monkeypatch)["there"][0] is State.FAIL
    assert "there" not in of_hosts(engine, monkeypatch, host_network=True)


def test_endpoints_in_a_hosts_own_network_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_hosts(FakeEngine(), monkeypatch, host_network=True)["endpoints"][0] is State.WARN
