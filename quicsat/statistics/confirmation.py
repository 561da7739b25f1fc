"""Whether changes that virtual time found are there in real time: a sequential test over interleaved builds; pure.

A *block* is a repetition in which both builds run with one seed, in random order, in each cell: if the builds do not
differ, it is this order that decides the sign of each ratio, whatever the machine does, so that flipping signs (Fisher
1935) is exact. What is measured is looked at after ``LOOKS`` blocks. Each look has a share of the level (``SPENT``),
and Holm's correction goes over the claims: however early it ends, at most 2.5 in 100 of such checks confirm a change
that is not there, and as many deny one that is at least half as large as in virtual time.
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet
from quicsat.statistics import effects
from quicsat.statistics.comparison import ALL, BETTER, TIMES, WORSE, Cell, Change, Comparison, PairChange
from quicsat.statistics.effects import Effect
from quicsat.statistics.samples import CONCLUSIVE_RUNS, GOODPUT, ReliabilityGroup, Sample, inverted, samples
from quicsat.statistics.significance import SMALLEST_CHANGE, holm, matters

LOOKS = (4, 10, 20, 32)
"""Blocks after which all claims are looked at; four are enough for claims about several cells."""
SPENT = (0.2, 0.2, 0.3, 0.3)
"""Share of the level that each look has."""
LEVEL = 0.025
"""Of all claims and looks together, in each direction."""
OUTCOME = "outcome"
"""As a metric: whether runs succeed."""
PRECISION = 1e-4
"""Of the ends of intervals, as logarithms."""
_SPEEDS = frozenset({Change.SLOWER, Change.FASTER, Change.PERHAPS_SLOWER, Change.NONE})
_TRIALS = CONCLUSIVE_RUNS | {Outcome.UNSUPPORTED}

Pairs = Sequence[tuple[Sample, Sample]]
"""Base and change of each cell of a claim."""


class Answer(StrEnum):
    """What real time says about a claim."""

    CONFIRMED = "confirmed"
    DENIED = "not confirmed"
    """The change is less than half as large as in virtual time."""
    OPEN = "undecided"


@dataclass(frozen=True)
class Claim:
    """A change that virtual time found."""

    server: str
    client: str
    test_case: str
    """``ALL`` in those that it does not name."""
    metric: str
    """Of a time, its inverse is compared; ``OUTCOME``: whether runs succeed."""
    shift: float
    """Of the mean logarithm; of ``OUTCOME``, of the share of runs that succeed."""
    cells: tuple[Cell, ...]

    @property
    def ratio(self) -> float:
        """By how much the geometric mean, or the share of runs that succeed, has grown."""
        return self.shift if self.metric == OUTCOME else math.expm1(self.shift)

    @property
    def worse(self) -> bool:
        """Whether it is about a loss; so is a claim without a direction."""
        return self.shift <= 0

    @property
    def sign(self) -> float:
        """Its direction."""
        return -1.0 if self.worse else 1.0

    @property
    def denied(self) -> float:
        """The least change, as ``shift``, that at most a few checks deny."""
        return self.sign * max(abs(self.shift) / 2, math.log1p(SMALLEST_CHANGE))


@dataclass(frozen=True)
class Confirmation:
    """What real time says about a claim, as of its last look."""

    claim: Claim
    answer: Answer
    blocks: int = 0
    """Those looked at."""
    ratio: float | None = None
    """By how much the geometric mean has grown, or the share of runs that succeed; None without numbers."""
    interval: tuple[float, float] | None = None
    """Of ``ratio``, at least 95 % at whichever look; None of outcomes, and where there are too few numbers."""
    detectable: float | None = None
    """The share of goodput whose loss would have been found with 80 % power; None of outcomes."""
    agreeing: str = ""
    """``9/10``: blocks that changed as claimed, of all that have both builds."""


# ---- claims ---------------------------------------------------------------------------------


def claims(found: Comparison, builds: Collection[str]) -> list[Claim]:
    """The findings of a comparison, without those that others contain.

    Implementations over all their pairs, of those that differ (``builds``); all pairs together, unless one of these
    changed alike; and cells that are part of no such claim.
    """
    significant = [each for each in (*found.groups, *found.times, *found.pairs) if each.change in WORSE | BETTER]
    wide = [each for each in significant if each.first.test_case == ALL]
    together = [each for each in wide if each.first.server == each.first.client == ALL]
    of_one = [each for each in wide if each not in together and {each.first.server, each.first.client} & {*builds}]
    cells = [each for each in significant if each not in wide]
    chosen = list[Claim]()
    for claim in (_claim(each, found) for each in (*of_one, *together, *cells)):
        if claim.cells and not any(_contains(other, claim) for other in chosen):
            chosen.append(claim)
    return chosen


def claims_about(found: Comparison, cells: Collection[Cell]) -> list[Claim]:
    """Claims about these cells, significant or not."""
    return [_claim(each, found) for each in found.pairs if _cell(each) in cells]


def _cell(pair: PairChange) -> Cell:
    return pair.second.server, pair.second.client, pair.second.test_case


def _contains(wide: Claim, claim: Claim) -> bool:
    """Whether a claim about more cells says the same; one about all pairs is left to those about implementations."""
    same = wide.worse is claim.worse and wide.metric == claim.metric
    return same and ({*claim.cells} <= {*wide.cells} or claim.server == claim.client == ALL)


def _claim(each: PairChange, found: Comparison) -> Claim:
    first, second = each.first, each.second
    names, cells = _cell(each), [_cell(each)]
    if first.test_case == ALL:
        names = first.server, first.client, each.over or ALL
        measured = [pair for pair in found.pairs if pair.first.conclusive and pair.second.conclusive]
        cells = [
            cell
            for cell in map(_cell, measured)
            if all(one in (ALL, own) for one, own in zip(names, cell, strict=True))
        ]
    if each.change not in _SPEEDS:
        return Claim(*names, OUTCOME, _successes(second) - _successes(first), tuple(cells))
    shift = each.effect.shift if each.effect is not None else math.log1p(each.ratio or 0.0)
    return Claim(*names, each.metric, shift, tuple(cells))


def _successes(sample: Sample) -> float:
    """Share of the runs that succeed, 0 without any."""
    return sample.succeeded / max(1, sum(outcome in _TRIALS for outcome in sample.outcomes))


# ---- answers --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Evidence:
    """What a number of blocks says about a claim: one-sided p-values, and the numbers to show."""

    confirms: float
    denies: float
    shown: Confirmation


def answers(made: Sequence[Claim], pairs_of: Callable[[Claim, int], Pairs], looks: int) -> list[Confirmation]:
    """What the first ``looks`` looks say about each claim; a claim with an answer is not looked at again.

    ``pairs_of``: the samples of both builds in a number of blocks, without what only one of them has; the repetition
    is the block.
    """
    known = [Confirmation(claim, Answer.OPEN) for claim in made]
    confirms, denies = ([1.0] * len(made) for _ in range(2))
    for look in range(looks):
        for place, each in enumerate(known):
            if each.answer is Answer.OPEN:
                found = _evidence(each.claim, pairs_of(each.claim, LOOKS[look]), LEVEL * SPENT[look], len(made))
                confirms[place] = min(confirms[place], found.confirms / SPENT[look])
                denies[place] = min(denies[place], found.denies / SPENT[look])
                known[place] = found.shown
        sure, unlike = (holm([min(1.0, p) for p in each]) for each in (confirms, denies))
        for place, each in enumerate(known):
            if each.answer is Answer.OPEN and sure[place] <= LEVEL and matters(each.ratio):
                known[place] = replace(each, answer=Answer.CONFIRMED)
            elif each.answer is Answer.OPEN and unlike[place] <= LEVEL:
                known[place] = replace(each, answer=Answer.DENIED)
    return known


def measured(results: ResultSet, base_of: Callable[[str], str], claim: Claim, blocks: int) -> Pairs:
    """The samples of both builds in a campaign in real time; ``base_of``: the name of an implementation in the base."""
    found = list[tuple[Sample, Sample]]()
    for server, client, test_case in claim.cells:
        metric = GOODPUT if claim.metric == OUTCOME else claim.metric
        by_pair = {(each.server, each.client): each for each in samples(results, test_case, metric)}
        change, base = by_pair[server, client], by_pair[base_of(server), base_of(client)]
        found.append(_both(*(_within(each, blocks, claim.metric) for each in (base, change))))
    return found


def _within(sample: Sample, blocks: int, metric: str) -> Sample:
    """What counts of the first blocks: numbers, of times their inverse, or outcomes of which the pair is the cause."""
    runs = [each for each in sample.repetitions if each.number <= blocks]
    if metric == OUTCOME:
        return replace(sample, repetitions=tuple(each for each in runs if each.outcome in _TRIALS))
    known = replace(sample, repetitions=tuple(each for each in runs if each.value))
    return inverted(known) if metric in TIMES else known


def _both(base: Sample, change: Sample) -> tuple[Sample, Sample]:
    blocks = {each.number for each in base.repetitions} & {each.number for each in change.repetitions}
    one, other = (
        replace(each, repetitions=tuple(run for run in each.repetitions if run.number in blocks))
        for each in (base, change)
    )
    return one, other


def _evidence(claim: Claim, pairs: Pairs, level: float, made: int) -> _Evidence:
    if claim.metric == OUTCOME:
        return _of_outcomes(claim, pairs)
    pairs = [pair for pair in pairs if len(pair[0].repetitions) > 1]
    effect = _effect(pairs)
    if effect is None:
        return _Evidence(1.0, 1.0, Confirmation(claim, Answer.OPEN))
    blocks = max(len(base.repetitions) for base, _ in pairs)
    shown = Confirmation(
        claim,
        Answer.OPEN,
        blocks,
        effect.ratio,
        _interval(pairs, effect, level),
        effect.detectable(2 * level / made),
        f"{_agreeing(effect, claim)}/{effect.members}",
    )
    return _Evidence(_above(effect, claim.sign), _above(_effect(_moved(pairs, claim.denied)), -claim.sign), shown)


def _effect(pairs: Pairs) -> Effect | None:
    """Of a cell, or of several together."""
    if len(pairs) == 1:
        return effects.of_cell(*pairs[0], paired=True)
    base, change = (tuple(each) for each in zip(*pairs, strict=True)) if pairs else ((), ())
    return effects.of_group(ReliabilityGroup(None, "", base, change), paired=True) if pairs else None


def _moved(pairs: Pairs, shift: float) -> Pairs:
    """As if the change were by ``shift`` less."""
    factor = math.exp(-shift)
    return [
        (base, replace(change, repetitions=tuple(
            replace(run, value=run.value and run.value * factor) for run in change.repetitions
        )))
        for base, change in pairs
    ]  # fmt: skip


def _above(effect: Effect | None, sign: float) -> float:
    """One-sided p-value of a change in this direction; flipped signs are symmetric about 0."""
    if effect is None:
        return 1.0
    return effect.p / 2 if effect.shift * sign > 0 else 1 - effect.p / 2


def _agreeing(effect: Effect, claim: Claim) -> int:
    return effect.agreeing if effect.shift * claim.sign > 0 else effect.members - effect.agreeing


def _interval(pairs: Pairs, effect: Effect, level: float) -> tuple[float, float] | None:
    """Of the ratio: the changes that the test does not reject at this level on either side."""
    ends = list[float]()
    for sign in (1.0, -1.0):
        far = effect.shift - sign * _reach(pairs)
        if _above(_effect(_moved(pairs, far)), sign) > level:
            return None
        near = effect.shift
        while abs(near - far) > PRECISION:
            middle = (near + far) / 2
            if _above(_effect(_moved(pairs, middle)), sign) <= level:
                far = middle
            else:
                near = middle
        ends.append(math.expm1(far))
    return ends[0], ends[1]


def _reach(pairs: Pairs) -> float:
    """More than how far any ratio is from their mean, as a logarithm."""
    logs = [math.log(value) for pair in pairs for each in pair for value in each.values]
    return 2 * (max(logs) - min(logs)) + PRECISION


def _of_outcomes(claim: Claim, pairs: Pairs) -> _Evidence:
    """Sign test of the runs whose outcomes differ between the builds, and a binomial one of their number."""
    runs = [
        (one.outcome is Outcome.SUCCEEDED, other.outcome is Outcome.SUCCEEDED)
        for base, change in pairs
        for one, other in zip(base.repetitions, change.repetitions, strict=True)
    ]
    counts = [sum(one and not other for one, other in runs), sum(other and not one for one, other in runs)]
    ours, theirs = counts if claim.worse else counts[::-1]
    blocks = max((len(base.repetitions) for base, _ in pairs), default=0)
    shown = Confirmation(
        claim,
        Answer.OPEN,
        blocks,
        (counts[1] - counts[0]) / len(runs) if runs else None,
        agreeing=f"{ours}/{len(runs)}",
    )
    denied = 1.0 if not claim.shift else _binomial(range(ours + 1), len(runs), abs(claim.shift) / 2)
    return _Evidence(_binomial(range(ours, ours + theirs + 1), ours + theirs, 0.5), denied, shown)


def _binomial(hits: Iterable[int], of: int, chance: float) -> float:
    return math.fsum(math.comb(of, each) * chance**each * (1 - chance) ** (of - each) for each in hits)
