"""Several seeds: the spread over them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from interop.model.results import Manifest, ResultSet
from interop.model.units import MBPS
from scripts.paper.seeds import seeds, spreads, with_intervals
from tests.results_builder import SATLOSS, result_set, runs


def test_one_seed_has_no_section() -> None:
    assert list(seeds(result_set(runs(MBPS, test_case="satloss"), test_cases=(SATLOSS,)), None)) == []


def test_the_interval_holds_clients_and_seeds() -> None:
    found = runs(1 * MBPS, 2 * MBPS, client="x", test_case="satloss") + runs(
        2 * MBPS, 4 * MBPS, client="y", test_case="satloss"
    )
    results = result_set(found, clients=("x", "y"), test_cases=(SATLOSS,))
    table = with_intervals(results)
    [row] = table.rows
    shown = re.fullmatch(r"10\.0 \(([\d.e-]+) to ([\d.]+)\)", str(row[1]))
    assert row[0] == "picoquic"
    assert shown is not None
    assert float(shown[1]) < 10 < float(shown[2])
    assert "there is one seed" in with_intervals(replace(results, manifest=once(results))).notes[0]
    assert "there is one seed" not in table.notes[0]
    assert "different packets with each of 2 seeds" in "\n".join(seeds(results, None))


def once(results: ResultSet) -> Manifest:
    """Its manifest, with one repetition."""
    cases = tuple(replace(case, repetitions=1) for case in results.manifest.test_cases)
    return replace(results.manifest, test_cases=cases)


def test_the_spread_is_that_of_pairs_with_all_seeds() -> None:
    found = runs(1 * MBPS, 3 * MBPS, client="x", test_case="satloss") + runs(2 * MBPS, client="y", test_case="satloss")
    [row] = spreads(found, ["sat", "satloss"]).rows
    assert row[:3] == ("satloss", 1, 2)
    assert row[3:6] == pytest.approx((2**-0.5,) * 3)
    assert row[6] == "picoquic with x"


def test_one_seed_has_no_spread() -> None:
    assert spreads(runs(1 * MBPS, client="x"), ["sat"]).rows == ()
