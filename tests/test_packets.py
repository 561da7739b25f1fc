"""tshark's lines become packets and frames again, whichever of them share a datagram."""

from __future__ import annotations

import pytest

from interop.columns import Form, Trace
from interop.packets import FIELDS, parse

DEFAULTS = {
    "frame.time_epoch": "1750000000.500000000",
    "ip.src": "193.167.100.100",
    "ip.dst": "193.167.0.100",
    "udp.srcport": "443",
    "udp.dstport": "40000",
    "udp.length": "1208",
    "quic.header_form": "0",
    "quic.packet_number": "7",
    "quic.key_phase": "0",
}


def line(**changes: str) -> bytes:
    """A line of tshark; ``quic__scid`` is the field quic.scid."""
    values = DEFAULTS | {name.replace("__", "."): value for name, value in changes.items()}
    assert values.keys() <= set(FIELDS)
    return "\t".join(values.get(name, "") for name in FIELDS).encode() + b"\n"


def one(**changes: str) -> Trace:
    return parse([line(**changes)])[0]


def test_offset_and_length_follow_the_bits_of_each_type() -> None:
    trace = one(
        quic__frame_type="2,10,14,12", quic__stream__stream_id="0,4,8", quic__stream__offset="100,3000",
        quic__stream__length="5,6", quic__stream_data="aaaaaaaaaa,bbbbbbbbbbbb,cccccccccccccc",
    )  # fmt: skip
    assert trace.frames.stream.tolist() == [0, 4, 8]
    assert trace.frames.offset.tolist() == [0, 100, 3000]
    assert trace.frames.length.tolist() == [5, 6, 7]


@pytest.mark.parametrize("data", ["aaaaaaaaaa", "aaaaaaaaaa,", "aaaaaaaaaa,<MISSING>"])
def test_an_empty_frame_without_length_does_not_take_the_data_of_another(data: str) -> None:
    trace = one(
        quic__frame_type="10,13", quic__stream__stream_id="0,4", quic__stream__offset="900",
        quic__stream__length="5", quic__stream_data=data,
    )  # fmt: skip
    assert trace.frames.length.tolist() == [5, 0]
    assert trace.frames.fin.tolist() == [False, True]


def test_frame_types_in_hexadecimal() -> None:
    trace = one(quic__frame_type="0x000000000000000b", quic__stream__stream_id="0", quic__stream__length="9")
    assert (trace.frames.length.tolist(), trace.frames.fin.tolist()) == ([9], [True])


def test_coalesced_packets_have_rows_of_their_own() -> None:
    trace = one(
        quic__header_form="1,1,0", quic__long__packet_type="0,2", quic__version="0x00000001,0x00000001",
        quic__dcil="8,8", quic__scil="0,4", quic__dcid="aa,aa,aa", quic__scid="bb", quic__packet_number="1,2,3",
        quic__frame_type="2,6,10", quic__stream__stream_id="0", quic__stream__length="3",
    )  # fmt: skip
    assert trace.form.tolist() == [Form.INITIAL, Form.HANDSHAKE, Form.ONE_RTT]
    assert trace.number.tolist() == [1, 2, 3]
    assert trace.decrypted.all()
    assert trace.size.tolist() == [1200, 0, 0]
    assert [trace.connection_ids[index] for index in trace.scid] == ["", "bb", ""]
    assert trace.frames.packet.tolist() == [2]


def test_numbers_and_decryption_without_all_keys() -> None:
    coalesced = {
        "quic__header_form": "1,1,0", "quic__long__packet_type": "0,2", "quic__version": "1,1", "quic__dcil": "0,0",
        "quic__scil": "0,0", "quic__frame_type": "2",
    }  # fmt: skip
    trace = one(**coalesced, quic__packet_number="5", quic__key_phase="", quic__decryption_failed="1,1")
    assert trace.number.tolist() == [5, -1, -1]
    assert trace.decrypted.tolist() == [True, False, False]
    trace = one(**coalesced, quic__packet_number="5,6", quic__key_phase="0", quic__decryption_failed="1")
    assert trace.number.tolist() == [5, -1, 6]
    trace = one(**coalesced, quic__packet_number="5,6,7", quic__key_phase="0", quic__decryption_failed="1")
    assert trace.decrypted.tolist() == [True, True, False]


def test_a_packet_whose_payload_could_not_be_decrypted() -> None:
    trace = one(quic__decryption_failed="1", quic__frame_type="")
    assert (trace.number.tolist(), trace.decrypted.tolist()) == ([7], [False])


def test_version_2_numbers_its_packet_types_differently() -> None:
    trace = one(quic__header_form="1", quic__long__packet_type_v2="1", quic__version="0x6b3343cf", quic__frame_type="6")
    assert trace.form.tolist() == [Form.INITIAL]


def test_version_negotiation_and_retry_have_no_number() -> None:
    trace, lines = parse([
        line(quic__header_form="1", quic__version="0x00000000", quic__packet_number="", quic__key_phase=""),
        line(quic__header_form="1", quic__version="1", quic__long__packet_type="3", quic__packet_number=""),
    ])  # fmt: skip
    assert lines == 2
    assert trace.form.tolist() == [Form.VERSION_NEGOTIATION, Form.RETRY]
    assert trace.number.tolist() == [-1, -1]


def test_time_direction_and_path() -> None:
    back = line(
        frame__time_epoch="1750000002.000000001", ip__src="", ip__dst="", ipv6__src="fd00:cafe:cafe::100",
        ipv6__dst="fd00:cafe:cafe:100::100", udp__srcport="40000", udp__dstport="443",
    )  # fmt: skip
    trace, _ = parse([line(), back])
    assert trace.epoch == 1_750_000_000
    assert trace.time.tolist() == [0.5, 2.000000001]
    assert trace.absolute(0) == 1_750_000_000.5
    assert trace.from_server.tolist() == [True, False]
    assert trace.paths == (
        "193.167.0.100:40000 193.167.100.100:443",
        "fd00:cafe:cafe::100:40000 fd00:cafe:cafe:100::100:443",
    )


def test_lines_that_are_no_packet_of_the_run() -> None:
    others = [
        line(quic__header_form=""),
        line(ip__src="193.167.0.2,193.167.100.100", ip__dst="193.167.0.100,193.167.0.100"),
        line(ip__dst="193.167.100.2"),
        line(udp__srcport="", udp__dstport=""),
    ]
    trace, lines = parse([*others, line()])
    assert (len(trace), lines, trace.frame.tolist()) == (1, 5, [5])


def test_a_line_of_another_shape_is_refused_and_an_unfinished_one_is_not_counted() -> None:
    with pytest.raises(ValueError, match="line 1 has 2 fields"):
        parse([b"1\t2\n"])
    assert parse([line(), line()[:40]])[1] == 1


def test_a_malformed_packet_gives_no_frame() -> None:
    assert len(one(quic__frame_type="10,10", quic__stream__stream_id="0", quic__stream__length="3").frames) == 1
