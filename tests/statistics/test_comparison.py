"""Comparison of campaigns: what changed is found, what did not is left alone."""

import random
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from quicsat.model.expectations import Expectations
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ImageFacts, Measurement, ResultSet
from quicsat.report import campaign_tables
from quicsat.report.table import render
from quicsat.statistics import effects
from quicsat.statistics.comparison import (
    ALL,
    BETTER,
    TIMES,
    WORSE,
    Change,
    Comparison,
    campaigns,
    compare,
    detectable_in_words,
    effect_in_words,
    geometric_mean_ratio,
    links,
    time_in_words,
)
from quicsat.statistics.judgement import judge
from quicsat.statistics.samples import GOODPUT, ReliabilityGroup, Sample, samples
from quicsat.statistics.significance import SMALLEST_CHANGE
from tests.campaign_builder import NAMES, Shape, campaign
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs, virtual

OK, BAD = Outcome.SUCCEEDED, Outcome.FAILED


def sample(*values: float, failed: int = 0, server: str = "a", client: str = "b") -> Sample:
    return Sample.of(server, client, "sat", values, (OK,) * len(values) + (BAD,) * failed)


RULE = "A change is significant if its p-value is at most 0.05, a change of goodput only if it is also at least 1 %. "
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
        (sample(*FAST), sample(*FAST[:9], failed=1), Change.PERHAPS_LESS_RELIABLE),
        (sample(*FAST[:9], failed=1), sample(*FAST[:5], failed=5), Change.PERHAPS_LESS_RELIABLE),
        (sample(1.0, failed=9), sample(failed=10), Change.PERHAPS_LESS_RELIABLE),
        (sample(*FAST[:5], failed=5), sample(*FAST[:9], failed=1), Change.NONE),
        (sample(failed=2), sample(failed=1), Change.FAILING),
        (sample(*FAST), Sample.of("a", "b", "sat", (), (Outcome.ERROR,)), Change.LOST),
        (Sample.of("a", "b", "sat", (), (Outcome.ERROR,)), sample(*FAST), Change.ABSENT),
    ],
)
def test_change_of_one_pair(first: Sample, second: Sample, change: Change) -> None:
    [found] = compare([first], [second]).pairs
    assert found.change is change


def test_the_interval_of_a_group_agrees_with_its_test_where_pairs_change_differently() -> None:
    for seed in range(24):
        rng = random.Random(seed)
        changes = [4.7, 3.1, 1.0, 1.0, 0.85, rng.uniform(0.2, 0.4)]
        before, after = (
            [
                Sample.of(
                    f"s{number}", "b", "sat", tuple(factor * rng.gauss(1.0, 0.05) for _ in range(10)), (OK,) * 10,
                    seeds=range(10),
                )
                for number, factor in enumerate(factors)
            ]
            for factors in ([1.0] * len(changes), changes)
        )  # fmt: skip
        order = rng.sample(range(len(changes)), len(changes))
        found = effects.of_group(ReliabilityGroup(None, "", tuple(before), tuple(after)), paired=True)
        one, other = (tuple(each[place] for place in order) for each in (before, after))
        shuffled = effects.of_group(ReliabilityGroup(None, "", one, other), paired=True)
        assert found is not None
        assert found.interval is not None
        assert shuffled is not None
        assert shuffled.p == pytest.approx(found.p)
        if not 0.045 <= found.p <= 0.055:
            assert (found.interval[0] > 0) == (found.p < 0.05)


def test_a_pair_that_only_one_has_is_lost_or_absent() -> None:
    found = compare([sample(*FAST)], [sample(*FAST, server="c")])
    assert [pair.change for pair in found.pairs] == [Change.LOST, Change.ABSENT]
    assert found.tests == 0


def test_correction_counts_the_tests_that_could_tell() -> None:
    others = [sample(*FAST, server=f"s{number}") for number in range(99)]
    found = compare([sample(*FAST), *others], [sample(*SLOW), *others])
    assert found.tests == 101  # those of the pairs, and that of all pairs together
    assert found.pairs[0].change is Change.SLOWER
    assert found.pairs[0].p == pytest.approx(150 * 2 / 184756 / 0.8)  # the test of all pairs has a third
    assert found.pairs[0].ratio == pytest.approx(np.exp(np.mean(np.log(SLOW)) - np.mean(np.log(FAST))) - 1)
    assert found.alarms == 1


def test_the_change_over_all_pairs_leaves_no_pair_out() -> None:
    """Neither one that has lost all but 1e-25 of its goodput, nor one that falls to 0 or grows from 0."""
    whole = [sample(8.0, 8.0, server=name) for name in "abc"]
    for lost, mean in (((4.0, 4.0), 0.5 ** (1 / 3) - 1), ((8e-50, 8.0), -1.0), ((0.0, 0.0), -1.0)):
        found = compare(whole, [*whole[:2], sample(*lost, server="c")])
        assert geometric_mean_ratio(found.pairs) == pytest.approx(mean, abs=1e-6)
        back = compare([*whole[:2], sample(*lost, server="c")], whole)
        grown = geometric_mean_ratio(back.pairs)
        assert grown is None if lost[1] == 0 else (grown is not None and grown > 0)
    assert geometric_mean_ratio(compare(whole, [sample(failed=2, server="a"), *whole[1:]]).pairs) == 0
    assert geometric_mean_ratio(()) is None


def test_the_table_names_the_means_of_its_differences() -> None:
    for lost, arithmetic in ((1.0, False), (0.0, True)):
        found = compare([sample(8.0, 8.0)], [sample(8.0, lost)])
        notes = campaign_tables.comparison(found, "a", "b").notes
        assert [("geometric" in note, "arithmetic" in note) for note in notes if "Differences" in note] == [
            (True, arithmetic)
        ]


def test_a_time_that_has_grown_without_bound_is_shown() -> None:
    def made(factor: float) -> ResultSet:
        results = [
            replace(run, measurement=Measurement({"goodput": 8e6, "completion_time": factor * (1 + number / 1e3)}))
            for number, run in enumerate(runs(*[8e6] * 10))
        ]
        return virtual(result_set(results))

    slower, faster = (campaigns(made(one), made(other), [SAT]).times for one, other in ((1, 1e25), (1e25, 1)))
    assert [("inf" in time_in_words(each), each.change) for each in (*slower, *faster)] == [
        (True, Change.SLOWER),
        (False, Change.FASTER),
    ]


def test_the_ends_of_an_interval_differ_or_there_are_none() -> None:
    """Over all pairs, in words and in the table."""
    rng = np.random.default_rng(3)
    first = [numbered(*(8e6 * rng.lognormal(0, 0.2, 14)), server=name) for name in "abcdef"]
    for spread in (0.0, 1e-5, 1e-3):
        second = [
            numbered(*(0.985 * value * rng.lognormal(0, spread) for value in each.values), server=each.server)
            for each in first
        ]
        found = compare(first, second)
        [everything] = [each for each in found.groups if each.first.server == each.first.client == ALL]
        assert everything.effect is not None
        assert (everything.effect.interval is None) is (spread == 0)
        told = re.search(r"interval (\S+) to (\S+) %", effect_in_words(everything))
        table = campaign_tables.comparison(found, "a", "b")
        shown = dict(zip([column.name for column in table.columns], table.texts(table.rows[0]), strict=True))
        assert (told is None) is (shown["low"] == "") is (spread == 0)
        if told:
            low, high = map(float, told.groups())
            assert low < high
            assert [low, high] == [float(shown["low"]), float(shown["high"])]


def numbered(*values: float, server: str) -> Sample:
    """In real time: each repetition has a seed of its own in each campaign."""
    return Sample.of(server, "z", "sat", values, (OK,) * len(values))


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
    assert table.rows[0][10:] == ("10/10", "10/10", "10/10")


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
        Sample.of(
            f"s{server}", f"c{client}", name, (), tuple(OK if good else BAD for good in successes[server, client])
        )
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


@pytest.mark.parametrize(("size", "repetitions", "rate"), [(5, 1, 1.0), (12, 1, 1.0), (12, 1, 0.95), (12, 10, 0.95)])
def test_a_server_that_fails_with_everyone_is_an_alarm_of_its_own(size: int, repetitions: int, rate: float) -> None:
    rng = np.random.default_rng(4)
    before, after = (rng.uniform(size=(size, size, repetitions)) < rate for _ in range(2))
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
    assert any("may be due to chance" in note for note in table.notes)


def test_equal_members_lack_no_repetitions() -> None:
    found = compare([seeded(1.0, 2.0)], [seeded(1.0, 2.0)], virtual=True)
    assert found.identical == 1
    notes = " ".join(campaign_tables.comparison(found, "a", "b").notes)
    assert "to the bit" in notes
    assert "too few repetitions" not in notes


@pytest.mark.parametrize(
    ("tests", "words"),
    [
        (0, "No change can be significant (p at most 0.05), because there are too few repetitions for any test. "),
        (1, f"p-values are those of the only test. {RULE}"),
        (7, f"p-values are corrected for 7 tests (Holm). {RULE}"),
    ],
)
def test_the_note_says_how_many_tests_were_made(tests: int, words: str) -> None:
    notes = campaign_tables.comparison(Comparison((), tests), "a", "b").notes
    assert f"{words}Differences are those of geometric means." in notes


def test_equal_seeds_are_compared_with_each_other() -> None:
    rng = np.random.default_rng(5)
    seed_effect = rng.lognormal(0, 1, 10)

    def made(level: float, first_seed: int) -> Sample:
        values = tuple(level * seed_effect * rng.lognormal(0, 0.05, 10))
        return Sample.of("a", "b", "sat", values, (OK,) * 10, seeds=tuple(range(first_seed, first_seed + 10)))

    before = made(10, 0)
    assert compare([before], [made(8, 0)]).pairs[0].change is Change.SLOWER
    assert compare([before], [made(8, 50)]).pairs[0].change is Change.NONE


@pytest.mark.parametrize("factor", [0.8, 1.25])
@pytest.mark.parametrize(("repetitions", "same_seeds"), [(2, True), (3, True), (5, False)])
def test_goodput_of_all_pairs_is_tested_together(repetitions: int, same_seeds: bool, factor: float) -> None:
    """14 clients with a noise of 3 %, and seeds that change the goodput of all pairs by 3 %."""
    rng = np.random.default_rng(3)
    first_effect, other_effect = rng.lognormal(0, 0.03, (2, repetitions))

    def made(factor: float, effect: np.ndarray, seed: int) -> list[Sample]:
        noise = rng.lognormal(0, 0.03, (14, repetitions))
        seeds = tuple(range(seed, seed + repetitions))
        return [
            Sample.of(
                "s", f"c{n}", "sat", tuple(factor * (n + 1) * effect * noise[n]), (OK,) * repetitions, seeds=seeds
            )
            for n in range(14)
        ]

    before = made(1.0, first_effect, 1)
    effect, seed = (first_effect, 1) if same_seeds else (other_effect, 50)
    assert compare(before, made(1.0, effect, seed)).groups == ()
    found = compare(before, made(factor, effect, seed))
    assert [(each.first.server, each.first.client, each.change) for each in found.groups] == [
        (ALL, ALL, Change.SLOWER if factor < 1 else Change.FASTER)
    ]
    assert found.groups[0].ratio == pytest.approx(factor - 1, abs=0.05)
    assert found.worse is (factor < 1)


@pytest.mark.parametrize("virtual", [True, False])
def test_a_server_that_is_slower_with_all_clients_is_a_line_of_its_own(virtual: bool) -> None:
    rng = np.random.default_rng(6)

    def made(slow: float) -> list[Sample]:
        rates = {(s, c): 10 * rng.lognormal(0, 0.03, 3) * (slow if s == 2 else 1) for s in range(5) for c in range(6)}
        return [
            Sample.of(f"s{s}", f"c{c}", "sat", tuple(values), (OK,) * 3, seeds=(1, 2, 3))
            for (s, c), values in rates.items()
        ]

    groups = compare(made(1.0), made(0.8), virtual=virtual).groups
    slower = {(each.first.server, each.first.client) for each in groups if each.change is Change.SLOWER}
    assert slower == {("s2", ALL), *([(ALL, ALL)] if virtual else [])}
    assert compare(made(1.0), made(1.0), virtual=virtual).groups == ()


@pytest.mark.parametrize("repetitions", [3, 10])
def test_what_the_machine_does_to_a_repetition_in_real_time_is_no_change(repetitions: int) -> None:
    rng = np.random.default_rng(7)

    def made() -> list[Sample]:
        states = rng.lognormal(0, 0.05, repetitions)
        outcomes, seeds = (OK,) * repetitions, tuple(range(repetitions))
        return [
            Sample.of(
                f"s{n}", f"c{n}", "sat", tuple(10 * states * rng.lognormal(0, 0.01, repetitions)), outcomes, seeds=seeds
            )
            for n in range(10)
        ]

    trials = 60
    alarms = sum(compare(made(), made()).alarms > 0 for _ in range(trials))
    assert alarms <= 9  # expected at most 3; more than 9 have a chance of 0.1 % at 5 %


def seen(each: Sample, factor: float = 1.0) -> Sample:
    """A sample with known seeds, and values by a factor larger."""
    values = tuple(value * factor for value in each.values)
    return Sample.of(each.server, each.client, each.test_case, values, each.outcomes, seeds=tuple(range(1, 11)))


def test_changes_of_less_than_1_percent_are_none_however_sure() -> None:
    before = [sample(*FAST, server=name) for name in "xyz"]
    for size, change in ((0.995, Change.NONE), (1.005, Change.NONE)):
        found = compare([seen(each) for each in before], [seen(each, size) for each in before])
        assert [pair.change for pair in found.pairs] == [change] * 3
        assert found.alarms == 0


def test_what_a_comparison_cannot_show_is_undecided() -> None:
    enough, few = sample(*FAST), sample(10.0, 10.1)
    gone = Sample.of("a", "b", "sat", (), (Outcome.ERROR,))
    assert not compare([enough], [enough]).undecided
    for before, after in ((few, few), (enough, gone), (gone, gone), (sample(5.0), sample(failed=1))):
        assert compare([before], [after]).undecided
    assert compare([enough, replace(enough, server="x")], [enough]).undecided


# ---- members --------------------------------------------------------------------------------


def seeded(*values: float | None, server: str = "a", client: str = "b", first: int = 1) -> Sample:
    """A number per seed from ``first`` on; None for a failure."""
    numbers = tuple(value for value in values if value is not None)
    outcomes = tuple(BAD if value is None else OK for value in values)
    return Sample.of(server, client, "sat", numbers, outcomes, seeds=tuple(range(first, first + len(values))))


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ((10.0,), (10.0,), True),
        ((10.0, 9.0, 8.0), (10.0,), True),
        ((10.0, None), (10.0, None), True),
        ((10.0, None), (10.0, 10.0), False),
        ((10.0, 9.0), (10.0, 9.1), False),
    ],
)
def test_members_that_are_the_same_to_the_bit_have_not_changed(
    first: tuple[float | None, ...], second: tuple[float | None, ...], same: bool
) -> None:
    [pair] = compare([seeded(*first)], [seeded(*second)], virtual=True).pairs
    assert pair.identical is same
    assert pair.open is not same
    if same:
        assert pair.ratio == 0.0


def test_a_goodput_of_0_is_neither_the_same_nor_fine() -> None:
    others = [seeded(*FAST, server=server) for server in "cdefgh"]
    for zero in ((seeded(*FAST), seeded(*(0.0,) * 10)), (seeded(*(0.0,) * 10), seeded(*FAST))):
        found = compare([zero[0], *others], [zero[1], *others], virtual=True)
        [pair] = [each for each in found.pairs if each.first.server == "a"]
        assert not pair.identical
        assert pair.open


def test_identical_cells_take_no_part_of_the_level() -> None:
    """Of 99 cells, 98 are the same to the bit: only the other one is tested, and all of them together."""
    others = [seeded(*FAST, server=f"s{number}") for number in range(98)]
    found = compare([seeded(*FAST), *others], [seeded(*SLOW), *others], virtual=True)
    assert [found.pairs[0].change, found.identical, found.tests] == [Change.SLOWER, 98, 2]
    assert found.pairs[0].p == pytest.approx(1.5 * 2 / 1024 / 0.8)
    assert found.detectable[0] is not None and found.detectable[0] < 0.02
    assert detectable_in_words(found)
    assert detectable_in_words(compare(others, others, virtual=True)) == ""


@pytest.mark.parametrize(("virtual_time", "cells", "worse"), [(True, 10, True), (True, 5, False), (False, 10, False)])
def test_one_member_decides_over_many_cells_in_virtual_time_alone(virtual_time: bool, cells: int, worse: bool) -> None:
    rng = np.random.default_rng(5)
    before = [seeded(float(10 * rng.lognormal(0, 0.02)), server=f"s{n}") for n in range(cells)]
    after = [seeded(float(9 * rng.lognormal(0, 0.02)), server=f"s{n}") for n in range(cells)]
    found = compare(before, after, virtual=virtual_time)
    assert found.worse is worse
    assert found.undecided


def test_a_cell_that_looks_slower_is_open_and_no_alarm() -> None:
    few = compare([seeded(10.0, 10.1, 10.2)], [seeded(5.0, 5.1, 5.2)], virtual=True)
    assert few.pairs[0].change is Change.PERHAPS_SLOWER
    assert (few.alarms, few.worse, few.undecided) == (0, False, True)
    gain = compare([seeded(5.0, 5.1, 5.2)], [seeded(10.0, 10.1, 10.2)], virtual=True)
    assert gain.pairs[0].change is Change.NONE


@pytest.mark.parametrize(("base_fails", "change"), [(0, Change.PERHAPS_LESS_RELIABLE), (2, Change.NONE)])
def test_a_later_look_makes_no_failure_undone(base_fails: int, change: Change) -> None:
    ok = [10.0 + number / 100 for number in range(15)]
    first = compare([seeded(*ok[:5])], [seeded(*ok[:3], None, None)], virtual=True)
    before = [None] * base_fails + ok[base_fails:]
    later = compare([seeded(*before, first=6)], [seeded(*ok, first=6)], virtual=True)
    assert later.pairs[0].reliability not in WORSE
    [pair] = first.decided_by(later).pairs
    assert pair.change is change
    assert pair.open is (change is not Change.NONE)
    assert pair.second.conclusive == (20 if pair.open else 15)


def test_an_implementation_that_fails_more_often_has_no_change_of_goodput() -> None:
    """Of two links, only runs over the faster one still succeed."""
    slow = [replace(sample(1.0, 1.1, server=name), test_case="slow") for name in "abcdef"]
    broken = [replace(sample(failed=2, server=name), test_case="slow") for name in "abcdef"]
    fast = [sample(*FAST[:2], server=name) for name in "abcdef"]
    worst = compare([*slow, *fast], [*broken, *fast]).groups[0]
    assert worst.change is Change.LESS_RELIABLE
    assert worst.ratio is worst.second.mean is None


def test_a_change_has_an_interval_and_the_members_that_share_its_sign() -> None:
    many = FAST + tuple(10.05 + 0.1 * number for number in range(5))
    [pair] = compare([seeded(*many)], [seeded(*(0.9 * value for value in many[:14]), many[14] * 1.01)]).pairs
    assert pair.effect is not None and pair.effect.interval is not None
    low, high = pair.effect.interval
    assert low < pair.effect.ratio < high < 0
    assert pair.ratio == pytest.approx(0.9 ** (14 / 15) * 1.01 ** (1 / 15) - 1)
    assert pair.members == "14/15"
    assert compare([sample(*FAST)], [sample(*SLOW)]).pairs[0].members == ""
    [few] = compare([sample(*FAST)], [sample(*SLOW)]).pairs
    assert few.effect is not None and few.effect.interval is None


@pytest.mark.parametrize("paired", [True, False])
def test_an_interval_of_a_change_holds_a_level_that_only_one_build_has(paired: bool) -> None:
    """One run in five of the second build is on a lower level, and none of the first."""
    rng, held, made = np.random.default_rng(11), 0, 0
    for count in (4, 5, 10, 13, 15) * 80:
        one, other = 0.002 * rng.normal(size=(2, count))
        other = other + np.log(0.75) * (rng.uniform(size=count) < 0.2)
        interval = effects.of_cell(seeded(*np.exp(one)), seeded(*np.exp(other)), paired=paired).interval
        assert (interval is None) is (count < 13)
        made += interval is not None
        held += interval is not None and interval[0] <= 0.75**0.2 - 1 <= interval[1]
    assert held >= 0.91 * made


@pytest.mark.parametrize("paired", [True, False])
def test_an_interval_of_a_change_is_longer_on_the_side_of_the_few(paired: bool) -> None:
    upper, both = [10 + 0.01 * number for number in range(15)], [7.0 + 0.01 * number for number in range(3)]
    one, other = seeded(*upper), seeded(*both, *upper[3:])
    lost, gained = effects.of_cell(one, other, paired=paired), effects.of_cell(other, one, paired=paired)
    assert lost.interval is not None and gained.interval is not None
    below, above = (abs(np.log1p(end) - lost.shift) for end in lost.interval)
    assert below > above
    assert [1 / (1 + end) - 1 for end in reversed(lost.interval)] == pytest.approx(gained.interval)


@pytest.mark.parametrize("spread", [0.01, 0.1])
def test_a_change_of_the_detectable_size_is_found_in_four_of_five_cases(spread: float) -> None:
    rng = np.random.default_rng(8)

    def made(factor: float, first: int) -> Sample:
        return seeded(*(factor * 10 * rng.lognormal(0, spread, 10)), first=first)

    size = np.median([compare([made(1, 1)], [made(1, 50)]).detectable[2] or 0.0 for _ in range(50)])
    hits = sum(compare([made(1, 1)], [made(1 - size, 50)]).worse for _ in range(100))
    assert 65 <= hits <= 95


def test_what_would_have_been_found_is_told_for_each_level() -> None:
    rng = np.random.default_rng(2)

    def made(n: int) -> list[Sample]:
        return [
            Sample.of(f"s{s}", f"c{c}", "sat", tuple(10 * rng.lognormal(0, 0.05, n)), (OK,) * n, seeds=tuple(range(n)))
            for s in range(3)
            for c in range(3)
        ]

    everything, implementation, cell = compare(made(10), made(10)).detectable
    assert everything is not None and implementation is not None and cell is not None
    assert everything < implementation < cell < 0.2
    few = compare(made(2), made(2)).detectable
    assert few[0] is not None and few[0] < 0.2
    assert few[2] == 1.0
    assert "not even a total loss in a single cell" in detectable_in_words(compare(made(2), made(2)))
    assert compare(made(1), made(1)).detectable == (None, None, 1.0)


def test_what_would_have_been_found_is_that_of_the_implementation_under_test_and_never_below_what_matters() -> None:
    rng = np.random.default_rng(3)
    cells = [("own", client) for client in "abcdef"] + [("p", "g"), ("q", "g")]

    def made() -> list[Sample]:
        return [seeded(*(10 * rng.lognormal(0, 0.002, 3)), server=s, client=c) for s, c in cells]

    found = compare(made(), made(), virtual=True)
    assert found.detectable[1] == 1.0
    own = replace(found, under_test=("own",))
    assert own.detectable[1] is not None and own.detectable[1] < SMALLEST_CHANGE
    assert detectable_in_words(own).count("1.0 %") == 2


@pytest.mark.parametrize("chaotic", [True, False])
def test_a_placebo_decides_whether_equal_members_are_paired(chaotic: bool) -> None:
    rng = np.random.default_rng(7)
    members = rng.lognormal(0, 0.1, 10)

    def made(factor: float) -> Sample:
        noise = rng.lognormal(0, 0.1, 10) if chaotic else members * rng.lognormal(0, 0.003, 10)
        return seeded(*(factor * 10 * noise))

    base, placebo, change = made(1), made(1), made(0.97)
    [pair] = compare([base], [change], placebo=[placebo], virtual=True).pairs
    assert pair.effect.freedom == (28 if chaotic else 9)  # the placebo counts as ten more members of the base
    assert (pair.change is Change.SLOWER) is not chaotic


@pytest.mark.parametrize(("other", "told"), [("b", True), ("a", False)])
def test_runs_in_another_virtual_machine_are_unlike(other: str, told: bool) -> None:
    def made(goodput: float, source: str, image: str) -> ResultSet:
        found = virtual(result_set(runs(goodput)))
        images = {"virtual-time": ImageFacts(f"quicsat/virtual-time:{source}", image)}
        return replace(found, manifest=replace(found.manifest, images=images))

    found = campaigns(made(10e6, "a", "sha256:1"), made(9.89e6, other, "sha256:2"), [SAT])
    assert bool(found.unlike) is told


def test_in_real_time_the_processor_does_not_matter() -> None:
    first, second = (result_set(runs(rate)) for rate in (10e6, 9e6))
    other = replace(second, manifest=replace(second.manifest, processor="B"))
    found = campaigns(replace(first, manifest=replace(first.manifest, processor="A")), other, [SAT])
    assert found.notes == ()


def test_the_table_has_intervals_members_and_what_would_have_been_found() -> None:
    first, second = (virtual(result_set(runs(*(rates * 5)))) for rates in ((5e6, 6e6, 7e6), (5.1e6, 6.2e6, 6.9e6)))
    table = campaign_tables.comparison(campaigns(first, second, [SAT]), "a", "b", everything=True)
    row = dict(zip([column.name for column in table.columns], table.rows[0], strict=True))
    assert row["members in this direction"] == "10/15"
    low, difference, high = (float(row[name] or 0) for name in ("low", "difference", "high"))
    assert [low, high] == pytest.approx([0.00084, 0.02399], abs=1e-5)  # 14 degrees of freedom, skewness -0.488
    assert difference == pytest.approx((1.02 * 6.2 / 6 * 6.9 / 7) ** (1 / 3) - 1)
    assert any(note.startswith("Loss of goodput that would have been found") for note in table.notes)
    assert all(note in render(table, "text") for note in table.notes)


@pytest.mark.parametrize(("metric", "factor", "worse"), [("time_to_2_mb", 1.1, True), ("completion_time", 0.9, False)])
def test_times_are_tested_beside_goodput(metric: str, factor: float, worse: bool) -> None:
    """Goodput spreads by 20 % and holds; a time of two servers spreads by 0.1 % and changes."""
    rng = np.random.default_rng(12)

    def made(factor: float) -> ResultSet:
        results = [
            replace(run, measurement=Measurement({"goodput": float(8e6 * rng.lognormal(0, 0.2)), metric: time}))
            for server in "ab"
            for run, time in zip(runs(*[8e6] * 10, server=server), factor * rng.lognormal(0, 0.001, 10), strict=True)
        ]
        return virtual(result_set(results, servers=("a", "b"), repetitions=10))

    before = made(1)
    assert campaigns(before, made(1), [SAT]).times == ()
    found = campaigns(before, made(factor), [SAT])
    assert (found.groups, [pair.change for pair in found.pairs]) == ((), [Change.NONE] * 2)
    [change] = found.times
    assert (change.metric, found.worse) == (metric, worse)
    assert time_in_words(change).startswith(
        f"The {TIMES[metric]} of all pairs together changed by {factor - 1:+.1%}"[:-3]
    )
    judged = judge(made(factor), Expectations(), before)
    assert [each.worse for each in judged.groups] == [worse]
    assert judge(made(factor), Expectations(regression=0.2), before).groups[0].worse is False


def test_a_loss_in_one_of_several_test_cases_is_found_for_the_implementation() -> None:
    """Three cells of each of three test cases; one test case has lost 2 % in five members, which no cell can show."""
    rng, seeds = random.Random(1), range(5)
    before, after = list[Sample](), list[Sample]()
    for case, client in product(("one", "two", "three"), "abc"):
        lost = 0.98 if case == "two" else 1.0
        for many, factor in ((before, 1.0), (after, lost)):
            values = [5e6 * factor * rng.lognormvariate(0, 0.001) for _ in seeds]
            many.append(Sample.of("s", client, case, values, [Outcome.SUCCEEDED] * 5, seeds=seeds))
        before.append(Sample.of("t", client, case, values, [Outcome.SUCCEEDED] * 5, seeds=seeds))
        after.append(before[-1])
    found = compare(before, after, virtual=True, by_case=True)
    assert [(each.first.server, each.over, each.change) for each in found.groups] == [("s", "two", Change.SLOWER)]
    assert not compare(before, after, virtual=True).worse
