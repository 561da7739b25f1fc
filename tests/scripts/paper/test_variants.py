"""What the report docs/paper says of congestion controls."""

from __future__ import annotations

import pytest

from interop.model.units import MBPS
from scripts.paper.variants import (
    algorithm_or_implementation,
    conclusion,
    factors_of,
    means_of_controls,
    with_known_controls,
)
from tests.results_builder import SATLOSS, result_set, runs
from tests.scripts.paper.campaigns import ARRIVED, variants


def test_tables_and_factors() -> None:
    late = (6 + ARRIVED * 8 / SATLOSS.timeout / 1e6) / 2
    page = "\n".join(str(line) for line in algorithm_or_implementation(variants(), ()))
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if "quic" in line or "quinn" in line
    ]
    assert ["quinn", "", "2.00", "8.00", "", ""] in rows
    assert ["picoquic", "1.00", "", f"{late:.2f} T", "", ""] in rows
    assert f"With BBR, the fastest implementation has {8 / late:.1f} times" in page
    assert "With CUBIC" not in page


def test_other_variants_are_left_out() -> None:
    results = result_set(
        runs(4 * MBPS, server="picoquic:bbr") + runs(4 * MBPS, server="picoquic:c4"),
        servers=("picoquic:bbr", "picoquic:c4"),
    )
    assert with_known_controls(results).manifest.servers == ("picoquic:bbr",)
    assert {each.server for each in with_known_controls(results).results} == {"picoquic:bbr"}


def test_one_congestion_control_instead_of_another() -> None:
    """Twice and eight times as fast: four times as fast at the geometric mean, and each of both without the other."""
    found = [
        run
        for server, rate in (("a:cubic", 1), ("a:bbr", 2), ("b:cubic", 1), ("b:bbr", 8), ("c:bbr", 5))
        for run in runs(rate * MBPS, server=server)
    ]
    results = result_set(found, servers=("a:cubic", "a:bbr", "b:cubic", "b:bbr", "c:bbr"))
    [case] = results.manifest.test_cases
    assert factors_of(results, case, "CUBIC", "BBR") == {"a": pytest.approx(2), "b": pytest.approx(8)}
    assert factors_of(results, case, "Reno", "CUBIC") == {}
    told = "\n".join(str(line) for line in algorithm_or_implementation(results, ()))
    assert "multiplies the goodput of an implementation by 4.0 (" in told
    assert "Without one of them, it is 2.0 (without b) to 8.0 (without a)." in told


def test_the_larger_share_is_named() -> None:
    """Eight implementations with two congestion controls, and a little that is not additive."""
    servers = tuple(f"s{number}:{control}" for number in range(8) for control in ("reno", "bbr"))
    clients = ("x", "y", "z")

    def told(factor: float, step: float) -> str:
        found = [
            run
            for number, server in enumerate(servers)
            for place, client in enumerate(clients)
            for run in runs(
                MBPS * (factor if "bbr" in server else 1) * step ** (number // 2) * (1 + 0.01 * place * (number % 3)),
                server=server,
                client=client,
            )
        ]
        return "\n".join(conclusion(result_set(found, servers=servers, clients=clients)))

    assert "so the congestion control has the larger share" in told(20, 1.01)
    assert "so the implementation has the larger share" in told(1.01, 3)
    assert "so these data do not show which share is larger" in told(3, 1.4)


def test_a_server_without_known_goodput_has_no_mean() -> None:
    results = result_set(runs(None, server="quinn:bbr"), servers=("quinn:bbr",))
    assert means_of_controls(results, results.manifest.test_cases[0]) == {}
