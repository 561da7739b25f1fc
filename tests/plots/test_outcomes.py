"""Functional tests: a panel per test that was run, a mark per pair, and what counts."""

from dataclasses import replace

import pytest

from quicsat.model.outcomes import Check, Outcome
from quicsat.plots.base import NothingToDrawError
from quicsat.plots.outcomes import PLOT
from tests.plots.drawn import axes, panel, plot_request, texts
from tests.results_builder import SAT, result_set, run_result

HANDSHAKE = replace(SAT, name="handshake", abbreviation="H", check=Check.HANDSHAKE)
RETRY = replace(SAT, name="retry", abbreviation="S", check=Check.RETRY)
RESULTS = result_set(
    [
        run_result(None, server=server, client="x", test_case="handshake", outcome=outcome)
        for server, outcome in (
            ("a", Outcome.SUCCEEDED), ("b", Outcome.UNSUPPORTED), ("c", Outcome.FAILED), ("d", Outcome.TIMEOUT),
            ("e", Outcome.ERROR),
        )
    ],
    servers=("a", "b", "c", "d", "e", "f"),
    clients=("x",),
    test_cases=(HANDSHAKE, RETRY, SAT),
    repetitions=1,
)  # fmt: skip


def test_only_what_says_something_of_the_pair_counts() -> None:
    assert panel(PLOT, plot_request(RESULTS)).facts["title"] == "H: 1 of 3"


def test_marks() -> None:
    ax = axes(PLOT, panel(PLOT, plot_request(RESULTS)))
    assert texts(ax) == ["✓", "–", "×", "T", "!", "·"]


def test_tests_that_were_not_run_are_left_out_and_told() -> None:
    [drawing] = PLOT.table(plot_request(RESULTS))
    assert sum(each is not None for row in drawing.panels for each in row) == 1
    assert "H handshake." in drawing.caption
    assert "Not shown, because they were not run: S." in drawing.caption
    with pytest.raises(NothingToDrawError):
        PLOT.table(plot_request(replace(RESULTS, results=())))
