"""Long-term view: classes that can all occur, steps that are steps, marks where images changed."""

from dataclasses import replace

import numpy as np
import pytest

from quicsat.model.results import ImageFacts, ResultSet
from quicsat.report import campaign_tables
from quicsat.statistics.history import (
    Flakes,
    TrendClass,
    classify,
    joint_steps,
    ordered,
    outcome_trends,
    pair_trends,
    server_trends,
    steps,
    sum_of_flakes,
)
from quicsat.statistics.samples import GOODPUT, PairOutcome
from tests.results_builder import SAT, result_set, runs

FATES = {
    "✓": PairOutcome.SUCCEEDED,
    "x": PairOutcome.FAILED,
    "T": PairOutcome.TIMEOUT,
    "·": PairOutcome.NOT_RUN,
    "!": PairOutcome.ERROR,
}


@pytest.mark.parametrize(
    ("trend", "kind"),
    [
        ("✓✓✓✓", TrendClass.ALWAYS_OK),
        ("✓·✓!", TrendClass.ALWAYS_OK),
        ("xxTx", TrendClass.ALWAYS_FAILED),
        ("xx✓✓", TrendClass.GOT_FIXED),
        ("✓✓✓xT", TrendClass.GOT_BROKEN),
        ("x✓✓·✓", TrendClass.GOT_FIXED),
        ("✓✓✓x", TrendClass.FLAKY),
        ("✓x✓✓", TrendClass.FLAKY),
        ("··!", TrendClass.UNKNOWN),
        ("", TrendClass.UNKNOWN),
    ],
)
def test_classes(trend: str, kind: TrendClass) -> None:
    assert classify([FATES[sign] for sign in trend]) is kind


@pytest.mark.parametrize(
    ("trend", "images", "flakes"),
    [
        ("✓✓✓✓", "aaaa", (0, 3)),
        ("✓xT✓", "aaaa", (2, 3)),  # a timeout after a failure is no change
        ("✓x✓✓", "abba", (1, 1)),  # x after b, and the last ✓ after a, come with other images
        ("✓·x!✓", "aaaaa", (2, 2)),  # inconclusive campaigns are passed over
        ("✓·x", "aba", (0, 0)),  # the image changed twice between the two
        ("✓", "a", (0, 0)),
    ],
)
def test_flakes_are_changes_of_outcome_without_a_change_of_images(
    trend: str, images: str, flakes: tuple[int, int]
) -> None:
    outcomes = [{("s", "c"): FATES[sign]} for sign in trend]
    [found] = outcome_trends(outcomes, [{"s": image, "c": "same"} for image in images])
    assert found.flakes == Flakes(*flakes)
    assert found.classes == {classify([FATES[sign] for sign in trend]): 1}


def test_the_flake_rate_of_several_pairs() -> None:
    assert sum_of_flakes([Flakes(1, 3), Flakes(0, 5)]).rate == 0.125
    assert sum_of_flakes([]).rate is None


def test_a_step_is_found_where_it_is() -> None:
    rng = np.random.default_rng(1)
    values = [*rng.normal(10, 0.5, 12), None, *rng.normal(7, 0.5, 10)]
    [step] = steps(values)
    assert step.at == 13
    assert (step.before, step.after) == pytest.approx((10, 7), abs=0.4)


def test_two_steps() -> None:
    rng = np.random.default_rng(2)
    found = steps([*rng.normal(10, 0.3, 10), *rng.normal(5, 0.3, 10), *rng.normal(8, 0.3, 10)])
    assert [step.at for step in found] == [10, 20]


@pytest.mark.parametrize("values", [[5.0] * 30, [], [1.0, 9.0], [None] * 8, [5.0, 5.0, 9.0, 9.0]])
def test_no_step_where_there_is_none(values: list[float | None]) -> None:
    assert steps(values) == ()


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ([1e-9], []),
        ([-0.0099], []),
        ([0.0101], [8]),
        ([-0.0101], [8]),
        ([0.3, 1e-6, -0.2], [8, 24]),
        ([0.004, 0.004], []),
        ([0.008, 0.008], [16]),
    ],
)
def test_a_step_changes_the_level_by_1_percent_at_least(sizes: list[float], found: list[int]) -> None:
    """Without noise, as in virtual time."""
    levels = np.cumprod([8e6, *(1 + size for size in sizes)])
    assert [step.at for step in steps([float(level) for level in levels for _ in range(8)])] == found


def test_noise_has_few_steps() -> None:
    rng = np.random.default_rng(4)
    assert sum(bool(steps(list(rng.normal(10, 1, 20)))) for _ in range(100)) <= 4


def autocorrelated(coefficient: float, length: int, seed: int) -> list[float]:
    rng = np.random.default_rng((seed, int(100 * coefficient)))
    values = rng.normal(size=length)
    for place in range(1, length):
        values[place] = coefficient * values[place - 1] + np.sqrt(1 - coefficient**2) * values[place]
    return list(map(float, 20 + values))


@pytest.mark.parametrize("length", [20, 40])
@pytest.mark.parametrize("coefficient", [0.0, 0.3, 0.5, 0.7])
def test_nights_that_resemble_the_night_before_have_few_steps(coefficient: float, length: int) -> None:
    """5 % and three standard errors of 300 series."""
    assert sum(bool(steps(autocorrelated(coefficient, length, seed))) for seed in range(300)) <= 26


@pytest.mark.parametrize("coefficient", [0.0, 0.7])
def test_a_table_of_many_series_has_few_steps(coefficient: float) -> None:
    """5 % and three standard errors of 60 tables of 25 series."""
    tables = [[autocorrelated(coefficient, 20, 25 * table + row) for row in range(25)] for table in range(60)]
    assert sum(any(joint_steps(table)) for table in tables) <= 8


@pytest.mark.parametrize("coefficient", [0.0, 0.3, 0.5, 0.7])
def test_steps_of_six_deviations_are_found_all_the_same(coefficient: float) -> None:
    found = 0
    for seed in range(100):
        values = np.array(autocorrelated(coefficient, 20, seed))
        values[10:] += 6
        found += bool(steps(list(values)))
    assert found >= 90


def campaigns() -> tuple[ResultSet, ...]:
    """Ten of them, the newest first; from the sixth on the server's image is another one, and slower."""
    made = []
    for day in range(10, 0, -1):
        rate = (10e6 if day < 6 else 6e6) + day * 1e4
        image = ImageFacts("picoquic", "sha256:old" if day < 6 else "sha256:new")
        results = result_set(runs(rate, rate), images={"picoquic": image}, repetitions=2)
        made.append(replace(results, manifest=replace(results.manifest, started=f"2026-11-{day:02}T06:00:00Z")))
    return tuple(made)


def test_courses_are_in_order_with_marks_and_steps() -> None:
    [trend] = pair_trends(ordered(campaigns()), "sat", GOODPUT)
    assert trend.name == ("picoquic", "quiche")
    assert trend.classes == {TrendClass.ALWAYS_OK: 1}
    assert trend.marks == (5,)
    assert [step.at for step in trend.steps] == [5]
    [server] = server_trends(ordered(campaigns()), "SAT", GOODPUT)
    assert (server.name, server.means) == (("server", "picoquic"), trend.means)


def test_a_pair_of_which_some_repetitions_succeeded_has_not_always_failed() -> None:
    [some] = pair_trends([result_set(runs(8e6, 7e6, None), repetitions=3)], "sat", GOODPUT)
    [none] = pair_trends([result_set(runs(None, None), repetitions=2)], "sat", GOODPUT)
    assert (some.classes, none.classes) == ({TrendClass.FLAKY: 1}, {TrendClass.ALWAYS_FAILED: 1})


def test_table_of_the_long_term() -> None:
    table = campaign_tables.history(campaigns(), [SAT])
    row = ("SAT", "picoquic", "quiche", "always ok", "✓" * 10, 6.1e6, "2026-11-06: 10.03 Mbit/s → 6.08 Mbit/s",
           "2026-11-06")  # fmt: skip
    assert table.rows == ((*row[:2], "all", *row[3:]), row)
    assert table.notes[0] == "Pairs: 1 always ok."


def test_all_pairs_of_a_server_are_as_flaky_as_they_are() -> None:
    """One client succeeds each night, the other one now and then: the server is not always ok."""
    made = [
        result_set(
            [*runs(8e6), *(replace(each, client="aioquic") for each in runs(7e6 if night % 2 else None))],
            clients=("quiche", "aioquic"),
        )
        for night in range(4)
    ]
    table = campaign_tables.history(made, [SAT])
    assert [row[2:5] for row in table.rows] == [
        ("all", "1 always ok, 1 flaky", "~✓~✓"),
        ("aioquic", "flaky", "T✓T✓"),
        ("quiche", "always ok", "✓✓✓✓"),
    ]
    assert table.notes[0] == "Pairs: 1 always ok, 1 flaky."
    assert "~ that some of them did" in table.notes[1]
