"""Virtual beside real time."""

from __future__ import annotations

from interop.model.units import MBPS
from scripts.paper.real_time import agreement, agreement_in_words, both_clocks, by_pair, real_time, repetitions_of
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs, virtual

CLIENTS = ("a", "b", "c", "d")
REAL = result_set(
    [
        *runs(4 * MBPS, 6 * MBPS, client="a"),
        *runs(4 * MBPS, 4 * MBPS, client="b"),
        *runs(4 * MBPS, 4 * MBPS, client="c"),
        run_result(None, client="d"),
    ],
    clients=CLIENTS,
)
VIRTUAL = virtual(
    result_set(
        [run for client, rate in zip(CLIENTS, (6, 4.1, 5, 3), strict=True) for run in runs(rate * MBPS, client=client)],
        clients=CLIENTS,
    )
)


def test_a_pair_agrees_within_the_range_or_close_to_the_mean() -> None:
    found = {each.client: each for each in both_clocks(VIRTUAL, REAL, SAT)}
    assert {client: each.agrees for client, each in found.items()} == {"a": True, "b": True, "c": False}


def test_missing_repetitions_are_told() -> None:
    assert repetitions_of(REAL, SAT) == "2 repetitions over `sat`, with 7 of 8 runs so far"
    assert repetitions_of(result_set(runs(4 * MBPS, 5 * MBPS), clients=("quiche",)), SAT) == "2 repetitions over `sat`"


def test_numbers_of_the_tables() -> None:
    [row] = agreement(VIRTUAL, REAL).rows
    assert row[:3] == ("sat", 3, 2)
    assert row[3] == f"{(6 / 5 * 4.1 / 4 * 5 / 4) ** (1 / 3):.3f}"
    assert row[6:] == ("1.02", "1.25")
    assert agreement_in_words(VIRTUAL, REAL).endswith(f"{row[3]} times that in real time (geometric mean; 1.02 to 1.25 "
                                                      "for single pairs)")  # fmt: skip
    assert agreement_in_words(VIRTUAL, result_set()) == ""
    assert by_pair(VIRTUAL, REAL, SAT).rows == (("picoquic", "1.20", "1.02", "1.25 *", ""),)


def test_sequences_of_losses_differ_in_real_time() -> None:
    mine, theirs = (result_set(runs(*found, test_case="satloss"), test_cases=(SATLOSS,)) for found in ((4, 5, 6), (5,)))
    assert "the mean over 3 seeds is compared with the range" in "\n".join(real_time(mine, theirs))
    assert "sequence of losses" not in "\n".join(real_time(VIRTUAL, REAL))
