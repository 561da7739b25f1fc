"""The data set as an archive."""

import subprocess
from pathlib import Path

from paper.__main__ import DATA, ROOT

NAME = "arxiv-2202.08228-revisited"


def packed(target: Path) -> bytes:
    subprocess.run([ROOT / "paper/archive", target], check=True)
    return target.read_bytes()


def test_the_archive_has_data_that_match_the_checksums(tmp_path: Path) -> None:
    archive = tmp_path / "new" / "data-set.tar.gz"
    assert packed(archive) == packed(tmp_path / "again.tar.gz")
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True)
    found = tmp_path / NAME
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=found / "data", check=True, capture_output=True
    )
    kept = {path.relative_to(DATA.parent) for path in DATA.rglob("*") if path.is_file()}
    assert {path.relative_to(found) for path in (found / "data").rglob("*") if path.is_file()} == kept
    assert done.stdout.count(b": OK") == len(kept) - 1
    assert (found / "DATA_SHEET.md").read_text("utf-8").startswith("## Data\n")
    assert "CC BY 4.0" in (found / "LICENCE.txt").read_text("utf-8")
