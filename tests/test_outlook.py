"""What a plan asks of a machine before it is carried out."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from interop import outlook
from interop.estimate import Durations
from interop.hours import Hours, window, zone
from interop.limits import Limits
from tests.fakes import CASE, run_of
from tests.test_estimate import took

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
RUNS = [run_of(repetition=each) for each in range(1, 11)]
MINUTE = [60.0] * 10


def test_one_after_another_and_side_by_side() -> None:
    assert outlook.course(RUNS, MINUTE, Limits(), NOON) == outlook.Course(NOON + timedelta(minutes=10), 10)
    assert outlook.course(RUNS, MINUTE, Limits(), NOON, 4).end == NOON + timedelta(minutes=3)


@pytest.mark.parametrize(
    ("limits", "minutes", "made"),
    [
        (Limits(deadline=NOON + timedelta(minutes=4.5)), 4, 4),
        (Limits(most_seconds=300), 5, 5),
        (Limits(hours=Hours(zone("UTC"), (window("12:05-13:00"),))), 65, 10),
        (Limits(hours=Hours(zone("UTC"), (window("11:00-13:00"),))), 70, 10),
        (Limits(hours=Hours(zone("UTC"), (window("12:05-13:00"),)), deadline=NOON + timedelta(minutes=62)), 62, 7),
    ],
)
def test_limits(limits: Limits, minutes: float, made: int) -> None:
    assert outlook.course(RUNS, MINUTE, limits, NOON) == outlook.Course(NOON + timedelta(minutes=minutes), made)


def test_what_is_told_of_time() -> None:
    durations = Durations()
    durations.learn(RUNS[0].test_case, took(RUNS[0], 60.0))
    limits = Limits(deadline=NOON + timedelta(minutes=5), breaker=3)
    told = "\n".join(outlook.in_time(RUNS, durations, limits, NOON, 1))
    assert "takes 9 min 0 s to 12 min 30 s (from earlier campaigns)" in told
    assert "Time is up after 4 to 5 of 10 runs" in told
    assert "No run begins that is not likely to end before Thu 2026-01-15 12:05 (UTC)." in told
    assert "between Thu 2026-01-15 12:04 and Thu 2026-01-15 12:05" in told
    assert "may be skipped" in told
    assert "0 of 10 runs are known; one after another" in "\n".join(
        outlook.in_time(RUNS, Durations(), Limits(), NOON, None)
    )


def test_room_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sat, other = ([run_of(case=replace(CASE, name=name))] * 10 for name in ("sat", "other"))
    assert "not known yet" in outlook.on_disk(sat, tmp_path / "results")
    for number in (1, 2):
        run = tmp_path / "2026" / "a_b" / "sat" / str(number)
        run.mkdir(parents=True)
        (run / "trace").write_bytes(b"x" * 1024 * number)
    aside = tmp_path / "2026" / "a_b" / "sat" / "1.attempt-1"
    aside.mkdir()
    (aside / "trace").write_bytes(b"x" * 999_999)
    (tmp_path / "2026" / "journal.jsonl").write_text(json.dumps({}))
    (tmp_path / "latest").symlink_to("2026")
    assert "about 15 KiB of disk, 1.5 KiB per run;" in outlook.on_disk(sat, tmp_path)
    assert "not known yet" in outlook.on_disk(other, tmp_path)
    assert "about 30 KiB of disk, 1.5 KiB per run (nothing is known of other);" in outlook.on_disk(
        sat + other, tmp_path
    )
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=15 * 1024 - 1))
    assert "That is too little: `./run.py prune` makes room" in outlook.on_disk(sat, tmp_path)
