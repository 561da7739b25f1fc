"""Whether excluding attempts depends on their outcome: an exact test over many pairs; pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from quicsat.model.arrays import Floats

TIE = 1e-7
"""Relative: probabilities that differ by less are equal, for they are rounded."""


@dataclass(frozen=True)
class Stratum:
    """Attempts of one pair in one test case whose outcome is known."""

    would_pass: int
    """Excluded attempts that would have succeeded."""
    excluded: int
    passed: int
    """Valid attempts that succeeded."""
    valid: int


def dependence(strata: Iterable[Stratum]) -> float | None:
    """Two-sided p-value for the hypothesis that exclusion does not depend on the outcome, 0..1.

    Exact and conditional on the margins of each stratum: under the hypothesis the number of would-be successes among
    the excluded attempts of a stratum is hypergeometric, and the statistic is the sum over the strata (Mehta, Patel
    and Gray 1985); with one stratum this is Fisher's exact test. As extreme counts every sum that is at most as likely
    as the one found. None if no stratum can tell, because its attempts are all excluded, all valid, or ended alike.
    """
    distribution: Floats = np.ones(1)
    found = lowest = 0
    conclusive = False
    for each in strata:
        attempts, passes = each.excluded + each.valid, each.would_pass + each.passed
        if not (each.excluded and each.valid and 0 < passes < attempts):
            continue
        first, last = max(0, passes - each.valid), min(passes, each.excluded)
        distribution = np.convolve(distribution, _hypergeometric(passes, attempts, each.excluded, first, last))
        lowest, found, conclusive = lowest + first, found + each.would_pass, True
    if not conclusive:
        return None
    likely = distribution[found - lowest] * (1 + TIE)
    return min(1.0, float(distribution[distribution <= likely].sum()))


def _hypergeometric(passes: int, attempts: int, drawn: int, first: int, last: int) -> Floats:
    """Probabilities of ``first`` to ``last`` passes among ``drawn`` of the ``attempts``."""
    ways = math.comb(attempts, drawn)
    return np.array(
        [
            math.comb(passes, count) * math.comb(attempts - passes, drawn - count) / ways
            for count in range(first, last + 1)
        ]
    )
