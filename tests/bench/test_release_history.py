"""The document of several histories: goodput by release, steps, and what a year changed."""

import json
from pathlib import Path

import pytest

from bench import release_history
from quicsat.model.implementation import Role
from tests.site import builder
from tests.statistics.test_releases import RELEASES, history

DAYS = dict(zip(RELEASES, ("2024-01-01", "2025-01-01", "", "2026-11-01"), strict=True))


def test_several_campaigns_become_one_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(release_history, "released", lambda _name, release: DAYS[release])
    slow = dict.fromkeys([(release, Role.SERVER) for release in RELEASES[2:]], 0.5)
    first = builder.on_disk(tmp_path / "first", history(slow, members=8))
    again = builder.on_disk(tmp_path / "again", history(slow, members=6, partner="quiche"))
    target = tmp_path / "releases.json"
    words = [str(first), str(again), "-o", str(target), "--since", "2025-11-29"]
    assert release_history.main(words) == 0
    found = json.loads(target.read_text())["quinn"]
    assert {release: facts["date"] for release, facts in found["releases"].items()} == DAYS
    assert len(found["cells"]) == 2 * 2 * len(RELEASES)
    assert {len(each["goodput"]) for each in found["cells"]} == {6, 8}
    assert {(each["before"], each["after"]) for each in found["steps"]} == {("0.10.0", "0.11.0")}
    assert {each["role"] for each in found["steps"]} == {"server"}
    mean = release_history.mean(found, ("SAT", "server", "picoquic"), "1.0.0")
    assert mean == pytest.approx(2.5, rel=0.01)
    lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if "| quinn |" in line]
    changes = {tuple(line[3:5]): (line[1:3], float(line[8].split()[0]), line[9]) for line in lines}
    assert {place: verdict for place, (_, _, verdict) in changes.items()} == {
        ("client", "picoquic"): "no change shown",
        ("client", "quiche"): "no change shown",
        ("server", "picoquic"): "slower",
        ("server", "quiche"): "slower",
    }
    assert all(releases == ["0.10.0", "1.0.0"] for releases, _, _ in changes.values())
    sizes = [changes[place][1] for place in sorted(changes)]
    assert sizes == pytest.approx([0, 0, -50, -50], abs=2)
