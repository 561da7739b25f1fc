"""Images for other processors are named before anything runs, wherever runs are made."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.cli import dry_run, machine_check
from quicsat.docker.daemon_images import DaemonImages
from quicsat.docker.image_transfer import distribute
from quicsat.docker.processors import check_all, is_native
from quicsat.execution import campaign_setup, worker_service
from quicsat.execution.campaign_config import Conditions
from quicsat.execution.observer import Observer
from quicsat.execution.run_config import RunConfig
from quicsat.execution.worker_messages import RemoteConfig
from quicsat.execution.worker_service import WorkerService
from quicsat.model.clock import Clock
from quicsat.model.errors import MachineError
from quicsat.model.outcomes import Outcome
from quicsat.model.real_link import Host
from quicsat.model.results import ImageFacts
from quicsat.plan.limits import CampaignLimits
from tests import fakes
from tests.fakes import SIMULATOR, FakeEngine, Life, connect, endpoint, install, judge, select

ROOT = Path(__file__).resolve().parents[2]
KERNEL = "standard_init_linux.go:228: exec user process caused: exec format error"
"""What Docker 20.10 logs; podman and newer versions have other words around the last three."""


def refuse(life: Life) -> int:
    """A program that the kernel cannot execute."""
    life.say(KERNEL)
    return 1


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    engine = FakeEngine(good=endpoint, other=refuse)
    engine.architectures["other"] = "arm64"
    install(engine, monkeypatch, tmp_path)
    monkeypatch.setattr(campaign_setup, "analyse_once", judge)
    return engine


def facts(engine: FakeEngine, *names: str) -> dict[str, ImageFacts]:
    images = {name: DaemonImages(connect(engine)).find(name) for name in names}
    return {name: image for name, image in images.items() if image}


@pytest.mark.parametrize(
    ("here", "image", "native"),
    [
        ("x86_64", "amd64", True), ("x86_64", "386", True), ("x86_64", "arm64", False), ("x86_64", "", True),
        ("aarch64", "arm64", True), ("aarch64", "amd64", False), ("s390x", "s390x", True), ("s390x", "amd64", False),
    ],
)  # fmt: skip
def test_which_images_a_processor_runs_itself(here: str, image: str, native: bool, engine: FakeEngine) -> None:
    daemon = connect(engine)
    daemon.info["Architecture"] = here
    assert is_native(ImageFacts("x", "x", architecture=image), daemon) is native


def measure(folder: Path, said: list[str]) -> dict[str, Outcome]:
    """The outcome of a run by its client."""
    done = fakes.measure(select("good", "other"), folder, Observer(said.append), run=RunConfig())
    return {result.client: result.verdict.outcome for result in done.record.result_set.results}


def test_an_image_that_cannot_run_costs_only_its_own_runs(engine: FakeEngine, tmp_path: Path) -> None:
    said: list[str] = []
    assert measure(tmp_path / "results", said) == {"good": Outcome.SUCCEEDED, "other": Outcome.ERROR}
    [line] = [line for line in said if "arm64" in line]
    assert line.startswith("other: the image other is for arm64")
    assert "x86_64" in line
    assert "image for amd64" in line
    assert len([life for life in engine.all_lives if life.image == "other"]) == 1, "only the question itself"
    assert not engine.lives


def test_an_image_that_is_emulated_is_measured_and_named(engine: FakeEngine, tmp_path: Path) -> None:
    engine.programs["other"] = endpoint
    said: list[str] = []
    assert measure(tmp_path / "results", said) == {"good": Outcome.SUCCEEDED, "other": Outcome.SUCCEEDED}
    assert [line for line in said if "QEMU emulates arm64" in line] == said[:1]


def test_virtual_time_emulates_no_processor(engine: FakeEngine) -> None:
    engine.programs["other"] = endpoint
    with pytest.raises(MachineError, match=r"(?s)^a, b: .*arm64.*virtual time"):
        check_all(dict.fromkeys("ab", facts(engine, "other")["other"]), connect(engine), Clock.VIRTUAL, print)
    assert not engine.all_lives


def test_each_host_has_a_processor_of_its_own(engine: FakeEngine) -> None:
    images, said = facts(engine, "good"), list[str]()
    far = connect(engine)
    far.host, far.info = "far", far.info | {"Architecture": "aarch64"}
    conditions, observer = Conditions(Host("", "fake")), Observer(said.append)
    engines = campaign_setup.Engines(conditions, observer, connect(engine), {"far": far})
    engine.programs["good"] = refuse
    distribute(images, engines.daemon, [far], said.append)
    with pytest.raises(MachineError, match=r"amd64, but the Docker daemon at far has a .*aarch64"):
        engines.distribute(images, Clock.REAL)


def test_a_worker_whose_processor_is_another_does_not_take_part(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_service, "start_reaper", lambda *_: nullcontext())
    config = RemoteConfig("one", RunConfig(facts(engine, SIMULATOR, "good", "other")), 1)
    service = WorkerService(Host("", "fake"), judge, 1, measured=False, name="me")
    service.open(config)
    with pytest.raises(MachineError, match="other: the image other is for arm64"):
        service.begin()
    service.close()
    right = replace(config, run=RunConfig({name: config.run.images[name] for name in (SIMULATOR, "good")}))
    service.open(right)
    service.begin()
    service.close()


def test_plan_and_doctor_name_it_without_a_container(engine: FakeEngine, tmp_path: Path) -> None:
    request = dry_run.DryRunRequest(Host("", "fake"), ROOT, tmp_path, CampaignLimits(), (), 1)
    plan = fakes.plan_of(select("other"))
    assert any(line.startswith("other: the image other is for arm64") for line in dry_run.images(request, plan).lines)
    checks = machine_check._examine_daemon(connect(engine), {"simulator": "none", "x": "other"})
    assert [check.state for check in checks if check.what == "image x"] == [machine_check.State.WARN]
    assert not engine.all_lives
