"""What the comparison of real and virtual time makes of goodputs."""

from __future__ import annotations

import json

import pytest

from bench.fidelity import (
    Agreement,
    Distribution,
    PairFidelity,
    as_json,
    distributions,
    fidelity,
    share,
    summary,
    table,
)
from quicsat.model.units import MBPS
from quicsat.report.table import render
from tests.results_builder import SAT, SATLOSS, result_set, runs, virtual


def pair(real: tuple[float, ...], found: tuple[float, ...], case: str = "sat") -> PairFidelity:
    return PairFidelity((case, "a", "b"), Distribution(real, max(len(real), 1)), Distribution(found, 1))


@pytest.mark.parametrize(
    ("real", "found", "agreement"),
    [
        ((8.0, 9.0, 10.0), (8.0,), Agreement.IN_RANGE),
        ((8.0, 9.0, 10.0), (10.0,), Agreement.IN_RANGE),
        ((8.0, 9.0, 10.0), (7.9, 8.3), Agreement.IN_RANGE),  # the mean decides
        ((8.9, 9.0, 9.1), (9.26,), Agreement.CLOSE),
        ((8.9, 9.0, 9.1), (8.74,), Agreement.CLOSE),
        ((8.9, 9.0, 9.1), (9.28,), Agreement.DIFFERS),
        ((8.9, 9.0, 9.1), (8.7,), Agreement.DIFFERS),
        ((9.0,), (), Agreement.OUTCOME_DIFFERS),
        ((), (9.0,), Agreement.OUTCOME_DIFFERS),
        ((), (), Agreement.FAILS),
    ],
)
def test_agreement(real: tuple[float, ...], found: tuple[float, ...], agreement: Agreement) -> None:
    assert pair(real, found).agreement is agreement


def test_pairs_that_fail_in_both_do_not_count() -> None:
    pairs = [pair((9.0,), (9.0,)), pair((9.0,), (5.0,)), pair((), ()), pair((9.0,), (), "satloss")]
    assert share(pairs) == pytest.approx(1 / 3)
    assert share([pair((), ())]) is None
    assert summary(pairs)["sat"] == "1 in the range, 1 differs, 1 fails in both; 50% of the pairs agree."
    assert list(summary(pairs)) == ["sat", "satloss", "all"]


def test_campaigns_of_both_clocks_are_joined_by_pair() -> None:
    real = result_set([*runs(8 * MBPS, 9 * MBPS, None), *runs(1 * MBPS, test_case="satloss")],
                      test_cases=(SAT, SATLOSS))  # fmt: skip
    lossless = virtual(result_set(runs(8.5 * MBPS)))
    lossy = virtual(result_set(runs(2 * MBPS, 4 * MBPS, test_case="satloss"), test_cases=(SATLOSS,)))
    sat, satloss = fidelity([real], [lossless, lossy])
    assert (sat.key, sat.real) == (
        ("sat", "picoquic", "quiche"), Distribution((8 * MBPS, 9 * MBPS), 3),
    )  # fmt: skip
    assert sat.difference == pytest.approx(0.0)
    assert satloss.virtual.mean == 3 * MBPS
    assert satloss.difference == pytest.approx(2.0)
    assert [each.agreement for each in (sat, satloss)] == [Agreement.IN_RANGE, Agreement.DIFFERS]
    assert fidelity([real], [lossless])[0] == sat
    shown = render(table([sat, satloss]), "markdown")
    assert "2/3" in shown
    assert "200.0" in shown
    told = json.loads(json.dumps(as_json([sat, satloss])))
    assert told[1]["virtual"] == [2 * MBPS, 4 * MBPS]


def test_repetitions_of_several_campaigns_are_put_together() -> None:
    two = [virtual(result_set(runs(rate))) for rate in (1e6, 2e6)]
    assert distributions(two)["sat", "picoquic", "quiche"] == Distribution((1e6, 2e6), 2)
