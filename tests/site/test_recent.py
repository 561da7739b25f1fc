"""The line of the last campaigns in each cell of a matrix."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.model.outcomes import Check, Outcome
from quicsat.model.results import ImageFacts
from quicsat.site.campaigns import SiteCampaign
from quicsat.site.recent import ABSENT, BLOCKS, FAILED, SHOWN, Past, pasts, trends_of
from tests.results_builder import SAT, result_set, run_result
from tests.site.builder import build, on_disk

KEY = ("picoquic", "quiche", "sat")


def campaigns(*means: float | None) -> list[SiteCampaign]:
    """One run of a pair on each day; None: it timed out."""
    found = []
    for day, mean in enumerate(means, 1):
        made = result_set([run_result(mean)], repetitions=1)
        started = f"2026-11-{day:02}T06:00:00Z"
        manifest = replace(made.manifest, id=started, started=started)
        found.append(SiteCampaign(Path(), f"day-{day}", replace(made, manifest=manifest)))
    return found


def past_of(found: list[SiteCampaign]) -> dict[str, Past]:
    return {folder: cells[KEY] for folder, cells in pasts(trends_of(found[::-1])).items() if KEY in cells}


def test_each_campaign_looks_back_from_its_own_day() -> None:
    found = past_of(campaigns(4e6, 8e6, None, 1e3))
    assert "day-1" not in found  # nothing came before it
    assert found["day-2"].line == BLOCKS[4] + BLOCKS[7]
    assert found["day-3"].line == BLOCKS[4] + BLOCKS[7] + FAILED
    assert found["day-4"].line == BLOCKS[4] + BLOCKS[7] + FAILED + BLOCKS[0]


def test_a_campaign_without_the_pair_is_a_gap() -> None:
    """Of one character that ends no attribute without quotes."""
    found = campaigns(4e6, 6e6, 8e6)
    found[1] = replace(found[1], given=replace(found[1].results, results=()))
    line = past_of(found)["day-3"].line
    assert line == BLOCKS[4] + ABSENT + BLOCKS[7]
    assert not set(line) & set(" \t\n\f\r\"'=<>`")


def test_a_step_is_marked_where_it_is() -> None:
    found = past_of(campaigns(*[16e6, 16.2e6, 15.8e6, 16.1e6, 15.9e6] * 2, *[8e6, 8.1e6, 7.9e6, 8.2e6, 8e6]))
    last = found["day-15"]
    assert last.line == BLOCKS[7] * 3 + "│" + last.line[4:]
    assert len(last.line) == SHOWN + 1
    assert last.steps == "2026-11-11: 16.0 → 8.00 Mbit/s"
    assert "│" not in found["day-10"].line


@pytest.mark.parametrize("means", [(8e6,), (None,)])
def test_one_campaign_has_no_past(means: tuple[float | None]) -> None:
    assert past_of(campaigns(*means)) == {}


def functional(place: Path, outcomes: str, images: str) -> None:
    """A campaign per letter with a functional test; ``x``: the pair failed."""
    case = replace(SAT, name="handshake", abbreviation="H", check=Check.HANDSHAKE, repetitions=1)
    for day, (sign, image) in enumerate(zip(outcomes, images, strict=True), 1):
        outcome = Outcome.SUCCEEDED if sign == "✓" else Outcome.FAILED
        run = replace(run_result(None, outcome=outcome, test_case="handshake"), measurement=None)
        known = {"picoquic": ImageFacts("example/picoquic:latest", f"sha256:{image * 64}")}
        made = result_set([run], test_cases=(case,), repetitions=1, images=known)
        started = f"2026-11-{day:02}T06:00:00Z"
        on_disk(place / f"day-{day}", replace(made, manifest=replace(made.manifest, id=started, started=started)))


def test_functional_tests_have_a_past_and_a_flake_rate(tmp_path: Path) -> None:
    functional(tmp_path / "results", "✓x✓✓x", "aaaab")
    for _ in range(2):  # the second build knows the earlier campaigns from the first one
        build(tmp_path / "results", tmp_path / "site")
        overview = (tmp_path / "site" / "trends" / "index.html").read_text()
        assert "66.7 % (2 of 3)" in overview
        assert "1 flaky" in overview
        page = (tmp_path / "site" / "trends" / "handshake" / "index.html").read_text()
        [row] = re.findall(r"<tr><th scope=.row.*</tr>", page)
        assert re.sub("<[^>]+>", "", row) == "picoquicquiche✓×✓✓│×flaky2 of 3"
        [failed, last] = re.findall(r'href="\.\./\.\./(runs/[^"]+)"', row)
        assert all((tmp_path / "site" / each).is_file() for each in (failed, last))
        assert "2026-11-02" in failed
