"""The stored report docs/paper: receive windows of clients."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from statistics import fmean

import pyarrow.parquet as parquet
import pytest

from tests.scripts.stored_paper_report.stored import (
    PAPER,
    all_goodputs,
    documents,
    listed,
    matching,
    matrix,
    metric,
    rows,
    runs_of,
    section_of,
    so_far,
    stored_part,
    succeeded,
    the_findings,
    the_page,
)
from tests.scripts.stored_paper_report.test_endpoints import bytes_of


@pytest.mark.skipif(not stored_part["windows"], reason="no campaign of windows is stored")
def test_numbers_of_windows() -> None:
    for client, connection, stream, *cells, flying in rows("Goodput over sat by the windows of the client"):
        mine = [run for run in runs_of("windows") if run["client"] == client]
        for server, cell in zip(("picoquic", "lsquic", "quinn"), cells, strict=True):
            values = all_goodputs(run for run in mine if run["server"] == server)
            assert float(cell.removesuffix(" T")) == pytest.approx(fmean(values), abs=0.0051)
            late = any(run["verdict"]["outcome"] == "timeout" for run in mine if run["server"] == server)
            assert cell.endswith(" T") is late
        limits = [run["measurement"]["negotiated"]["client"] for run in mine if metric(run, "goodput") is not None]
        for cell, name in ((connection, "initial_max_data"), (stream, "initial_max_stream_data_bidi_local")):
            assert {bytes_of(cell)} == {each[name] for each in limits} if cell else not limits
        most = [value for run in mine if run["server"] == "picoquic" and (value := metric(run, "in_flight_max"))]
        assert flying == (str(round(max(most) / 1024)) if most else "")


@pytest.mark.skipif(not stored_part["windows"], reason="no campaign of windows is stored")
def test_clients_that_raise_their_windows() -> None:
    most: dict[str, float] = defaultdict(float)
    for run in runs_of("windows"):
        if (flying := metric(run, "in_flight_max")) is not None:
            sent = run["measurement"]["negotiated"]["client"]
            share = flying / min(sent["initial_max_data"], sent["initial_max_stream_data_bidi_local"])
            most[run["client"]] = max(most[run["client"]], share)
    order = documents("windows")[0]["manifest"]["clients"]
    raised = [name for name in order if most[name] > 1.1]
    kept = [name for name in order if 0.85 <= most[name] <= 1.1]
    page = the_page()
    assert f"With {listed(raised)}, a server had more than 110 % of the smaller initial window" in page
    assert f"With {listed(kept)}, the maximum in flight was 85 to 110 % of the smaller initial window" in page


@pytest.mark.skipif(not stored_part["quic-go-windows"], reason="no campaign with larger windows is stored")
def test_numbers_of_larger_windows() -> None:
    section = section_of("Why picoquic is slow with quic-go")
    own = {(run["server"], run["client"]): so_far(run) or 0 for run in runs_of("windows")}
    wider = {run["server"]: so_far(run) or 0 for run in runs_of("quic-go-windows")}
    [limits] = {
        (sent["initial_max_stream_data_bidi_local"] >> 20, sent["initial_max_data"] >> 20)
        for run in runs_of("quic-go-windows")
        if (sent := run["measurement"]["negotiated"]["client"])
    }
    slow, fast = own["picoquic", "quic-go"], own["picoquic", "ngtcp2"]
    assert f"picoquic's server reaches {slow:.2f} Mbit/s; with ngtcp2, it reaches {fast:.2f} Mbit/s." in section
    assert f"a stream window of {limits[0]} MiB and a connection window of {limits[1]} MiB" in section
    assert f"With this client, picoquic reaches {wider['picoquic']:.2f} Mbit/s." in section
    first = [
        {run["client"]: metric(run, "time_to_first_byte") for run in runs_of(part) if run["server"] == "picoquic"}
        for part in ("windows", "quic-go-windows")
    ]
    others = {name: value for name, value in first[0].items() if name != "quic-go" and value is not None}
    late = {name: value for name, value in others.items() if value > 1.5 * min(others.values())}
    soon = sorted(value for name, value in others.items() if name not in late)
    assert late == {"openssl": pytest.approx(4.53, abs=0.01)}
    assert (
        f"after {first[0]['quic-go']:.2f} s with quic-go's client, {first[1]['quic-go']:.2f} s with the larger windows "
        f"and {late['openssl']:.2f} s with openssl. With the other clients of the table, it arrives after "
        f"{soon[0]:.2f} to {soon[-1]:.2f} s."
    ) in section
    assert "explains why it arrives late with openssl. The late first byte indicates that picoquic" in section
    for server in ("lsquic", "quinn"):
        assert f"from {own[server, 'quic-go']:.2f} to {wider[server]:.2f} Mbit/s for {server}" in section


def test_numbers_of_the_burst() -> None:
    """From the columns of the stored series, which are in microseconds."""
    path = PAPER / "data" / "series" / "picoquic_quic-go" / "sat" / "1" / "series.parquet"
    events = parquet.read_table(path).to_pylist()
    packets = [event for event in events if event["kind"] == "forward"]
    bursts = [[packets[0]]]
    for before, packet in pairwise(packets):
        if packet["sent"] - before["sent"] > 1000:
            bursts.append([])
        bursts[-1].append(packet)
    largest = max(bursts, key=len)
    data = [event for event in events if event["kind"] == "sent"]
    end = largest[-1]["sent"]
    offset = max(event["offset"] + event["length"] for event in data if event["time"] <= end)
    silence = (min(event["time"] for event in data if event["time"] > end and event["new"]) - end) / 1e6
    request = min(event["arrived"] for event in events if event["kind"] == "requests") / 1e6
    section = section_of("Why picoquic is slow with quic-go")
    assert f"The request reaches the server after {request:.2f} s" in section
    assert f"picoquic sends the first byte after {min(event['time'] for event in data) / 1e6:.2f} s" in section
    assert f"- After {largest[0]['sent'] / 1e6:.2f} s, picoquic sends {len(largest)} packets in one burst." in section
    assert f"ends with byte {offset} of the response" in section
    assert f"The queue drops {sum(packet['lost'] for packet in largest)} of these packets." in section
    assert f"sends the next new byte {silence:.2f} s later" in section
    path = PAPER / "data" / "series-with-qlog" / "picoquic_quic-go" / "sat" / "1" / "series.parquet"
    windows = [event for event in parquet.read_table(path).to_pylist() if event["kind"] == "cwnd"]
    before, after = max(pairwise(windows), key=lambda pair: pair[1]["value"] / pair[0]["value"])
    low = min(windows[windows.index(after) :], key=lambda event: event["value"])
    assert (
        f"a single acknowledgement after {after['time'] / 1e6:.2f} s increases picoquic's congestion window from "
        f"{before['value'] / 1024:.0f} to {after['value'] / 1024:.0f} KiB. After the losses, the window falls to "
        f"{low['value'] / 1024:.0f} KiB (at {low['time'] / 1e6:.2f} s)."
    ) in section
    [limit] = {
        run["measurement"]["negotiated"]["client"]["initial_max_stream_data_bidi_local"]
        for run in matrix()
        if (run["server"], run["client"], run["test_case"]) == ("picoquic", "quic-go", "sat")
    }
    assert offset == limit


@pytest.mark.skipif(not documents("windows"), reason="no clients with other windows are stored")
def test_a_client_with_the_windows_of_quic_go_is_faster() -> None:
    [value] = [
        goodput / 1e6
        for run in runs_of("windows")
        if (run["server"], run["client"]) == ("picoquic", "openssl")
        if (goodput := metric(run, "goodput")) is not None
    ]
    [line] = [line for line in the_page().splitlines() if "with the same windows, " in line]
    assert f"openssl receives {value:.2f} Mbit/s" in line


@pytest.mark.skipif(not stored_part["windows"], reason="no campaign of windows is stored")
def test_the_finding_about_smaller_windows_of_ngtcp2() -> None:
    changes = []
    for server in documents("windows")[0]["manifest"]["servers"]:
        small, large = (
            fmean(all_goodputs(matching(runs_of("windows"), server=server, client=client)))
            for client in ("ngtcp2:window-768k", "ngtcp2")
        )
        assert small < large
        changes.append(f"from {large:.2f} to {small:.2f} Mbit/s with {server}")
    (small_connection, small_stream), (connection, stream) = map(windows_of, ("ngtcp2:window-768k", "ngtcp2"))
    assert (
        f"- A client's receive windows can limit goodput over `sat` if they do not grow. We reduced the windows of "
        f"ngtcp2's client from {connection >> 20} MiB for the connection and {stream >> 20} MiB for a stream to "
        f"{small_connection >> 10} KiB and {small_stream >> 10} KiB. This reduced goodput {listed(changes)} (one run "
        f"each). If windows do not grow, goodput cannot exceed the window divided by the round-trip time, here "
        f"{small_stream >> 10} KiB / 600 ms = {8 * small_stream / 0.6 / 1e6:.2f} Mbit/s. {growing()} See [Receive"
    ) in the_findings()


def growing() -> str:
    """What other servers than picoquic reach with clients that raise the same windows, and picoquic in real time."""
    same = [name for name in ("quic-go", "openssl") if windows_of(name) == windows_of("ngtcp2:window-768k")]
    assert len(same) == 2
    rates = [
        listed(f"{fmean(all_goodputs(matching(runs_of('windows'), server=server, client=name))):.2f}" for name in same)
        for server in ("lsquic", "quinn", "picoquic")
    ]
    assert the_page().count(in_real_time()) == 2
    return (
        f"With {listed(same)}, which announce the same windows but raise them, goodput is {rates[0]} Mbit/s with "
        f"lsquic and {rates[1]} Mbit/s with quinn. With picoquic, it is {rates[2]} Mbit/s, for reasons that we do not "
        "fully separate (see [Why picoquic is slow with quic-go](#why-picoquic-is-slow-with-quic-go)). "
        f"{in_real_time()}"
    )


def in_real_time() -> str:
    """Of picoquic with ngtcp2 over sat; the other servers differ by 10 % or less."""
    virtual, real = (
        all_goodputs(matching(runs, server="picoquic", client="ngtcp2", test_case="sat"))
        for runs in (matrix(), runs_of("real"))
    )
    return (
        f"In real time, picoquic reaches {min(real):.2f} to {max(real):.2f} Mbit/s with ngtcp2 ({len(real)} runs) "
        f"instead of {fmean(virtual):.2f} Mbit/s in virtual time."
    )


def windows_of(client: str) -> tuple[int, int]:
    """Bytes for the connection and for a stream that a client announces."""
    [found] = {
        (sent["initial_max_data"], sent["initial_max_stream_data_bidi_local"])
        for run in matching(runs_of("windows"), client=client)
        if succeeded(run) and (sent := run["measurement"]["negotiated"]["client"])
    }
    return found
