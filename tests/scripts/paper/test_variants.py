"""What the report docs/paper says of congestion controls."""

from __future__ import annotations

import pytest

from interop.model.units import MBPS
from scripts.paper.variants import (
    algorithm_or_implementation,
    conclusion,
    instead_of,
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
    assert ["quinn", "", "2.00", "8.00"] in rows
    assert ["picoquic", "1.00", "", f"{late:.2f} T"] in rows
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
    """Twice and eight times as fast: four times as fast at the geometric mean."""
    found = [
        run
        for server, rate in (("a:cubic", 1), ("a:bbr", 2), ("b:cubic", 1), ("b:bbr", 8), ("c:bbr", 5))
        for run in runs(rate * MBPS, server=server)
    ]
    results = result_set(found, servers=("a:cubic", "a:bbr", "b:cubic", "b:bbr", "c:bbr"))
    ratio = instead_of(results, results.manifest.test_cases[0], "CUBIC", "BBR")
    assert ratio is not None
    assert ratio.value == pytest.approx(4)
    assert ratio.count == 2
    assert instead_of(results, results.manifest.test_cases[0], "Reno", "CUBIC") is None


def test_the_larger_share_is_named() -> None:
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

    assert "The congestion control has a larger share" in told(20, 1.01)
    assert "The implementation has a larger share" in told(1.01, 3)
    assert "These data do not show which share is larger" in told(3, 1.3)


def test_a_server_without_known_goodput_has_no_mean() -> None:
    results = result_set(runs(None, server="quinn:bbr"), servers=("quinn:bbr",))
    assert means_of_controls(results, results.manifest.test_cases[0]) == {}
