"""Acknowledgements of clients: correlations, their intervals, and the servers that are named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from interop.model.results import Measurement, ResultSet
from interop.model.units import MBPS
from scripts.paper.acknowledgements import acknowledgements, by_acknowledgements, correlate, finding, returned_over
from tests.results_builder import SAT, SATLOSS, result_set, run_result


def campaign(server: str, rates: Sequence[float], returned: Sequence[float]) -> ResultSet:
    """A run of each client over satloss, and one that timed out."""
    clients = [f"c{number}" for number in range(len(rates))]
    runs = [run_result(None, server=server, client="late", test_case="satloss")]
    for client, rate, share in zip(clients, rates, returned, strict=True):
        values = {"goodput": rate * MBPS, "return_packets": share}
        run = run_result(rate * MBPS, server=server, client=client, test_case="satloss")
        runs.append(replace(run, measurement=Measurement(values)))
    return result_set(runs, servers=(server,), clients=(*clients, "late"), test_cases=(SATLOSS,))


def together(many: Sequence[ResultSet]) -> ResultSet:
    """Campaigns of different servers, as one."""
    return replace(
        many[0],
        results=tuple(run for each in many for run in each.results),
        manifest=replace(many[0].manifest, servers=tuple(name for each in many for name in each.manifest.servers)),
    )


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
        "Over `satloss`, msquic (1.00 to 8.00 Mbit/s) is faster with clients that acknowledge more often (geometric "
        "means of a client's runs). For this server, the interval still excludes 0 if it is corrected for the 1 "
        "interval of the table (Bonferroni: 95.00 % confidence each)."
    ) in told
    assert "We do not explain why" not in told
    assert "`AimdAccumulator`" in told


def test_other_servers_are_not_named() -> None:
    told = "\n".join(acknowledgements(campaign("msquic", (1, 2, 4, 8, 3), (0.4, 0.2, 0.8, 0.1, 0.3)), None))
    assert re.search(r"\| msquic \| +-0\.", told)
    assert "with clients that acknowledge" not in told
    assert "`AimdAccumulator`" not in told


def test_servers_that_are_slower_with_more_acknowledgements() -> None:
    told = "\n".join(acknowledgements(campaign("quinn", (8, 4, 2, 1, 3), (0.1, 0.2, 0.4, 0.8, 0.31)), None))
    assert "Over `satloss`, quinn (1.00 to 8.00 Mbit/s) is slower with clients" in told
    assert "For this server, the interval still excludes 0" in told
    assert "these data do not show that acknowledgements have no influence there." in told


def test_faster_and_slower_servers_are_named_with_their_clients() -> None:
    shares = (0.1, 0.2, 0.4, 0.8, 0.31)
    many = [campaign("ngtcp2", (1, 2, 4, 8, 3), shares), campaign("quinn", (8, 4, 2, 1, 3), shares)]
    told = "\n".join(acknowledgements(together(many), None))
    assert (
        "Over `satloss`, ngtcp2 (1.00 to 8.00 Mbit/s) is faster with clients that acknowledge more often, and quinn "
        "(1.00 to 8.00 Mbit/s) is slower with such clients (geometric means of a client's runs). For these servers,"
    ) in told
    assert "no influence there. We do not explain why quinn is slower with such clients." in told


def test_servers_that_count_acknowledgements_and_those_that_count_packets() -> None:
    shares = (0.1, 0.2, 0.4, 0.8, 0.31)
    many = [campaign("ngtcp2", (1, 2, 4, 8, 3), shares), campaign("quinn", (2, 4, 3, 2, 3), shares)]
    told = "\n".join(acknowledgements(together(many), None))
    assert "for the 2 intervals of the table (Bonferroni: 97.50 % confidence each)" in told
    assert "According to the source code of ngtcp2, the window of CUBIC grows by (target − window) / window" in told
    assert "In quinn, the window grows with the number of packets or bytes that an acknowledgement covers" in told
    assert re.search(r"The confidence interval of its correlation \(-0\.\d\d to 0\.\d\d\) does not rule out a", told)
    assert "source code" not in "\n".join(acknowledgements(many[1], None))


def test_what_changes_without_the_underflow() -> None:
    """Only runs with the same client and losses are compared."""
    results = campaign("msquic", (1, 2, 4, 8, 3), (0.1, 0.2, 0.4, 0.8, 0.31))
    first, second, *_ = (run for run in results.results if run.measurement)
    halved = [replace(run, measurement=Measurement({"goodput": 0.25 * MBPS})) for run in (first, second)]
    other = replace(second, repetition=2, client="c2", evidence=replace(second.evidence, seed=99))
    told = "\n".join(acknowledgements(results, replace(results, results=(*halved, other))))
    assert (
        "In 2 runs over `satloss` with the same losses, one for each client, msquic's mean goodput is then 0.25 Mbit/s "
        "(0.25 to 0.25) instead of 1.50 Mbit/s (1.00 to 2.00)."
    ) in told
    [short] = finding(results, replace(results, results=tuple(halved)))
    assert (
        "goodput is 1.50 Mbit/s with the underflow, and 0.25 Mbit/s without it (2 runs each, all with seed 1)" in short
    )
    assert list(finding(results, None)) == []


def test_acknowledgements_over_another_link_do_not_depend_on_the_server() -> None:
    """Over sat, the clients return the same share to all servers, in another order."""
    shares, rates = (0.1, 0.2, 0.4, 0.8, 0.31), (1, 2, 4, 8, 3)
    results = campaign("msquic", rates, shares)
    reference = [
        replace(run_result(server=server, client=f"c{number}"), measurement=Measurement({"return_packets": share}))
        for number, share in enumerate((0.3, 0.1, 0.2, 0.1, 0.2))
        for server in ("msquic", "fast")
    ]
    both = replace(
        results,
        results=(*results.results, *reference),
        manifest=replace(results.manifest, test_cases=(SAT, SATLOSS)),
    )
    assert returned_over(both, "sat") == {"c0": 0.3, "c1": 0.1, "c2": 0.2, "c3": 0.1, "c4": 0.2}
    told = "\n".join(acknowledgements(both, None))
    other = np.corrcoef(np.log([0.3, 0.1, 0.2, 0.1, 0.2]), np.log(rates))[0, 1]
    assert f"| {other:.2f} (" in told
    assert "over `satloss`. With it, the corrected interval includes 0 for msquic." in told
    same = [replace(run, measurement=Measurement({"return_packets": shares[int(run.client[1])]})) for run in reference]
    kept = "\n".join(acknowledgements(replace(both, results=(*results.results, *same)), None))
    assert "With it, the corrected interval excludes 0 for msquic." in kept


def test_few_clients_or_equal_ones_have_no_correlation() -> None:
    assert correlate((1, 2, 3), (1, 2, 3)) is None
    assert correlate((1, 1, 1, 1), (1, 2, 3, 4)) is None
    assert list(acknowledgements(campaign("quinn", (1, 2, 3), (0.1, 0.2, 0.3)), None)) == []
    assert list(acknowledgements(result_set(), None)) == []


def test_an_interval_that_is_corrected_is_longer() -> None:
    """Bonferroni: for 12 intervals, 2.8653 instead of 1.9600 standard errors."""
    first, second = (1, 2, 3, 4, 5, 6, 7), (1, 3, 2, 5, 4, 7, 6)
    one, many = correlate(first, second), correlate(first, second, 12)
    assert one is not None
    assert many is not None
    assert one.value == many.value
    widths = [np.arctanh(each.value) - np.arctanh(each.low) for each in (one, many)]
    assert widths == pytest.approx([1.95996 / 2, 2.86526 / 2], abs=1e-4)


def test_a_server_is_named_only_if_its_corrected_interval_excludes_0() -> None:
    """The interval of one server excludes 0, but not that of one of 20."""
    shares, rates = (0.1, 0.2, 0.4, 0.8, 0.3), (1, 1.5, 2, 4, 3)
    names = [f"s{number}" for number in range(20)]
    many = [campaign(name, rates, shares) for name in names]
    told = "\n".join(acknowledgements(many[0], None))
    assert ("s0 (1.00 to 4.00 Mbit/s) is faster" in told) is True
    assert "faster with clients" not in "\n".join(acknowledgements(together(many), None))


def test_the_correlation_without_the_underflow() -> None:
    """It is as large as with it, and the range of goodput is smaller."""
    shares = (0.1, 0.2, 0.4, 0.8, 0.31)
    first, second = campaign("msquic", (1, 2, 4, 8, 3), shares), campaign("msquic", (1, 1.1, 1.2, 1.3, 1.15), shares)
    told = "\n".join(acknowledgements(first, second))
    assert (
        "the correlation between goodput and acknowledgements, with its 95 % confidence interval, is 1.000 (0.997 "
        "to 1.000) with the underflow and 0.999 (0.980 to 1.000) without it. The fastest client is 8.0 times as "
        "fast as the slowest with the underflow, and 1.3 times without it. The underflow is therefore not the only "
        "cause of the correlation. [Causes"
    ) in told
    none = campaign("msquic", (1.1, 1.2, 1, 1.1, 1.2), shares)
    assert "not the only cause" not in "\n".join(acknowledgements(first, none))


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
