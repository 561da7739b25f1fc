"""The stored pages: up to date, short, and in their layers."""

import hashlib
import re
from pathlib import Path

import pytest
from PIL import Image

from paper.__main__ import DATA, ROOT, main

REPORT = ROOT / "docs" / "paper"
PAGES = ("index.md", "appendix.md")
INDEX = (REPORT / "index.md").read_text("utf-8")
MOST_WORDS, MOST_WORDS_OF_A_FINDING = 9000, 90


def words(text: str) -> int:
    """As `wc -w` counts them, without the addresses of links."""
    return len(re.sub(r"\]\([^)]*\)", "]", text).split())


def test_stored_files_are_what_the_data_set_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are made, but not rendered: that takes twice as long as all the rest."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, path, **__: Image.new("1", (1, 1)).save(path))
    assert main(["--output", str(tmp_path)]) == 0
    for name in PAGES:
        assert (tmp_path / name).read_text("utf-8") == (REPORT / name).read_text("utf-8")
    stored, made = ({path.name: path.read_bytes() for path in (place / "tables").iterdir()}
                    for place in (REPORT, tmp_path))  # fmt: skip
    assert made == stored
    drawn, kept = ({path.relative_to(place) for path in place.rglob("*.png")}
                   for place in (tmp_path / "figures", REPORT / "figures"))  # fmt: skip
    assert drawn == kept


def test_without_results_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--output", str(tmp_path / "paper")]) == 2
    assert "no campaign has a result yet" in capsys.readouterr().err
    assert not (tmp_path / "paper").exists()


def test_the_abstract_has_one_number_and_one_link_in_each_sentence() -> None:
    abstract = [line for line in INDEX.partition("\n\n")[2].partition("\n\n")[0].splitlines() if line.startswith("- ")]
    assert 1 < len(abstract) <= 10
    for sentence in abstract[1:]:
        assert sentence.count("](") == 1
        assert sentence.rstrip().endswith(".")


def test_findings_are_short_and_lead_to_details() -> None:
    findings = INDEX.partition("## Findings\n")[2].partition("\n## ")[0].split("\n### ")[1:]
    assert 6 <= len(findings) <= 8
    for each in findings:
        text = each.partition("\n\n")[2].partition("\n\n![")[0]
        assert words(text) <= MOST_WORDS_OF_A_FINDING, each.splitlines()[0]
        assert "[Details](appendix.md#" in text


def test_the_report_is_short() -> None:
    assert sum(words((REPORT / name).read_text("utf-8")) for name in PAGES) <= MOST_WORDS


def test_no_number_of_the_pages_is_unknown() -> None:
    for name in PAGES:
        assert not re.search(r"\bunknown\b|\bnan\b|\(None", (REPORT / name).read_text("utf-8")), name


def test_figures_and_tables_of_the_pages_are_stored() -> None:
    text = "".join((REPORT / name).read_text("utf-8") for name in PAGES)
    for kind in ("figures", "tables"):
        named = set(re.findall(rf"\]\(({kind}/[^)]+)\)", text))
        stored = {str(path.relative_to(REPORT)) for path in (REPORT / kind).rglob("*") if path.is_file()}
        assert named == stored
    order = [int(number) for number in re.findall(r"^\*\*Figure (\d+)", text, re.M)]
    assert order == list(range(1, len(order) + 1))


def test_the_data_set_has_the_stored_checksums() -> None:
    lines = (DATA / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    files = {str(path.relative_to(DATA)) for path in DATA.rglob("*") if path.is_file() and path.name != "SHA256SUMS"}
    assert {line.split()[1] for line in lines} == files
    for checksum, name in map(str.split, lines):
        assert hashlib.sha256((DATA / name).read_bytes()).hexdigest() == checksum
