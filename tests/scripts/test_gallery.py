"""The gallery of the documentation: what is drawn of which campaign, and where the papers' figures are found."""

from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.model.outcomes import Check
from quicsat.report.pair_series import load_pairs
from quicsat.report.plot_request import CampaignResults, Gallery, PlotRequest
from scripts import gallery
from tests.campaign_builder import SMALL
from tests.results_builder import SAT, result_set, runs
from tests.runs_builder import campaign

PAIRS = (("quic-go", "aioquic"), ("picoquic", "aioquic"))


class Draws:
    """Remembers what was wished for and says that it is drawn."""

    def __init__(self) -> None:
        self.requests: list[PlotRequest] = []

    def __call__(self, plot_request: PlotRequest) -> Gallery:
        self.requests.append(plot_request)
        files = tuple(plot_request.target / f"{name}-{len(self.requests)}.png" for name in plot_request.plots)
        return Gallery(files, tuple((file.stem, f"Title of {file.stem}", "n = 1.") for file in files))


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> Draws:
    """In place of the real one."""
    made = Draws()
    monkeypatch.setattr(gallery, "draw", made)
    return made


def test_sections_of_one_campaign(draws: Draws, tmp_path: Path) -> None:
    sections = list(gallery.pictures([campaign(tmp_path, PAIRS)], tmp_path, "png"))
    assert [section.heading for section in sections] == [
        "Goodput and efficiency", "Over time", "Comparisons", "Packets over SAT: the fastest pair",
        "Packets over SAT: the slowest pair, and the pair with the most redundant bytes",
        "Pairs over SAT", "Packets over SAT: servers overlaid", "Objectives",
    ]  # fmt: skip
    overlay = draws.requests[-2]
    assert overlay.overlaid
    assert {server for server, _ in overlay.pairs} == {"quic-go", "picoquic"}


def test_functional_tests_come_from_a_campaign_of_their_own(draws: Draws, tmp_path: Path) -> None:
    tests = CampaignResults("tests", result_set(test_cases=(replace(SMALL, check=Check.HANDSHAKE),)))
    sections = list(gallery.pictures([campaign(tmp_path), tests], tmp_path, "png"))
    assert sections[1].heading == "Functional tests"
    assert draws.requests[1].campaigns == (tests,)
    assert [plot_request.campaigns for plot_request in draws.requests if "history" in plot_request.plots] == []


def test_figures_over_runs_are_of_the_campaign_with_traces(draws: Draws, tmp_path: Path) -> None:
    bare = CampaignResults("bare", result_set(runs(1e6)))
    traced = campaign(tmp_path, PAIRS)
    sections = list(gallery.pictures([bare, traced], tmp_path, "png"))
    assert draws.requests[0].campaigns == (bare,)
    assert draws.requests[-1].campaigns == (traced,)
    assert " Figures over packets are of a campaign of " in gallery.page([bare, traced], sections)


def test_the_page_leads_from_the_papers_to_the_figures(draws: Draws, tmp_path: Path) -> None:
    made = campaign(tmp_path, PAIRS)
    page = gallery.page([made], list(gallery.pictures([made], tmp_path, "png")))
    assert "| arXiv 2202.08228 | Fig. 3 | [cdf-1](gallery/cdf-1.png) |" in page
    assert "![Title of cdf-1](gallery/cdf-1.png)" in page
    for title in ("### Links and files", "### Goodput and efficiency per test case", "### Loss in the traces"):
        assert title in page


def test_campaigns_over_other_links_are_parts_of_one(tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    one, other = campaign(tmp_path / "one", PAIRS), campaign(tmp_path / "other", PAIRS)
    renamed = replace(other.results.manifest, test_cases=(replace(SAT, name="sat2", abbreviation="S2"),))
    results = tuple(replace(each, test_case="sat2") for each in other.results.results)
    for folder in (tmp_path / "other").iterdir():
        (folder / "sat").rename(folder / "sat2")
    other = replace(other, results=replace(other.results, manifest=renamed, results=results))
    [made] = gallery.joined([one, other], tmp_path / "links")
    assert [case.name for case in made.results.manifest.test_cases] == ["sat", "sat2"]
    found = list(load_pairs(PlotRequest((made,), tmp_path)))
    assert [(pair.server, pair.case.name, len(pair.runs)) for pair in found] == [
        ("quic-go", "sat", 3), ("picoquic", "sat", 3), ("quic-go", "sat2", 3), ("picoquic", "sat2", 3),
    ]  # fmt: skip
    assert gallery.joined([one, one], tmp_path / "links") == [one, one]
