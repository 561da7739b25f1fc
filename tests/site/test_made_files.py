"""A build removes what an earlier build has made, and nothing else."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from quicsat.model.errors import InputError
from quicsat.site import made_files
from tests.site import builder

MINE = (
    "CNAME", ".nojekyll", "robots.txt", ".git/HEAD", ".git/refs/heads/main", "thesis/chapter.tex", "runs/notes.txt",
    "runs/{later}/notes.txt", "runs/{earlier}/notes.txt", "runs/{later}/mine/notes.txt", "runs/{earlier}/mine/a/b.txt",
    "runs/{later}/p/picoquic/quiche/sat/notes.txt", "runs/{earlier}/p/notes.txt", "runs/{later}/data/index.html.orig",
    "assets/logo.png", "badge/mine.svg",
)  # fmt: skip
"""Files of a user in a site, for the folder of each of its campaigns."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    builder.two_campaigns(tmp_path / "results")
    builder.build(tmp_path / "results", tmp_path / "site")
    return tmp_path


def add_files(site: Path) -> set[Path]:
    earlier, later = sorted(path.name for path in (site / "runs").iterdir() if path.is_dir())
    files = [site / name.format(earlier=earlier, later=later) for name in MINE]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.name)
    (site / ".git/objects").mkdir()
    (site / "downloads").symlink_to("/nowhere")
    return {*files, site / ".git/objects", site / "downloads"}


def content(site: Path) -> set[Path]:
    """All files, links and empty directories but lists."""
    return {each for each in site.rglob("*") if (each.is_symlink() or not each.is_dir() or not any(each.iterdir()))
            and each.name != made_files.LIST}  # fmt: skip


def make_pages_again(place: Path) -> None:
    """Let the next build write the pages of the later campaign again."""
    os.utime(place / "results/later/result.json", (1, 1))


def test_what_a_user_has_put_into_a_site_stays(place: Path) -> None:
    site = place / "site"
    pages = content(site)
    mine = add_files(site)
    for _ in range(2):
        make_pages_again(place)
        builder.build(place / "results", site)
        assert content(site) == pages | mine
        assert all(file.read_text() == file.name for file in mine if file.is_file())
    assert (site / "downloads").is_symlink()


def test_directories_keep_their_rights(place: Path) -> None:
    """A site that only some users may read stays so, and root, who builds it, does not take it from its owner."""
    site, folder = place / "site", place / "site/.git"
    folder.mkdir()
    modes = {site: 0o2750, folder: 0o700}
    owner = 65533 if os.geteuid() == 0 else os.geteuid()
    for directory, mode in modes.items():
        os.chown(directory, owner, owner if os.geteuid() == 0 else -1)
        directory.chmod(mode)
    builder.build(place / "results", site)
    assert {directory: stat.S_IMODE(directory.stat().st_mode) for directory in modes} == modes
    assert {directory.stat().st_uid for directory in modes} == {owner}


def test_pages_of_a_campaign_that_is_gone_go_and_files_of_a_user_stay(place: Path) -> None:
    site = place / "site"
    mine = add_files(site)
    shutil.rmtree(place / "results/earlier")
    builder.build(place / "results", site)
    builder.build(place / "results", place / "alone")
    assert content(site) - mine == {site / each.relative_to(place / "alone") for each in content(place / "alone")}
    assert mine <= content(site)


def test_with_a_list_of_too_many_names_nothing_counts_as_made(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_files, "MOST_NAMES", 3)
    assert made_files.read_list(place / "site") == {made_files.LIST}


def test_the_first_build_without_lists_keeps_what_is_beside_the_folders_of_a_site(place: Path) -> None:
    site = place / "site"
    pages = content(site)
    for old in site.rglob(made_files.LIST):
        old.unlink()
    (site / "CNAME").write_text("quic.example.org")
    (site / "runs/gone").mkdir()
    (site / "runs/gone/index.html").write_text("of a campaign that an older version has shown")
    builder.build(place / "results", site)
    assert content(site) == {*pages, site / "CNAME"}


def test_a_file_in_the_place_of_a_page_is_refused(place: Path) -> None:
    site, results = place / "site", place / "results"
    shutil.move(results / "later", place / "later")
    builder.build(results, site)
    shutil.move(place / "later", results / "later")
    builder.build(results, place / "other")
    page = next(path.relative_to(place / "other") for path in (place / "other").glob("runs/2026-11-21*/index.html"))
    (site / page).parent.mkdir()
    (site / page).write_text("mine")
    before = content(site)
    with pytest.raises(InputError, match="Move it elsewhere"):
        builder.build(results, site)
    assert (site / page).read_text() == "mine"
    assert content(site) == before


@pytest.mark.parametrize("marker", ["", "{}", "[]", '{"title": "my thesis"}', '{"made by": "hugo"}', "[" * 100_000])
def test_a_file_with_the_name_of_the_marker_makes_no_site(place: Path, marker: str) -> None:
    work = place / "work"
    work.mkdir()
    (work / "site.json").write_text(marker)
    (work / "thesis.tex").write_text("years")
    with pytest.raises(InputError, match="not a site made by quicsat"):
        builder.build(place / "results", work)
    (work / "site.json").write_text(json.dumps({made_files.MADE_BY: "quicsat 1"}))
    builder.build(place / "results", work)
    assert (work / "thesis.tex").read_text() == "years"


@pytest.mark.parametrize("name", ["runs", "assets"])
@pytest.mark.parametrize("listed", [True, False])
def test_links_in_a_site_are_not_followed_and_refused_before_it_is_built(
    place: Path, name: str, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site of others may have a list of files that says what they like."""
    work = place / "work"
    work.mkdir()
    (place / "outside/a/b").mkdir(parents=True)
    (work / "site.json").write_text(json.dumps({made_files.MADE_BY: "quicsat 1"}))
    (work / name).symlink_to("../outside")
    if listed:
        (work / made_files.LIST).write_text("site.json\nindex.html\nruns/a/b\nassets/a\n")
    monkeypatch.setattr("quicsat.site.campaign_pages.write", None)  # nothing is built
    before = (place / "outside").stat().st_atime_ns
    with pytest.raises(InputError, match="is a symbolic link, which is not followed"):
        builder.build(place / "results", work)
    assert (place / "outside").stat().st_atime_ns == before
    assert (work / name).is_symlink()


def test_an_own_file_in_the_place_of_the_marker_is_refused_before_the_site_is_built(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "site" / made_files.LIST).write_text("index.html\n")
    monkeypatch.setattr("quicsat.site.campaign_pages.write", None)
    with pytest.raises(InputError, match="quicsat has not made it"):
        builder.build(place / "results", place / "site")
