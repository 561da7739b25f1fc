"""Campaigns at an engine that misbehaves: they end, tell nothing false, lose nothing and leave nothing."""

import threading
from pathlib import Path

import pytest

from tests import faults
from tests.fakes import Life


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    faults.quick(monkeypatch.setattr)


@pytest.mark.parametrize("seed", range(12))
def test_a_campaign_at_a_faulty_engine(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crashed: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda what: crashed.append(str(what.exc_value)))
    report = faults.carry_out(seed, tmp_path, testbeds=1 + seed % 2)
    assert report.false == ()
    assert report.uncaught == ()
    assert crashed == []
    assert (report.missing, report.left) == (0, 0)


def test_faults_do_happen(tmp_path: Path) -> None:
    assert len(faults.carry_out(3, tmp_path).happened) >= 2


@pytest.mark.parametrize("gently", [True, False])
def test_a_daemon_that_was_started_anew_between_two_looks_is_noticed(tmp_path: Path, gently: bool) -> None:
    engine = faults.FaultyEngine(0, 0)
    program = engine.programs["good"]

    def restart_once(life: Life) -> int:
        if life.environment["ROLE"] == "client":
            engine.programs["good"] = program
            engine.restart(0.0, gently=gently)
            return 143
        return program(life)

    engine.programs["good"] = restart_once
    report = faults.carry_out(0, tmp_path, engine=engine)
    assert report.false == ()
    assert report.missing == 0
    assert report.results == {"succeeded": 2, "failed": 2, "timeout": 1}
