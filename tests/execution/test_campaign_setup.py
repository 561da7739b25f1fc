"""Who carries runs out: several Docker daemons driven directly, and what is loaded for that."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from quicsat.execution import campaign_setup
from quicsat.execution.campaign_config import Conditions
from quicsat.execution.cpu_monitor import CpuMonitor
from quicsat.execution.host_facts import processor
from quicsat.execution.observer import Observer
from quicsat.execution.run_campaign import CampaignOutcome
from quicsat.model.clock import Clock
from quicsat.model.errors import MachineError
from quicsat.model.implementation import Role
from quicsat.model.outcomes import Outcome
from quicsat.model.real_link import Host
from quicsat.plan.make_plan import make_plan
from quicsat.plan.selection import Selection
from tests.fakes import CASE, PATIENCE, Life, Loader, Program, endpoint, implementation, judge, measure, only_as

ROOT = Path(__file__).resolve().parents[2]


class Two:
    """This machine and another one, a Docker daemon each."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.engines = {name: Loader(name, good=endpoint, odd=endpoint) for name in ("here", "far")}
        urls = {"unix:///here": "here", "unix:///far": "far"}
        monkeypatch.setattr(docker, "APIClient", lambda base_url, **_: self.engines[urls[base_url]].client())
        monkeypatch.setattr(campaign_setup, "start_reaper", lambda *_: nullcontext())
        monkeypatch.setattr(campaign_setup, "analyse_once", judge)
        # its processes would wait for an idle CPU
        monkeypatch.setattr(campaign_setup, "analysis_pool", lambda act, **_: nullcontext(act))
        monkeypatch.setattr("quicsat.execution.lock.FOLDERS", (str(folder),))
        for module in ("client", "containers"):
            monkeypatch.setattr(f"quicsat.docker.{module}.REMOTE_PATIENCE", 0.2)
        monkeypatch.setattr("quicsat.execution.worker_pool.PROBE", 0.05)
        self.said: list[str] = []

    def measure(self, client: str = "good", repetitions: int = 4, **settings: Any) -> CampaignOutcome:
        ends = (implementation("good"),), (implementation(client),)
        selection = Selection(*ends, (replace(CASE, repetitions=repetitions),))
        plan = make_plan(*ends, selection.test_cases, seed=3)
        usual = {"daemon": Host("", "unix:///here"), "hosts": {"far": Host("far", "unix:///far", testbeds=1)}}
        options: dict[str, Any] = {**usual, "check_compliance": False, **settings}
        return measure(selection, plan, self.folder / "results", Observer(self.said.append), **options)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Two:
    return Two(tmp_path, monkeypatch)


def test_hosts_with_testbeds_carry_runs_out_too(two: Two) -> None:
    begun = {name: threading.Event() for name in two.engines}

    def meet(life: Life) -> int:
        """Wait for a first client at each daemon; later runs, and repetitions of a run, do not wait."""
        begun["far" if life.engine is two.engines["far"] else "here"].set()
        assert all(event.wait(PATIENCE) for event in begun.values()), "no client at one of the daemons"
        return endpoint(life)

    for engine in two.engines.values():
        engine.programs["odd"] = only_as(Role.CLIENT, meet)
    del two.engines["far"].programs["odd"]
    two.engines["far"].stock["odd"] = only_as(Role.CLIENT, meet)
    finished = two.measure("odd")
    assert (finished.fault, finished.out_of_time) == (None, None)
    assert [each.verdict.outcome for each in finished.record.result_set.results] == [Outcome.SUCCEEDED] * 4
    assert two.engines["far"].loaded == ["odd"]
    assert all(engine.all_lives and not engine.lives for engine in two.engines.values())
    hosts = [each.evidence.host for each in finished.record.history]
    assert {host.neighbours for host in hosts if host} == {0}


def test_the_runs_of_a_daemon_that_vanishes_go_to_the_others(two: Two) -> None:
    far = two.engines["far"]
    gone = threading.Event()

    def vanish(life: Life) -> int:
        far.gone = True
        gone.set()
        return endpoint(life)

    def wait(life: Life) -> int:
        gone.wait(PATIENCE)
        return endpoint(life)

    programs: dict[str, Program] = {"far": vanish, "here": wait}
    for name, program in programs.items():
        two.engines[name].programs["odd"] = only_as(Role.CLIENT, program)
    finished = two.measure("odd", repetitions=3)
    record = finished.record
    assert (finished.fault, finished.out_of_time) == (None, None)
    assert [each.verdict.outcome for each in record.result_set.results] == [Outcome.SUCCEEDED] * 3
    assert [each.verdict.code.value for each in record.history if each.verdict.outcome is Outcome.ERROR] == [
        "daemon-fault"
    ]


def test_a_host_that_is_this_machine_is_refused(two: Two) -> None:
    two.engines["far"].identity = "here"
    with pytest.raises(MachineError, match="are one Docker daemon"):
        two.measure()


def test_a_machine_may_have_two_entries_for_real_links(two: Two) -> None:
    entries = {name: Host(name, "unix:///far") for name in ("direct", "tunnel")}
    assert len(two.measure(repetitions=1, hosts=entries).record.result_set.results) == 1
    with pytest.raises(MachineError, match="are one Docker daemon"):
        two.measure(repetitions=1, hosts={name: replace(host, testbeds=1) for name, host in entries.items()})


def test_no_dask_is_loaded_without_a_cluster() -> None:
    modules = "quicsat.cli.main, quicsat.execution.run_campaign"
    script = f"import sys, {modules}; print({{'dask', 'distributed'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("clock", "testbeds", "elsewhere", "expected"),
    [
        (Clock.REAL, 1, None, False),
        (Clock.REAL, 2, None, True),
        (Clock.REAL, None, None, True),
        (Clock.REAL, 1, 1, True),
        (Clock.VIRTUAL, None, None, False),
        (Clock.VIRTUAL, 4, 1, False),
    ],
)
def test_analysis_yields_to_runs_whose_results_depend_on_cpu_time(
    clock: Clock, testbeds: int | None, elsewhere: int | None, expected: bool
) -> None:
    hosts = {"far": Host("far", "unix:///far", testbeds=elsewhere)} if elsewhere else {}
    conditions = Conditions(Host("", "unix:///here"), hosts, testbeds=testbeds)
    assert campaign_setup.analysis_disturbs(conditions, clock) is expected


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
    assert host is not None
    assert host.cpu_busy == (1.0 if name == "here" else None)
    assert host.processor == results.manifest.processor == (processor() if name == "here" else "")
