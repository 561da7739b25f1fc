"""How busy the CPUs are, from what the kernel counts."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from interop.execution import load
from interop.execution.load import Look, Meter, busiest


def test_what_yields_to_everybody_is_not_busy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """user nice system idle iowait irq softirq steal, as proc(5) has them."""
    stat = tmp_path / "stat"
    stat.write_text("cpu  10 200 30 400 50 6 7 8 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    monkeypatch.setattr(load, "STAT", stat)
    seen = load.look()
    assert seen is not None
    assert (seen.busy, seen.total) == (10 + 30 + 6 + 7 + 8, 10 + 200 + 30 + 400 + 50 + 6 + 7 + 8)


def test_the_busiest_two_seconds_count() -> None:
    idle = [Look(0.5 * n, 0, n) for n in range(10)]
    peak = [Look(5 + 0.5 * n, n, 10 + n) for n in range(5)]
    assert busiest((*idle, *peak)) == 1.0
    assert busiest(tuple(idle)) == 0.0
    assert busiest(tuple(peak[:2])) == 1.0
    assert busiest(tuple(peak[:1])) is None


def test_a_machine_that_does_not_tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(load, "STAT", tmp_path / "missing")
    with Meter().watching() as meter:
        assert meter.now() is None
        assert meter.since(0) is None


def test_the_meter_sees_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "PERIOD", 0.05)
    begin = time.monotonic()
    with Meter().watching() as meter:
        deadline = begin + 5
        while (meter.since(begin) or 0) == 0 and time.monotonic() < deadline:
            sum(range(100_000))
        assert (meter.since(begin) or 0) > 0
