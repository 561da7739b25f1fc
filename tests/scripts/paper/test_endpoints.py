"""Conditions of the endpoints: windows, payloads, acknowledgements."""

from __future__ import annotations

from dataclasses import replace

from interop.model.negotiated import Negotiated
from interop.model.results import Measurement, ResultSet, RunResult
from scripts.paper.endpoints import conditions, of_clients, of_servers
from tests.results_builder import result_set, run_result


def run(client: str, window: int, flying: float, returned: float) -> RunResult:
    limits = {"initial_max_data": window, "initial_max_stream_data_bidi_local": 2**52, "max_ack_delay": 20}
    values = {"goodput": 1e6, "in_flight_max": flying, "return_packets": returned, "longest_burst": flying / 1000}
    negotiated = Negotiated(1, 0x1301, "hq-interop", client=limits, server={})
    return replace(run_result(1e6, client=client), measurement=Measurement(values, negotiated=negotiated))


def campaign() -> ResultSet:
    found = [run("x", 1024, 1000, 0.1), run("y", 4096, 2048, 0.5), run("z", 1024, 3072, 0.5)]
    return result_set(found, clients=("x", "y", "z"))


def test_servers_have_medians() -> None:
    [row] = of_servers(campaign(), campaign().results).rows
    assert row == ("picoquic", "unknown", None, None, 2, 2)


def test_clients_have_their_windows() -> None:
    rows = of_clients(campaign(), campaign().results).rows
    assert rows[0] == ("x", "1 KiB", "no limit", "65527", "20", "10 to 10")


def test_windows_that_grew_and_windows_that_were_full() -> None:
    told = "\n".join(conditions(campaign()))
    assert "All runs used QUIC v1 with the application protocol hq-interop." in told
    assert "In 1 of 3 successful runs over `sat`, the server had more bytes in flight" in told
    assert "In 1 runs, the most in flight was 90 to 100 % of the smaller window" in told
    assert told.endswith("limited the server: picoquic with x.")
