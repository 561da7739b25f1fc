"""Shares of variance: those that were put in come out, with intervals that hold them."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from quicsat.model.outcomes import Outcome
from quicsat.statistics.samples import Sample
from quicsat.statistics.variance import Decomposition, decompose


def made(
    seed: int, spread: tuple[float, float, float, float], servers: int = 8, clients: int = 8, repetitions: int = 5
) -> list[Sample]:
    """A design with standard deviations of server, client, interaction and repetition."""
    rng = np.random.default_rng(seed)
    by_server, by_client = rng.normal(0, spread[0], servers), rng.normal(0, spread[1], clients)
    both = rng.normal(0, spread[2], (servers, clients))
    return [
        Sample.of(
            f"s{s}",
            f"c{c}",
            "sat",
            tuple(100 + by_server[s] + by_client[c] + both[s, c] + rng.normal(0, spread[3], repetitions)),
            (Outcome.SUCCEEDED,) * repetitions,
        )
        for s in range(servers)
        for c in range(clients)
    ]


def shares(found: Decomposition | None) -> dict[str, float]:
    return {part.source: part.share for part in found.shares}


def test_an_implementation_far_from_all_others_is_an_outlier() -> None:
    found = [decompose(made(seed, (2, 1, 1, 1))) for seed in range(20)]
    assert sum(each is not None and bool(each.outlying) for each in found) <= 4  # 5 %
    one = [replace(each, repetitions=tuple(replace(run, value=(run.value or 0) - 60 * (each.server == "s3"))
                                           for run in each.repetitions)) for each in made(1, (2, 1, 1, 1))]  # fmt: skip
    spoiled = decompose(one)
    assert spoiled.outlying == ("server s3",)


def test_a_server_that_decides_all_has_all() -> None:
    found = shares(decompose(made(1, (1, 0, 0, 0))))
    assert found == pytest.approx({"server": 1, "client": 0, "interaction": 0, "seed": 0, "repetition": 0}, abs=1e-9)


def test_repetitions_that_differ_are_nobodys() -> None:
    found = shares(decompose(made(2, (0, 0, 0, 1))))
    assert found["repetition"] > 0.9


def test_a_server_is_not_given_what_the_pair_does() -> None:
    found = [shares(decompose(made(seed, (0, 0, 2, 0.5))))["server"] for seed in range(30)]
    assert np.mean(found) < 0.07


def test_shares_add_up_and_are_about_what_was_put_in() -> None:
    found = [shares(decompose(made(seed, (2, 1, 1, 1)))) for seed in range(30)]
    assert all(sum(each.values()) == pytest.approx(1) for each in found)
    mean = {source: np.mean([each[source] for each in found]) for source in found[0]}
    assert mean == pytest.approx(
        {"server": 4 / 7, "client": 1 / 7, "interaction": 1 / 7, "seed": 0, "repetition": 1 / 7}, abs=0.06
    )


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    held = 0
    for seed in range(60):
        found = decompose(made(seed, (2, 1, 1, 1)))
        server = found.shares[0]
        held += server.low <= 4 / 7 <= server.high
    assert held >= 54


def test_missing_pairs_are_told_and_do_not_turn_the_answer_over() -> None:
    many = made(3, (2, 0.2, 0.2, 0.2))
    holes = [sample for number, sample in enumerate(many) if number % 5]
    found = decompose(holes)
    assert found.pairs == 51
    assert shares(found)["server"] > 0.85


@pytest.mark.parametrize(("servers", "clients"), [(1, 5), (5, 1), (1, 1)])
def test_one_server_or_client_cannot_be_told_apart(servers: int, clients: int) -> None:
    assert decompose(made(1, (1, 1, 1, 1), servers, clients)) is None


def test_equal_numbers_have_no_variance() -> None:
    assert decompose(made(1, (0, 0, 0, 0))) is None


def test_it_is_the_same_every_time() -> None:
    assert decompose(made(1, (2, 1, 1, 1))) == decompose(made(1, (2, 1, 1, 1)))


def test_what_all_pairs_of_a_repetition_share_is_the_seeds() -> None:
    rng = np.random.default_rng(7)
    seeds = rng.normal(0, 2, 5)
    many = [
        Sample.of(each.server, each.client, "sat", tuple(np.array(each.values) + seeds), each.outcomes)
        for each in made(1, (0.1, 0.1, 0.1, 0.5))
    ]
    found = shares(decompose(many))
    assert found["seed"] > 0.7
    assert found["repetition"] < 0.3


def test_memory_does_not_grow_with_the_square_of_the_repetitions() -> None:
    many = made(3, (2, 1, 1, 1), servers=3, clients=3, repetitions=1500)
    tracemalloc.start()
    found = shares(decompose(many))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(found.values()) == pytest.approx(1)
    assert peak < 1500**2 * 8 / 2
