"""A build takes over the pages of campaigns that have not changed, and of no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from interop.results.store import write_result_json
from tests.site import builder

CELL = "runs/2026-11-2{}*/p/picoquic/quiche/sat/index.html"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    builder.two_campaigns(tmp_path / "results")
    builder.build(tmp_path / "results", tmp_path / "site")
    return tmp_path


def cells(place: Path) -> list[int]:
    """The inode of a cell's page in the earlier and in the later campaign: links share theirs."""
    return [path.stat().st_ino for day in (0, 1) for path in (place / "site").glob(CELL.format(day))]


def test_what_has_not_changed_is_taken_over(place: Path) -> None:
    before, pages, start = cells(place), builder.pages(place / "site"), (place / "site/index.html").stat().st_ino
    made = builder.build(place / "results", place / "site")
    assert cells(place) == before
    after = builder.pages(place / "site")
    assert after.keys() == pages.keys()
    assert made.pages == len(after)
    assert (place / "site/index.html").stat().st_ino != start  # its list of campaigns may have grown


def test_a_campaign_that_has_changed_is_made_anew(place: Path) -> None:
    before = cells(place)
    small = builder.small()
    write_result_json(place / "results/later", replace(small, results=small.results[:-1]))
    builder.build(place / "results", place / "site")
    assert [old == new for old, new in zip(before, cells(place), strict=True)] == [True, False]


def figure(place: Path) -> None:
    (place / "results/later/plots").mkdir()
    (place / "results/later/plots/cdf.png").write_bytes(b"png")


def marker(place: Path) -> None:
    (place / "site/site.json").write_text("[]")


@pytest.mark.parametrize(("change", "kept"), [(figure, [True, False]), (marker, [False, False])])
def test_figures_and_the_marker_count(place: Path, change: Callable[[Path], None], kept: list[bool]) -> None:
    before = cells(place)
    change(place)
    builder.build(place / "results", place / "site")
    assert [old == new for old, new in zip(before, cells(place), strict=True)] == kept


def test_options_count(place: Path) -> None:
    before = cells(place)
    builder.build(place / "results", place / "site", files=True)
    assert not set(before) & set(cells(place))


def test_a_link_in_the_old_site_is_not_followed(place: Path) -> None:
    [page] = (place / "site").glob(CELL.format(1))
    secret = place / "secret"
    secret.write_text("secret")
    (page.parent / "leak.html").symlink_to(secret)
    builder.build(place / "results", place / "site")
    assert not list((place / "site").rglob("leak.html"))
