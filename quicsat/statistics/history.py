"""Trends over many campaigns in the order of their dates: means, classes, steps, and changes of images; pure.

The classes are those of QIR-SE's long-term evaluation, in which got fixed and got broken could never occur.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise

import numpy as np

from quicsat.model.arrays import Floats, Integers
from quicsat.model.results import ResultSet
from quicsat.statistics.samples import CONCLUSIVE, PairOutcome, Sample, find, samples
from quicsat.statistics.significance import holm, matters

SEED = 20210701
SERIES = 10_000
"""Simulated without a step, per length."""
STEP_LEVEL = 0.04
"""Expected share of tables with a step that is none, at a coefficient of ``WORST``; less than the 5 % promised, for the
null distribution is simulated."""
WORST = 0.7
"""Coefficient of AR(1) up to which the promise holds."""
COEFFICIENTS = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
"""Among which a series' own is chosen, by likelihood."""
EQUAL = 1e-12
SHORTEST = 3
"""Campaigns on each side of a step: fewer may be chance."""


class TrendClass(StrEnum):
    """Class of a pair over the campaigns in which it was conclusive."""

    ALWAYS_OK = "always ok"
    ALWAYS_FAILED = "always failed"
    GOT_FIXED = "got fixed"
    """Failed up to a campaign, and has succeeded ever since."""
    GOT_BROKEN = "got broken"
    FLAKY = "flaky"
    UNKNOWN = "unknown"
    """Inconclusive in all campaigns."""


@dataclass(frozen=True)
class Step:
    """A lasting change of level."""

    at: int
    """Index of the first campaign after it."""
    before: float
    after: float
    """Medians of the two stretches, in the unit of the numbers."""


@dataclass(frozen=True)
class Flakes:
    """Changes between success and failure from a campaign to the next one with a conclusive outcome and equal images.

    Changes of images are no flakes: they may have broken or mended the pair.
    """

    changes: int
    chances: int

    @property
    def rate(self) -> float | None:
        """Share of the chances; None without any."""
        return self.changes / self.chances if self.chances else None


def sum_of_flakes(many: Iterable[Flakes]) -> Flakes:
    """Of several pairs."""
    each = list(many)
    return Flakes(sum(one.changes for one in each), sum(one.chances for one in each))


@dataclass(frozen=True)
class Trend:
    """A pair, or an implementation in a role, over all campaigns; lists are as long as there are campaigns."""

    name: tuple[str, ...]
    """(server, client) or (role, implementation)."""
    means: tuple[float | None, ...]
    outcomes: tuple[PairOutcome, ...]
    marks: tuple[int, ...]
    """Campaigns whose images differ from those of the last campaign that had them."""
    steps: tuple[Step, ...]
    classes: Mapping[TrendClass, int]
    """Pairs by class: a pair itself, or all pairs of an implementation."""

    @property
    def flakes(self) -> Flakes:
        """How often a pair's outcome changed although its images did not."""
        known = [number for number, outcome in enumerate(self.outcomes) if outcome in CONCLUSIVE]
        alike = [
            (self.outcomes[before] is PairOutcome.SUCCEEDED) is not (self.outcomes[after] is PairOutcome.SUCCEEDED)
            for before, after in pairwise(known)
            if not any(before < mark <= after for mark in self.marks)
        ]
        return Flakes(sum(alike), len(alike))

    @property
    def class_in_words(self) -> str:
        """``always ok``; ``3 always ok, 1 flaky`` where the pairs of an implementation differ."""
        return in_words(self.classes) if len(self.classes) > 1 else next(iter(self.classes), TrendClass.UNKNOWN).value


def ordered(campaigns: Sequence[ResultSet]) -> tuple[ResultSet, ...]:
    """By the time at which they started."""
    return tuple(sorted(campaigns, key=lambda results: (results.manifest.started, results.manifest.id)))


def pair_trends(campaigns: Sequence[ResultSet], test_case: str, metric: str) -> tuple[Trend, ...]:
    """One series per pair that any of the campaigns (in their order) has in ``test_case``; steps as of all together."""
    found = [_by_pair(results, test_case, metric) for results in campaigns]
    names = sorted({pair for samples_of in found for pair in samples_of})
    digests = [_digests(results) for results in campaigns]
    trends = []
    for pair in names:
        means, outcomes = _means_and_outcomes(found, pair)
        marks = _marks([tuple(known.get(name, "") for name in pair) for known in digests])
        trends.append(Trend(pair, means, outcomes, marks, (), {_class_of_pair(means, outcomes): 1}))
    return with_joint_steps(trends)[0]


def outcome_trends(
    outcomes: Sequence[Mapping[tuple[str, str], PairOutcome]], images: Sequence[Mapping[str, str]]
) -> tuple[Trend, ...]:
    """One series per pair of a functional test, which has no numbers.

    ``outcomes``: of the pairs of each campaign, in the order of their dates; ``images``: ids by implementation.
    """
    trends = []
    for pair in sorted({pair for each in outcomes for pair in each}):
        mine = tuple(each.get(pair, PairOutcome.NOT_RUN) for each in outcomes)
        marks = _marks([tuple(known.get(name, "") for name in pair) for known in images])
        trends.append(Trend(pair, (None,) * len(mine), mine, marks, (), {classify(mine): 1}))
    return tuple(trends)


def server_trends(campaigns: Sequence[ResultSet], test_case: str, metric: str) -> tuple[Trend, ...]:
    """One trend per server: the mean over its clients, each counted once, and the classes of its pairs.

    In each campaign a server has succeeded only if no pair of it timed out or failed. Steps are tested over all
    servers together.
    """
    found = [_by_pair(results, test_case, metric) for results in campaigns]
    digests = [_digests(results) for results in campaigns]
    trends = []
    for server in sorted({server for samples_of in found for server, _ in samples_of}):
        groups = [[sample for (name, _), sample in samples_of.items() if name == server] for samples_of in found]
        pairs = sorted({(server, sample.client) for group in groups for sample in group})
        kinds = [_class_of_pair(*_means_and_outcomes(found, pair)) for pair in pairs]
        trends.append(
            Trend(
                ("server", server),
                tuple(map(_mean_of, groups)),
                tuple(map(_outcome_of, groups)),
                _marks([(known.get(server, ""),) for known in digests]),
                (),
                {kind: kinds.count(kind) for kind in TrendClass if kind in kinds},
            )
        )
    return with_joint_steps(trends)[0]


def _means_and_outcomes(
    found: Sequence[Mapping[tuple[str, str], Sample]], pair: tuple[str, str]
) -> tuple[tuple[float | None, ...], tuple[PairOutcome, ...]]:
    """Of a pair in each campaign; None and ``NOT_RUN`` where a campaign does not have it."""
    samples_of = [each.get(pair) for each in found]
    return (
        tuple(sample.mean if sample else None for sample in samples_of),
        tuple(sample.pair_outcome if sample else PairOutcome.NOT_RUN for sample in samples_of),
    )


def _by_pair(results: ResultSet, test_case: str, metric: str) -> dict[tuple[str, str], Sample]:
    case = find(results, test_case)
    many = samples(results, case.name, metric) if case is not None else ()
    return {(sample.server, sample.client): sample for sample in many if sample.outcomes}


def _digests(results: ResultSet) -> dict[str, str]:
    return {name: facts.id for name, facts in results.manifest.images.items()}


def _mean_of(group: Sequence[Sample]) -> float | None:
    means = [sample.mean for sample in group if sample.mean is not None]
    return statistics.fmean(means) if means else None


def _outcome_of(group: Sequence[Sample]) -> PairOutcome:
    """Of several pairs: a time-out or failure of any of them comes before the success of others."""
    found = {sample.pair_outcome for sample in group}
    order = (PairOutcome.TIMEOUT, PairOutcome.FAILED, *PairOutcome)
    return next((outcome for outcome in order if outcome in found), PairOutcome.NOT_RUN)


def _class_of_pair(means: Sequence[float | None], outcomes: Sequence[PairOutcome]) -> TrendClass:
    kind = classify(outcomes)
    some_succeeded = any(mean is not None for mean in means)
    return TrendClass.FLAKY if kind is TrendClass.ALWAYS_FAILED and some_succeeded else kind


def _marks(digests: Sequence[tuple[str, ...]]) -> tuple[int, ...]:
    """Where an image changed; campaigns that do not know one are passed over."""
    found, last = [], dict[int, str]()
    for number, known in enumerate(digests):
        changed = [place for place, digest in enumerate(known) if digest and last.get(place, digest) != digest]
        last.update({place: digest for place, digest in enumerate(known) if digest})
        if changed:
            found.append(number)
    return tuple(found)


# ---- classes --------------------------------------------------------------------------------


def classify(pair_outcomes: Sequence[PairOutcome]) -> TrendClass:
    """The class of a pair; a single change that lasts for two campaigns or more is a repair or a breakage."""
    conclusive = [pair_outcome is PairOutcome.SUCCEEDED for pair_outcome in pair_outcomes if pair_outcome in CONCLUSIVE]
    if not conclusive:
        return TrendClass.UNKNOWN
    if all(conclusive) or not any(conclusive):
        return TrendClass.ALWAYS_OK if conclusive[0] else TrendClass.ALWAYS_FAILED
    turns = [number for number in range(1, len(conclusive)) if conclusive[number] != conclusive[number - 1]]
    if len(turns) == 1 and len(conclusive) - turns[0] >= 2:
        return TrendClass.GOT_FIXED if conclusive[-1] else TrendClass.GOT_BROKEN
    return TrendClass.FLAKY


def count_classes(many: Sequence[Trend]) -> Mapping[TrendClass, int]:
    """Pairs by class, classes without pairs left out."""
    return {kind: count for kind in TrendClass if (count := sum(trend.classes.get(kind, 0) for trend in many))}


def in_words(classes: Mapping[TrendClass, int]) -> str:
    """``3 always ok, 1 flaky``; empty without pairs."""
    return ", ".join(f"{classes[kind]} {kind.value}" for kind in TrendClass if classes.get(kind))


# ---- steps ----------------------------------------------------------------------------------


def steps(values: Sequence[float | None]) -> tuple[Step, ...]:
    """Lasting changes of level in one series that is tested alone; see :func:`joint_steps`."""
    return joint_steps([values])[0]


def joint_steps(many: Sequence[Sequence[float | None]]) -> list[tuple[Step, ...]]:
    """Lasting changes of level in each of several series that are tested together, as in one table.

    Binary segmentation (Scott and Knott 1974). The best cut of a series is tested by the likelihood ratio of a series
    with and without a step, both with autocorrelated noise, AR(1), whose coefficient is estimated each time. Its null
    distribution is simulated with the coefficient ``WORST``: smaller ones give smaller ratios. Holm's correction goes
    over the series, so that at most 5 of 100 such tables without a step tell one. Cuts within the parts of a series are
    tested at the level divided by the number of series. Logarithms if all numbers are positive. Each side of a cut
    holds three numbers at least; campaigns without a number are passed over. Cuts between two medians that differ by
    less than ``SMALLEST_CHANGE`` are no steps: in virtual time, the noise can be zero.
    """
    numbers = [np.array([value for value in values if value is not None], dtype=np.float64) for values in many]
    scaled = [np.log(each) if len(each) and each.min() > 0 else each for each in numbers]
    found = [_best(each) for each in scaled]
    tried = [p for p, _ in found if p is not None]
    corrected = iter(holm(tried))
    sure = [p is not None and next(corrected) <= STEP_LEVEL for p, _ in found]
    level = STEP_LEVEL / max(1, len(tried))
    result = []
    for values, mine, logs, (_, cut), significant in zip(many, numbers, scaled, found, sure, strict=True):
        cuts = [*_cuts(logs[:cut], 0, level), cut, *_cuts(logs[cut:], cut, level)] if significant else []
        result.append(_steps(values, mine, cuts))
    return result


def with_joint_steps(*groups: Sequence[Trend]) -> list[tuple[Trend, ...]]:
    """The same groups of trends, with the steps that are significant if all of them are tested together."""
    found = iter(joint_steps([trend.means for group in groups for trend in group]))
    return [tuple(replace(trend, steps=next(found)) for trend in group) for group in groups]


def _steps(values: Sequence[float | None], numbers: Floats, cuts: Sequence[int]) -> tuple[Step, ...]:
    """The cuts that matter; the smallest of the others goes first, as its neighbours then have other medians."""
    if not cuts:
        return ()
    known = [number for number, value in enumerate(values) if value is not None]
    edges = [0, *cuts, len(numbers)]
    levels = [float(np.median(numbers[start:end])) for start, end in pairwise(edges)]
    ratios = [after / before - 1 if before else math.inf for before, after in pairwise(levels)]
    if small := [place for place, ratio in enumerate(ratios) if not matters(ratio)]:
        least = min(small, key=lambda place: abs(ratios[place]))
        return _steps(values, numbers, [*cuts[:least], *cuts[least + 1 :]])
    return tuple(Step(known[cut], *levels[place : place + 2]) for place, cut in enumerate(cuts))


def _cuts(numbers: Floats, start: int, level: float) -> list[int]:
    p, cut = _best(numbers)
    if p is None or p > level:
        return []
    return [*_cuts(numbers[:cut], start, level), start + cut, *_cuts(numbers[cut:], start + cut, level)]


def _best(numbers: Floats) -> tuple[float | None, int]:
    """p-value of the best cut, and where it is; None if the series is too short or does not vary."""
    if len(numbers) < 2 * SHORTEST or np.ptp(numbers) <= EQUAL * float(np.abs(numbers).max()):
        return None, 0
    ratios, cuts = _ratios((numbers - numbers.mean())[None, :] / numbers.std())
    null = _null(len(numbers))
    reached = len(null) - int(np.searchsorted(null, ratios[0] - EQUAL))
    return (1 + reached) / (len(null) + 1), int(cuts[0])


@lru_cache(maxsize=128)
def _null(length: int) -> Floats:
    """Sorted likelihood ratios of series of this length without a step, in which the coefficient is ``WORST``."""
    rows = np.random.default_rng(SEED).normal(size=(SERIES, length))
    for place in range(1, length):
        rows[:, place] = WORST * rows[:, place - 1] + math.sqrt(1 - WORST**2) * rows[:, place]
    return np.sort(_ratios(rows)[0])


def _ratios(rows: Floats) -> tuple[Floats, Integers]:
    """Of each row (shape: rows by numbers): the largest logarithm of the likelihood ratio, and the cut that has it."""
    length = rows.shape[1]
    without, with_step = list[Floats](), list[Floats]()
    cuts = list[Integers]()
    for coefficient in COEFFICIENTS:
        level, shapes = _shapes(length, coefficient)
        white = _whitened(rows, coefficient)
        left = (white**2).sum(axis=1) - (white @ level) ** 2
        gains = (white @ shapes) ** 2
        shift = math.log(1 - coefficient**2) / 2
        cuts.append(gains.argmax(axis=1) + SHORTEST)
        remaining = np.maximum(left - gains.max(axis=1), EQUAL * left)
        without.append(shift - length / 2 * np.log(left))
        with_step.append(shift - length / 2 * np.log(remaining))
    best = np.argmax(with_step, axis=0)
    ratios: Floats = np.max(with_step, axis=0) - np.max(without, axis=0)
    chosen: Integers = np.array(cuts)[best, np.arange(len(rows))]
    return ratios, chosen


@lru_cache(maxsize=1024)
def _shapes(length: int, coefficient: float) -> tuple[Floats, Floats]:
    """A level, and the steps (shape: numbers by cuts) beyond it, whitened and of length 1."""
    level = _whitened(np.ones((1, length)), coefficient)[0]
    level /= np.linalg.norm(level)
    cuts = np.arange(SHORTEST, length - SHORTEST + 1)
    shapes = _whitened((np.arange(length) >= cuts[:, None]).astype(np.float64), coefficient).T
    shapes -= np.outer(level, level @ shapes)
    return level, shapes / np.linalg.norm(shapes, axis=0)


def _whitened(rows: Floats, coefficient: float) -> Floats:
    """What is new in each number of AR(1) series."""
    first = math.sqrt(1 - coefficient**2) * rows[:, :1]
    return np.hstack([first, rows[:, 1:] - coefficient * rows[:, :-1]])
