"""Acknowledgements of clients: correlations, their intervals, and the servers that are named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from interop.model.results import Measurement, ResultSet
from interop.model.units import MBPS
from scripts.paper.acknowledgements import acknowledgements, by_acknowledgements, correlate, finding
from tests.results_builder import SATLOSS, result_set, run_result


def campaign(server: str, rates: Sequence[float], returned: Sequence[float]) -> ResultSet:
    """A run of each client over satloss, and one that timed out."""
    clients = [f"c{number}" for number in range(len(rates))]
    runs = [run_result(None, server=server, client="late", test_case="satloss")]
    for client, rate, share in zip(clients, rates, returned, strict=True):
        values = {"goodput": rate * MBPS, "return_packets": share}
        run = run_result(rate * MBPS, server=server, client=client, test_case="satloss")
        runs.append(replace(run, measurement=Measurement(values)))
    return result_set(runs, servers=(server,), clients=(*clients, "late"), test_cases=(SATLOSS,))


def test_a_server_that_follows_its_acknowledgements_is_named() -> None:
    """Twice as many acknowledgements, twice the goodput."""
    results = campaign("msquic", (1, 2, 4, 8, 3), (0.1, 0.2, 0.4, 0.8, 0.31))
    [found] = by_acknowledgements(results, "satloss")
    assert found.clients == ["c0", "c1", "c2", "c3", "c4"]
    assert found.correlation is not None
    assert found.correlation.value > 0.99
    told = "\n".join(acknowledgements(results, None))
    assert re.search(r"\| msquic \| +1\.00 \|", told)
    assert "| 10 to 80 " in told
    assert (
        "Over `satloss`, msquic (1.00 to 8.00 Mbit/s) is faster with clients that acknowledge more often: the whole "
        "confidence interval of the correlation is above 0.5."
    ) in told
    assert "`AimdAccumulator`" in told


def test_other_servers_are_not_named() -> None:
    told = "\n".join(acknowledgements(campaign("msquic", (1, 2, 4, 8, 3), (0.4, 0.2, 0.8, 0.1, 0.3)), None))
    assert re.search(r"\| msquic \| +-0\.", told)
    assert "with clients that acknowledge" not in told
    assert "`AimdAccumulator`" not in told


def test_servers_that_are_slower_with_more_acknowledgements() -> None:
    told = "\n".join(acknowledgements(campaign("quinn", (8, 4, 2, 1, 3), (0.1, 0.2, 0.4, 0.8, 0.31)), None))
    assert "Over `satloss`, quinn (1.00 to 8.00 Mbit/s) is slower with clients" in told
    assert "of the correlation is below -0.5." in told


def test_servers_that_count_acknowledgements_and_those_that_count_packets() -> None:
    shares = (0.1, 0.2, 0.4, 0.8, 0.31)
    many = [campaign("ngtcp2", (1, 2, 4, 8, 3), shares), campaign("quinn", (2, 4, 3, 2, 3), shares)]
    both = replace(
        many[0],
        results=tuple(run for each in many for run in each.results),
        manifest=replace(many[0].manifest, servers=("ngtcp2", "quinn")),
    )
    told = "\n".join(acknowledgements(both, None))
    assert "According to the source code of ngtcp2, the window of CUBIC grows by (target − window) / window" in told
    assert "In quinn, the window grows with the number of packets or bytes that an acknowledgement covers" in told
    assert "the confidence interval of its correlation includes 0." in told
    assert "source code" not in "\n".join(acknowledgements(many[1], None))


def test_what_changes_without_the_underflow() -> None:
    """Only runs with the same client and losses are compared."""
    results = campaign("msquic", (1, 2, 4, 8, 3), (0.1, 0.2, 0.4, 0.8, 0.31))
    first, second, *_ = (run for run in results.results if run.measurement)
    halved = [replace(run, measurement=Measurement({"goodput": 0.25 * MBPS})) for run in (first, second)]
    other = replace(second, repetition=2, client="c2", evidence=replace(second.evidence, seed=99))
    told = "\n".join(acknowledgements(results, replace(results, results=(*halved, other))))
    assert (
        "In 2 runs over `satloss` with the same losses, one for each client, its mean goodput is then 0.25 Mbit/s "
        "(0.25 to 0.25) instead of 1.50 Mbit/s (1.00 to 2.00)."
    ) in told
    [short] = finding(results, replace(results, results=tuple(halved)))
    assert (
        "goodput is 1.50 Mbit/s with the underflow, and 0.25 Mbit/s without it (2 runs each, all with seed 1)" in short
    )
    assert list(finding(results, None)) == []


def test_few_clients_or_equal_ones_have_no_correlation() -> None:
    assert correlate((1, 2, 3), (1, 2, 3)) is None
    assert correlate((1, 1, 1, 1), (1, 2, 3, 4)) is None
    assert list(acknowledgements(campaign("quinn", (1, 2, 3), (0.1, 0.2, 0.3)), None)) == []
    assert list(acknowledgements(result_set(), None)) == []


@pytest.mark.parametrize("truth", [0.0, 0.6, 0.95])
def test_the_interval_holds_the_correlation_as_often_as_it_says(truth: float) -> None:
    """Normal values of 14 clients, 4,000 times."""
    numbers = np.random.default_rng(1)
    inside = 0
    for _ in range(trials := 4000):
        first, noise = numbers.normal(size=(2, 14))
        found = correlate(list(first), list(truth * first + np.sqrt(1 - truth**2) * noise))
        assert found is not None
        inside += found.low <= truth <= found.high
    assert 0.94 <= inside / trials <= 0.965
