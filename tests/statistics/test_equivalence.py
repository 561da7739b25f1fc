"""Both clocks: the ratio of their means, its interval, and the verdict."""

import math
from collections.abc import Sequence

import pytest

from quicsat.statistics.equivalence import Agreement, BothClocks, Equivalence, MeasuredRun, equivalence, outcomes_differ
from quicsat.statistics.significance import student_quantile

CALM = [8.0, 8.02, 7.98, 8.01, 7.99] * 2
LEVELS = [8.0] * 16 + [6.0] * 4


def runs(values: Sequence[float], *, blocks: int = 1, first_seed: int = 1) -> tuple[MeasuredRun, ...]:
    """Repetitions in order; each block has as many of them in a row."""
    return tuple(
        MeasuredRun(value, str(place), str(place * blocks // len(values)), first_seed + place)
        for place, value in enumerate(values)
    )


def found(
    real: Sequence[float], virtual: Sequence[float], *, blocks: int = 1, same_losses: bool = False
) -> Equivalence:
    """Of one pair."""
    result = equivalence([BothClocks(runs(real, blocks=blocks), runs(virtual))], same_losses=same_losses)
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("real", "virtual", "verdict"),
    [
        (CALM, [x * 1.03 for x in CALM * 2], Agreement.EQUIVALENT),
        (CALM, [x / 1.03 for x in CALM * 2], Agreement.EQUIVALENT),
        (CALM[:5], CALM * 2, Agreement.UNDECIDED),  # all may be on one of two levels
        (CALM, CALM[:5], Agreement.UNDECIDED),
        (CALM, [x * 1.2 for x in CALM * 2], Agreement.DIFFERENT),
        (CALM[:3], [x * 0.9 for x in CALM[:3]], Agreement.DIFFERENT),
        (CALM[:2], [x * 0.5 for x in CALM], Agreement.UNDECIDED),
        (CALM, [x * 1.05 for x in CALM * 2], Agreement.UNDECIDED),
        (CALM, LEVELS, Agreement.UNDECIDED),  # the real runs may have missed the lower level
        (LEVELS[::2], LEVELS, Agreement.UNDECIDED),
    ],
)
def test_the_verdict_on_a_pair(real: Sequence[float], virtual: Sequence[float], verdict: Agreement) -> None:
    assert found(real, virtual).verdict is verdict
    assert found(real, virtual).ratio == pytest.approx(
        math.exp(sum(map(math.log, virtual)) / len(virtual) - sum(map(math.log, real)) / len(real))
    )


def test_the_interval_has_the_larger_variance_of_both_clocks() -> None:
    logs = [0.0, 0.1, -0.1, 0.1, -0.1]
    result = found([1.0] * 4, [math.exp(x) for x in logs])
    half = student_quantile(0.05, 4) * math.sqrt(0.01 * (1 / 4 + 1 / 5))
    assert result.interval == pytest.approx((math.exp(-half), math.exp(half)))
    assert found([math.exp(x) for x in logs], [1.0] * 4).interval == pytest.approx(result.interval)


def test_runs_with_the_same_losses_are_compared_one_by_one() -> None:
    real = [2.0, 5.0, 3.0, 8.0, 6.0, 2.5, 4.0, 7.0, 3.5, 5.5]
    virtual = [x * (1.01 + 0.002 * (place % 2)) for place, x in enumerate(real)]
    assert found(real, virtual, same_losses=True).verdict is Agreement.EQUIVALENT
    assert found(real, virtual).verdict is Agreement.UNDECIDED
    later = BothClocks(runs(real), runs(virtual, first_seed=4))
    result = equivalence([later], same_losses=True)
    assert result is not None and (result.real, result.virtual) == (7, 7)
    assert equivalence([BothClocks(runs(real), runs(virtual, first_seed=100))], same_losses=True) is None


def test_days_that_differ_widen_the_interval() -> None:
    days = [8.0, 8.01, 7.99, 8.0, 8.01, 8.4, 8.41, 8.39, 8.4, 8.41]
    one, two = found(days, CALM * 2).interval, found(days, CALM * 2, blocks=2).interval
    assert one is not None and two is not None
    assert two[0] < one[0] and two[1] > one[1]
    alike = found(CALM, CALM * 2).interval
    assert found(CALM, CALM * 2, blocks=2).interval == alike


def test_the_interval_of_days_that_differ_by_hand() -> None:
    """Logarithms 0, 0.02 | 0.10, 0.12 on two days, and 0.04, 0.06 twice in virtual time: half of the distance of the
    days' means is 0.05, so the square between them is 4 * 0.05^2 with one degree of freedom; within, it is 2e-4."""
    real, virtual = ([math.exp(each) for each in values] for values in ((0.0, 0.02, 0.1, 0.12), (0.04, 0.06) * 2))
    half = 6.313752 * math.sqrt(4 * 0.05**2 / 4 + 4 * 0.01**2 / 3 / 4)  # Student's t, 95 %, one degree of freedom
    assert found(real, virtual, blocks=2).interval == pytest.approx((math.exp(-0.01 - half), math.exp(-0.01 + half)))


def test_a_server_counts_each_pair_once() -> None:
    pairs = [BothClocks(runs(CALM), runs([x * ratio for x in CALM * 2])) for ratio in (1.1, 1 / 1.1, 1.0)]
    result = equivalence([*pairs, BothClocks((), runs(CALM))], same_losses=False)
    assert result is not None and result.ratio == pytest.approx(1)
    assert (result.verdict, result.real, result.virtual) == (Agreement.EQUIVALENT, 30, 60)


def test_what_a_repetition_does_to_all_pairs_does_not_average_out() -> None:
    shaken = [8.0 * math.exp(x) for x in (0.0, 0.05, -0.05, 0.05, -0.05)]
    pair = BothClocks(runs(shaken), runs(CALM))
    one, many = equivalence([pair], same_losses=False), equivalence([pair] * 6, same_losses=False)
    assert one is not None and many is not None
    assert one.interval == pytest.approx(many.interval)


def test_a_repetition_of_which_most_pairs_are_missing_does_not_stand_for_the_machine() -> None:
    pair = BothClocks(runs(CALM), runs(CALM))
    alone = MeasuredRun(9.0, "interrupted", "another day")
    results = [
        equivalence([BothClocks((*pair.real, *more), pair.virtual), *[pair] * others], same_losses=False)
        for more, others in (((), 2), ((alone,), 2), ((alone,), 1))
    ]
    whole, one_of_three, one_of_two = (each.interval for each in results if each is not None and each.interval)
    assert one_of_three[1] - one_of_three[0] < 10 * (whole[1] - whole[0])
    assert one_of_two[1] - one_of_two[0] > 2 * (one_of_three[1] - one_of_three[0])


def test_nothing_to_compare() -> None:
    assert equivalence([BothClocks(runs(CALM), ())], same_losses=False) is None
    assert equivalence([], same_losses=True) is None


@pytest.mark.parametrize(("virtual", "differ"), [((10, 10), False), ((3, 10), True), ((8, 10), False)])
def test_outcomes_that_differ(virtual: tuple[int, int], differ: bool) -> None:
    assert outcomes_differ((10, 10), virtual) is differ
