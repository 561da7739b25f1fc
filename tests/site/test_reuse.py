"""A build takes over the pages of campaigns that have not changed, and of no others."""

import json
import re
import shutil
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from quicsat.model.outcomes import Check
from quicsat.results.document import StoredResults
from quicsat.results.store import load, write_result_json
from quicsat.site import brief, campaigns, recent, report_pages
from quicsat.statistics import comparison
from quicsat.statistics.samples import GOODPUT, samples
from tests.results_builder import SAT, result_set, runs
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


def results(place: Path) -> None:
    small = builder.small()
    write_result_json(place / "results/later", replace(small, results=small.results[:-1]))


def figure(place: Path) -> None:
    (place / "results/later/plots").mkdir()
    (place / "results/later/plots/cdf.png").write_bytes(b"png")


def marker(place: Path) -> None:
    (place / "site/site.json").write_text('{"made by": "quicsat 1"}')


@pytest.mark.parametrize(
    ("change", "kept"), [(results, [True, False]), (figure, [True, False]), (marker, [False, False])]
)
def test_a_campaign_that_has_changed_is_made_anew(
    place: Path, change: Callable[[Path], None], kept: list[bool]
) -> None:
    before = cells(place)
    change(place)
    builder.build(place / "results", place / "site")
    assert [old == new for old, new in zip(before, cells(place), strict=True)] == kept


def test_options_count(place: Path) -> None:
    before = cells(place)
    builder.build(place / "results", place / "site", files=True)
    assert not set(before) & set(cells(place))


@pytest.mark.parametrize("name", ["leak", "data"])
def test_a_campaign_with_a_link_in_its_folder_is_not_taken_over(place: Path, name: str) -> None:
    before = cells(place)
    [folder] = (place / "site/runs").glob("2026-11-21*")
    shutil.rmtree(folder / name, ignore_errors=True)
    (place / "secret").mkdir()
    (folder / name).symlink_to(place / "secret")
    builder.build(place / "results", place / "site")
    assert (folder / name).is_symlink() == (name == "leak")  # not ours, but that is all that is kept of it
    assert [old == new for old, new in zip(before, cells(place), strict=True)] == [True, False]


def earlier_still(place: Path, day: int) -> None:
    """One more campaign, with the results of the small one."""
    small = builder.small()
    name = f"2026-11-{day:02}T06:00:00Z"
    builder.on_disk(place / "results" / name, replace(small, manifest=replace(small.manifest, id=name, started=name)))


def inodes(place: Path) -> dict[str, int]:
    """Of all pages."""
    return {str(path.relative_to(place)): path.stat().st_ino for path in sorted((place / "site").rglob("*.html"))}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the directories whose results are read from now on."""
    names: list[str] = []

    def noting(directory: Path) -> StoredResults:
        names.append(directory.name)
        return load(directory)

    monkeypatch.setattr(campaigns, "load", noting)
    return names


def test_a_new_campaign_leaves_all_pages_of_the_others_as_they_are(place: Path) -> None:
    before = inodes(place)
    earlier_still(place, 1)
    builder.build(place / "results", place / "site")
    after = inodes(place)
    renewed = {name for name, inode in before.items() if after[name] != inode}
    assert not {name for name in renewed if re.match("site/(runs/2|compare/2)", name)} - {
        "site/runs/2026-11-20T06-00-00Z/index.html",  # its cells have a past now
        "site/runs/2026-11-21T06-00-00Z/index.html",  # the newest
    }
    assert "site/runs/index.html" in renewed
    assert len([name for name in after if name.startswith("site/compare/2")]) == 3


def content(site: Path) -> dict[str, bytes]:
    """All files, pages without the time at which they were made."""
    made = {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    return {name: text.partition(b"<footer>")[0] for name, text in made.items()}


def test_a_site_that_grows_is_the_same_as_one_that_is_built_at_once(place: Path) -> None:
    for day in (1, 23, 22):
        earlier_still(place, day)
        builder.build(place / "results", place / "site")
    shutil.rmtree(place / "results/2026-11-01T06:00:00Z")
    write_result_json(place / "results/later", replace(builder.small(), results=builder.small().results[:-1]))
    made = builder.build(place / "results", place / "site")
    assert builder.build(place / "results", place / "whole") == made
    grown, whole = content(place / "site"), content(place / "whole")
    assert grown.keys() == whole.keys()
    assert {name for name in grown if grown[name] != whole[name]} == set()


def test_the_results_of_a_campaign_that_has_not_changed_are_not_read(place: Path, read: list[str]) -> None:
    shown = content(place / "site")
    builder.build(place / "results", place / "site")
    assert read == ["later"]  # the build writes the start page of the newest campaign again
    assert content(place / "site") == shown


def test_a_new_campaign_is_compared_without_the_results_of_the_others(place: Path, read: list[str]) -> None:
    earlier_still(place, 22)
    builder.build(place / "results", place / "site")
    assert read == ["2026-11-22T06:00:00Z"]
    builder.build(place / "results", place / "whole")
    assert content(place / "site") == content(place / "whole")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *(("*.bin", damage) for damage in (b"", b"damaged", zlib.compress(b"[]"))),
        *(("goodputs.bin", zlib.compress(plain))
          for plain in (b'{"samples": {"sat": [[0, 99, [], []]]}}', b'{"samples": 1}')),
        *(("brief.bin", zlib.compress(plain))
          for plain in (b'{"manifest": {}}', b"[" * 100_000, b"[" * brief.LARGEST + b" ")),
    ],
)  # fmt: skip
def test_damaged_briefs_and_goodputs_are_made_again(place: Path, name: str, damage: bytes) -> None:
    for path in list((place / "site/runs").glob(f"*/{name}")):
        path.unlink()
        path.write_bytes(damage)
    earlier_still(place, 22)
    builder.build(place / "results", place / "site")
    builder.build(place / "results", place / "whole")
    grown, whole = content(place / "site"), content(place / "whole")
    assert {name for name in grown if name.startswith("compare/") and grown[name] != whole[name]} == set()
    assert grown.keys() == whole.keys()


def test_stored_goodputs_are_those_of_the_results(tmp_path: Path) -> None:
    """Of functional tests, too."""
    handshake = replace(SAT, name="handshake", abbreviation="H", check=Check.HANDSHAKE)
    found = result_set(
        [
            *runs(8e6, None, 6e6),
            *runs(None, server="quiche", client="picoquic"),
            *runs(None, 1e6, test_case="handshake"),
        ],
        servers=("picoquic", "quiche"),
        clients=("quiche", "picoquic"),
        test_cases=(SAT, handshake),
    )
    known = comparison.goodputs(found)
    file = tmp_path / "goodputs.bin"
    file.write_bytes(brief.encode_goodputs(known))
    told = brief.read_goodputs(file, found.manifest)
    for case, many in known.samples.items():
        assert told.samples[case] == tuple(each for each in many if each.outcomes)
    assert [len(told.samples[case]) for case in ("sat", "handshake")] == [2, 1]


def test_damaged_sizes_and_comparisons_in_a_marker_do_not_count(place: Path) -> None:
    shown, marker = builder.pages(place / "site").keys(), place / "site/site.json"
    told = json.loads(marker.read_text())
    odd = cycle(["x", [1, 2, 3], ["1", 2], {"a": 1}, [-1, 2], [1, 10**400], [3, 2], None])
    told["parts"] = {part: next(odd) for part in told["parts"]}
    for _, plain in told["comparisons"].values():
        plain["worse"] = float("inf")
    marker.write_text(json.dumps(told))
    made = builder.build(place / "results", place / "site")
    assert builder.pages(place / "site").keys() == shown
    assert 0 < made.pages < len(shown)


def test_a_brief_tells_what_the_results_do(place: Path) -> None:
    for name in ("earlier", "later"):
        results = load(place / "results" / name).result_set
        [told] = [each for path in (place / "site/runs").glob("*/brief.bin") if (each := brief.read(path))
                  and each.manifest == results.manifest]  # fmt: skip
        assert told.outcomes == Counter(each.verdict.outcome for each in results.results)
        assert told.finished == results.finished
        for case in ("sat", "satloss"):
            assert samples(told.measured(), case, GOODPUT) == samples(results, case, GOODPUT)


def test_a_page_that_tells_more_than_can_be_found_out_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the campaigns that trends look back on, cells keep the past that their pages show."""
    monkeypatch.setattr(report_pages, "MOST_CAMPAIGNS", 1)
    monkeypatch.setattr(recent, "SHOWN", 1)
    before = inodes(place)
    earlier_still(place, 22)
    builder.build(place / "results", place / "site")
    after = inodes(place)
    assert after["site/runs/2026-11-20T06-00-00Z/index.html"] == before["site/runs/2026-11-20T06-00-00Z/index.html"]
    page = place / "site/runs/2026-11-21T06-00-00Z/index.html"
    assert "data-past" in page.read_text()


def test_a_comparison_with_a_campaign_that_is_gone_goes(place: Path) -> None:
    shutil.rmtree(place / "results/earlier")
    builder.build(place / "results", place / "site")
    assert not list((place / "site/compare").glob("2*"))
    assert "got worse since" not in (place / "site/index.html").read_text()
