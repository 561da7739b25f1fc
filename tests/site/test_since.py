"""The sentence that tells what got worse since the campaign before."""

import math
from dataclasses import replace

import pytest

from quicsat.model.outcomes import Outcome
from quicsat.site.since import sentence
from quicsat.statistics.comparison import ALL, Change, Comparison, PairChange
from quicsat.statistics.effects import Effect
from quicsat.statistics.samples import Sample

UNDECIDED = "Some changes could not be found with these results."
LARGEST = "2 pairs got worse since Monday, {} got better; the largest change for the worse: {}."


def pair(change: Change, before: float, after: float, server: str = "picoquic") -> PairChange:
    first, second = (Sample.of(server, "quiche", "sat", (rate,), (Outcome.SUCCEEDED,)) for rate in (before, after))
    return PairChange(first, second, change, 0.01)


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ([], f"No pair got significantly worse or better since Monday. {UNDECIDED}"),
        ([pair(Change.NONE, 8e6, 7e6)], "No pair got significantly worse or better since Monday."),
        ([pair(Change.FASTER, 8e6, 16e6)], "No pair got worse since Monday, 1 got better."),
        (
            [pair(Change.SLOWER, 8e6, 6e6), pair(Change.SLOWER, 16e6, 8e6, "quic-go"), pair(Change.FIXED, 8e6, 8e6)],
            LARGEST.format(1, "quic-go to quiche over sat, 16.0 → 8.00 Mbit/s (−50 %)"),
        ),
        (
            [pair(Change.SLOWER, 8e6, 1e6), pair(Change.BROKEN, 8e6, 8e6, "quinn")],
            LARGEST.format(0, "quinn to quiche over sat, new failure"),
        ),
    ],
)
def test_the_sentence(pairs: list[PairChange], told: str) -> None:
    assert sentence(Comparison(tuple(pairs), 1), "Monday") == told


def test_what_changed_over_all_pairs_is_in_the_sentence() -> None:
    group = replace(pair(Change.SLOWER, 8e6, 4e6), effect=Effect(math.log(0.5), 0.01, 9, 0.01, 0.01, 0.01))
    first = replace(group.first, server=ALL, client=ALL, test_case=ALL, repetitions=())
    told = sentence(Comparison((pair(Change.NONE, 8e6, 8e6),), 1, (replace(group, first=first),)), "Monday")
    assert told == ("No pair got significantly worse or better since Monday. All pairs together: slower (-50.0 %).")
