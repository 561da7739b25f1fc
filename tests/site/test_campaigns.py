"""Which campaigns a site shows."""

from dataclasses import replace
from pathlib import Path

from quicsat.site.campaigns import find
from tests.site.builder import on_disk, small


def test_of_copies_of_a_campaign_the_fullest_is_kept(tmp_path: Path) -> None:
    whole = small()
    for name, number in (("a", 3), ("b", len(whole.results)), ("c", 5)):
        finished = whole.finished if number == len(whole.results) else None
        on_disk(tmp_path / name, replace(whole, results=whole.results[:number], finished=finished))
    campaigns, problems = find([tmp_path])
    assert [campaign.directory.name for campaign in campaigns] == ["b"]
    assert len(problems) == 2
    assert all("left out" in problem for problem in problems)


def test_a_copy_with_other_results_does_not_displace_the_original(tmp_path: Path) -> None:
    whole = small()
    original = replace(whole, results=whole.results[:-1])
    on_disk(tmp_path / "original", original)
    on_disk(tmp_path / "a-copy", whole)
    campaigns, problems = find([tmp_path])
    assert sorted(campaign.directory.name for campaign in campaigns) == ["a-copy", "original"]
    assert len({campaign.folder for campaign in campaigns}) == 2
    assert ["both are shown" in problem for problem in problems] == [True]


def test_a_campaign_of_the_future_is_listed_last(tmp_path: Path) -> None:
    whole = small()
    on_disk(tmp_path / "now", whole)
    late = replace(whole.manifest, id="late", started="2199-01-01T00:00:00Z")
    on_disk(tmp_path / "late", replace(whole, manifest=late))
    campaigns, problems = find([tmp_path])
    assert [campaign.directory.name for campaign in campaigns] == ["now", "late"]
    assert ["in the future" in problem for problem in problems] == [True]


def test_a_site_names_no_directory_of_its_machine(tmp_path: Path) -> None:
    whole = small()
    on_disk(tmp_path / "results", replace(whole, results=whole.results[:1]))
    [[campaign], _] = find([tmp_path / "results"])
    assert campaign.warnings
    assert not any(str(tmp_path) in each for each in campaign.warnings)
