"""TCP segments become columns, and columns the same series and numbers as those of QUIC."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quicsat.analysis import tcp_metrics
from quicsat.analysis.time_shares import LinkConditions, time_shares
from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.errors import HarnessFault
from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import ErrorCode
from quicsat.model.real_link import RealDirection, RealLink
from quicsat.model.test_case import Link
from quicsat.model.time_shares import TimeShare
from quicsat.report.run_story import story
from quicsat.traces.run_traces import (
    BEHIND_PROXY,
    CLIENT_TRACE,
    SERVER_TRACE,
    TCP_INFO,
    RunTraces,
    check_traces,
    read_run,
)
from quicsat.traces.series import UNKNOWN
from quicsat.traces.tcp import SYN, finished_handshake, first_seen, read_tcp
from quicsat.traces.tcp_events import TcpTracePair
from quicsat.traces.tls import hello_version
from tests.quic_builder import CLIENT, EPOCH
from tests.tcp_traces import Tcp, pcap, transfer

LINK = EmulatedLink.symmetric("simple-p2p", Direction(0.1, 20e6, 25))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    client, server = transfer()
    (tmp_path / "sim").mkdir()
    (tmp_path / CLIENT_TRACE).write_bytes(pcap(client))
    (tmp_path / SERVER_TRACE).write_bytes(pcap(server))
    return tmp_path


def reading(directory: Path, link: Link = LINK) -> RunTraces:
    return read_run(directory, Protocol.TCP, link, check_traces(directory, Protocol.TCP))


def test_columns(directory: Path) -> None:
    found = read_tcp(directory / SERVER_TRACE)
    mine = found.from_server
    assert found.offset[mine].tolist() == [-1, 0, 1500, 2500, 3500, 4500, 5500, 2500]
    assert found.length[mine].tolist() == [0, 1500, *[1000] * 6]
    assert found.acknowledged[~mine].tolist() == [-1, 0, 1500, 2500, 2500, 2500, 2500, 6500]
    assert (found.flags[0] & SYN, set(found.connection.tolist())) == (SYN, {0})
    assert list(zip(found.sacks.start.tolist(), found.sacks.end.tolist(), strict=True)) == [
        (3500, 4500), (3500, 5500), (3500, 6500),
    ]  # fmt: skip
    assert first_seen(found)[mine].tolist() == [0, 1500, 1000, 1000, 1000, 1000, 1000, 0]


def test_sequence_numbers_that_wrap(tmp_path: Path) -> None:
    path = tmp_path / "t.pcap"
    path.write_bytes(pcap([Tcp(n / 10, False, 200 * n, 200) for n in range(5)]))
    assert read_tcp(path).offset.tolist() == [0, 200, 400, 600, 800]


def test_series(directory: Path) -> None:
    series = reading(directory).series()
    assert series.protocol is Protocol.TCP
    assert series.clock.offset == pytest.approx(0, abs=1e-9)
    assert series.sent.offset.tolist() == [0, 1500, 2500, 3500, 4500, 5500, 2500]
    assert series.sent.retransmission.tolist() == [False] * 6 + [True]
    assert series.arrived.new.sum() == 6500
    assert series.forward.lost.tolist() == [False] * 3 + [True] + [False] * 4
    assert np.nanmax(series.forward.delay) == pytest.approx(0.1)
    assert series.requests.sent.tolist() == pytest.approx([0.4])
    assert series.requests.arrived.tolist() == pytest.approx([0.5])
    assert series.requests.first_byte.tolist() == pytest.approx([0.6])
    assert series.requests.last_byte.tolist() == pytest.approx([0.85])
    assert series.rtt.value.tolist() == pytest.approx([0.2, 0.2, 0.2, 0.2, 0.2])  # none of what was sent twice
    assert series.in_flight.value.tolist()[-1] == 0
    assert series.in_flight.value.max() == 5 * 1020


def test_goodput_by_the_rule_of_quic(directory: Path) -> None:
    trace_pair = reading(directory).trace_pair
    assert isinstance(trace_pair, TcpTracePair)
    assert finished_handshake(trace_pair.client) == pytest.approx(0.4)
    assert tcp_metrics.handshake_time(trace_pair.client) == pytest.approx(0.4)
    assert tcp_metrics.goodput(trace_pair.client, 5000) == pytest.approx(8 * 5000 / 0.25)
    assert tcp_metrics.goodput(trace_pair.client, 0) is None


OWN = [
    Tcp(-0.01, False, -1, flags=SYN),
    Tcp(-0.005, True, -1, flags=SYN, acknowledged=0),
    Tcp(0.19, False, 0, 300, 0),
    Tcp(0.41, True, 0, 1500, 300),
    Tcp(0.42, False, 300, 100, 1500),
    *(Tcp(0.7 + n / 100, True, 1500 + 1000 * n, 1000, 400) for n in range(4)),
    Tcp(0.95, True, 5500, 1000, 400),  # lost behind the proxy, and sent again by it
]
"""The client's connection with its proxy, while that of the proxy is ``transfer``'s."""


def test_behind_a_proxy_data_arrive_at_the_client_and_packets_are_those_of_the_link(directory: Path) -> None:
    before = reading(directory)
    (directory / BEHIND_PROXY).write_bytes(pcap(OWN))
    traces = reading(directory)
    series, of_proxy = traces.series(), before.series()
    assert traces.start == pytest.approx(before.start - 0.01)
    assert series.requests.sent.tolist() == pytest.approx([0.43])
    assert series.requests.arrived.tolist() == pytest.approx([0.51])
    assert series.requests.first_byte.tolist() == pytest.approx([0.71])
    assert series.requests.last_byte.tolist() == pytest.approx([0.96])
    assert series.arrived.time.tolist() == pytest.approx([0.42, 0.71, 0.72, 0.73, 0.74, 0.96])
    assert series.arrived.number.tolist() == [UNKNOWN] * 6
    assert (series.forward.sent - of_proxy.forward.sent).tolist() == pytest.approx([0.01] * 8)
    assert series.forward.lost.tolist() == of_proxy.forward.lost.tolist()
    assert series.rtt.value.tolist() == pytest.approx(of_proxy.rtt.value.tolist())
    assert isinstance(traces.trace_pair, TcpTracePair)
    assert tcp_metrics.goodput(traces.trace_pair.seen, 5000) == pytest.approx(8 * 5000 / 0.25)
    assert [event.text for event in story(6500, series) if "byte" in event.text] == [
        "The first byte of a response arrives at the client.",
        "The last new byte arrives at the client: 6.348 KiB.",
    ]


def test_a_damaged_trace_behind_a_proxy_is_our_fault(directory: Path) -> None:
    (directory / BEHIND_PROXY).write_bytes(pcap(OWN)[:-1])
    with pytest.raises(HarnessFault, match="The trace behind the proxy cannot be used") as caught:
        reading(directory)
    assert caught.value.code is ErrorCode.TRACE_CORRUPT


def test_windows_of_third_parties_are_left_out(directory: Path) -> None:
    rows = [
        f"{EPOCH}500000000,{port},{window},1448,1,,0,0" for port, window in ((CLIENT[1], 14480), (999, 7), (443, 8))
    ]
    (directory / TCP_INFO).write_text("\n".join(["time,port,congestion_window", *rows]))
    assert reading(
        directory, RealLink("a", "b", RealDirection(1e6), RealDirection(1e6), 0.2)
    ).series().cwnd.value.tolist() == [14480.0]
    assert reading(directory).series().cwnd.value.tolist() == [14480.0]  # behind a proxy, those of other flows


def test_loss_is_matched_behind_address_translation(directory: Path) -> None:
    trace_pair = reading(directory).trace_pair
    assert (trace_pair.forward.loss, trace_pair.back.loss) == (1 / 8, 0)
    assert (trace_pair.forward.unmatched, trace_pair.back.unmatched) == (0, 0)


def test_the_request_follows_upon_the_finished_of_the_server_in_tls_1_2(tmp_path: Path) -> None:
    """Its own Finished comes first, so that the handshake takes a round trip more."""
    segments = [
        Tcp(0.2, False, 0, 300, 0),
        Tcp(0.3, True, 0, 1500, 300),
        Tcp(0.4, False, 300, 100, 1500),  # ClientKeyExchange to Finished
        Tcp(0.5, True, 1500, 50, 400),  # Finished
        Tcp(0.55, False, 400, 0, 1550),
        Tcp(0.6, False, 400, 80, 1550),  # request
        Tcp(0.7, True, 1550, 1000, 480),
    ]
    (tmp_path / "t.pcap").write_bytes(pcap(segments))
    trace = read_tcp(tmp_path / "t.pcap")
    assert trace.tls == 0  # payload of zeros
    assert finished_handshake(trace) == pytest.approx(0.4)
    older = replace(trace, tls=0x0303)
    assert finished_handshake(older) == pytest.approx(0.6)
    assert finished_handshake(replace(older, length=older.length * (older.time < 0.45))) is None


def server_hello(extensions: bytes) -> bytes:
    """A record with a ServerHello of version 0x0303."""
    body = b"\x03\x03" + bytes(32) + b"\x00" + b"\x13\x01\x00" + len(extensions).to_bytes(2, "big") + extensions
    return b"\x16\x03\x03" + (len(body) + 4).to_bytes(2, "big") + b"\x02" + len(body).to_bytes(3, "big") + body


def test_versions_of_tls() -> None:
    assert hello_version(server_hello(b"\x00\x2b\x00\x02\x03\x04")) == 0x0304
    assert hello_version(server_hello(b"\xff\x01\x00\x01\x00")) == 0x0303
    assert hello_version(server_hello(b"")[:20]) == 0
    assert hello_version(b"\x15\x03\x03\x00\x02\x02\x28") == 0
    assert hello_version(b"") == 0


def test_no_handshake_and_no_segment(tmp_path: Path) -> None:
    path = tmp_path / "t.pcap"
    path.write_bytes(pcap([Tcp(0, False, -1, flags=SYN)]))
    alone = read_tcp(path)
    assert finished_handshake(alone) is None
    assert tcp_metrics.goodput(alone, 1) is None
    assert tcp_metrics.handshake_time(alone) is None
    path.write_bytes(pcap([]))
    assert len(read_tcp(path)) == 0


def test_a_trace_that_is_not_whole(directory: Path) -> None:
    path = directory / CLIENT_TRACE
    whole = read_tcp(path)
    path.write_bytes(path.read_bytes()[:-1])
    assert read_tcp(path).time.tolist() == whole.time.tolist()[:-1]


def test_shares_of_the_time_over_tcp(directory: Path) -> None:
    traces = reading(directory)
    found = time_shares(traces.trace_pair, traces.series(), LinkConditions(np.array([-np.inf]), np.array([20e6])))
    spent = found.seconds
    assert sum(spent.values()) == pytest.approx(0.85)
    assert spent[TimeShare.HANDSHAKE] == pytest.approx(0.5)
    # Everything is sent at 0.54. What is lost is sent again at 0.75, 10 ms after the last acknowledgement.
    assert spent[TimeShare.TAIL] == pytest.approx(0.1, abs=0.001)  # a part of it is at the full rate
    assert spent[TimeShare.PTO] == pytest.approx(0.21, abs=0.005)


def test_windows_are_scaled_if_both_sides_say_so(tmp_path: Path) -> None:
    path = tmp_path / "t.pcap"
    rows = [
        Tcp(0.0, False, -1, flags=SYN, window=1000),
        Tcp(0.1, True, -1, flags=SYN, acknowledged=0, window=2000),
        Tcp(0.2, False, 0, 0, 100, window=3000),
    ]
    path.write_bytes(pcap(rows))
    assert read_tcp(path).allowed.tolist() == [-1, 2000, 3100]
    scaled = [replace(row, scale=7) if row.flags & SYN else row for row in rows]
    path.write_bytes(pcap(scaled))
    assert read_tcp(path).allowed.tolist() == [-1, 2000, 100 + 3000 * 128]
    path.write_bytes(pcap([scaled[0], *rows[1:]]))
    assert read_tcp(path).allowed.tolist() == [-1, 2000, 3100]
