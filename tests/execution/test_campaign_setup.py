"""Who carries runs out, and what is loaded for that."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from quicsat.execution import campaign_setup
from quicsat.execution.campaign_config import CampaignOutcome, Conditions
from quicsat.execution.cpu_monitor import CpuMonitor
from quicsat.execution.host_facts import processor
from quicsat.execution.observer import Observer
from quicsat.model.clock import Clock
from quicsat.model.errors import MachineError
from quicsat.model.outcomes import Outcome
from quicsat.model.real_link import Host
from tests.fakes import CASE, Loader, endpoint, install, judge, measure, select

ROOT = Path(__file__).resolve().parents[2]


class Two:
    """This machine and another one, a Docker daemon each."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.engines = {name: Loader(name, good=endpoint) for name in ("here", "far")}
        urls = {"unix:///here": "here", "unix:///far": "far"}
        install(self.engines["here"], monkeypatch, folder)
        monkeypatch.setattr(docker, "APIClient", lambda base_url, **_: self.engines[urls[base_url]].client())
        monkeypatch.setattr(campaign_setup, "analyse_once", judge)
        for module in ("client", "containers"):
            monkeypatch.setattr(f"quicsat.docker.{module}.REMOTE_PATIENCE", 0.2)
        monkeypatch.setattr("quicsat.execution.worker_pool.PROBE", 0.05)

    def measure(self, repetitions: int = 4, **settings: Any) -> CampaignOutcome:
        selection = select("good", cases=(replace(CASE, repetitions=repetitions),))
        usual = {"daemon": Host("", "unix:///here"), "hosts": {"far": Host("far", "unix:///far")}}
        options: dict[str, Any] = {**usual, "check_compliance": False, **settings}
        return measure(selection, self.folder / "results", **options)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Two:
    return Two(tmp_path, monkeypatch)


def test_two_hosts_that_are_one_machine_are_refused_unless_their_entries_say_so(two: Two) -> None:
    two.engines["far"].identity = "here"
    urls = {"direct": "unix:///far", "tunnel": "unix:///far"}
    entries = {name: Host(name, url) for name, url in urls.items()}
    assert len(two.measure(repetitions=1, hosts=entries).record.result_set.results) == 1
    with pytest.raises(MachineError, match="are one Docker daemon"):
        two.measure(hosts=entries | {"tunnel": Host("tunnel", "unix:///here")})


def test_no_dask_is_loaded_without_a_cluster() -> None:
    modules = "quicsat.cli.main, quicsat.execution.run_campaign"
    script = f"import sys, {modules}; print({{'dask', 'distributed'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("clock", "testbeds", "expected"),
    [
        (Clock.REAL, 1, False),
        (Clock.REAL, 2, True),
        (Clock.REAL, None, True),
        (Clock.VIRTUAL, None, False),
        (Clock.VIRTUAL, 4, False),
    ],
)
def test_analysis_yields_to_runs_whose_results_depend_on_cpu_time(
    clock: Clock, testbeds: int | None, expected: bool
) -> None:
    conditions = Conditions(Host("", "unix:///here"), testbeds=testbeds)
    assert campaign_setup.analysis_disturbs(conditions, clock) is expected


@pytest.mark.parametrize(
    ("clock", "name", "expected"),
    [(Clock.REAL, "here", True), (Clock.REAL, "far", False), (Clock.VIRTUAL, "here", False)],
)
def test_programs_that_would_distort_results_are_told(
    clock: Clock, name: str, expected: bool, two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_setup, "lasting_share", lambda: 0.5)
    said = list[str]()
    conditions = Conditions(Host("" if name == "here" else name, f"unix:///{name}"))
    with campaign_setup.open_engines(conditions, Observer(said.append)) as engines:
        engines.warn_of_other_programs(clock)
    assert any("Other programs use 50 % of the CPU time" in line for line in said) is expected


def test_a_host_without_root_makes_no_runs_in_real_time(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    far = two.engines["far"]
    told = far.info()
    monkeypatch.setattr(far, "info", lambda: told | {"SecurityOptions": ["name=rootless"]})
    with pytest.raises(MachineError, match="The engine at far runs without root access"):
        two.measure()


class BusyHere(CpuMonitor):
    """Watches a machine whose CPUs are all in use."""

    watches = False

    @contextmanager
    def watching(self) -> Iterator[CpuMonitor]:
        self.watches = True
        yield self

    def since(self, begin: float) -> float | None:
        return 1.0 if self.watches else None


@pytest.mark.parametrize("name", ["here", "far"])
def test_load_and_processor_of_this_machine_are_not_those_of_a_daemon_elsewhere(
    name: str, two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No daemon here is needed, and a busy computer of the user is no reason to exclude what another one measured."""
    monkeypatch.setattr(campaign_setup, "CpuMonitor", BusyHere)
    del two.engines["here" if name == "far" else "far"]
    done = two.measure(daemon=Host("" if name == "here" else name, f"unix:///{name}"), hosts={}, repetitions=1)
    results = done.record.result_set
    [host] = [each.evidence.host for each in results.results if each.verdict.outcome is Outcome.SUCCEEDED]
    assert host.cpu_busy == (1.0 if name == "here" else None)
    assert host.processor == results.manifest.processor == (processor() if name == "here" else "")
