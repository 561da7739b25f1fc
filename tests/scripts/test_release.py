"""The release: notes from the changelog, and the citation."""

import tomllib
from pathlib import Path

import pytest
import yaml

from scripts.release_notes import main, notes

ROOT = Path(__file__).resolve().parents[2]
CHANGELOG = """\
# Changelog

## 1.1, not yet released

- New: see [Links](docs/links.md#new), [RFC 9000](https://www.rfc-editor.org/rfc/rfc9000).

### Fixes

- Two.

## 1.0.0, 2026-12-01

First.
"""


@pytest.mark.parametrize(("version", "text"), [("1.0", "First.\n"), ("v1.0.0", "First.\n"), ("1.0.1", ""), ("2", "")])
def test_notes_are_the_section_of_the_version(version: str, text: str) -> None:
    assert notes(version, CHANGELOG) == text


def test_links_lead_to_the_files_of_the_version() -> None:
    found = notes("v1.1.0", CHANGELOG, "https://example.org/quicsat")
    assert "[Links](https://example.org/quicsat/blob/v1.1.0/docs/links.md#new)" in found
    assert "[RFC 9000](https://www.rfc-editor.org/rfc/rfc9000)" in found
    assert found.endswith("- Two.\n")


def test_a_version_without_notes_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["0.0.7"]) == 1
    assert "0.0.7" in capsys.readouterr().err


def test_the_first_release_has_notes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["1.0.0"]) == 0
    assert len(capsys.readouterr().out) > 1000


def test_the_citation_says_what_the_package_says() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["cff-version"] == "1.2.0"
    assert citation.keys() >= {"message", "title", "authors"}
    assert (citation["title"], citation["license"]) == (project["name"], project["license"])
    assert citation["keywords"] == project["keywords"]
