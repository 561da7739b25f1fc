"""Receive windows of clients, and how a server begins to send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from interop.model.negotiated import Negotiated
from interop.model.results import Measurement, ResultSet, RunResult
from interop.model.units import MIB
from interop.traces.series import Samples, Series
from scripts.paper.windows import (
    about_the_figure,
    by_window,
    finding,
    growth,
    in_real_time,
    start_of,
    windows,
    with_variants,
)
from tests.results_builder import SATLOSS, result_set, run_result, runs
from tests.scripts.paper.campaigns import late
from tests.series_builder import Transfer, series


def run(server: str, client: str, rate: float, window: int) -> RunResult:
    limits = {"initial_max_data": window, "initial_max_stream_data_bidi_local": window}
    values = {"goodput": rate, "in_flight_max": float(window)}
    negotiated = Negotiated(1, 0x1301, "hq-interop", client=limits, server={})
    return replace(
        run_result(rate, server=server, client=client), measurement=Measurement(values, negotiated=negotiated)
    )


CLIENTS = ("quic-go", "ngtcp2", "ngtcp2:window-64k")


def campaign() -> ResultSet:
    found = [run("picoquic", "quic-go", 2e6, MIB // 2), run("picoquic", "ngtcp2", 8e6, 16 * MIB)]
    found.append(late(run_result(None, client="ngtcp2:window-64k", test_case="satloss"), 45 * 10**6))
    found.append(run("lsquic", "quic-go", 9e6, MIB // 2))
    return result_set(found, servers=("picoquic", "lsquic"), clients=CLIENTS, test_cases=(SATLOSS,))


def burst() -> Series:
    """The server sends 10 packets, a burst of 20 at 1 s, of which the link drops five, and the rest 0.6 s later."""
    made = series(Transfer(size=100_000))
    times = np.concatenate([0.9 + 0.008 * np.arange(10), 1.0 + 1e-5 * np.arange(20), 1.6 + 0.008 * np.arange(70)])
    lost = (np.arange(100) >= 15) & (np.arange(100) < 20)
    return replace(made, sent=replace(made.sent, time=times), forward=replace(made.forward, sent=times, lost=lost))


def with_qlog() -> Series:
    windows = [10 * 1024, 20 * 1024, 200 * 1024, 50 * 1024, 4 * 1024, 8 * 1024]
    return replace(burst(), cwnd=Samples.of(time=range(1, 7), value=windows))


def test_goodput_by_window() -> None:
    first, second, third = by_window(campaign()).rows
    assert first == ("quic-go", "512 KiB", "512 KiB", "2.00", "9.00", 512)
    assert second == ("ngtcp2", "16 MiB", "16 MiB", "8.00", "", 16384)
    assert list(third) == ["ngtcp2:window-64k", "", "", "1.00 T", "", None]


def test_the_figure_shows_variants_only() -> None:
    assert {each.client for each in with_variants(campaign()).results} == {"ngtcp2:window-64k"}


def test_the_largest_burst_and_what_follows_it() -> None:
    found = start_of(burst())
    assert (found.burst, found.lost, found.offset) == (20, 5, 30_000)
    assert found.first == pytest.approx(0.9)
    assert found.request == pytest.approx(0.9)
    assert found.silence == pytest.approx(0.6, abs=0.001)


def test_the_cause_is_told_only_with_larger_windows() -> None:
    larger = result_set([run("picoquic", "quic-go", 9e6, 16 * MIB), run("lsquic", "quic-go", 10e6, 16 * MIB)])
    told = "\n".join(str(line) for line in windows(campaign(), larger, (), (burst(), with_qlog())))
    assert "reaches 2.00 Mbit/s; with ngtcp2, it reaches 8.00 Mbit/s" in told
    assert "a stream window of 16 MiB" in told
    assert "With this client, picoquic reaches 9.00 Mbit/s" in told
    assert "from 9.00 to 10.00 Mbit/s for lsquic." in told
    assert "20 packets in one burst" in told
    assert (
        "a single acknowledgement after 3.00 s increases picoquic's congestion window from 20 to 200 KiB. After the "
        "losses, the window falls to 4 KiB ("
    ) in told
    assert "There is one run with one seed for each variant." in told
    assert "the whole cause" not in told
    assert "one seed for each variant" not in "\n".join(
        str(line) for line in windows(campaign(), None, (), (None, None))
    )


def first_byte(results: ResultSet, times: Mapping[str, float]) -> ResultSet:
    """The same results, with the time to the first byte by client."""
    changed = tuple(
        replace(each, measurement=replace(each.measurement, values={**each.measurement.values, **more}))
        if each.measurement and (more := {"time_to_first_byte": times.get(each.client, 1.2)})
        else each
        for each in results.results
    )
    return replace(results, results=changed)


def test_a_request_that_is_late_in_both_runs_is_not_what_larger_windows_change() -> None:
    larger = result_set([run("picoquic", "quic-go", 9e6, 16 * MIB)])

    def told(own: float, wider: float) -> str:
        both = first_byte(campaign(), {"quic-go": own}), first_byte(larger, {"quic-go": wider})
        return "\n".join(str(line) for line in windows(*both, (), (None, None)))

    assert "after 2.00 s with quic-go's client and 2.01 s with the larger windows. With the other" in told(2.0, 2.01)
    assert "it arrives after 1.20 to 1.20 s." in told(2.0, 2.01)
    assert "in both runs with quic-go's client. The dropped datagram alone does not make the pair" in told(2.0, 2.01)
    assert "in both runs" not in told(2.0, 1.2)


def test_other_clients_with_a_late_first_byte_are_named() -> None:
    larger = first_byte(result_set([run("picoquic", "quic-go", 9e6, 16 * MIB)]), {"quic-go": 2.0})
    small = campaign()
    more = (*small.results, run("picoquic", "openssl", 5e6, MIB))
    small = replace(small, results=more, manifest=replace(small.manifest, clients=(*CLIENTS, "openssl")))
    both = first_byte(small, {"quic-go": 2.0, "openssl": 4.5})
    told = "\n".join(str(line) for line in windows(both, larger, (), (None, None)))
    assert "2.00 s with the larger windows and 4.50 s with openssl. With the other clients of the table, it" in told
    assert "in both runs with quic-go's client" in told
    assert "explains why it arrives late with openssl" in told


def test_clients_that_raise_their_windows() -> None:
    found = []
    for client, flying in (("a", 5 * MIB), ("b", 1.02 * MIB), ("c", 0.5 * MIB)):
        one = run("picoquic", client, 8e6, MIB)
        assert one.measurement is not None
        values = {**one.measurement.values, "in_flight_max": flying}
        found.append(replace(one, measurement=replace(one.measurement, values=values)))
    [told, _] = growth(result_set(found, clients=("a", "b", "c")))
    assert told.startswith("With a, a server had more than 110 %")
    assert "in flight, so this client raises its windows. With b, the maximum in flight was 85 to 110 % of" in told
    assert told.endswith("With the other clients, no server filled the window.")


def test_what_the_figure_does_not_show() -> None:
    one = run("picoquic", "ngtcp2:window-1m", 8e6, MIB)
    assert one.measurement is not None
    limits = {"initial_max_data": MIB, "initial_max_stream_data_bidi_local": MIB // 2}
    negotiated = Negotiated(1, 0x1301, "hq-interop", client=limits, server={})
    small = replace(one, measurement=replace(one.measurement, negotiated=negotiated))
    both = replace(campaign(), results=(*campaign().results, small))
    both = replace(both, manifest=replace(both.manifest, clients=(*CLIENTS, "ngtcp2:window-1m")))
    [told, _] = about_the_figure(both)
    assert told.startswith("The next figure shows connection windows. It omits")
    assert "It omits ngtcp2:window-64k, which did not finish any run. It does not show" in told
    assert told.endswith("stream windows, which are smaller for ngtcp2:window-1m (512 KiB).")


def test_a_faster_client_with_the_same_windows_shows_another_cause() -> None:
    """A slower one, and one with other windows, do not."""
    others = [run("picoquic", name, goodput, MIB // 2) for name, goodput in (("openssl", 5e6), ("kwik", 1e6))]
    small = campaign()
    clients = (*small.manifest.clients, "openssl", "kwik")
    both = replace(small, results=(*small.results, *others), manifest=replace(small.manifest, clients=clients))
    larger = result_set([run("picoquic", "quic-go", 9e6, 16 * MIB)])
    told = "\n".join(str(line) for line in windows(both, larger, (), (None, None)))
    assert "not the whole cause: with the same windows, openssl receives 5.00 Mbit/s." in told


def test_the_finding_compares_the_same_client_with_two_windows() -> None:
    found = [
        run(server, client, rate, window)
        for server, rates in (("picoquic", (8e6, 4e6)), ("lsquic", (9e6, 3e6)))
        for client, rate, window in zip(("ngtcp2", "ngtcp2:window-768k"), rates, (16 * MIB, MIB // 2), strict=True)
    ]
    found.append(run("quinn", "ngtcp2", 1e6, 16 * MIB))
    servers, clients = ("picoquic", "lsquic", "quinn"), ("ngtcp2", "ngtcp2:window-768k")
    results = result_set(found, servers=servers, clients=clients)
    [told] = finding(results, results, None)
    assert "512 KiB / 600 ms = 6.99 Mbit/s" in told
    assert "In real time" not in told
    assert "which announce" not in told
    assert "from 16 MiB for the connection and 16 MiB for a stream to 512 KiB and 512 KiB. This reduced" in told
    assert "goodput from 8.00 to 4.00 Mbit/s with picoquic and from 9.00 to 3.00 Mbit/s with lsquic (one" in told
    assert list(finding(campaign(), campaign(), None)) == []


def test_clients_that_announce_small_windows_and_raise_them() -> None:
    found = [
        run("lsquic", client, rate, window)
        for client, rate, window in (
            ("ngtcp2", 9e6, 16 * MIB), ("ngtcp2:window-768k", 3e6, MIB // 2), ("quic-go", 8e6, MIB // 2)
        )
    ]  # fmt: skip
    clients = ("ngtcp2", "ngtcp2:window-768k", "quic-go")
    results = result_set(found, servers=("lsquic",), clients=clients)
    [told] = finding(results, results, None)
    assert "With quic-go, which announces the same windows but raises them, goodput is 8.00 Mbit/s with lsquic." in told
    assert "fully separate" not in told
    slow = run("picoquic", "quic-go", 3e6, MIB // 2)
    [told] = finding(replace(results, results=(*results.results, slow)), results, None)
    assert "with lsquic. With picoquic, it is 3.00 Mbit/s, for reasons that we do not fully separate (see [Why" in told


def test_servers_that_differ_much_in_real_time_are_named() -> None:
    matrix = result_set([run("picoquic", "ngtcp2", 8e6, MIB)], clients=("ngtcp2",))
    real = result_set(runs(10e6, 11e6, server="picoquic", client="ngtcp2"), clients=("ngtcp2",))
    told = "\n".join(in_real_time(campaign(), matrix, real))
    assert told.startswith(
        "In real time, picoquic reaches 10.00 to 11.00 Mbit/s with ngtcp2 (2 runs) instead of 8.00 Mbit/s in virtual "
    )
    assert list(in_real_time(campaign(), matrix, matrix)) == []
    assert list(in_real_time(campaign(), matrix, None)) == []
