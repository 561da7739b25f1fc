"""Many campaigns in the order of their dates: each pair's series, its class, its steps, and when images changed; pure.

The classes are those of QIR-SE's long-term evaluation, in which got fixed and got broken could never occur.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from interop.model import ResultSet
from interop.statistics.samples import ABOUT_THE_PAIR, Fate, Sample, find, samples
from interop.statistics.significance import ranks
from interop.traces.columns import Floats

SEED = 20210701
SHUFFLES = 1999
STEP_LEVEL = 0.01
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
    """One series per pair that any of the campaigns (in their order) has in ``test_case``."""
    found = [_by_pair(results, test_case, metric) for results in campaigns]
    names = sorted({pair for samples_of in found for pair in samples_of})
    digests = [_digests(results) for results in campaigns]
    return tuple(
        _course(
            pair,
            [samples_of[pair].mean if pair in samples_of else None for samples_of in found],
            [samples_of[pair].fate if pair in samples_of else Fate.NOT_RUN for samples_of in found],
            [tuple(known.get(name, "") for name in pair) for known in digests],
        )
        for pair in names
    )


def server_courses(campaigns: Sequence[ResultSet], test_case: str, metric: str) -> tuple[Course, ...]:
    """One series per server: the mean over its clients, each counted once; failed if none of them succeeded."""
    found = [_by_pair(results, test_case, metric) for results in campaigns]
    digests = [_digests(results) for results in campaigns]
    servers = sorted({server for samples_of in found for server, _ in samples_of})
    groups = [
        [[sample for (name, _), sample in samples_of.items() if name == server] for samples_of in found]
        for server in servers
    ]
    return tuple(
        _course(
            ("server", server),
            [_mean_of(group) for group in per_campaign],
            [_fate_of(group) for group in per_campaign],
            [(known.get(server, ""),) for known in digests],
        )
        for server, per_campaign in zip(servers, groups, strict=True)
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


def _fate_of(group: Sequence[Sample]) -> Fate:
    fates = {sample.fate for sample in group}
    return next((fate for fate in Fate if fate in fates), Fate.NOT_RUN)


def _course(
    name: tuple[str, ...], means: Sequence[float | None], fates: Sequence[Fate], digests: Sequence[tuple[str, ...]]
) -> Course:
    kind = classify(fates)
    if kind is Class.ALWAYS_FAILED and any(mean is not None for mean in means):
        kind = Class.FLAKY  # some repetitions have succeeded
    return Course(name, tuple(means), tuple(fates), _marks(digests), steps(means), kind)


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
    """Lasting changes of level: binary segmentation (Scott and Knott 1974), each cut tested by permutation.

    A cut is kept if its gain is reached by fewer than 1 of 100 shuffles of the stretch, always the same ones. Each side
    holds three numbers at least; campaigns without a number are passed over.
    """
    known = [number for number, value in enumerate(values) if value is not None]
    numbers = np.array([value for value in values if value is not None], dtype=np.float64)
    cuts = sorted(_cuts(numbers, 0, np.random.default_rng(SEED)))
    edges = [0, *cuts, len(numbers)]
    return tuple(
        Step(
            known[cut],
            before=float(np.median(numbers[edges[place] : cut])),
            after=float(np.median(numbers[cut : edges[place + 2]])),
        )
        for place, cut in enumerate(cuts)
    )


def _cuts(numbers: Floats, start: int, rng: np.random.Generator) -> list[int]:
    if len(numbers) < 2 * SHORTEST:
        return []
    centred = ranks(numbers) - (len(numbers) + 1) / 2
    gains = _gains(centred[None, :])[0]
    best = int(gains.argmax())
    shuffled = _gains(rng.permuted(np.tile(centred, (SHUFFLES, 1)), axis=1)).max(axis=1)
    if (1 + int((shuffled >= gains[best] * (1 - 1e-9)).sum())) / (SHUFFLES + 1) > STEP_LEVEL:
        return []
    cut = best + SHORTEST
    return [
        *_cuts(numbers[:cut], start, rng),
        start + cut,
        *_cuts(numbers[cut:], start + cut, rng),
    ]


def _gains(rows: Floats) -> Floats:
    """What each allowed cut explains of the sum of squares of each row (shape: rows by numbers, mean 0)."""
    length = rows.shape[1]
    left = np.arange(SHORTEST, length - SHORTEST + 1)
    sums = np.cumsum(rows, axis=1)[:, left - 1]
    gains: Floats = sums**2 * length / (left * (length - left))
    return gains
