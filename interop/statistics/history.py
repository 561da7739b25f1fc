"""Many campaigns in the order of their dates: each pair's series, its class, its steps, and when images changed; pure.

The classes are those of QIR-SE's long-term evaluation, in which got fixed and got broken could never occur.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

import numpy as np

from interop.model import ResultSet
from interop.statistics.samples import ABOUT_THE_PAIR, Fate, Sample, find, samples
from interop.statistics.significance import holm
from interop.traces.columns import Floats, Integers

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
"""Campaigns on each side of a step: fewer are a whim."""


class Class(StrEnum):
    """What a pair has been over the campaigns that say something about it."""

    ALWAYS_OK = "always ok"
    ALWAYS_FAILED = "always failed"
    GOT_FIXED = "got fixed"
    """Failed up to a campaign, and has succeeded ever since."""
    GOT_BROKEN = "got broken"
    FLAKY = "flaky"
    UNKNOWN = "unknown"
    """No campaign says anything."""


@dataclass(frozen=True)
class Step:
    """A lasting change of level."""

    at: int
    """Index of the first campaign after it."""
    before: float
    after: float
    """Medians of the two stretches, in the unit of the numbers."""


@dataclass(frozen=True)
class Course:
    """A pair, or an implementation in a role, over all campaigns; lists are as long as there are campaigns."""

    name: tuple[str, ...]
    """(server, client) or (role, implementation)."""
    means: tuple[float | None, ...]
    fates: tuple[Fate, ...]
    marks: tuple[int, ...]
    """Campaigns whose images differ from those of the last campaign that had them."""
    steps: tuple[Step, ...]
    kind: Class


def ordered(campaigns: Sequence[ResultSet]) -> tuple[ResultSet, ...]:
    """By the time at which they started."""
    return tuple(sorted(campaigns, key=lambda results: (results.manifest.started, results.manifest.id)))


def pair_courses(campaigns: Sequence[ResultSet], test_case: str, metric: str) -> tuple[Course, ...]:
    """One series per pair that any of the campaigns (in their order) has in ``test_case``; steps as of all together."""
    found = [_by_pair(results, test_case, metric) for results in campaigns]
    names = sorted({pair for samples_of in found for pair in samples_of})
    digests = [_digests(results) for results in campaigns]
    courses = tuple(
        _course(
            pair,
            [samples_of[pair].mean if pair in samples_of else None for samples_of in found],
            [samples_of[pair].fate if pair in samples_of else Fate.NOT_RUN for samples_of in found],
            [tuple(known.get(name, "") for name in pair) for known in digests],
        )
        for pair in names
    )
    return jointly(courses)[0]


def server_courses(campaigns: Sequence[ResultSet], test_case: str, metric: str) -> tuple[Course, ...]:
    """One series per server: the mean over its clients, each counted once; failed if none of them succeeded.

    Steps as of all servers together.
    """
    found = [_by_pair(results, test_case, metric) for results in campaigns]
    digests = [_digests(results) for results in campaigns]
    servers = sorted({server for samples_of in found for server, _ in samples_of})
    groups = [
        [[sample for (name, _), sample in samples_of.items() if name == server] for samples_of in found]
        for server in servers
    ]
    courses = tuple(
        _course(
            ("server", server),
            [_mean_of(group) for group in per_campaign],
            [_fate_of(group) for group in per_campaign],
            [(known.get(server, ""),) for known in digests],
        )
        for server, per_campaign in zip(servers, groups, strict=True)
    )
    return jointly(courses)[0]


def _by_pair(results: ResultSet, test_case: str, metric: str) -> dict[tuple[str, str], Sample]:
    case = find(results, test_case)
    many = samples(results, case.name, metric) if case is not None else ()
    return {(sample.server, sample.client): sample for sample in many if sample.outcomes}


def _digests(results: ResultSet) -> dict[str, str]:
    return {name: facts.id for name, facts in results.manifest.images.items()}


def _mean_of(group: Sequence[Sample]) -> float | None:
    means = [sample.mean for sample in group if sample.mean is not None]
    return statistics.fmean(means) if means else None


def _fate_of(group: Sequence[Sample]) -> Fate:
    fates = {sample.fate for sample in group}
    return next((fate for fate in Fate if fate in fates), Fate.NOT_RUN)


def _course(
    name: tuple[str, ...], means: Sequence[float | None], fates: Sequence[Fate], digests: Sequence[tuple[str, ...]]
) -> Course:
    kind = classify(fates)
    if kind is Class.ALWAYS_FAILED and any(mean is not None for mean in means):
        kind = Class.FLAKY  # some repetitions have succeeded
    return Course(name, tuple(means), tuple(fates), _marks(digests), (), kind)


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


def classify(fates: Sequence[Fate]) -> Class:
    """A pair's class; a single change of mind that lasted two campaigns or more is a repair or a breakage."""
    told = [fate is Fate.SUCCEEDED for fate in fates if fate in ABOUT_THE_PAIR]
    if not told:
        return Class.UNKNOWN
    if all(told) or not any(told):
        return Class.ALWAYS_OK if told[0] else Class.ALWAYS_FAILED
    turns = [number for number in range(1, len(told)) if told[number] != told[number - 1]]
    if len(turns) == 1 and len(told) - turns[0] >= 2:
        return Class.GOT_FIXED if told[-1] else Class.GOT_BROKEN
    return Class.FLAKY


def classes(many: Sequence[Course]) -> Mapping[Class, int]:
    """Course by class, those that occur."""
    return {kind: count for kind in Class if (count := sum(course.kind is kind for course in many))}


# ---- steps ----------------------------------------------------------------------------------


def steps(values: Sequence[float | None]) -> tuple[Step, ...]:
    """Lasting changes of level in one series that is looked at alone; see :func:`together`."""
    return together([values])[0]


def together(many: Sequence[Sequence[float | None]]) -> list[tuple[Step, ...]]:
    """Lasting changes of level in each of several series that are looked at together, as in one table.

    Binary segmentation (Scott and Knott 1974). The best cut of a series is tested by the likelihood ratio of a series
    with and without a step, both with autocorrelated noise, AR(1), whose coefficient is estimated each time. Its null
    distribution is simulated with the coefficient ``WORST``: smaller ones give smaller ratios. Holm's correction goes
    over the series, so that at most 5 of 100 such tables without a step tell one. Cuts within the parts of a series are
    tested at the level divided by the number of series. Logarithms if all numbers are positive. Each side of a cut
    holds three numbers at least; campaigns without a number are passed over.
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


def jointly(*groups: Sequence[Course]) -> list[tuple[Course, ...]]:
    """The same groups of courses, with the steps that hold if all of them are looked at together."""
    found = iter(together([course.means for group in groups for course in group]))
    return [tuple(replace(course, steps=next(found)) for course in group) for group in groups]


def _steps(values: Sequence[float | None], numbers: Floats, cuts: Sequence[int]) -> tuple[Step, ...]:
    known = [number for number, value in enumerate(values) if value is not None]
    edges = [0, *cuts, len(numbers)]
    return tuple(
        Step(
            known[cut],
            before=float(np.median(numbers[edges[place] : cut])),
            after=float(np.median(numbers[cut : edges[place + 2]])),
        )
        for place, cut in enumerate(cuts)
    )


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
