"""How long a campaign takes and how much disk space it needs, and the question before a large one."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from quicsat.cli import campaign_size, console
from quicsat.cli.campaign_size import CONSENT, DiskSpace, Timeline, disk_needed, time_needed, timeline
from quicsat.model.units import MIB
from quicsat.plan.duration_estimate import Durations
from quicsat.plan.limits import CampaignLimits
from quicsat.plan.time_windows import Hours, window, zone
from tests.cli.conftest import GOOD, Checkout
from tests.fakes import CASE, run_of
from tests.plan.test_duration_estimate import took

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
RUNS = [run_of(repetition=each) for each in range(1, 11)]
MINUTE = [60.0] * 10


def test_one_after_another_and_side_by_side() -> None:
    assert timeline(RUNS, MINUTE, CampaignLimits(), NOON) == Timeline(NOON + timedelta(minutes=10), 10)
    assert timeline(RUNS, MINUTE, CampaignLimits(), NOON, 4).end == NOON + timedelta(minutes=3)


@pytest.mark.parametrize(
    ("limits", "minutes", "made"),
    [
        (CampaignLimits(deadline=NOON + timedelta(minutes=4.5)), 4, 4),
        (CampaignLimits(most_seconds=300), 5, 5),
        (CampaignLimits(hours=Hours(zone("UTC"), (window("12:05-13:00"),))), 65, 10),
        (CampaignLimits(hours=Hours(zone("UTC"), (window("11:00-13:00"),))), 70, 10),
        (CampaignLimits(Hours(zone("UTC"), (window("12:05-13:00"),)), NOON + timedelta(minutes=62)), 62, 7),
    ],
)
def test_limits(limits: CampaignLimits, minutes: float, made: int) -> None:
    assert timeline(RUNS, MINUTE, limits, NOON) == Timeline(NOON + timedelta(minutes=minutes), made)


def test_what_is_told_of_time() -> None:
    durations = Durations()
    durations.learn(RUNS[0].test_case, took(RUNS[0], 60.0))
    limits = CampaignLimits(deadline=NOON + timedelta(minutes=5), breaker=3)
    told = "\n".join(time_needed(RUNS, durations, limits, NOON, 1))
    assert "Estimated duration: 9 min 0 s to 12 min 30 s (from earlier runs)" in told
    assert "Time is up after 4 to 5 of 10 runs" in told
    assert "No run starts that is unlikely to end before Thu 2026-01-15 12:05 (UTC)." in told
    assert "between Thu 2026-01-15 12:04 and Thu 2026-01-15 12:05" in told
    assert "may be skipped" in told
    assert "0 of 10 from earlier runs; one at a time" in "\n".join(
        time_needed(RUNS, Durations(), CampaignLimits(), NOON, None)
    )


def test_room_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sat, other = ([run_of(case=replace(CASE, name=name))] * 10 for name in ("sat", "other"))
    size = 2.5 * CASE.total_size
    assert disk_needed(sat, tmp_path / "results", tmp_path).needed == 10 * max(size, MIB)
    for number in (1, 2):
        run = tmp_path / "2026" / "a_b" / "sat" / str(number)
        run.mkdir(parents=True)
        (run / "trace").write_bytes(b"x" * 1024 * number)
    aside = tmp_path / "2026" / "a_b" / "sat" / "1.attempt-1"
    aside.mkdir()
    (aside / "trace").write_bytes(b"x" * 999_999)
    (tmp_path / "2026" / "journal.jsonl").write_text(json.dumps({}))
    (tmp_path / "latest").symlink_to("2026")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=7))
    assert disk_needed(sat, tmp_path, tmp_path) == DiskSpace(15 * 1024, 7)
    assert disk_needed(other, tmp_path, tmp_path).guessed == ("other",)
    assert disk_needed(sat, tmp_path / "none", tmp_path / "2026").needed == 15 * 1024


@pytest.mark.parametrize("words", [("--repetitions", "10000"), ("--timeout", "13h", "--repetitions", "10000")])
def test_a_campaign_of_unusual_size_needs_consent(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    few, plenty = ((lambda _, size=size: SimpleNamespace(free=size)) for size in (10 * MIB, 10**15))
    monkeypatch.setattr("shutil.disk_usage", plenty)
    monkeypatch.setattr(campaign_size, "USUAL_SECONDS", 36_000.0)  # 10,000 runs take 4 s each, or more
    assert "This campaign of 10000 runs is larger than usual.\nEstimated duration: " in checkout.refusal(*GOOD, *words)
    assert CONSENT in checkout.out("plan", *GOOD, *words)
    assert CONSENT not in checkout.out("plan", *GOOD)
    monkeypatch.setattr("shutil.disk_usage", few)
    assert "\nDisk space needed: about 9.766 GiB " in checkout.refusal(*GOOD, *words)
    assert not (checkout.root / "results").exists()
    asked = list[str]()

    def answer(question: str) -> bool:
        asked.append(question)
        return True

    monkeypatch.setattr(console, "ask", answer)
    monkeypatch.setattr("shutil.disk_usage", plenty)
    monkeypatch.setattr(campaign_size, "USUAL_SECONDS", 1.0)
    assert checkout(*GOOD)[0] == 0
    assert checkout(*GOOD, "--yes")[0] == 0
    assert len(asked) == 1
