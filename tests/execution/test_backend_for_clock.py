"""Campaigns in virtual time: which back end is chosen, what is stored, and how such a campaign goes on."""

import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quicsat.execution.admission import Admission
from quicsat.execution.backend_for_clock import emulated_backend
from quicsat.execution.campaign_config import CampaignOutcome, Conditions
from quicsat.execution.cpu_monitor import CpuMonitor
from quicsat.execution.observer import Observer
from quicsat.execution.run_campaign import resume_campaign
from quicsat.execution.run_config import RunConfig
from quicsat.links.ns3_testbed import Ns3Backend
from quicsat.links.virtual_machine import DIRECTORY, VirtualBackend
from quicsat.model.clock import Clock
from quicsat.model.cpu_cost import DEFAULT, CostModel, CpuCost
from quicsat.model.errors import MachineError
from quicsat.model.gateways import PEPS
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.perturbation import NOMINAL, USUAL, WAKE_UP_LATENCIES, perturbation_of
from quicsat.model.real_link import Host
from quicsat.model.results import ImageFacts
from quicsat.model.test_case import TestCase
from quicsat.plan.selection import Selection
from tests import fakes
from tests.execution.test_remaining_work import interrupt
from tests.fakes import (
    CASE,
    LINK,
    LINK_GATEWAYS,
    PATIENCE,
    SIMULATOR,
    VIRTUAL_TIME,
    FakeEngine,
    Life,
    after,
    connect,
    described,
    endpoint,
    implementation,
    leaves,
    only_as,
    run_of,
    select,
)

IMAGES = {name: ImageFacts(name, name) for name in (SIMULATOR, VIRTUAL_TIME)}
FACTOR = 2.0


VIRTUAL = RunConfig(clock=Clock.VIRTUAL, cpu_cost_factor=FACTOR)


def measure(
    directory: Path, *clients: str, repetitions: int = 1, cases: tuple[TestCase, ...] = (CASE,), **options: Any
) -> CampaignOutcome:
    selection = select(*clients, cases=tuple(replace(case, repetitions=repetitions) for case in cases))
    return fakes.measure(selection, directory, **{"testbeds": None, "run": VIRTUAL, **options})


def costs(life: Life) -> dict[str, str]:
    """Of the endpoints of a machine, as its description states them."""
    values = described(life.files[f"{DIRECTORY}/input"])[0]
    return {str(role): values[f"{role}.costs"][0] for role in Role if f"{role}.costs" in values}


def nanoseconds(model: CostModel, factor: float) -> str:
    return " ".join(str(round(cost * factor * 1e9)) for cost in model.in_order)


def machines(engine: FakeEngine) -> list[Life]:
    return [life for life in engine.all_lives if life.command[:1] == ("run",)]


# ---- the back end ---------------------------------------------------------------------------


@pytest.mark.parametrize(("clock", "kind"), [(Clock.REAL, Ns3Backend), (Clock.VIRTUAL, VirtualBackend)])
def test_the_clock_chooses_the_back_end(clock: Clock, kind: type) -> None:
    backend = emulated_backend(connect(FakeEngine()), RunConfig(IMAGES, clock=clock))
    assert type(backend) is kind


def test_real_time_needs_no_image_of_virtual_time() -> None:
    daemon, config = connect(FakeEngine()), RunConfig({SIMULATOR: ImageFacts(SIMULATOR, SIMULATOR)})
    emulated_backend(daemon, config)
    with pytest.raises(KeyError, match=VIRTUAL_TIME):
        emulated_backend(daemon, replace(config, clock=Clock.VIRTUAL))


# ---- a campaign -----------------------------------------------------------------------------


def test_results_and_manifest_tell_the_clock(engine: FakeEngine, tmp_path: Path) -> None:
    finished = measure(tmp_path / "results", "good", "bad")
    results = finished.record.result_set
    outcomes = {each.client: each.verdict.outcome for each in results.results}
    assert outcomes == {"good": Outcome.SUCCEEDED, "bad": Outcome.FAILED}
    assert (results.manifest.clock, results.manifest.cpu_cost_factor) == (Clock.VIRTUAL, FACTOR)
    assert results.manifest.time == "virtual time (CPU costs of cost models × 2)"
    assert set(results.manifest.images) == {"good", "bad", SIMULATOR, VIRTUAL_TIME}
    assert results.manifest.schedule.testbeds is None
    for each in results.results:
        assert each.evidence.clock is Clock.VIRTUAL
        assert each.evidence.images[VIRTUAL_TIME] == VIRTUAL_TIME
    assert {(each.implementation, each.role) for each in results.compliance} == {
        ("good", Role.SERVER), ("good", Role.CLIENT), ("bad", Role.CLIENT),
    }  # fmt: skip
    assert all(each.compliant for each in results.compliance)
    assert engine.lives == {}
    assert all(set(costs(life).values()) == {nanoseconds(DEFAULT, FACTOR)} for life in machines(engine))


def test_implementations_have_their_own_costs(engine: FakeEngine, tmp_path: Path) -> None:
    own = replace(DEFAULT, send=7e-6)
    slow = replace(implementation("good"), cpu_cost=CpuCost(server=own))
    fakes.measure(Selection((slow,), (slow,), (CASE,)), tmp_path, run=VIRTUAL, testbeds=None)
    found = [costs(life) for life in machines(engine) if "--cpu=1" in life.command]
    assert {"client": nanoseconds(DEFAULT, FACTOR), "server": nanoseconds(own, FACTOR)} in found


def test_members_differ_as_their_numbers_say(engine: FakeEngine, tmp_path: Path) -> None:
    """The machine of each member has its link, costs and start; results have the nominal link, and the differences."""
    run = replace(VIRTUAL, amplitudes=USUAL)
    finished = measure(tmp_path, "good", repetitions=3, run=run, check_compliance=False, testbeds=1)
    results = finished.record.result_set
    assert (results.manifest.amplitudes, results.manifest.test_cases[0].link) == (USUAL, LINK)
    assert [each.evidence.perturbation for each in results.results] == [perturbation_of(k, USUAL) for k in (1, 2, 3)]
    for life, result in zip(machines(engine), results.results, strict=True):
        values, by = described(life.files[f"{DIRECTORY}/input"])[0], result.evidence.perturbation
        [scene] = [word for word in values["simulator.environment"] if word.startswith("SCENARIO=")]
        assert f"--delay={1000 * LINK.forward.delay * by.delay:.6g}ms " in scene
        assert f"--bandwidth={LINK.forward.rate * by.rate:.0f}bps " in scene
        assert costs(life) == {str(role): nanoseconds(DEFAULT, FACTOR * by.cpu(role)) for role in Role}
        if by == NOMINAL:
            assert not {"client.start", "server.latencies", "client.latency seed"} & values.keys()
        else:
            assert values["client.start"] == [str(round(by.start * 1e9))]
            [client], [server] = (values[f"{role}.latency seed"] for role in (Role.CLIENT, Role.SERVER))
            assert (int(client), int(server)) == (by.wake_up_seed, by.wake_up_seed + 1)
            late = [values[f"{role}.latencies"] for role in Role]
            assert late == [[" ".join(map(str, WAKE_UP_LATENCIES))]] * 2


def test_pairs_and_test_cases_have_the_same_members_whatever_the_seed(engine: FakeEngine, tmp_path: Path) -> None:
    run = replace(VIRTUAL, amplitudes=USUAL)
    cases = (CASE, replace(CASE, name="other", abbreviation="OT"))
    found = measure(tmp_path, "good", "bad", repetitions=2, cases=cases, run=run).record.result_set.results
    assert len(found) == 8
    assert {(each.repetition, each.evidence.perturbation) for each in found} == {
        (1, NOMINAL), (2, perturbation_of(2, USUAL)),
    }  # fmt: skip
    assert len({each.evidence.seed for each in found}) == 4


def test_real_time_stores_no_cost_and_no_image_of_the_machine(engine: FakeEngine, tmp_path: Path) -> None:
    del engine.programs[VIRTUAL_TIME]
    manifest = measure(tmp_path, "good", run=RunConfig(cpu_cost_factor=FACTOR), testbeds=1).record.result_set.manifest
    assert (manifest.clock, manifest.cpu_cost_factor, manifest.time) == (Clock.REAL, None, "real time")
    assert VIRTUAL_TIME not in manifest.images


@pytest.mark.parametrize("clock", Clock)
def test_only_links_with_gateways_need_their_image(clock: Clock, engine: FakeEngine, tmp_path: Path) -> None:
    split = replace(CASE, name="split", abbreviation="SP", link=replace(LINK, pep=PEPS["A"]))
    finished = measure(tmp_path / "split", "good", cases=(CASE, split), run=RunConfig(clock=clock), testbeds=1)
    results = finished.record.result_set
    assert LINK_GATEWAYS in results.manifest.images
    assert {each.test_case: LINK_GATEWAYS in each.evidence.images for each in results.results} == {
        "short": False, "split": True,
    }  # fmt: skip
    assert {each.verdict.outcome for each in results.results} == {Outcome.SUCCEEDED}
    del engine.programs[LINK_GATEWAYS]
    plain = measure(tmp_path / "plain", "good", run=RunConfig(clock=clock), testbeds=1).record.result_set
    assert LINK_GATEWAYS not in plain.manifest.images
    with pytest.raises(MachineError, match=LINK_GATEWAYS):
        measure(tmp_path / "none", "good", cases=(split,), run=RunConfig(clock=clock))


def test_an_image_that_is_missing_ends_it_before_anything_is_made(engine: FakeEngine, tmp_path: Path) -> None:
    del engine.programs[VIRTUAL_TIME]
    with pytest.raises(MachineError, match=VIRTUAL_TIME):
        measure(tmp_path / "results", "good")
    assert not (tmp_path / "results").exists()
    assert engine.all_lives == []


def test_equal_seeds_give_equal_machines(engine: FakeEngine, tmp_path: Path) -> None:
    """Files, names and certificates follow from the seed, and so does the command line of the kernel."""
    found = []
    for name in ("a", "b"):
        engine.all_lives.clear()
        measure(tmp_path / name, "good", check_compliance=False)
        [life] = machines(engine)
        found.append((life.command, described(life.files[f"{DIRECTORY}/input"])))
    assert found[0] == found[1]


def test_as_many_runs_as_cpus(engine: FakeEngine, tmp_path: Path) -> None:
    """The engine has two CPUs: two clients wait for each other, and none waits for a third."""
    side_by_side = threading.Barrier(2)
    engine.programs["bad"] = only_as(Role.CLIENT, after(lambda: side_by_side.wait(PATIENCE), endpoint))
    results = measure(tmp_path, "bad", repetitions=4, check_compliance=False).record.result_set.results
    assert [each.verdict.outcome for each in results] == [Outcome.SUCCEEDED] * 4
    cpus = {word for life in machines(engine) for word in life.command if word.startswith("--cpu=")}
    assert cpus == {"--cpu=1", "--cpu=2"}


def test_nothing_limits_runs_that_are_independent() -> None:
    """As many as one wants, of links as fast as one wants, without a pause."""
    admission = Admission(1, CpuMonitor(), threading.Event(), measured=True, independent=True)
    fast = run_of(case=replace(CASE, link=CASE.emulated.with_forward(rate=1e9)))
    with admission.admit(fast) as first, admission.admit(fast) as second, admission.admit(fast):
        for ticket in (first, second):
            ticket.client_started()
        admission.throttle()
        assert admission._stop.is_set() is False
        assert (first.most_neighbours, second.most_neighbours) == (2, 2)


def test_a_fault_of_the_machine_is_repeated_and_counts_against_nobody(engine: FakeEngine, tmp_path: Path) -> None:
    engine.programs[VIRTUAL_TIME] = leaves(None, "Kernel panic")
    finished = measure(tmp_path, "good", check_compliance=False)
    [result] = finished.record.result_set.results
    assert (result.verdict.outcome, result.verdict.code) == (Outcome.ERROR, ErrorCode.VIRTUAL_MACHINE_FAILED)
    assert len(machines(engine)) > 1
    assert engine.lives == {}


# ---- resume ---------------------------------------------------------------------------------


def resume(directory: Path) -> CampaignOutcome:
    return resume_campaign(directory, (), Conditions(Host("", "fake"), testbeds=None), Observer())


def test_resume_keeps_clock_and_cost(engine: FakeEngine, tmp_path: Path) -> None:
    interrupt(engine)
    cut = measure(tmp_path, "good", "bad", testbeds=1)
    assert cut.signal == signal.SIGTERM
    before = len(machines(engine))
    finished = resume(cut.directory)
    results = finished.record.result_set
    assert [each.verdict.outcome for each in results.results] == [Outcome.SUCCEEDED] * 2
    assert {each.evidence.clock for each in results.results} == {Clock.VIRTUAL}
    assert (results.manifest.clock, results.manifest.cpu_cost_factor) == (Clock.VIRTUAL, FACTOR)
    assert machines(engine)[before:]
    assert all(set(costs(life).values()) == {nanoseconds(DEFAULT, FACTOR)} for life in machines(engine))


def test_resume_keeps_amplitudes_and_placebo(engine: FakeEngine, tmp_path: Path) -> None:
    interrupt(engine)
    run = replace(VIRTUAL, amplitudes=USUAL, placebo=True)
    cut = measure(tmp_path, "good", "bad", repetitions=2, run=run, testbeds=1)
    assert len(cut.record.result_set.results) < 4
    results = resume(cut.directory).record.result_set
    assert (results.manifest.amplitudes, results.manifest.placebo) == (USUAL, True)
    assert {(each.repetition, each.evidence.perturbation) for each in results.results} == {
        (k, perturbation_of(k, USUAL, placebo=True)) for k in (1, 2)
    }


def test_resume_of_real_time_stays_in_real_time(engine: FakeEngine, tmp_path: Path) -> None:
    interrupt(engine)
    cut = measure(tmp_path, "good", "bad", run=RunConfig(), testbeds=1)
    results = resume(cut.directory).record.result_set
    assert {each.evidence.clock for each in results.results} == {Clock.REAL}
    assert machines(engine) == []


def test_resume_needs_the_same_machine(engine: FakeEngine, tmp_path: Path) -> None:
    interrupt(engine)
    cut = measure(tmp_path, "good", "bad", testbeds=1)
    del engine.programs[VIRTUAL_TIME]
    with pytest.raises(MachineError, match="gone or have been replaced: virtual-time"):
        resume(cut.directory)
