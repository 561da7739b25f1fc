"""Comparison of campaigns: what changed is found, what did not is left alone."""

from __future__ import annotations

import numpy as np
import pytest

from interop.model.outcomes import Outcome
from interop.report import campaign_tables
from interop.statistics.comparison import (
    ALL,
    BETTER,
    WORSE,
    Change,
    Comparison,
    campaigns,
    compare,
    geometric_mean_ratio,
    links,
)
from interop.statistics.samples import GOODPUT, Sample, samples
from tests.campaign_builder import NAMES, Shape, campaign
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs

OK, BAD = Outcome.SUCCEEDED, Outcome.FAILED


def sample(*values: float, failed: int = 0, server: str = "a", client: str = "b") -> Sample:
    return Sample(server, client, "sat", values, (OK,) * len(values) + (BAD,) * failed)


FAST = tuple(10.0 + 0.1 * number for number in range(10))
SLOW = tuple(7.0 + 0.1 * number for number in range(10))


@pytest.mark.parametrize(
    ("first", "second", "change"),
    [
        (sample(*FAST), sample(*SLOW), Change.SLOWER),
        (sample(*SLOW), sample(*FAST), Change.FASTER),
        (sample(*FAST), sample(*FAST), Change.NONE),
        (sample(*FAST), sample(failed=10), Change.BROKEN),
        (sample(failed=10), sample(*FAST), Change.FIXED),
        (sample(*FAST), sample(failed=1), Change.PERHAPS_BROKEN),
        (sample(failed=1), sample(*FAST[:3]), Change.PERHAPS_FIXED),
        (sample(*FAST), sample(1.0, failed=9), Change.LESS_RELIABLE),
        (sample(1.0, failed=9), sample(*FAST), Change.MORE_RELIABLE),
        (sample(*FAST), sample(*FAST[:9], failed=1), Change.NONE),
        (sample(failed=2), sample(failed=1), Change.FAILING),
        (sample(*FAST), Sample("a", "b", "sat", (), (Outcome.ERROR,)), Change.ABSENT),
    ],
)
def test_change_of_one_pair(first: Sample, second: Sample, change: Change) -> None:
    [found] = compare([first], [second]).pairs
    assert found.change is change


def test_a_pair_that_only_one_has_is_absent() -> None:
    found = compare([sample(*FAST)], [sample(*FAST, server="c")])
    assert [pair.change for pair in found.pairs] == [Change.ABSENT, Change.ABSENT]
    assert found.tests == 0


def test_correction_counts_the_tests_that_could_tell() -> None:
    others = [sample(*FAST, server=f"s{number}") for number in range(99)]
    found = compare([sample(*FAST), *others], [sample(*SLOW), *others])
    assert found.tests == 100
    assert found.pairs[0].change is Change.SLOWER
    assert found.pairs[0].p == pytest.approx(100 * 2 / 184756)
    assert found.pairs[0].ratio == pytest.approx(np.exp(np.mean(np.log(SLOW)) - np.mean(np.log(FAST))) - 1)
    assert found.alarms == 1


def test_three_repetitions_are_blind_and_it_is_told() -> None:
    found = compare([sample(10, 10.1, 10.2)], [sample(5, 5.1, 5.2)])
    assert found.pairs[0].change is Change.NONE
    assert (found.tests, found.blind) == (0, 1)
    assert "too few repetitions" in campaign_tables.comparison(found, "a", "b").notes[-1]


def test_worst_first() -> None:
    before = [sample(*FAST, server=name) for name in "abc"] + [sample(failed=1, server="d")]
    after = [
        sample(*FAST, server="a"), sample(*SLOW, server="b"), sample(failed=10, server="c"), sample(1.0, server="d"),
    ]  # fmt: skip
    found = compare(before, after)
    assert [pair.first.server for pair in found.pairs] == ["c", "b", "d", "a"]


def test_two_campaigns_by_name_or_abbreviation() -> None:
    first = result_set(runs(*(value * 1e6 for value in FAST)))
    second = result_set(runs(*(value * 1e6 for value in SLOW)))
    found = campaigns(first, second, [SAT, SATLOSS])
    assert [pair.change for pair in found.pairs] == [Change.SLOWER]
    assert geometric_mean_ratio(found.pairs) == pytest.approx(-0.287, abs=0.001)
    table = campaign_tables.comparison(found, "before", "after")
    assert table.rows[0][:4] == ("sat", "picoquic", "quiche", "slower")
    assert table.rows[0][8:] == ("10/10", "10/10")


def test_two_links_of_one_campaign_are_compared_by_efficiency() -> None:
    results = result_set(
        [run_result(rate * share * 1e6, test_case=case, repetition=number)
         for case, share in (("sat", 1.0), ("satloss", 0.2)) for number, rate in enumerate(FAST, 1)],
        test_cases=(SAT, SATLOSS),
    )  # fmt: skip
    [pair] = links(results, SAT, SATLOSS).pairs
    assert (pair.change, pair.first.test_case) == (Change.SLOWER, "SAT, SATL")
    assert pair.ratio == pytest.approx(-0.8)


def test_campaigns_of_the_same_thing_raise_no_alarm() -> None:
    shapes = [Shape(servers=NAMES[:5], clients=NAMES[:5], failing=0, noise_seed=seed) for seed in (1, 2)]
    first, second = map(campaign, shapes)
    assert campaigns(first, second, first.manifest.test_cases).alarms == 0


def test_one_drop_among_many_is_found_alone() -> None:
    shape = {"servers": NAMES[:6], "clients": NAMES[:6], "failing": 0.0, "test_cases": (SAT,)}
    first = campaign(Shape(noise_seed=1, **shape))  # type: ignore[arg-type]
    second = campaign(Shape(noise_seed=2, factors={("aioquic", "quiche"): 0.6}, **shape))  # type: ignore[arg-type]
    found = campaigns(first, second, [SAT])
    assert [(pair.first.server, pair.first.client) for pair in found.pairs if pair.change in WORSE | BETTER] == [
        ("aioquic", "quiche")
    ]


def test_synthetic_campaigns_are_what_they_say() -> None:
    values = [np.std(s.values) / np.mean(s.values) for s in samples(campaign(Shape(failing=0)), "sat", GOODPUT)]
    assert np.mean(values) == pytest.approx(0.095, abs=0.01)


def campaign_of(successes: np.ndarray, name: str = "t") -> list[Sample]:
    """Pass or fail; shape: servers, clients, repetitions."""
    return [
        Sample(f"s{server}", f"c{client}", name, (), tuple(OK if good else BAD for good in successes[server, client]))
        for server, client in np.ndindex(successes.shape[:2])
    ]


@pytest.mark.parametrize("repetitions", [1, 2, 3])
@pytest.mark.parametrize("rate", [0.9, 0.98])
def test_flaky_pairs_of_few_repetitions_raise_few_alarms(repetitions: int, rate: float) -> None:
    rng = np.random.default_rng((repetitions, int(rate * 100)))
    shape = (5, 5, repetitions)
    twos = [[campaign_of(rng.uniform(size=shape) < rate) for _ in range(2)] for _ in range(100)]
    assert sum(compare(*two).alarms > 0 for two in twos) <= 5


def test_a_seed_that_is_bad_for_a_server_raises_few_alarms() -> None:
    rng = np.random.default_rng(9)

    def one() -> list[Sample]:
        odds = np.log(0.9 / 0.1) + rng.normal(0, 0.5) + rng.normal(0, 0.5, (8, 1, 1))
        return campaign_of(rng.uniform(size=(8, 8, 1)) < 1 / (1 + np.exp(-odds)))

    assert sum(compare(one(), one()).alarms > 0 for _ in range(100)) <= 5


@pytest.mark.parametrize(("repetitions", "rate"), [(1, 1.0), (1, 0.95), (10, 0.95)])
def test_a_server_that_fails_with_everyone_is_an_alarm_of_its_own(repetitions: int, rate: float) -> None:
    rng = np.random.default_rng(4)
    before, after = (rng.uniform(size=(12, 12, repetitions)) < rate for _ in range(2))
    after[3] = False
    found = compare(campaign_of(before), campaign_of(after))
    assert found.worse
    conclusive = [(each.first.server, each.first.client) for each in found.groups if each.change in WORSE]
    assert ("s3", ALL) in conclusive
    assert all(server in ("s3", ALL) for server, _ in conclusive)
    rows = campaign_tables.comparison(found, "a", "b").rows
    assert any(row[:3] == (ALL, "s3", ALL) for row in rows)


def test_a_failure_that_proves_nothing_is_shown_but_not_worse() -> None:
    found = compare([sample(5.0)], [sample(failed=1)])
    assert (found.alarms, found.worse) == (0, False)
    table = campaign_tables.comparison(found, "a", "b")
    assert [row[3] for row in table.rows] == ["new failure, not significant"]
    assert any("may be chance" in note for note in table.notes)


@pytest.mark.parametrize(
    ("tests", "words"),
    [
        (0, "No change can be significant (p at most 0.025): too few repetitions for any test. "),
        (1, "p-values are those of the only test; a change is significant where they are at most 0.025. "),
        (7, "p-values are corrected for 7 tests (Holm); a change is significant where they are at most 0.025. "),
    ],
)
def test_the_note_says_how_many_tests_were_made(tests: int, words: str) -> None:
    notes = campaign_tables.comparison(Comparison((), tests, 0), "a", "b").notes
    assert notes[-1] == f"{words}Differences are those of geometric means."


def test_equal_seeds_are_compared_with_each_other() -> None:
    rng = np.random.default_rng(5)
    seed_effect = rng.lognormal(0, 1, 10)

    def made(level: float, first_seed: int) -> Sample:
        values = tuple(level * seed_effect * rng.lognormal(0, 0.05, 10))
        return Sample("a", "b", "sat", values, (OK,) * 10, seeds=tuple(range(first_seed, first_seed + 10)))

    before = made(10, 0)
    assert compare([before], [made(8, 0)]).pairs[0].change is Change.SLOWER
    assert compare([before], [made(8, 50)]).pairs[0].change is Change.NONE
