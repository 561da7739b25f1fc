"""Which campaigns a site shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from interop.site.campaigns import find
from tests.site.builder import on_disk, small


def test_of_copies_of_a_campaign_the_fullest_is_kept(tmp_path: Path) -> None:
    whole = small()
    for name, number in (("a", 3), ("b", len(whole.results)), ("c", 5)):
        on_disk(tmp_path / name, replace(whole, results=whole.results[:number]))
    campaigns, problems = find([tmp_path])
    assert [campaign.directory.name for campaign in campaigns] == ["b"]
    assert len(problems) == 2
    assert all("left out" in problem for problem in problems)
