"""Containers: their options and events, how they are removed, and their lifetime as the engine reports it."""

from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import requests
from docker.errors import APIError, NotFound

from quicsat.docker import containers, resource_use
from quicsat.docker.client import Daemon
from quicsat.docker.containers import (
    CAMPAIGN_LABEL,
    LABEL,
    MACHINE_LABEL,
    ContainerSpec,
    create_container,
    lifetime,
    list_containers,
    remove_container,
    remove_containers,
    this_machine,
)
from quicsat.model.emulated_link import Interval
from quicsat.model.errors import HarnessFault, LockedError
from quicsat.model.evidence import Exit
from quicsat.model.outcomes import ErrorCode
from tests.container_contract import ContainerContract, Programs
from tests.docker.conftest import spec
from tests.fakes import PATIENCE, FakeEngine, connect, end_with, hang
from tests.waiting import until


def test_a_container_bears_our_labels_and_limits(engine: FakeEngine, daemon: Daemon) -> None:
    full = ContainerSpec(
        "x", "idle", ("run", "it"), {"A": "b"}, hosts=(("a", "1.2.3.4"), ("a", "::1")), memory=7, pids=5,
        log_bytes=200,
    )  # fmt: skip
    with create_container(daemon, full):
        [life] = engine.lives.values()
    assert life.labels == {LABEL: life.labels[LABEL], CAMPAIGN_LABEL: "mine", MACHINE_LABEL: this_machine()}
    assert (life.command, life.environment) == (("run", "it"), {"A": "b"})
    config = life.host_config
    assert config["extra_hosts"] == ["a:1.2.3.4", "a:::1"]
    assert (config["mem_limit"], config["memswap_limit"], config["pids_limit"]) == (7, 7, 5)
    assert config["security_opt"] == ["no-new-privileges"]
    assert config["log_config"]["Config"] == {"max-size": "100", "max-file": "2"}


def test_cpu_time_of_a_container_of_this_machine_is_not_asked_of_the_daemon(
    engine: FakeEngine, daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource_use, "GROUPS", tmp_path)
    monkeypatch.setattr(resource_use, "PROCESSES", tmp_path)
    with create_container(daemon, spec()) as container:
        container.start()
        for place in (str(container.pid), container.id):
            (tmp_path / place).mkdir()
        (tmp_path / str(container.pid) / "cgroup").write_text(f"0::/{container.id}\n")
        (tmp_path / container.id / "cpu.stat").write_text("usage_usec 3000000\n")
        assert container.cpu_seconds() == 3.0
        (tmp_path / container.id / "cpu.stat").unlink()
        assert container.cpu_seconds() == 0.0
    assert "stats" not in [call for call, _ in engine.log]


def test_cpu_time_of_a_container_of_another_machine_is_asked_of_the_daemon(daemon: Daemon) -> None:
    with create_container(daemon, spec()) as container:
        container.start()
        before = container.cpu_seconds()
        assert until(lambda: container.cpu_seconds() > before > 0)


@pytest.mark.parametrize(
    ("driver", "version", "weight", "parent"),
    [("cgroupfs", "1", 7, "/"), ("cgroupfs", "1", None, None), ("systemd", "1", 7, None), ("cgroupfs", "2", 7, None)],
)
def test_what_has_a_weight_competes_with_the_whole_machine(
    engine: FakeEngine, daemon: Daemon, driver: str, version: str, weight: int | None, parent: str | None
) -> None:
    daemon.info.update(CgroupDriver=driver, CgroupVersion=version)
    with create_container(daemon, replace(spec(), weight=weight)):
        [life] = engine.lives.values()
    assert (life.host_config.get("cpu_shares"), life.host_config.get("cgroup_parent")) == (weight, parent)


def test_a_container_is_removed_however_the_block_is_left(engine: FakeEngine, daemon: Daemon) -> None:
    with pytest.raises(KeyboardInterrupt), create_container(daemon, spec()) as container:
        container.start()
        raise KeyboardInterrupt
    assert engine.lives == {}


def test_a_container_is_removed_even_if_its_creation_did_not_answer(
    engine: FakeEngine, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = engine.create_container

    def slow(image: str, **options: object) -> None:
        create(image, **options)
        raise requests.exceptions.ReadTimeout("read timed out")

    monkeypatch.setattr(engine, "create_container", slow)
    with pytest.raises(HarnessFault, match="timed out"), create_container(daemon, spec()):
        pass
    assert engine.lives == {}


class TestContract(ContainerContract):
    """At the engine of threads."""

    @pytest.fixture
    def programs(self, engine: FakeEngine) -> Programs:
        engine.programs["missing"] = hang
        engine.unstartable = {"missing"}
        return Programs(spec("idle"), spec("short"), spec("missing"))


def test_a_container_that_is_deaf_is_killed(daemon: Daemon) -> None:
    with create_container(daemon, spec("deaf")) as container:
        container.start()
        container.stop(grace=0.05)
        assert container.exit() == Exit(137, killed=True)


@pytest.mark.parametrize("reported", [True, False])
def test_that_memory_ran_out_may_be_reported_after_the_end(
    engine: FakeEngine, daemon: Daemon, monkeypatch: pytest.MonkeyPatch, reported: bool
) -> None:
    inspections: list[bool] = []
    inspect_container = engine.inspect_container

    def inspect(identity: str) -> dict[str, Any]:
        """The engine reports it when it is asked a second time."""
        answer = inspect_container(identity)
        answer["State"]["OOMKilled"] = reported and bool(inspections)
        inspections.append(answer["State"]["OOMKilled"])
        return answer

    engine.programs["short"] = end_with(137)
    with create_container(daemon, spec("short")) as container:
        container.start()
        assert container.wait(PATIENCE)
        monkeypatch.setattr(daemon.quick, "inspect_container", inspect)
        assert container.exit() == Exit(137, out_of_memory=reported)
    assert len(inspections) == (2 if reported else 1 + containers.OUT_OF_MEMORY_INSPECTIONS)


@pytest.mark.parametrize(("name", "signal", "status"), [("deaf", "SIGKILL", 137), ("idle", "SIGTERM", 0)])
def test_a_container_that_somebody_else_stops_is_no_failure_of_its_program(
    engine: FakeEngine, daemon: Daemon, name: str, signal: str, status: int
) -> None:
    """Neither is it if the engine no longer knows; it ends with the same status by itself."""
    engine.programs["short"] = end_with(status)
    now = datetime.now(UTC)
    moments = {"StartedAt": now - timedelta(seconds=10), "FinishedAt": now - timedelta(seconds=9)}
    for program, stopped in ((name, True), ("short", False)):
        with create_container(daemon, spec(program)) as container:
            container.start()
            [life] = engine.lives.values()
            life.times = {key: moment.isoformat() for key, moment in moments.items()}
            life.signalled_at = now.timestamp() - 8.5  # after the end that it brought
            if stopped:
                engine.kill(container.id, signal)
                assert container.wait(PATIENCE)
                with pytest.raises(HarnessFault, match="was stopped from outside") as caught:
                    container.exit()
                assert caught.value.code is ErrorCode.DAEMON_FAULT
                engine.refused = {"events"}
            assert container.wait(PATIENCE)
            assert container.exit().status == status
            engine.refused = set()


def test_an_engine_that_refuses_a_start_is_to_blame(engine: FakeEngine, daemon: Daemon) -> None:
    with create_container(daemon, spec()) as container:
        engine.refused = {"start"}
        with pytest.raises(HarnessFault, match="start was refused"):
            container.start()


def test_removal_is_patient_with_one_under_way_and_gives_up_in_the_end(
    engine: FakeEngine, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Mock(side_effect=[APIError("409: removal is already in progress"), NotFound("gone")])
    with monkeypatch.context() as patch:
        patch.setattr(engine, "remove_container", answers)
        remove_container(daemon, "x")
    assert answers.call_count == 2
    monkeypatch.setattr("quicsat.docker.containers.QUICK", 0)
    engine.refused = {"remove"}
    with pytest.raises(HarnessFault, match="remove was refused"):
        remove_container(daemon, "x")


def test_sweep_takes_what_is_ours_and_nothing_else(engine: FakeEngine, daemon: Daemon) -> None:
    other = connect(engine, "other")
    foreign = engine.create_container(
        "idle", name="quicsat-foreign", command=None, environment={}, host_config={}, hostname=None, labels={}
    )
    with create_container(other, spec(name="theirs")), create_container(daemon, spec()):
        assert len(list_containers(daemon)) == 2
        assert remove_containers(daemon, "mine") == 1
        assert remove_containers(daemon) == 1
    assert list(engine.lives) == [foreign["Id"]]


@pytest.mark.parametrize("label", [{LABEL: "1"}, {CAMPAIGN_LABEL: "mine"}])
def test_sweep_leaves_a_container_whose_label_is_its_images(
    engine: FakeEngine, daemon: Daemon, label: dict[str, str]
) -> None:
    engine.labels["idle"] = label
    daemon.slow.create_container(
        "idle", name="foreign", command=(), environment={}, host_config={}, hostname=None, labels=label
    )
    with create_container(daemon, spec()):
        assert remove_containers(daemon, "mine") == 1
        assert remove_containers(daemon) == 0
    assert [life.name for life in engine.lives.values()] == ["foreign"]


@pytest.mark.parametrize("hours", [0.1, 25.0])
def test_sweep_spares_the_campaign_of_another_machine(
    engine: FakeEngine, daemon: Daemon, monkeypatch: pytest.MonkeyPatch, hours: float
) -> None:
    """Its lock is not seen here. What is older than a day was left behind."""
    with ExitStack() as stack:
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(containers, "this_machine", lambda: "laptop 0123abcd")
            stack.enter_context(create_container(connect(engine, "other"), spec(name="theirs")))
        stack.enter_context(create_container(daemon, spec(name="ours")))
        for life in engine.lives.values():
            life.created -= hours * 3600
        if hours < 24:
            with pytest.raises(LockedError, match=r"another machine \(laptop\) .* 1 container\."):
                remove_containers(daemon)
            assert [life.name for life in engine.lives.values()] == ["theirs", "ours"]
        assert remove_containers(daemon, all_machines=hours < 24) == 2


def test_sweep_looks_again_for_what_comes_late(
    engine: FakeEngine, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, looks = Mock(), Mock(side_effect=[(), ("late",), (), ()])
    monkeypatch.setattr(containers, "list_containers", looks)
    monkeypatch.setattr(containers, "remove_container", remove)
    assert remove_containers(daemon, "mine", passes=2, pause=0) == 1
    remove.assert_called_once_with(daemon, "late")
    assert looks.call_count == 4


BEGIN, END = "2026-11-22T19:00:01.25Z", "2026-11-22T19:00:03.500000001Z"
NEVER = "0001-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"StartedAt": BEGIN, "FinishedAt": END, "Running": False}, Interval(1795374001.25, 1795374003.5)),
        ({"StartedAt": BEGIN, "FinishedAt": "2026-11-22T21:00:03.5+02:00"}, Interval(1795374001.25, 1795374003.5)),
        ({"StartedAt": "2026-11-22T19:00:01.254Z", "FinishedAt": BEGIN}, Interval(1795374001.25, 1795374001.254)),
        ({}, None),
        ({"StartedAt": BEGIN}, None),
        ({"StartedAt": NEVER, "FinishedAt": NEVER}, None),
        ({"StartedAt": BEGIN, "FinishedAt": NEVER}, None),
        ({"StartedAt": END, "FinishedAt": BEGIN}, None),
        ({"StartedAt": BEGIN, "FinishedAt": ""}, None),
        ({"StartedAt": BEGIN, "FinishedAt": "2026-11-22T19:00:03.5"}, None),
        ({"StartedAt": None, "FinishedAt": 3}, None),
    ],
)
def test_life_of_a_container_as_the_engine_tells_it(state: dict[str, object], expected: Interval | None) -> None:
    """In any zone; of a container that ends at once, the end may be noted first."""
    assert lifetime(state) == expected
