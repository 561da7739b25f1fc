"""Whether an implementation succeeds more or less often than before, over all its pairs together; pure.

One pair with one repetition tells nothing. All pairs of an implementation in one role can: the samples are pooled.
"""

import math
from collections.abc import Sequence

import numpy as np

from quicsat.model.implementation import Role
from quicsat.model.outcomes import Outcome
from quicsat.statistics.samples import ReliabilityGroup, Sample
from quicsat.statistics.significance import difference, smallest_p

SEED_EFFECT = 0.5
"""Standard deviation of what the seed of a repetition does to the log odds of success of an implementation's pairs,
beyond what it does to all others: 90 % become 84 % or 94 %."""
COMMON_SEED_EFFECT = 1.0
"""The same of all pairs together: 90 % become 77 % or 96 %."""
FINE_ENOUGH = 0.0005
"""Smallest p-value of the permutation of whole repetitions with which it is made: eight against eight reach it."""
_GRID = np.linspace(-6.0, 6.0, 121)
_MASS = np.exp(-(_GRID**2) / 2) / np.exp(-(_GRID**2) / 2).sum()
_ABOUT_THE_PAIR = frozenset({Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMEOUT})


def groups(cells: Sequence[tuple[Sample, Sample]]) -> list[ReliabilityGroup]:
    """All pairs, then each implementation per role; with two cells or more that are conclusive in both."""
    known = [(one, other) for one, other in cells if one.conclusive and other.conclusive]
    found = [_group(None, "", known)]
    for role in (Role.SERVER, Role.CLIENT):
        mine: dict[str, list[tuple[Sample, Sample]]] = {}
        for cell in known:
            mine.setdefault(cell[0].server if role is Role.SERVER else cell[0].client, []).append(cell)
        found += [_group(role, name, cells) for name, cells in mine.items() if len(cells) < len(known)]
    return [group for group in found if len(group.first) > 1]


def smallest(group: ReliabilityGroup) -> float:
    """The smallest p-value that :func:`change` can reach with as many successes in all."""
    (hits, other_hits), (of, other_of) = group.succeeded, group.conclusive
    total = hits + other_hits
    if not 0 < total < of + other_of:
        return 1.0
    if _by_blocks(group):
        return smallest_p(*group.repetitions)
    ends = {max(0, total - other_of), min(of, total)}
    return min(_shifted(end, of, total, other_of, 0.0, _deviation(group)) for end in ends)


def change(group: ReliabilityGroup, everyone: ReliabilityGroup) -> float:
    """Two-sided p-value of a change of the success rate of ``group``, a part of ``everyone``.

    With eight repetitions or more in both campaigns, whole repetitions are permuted. This is exact whatever a seed does
    to the pairs. With fewer, it is a hypergeometric test (Fisher 1922) in which the log odds of success may differ
    between the campaigns by what their seeds do: normal, with a standard deviation of ``SEED_EFFECT``, about 0 or about
    the change of all other pairs, whichever gives the larger p-value. It takes pairs to fail independently otherwise.
    """
    (hits, other_hits), (of, other_of) = group.succeeded, group.conclusive
    if not 0 < hits + other_hits < of + other_of:
        return 1.0
    if _by_blocks(group):
        return difference(*_by_repetition(group))
    centres = {0.0, _log_odds_ratio(group, everyone)}
    return max(_shifted(hits, of, hits + other_hits, other_of, centre, _deviation(group)) for centre in centres)


def _group(role: Role | None, name: str, cells: Sequence[tuple[Sample, Sample]]) -> ReliabilityGroup:
    return ReliabilityGroup(role, name, tuple(one for one, _ in cells), tuple(other for _, other in cells))


def _by_blocks(group: ReliabilityGroup) -> bool:
    return smallest_p(*group.repetitions) <= FINE_ENOUGH


def _deviation(group: ReliabilityGroup) -> float:
    """Standard deviation of the difference of the log odds that the seeds of the two campaigns make."""
    effect = SEED_EFFECT if group.implementation else COMMON_SEED_EFFECT
    return effect * math.sqrt(sum(1 / count for count in group.repetitions))


def _by_repetition(group: ReliabilityGroup) -> tuple[list[float], list[float]]:
    """Successes of each repetition of each campaign, beyond what its cells have on average in both."""
    found = list[dict[int, float]](({}, {}))
    for cell in zip(group.first, group.second, strict=True):
        rate = sum(each.succeeded for each in cell) / sum(each.conclusive for each in cell)
        for sums, each in zip(found, cell, strict=True):
            for repetition in each.repetitions:
                if repetition.outcome in _ABOUT_THE_PAIR:
                    success = repetition.outcome is Outcome.SUCCEEDED
                    sums[repetition.number] = sums.get(repetition.number, 0.0) + success - rate
    return list(found[0].values()), list(found[1].values())


def _log_odds_ratio(group: ReliabilityGroup, everyone: ReliabilityGroup) -> float:
    """Of success in the first campaign, of all pairs that are not in the group (Haldane 1956); 0 if there are none."""
    rates = []
    for place in (0, 1):
        conclusive = everyone.conclusive[place] - group.conclusive[place]
        hits = everyone.succeeded[place] - group.succeeded[place]
        rates.append(math.log((hits + 0.5) / (conclusive - hits + 0.5)))
    return rates[0] - rates[1]


def _shifted(hits: int, of: int, total: int, other_of: int, centre: float, deviation: float) -> float:
    """Twice the smaller tail of ``hits`` among ``of``, given ``total`` in all; log odds ratio normal, see above."""
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, of + other_of + 1)))])  # their logarithms
    low = max(0, total - other_of)
    k = np.arange(low, min(of, total) + 1)
    ways = factorials[k] + factorials[of - k] + factorials[total - k] + factorials[other_of - total + k]
    logs = -ways[None, :] + (centre + deviation * _GRID)[:, None] * k
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    chances = _MASS @ (chances / chances.sum(axis=1, keepdims=True))
    place = hits - low
    return min(1.0, 2 * min(float(chances[: place + 1].sum()), float(chances[place:].sum())))
