"""Receive windows of clients and the client's share of the variance."""

from __future__ import annotations

from dataclasses import replace

from interop.model.negotiated import Negotiated
from interop.model.results import Measurement, ResultSet, RunResult
from interop.model.units import MBPS
from scripts.paper.client_windows import among_small, by_window, client_windows, settings
from tests.results_builder import result_set, runs

WINDOWS = {"a": 10**6, "b": 10**6, "kwik": 1_500_000, "d": 2 * 10**6, "e": 2**60, "f": 10**5}
"""The bandwidth-delay product is 1.5 MB."""


def announced(run: RunResult, connection: int) -> RunResult:
    sent = {"initial_max_data": connection, "initial_max_stream_data_bidi_local": 2**61}
    values = run.measurement.values if run.measurement is not None else {}
    negotiated = Negotiated(1, 0x1301, "hq-interop", client=sent, server={})
    return replace(run, measurement=Measurement(values, negotiated=negotiated))


def campaign(*clients: str) -> ResultSet:
    found = [
        announced(run, WINDOWS[client])
        for place, server in enumerate(("s", "t", "u"))
        for step, client in enumerate(clients)
        for run in runs((2**place + 0.1 * (place * step % 4)) * MBPS, server=server, client=client)
    ]
    return result_set(found, servers=("s", "t", "u"), clients=clients, repetitions=1)


def test_clients_by_their_smaller_window() -> None:
    found = by_window(campaign(*WINDOWS))
    assert found is not None
    assert (found.product, found.large, found.small) == (1.5e6, ["kwik", "d", "e"], ["a", "b", "f"])
    told = "3 of 6 clients announce at least the bandwidth-delay product of `sat` (1.5 MB)"
    assert settings(campaign(*WINDOWS)) == f"our programs set larger receive windows for 1 client, and {told}"
    assert by_window(result_set(runs(MBPS))) is None
    assert settings(result_set()) == ""


def test_the_share_of_both_groups() -> None:
    [told] = client_windows(campaign(*WINDOWS))
    assert " among the 3 clients with such windows (kwik, d, e; " in told
    assert " among the 3 clients with smaller windows (a, b, f; " in told
    assert " Mbit/s on average) and " in told
    assert among_small(campaign(*WINDOWS)).startswith(
        " However, among the 3 clients with smaller windows, the client's share over `sat` is also only "
    )
    assert among_small(campaign("a", "b", "kwik")) == ""
    [told] = client_windows(campaign("a", "b", "kwik"))
    assert "Over `sat`, the client's share" not in told
    assert list(client_windows(result_set())) == []
