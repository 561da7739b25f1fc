"""What real time says about changes that virtual time found, as a table."""

from collections.abc import Sequence

from quicsat.report.table import Column, Table, Unit, Value
from quicsat.statistics.comparison import ALL, TIMES, inverse
from quicsat.statistics.confirmation import OUTCOME, Answer, Claim, Confirmation
from quicsat.statistics.samples import GOODPUT

METRICS = {GOODPUT: "", OUTCOME: "success", **TIMES}
"""What has changed, in words; goodput is not named."""
EXPLAINED = {
    "low": "Low and high are the limits of the 95 % interval of the change in real time.",
    "blocks": "Blocks: those that changed in this direction, of all.",
    "found from": "Found from: the smallest change that would have been found with 80 % power.",
}
"""By column."""


def confirmation_table(answers: Sequence[Confirmation]) -> Table:
    """A row per claim; of a time, its own change is shown."""
    columns = (
        Column("change of"), Column("virtual", Unit.SHARE, 1), Column("real", Unit.SHARE, 1),
        Column("low", Unit.SHARE, 1), Column("high", Unit.SHARE, 1), Column("blocks"),
        Column("found from", Unit.SHARE, 1), Column("answer"),
    )  # fmt: skip
    rows = tuple(map(_row, answers))
    return Table("confirmation", "Virtual time and real time", columns, rows, _notes(answers, columns, rows))


def _row(each: Confirmation) -> tuple[Value, ...]:
    claim = each.claim
    virtual, real, *ends = (_shown(claim, ratio) for ratio in (claim.ratio, each.ratio, *(each.interval or ())))
    low, high = sorted(end for end in ends if end is not None) or (None, None)
    size = None if each.detectable is None or each.detectable >= 1 else _shown(claim, -each.detectable)
    return claim_in_words(claim), virtual, real, low, high, each.agreeing, size and abs(size), each.answer.value


def claim_in_words(claim: Claim) -> str:
    """What has changed: ``sat, quic-go_picoquic``; ``server quic-go: time to 2 MB``."""
    role = f"client {claim.client}" if claim.server == ALL else f"server {claim.server}"
    pair = f"{claim.server}_{claim.client}" if ALL not in (claim.server, claim.client) else role
    over = "all pairs" if claim.server == claim.client == ALL else pair
    case = "" if claim.test_case == ALL else f"{claim.test_case}, "
    metric = METRICS[claim.metric]
    return f"{case}{over}{f': {metric}' if metric else ''}"


def _shown(claim: Claim, ratio: float | None) -> float | None:
    return inverse(ratio) if ratio is not None and claim.metric in TIMES else ratio


def _notes(
    answers: Sequence[Confirmation], columns: Sequence[Column], rows: Sequence[Sequence[Value]]
) -> tuple[str, ...]:
    """What the columns with values mean, and the answers that there are."""
    given = {each.answer for each in answers}
    meanings = {
        Answer.CONFIRMED: "confirmed: chance explains the change in real time in at most 2.5 % of such checks.",
        Answer.DENIED: "not confirmed: the change in real time is less than half of that in virtual time, "
        "or less than 1 %.",
        Answer.OPEN: "undecided: more blocks are needed than were measured.",
    }
    shown = {column.name for at, column in enumerate(columns) if any(row[at] not in (None, "") for row in rows)}
    explained = " ".join(words for name, words in EXPLAINED.items() if name in shown)
    return *filter(None, [explained]), *(words for answer, words in meanings.items() if answer in given)
