"""The data set as an archive."""

import subprocess
from pathlib import Path

import pytest

from paper.__main__ import DATA
from paper.archive import NAME, main


def test_the_archive_has_data_that_match_the_checksums(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = tmp_path / "new" / "data-set.tar.gz"
    assert main([str(archive)]) == 0
    assert str(archive) in capsys.readouterr().out
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True)
    found = tmp_path / NAME
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=found / "data", check=True, capture_output=True
    )
    kept = {path.relative_to(DATA.parent) for path in DATA.rglob("*") if path.is_file()}
    assert {path.relative_to(found) for path in (found / "data").rglob("*") if path.is_file()} == kept
    assert done.stdout.count(b": OK") == len(kept) - 1
    sheet = (found / "DATA_SHEET.md").read_text("utf-8")
    assert sheet.startswith("## Data\n")
    assert "CC BY 4.0" in (found / "LICENCE.txt").read_text("utf-8")


def test_equal_data_give_an_equal_archive(tmp_path: Path) -> None:
    for name in ("a.tar.gz", "b.tar.gz"):
        main([str(tmp_path / name)])
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
