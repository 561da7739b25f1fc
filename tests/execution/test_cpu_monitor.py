"""How busy the CPUs are, from what the kernel counts."""

import os
import time
from itertools import accumulate
from pathlib import Path

import pytest

from quicsat.execution import cpu_monitor
from quicsat.execution.analysis_pool import analysis_pool
from quicsat.execution.cpu_monitor import CpuMonitor, CpuSample, busiest, lasting_share
from tests.execution.background_calls import compute
from tests.fakes import PATIENCE


def test_programs_of_every_priority_keep_cpus_busy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """user nice system idle iowait irq softirq steal, as proc(5) has them."""
    stat = tmp_path / "stat"
    stat.write_text("cpu  10 200 30 400 50 6 7 8 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    monkeypatch.setattr(cpu_monitor, "STAT", stat)
    monkeypatch.setattr(cpu_monitor, "_left_out", {})
    seen = cpu_monitor.take_sample()
    assert (seen.busy, seen.total) == (10 + 200 + 30 + 6 + 7 + 8, 10 + 200 + 30 + 400 + 50 + 6 + 7 + 8)


@pytest.mark.parametrize("low", [True, False])
def test_analysis_beside_runs_does_not_count(low: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It stays left out after its end; of another process with its number, nothing is."""
    stat = tmp_path / "stat"
    stat.write_text("cpu  10 200 30 400 50 6 7 8 0 0\n")
    monkeypatch.setattr(cpu_monitor, "STAT", stat)
    monkeypatch.setattr(cpu_monitor, "_left_out", {})
    before = cpu_monitor.take_sample()
    with analysis_pool(compute, low_priority=low) as call:
        used = call(0.2) * os.sysconf("SC_CLK_TCK")
        during = cpu_monitor.take_sample()
    assert before.total == during.total
    assert before.busy - during.busy == (pytest.approx(used, abs=10) if low else 0)
    assert cpu_monitor.take_sample().busy == during.busy


def test_the_busiest_two_seconds_count() -> None:
    idle = [CpuSample(0.5 * n, 0, n) for n in range(10)]
    peak = [CpuSample(5 + 0.5 * n, n, 10 + n) for n in range(5)]
    assert busiest((*idle, *peak)) == 1.0
    assert busiest(tuple(idle)) == 0.0
    assert busiest(tuple(peak[:2])) == 1.0
    assert busiest(tuple(peak[:1])) is None


def test_the_share_of_crowded_windows_does_not_grow_with_the_duration() -> None:
    """Peaks of four seconds, one a minute: the largest share is 1 in all runs, the share of windows falls."""

    def run(duration: int) -> CpuMonitor:
        meter, used = CpuMonitor(), 0.0
        for step in range(2 * duration + 1):
            meter._samples.append(CpuSample(step / 2, used, step / 2))
            used += 0.5 if (step / 2) % 60 < 4 else 0.0
        return meter

    shares = [run(duration).busy_share(0, 0.9) or 0.0 for duration in (12, 60, 240, 360)]
    assert [run(duration).since(0) for duration in (12, 240)] == [1.0, 1.0]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx(5 / 21)
    assert shares[-1] == pytest.approx(5 / 120, rel=0.05)
    assert run(12).busy_share(5, 0.9) == 0.0
    assert CpuMonitor().busy_share(0, 0.9) is None


@pytest.mark.parametrize(
    ("load", "shares", "found"),
    [
        (2.0, [0.9] * 9 + [0.6] + [0.1], 0.6),  # after ten samples, it is known
        (2.0, [0.9] * 9 + [0.2], None),  # a peak
        (2.0, [0.1], None),  # what has just ended still is in the load average
        (0.1, [], None),  # an idle machine does not have to wait
    ],
)
def test_only_programs_that_last_are_notable(
    load: float, shares: list[float], found: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = [CpuSample(float(at), busy, float(at)) for at, busy in enumerate(accumulate(shares, initial=0.0))]
    given = iter(samples)
    monkeypatch.setattr(cpu_monitor, "PERIOD", 0.001)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(cpu_monitor, "take_sample", lambda: next(given))
    assert lasting_share() == (found and pytest.approx(found))


def test_a_machine_that_does_not_tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cpu_monitor, "STAT", tmp_path / "missing")
    with CpuMonitor().watching() as meter:
        assert meter.now() is None
        assert meter.since(0) is None


def test_the_meter_sees_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_monitor, "PERIOD", 0.05)
    begin = time.monotonic()
    with CpuMonitor().watching() as meter:
        deadline = begin + PATIENCE
        while (meter.since(begin) or 0) == 0 and time.monotonic() < deadline:
            sum(range(100_000))
        assert (meter.since(begin) or 0) > 0
