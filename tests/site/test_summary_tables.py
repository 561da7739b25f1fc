"""Start page of a campaign: how many cells are in which state, and how many tests succeeded."""

from dataclasses import replace
from pathlib import Path

from quicsat.model.outcomes import Check, Outcome
from quicsat.site import summary_tables
from quicsat.site.campaigns import SiteCampaign
from tests.results_builder import SAT, result_set, run_result
from tests.site import builder


def test_the_legend_counts_cells_and_those_that_were_not_run() -> None:
    counts = {
        state.key: count
        for state, count in summary_tables.legend(SiteCampaign(Path(), "one", builder.small()))
        if count
    }
    assert counts == {"succeeded": 1, "partial": 4, "timeout": 1, "missing": 2}


def test_tests_are_counted_by_server_and_client_without_those_that_say_nothing() -> None:
    case = replace(SAT, name="handshake", abbreviation="H", repetitions=1, check=Check.HANDSHAKE)
    ended = {
        ("a", "a"): Outcome.SUCCEEDED, ("a", "b"): Outcome.FAILED, ("b", "a"): Outcome.UNSUPPORTED,
        ("b", "b"): Outcome.ERROR,
    }  # fmt: skip
    results = [
        run_result(None, server=server, client=client, test_case="handshake", outcome=outcome)
        for (server, client), outcome in ended.items()
    ]
    both = ("a", "b")
    found = summary_tables.tests(
        SiteCampaign(Path(), "one", result_set(results, servers=both, clients=both, test_cases=(case,)))
    )
    assert found.grid.totals == ("1 of 2", "–")
    assert [row.total for row in found.grid.rows] == ["1 of 1", "0 of 1"]
    assert found.grid.total == "1 of 2"
