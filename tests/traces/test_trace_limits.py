"""What an endpoint can put into a trace is limited, so that its analysis takes bounded memory and time."""

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quicsat.analysis import analyse as module
from quicsat.analysis.analyse import CLIENT_TRACE, SERVER_TRACE, analyse
from quicsat.model import trace_size
from quicsat.model.errors import HarnessFault
from quicsat.model.evidence import Exit
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.traces import packets, streams
from quicsat.traces.records import embedded_secrets, records, unsorted_records
from quicsat.traces.tls import Assembly
from quicsat.traces.trace import read
from tests.analysis.test_analyse import EVIDENCE, RUN, transfer
from tests.quic_builder import PING, Connection, Packet, block, pcap, pcapng, stream_frame

MOST = 100
COALESCED = b"\xe0" + struct.pack(">I", 1) + b"\0\0\x05" + b"x" * 5
"""The smallest packet with a long header, 13 bytes."""
MADE = Connection()
HANDSHAKE = [Packet(0, False, MADE.client_hello()), Packet(0.1, True, MADE.server_hello())]


@pytest.mark.parametrize(
    ("payloads", "what"),
    [
        pytest.param([COALESCED * (MOST + 1)], "QUIC packets", id="coalesced packets"),
        pytest.param([MADE.one_rtt(3, PING * 1400, from_server=False)], "numbers in its frames", id="pings"),
        pytest.param(
            [MADE.one_rtt(3, stream_frame(0, b"") * 450, from_server=False)], "numbers in its frames", id="empty frames"
        ),
        pytest.param(
            [b"\xe0" + struct.pack(">I", 1) + b"\xff" + bytes([n]) * 255 + b"\0\x01x" for n in range(50)],
            "bytes of tokens and connection ids",
            id="connection ids",
        ),
        pytest.param(
            [b"\xc0" + struct.pack(">I", 1) + b"\x01" + bytes([n]) + b"\0\0\x40\x30" + b"x" * 48 for n in range(50)],
            "pairs of a packet and a key",
            id="Initials that begin no connection",
        ),
    ],
)
def test_a_trace_holds_so_much_for_each_packet_that_is_allowed(
    tmp_path: Path, payloads: list[bytes], what: str
) -> None:
    path = tmp_path / "trace.pcap"
    path.write_bytes(pcap([*HANDSHAKE, *(Packet(0.2, False, payload) for payload in payloads)]))
    with pytest.raises(HarnessFault, match=f"trace.pcap has more than .* {what}") as found:
        read(path, MADE.key_log.splitlines(), most=MOST)
    assert found.value.code == ErrorCode.TRACE_LIMIT


def test_packets_beyond_the_limit_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.pcap"
    path.write_bytes(pcap(Packet(n / 1000, False, b"x") for n in range(MOST + 1)))
    assert sum(1 for _ in records(path, MOST + 1)) == MOST + 1
    with pytest.raises(HarnessFault, match=f"more than {MOST} packets"):
        list(unsorted_records(path, MOST))


def test_blocks_and_interfaces_of_a_capture_are_limited(tmp_path: Path) -> None:
    path = tmp_path / "trace.pcapng"
    empty = pcapng([])
    path.write_bytes(empty + block(1, struct.pack("<HHI", 1, 0, 0)) * 1001)
    with pytest.raises(HarnessFault, match="interfaces"):
        list(records(path, MOST))
    path.write_bytes(empty + block(5, b"") * 2000)
    with pytest.raises(HarnessFault, match="blocks"):
        list(records(path, MOST))


def test_key_logs_in_a_capture_are_read_up_to_a_limit(tmp_path: Path) -> None:
    path, piece = tmp_path / "trace.pcapng", struct.pack("<II", 0x544C534B, 2**20) + b"\n" * 2**20
    path.write_bytes(pcapng([]) + block(10, piece) * 8)
    assert len(embedded_secrets(path)) == pytest.approx(4 * 2**20, abs=8)


def test_connections_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "MOST_CONNECTIONS", 3)
    made = [Connection(original=bytes([n]) * 8).client_hello() for n in range(4)]
    path = tmp_path / "trace.pcap"
    path.write_bytes(pcap(Packet(n / 10, False, each) for n, each in enumerate(made[:3])))
    assert len(read(path).connections) == 3
    path.write_bytes(pcap(Packet(n / 10, False, each) for n, each in enumerate(made)))
    with pytest.raises(HarnessFault, match="3 connections"):
        read(path)


def test_pieces_of_a_handshake_are_not_searched_for_each_new_byte() -> None:
    class Offset(int):
        compared = 0

        def __le__(self, other: int) -> bool:
            Offset.compared += 1
            return int(self) <= other

        def __lt__(self, other: int) -> bool:
            Offset.compared += 1
            return int(self) < other

    assembly = Assembly()
    for number in reversed(range(500)):
        assembly.add(Offset(2000 + 2 * number), b"yz")
    for number in range(2000):
        assert assembly.add(number, b"x")
    assert bytes(assembly.data) == b"x" * 2000 + b"yz" * 500
    assert Offset.compared < 50_000  # each piece for each byte: 1,000,000


def test_gaps_of_a_stream_are_limited() -> None:
    ranges = streams.ByteRanges()
    with pytest.raises(HarnessFault, match="gaps"):
        for number in range(streams.MOST_GAPS + 1):
            ranges.add(2 * number, 2 * number + 1)


@pytest.fixture
def flooded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that went well, but that one endpoint sent more packets than are read."""
    client, server, key_log = transfer()
    monkeypatch.setattr(trace_size, "LEAST_PACKETS", MOST)
    monkeypatch.setattr(trace_size, "BYTES_PER_PACKET", 10**9)
    for folder in ("sim", "server"):
        (tmp_path / folder).mkdir()
    (tmp_path / "server/keys.log").write_text(key_log)
    for name, packets_ in ((CLIENT_TRACE, client), (SERVER_TRACE, server)):
        (tmp_path / name).write_bytes(pcap([*packets_, *(Packet(5.2, False, b"@") for _ in range(MOST))]))
    return tmp_path


def test_too_many_packets_are_the_fault_of_the_endpoints_and_not_of_the_machine(flooded: Path) -> None:
    verdict, _ = analyse(RUN, EVIDENCE, flooded)
    assert (verdict.outcome, verdict.code) == (Outcome.FAILED, ErrorCode.ARTEFACT_LIMIT)
    assert "more than 100 packets" in verdict.reason


def test_an_endpoint_that_failed_keeps_its_verdict_however_many_packets_it_sent(flooded: Path) -> None:
    verdict, _ = analyse(RUN, replace(EVIDENCE, client=Exit(1)), flooded)
    assert (verdict.outcome, verdict.code) == (Outcome.FAILED, ErrorCode.CLIENT_FAILED)
    assert "more than 100 packets" in verdict.reason


def spin(*_: object, **__: object) -> None:
    while True:
        pass


def eat(*_: object, **__: object) -> None:
    np.zeros(2**28)


@pytest.mark.parametrize(("act", "name"), [(spin, "TooLongError"), (eat, "MemoryError")])
def test_an_analysis_without_end_or_memory_counts_against_the_endpoints(
    act: Callable[..., None], name: str, flooded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not repeated, and an endpoint that failed keeps its verdict."""
    monkeypatch.setattr(module, "CPU_TIME", 0.2)
    monkeypatch.setattr(module, "_outcome", act)
    verdict, _ = analyse(RUN, EVIDENCE, flooded)
    assert (verdict.outcome, verdict.code) == (Outcome.FAILED, ErrorCode.UNREADABLE)
    assert name in verdict.reason
    verdict, _ = analyse(RUN, replace(EVIDENCE, client=Exit(1)), flooded)
    assert verdict.code is ErrorCode.CLIENT_FAILED


def test_optional_evidence_without_end_costs_only_itself(flooded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_size, "LEAST_PACKETS", 10 * MOST)
    monkeypatch.setattr(module, "LEAST_PACKETS", 10 * MOST)
    monkeypatch.setattr(module, "CPU_TIME", 1.0)
    monkeypatch.setattr("quicsat.traces.run_traces.recovery", spin)
    verdict, measurement = analyse(RUN, EVIDENCE, flooded)
    assert verdict.outcome is Outcome.SUCCEEDED
    assert any("TooLongError" in note for note in measurement.notes)
