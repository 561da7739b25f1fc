"""What the page for two cells side by side gets of each cell."""

from dataclasses import replace
from pathlib import Path

from quicsat.site.campaigns import SiteCampaign
from quicsat.site.cell_view import detail
from quicsat.site.side_by_side import beside
from tests.results_builder import SAT, result_set, runs

KEY = ("picoquic", "quiche", "sat")


def test_the_conditions_of_the_test_case_are_among_the_facts() -> None:
    results = result_set(runs(8e6), test_cases=(replace(SAT, timeout=5.0),), repetitions=1)
    campaign = SiteCampaign(Path(), "one", results)
    facts = dict(beside(campaign, detail(campaign, KEY, {}))["facts"])
    assert facts["time limit"] == "5.0 s"
    assert facts["files"] == "10 MiB"
    assert facts["link"].startswith("20.00 / 2.00 Mbit/s, RTT 600.0 ms")
