"""The main job: what comes before the first run, what the manifest tells, and a second signal."""

import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.config.tool_version import tool_version
from quicsat.docker.containers import ContainerSpec, create_container
from quicsat.execution import run_campaign as module
from quicsat.execution.admission import AUTO_TESTBEDS, fitting_testbeds
from quicsat.execution.campaign_config import CampaignOutcome
from quicsat.execution.host_facts import processor
from quicsat.execution.observer import Observer
from quicsat.model.clock import Clock
from quicsat.model.errors import InputError, MachineError
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.results import Provenance, RunResult, Versions
from quicsat.results.store import load
from tests.fakes import CASE, SIMULATOR, FakeEngine, connect, measure, run_of, select

ROOT = Path(__file__).resolve().parents[2]


def carry_out(directory: Path, *clients: str, said: list[str] | None = None) -> tuple[CampaignOutcome, list[RunResult]]:
    done = list[RunResult]()
    observer = Observer((said if said is not None else []).append, done.append)
    return measure(select(*clients), directory, observer), done


def test_the_manifest_tells_what_was_set_out_to_do(engine: FakeEngine, tmp_path: Path) -> None:
    engine.labels["good"] = {
        "org.quicsat.source": "PyPI good 2.0", "org.quicsat.patches": "good-a good-b", "org.quicsat.gso": "yes",
    }  # fmt: skip
    engine.labels[SIMULATOR] = {
        "org.opencontainers.image.version": "2", "org.quicsat.source": "Debian libns3-dev 3.43",
    }  # fmt: skip
    finished, done = carry_out(tmp_path / "results", "good", "bad")
    results = load(finished.directory).result_set
    assert results == finished.record.result_set
    assert results.results == tuple(done)
    assert [result.verdict.outcome for result in done] == [Outcome.SUCCEEDED, Outcome.FAILED]
    manifest = results.manifest
    assert (manifest.servers, manifest.clients) == (("good",), ("good", "bad"))
    assert (manifest.planned_runs, manifest.seed, manifest.test_cases) == (2, 3, (CASE,))
    assert set(manifest.images) == {"simulator", "good", "bad"}
    assert manifest.images["good"].provenance == Provenance("PyPI good 2.0", patches=("good-a", "good-b"), gso="yes")
    assert manifest.images["bad"].provenance == Provenance()
    assert manifest.versions == Versions(tool_version(), "99.0", "2", "Debian libns3-dev 3.43")
    assert manifest.processor == processor()
    assert results.finished is not None
    assert (finished.signal, finished.fault) == (None, None)
    assert engine.lives == {}
    assert {life.labels["quicsat.campaign"] for life in engine.all_lives} == {manifest.id}


def test_only_roles_that_the_plan_needs_are_checked(engine: FakeEngine, tmp_path: Path) -> None:
    checked = carry_out(tmp_path, "bad")[0].record.result_set.compliance
    assert {(found.implementation, found.role) for found in checked} == {("good", Role.SERVER), ("bad", Role.CLIENT)}


def test_what_an_earlier_campaign_left_is_removed_first(engine: FakeEngine, tmp_path: Path) -> None:
    said: list[str] = []
    with create_container(connect(engine, "dead"), ContainerSpec("old", "good")):
        carry_out(tmp_path, "good", said=said)
    assert any("removed 1 container" in line for line in said)


def test_an_image_that_cannot_be_got_ends_it_before_anything_is_made(engine: FakeEngine, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="nobody"):
        carry_out(tmp_path / "results", "nobody")
    assert not (tmp_path / "results").exists()
    assert engine.all_lives == []


def test_an_image_that_cannot_be_got_costs_its_runs_alone(engine: FakeEngine, tmp_path: Path) -> None:
    said: list[str] = []
    finished, done = carry_out(tmp_path, "nobody", "good", said=said)
    assert next(line for line in said if "nobody" in line).endswith(module.NOT_MADE)
    codes = {result.client: result.verdict.code for result in done}
    assert codes == {"nobody": ErrorCode.IMAGE_MISSING, "good": ErrorCode.NONE}
    assert finished.record.result_set.finished is not None
    assert "nobody" not in finished.record.result_set.manifest.images


def test_a_place_that_is_taken_ends_it_before_anything_is_made(engine: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    with pytest.raises(InputError, match="latest"):
        carry_out(tmp_path, "good")
    assert engine.all_lives == []


def test_a_second_signal_ends_it_at_once() -> None:
    script = """
import os, signal
from quicsat.execution.campaign_setup import Engines
from quicsat.execution.run_campaign import _signals
ours = Engines(None, None, None)
with _signals(ours):
    os.kill(os.getpid(), signal.SIGTERM)
    assert ours.stop.is_set()
    print("goes on", flush=True)
    os.kill(os.getpid(), signal.SIGINT)
    print("never", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "goes on\n")


def test_paths_are_shown_as_seen_from_here() -> None:
    with ExitStack() as stack:
        stack.callback(os.chdir, Path.cwd())
        os.chdir(ROOT)
        assert module._relative(ROOT / "results") == Path("results")
        assert module._relative(Path("/elsewhere")) == Path("/elsewhere")


@pytest.mark.parametrize(("rate", "testbeds"), [(2e6, AUTO_TESTBEDS), (50e6, AUTO_TESTBEDS), (51e6, 1), (250e6, 1)])
def test_links_of_which_no_two_fit_stand_alone(rate: float, testbeds: int) -> None:
    link = CASE.emulated.with_forward(rate=rate)
    slow, fast = run_of(), run_of(case=replace(CASE, link=link))
    assert fitting_testbeds([fast], Clock.REAL, 2) == testbeds
    assert fitting_testbeds([fast, slow], Clock.REAL, 2) == testbeds
    assert fitting_testbeds([], Clock.REAL, 2) == 1
    assert fitting_testbeds([fast, slow], Clock.VIRTUAL, 5) == 5
