"""The new site takes the place of the old one in one step."""

from __future__ import annotations

from pathlib import Path

import pytest

from interop.model.errors import InputError
from interop.site import atomic_publish
from interop.site.address import MARKER


def make(place: Path, text: str) -> None:
    with atomic_publish.staged(place) as draft:
        (draft / MARKER).write_text(text)


def test_a_site_is_made_and_replaced(tmp_path: Path) -> None:
    make(tmp_path / "deep" / "site", "old")
    make(tmp_path / "deep" / "site", "new")
    assert (tmp_path / "deep" / "site" / MARKER).read_text() == "new"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["site"]


def test_an_interrupted_build_leaves_the_old_site_whole(tmp_path: Path) -> None:
    make(tmp_path / "site", "old")
    with pytest.raises(KeyboardInterrupt), atomic_publish.staged(tmp_path / "site") as draft:
        (draft / MARKER).write_text("half")
        raise KeyboardInterrupt
    assert (tmp_path / "site" / MARKER).read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_nothing_but_a_site_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.tex").write_text("years")
    with pytest.raises(InputError, match="not a site made by quicsat"):
        atomic_publish.check(tmp_path / "work", [])
    with pytest.raises(InputError, match="contains the results"):
        atomic_publish.check(tmp_path, [tmp_path / "results"])
    atomic_publish.check(tmp_path / "new", [tmp_path / "results"])
