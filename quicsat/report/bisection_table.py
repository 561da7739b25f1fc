"""What a bisection has found: the builds that were measured, as a table with the answer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quicsat.model.results import ResultSet
from quicsat.model.text import counted, printable
from quicsat.model.units import percent
from quicsat.report.confirmation_table import METRICS, claim_in_words
from quicsat.report.table import Column, Table, Unit, Value
from quicsat.statistics.bisection import Bisected, BisectionAnswer, Side, level
from quicsat.statistics.comparison import TIMES, Comparison, detectable_in_words
from quicsat.statistics.confirmation import OUTCOME, Claim
from quicsat.statistics.samples import GOODPUT

LONGEST_TITLE = 40
"""Characters of the title of a commit in a table."""


@dataclass(frozen=True)
class Named:
    """A build as people know it."""

    label: str
    date: str = ""
    title: str = ""
    note: str = ""
    """Why it was skipped, or with which other build it shares its image."""

    @property
    def words(self) -> str:
        """``1a2b3c4d5e6f (2026-11-29, "Halve the window")``."""
        details = ", ".join(filter(None, (self.date, self.title and f'"{printable(self.title)}"')))
        return f"{self.label} ({details})" if details else self.label


def bisection_table(found: Bisected, builds: Sequence[Named], results: Mapping[int, ResultSet]) -> Table:
    """A row per build that was measured or skipped, in their order; ``results``: by place."""
    claim = found.claim
    columns = (Column("build"), _column(claim), Column("change", Unit.SHARE, 1), Column("judged"), Column("date"),
               Column("title"))  # fmt: skip
    levels = {place: level(claim, each) for place, each in results.items()} if claim else {}
    rows = tuple(
        (builds[each.place].label, levels.get(each.place), _change(claim, levels, each.place), each.side.value,
         builds[each.place].date, printable(builds[each.place].title, LONGEST_TITLE))
        for each in found.judged
    )  # fmt: skip
    skipped = [f"{builds[each.place].label} was skipped: {printable(builds[each.place].note)}"
               for each in found.judged if each.side is Side.UNTESTABLE and builds[each.place].note]  # fmt: skip
    return Table("bisection", f"{builds[0].label} to {builds[-1].label}", columns, rows, (*skipped,))


def _column(claim: Claim | None) -> Column:
    if claim is None or claim.metric == OUTCOME:
        return Column("success", Unit.SHARE, 0)
    return Column(METRICS[claim.metric], Unit.SECONDS) if claim.metric in TIMES else Column("goodput", Unit.RATE)


def _change(claim: Claim | None, levels: Mapping[int, float | None], place: int) -> Value:
    """By how much the level differs from that of the first build; of success, by which share of the runs."""
    now, first = levels.get(place), levels.get(0)
    if claim is None or now is None or first is None or not place:
        return None
    return now - first if claim.metric == OUTCOME else now / first - 1


def answer_in_words(found: Bisected, builds: Sequence[Named]) -> str:
    """The answer in a few sentences."""
    claim = found.claim
    first, last = builds[0].label, builds[-1].label
    if claim is None:
        size = detectable_in_words(found.ends) or "All runs with the same seeds gave the same results to the bit."
        return f"{first} and {last} do not differ significantly. {size}"
    what = f"{_metric(claim)} changed {_size(claim, found.ends)} from {first} to {last}"
    span = (
        f"{builds[found.before].label}, which is as {first}" * bool(found.before),
        f"{builds[found.after].label}, which is as {last}" * (found.after < len(builds) - 1),
    )
    if found.answer is BisectionAnswer.STEP and found.after - found.before == 1:
        other = [f"{_metric(each)} ({_size(each, found.ends)})" for each in found.elsewhere]
        more = f" It does not explain the change of {'; '.join(other)}: this came with other builds." if other else ""
        return f"{what}. It came with {builds[found.after].words}.{_explained(found)}{more}"
    if found.answer is BisectionAnswer.STEP:
        number = counted(found.after - found.before - 1, "build")
        return (
            f"{what}. It came with one of {builds[found.before + 1].label} to {builds[found.after].words}: "
            f"{number} before the last of these cannot be judged.{_explained(found)}"
        )
    known = " and ".join(filter(None, span))
    where = f" The change lies after {known}." if known else ""
    if found.answer is BisectionAnswer.SEVERAL:
        middle = next(each for each in found.judged if each.side is Side.BETWEEN)
        return f"{what}, but not in one step: {builds[middle.place].words} differs from both.{where}"
    if found.answer is BisectionAnswer.NOT_REPRODUCIBLE:
        return f"{what}, but not with other members: the change is not reproducible."
    middle = next(each for each in found.judged if each.side is Side.OPEN)
    return f"{what}. It cannot be decided as which of the two {builds[middle.place].words} is.{where}"


def _metric(claim: Claim) -> str:
    """``server quic-go: goodput``."""
    return claim_in_words(claim) + (": goodput" if claim.metric == GOODPUT else "")


def _size(claim: Claim, ends: Comparison) -> str:
    """``by -31.2 %``, of a time, its own change; ``(succeeded → unsupported)``."""
    if claim.metric == OUTCOME:
        cells = (each for each in ends.pairs if claim.cells[0] == (*each.second.pair, each.second.test_case))
        first, second = next((each.first, each.second) for each in cells)
        before, after = (
            f"{each.succeeded} of {counted(each.conclusive, 'run')} succeeded"
            if 0 < each.succeeded < each.conclusive
            else each.pair_outcome.value
            for each in (first, second)
        )
        return f"({before} → {after})"
    ratio = math.exp(-claim.shift) - 1 if claim.metric in TIMES else claim.ratio
    return f"by {ratio * 100:+.1f} %"


def _explained(found: Bisected) -> str:
    """How much of the change the step is, if it is not all of it."""
    reached = {each.place: each.reached for each in found.judged}
    before, after = reached.get(found.before), reached.get(found.after)
    if before is None or after is None or round((after - before) * 100) == 100:
        return ""
    return f" This step is {percent(after - before)} of the change."
