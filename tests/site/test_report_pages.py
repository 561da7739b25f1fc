"""Comparisons, trends and figures of the site."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.model.implementation import Protocol, Role
from quicsat.model.time_shares import TimeShare
from quicsat.site import report_pages
from quicsat.site.report_pages import MOST_DOTS, trend_row
from quicsat.statistics.history import Trend, TrendClass
from quicsat.statistics.samples import PairOutcome
from tests.parity_builder import campaign as parity_campaign
from tests.parity_builder import over, over_tcp
from tests.site import builder
from tests.statistics.test_releases import RELEASES, history

OK, BAD, NOT = PairOutcome.SUCCEEDED, PairOutcome.FAILED, PairOutcome.NOT_RUN


def trend(*means: float | None, pair_outcomes: tuple[PairOutcome, ...]) -> Trend:
    return Trend(("a", "b"), means, pair_outcomes, (2,), (), {TrendClass.FLAKY: 1})


def test_a_course_has_a_dot_per_campaign_a_cross_where_nothing_succeeded_and_a_gap_where_nothing_ran() -> None:
    found = trend_row(
        trend(8e6, None, None, 4e6, pair_outcomes=(OK, BAD, NOT, OK)), ["1", "2", "3", "4"], ["a", "b", "c", "d"]
    )
    assert [(dot.x, dot.y, dot.good, dot.address) for dot in found.dots] == [
        (0, 4, True, "a"), (66.7, 36, False, "b"), (200, 20, True, "d"),
    ]  # fmt: skip
    assert found.dots[0].words == "1: 8.00 Mbit/s"
    assert found.dots[1].words == "2: failed"
    assert (found.line, found.marks, found.last) == ("0,4 200,20", (133.3,), 4e6)


def test_a_long_course_keeps_its_crosses_and_its_end() -> None:
    count = MOST_DOTS + 10
    means: list[float | None] = [8e6] * count
    means[5] = None
    pair_outcomes = tuple(BAD if mean is None else OK for mean in means)
    found = trend_row(trend(*means, pair_outcomes=pair_outcomes), ["d"] * count, [""] * count)
    assert [dot.good for dot in found.dots] == [False, True]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("two")
    builder.two_campaigns(place / "results")
    builder.build(place / "results", place / "site")
    return place / "site"


def test_a_comparison_shows_what_changed_and_every_pair(site: Path) -> None:
    [page] = site.glob("compare/*/*/index.html")
    assert {path.name for path in page.parent.glob("*.csv")} == {"comparison.csv", "all.csv"}
    everything = (page.parent / "all.csv").read_text()
    assert len(everything.splitlines()) == 1 + int(re.findall(r"<dd>(\d+)</dd>", page.read_text())[0])
    assert ",16000000.0,8000000.0," in everything


def test_shares_of_the_time_are_a_table_of_a_campaign_that_has_some(tmp_path: Path) -> None:
    results = builder.small()
    for name, values in (("without", {}), ("with", {share.metric: 1.0 for share in TimeShare})):
        told = tuple(
            replace(each, measurement=replace(each.measurement, values={**each.measurement.values, **values}))
            for each in results.results
            if each.measurement is not None
        )
        builder.on_disk(tmp_path / name / "results" / "one", replace(results, results=told))
        builder.build(tmp_path / name / "results", tmp_path / name / "site")
    [table] = tmp_path.rglob("time-shares.csv")
    assert table.is_relative_to(tmp_path / "with")
    assert len(table.read_text().splitlines()) > 1


def test_a_page_shows_the_first_rows_of_a_large_table_and_its_file_all(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [whole] = site.glob("compare/*/*/all.csv")
    monkeypatch.setattr(report_pages, "MOST_ROWS", 2)
    builder.two_campaigns(tmp_path / "results")
    builder.build(tmp_path / "results", tmp_path / "site")
    [page] = (tmp_path / "site").glob("compare/*/*/index.html")
    rows = len(whole.read_text().splitlines()) - 1
    assert rows > 2
    assert (page.parent / "all.csv").read_text() == whole.read_text()
    everything = page.read_text().partition("All pairs in both</h2>")[2]
    assert everything.count('<th scope="row">') == 2
    assert f"This page shows the first 2 of {rows} rows, and the file shows all." in everything
    assert {path.name for path in page.parent.glob("all.*")} == {"all.csv"}
    assert "all.md" not in everything
    assert "This page shows the first" not in (whole.parent / "index.html").read_text()


def test_a_dot_of_a_trend_leads_to_the_cell(site: Path) -> None:
    text = (site / "trends" / "sat" / "index.html").read_text()
    links = re.findall(r'<a href="\.\./\.\./(runs/[^"]*/p/[^"]*)"', text)
    assert links
    assert all((site / link).is_file() for link in links)


def test_documented_badges_are_there(site: Path) -> None:
    text = (builder.ROOT / "docs" / "guide" / "website.md").read_text()
    names = set(re.findall(r"badge/[a-z+-]+\.[a-z]+", text))
    assert names == {"badge/picoquic.svg", "badge/picoquic.json"}
    assert all((site / name).is_file() for name in names)


def test_badges_are_shown(site: Path) -> None:
    assert '<img src="../badge/quiche.svg"' in (site / "runs" / "index.html").read_text()


def test_a_campaign_over_both_transports_has_a_page_with_ratios(tmp_path: Path, site: Path) -> None:
    made = parity_campaign([*over_tcp(4.0), *over("quic-go", "quic-go", 2.0)])
    known = tuple(
        replace(each, protocols=(Protocol.TCP,)) if each.name == "nginx-tcp" else each
        for each in made.manifest.implementations
    )
    directory = builder.on_disk(
        tmp_path / "results", replace(made, manifest=replace(made.manifest, implementations=known))
    )
    (directory / "plots").mkdir()
    (directory / "plots/parity.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    builder.build(directory, tmp_path / "site")
    [page] = (tmp_path / "site").glob("runs/*/parity/index.html")
    text = page.read_text()
    assert re.findall(r'<img src="([^"]*)"', text) == ["../figures/parity.svg"]
    assert "<h1>QUIC and TCP</h1>" in text
    assert ",0.5," in (page.parent / "parity.csv").read_text()
    assert not list(site.glob("runs/*/parity"))


def test_a_campaign_with_several_releases_has_a_page_with_their_steps_and_figures(tmp_path: Path, site: Path) -> None:
    slow = dict.fromkeys([(release, Role.SERVER) for release in RELEASES[2:]], 0.8)
    directory = builder.on_disk(tmp_path / "results", history(slow, members=8))
    (directory / "plots").mkdir()
    for name in ("quinn", "quinn-udp"):
        (directory / f"plots/releases-{name}-SAT.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    builder.build(directory, tmp_path / "site")
    [page] = (tmp_path / "site").glob("runs/*/releases/index.html")
    text = page.read_text()
    assert re.findall(r'<img src="([^"]*)"', text) == ["../figures/releases-quinn-SAT.svg"]
    assert (page.parent / "../figures/releases-quinn-SAT.svg").is_file()
    steps = (page.parent / "steps-quinn.csv").read_text().splitlines()
    assert steps[0] == "releases,role,partner,test case,change,effect,p"
    assert {row.partition(",")[0] for row in steps[1:]} == {"0.10.0 → 0.11.0"}
    assert (page.parent / "releases-quinn.csv").read_text().startswith("release,checksum,image\n0.9.0,")
    assert len((page.parent / "goodput-quinn.csv").read_text().splitlines()) == 1 + 2 * len(RELEASES)
    links = '<a href="../../../runs/{}/releases/index.html"'
    assert links.format(page.parts[-3]) in text
    assert not list(site.glob("runs/*/releases"))
    assert "/releases/index.html" not in "".join(builder.pages(site).values())
