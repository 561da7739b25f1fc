"""The Docker daemon: containers go with their block, and the library's errors become ours."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from queue import SimpleQueue

import docker
import pytest
import requests
from docker.errors import APIError, NotFound

from interop.errors import HarnessFault, MachineError
from interop.execution.archive import pack
from interop.execution.daemon import CAMPAIGN_LABEL, LABEL, ContainerSpec, Daemon, Event, StartFailure
from interop.model import ErrorCode, Exit
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


def test_a_container_bears_our_labels_and_limits(engine: FakeEngine, daemon: Daemon) -> None:
    full = ContainerSpec(
        "x", "idle", ("run", "it"), {"A": "b"}, hosts=(("a", "1.2.3.4"), ("a", "::1")), memory=7, pids=5,
        log_bytes=200,
    )  # fmt: skip
    with daemon.container(full):
        [life] = engine.lives.values()
    assert life.labels == {LABEL: "1", CAMPAIGN_LABEL: "mine"}
    assert (life.command, life.environment) == (("run", "it"), {"A": "b"})
    config = life.host_config
    assert config["extra_hosts"] == ["a:1.2.3.4", "a:::1"]
    assert (config["mem_limit"], config["memswap_limit"], config["pids_limit"]) == (7, 7, 5)
    assert config["security_opt"] == ["no-new-privileges"]
    assert config["log_config"]["Config"] == {"max-size": "100", "max-file": "2"}


def test_the_cpus_are_those_of_the_machine_not_those_that_a_local_engine_keeps_to(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "APIClient", engine.client)
    monkeypatch.setattr("os.cpu_count", lambda: 48)
    told = Daemon("tcp://far", "mine").info["NCPU"]
    assert told != 48
    assert Daemon("unix:///run/docker.sock", "mine").info["NCPU"] == 48


@pytest.mark.parametrize(
    ("driver", "version", "weight", "parent"),
    [("cgroupfs", "1", 7, "/"), ("cgroupfs", "1", None, None), ("systemd", "1", 7, None), ("cgroupfs", "2", 7, None)],
)
def test_what_has_a_weight_competes_with_the_whole_machine(
    engine: FakeEngine, daemon: Daemon, driver: str, version: str, weight: int | None, parent: str | None
) -> None:
    daemon.info.update(CgroupDriver=driver, CgroupVersion=version)
    with daemon.container(replace(spec(), weight=weight)):
        [life] = engine.lives.values()
    assert (life.host_config.get("cpu_shares"), life.host_config.get("cgroup_parent")) == (weight, parent)


def test_a_container_is_removed_however_the_block_is_left(engine: FakeEngine, daemon: Daemon) -> None:
    with pytest.raises(KeyboardInterrupt), daemon.container(spec()) as container:
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
    with pytest.raises(HarnessFault, match="timed out"), daemon.container(spec()):
        pass
    assert engine.lives == {}


def test_life_of_a_container(daemon: Daemon) -> None:
    with daemon.container(spec()) as container:
        assert container.exit() == Exit(None)
        container.put(pack({"a/b": b"content"}))
        with container.fetch("/a") as archive:
            assert b"content" in b"".join(archive)
        with container.fetch("/none") as archive:
            assert b"content" not in b"".join(archive)
        events: SimpleQueue[Event] = SimpleQueue()
        container.start()
        container.watch(events, lines=True)
        assert events.get(timeout=5) == Event(container, "hello")
        assert container.running()
        assert not container.wait(0)
        container.stop(grace=5)
        assert events.get(timeout=5) == Event(container, None)
        assert container.exit() == Exit(0, killed=True)
        assert b"hello" in container.output()
        container.signal("SIGTERM")  # has ended: nothing happens
        container.stop(grace=5)


def test_a_container_is_removed_although_nobody_reads_its_archive_to_the_end(
    daemon: Daemon, engine: FakeEngine
) -> None:
    """While its stream is open an engine keeps the container; a traceback may hold it, as when our disk is full."""
    with pytest.raises(OSError, match="full") as kept, daemon.container(spec()) as container:
        container.put(pack({"large": bytes(1000)}))
        with container.fetch("/large") as archive:
            next(archive)
            raise OSError("the disk is full")
    assert kept.traceback
    assert engine.lives == {}


def test_a_container_that_ended_by_itself_was_not_killed(daemon: Daemon) -> None:
    with daemon.container(spec("short")) as container:
        container.start()
        assert container.wait(5)
        container.stop(grace=1)
        assert container.exit() == Exit(3)


def test_a_container_that_is_deaf_is_killed(daemon: Daemon) -> None:
    with daemon.container(spec("deaf")) as container:
        container.start()
        container.stop(grace=0.05)
        assert container.exit() == Exit(137, killed=True)


def test_who_is_to_blame_if_a_container_does_not_start(engine: FakeEngine, daemon: Daemon) -> None:
    engine.unstartable = {"idle"}
    with daemon.container(spec()) as container, pytest.raises(StartFailure, match="no such file"):
        container.start()
    engine.unstartable = set()
    with daemon.container(spec()) as container:
        engine.refused = {"start"}
        with pytest.raises(HarnessFault, match="start was refused"):
            container.start()


def test_an_image_that_is_missing(daemon: Daemon) -> None:
    with pytest.raises(HarnessFault) as caught, daemon.container(spec("nothing")):
        pass
    assert caught.value.code == ErrorCode.IMAGE_MISSING
    assert daemon.find("nothing") is None


def test_facts_of_an_image(daemon: Daemon) -> None:
    facts = daemon.find("example/idle:1")
    assert facts is not None
    assert (facts.reference, facts.id, facts.version) == ("example/idle:1", "idle", "1.0")


def test_no_daemon(engine: FakeEngine, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interop.execution.daemon.QUICK", 0)
    assert daemon.answers()
    engine.gone = True
    assert not daemon.answers()
    with pytest.raises(HarnessFault, match="Connection refused") as caught, daemon.container(spec()):
        pass
    assert caught.value.code == ErrorCode.DAEMON_FAULT
    with pytest.raises(MachineError, match="make setup"):
        connect(engine)


@pytest.mark.parametrize("url", ["unix:///no/such/socket", "tcp://127.0.0.1:1", "nonsense://x"])
def test_nothing_answers_at_the_url(url: str) -> None:
    with pytest.raises(MachineError, match="No Docker daemon answers"):
        Daemon(url, "mine")


def test_removal_is_patient_with_one_under_way(
    engine: FakeEngine, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [APIError("409: removal is already in progress"), NotFound("gone")]

    def busy(*_: object, **__: object) -> None:
        raise answers.pop(0)

    monkeypatch.setattr(engine, "remove_container", busy)
    daemon.remove("x")
    assert answers == []


def test_removal_gives_up_in_the_end(engine: FakeEngine, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interop.execution.daemon.QUICK", 0)
    engine.refused = {"remove"}
    with pytest.raises(HarnessFault, match="remove was refused"):
        daemon.remove("x")


def test_sweep_takes_what_is_ours_and_nothing_else(engine: FakeEngine, daemon: Daemon) -> None:
    other = connect(engine, "other")
    foreign = engine.create_container(
        "idle", name="quicsat-foreign", command=None, environment={}, host_config={}, hostname=None, labels={}
    )
    with other.container(spec(name="theirs")), daemon.container(spec()):
        assert len(daemon.leftovers()) == 2
        assert daemon.sweep("mine") == 1
        assert daemon.sweep() == 1
    assert list(engine.lives) == [foreign["Id"]]


def test_sweep_looks_again_for_what_comes_late(
    engine: FakeEngine, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([(), ("late",), (), ()])
    removed: list[str] = []
    monkeypatch.setattr(daemon, "leftovers", lambda _campaign: next(looks))
    monkeypatch.setattr(daemon, "remove", removed.append)
    assert daemon.sweep("mine", passes=2, pause=0) == 1
    assert removed == ["late"]


def test_subnets(daemon: Daemon) -> None:
    assert daemon.subnets() == {"bridge": ("172.17.0.0/16",), "none": ()}


class Registry(FakeEngine):
    """Answers pulls and builds with prepared messages."""

    def __init__(self, *messages: dict[str, str]) -> None:
        super().__init__(idle=wait_for_term)
        self.messages = messages

    def pull(self, reference: str = "", **_options: object) -> Iterator[dict[str, str]]:
        return iter(self.messages)

    build = pull

    def import_image_from_data(self, *_: object, **__: object) -> str:
        return '{"status": "sha256:1"}'

    def tag(self, *_: object) -> bool:
        raise NotFound("No such image")


def test_pull(monkeypatch: pytest.MonkeyPatch) -> None:
    for messages, found in ([{"status": "Pulling"}], True), ([{"error": "denied"}], False):
        engine = Registry(*messages)
        monkeypatch.setattr(docker, "APIClient", engine.client)
        assert (Daemon("fake", "mine").pull("idle", 1) is not None) == found


def test_build() -> None:
    lines: list[str] = []
    daemon = connect(Registry({"stream": "Step 1/2 : FROM x\n"}, {"stream": "\n"}, {"aux": ""}))
    assert daemon.build(io.BytesIO(), "idle:1", {}, lines.append).id == "idle"
    assert lines == ["Step 1/2 : FROM x", ""]
    with pytest.raises(HarnessFault, match="returned a non-zero code: 7"):
        connect(Registry({"error": "returned a non-zero code: 7"})).build(io.BytesIO(), "idle", {}, lines.append)
    with pytest.raises(HarnessFault, match="without an image"):
        connect(Registry()).build(io.BytesIO(), "nothing", {}, lines.append)


def test_import_and_tag() -> None:
    daemon = connect(Registry())
    assert daemon.import_rootfs(io.BytesIO(), "idle:1").id == "idle"
    with pytest.raises(HarnessFault, match="No such image"):
        daemon.tag("idle", "other:1")
