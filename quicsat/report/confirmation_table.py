"""What real time says about changes that virtual time found, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from quicsat.report.table import Column, Table, Unit, Value
from quicsat.statistics.comparison import TIMES
from quicsat.statistics.confirmation import OUTCOME, Answer, Confirmation
from quicsat.statistics.samples import GOODPUT

METRICS = {GOODPUT: "goodput", OUTCOME: "success", **{name: f"1 / {words}" for name, words in TIMES.items()}}
"""What is compared, in words."""


def confirmation_table(answers: Sequence[Confirmation]) -> Table:
    """A row per claim."""
    columns = (
        Column("test case"), Column("server"), Column("client"), Column("of"),
        Column("virtual", Unit.SHARE, 1), Column("real", Unit.SHARE, 1), Column("low", Unit.SHARE, 1),
        Column("high", Unit.SHARE, 1), Column("blocks", Unit.COUNT), Column("so changed"), Column("answer"),
        Column("would be found", Unit.SHARE, 1),
    )  # fmt: skip
    return Table("confirmation", "Virtual time and real time", columns, tuple(map(_row, answers)), _notes(answers))


def _row(each: Confirmation) -> tuple[Value, ...]:
    claim = each.claim
    low, high = each.interval or (None, None)
    names = claim.test_case, claim.server, claim.client, METRICS[claim.metric]
    size = each.detectable if each.detectable is not None and each.detectable < 1 else None
    numbers = claim.ratio, each.ratio, low, high, each.blocks
    return *names, *numbers, each.agreeing, each.answer.value, size if each.answer is not Answer.CONFIRMED else None


def _notes(answers: Sequence[Confirmation]) -> tuple[str, ...]:
    """What the answers mean, of those that there are."""
    given = {each.answer for each in answers}
    meanings = {
        Answer.CONFIRMED: "confirmed: chance explains the change in real time in at most 2.5 % of such checks.",
        Answer.DENIED: "not confirmed: the change in real time is less than half of that in virtual time, "
        "or less than 1 %.",
        Answer.OPEN: "undecided: more blocks are needed than were measured.",
    }
    return tuple(words for answer, words in meanings.items() if answer in given)
