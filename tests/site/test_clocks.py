"""A site over campaigns of both clocks: each page tells the clock, and no statistic mixes two."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.model.clock import Clock
from quicsat.model.perturbation import USUAL, perturbation_of
from quicsat.model.results import ResultSet
from quicsat.site.campaign_pages import fingerprint
from quicsat.site.campaigns import SiteCampaign
from tests.results_builder import result_set, runs, virtual, virtual_only
from tests.site import builder

DAYS = {
    "real-1": (18, None),
    "virtual-1": (19, 3e-6),
    "real-2": (20, None),
    "virtual-2": (21, 3e-6),
    "slow": (22, 5e-6),
}
"""Day and cost per system call of each campaign; without a cost it ran in real time."""


def campaign(name: str, results: ResultSet | None = None) -> ResultSet:
    day, cost = DAYS[name]
    results = results or builder.small()
    clock = Clock.REAL if cost is None else Clock.VIRTUAL
    started = f"2026-11-{day}T06:00:00Z"
    return replace(results, manifest=replace(results.manifest, id=name, started=started, clock=clock, cpu_cost=cost))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    place = tmp_path_factory.mktemp("clocks")
    for name in DAYS:
        builder.on_disk(place / "results" / name, campaign(name))
    builder.build(place / "results", place / "site")
    return builder.pages(place / "site")


def test_only_campaigns_of_one_clock_are_compared(pages: Mapping[str, str]) -> None:
    told = {name.split("/", 1)[1]: "virtual time (3 µs per system call)" in text for name, text in pages.items()
            if name.startswith("compare/2")}  # fmt: skip
    assert told == {
        "2026-11-18-real-1/2026-11-20-real-2/index.html": False,
        "2026-11-19-virtual-1/2026-11-21-virtual-2/index.html": True,
    }


def test_trends_are_those_of_the_clock_of_the_newest_campaign(pages: Mapping[str, str]) -> None:
    assert "in 1 campaign in virtual time (5 µs per system call)." in pages["trends/index.html"]
    page = pages["trends/sat/index.html"]
    assert "virtual time (5 µs per system call)" in page
    assert ("2026-11-22" in page, "2026-11-21" in page) == (True, False)


def test_the_feed_tells_of_regressions_although_clocks_alternate(tmp_path: Path) -> None:
    """The campaign before the last one ran by the same clock, but is not its neighbour on the list."""
    for name, best in (("real-1", 16e6), ("virtual-1", 8e6), ("real-2", 8e6)):
        measured = result_set(runs(*(best - 1e5 * number for number in range(10))))
        builder.on_disk(tmp_path / "results" / name, campaign(name, measured))
    builder.build(tmp_path / "results", tmp_path / "site")
    feed = (tmp_path / "site" / "feed.xml").read_text()
    assert feed.count("<entry>") == 1
    assert "2026-11-18-real-1/2026-11-20-real-2" in feed


def test_a_campaign_that_was_killed_hides_nothing_and_gains_are_told(tmp_path: Path) -> None:
    """The second of three campaigns has results of one pair of four."""
    for day, (name, rate) in enumerate((("a", 8e6), ("killed", 4e6), ("b", 4e6)), 10):
        results = [each for server in "wxyz" for each in runs(rate, 2 * rate, server=server)]
        made = virtual(result_set(results, servers=tuple("wxyz"), repetitions=2))
        made = replace(made, manifest=replace(made.manifest, id=name, started=f"2026-11-{day}T06:00:00Z"))
        made = replace(made, results=made.results[:2], finished=None) if name == "killed" else made
        builder.on_disk(tmp_path / "results" / name, made)
    builder.build(tmp_path / "results", tmp_path / "site")
    feed = (tmp_path / "site" / "feed.xml").read_text()
    assert "1 got worse, 0 got better" in feed  # all pairs together; one pair shows nothing with two repetitions
    assert "2 of 8 runs measured; unfinished." in feed
    start = (tmp_path / "site" / "index.html").read_text()
    assert "All pairs together: slower" in start
    assert "is incomplete (2 of 8 runs) and was left out." in start


def test_the_method_and_the_list_of_campaigns_tell_the_clock(pages: Mapping[str, str]) -> None:
    told = [
        re.findall("<dt>Clock</dt><dd>([^:<]*)", text)[0]
        for address, text in sorted(pages.items())
        if address.endswith("method/index.html")
    ]
    virtual = "virtual time (3 µs per system call)"
    assert told == ["real time", virtual, "real time", virtual, "virtual time (5 µs per system call)"]
    assert pages["runs/index.html"].count("</a>, virtual time</th>") == 3


@pytest.mark.parametrize("page", ["", "failures/", "figures/", "method/", "data/"])
def test_every_page_of_a_campaign_tells_virtual_time_in_the_line_that_names_it(
    pages: Mapping[str, str], page: str
) -> None:
    names = ["runs/2026-11-22-slow/", "runs/2026-11-18-real-1/"]
    slow, real = (re.findall('<p class="campaign">(.*?)</p>', pages[f"{name}{page}index.html"])[0] for name in names)
    assert slow.endswith(", in virtual time (5 µs per system call)")
    assert "virtual" not in real
    assert slow in pages["index.html"]


def test_a_placebo_is_named_and_neither_the_newest_results_nor_part_of_a_trend(tmp_path: Path) -> None:
    for day, (name, rate) in enumerate((("a", 8e6), ("b", 8e6), ("again", 4e6)), 10):
        made = virtual(result_set(runs(rate, 2 * rate), repetitions=2))
        manifest = replace(made.manifest, id=name, started=f"2026-11-{day}T06:00:00Z", placebo=name == "again")
        builder.on_disk(tmp_path / "results" / name, replace(made, manifest=manifest))
    builder.build(tmp_path / "results", tmp_path / "site")
    found = builder.pages(tmp_path / "site")
    for page in ("index.html", "trends/sat/index.html"):
        assert ("2026-11-11" in found[page], "2026-11-12" in found[page]) == (True, False)
    assert "; placebo)" in found["runs/2026-11-12-again/index.html"]
    for page in (found["runs/index.html"], (tmp_path / "site" / "runs" / "campaigns.js").read_text()):
        assert page.index("2026-11-10") < page.index("2026-11-12")
        assert page.count(", placebo") == 1
    assert not any("again" in name for name in found if name.startswith("compare/"))


def test_a_fingerprint_tells_clocks_and_costs_apart() -> None:
    prints = {name: fingerprint(SiteCampaign(Path(name), name, campaign(name))) for name in DAYS}
    assert prints["real-1"] == prints["real-2"]
    assert prints["virtual-1"] == prints["virtual-2"]
    assert len({*prints.values()}) == 3


def test_pairs_that_hold_in_virtual_time_only_are_marked(pages: Mapping[str, str], tmp_path: Path) -> None:
    builder.on_disk(tmp_path / "results" / "marked", virtual_only(builder.small(), "quiche"))
    builder.build(tmp_path / "results", tmp_path / "site")
    found = builder.pages(tmp_path / "site")
    assert found["index.html"].count("†") == 2
    assert "8.00 <small>40 % ≈ †</small>" in found["index.html"]
    assert "<div><dt>†</dt><dd>holds in virtual time only: " in found["index.html"]
    told = {
        name.partition("/p/")[2] for name, text in found.items() if "This pair holds in virtual time only: " in text
    }
    assert told == {"picoquic/quiche/sat/index.html"}
    assert not any("in virtual time only" in text or "†" in text for text in pages.values())


def test_pages_of_cells_tell_how_members_differed(pages: Mapping[str, str], tmp_path: Path) -> None:
    made = campaign("virtual-1")
    results = tuple(
        replace(each, evidence=replace(each.evidence, perturbation=perturbation_of(2, USUAL))) for each in made.results
    )
    made = replace(made, manifest=replace(made.manifest, amplitudes=USUAL), results=results)
    builder.on_disk(tmp_path / "results" / "ensemble", made)
    builder.build(tmp_path / "results", tmp_path / "site")
    cells = [text for text in builder.pages(tmp_path / "site").values() if '<th scope="row">Seed</th>' in text]
    assert cells
    for text in cells:
        [link, costs] = re.findall("of the nominal ones</th>(.*?)</tr>", text)
        assert link.startswith('<td class="number">99.25 %, 99.60 %</td>')
        assert costs.startswith('<td class="number">101.3 %, 109.3 %</td>')
    assert not any("of the nominal ones" in text for text in pages.values())
