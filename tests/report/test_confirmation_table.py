"""The table of what real time says about changes that virtual time found."""

from quicsat.report.confirmation_table import EXPLAINED, confirmation_table
from quicsat.statistics.confirmation import Answer, Confirmation
from tests.statistics.test_confirmation import CLAIM, about, check


def explained(answer: Confirmation) -> set[str]:
    notes = " ".join(confirmation_table([answer]).notes)
    return {name for name, words in EXPLAINED.items() if words in notes}


def test_only_columns_with_values_are_explained() -> None:
    assert explained(check(CLAIM, about(0.9))) == {*EXPLAINED}
    assert explained(Confirmation(CLAIM, Answer.OPEN)) == set()
    assert explained(Confirmation(CLAIM, Answer.OPEN, 4, agreeing="2/4", detectable=1.0)) == {"blocks"}
