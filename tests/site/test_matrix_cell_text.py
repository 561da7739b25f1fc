"""Cells of a matrix: state, glyph, numbers."""

import pytest

from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.results.summary import summarise
from quicsat.site.matrix_cell_text import CELL_STATES, SEALED, SHADES, goodput, shown
from tests.results_builder import result_set, run_result, runs


@pytest.mark.parametrize(
    ("goodputs", "state", "text", "note", "shade"),
    [
        ((8e6, 8e6), "succeeded", "8.00", "40 %", 4),
        ((19e6, 19e6), "succeeded", "19.0", "95 %", SHADES),
        ((8e6, None), "partial", "8.00", "1/2 1T", 4),
        ((8e6,), "partial", "8.00", "1/2 1·", 4),
        ((None, None), "timeout", "T", "", None),
        ((None,), "partial", "~", "0/2 1T 1·", None),
    ],
)
def test_a_cell_tells_its_state_by_more_than_colour(
    goodputs: tuple[float | None, ...], state: str, text: str, note: str, shade: int | None
) -> None:
    [cell] = summarise(result_set(runs(*goodputs), repetitions=2))
    found = shown(cell)
    assert (found.state.key, found.text, found.note, found.shade) == (state, text, note, shade)


@pytest.mark.parametrize("outcome", [each for each in Outcome if each is not Outcome.SUCCEEDED])
def test_every_outcome_has_a_glyph_of_its_own(outcome: Outcome) -> None:
    [cell] = summarise(result_set([run_result(None, outcome=outcome)], repetitions=1))
    assert shown(cell).state.key == outcome
    assert len({state.glyph for state in CELL_STATES}) == len(CELL_STATES)


def test_a_test_that_no_key_opens_is_not_called_unsupported() -> None:
    sealed = run_result(None, outcome=Outcome.UNSUPPORTED, code=ErrorCode.KEY_LOG_MISSING)
    [cell] = summarise(result_set([sealed], repetitions=1))
    assert (shown(cell).state.key, shown(cell).text, cell.unsupported) == (SEALED, "?", 1)


def test_a_pair_that_was_not_run_is_shown_as_such() -> None:
    assert shown(None).text == "·"


@pytest.mark.parametrize(("rate", "text"), [(7.958e6, "7.96"), (18.94e6, "18.9"), (0.0, "0.00")])
def test_goodput_has_three_digits(rate: float, text: str) -> None:
    assert goodput(rate) == text
