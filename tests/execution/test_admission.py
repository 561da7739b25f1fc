"""Which run may begin beside those under way."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from quicsat.execution import admission, local_worker
from quicsat.execution.admission import BUDGET, SERVED_RATE, UNKNOWN_NEED, Admission, AdmissionTicket
from quicsat.execution.admission import slow_start as lasting
from quicsat.execution.cpu_monitor import CpuMonitor
from quicsat.model.emulated_link import DirectionReport, SimulatorReport
from quicsat.model.evidence import Evidence
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import RunResult
from quicsat.model.run import Run
from tests.fakes import CASE, run_of


class Calm(CpuMonitor):
    """Shows the load that a test wants."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def now(self) -> float | None:
        return self.share


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "slow_start", lambda _: 0.0)
    monkeypatch.setattr(admission, "SETTLED", 0.0)


def of(cpus: int = 2, *, measured: bool = True, share: float = 0.0) -> Admission:
    """``share``: of the CPU time that is in use."""
    return Admission(cpus, Calm(share), ImpatientStop(), measured=measured)


def needed(run: Run, cpus: float) -> RunResult:
    evidence = Evidence(started="", seed=1, cpu_peak=cpus)
    return RunResult(*run.key, 1, Verdict(Outcome.SUCCEEDED), evidence)


@contextmanager
def under_way(admission: Admission, run: Run) -> Iterator[AdmissionTicket]:
    """A run whose client has been started."""
    with admission.admit(run) as admit:
        admit.client_started()
        yield admit


class NotAdmittedError(Exception):
    """A run has to wait."""


class ImpatientStop(threading.Event):
    """Whoever waits between two checks is told so, instead of the time passing."""

    def wait(self, timeout: float | None = None) -> bool:
        raise NotAdmittedError


def begins(admission: Admission, run: Run) -> bool:
    """Whether ``run`` may begin at once."""
    try:
        with admission.admit(run):
            return True
    except NotAdmittedError:
        return False


def test_the_first_run_always_begins() -> None:
    admission = of(cpus=1, share=1.0)
    admission.record(needed(run_of(), 8))
    assert begins(admission, run_of())


def test_a_run_begins_when_the_one_before_has_left_its_slow_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "slow_start", lambda link: 0.0 if link is CASE.link else 60.0)
    far = replace(CASE, link=CASE.emulated.with_forward(delay=0.3))
    for case, soon in ((CASE, True), (far, False)):
        patient = of(cpus=8)
        with under_way(patient, run_of(case=case)) as admit:
            assert begins(patient, run_of()) is soon
            admit.client_ended()
            assert begins(patient, run_of())


def test_a_run_begins_when_the_one_before_has_been_made() -> None:
    patient = of(cpus=8)
    with patient.admit(run_of()) as admit:
        assert not begins(patient, run_of())
        admit.client_started()
        assert begins(patient, run_of())


def test_no_more_links_are_under_way_than_simulators_can_serve() -> None:
    admission = of(cpus=64)
    wide = replace(CASE, link=CASE.emulated.with_forward(rate=SERVED_RATE / 2))
    with under_way(admission, run_of(case=wide)) as first, under_way(admission, run_of(case=wide)):
        assert not begins(admission, run_of())
        first.client_ended()
        assert begins(admission, run_of(case=wide))


def test_how_long_a_slow_start_lasts() -> None:
    """Over sat it was seen to last 4.7 s from the start of the client, with a server that begins with 32 packets."""
    sat = CASE.emulated.with_both(delay=0.3).with_forward(rate=20e6)
    assert lasting(sat) == pytest.approx(4.6, abs=0.1)
    assert lasting(sat.with_both(delay=0.015)) < 0.15


def test_files_are_moved_slowly_during_a_slow_start(monkeypatch: pytest.MonkeyPatch) -> None:
    rests = list[float]()
    patient = of()
    monkeypatch.setattr(patient._stop, "wait", rests.append)
    monkeypatch.setattr(admission, "slow_start", lambda _: 60.0)
    patient.throttle()
    with patient.admit(run_of()) as admit:
        patient.throttle()
        assert rests == []
        admit.client_started()
        patient.throttle()
        assert rests == [admission.REST]
        admit.client_ended()
        patient.throttle()
    assert len(rests) == 1


def test_unknown_runs_share_the_budget() -> None:
    admission = of(cpus=2)
    with under_way(admission, run_of()):
        assert UNKNOWN_NEED * 2 < BUDGET * 2 < UNKNOWN_NEED * 3
        with under_way(admission, run_of(repetition=2)):
            assert not begins(admission, run_of(repetition=3))


def test_hungry_runs_wait_and_modest_ones_do_not() -> None:
    admission = of(cpus=2)
    admission.record(needed(run_of(), 1.2))
    admission.record(needed(run_of("modest", "modest"), 0.1))
    with under_way(admission, run_of()) as admit:
        assert begins(admission, run_of("modest", "modest"))
        assert not begins(admission, run_of())
        admit.client_ended()
        assert begins(admission, run_of())  # who has ended needs no CPU


def test_need_is_that_of_the_hungriest_with_an_endpoint_in_common() -> None:
    admission = of()
    for server, client, cpus in (("a", "a", 0.3), ("b", "a", 0.9), ("c", "c", 5.0)):
        admission.record(needed(run_of(server, client), cpus))
    assert admission.need(run_of("a", "b")) == 0.3
    assert admission.need(run_of("x", "a")) == 0.9
    assert admission.need(run_of("x", "y")) is None
    other = replace(run_of("a", "a").test_case, name="other")
    assert admission.need(run_of("a", "a", other)) is None


@pytest.mark.parametrize(("ramp", "share", "admitted"), [(20, 0.0, False), (0, 0.0, True), (0, 0.7, False)])
def test_what_is_unknown_shows_in_the_load_after_a_while(
    ramp: float, share: float, admitted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    admission, meter = of(), Calm(0.0)
    admission._monitor = meter
    monkeypatch.setattr("quicsat.execution.admission.RAMP", ramp)
    with under_way(admission, run_of()), under_way(admission, run_of(repetition=2)):
        meter.share = share
        assert begins(admission, run_of(repetition=3)) is admitted


def test_a_busy_machine_admits_nothing_more() -> None:
    admission = of(cpus=64, share=0.97)
    with under_way(admission, run_of()):
        assert not begins(admission, run_of(repetition=2))


@pytest.mark.parametrize("again", [0.0, 20.0])
def test_after_each_disturbance_it_is_more_careful(again: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "AGAIN", again)
    careful = of(cpus=2)
    with under_way(careful, run_of()):
        for _ in range(3):
            careful.disturbed()
            time.sleep(0.001)
        assert begins(careful, run_of(repetition=2)) is (again > 0)  # neighbours that suffer together count once


def test_a_number_that_was_asked_for_is_not_doubted() -> None:
    admission = of(cpus=1, measured=False, share=1.0)
    with under_way(admission, run_of()), under_way(admission, run_of(repetition=2)) as admit:
        assert begins(admission, run_of(repetition=3))
        assert admit.most_neighbours == 2


def test_who_is_told_to_stop_does_not_wait() -> None:
    admission = of(cpus=1)
    with under_way(admission, run_of()):
        admission._stop.set()
        assert begins(admission, run_of(repetition=2))


@pytest.mark.parametrize(
    ("code", "reserved", "crowded"),
    [
        (ErrorCode.HOST_STARVED, True, True),
        (ErrorCode.SIMULATOR_LAG, True, False),
        (ErrorCode.SIMULATOR_LAG, False, True),
        (ErrorCode.CAPTURE_FAILED, False, False),
    ],
)
def test_a_simulator_with_time_of_its_own_is_not_late_for_want_of_cpus(
    code: ErrorCode, reserved: bool, crowded: bool
) -> None:
    late = SimulatorReport(0.0, reserved, 0.0, 0.05, 0, DirectionReport(0, 0, 0, 0), DirectionReport(0, 0, 0, 0))
    found = replace(needed(run_of(), 1.0), verdict=Verdict(Outcome.ERROR, code))
    assert local_worker._lacked_cpu(replace(found, evidence=replace(found.evidence, simulator=late))) is crowded
    assert local_worker._lacked_cpu(found) is (code is not ErrorCode.CAPTURE_FAILED)
