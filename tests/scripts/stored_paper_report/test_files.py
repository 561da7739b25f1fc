"""The stored report docs/paper: its files, figures and campaigns."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path
from statistics import median

import pytest
from PIL import Image

from scripts import paper_report
from tests.scripts.stored_paper_report.stored import PAPER, documents, matrix, rows, the_page


def test_the_stored_files_have_the_stored_checksums() -> None:
    lines = (PAPER / "data" / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    files = {path for path in (PAPER / "data").rglob("*") if path.is_file() and path.name != "SHA256SUMS"}
    assert {line.split()[1] for line in lines} == {str(path.relative_to(PAPER / "data")) for path in files}
    for checksum, name in map(str.split, lines):
        assert hashlib.sha256((PAPER / "data" / name).read_bytes()).hexdigest() == checksum


def test_the_stored_page_is_what_the_stored_data_set_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are made, but not rendered: that takes twice as long as all the rest."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, path, **__: Image.new("1", (1, 1)).save(path))
    shutil.copytree(PAPER / "data", tmp_path / "data")
    assert paper_report.main(["--output", str(tmp_path)]) == 0
    assert (tmp_path / "index.md").read_text(encoding="utf-8") == the_page()


def test_no_text_of_the_page_is_cut() -> None:
    assert "…" not in the_page()


def test_attempts_and_runs_of_the_campaigns_add_up() -> None:
    *parts, last = rows("Campaigns")
    for name, pairs, planned, *counts, other in parts:
        found = documents(name)
        runs = [run for each in found for run in each["results"]]
        again = sum(len(each["earlier"]) for each in found)
        outcomes = [run["verdict"]["outcome"] for run in runs]
        expected = [outcomes.count(outcome) for outcome in ("succeeded", "timeout", "failed")]
        assert int(pairs) == len({(run["server"], run["client"]) for run in runs})
        assert int(planned) == sum(each["manifest"]["planned_runs"] for each in found)
        assert list(map(int, counts)) == [len(runs) + again, again, len(runs), *expected]
        assert int(other) == len(runs) - sum(expected)
    for place in range(2, len(last)):
        assert int(last[place]) == sum(int(row[place]) for row in parts)


def test_machine_of_the_introduction() -> None:
    hosts = [run["evidence"]["host"] for run in matrix()]
    assert (
        f"Up to {1 + max(host['neighbours'] for host in hosts)} runs were made at a time on {hosts[0]['cpus']} CPUs, "
        f"with a load average of {median(host['load_before'] for host in hosts):.1f} at the median"
    ) in the_page()
    assert len({host["cpus"] for host in hosts}) == 1


def test_figures_of_the_page_are_stored() -> None:
    named = set(re.findall(r"\]\(figures/([^)]+)\)", the_page()))
    files = {path for path in (PAPER / "figures").rglob("*") if path.is_file()}
    assert named == {str(path.relative_to(PAPER / "figures")) for path in files}
    kinds = {Path(name).stem.split("-")[0] for name in named}
    assert kinds >= {"cdf", "heatmap", "violin", "two", "congestion"}
    numbers = re.findall(r"^\*\*Figure (\d+)", the_page(), re.MULTILINE)
    assert [int(number) for number in numbers] == list(range(1, len(named) + 1))
