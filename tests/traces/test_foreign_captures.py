"""Captures as other tools write them, derived from one recorded pair, must give the numbers of that pair."""

from __future__ import annotations

import gzip
import lzma
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from quicsat.analysis.foreign_runs import Findings, examine
from quicsat.results.qir_logs import find_runs
from quicsat.traces.foreign_captures import plain_captures
from quicsat.traces.run_traces import CLIENT_TRACE
from quicsat.traces.trace import read
from tests.foreign_builder import LEFT, MICROSECONDS, RIGHT, foreign_run, pieces, qir_output
from tests.quic_builder import ACK, CLIENT, PING, Connection, Packet, block, stream_frame
from tests.quic_builder import pcap as pcap_of

SIZE = 30_000
HANDSHAKE, GOODPUT, LOSS = 0.01182, 15_409_310, 1 / 29
"""Of the recorded pair: seconds, bit/s, and the share of the packets forward."""
SECRETS = 10
"""Type of a Decryption Secrets Block (draft-ietf-opsawg-pcapng, section 4.7)."""
SLL, SLL2 = 113, 276


@dataclass(frozen=True)
class Record:
    time: int
    """Microseconds."""
    data: bytes
    """Frame of Ethernet."""

    @property
    def ip(self) -> bytes:
        return self.data[14:]

    @property
    def from_server(self) -> bool:
        return self.data[26:30] == ip_address("193.167.100.100").packed

    @property
    def payload(self) -> bytes:
        return self.data[42:]

    def carrying(self, payload: bytes) -> Record:
        """The same packet with another payload."""
        ip = self.ip[:2] + struct.pack(">H", 28 + len(payload)) + self.ip[4:20]
        udp = self.ip[20:24] + struct.pack(">HH", 8 + len(payload), 0)
        return replace(self, data=self.data[:14] + ip + udp + payload)

    @property
    def with_ip_options(self) -> Record:
        head = b"\x46" + self.ip[1:2] + struct.pack(">H", len(self.ip) + 4) + self.ip[4:20]
        return replace(self, data=self.data[:14] + head + bytes(4) + self.ip[20:])

    def inside(self, protocol: int, header: bytes = b"") -> Record:
        """The IP packet in another one, behind a header."""
        inner = header + self.ip
        outer = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(inner), 0, 0, 64, protocol, 0) + bytes([10, 0, 0, 1]) * 2
        return replace(self, data=self.data[:14] + outer + inner)


Records = Sequence[Record]


def recorded(place: Path) -> list[Record]:
    return [Record(time, data) for time, _, data in pieces(place.read_bytes())]


def pcap(
    records: Records, link: int = 1, *, order: str = "<", nano: bool = False, snap: int = 262_144, drop: int = 0
) -> bytes:
    data = struct.pack(f"{order}IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 262_144, link)
    for each in records:
        second, rest = divmod(each.time, MICROSECONDS)
        kept = each.data[: min(snap, len(each.data) - drop)]
        data += struct.pack(f"{order}IIII", second, rest * 1000 if nano else rest, len(kept), len(each.data)) + kept
    return data


def pcapng(
    records: Records,
    *,
    links: Sequence[int] = (1,),
    secrets: bytes = b"",
    order: str = "<",
    resolution: int = 6,
    offset: int = 0,
    kind: int = 6,
) -> bytes:
    """Each record at the next interface in turn; resolution, offset (seconds) and kind of block as in the format."""
    ticks = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    options = struct.pack(f"{order}HHB3xHHqHH", 9, 1, resolution, 14, 8, offset, 0, 0)
    section = block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)
    described = b"".join(block(1, struct.pack(f"{order}HHI", link, 0, 0) + options, order) for link in links)
    if secrets:
        padded = secrets + bytes(-len(secrets) % 4)
        section += block(SECRETS, struct.pack(f"{order}II", 0x544C534B, len(secrets)) + padded, order)
    data = section + described
    for number, each in enumerate(records):
        time = (each.time - offset * MICROSECONDS) * ticks // MICROSECONDS
        ends = time >> 32, time & 0xFFFFFFFF, len(each.data), len(each.data)
        head = {
            6: struct.pack(f"{order}IIIII", number % len(links), *ends),
            3: struct.pack(f"{order}I", len(each.data)),
            2: struct.pack(f"{order}HHIIII", number % len(links), 0, *ends),
        }
        data += block(kind, head[kind] + each.data, order)
    return data


def by_tool(program: str, *words: str) -> Callable[[Records], bytes]:
    """What a program writes to OUT of a capture IN."""

    def made(records: Records) -> bytes:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
        with TemporaryDirectory() as name:
            names = {"IN": f"{name}/in", "OUT": f"{name}/out"}
            Path(names["IN"]).write_bytes(pcap(records))
            subprocess.run([program, *(names.get(word, word) for word in words)], check=True, capture_output=True)
            return Path(names["OUT"]).read_bytes()

    return made


def framed(header: Callable[[Record], bytes], link: int) -> Callable[[Records], bytes]:
    return lambda records: pcap([replace(each, data=header(each) + each.ip) for each in records], link)


def tagged(*tags: int) -> Callable[[Record], bytes]:
    inner = b"".join(struct.pack(">HH", tag, 7) for tag in tags)
    return lambda each: each.data[:12] + inner + each.data[12:14]


def cooked(each: Record) -> bytes:
    return struct.pack(">HHH8sH", 0 if each.from_server else 4, 1, 6, bytes(8), 0x0800)


def cooked_2(each: Record) -> bytes:
    return struct.pack(">HHIHBB8s", 0x0800, 0, 2, 1, 0, 6, bytes(8))


def in_port(port: int, client: str, server: str) -> Callable[[Records], bytes]:
    """Between other addresses, with another port of the server's."""

    def moved(each: Record) -> Record:
        ends = [ip_address(client).packed, ip_address(server).packed]
        ports = [*struct.unpack_from(">HH", each.data, 34)]
        ports[not each.from_server] = port
        ends = ends[::-1] if each.from_server else ends
        data = each.data[:26] + b"".join(ends) + struct.pack(">HH", *ports) + each.data[38:]
        return replace(each, data=data)

    return lambda records: pcap([moved(each) for each in records])


def with_checksums(records: Records) -> bytes:
    """With frame check sequences, which the upper bits of the link type announce."""
    data = pcap([replace(each, data=each.data + b"FCS.") for each in records])
    return data[:20] + struct.pack("<I", 0x54000001) + data[24:]


def behind_nat(records: Records) -> bytes:
    """With another address of the client."""
    address = bytes([192, 168, 7, 7])
    places = [(30, each) if each.from_server else (26, each) for each in records]
    return pcap([replace(each, data=each.data[:at] + address + each.data[at + 4 :]) for at, each in places])


def in_ipv6(records: Records) -> bytes:
    """Over IPv6, with an extension header before UDP."""

    def moved(each: Record) -> Record:
        client, server = (ip_address(f"fd00:cafe:cafe:{part}::100").packed for part in (0, 100))
        ends = server + client if each.from_server else client + server
        options = struct.pack(">BBHI", 17, 0, 0x0104, 0)
        head = struct.pack(">IHBB", 6 << 28, len(options) + len(each.ip) - 20, 60, 64)
        return replace(each, data=each.data[:12] + b"\x86\xdd" + head + ends + options + each.ip[20:])

    return pcap([moved(each) for each in records])


def offloaded(records: Records) -> list[Record]:
    """Successive datagrams of one size in one record, with the first smaller one behind them."""
    made = list[Record]()
    open_to_more = 0
    for each in records:
        short = not each.payload[0] & 0x80
        if made and short and open_to_more >= len(each.payload) and made[-1].from_server == each.from_server:
            made[-1] = made[-1].carrying(made[-1].payload + each.payload)
            open_to_more = open_to_more if open_to_more == len(each.payload) else 0
        else:
            made.append(each)
            open_to_more = len(each.payload) if short else 0
    return made


def begun(port: int) -> Callable[[Records], bytes]:
    """A capture that begins in a connection that nothing identifies."""
    return lambda records: in_port(port, "10.0.0.2", "10.0.1.2")(records[13:])


def with_ip(at: int, value: bytes) -> Callable[[Records], bytes]:
    """With other bytes in the header of IP."""

    def changed(each: Record) -> Record:
        return replace(each, data=each.data[: 14 + at] + value + each.data[14 + at + len(value) :])

    return lambda records: pcap([changed(each) for each in records])


def twice(records: Records) -> bytes:
    """As a capture at all interfaces of a bridge has it."""
    return pcap([copy for each in records for copy in (each, replace(each, time=each.time + 3))])


def late(records: Records) -> bytes:
    made = [*records]
    made[10] = replace(made[10], time=made[9].time - 2000)
    return pcap(made)


def reversed_order(records: Records) -> bytes:
    return pcap(records[::-1])


def among_others(records: Records) -> bytes:
    """With other traffic: TCP, a QUIC server elsewhere at port 443, DNS, ARP."""
    first = records[0].carrying(Connection(original=b"elsewhere").client_hello())
    elsewhere = replace(first, data=first.data[:26] + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + first.data[34:])
    tcp = replace(first, data=first.data[:23] + b"\x06" + first.data[24:])
    dns = records[0].carrying(b"query")
    dns = replace(dns, data=dns.data[:34] + struct.pack(">HH", 5353, 53) + dns.data[38:])
    arp = replace(first, data=first.data[:12] + b"\x08\x06" + bytes(28))
    return pcap([elsewhere, tcp, dns, arp, *records, replace(elsewhere, time=records[-1].time)])


PLAIN: dict[str, Callable[[Records], bytes]] = {
    "pcap": pcap,
    "nanoseconds": lambda records: pcap(records, nano=True),
    "big endian": lambda records: pcap(records, order=">"),
    "pcapng big endian": lambda records: pcapng(records, order=">"),
    "three interfaces": lambda records: pcapng(records, links=(1, 1, 1)),
    "two sections": lambda records: pcapng(records[:9]) + pcapng(records[9:]),
    "gzip": lambda records: gzip.compress(pcap(records)),
    "VLAN": framed(tagged(0x8100), 1),
    "802.1ad": framed(tagged(0x88A8, 0x8100), 1),
    "cooked": framed(cooked, SLL),
    "cooked 2": framed(cooked_2, SLL2),
    "raw IP": framed(lambda _: b"", 101),
    "loopback": framed(lambda _: b"\x02\0\0\0", 0),
    "PPPoE": framed(lambda each: each.data[:12] + struct.pack(">HBBHHH", 0x8864, 0x11, 0, 1, 0, 0x21), 1),
    "IPv6 with options": in_ipv6,
    "among others": among_others,
    "loopback big endian": framed(lambda _: b"\0\0\0\x02", 108),
    "IPv4": framed(lambda _: b"", 228),
    "PPP in HDLC": framed(lambda _: b"\xff\x03\0\x21", 50),
    "PPP with address and control": framed(lambda _: b"\xff\x03\0\x21", 9),
    "three tags": framed(tagged(0x9100, 0x88A8, 0x8100), 1),
    "big endian nanoseconds": lambda records: pcap(records, order=">", nano=True),
    "checksums of Ethernet": with_checksums,
    "options of IP": lambda records: pcap([each.with_ip_options for each in records]),
    "client behind a NAT": behind_nat,
    "both ports 443": lambda records: pcap(
        [replace(each, data=each.data[:34] + struct.pack(">HH", 443, 443) + each.data[38:]) for each in records]
    ),
    **{
        f"time resolution {resolution:#x}, offset {offset} s": partial(pcapng, resolution=resolution, offset=offset)
        for resolution, offset in ((6, 1), (9, 0), (9, 2), (12, -5), (0x80 | 20, 0), (0x80 | 30, 1))
    },
    **{
        f"converted to {form}": by_tool("editcap", "-F", form, "IN", "OUT")
        for form in ("snoop", "netmon2", "modpcap", "nsecpcap")
    },
    "converted to Zstandard": by_tool("zstd", "-q", "IN", "-o", "OUT"),
    "converted to LZ4": by_tool("lz4", "-q", "IN", "OUT"),
    "cut off the link layer": by_tool("editcap", "-C", "14", "-L", "-T", "rawip", "IN", "OUT"),
    "cut off the link layer, length kept": by_tool("editcap", "-C", "14", "-T", "rawip", "IN", "OUT"),
    "without a trailer": lambda records: pcap([replace(each, data=each.data + bytes(4)) for each in records], drop=4),
}
REPAIRED: dict[str, tuple[Callable[[Records], bytes], str]] = {
    "late record": (late, "All records were sorted by time: 1 record of"),
    "reversed": (reversed_order, "All records were sorted by time: "),
    "clock of 1990": (
        lambda records: pcap([replace(each, time=each.time + 640_000_000_000_000) for each in records]),
        "clock of",
    ),
    "a record of another clock": (
        lambda records: pcap([*records[:1], replace(records[0], time=10**15), *records[1:]]),
        "impossible time",
    ),
    "port": (in_port(4433, "10.0.0.2", "10.0.1.2"), "has port 4433."),
    "low port of the contract": (in_port(853, "193.167.0.100", "193.167.100.100"), "has port 853."),
    "two copies": (twice, "copies were left out."),
    "offload": (lambda records: pcap(offloaded(records)), "with several datagrams each"),
    "three copies": (
        lambda records: pcap([replace(each, time=each.time + late) for each in records for late in (0, 2, 4)]),
        "copies were left out.",
    ),
    "year 2150": (
        lambda records: pcapng([replace(each, time=each.time + 180 * 365 * 86400 * MICROSECONDS) for each in records]),
        "clock of",
    ),
    "two files in one": (lambda records: pcapng(records[20:]) + pcapng(records[:20]), "All records were sorted"),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return foreign_run(tmp_path / "quic-go_ngtcp2/transfer", output=qir_output(size=SIZE), start=2_500_000)


def rewrite(run: Path, *sides: Path, to: Callable[[Records], bytes]) -> None:
    for side in sides:
        (run / side).write_bytes(to(recorded(run / side)))


def findings(run: Path) -> Findings:
    (one,) = find_runs(run).runs
    return examine(one, None)


def check_numbers(found: Findings) -> None:
    assert found.handshake == pytest.approx(HANDSHAKE, abs=1e-6)
    assert found.goodput == pytest.approx(GOODPUT, rel=1e-4)
    assert found.loss_forward == pytest.approx(LOSS)
    assert found.loss_return == 0


NS3 = "A trace was recorded inside ns-3, behind the queue: what the queue dropped is not in the loss."
NOTES = {
    "among others": [
        f"The {side}'s trace has other traffic of port 443, which was left out." for side in ("client", "server")
    ],
    "PPP with address and control": [NS3],
}


@pytest.mark.parametrize("kind", PLAIN)
def test_formats_and_link_layers(run: Path, kind: str) -> None:
    rewrite(run, LEFT, RIGHT, to=PLAIN[kind])
    found = findings(run)
    check_numbers(found)
    assert list(found.notes) == NOTES.get(kind, [])


@pytest.mark.parametrize("sides", [(LEFT,), (RIGHT,), (LEFT, RIGHT)])
@pytest.mark.parametrize("kind", REPAIRED)
def test_what_is_repaired_is_named(run: Path, kind: str, sides: tuple[Path, ...]) -> None:
    change, note = REPAIRED[kind]
    before = {side: (run / side).read_bytes() for side in sides}
    rewrite(run, *sides, to=change)
    assert all((run / side).read_bytes() != before[side] for side in sides)
    found = findings(run)
    check_numbers(found)
    for side in sides:
        whose = "client" if side == LEFT else "server"
        assert any(note in each and f"the {whose}'s trace" in each.lower() for each in found.notes)


def test_a_connection_id_shows_the_datagrams_of_records_without_a_counterpart(run: Path) -> None:
    rewrite(run, LEFT, RIGHT, to=lambda records: pcap(offloaded(records)))
    (run / RIGHT).unlink()
    found = findings(run)
    assert found.goodput == pytest.approx(GOODPUT, rel=1e-6)
    assert found.outcome == "files complete"
    with plain_captures(run) as captures:
        trace = read(captures.directory / CLIENT_TRACE)
        assert int((trace.size > 0).sum()) == 38


def test_large_records_that_cannot_be_split_have_no_invented_cause(run: Path) -> None:
    """Cut records do not show where the next datagram begins."""
    rewrite(run, LEFT, to=lambda records: pcap(offloaded(records), snap=1000))
    found = findings(run)
    assert (found.loss_forward, found.outcome) == (None, "files complete")
    assert any(each.startswith("Larger than an Ethernet packet, and not split: 4 records") for each in found.notes)
    assert not any("closed the connection" in each or "do not fit" in each for each in found.notes)


@pytest.mark.parametrize("form", [pcap, pcapng])
def test_a_cut_capture_has_its_complete_records(run: Path, form: Callable[[Records], bytes]) -> None:
    rewrite(run, LEFT, RIGHT, to=lambda records: form(records)[:-20])
    found = findings(run)
    check_numbers(found)
    assert [each.partition(" are complete")[0][-2:] for each in found.notes] == ["37", "38"]


@pytest.mark.parametrize(("side", "whose"), [(LEFT, "client"), (RIGHT, "server")])
def test_a_capture_cut_in_the_transfer_blames_no_endpoint(run: Path, side: Path, whose: str) -> None:
    whole = (run / side).read_bytes()
    (run / side).write_bytes(whole[: len(whole) // 2])
    (run / "output.txt").write_text(qir_output(size=SIZE, timeout=60))
    found = findings(run)
    assert found.outcome == "timeout after 60 s"
    assert found.handshake == pytest.approx(HANDSHAKE)
    assert (found.loss_forward, found.loss_return) == (None, None)  # a part of the run is not the run
    assert found.notes[0].startswith(f"The {whose}'s trace is damaged")
    assert found.notes[1].endswith("the loss is not known.")
    assert found.notes[2:] == ("The traces do not show the cause: they are not complete.",)


def test_both_captures_cut_in_the_transfer_show_no_loss(run: Path) -> None:
    rewrite(run, LEFT, RIGHT, to=lambda records: pcap(records)[: len(pcap(records)) // 2])
    found = findings(run)
    assert (found.goodput, found.loss_forward, found.loss_return) == (None, None, None)
    assert any(note.endswith("the loss is not known.") for note in found.notes)


def test_a_changed_packet_is_the_reason_for_a_missing_goodput(run: Path) -> None:
    """The runner says that the client has all files."""
    whole = bytearray((run / LEFT).read_bytes())
    whole[len(whole) // 2] ^= 255
    (run / LEFT).write_bytes(whole)
    found = findings(run)
    assert (found.outcome, found.goodput) == ("files complete", None)
    assert any("1 packet of the server cannot be decrypted" in note for note in found.notes)
    assert not any("closed the connection" in note for note in found.notes)


@pytest.mark.parametrize(("content", "named"), [
    (lzma.compress(bytes(99))[:-9], "compressed with xz"), (b"\x28\xb5\x2f\xfd" + bytes(99), "compressed with zstd"),
    (b"+---------+---------------+----------+\n", "a text file of K12"),
])  # fmt: skip
def test_another_format_is_named(run: Path, content: bytes, named: str) -> None:
    (run / LEFT).write_bytes(content)
    assert any(f"trace_node_left.pcap is {named}" in note for note in findings(run).notes)


def test_secrets_in_the_capture_and_no_folder_of_an_endpoint(run: Path) -> None:
    keys = (run / "client/keys.log").read_bytes()
    rewrite(run, LEFT, RIGHT, to=lambda records: pcapng(records, secrets=keys))
    for folder in ("client", "server"):
        (run / folder / "keys.log").unlink()
        (run / folder).rmdir()
    found = findings(run)
    check_numbers(found)
    assert found.notes == ()


def test_the_layout_of_qir_se(run: Path) -> None:
    """Its post-processing leaves other names, and repetitions may have the key logs of several processes."""
    keys = (run / "client/keys.log").read_bytes()
    for side in (LEFT, RIGHT):
        rewrite(run, side, to=lambda records: pcapng(records, secrets=keys))
        (run / side).rename(run / "sim" / f"{side.stem}_with_secrets.pcapng")
    for folder in ("client", "server"):
        (run / folder / "keys.log").unlink()
    check_numbers(findings(run))
    assert not any("trace_node" in each for each in find_runs(run).runs[0].missing)


def test_a_key_log_deeper_in_a_folder(run: Path) -> None:
    (run / "client/keys.log").unlink()
    (run / "server/first").mkdir()
    (run / "server/keys.log").rename(run / "server/first/keys.log")
    check_numbers(findings(run))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (framed(lambda _: bytes(30), 127), "It holds 38 records: 38 of link type 127."),
        (begun(4433), "no packet from or to port 443. It holds 25 records: 25 of UDP port 4433."),
        (begun(4789), "It holds 25 records: 25 of VXLAN."),
        (with_ip(9, b"\x2f"), "38 of GRE"),
        (with_ip(6, b"\x20\0"), "38 of IP fragments"),
        (lambda records: pcap(records, snap=38), "38 of headers that are cut"),
    ],
)
def test_what_is_not_understood_is_named(run: Path, change: Callable[[Records], bytes], named: str) -> None:
    rewrite(run, LEFT, RIGHT, to=change)
    found = findings(run)
    assert (found.handshake, found.goodput, found.loss_forward) == (None, None, None)
    assert any(named in each for each in found.notes if each.startswith("The client's trace"))
    assert not any("0 handshakes" in each or "do not fit" in each for each in found.notes)


def test_a_capture_that_begins_after_the_handshake(run: Path) -> None:
    rewrite(run, LEFT, RIGHT, to=lambda records: pcap(records[5:]))
    found = findings(run)
    assert found.goodput is None
    assert found.notes == (
        "The client's trace begins after the handshake: it has no Initial packet, so nothing can be decrypted.",
    )


def test_a_capture_that_begins_during_the_handshake(run: Path) -> None:
    """The only Initial that is left is a later one, which the keys of the first one's connection ID would open."""
    rewrite(run, LEFT, to=lambda records: pcap(records[2:]))
    found = findings(run)
    assert (found.handshake, found.goodput, found.loss_forward, found.loss_return) == (None, None, None, None)
    assert found.notes == (
        "The client's trace does not have the client's first Initial packet, so nothing can be decrypted.",
        "10 % of the packets of the client that arrived are missing in the client's trace, so the loss is not known.",
    )


def test_packets_that_the_capture_of_a_sender_lacks_are_no_loss(run: Path) -> None:
    """Neither of its own packets nor of those that it received."""
    gaps = (4, 11, 19)
    rewrite(run, LEFT, to=lambda records: pcap([each for row, each in enumerate(records) if row not in gaps]))
    found = findings(run)
    assert found.handshake == pytest.approx(HANDSHAKE, abs=1e-6)
    assert (found.goodput, found.loss_forward, found.loss_return) == (None, None, None)
    assert found.notes == (
        "The client's trace does not show the whole response, so there is no goodput.",
        "10 % of the packets of the client that arrived are missing in the client's trace, so the loss is not known.",
    )


def test_a_capture_at_the_server_that_begins_late_shows_no_loss(run: Path) -> None:
    rewrite(run, RIGHT, to=lambda records: pcap(records[5:]))
    found = findings(run)
    assert found.goodput == pytest.approx(GOODPUT, rel=1e-4)
    assert (found.loss_forward, found.loss_return) == (None, None)
    assert found.notes == (
        "7 % of the packets of the server that arrived are missing in the server's trace, so the loss is not known.",
    )


def test_a_capture_at_the_server_that_begins_late_has_no_invented_cause(run: Path) -> None:
    (run / "output.txt").write_text(qir_output(size=SIZE, timeout=60))
    rewrite(run, LEFT, to=lambda records: pcap(records[:20]))
    rewrite(run, RIGHT, to=lambda records: pcap(records[7:20]))
    assert findings(run).notes[1:] == ("The traces do not show the cause: they are not complete.",)


def test_packets_that_the_capture_of_their_receiver_lacks_are_no_loss(run: Path) -> None:
    """The runner says that all files arrived, but the trace has no whole response."""
    rewrite(
        run,
        LEFT,
        to=lambda records: pcap([each for row, each in enumerate(records) if row % 6 != 5 or len(each.data) < 500]),
    )
    found = findings(run)
    assert (found.goodput, found.loss_forward, found.loss_return) == (None, None, 0)
    assert found.notes[1] == (
        "Packets that the client received are missing in its trace, so the forward loss is not known."
    )


def test_a_capture_at_the_server_without_the_client_is_named(run: Path) -> None:
    rewrite(run, RIGHT, to=lambda records: pcap([each for each in records if each.data[34:36] == b"\x01\xbb"]))
    found = findings(run)
    assert found.loss_forward == pytest.approx(LOSS)
    assert found.loss_return is None
    assert found.notes == ("The server's trace has no packet of the client, so their loss is not known.",)


def test_packets_of_a_version_without_known_keys(run: Path) -> None:
    def draft(each: Record) -> Record:
        long = each.payload[0] & 0x80
        return each.carrying(each.payload[:1] + b"\xff\0\0\x1d" + each.payload[5:]) if long else each

    rewrite(run, LEFT, RIGHT, to=lambda records: pcap([draft(each) for each in records]))
    assert "The packets have QUIC version 0xff00001d, which is not decrypted." in findings(run).notes


@pytest.mark.parametrize("snap", [60, 128, 200, 1100])
def test_cut_records_are_the_reason_where_nothing_can_be_decrypted(run: Path, snap: int) -> None:
    rewrite(run, LEFT, RIGHT, to=lambda records: pcap(records, snap=snap))
    found = findings(run)
    assert (found.handshake, found.goodput) == (None, None)  # what stands behind the first packet of a datagram is gone
    assert any("cut (snap length)" in each for each in found.notes)
    assert not any("do not fit" in each or "begins after" in each for each in found.notes)


def test_nothing_of_the_run_changes_and_no_copy_stays(run: Path) -> None:
    rewrite(run, LEFT, RIGHT, to=late)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with plain_captures(run) as captures:
        assert captures.directory != run
        assert captures.directory.is_dir()
    assert not captures.directory.exists()
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


# ---- what is not of the run -----------------------------------------------------------------


EARLY = 1_000_000
"""Microseconds before the run."""


def elsewhere(records: Records) -> Record:
    """The first packet of the run, from another port of the client's."""
    return replace(records[0], data=records[0].data[:34] + struct.pack(">H", 40_001) + records[0].data[36:])


def other_connection(records: Records, *, answered: bool = True) -> list[Record]:
    """A handshake that the key log does not name, from another port of the client's."""
    other = Connection(original=b"elsewhere", random=b"x" * 32)
    there = elsewhere(records)
    back = next(each for each in records if each.from_server)
    back = replace(back, data=back.data[:36] + struct.pack(">H", 40_001) + back.data[38:])
    packets = [there.carrying(other.client_hello()), there.carrying(other.one_rtt(0, PING, from_server=False))]
    return [*packets, *([back.carrying(other.server_hello())] if answered else [])]


def before(*packets: Record, by: int = EARLY) -> list[Record]:
    return [replace(each, time=packets[0].time - by + number) for number, each in enumerate(packets)]


STRAY = Connection(server_id=b"stranger").one_rtt(9, PING, from_server=False)
STRANGERS: dict[str, Callable[[Records], list[Record]]] = {
    "a short header before": lambda records: [*before(records[0].carrying(STRAY)), *records],
    "a short header of another port before": lambda records: [*before(elsewhere(records).carrying(STRAY)), *records],
    "a short header in the handshake": lambda records: [records[0], records[0].carrying(STRAY), *records[1:]],
    "an Initial before": lambda records: [
        *before(records[0].carrying(Connection(original=b"elsewhere").client_hello())), *records,
    ],
    "a Handshake packet before": lambda records: [
        *before(records[0].carrying(Connection(server_id=b"stranger").handshake(0, PING, from_server=False))), *records,
    ],
    "another connection before": lambda records: [*before(*other_connection(records)), *records],
    "another connection behind": lambda records: [
        *records, *(replace(each, time=records[-1].time) for each in other_connection(records)),
    ],
    "another connection within": lambda records: [
        *records[:6], *(replace(each, time=records[6].time) for each in other_connection(records)), *records[6:],
    ],
}  # fmt: skip


@pytest.mark.parametrize("sides", [(LEFT,), (RIGHT,), (LEFT, RIGHT)])
@pytest.mark.parametrize("kind", STRANGERS)
def test_packets_of_other_connections_do_not_count(run: Path, kind: str, sides: tuple[Path, ...]) -> None:
    """Neither for handshake and goodput, nor for the loss."""
    rewrite(run, *sides, to=lambda records: pcap(STRANGERS[kind](records)))
    found = findings(run)
    check_numbers(found)
    assert len([each for each in found.notes if " of no connection that key logs name" in each]) == len(sides)


def test_without_keys_the_connection_that_is_answered_counts(run: Path) -> None:
    for folder in ("client", "server"):
        (run / folder / "keys.log").unlink()
    rewrite(run, LEFT, to=lambda records: pcap([*before(*other_connection(records, answered=False)), *records]))
    assert findings(run).handshake == pytest.approx(HANDSHAKE)


# ---- damage ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damage", "complete", "words"),
    [
        (lambda data: data[: len(data) * 2 // 3], None, "cut short"),
        (lambda data: data[:-6], 38, "cut short"),
        (lambda data: data[:-6] + bytes([data[-6] ^ 255]) + data[-5:], 38, "damaged or corrupt"),
    ],
)
def test_damage_of_a_compressed_capture_is_named(
    run: Path, damage: Callable[[bytes], bytes], complete: int | None, words: str
) -> None:
    compressed = damage(gzip.compress((run / LEFT).read_bytes()))
    (run / LEFT).unlink()
    (run / LEFT).with_suffix(".pcap.gz").write_bytes(compressed)
    found = findings(run)
    assert "The client's trace is damaged: trace_node_left.pcap.gz" in found.notes[0]
    assert words in found.notes[0]
    if complete is not None:
        check_numbers(found)
        assert f"{complete} are complete" in found.notes[0]
    else:
        assert found.handshake == pytest.approx(HANDSHAKE)
        assert found.goodput is None


@pytest.mark.parametrize("form", [pcap, lambda records: pcap(records, nano=True), pcapng])
@pytest.mark.parametrize("tail", [bytes(4096), b"\xff" * 4096, b"garbage"])
def test_what_follows_the_last_record_costs_no_record(run: Path, form: Callable[[Records], bytes], tail: bytes) -> None:
    rewrite(run, LEFT, RIGHT, to=lambda records: form(records) + tail)
    found = findings(run)
    check_numbers(found)
    assert [each.partition(" are complete")[0][-2:] for each in found.notes] == ["38", "39"]


# ---- the wrong files ------------------------------------------------------------------------


def test_exchanged_traces_are_put_in_their_places(run: Path) -> None:
    left, right = (run / LEFT).read_bytes(), (run / RIGHT).read_bytes()
    (run / LEFT).write_bytes(right)
    (run / RIGHT).write_bytes(left)
    found = findings(run)
    check_numbers(found)
    assert found.notes == (
        "The left trace is that of the server, the right one that of the client: they were exchanged.",
    )


@pytest.mark.parametrize("form", [pcap, lambda records: pcap(records, nano=True)[:-20], pcapng])
def test_one_capture_for_both_ends_shows_no_loss(run: Path, form: Callable[[Records], bytes]) -> None:
    (run / RIGHT).write_bytes(form(recorded(run / LEFT)))
    found = findings(run)
    assert found.goodput == pytest.approx(GOODPUT, rel=1e-6)
    assert (found.loss_forward, found.loss_return) == (None, None)
    assert found.notes[0].startswith("Both traces are the same capture")
    assert len(found.notes) == 1


def test_a_capture_of_both_ends_together_shows_what_came_to_the_client(run: Path) -> None:
    both = sorted([*recorded(run / LEFT), *recorded(run / RIGHT)], key=lambda each: each.time)
    (run / LEFT).write_bytes(pcap(both))
    found = findings(run)
    assert found.handshake == pytest.approx(HANDSHAKE)
    assert found.goodput == pytest.approx(GOODPUT, rel=1e-6)
    assert found.loss_forward is None
    assert any("the loss is not known" in each for each in found.notes)


# ---- times ----------------------------------------------------------------------------------


def timed(time: Callable[[int, Record], int]) -> Callable[[Records], bytes]:
    return lambda records: pcap([replace(each, time=time(number, each)) for number, each in enumerate(records)])


TIMELESS: dict[str, tuple[Callable[[Records], bytes], str]] = {
    "zero": (timed(lambda number, each: 0), "have the same time"),
    "one time": (timed(lambda number, each: 1_600_000_000_000_000), "have the same time"),
    "numbered": (timed(lambda number, each: 1_600_000_000_000_000 + number), "is 1e-06 s after the last one"),
    "numbered from zero": (timed(lambda number, each: number), "is 1e-06 s after the last one"),
    "without times": (partial(pcapng, kind=3), "have the same time"),
    "of text2pcap": (timed(lambda number, each: number * 1000), "is 0.001 s after the last one"),
    "a clock that was set back": (
        timed(lambda number, each: each.time + (7200 - 3600 * (number > 20)) * MICROSECONDS),
        "was set back",
    ),
    "too coarse": (timed(lambda number, each: each.time // 20_000 * 20_000), "are multiples of 0.02 s"),
    "whole seconds": (
        timed(lambda number, each: each.time // MICROSECONDS * MICROSECONDS + (number > 20) * MICROSECONDS),
        "are multiples of 1 s",
    ),
}


@pytest.mark.parametrize("kind", TIMELESS)
def test_times_that_say_nothing_give_no_times(run: Path, kind: str) -> None:
    change, reason = TIMELESS[kind]
    rewrite(run, LEFT, RIGHT, to=change)
    found = findings(run)
    assert (found.handshake, found.goodput) == (None, None)
    assert found.outcome == "files complete"
    assert any(reason in each and each.endswith("its times cannot be used.") for each in found.notes)
    assert not any("exchanged" in each for each in found.notes)


@pytest.mark.parametrize("kind", TIMELESS)
@pytest.mark.parametrize(("side", "whose"), [(LEFT, "client"), (RIGHT, "server")])
def test_times_of_one_trace_that_say_nothing_do_not_spoil_the_other(
    run: Path, kind: str, side: Path, whose: str
) -> None:
    rewrite(run, side, to=TIMELESS[kind][0])
    found = findings(run)
    assert found.goodput == (None if whose == "client" else pytest.approx(GOODPUT, rel=1e-6))
    assert not any("exchanged" in each or "same capture" in each for each in found.notes)
    assert found.loss_forward in (None, pytest.approx(LOSS))
    assert any(f"the {whose}'s trace" in each.lower() for each in found.notes)


def test_a_gap_of_an_hour_is_named(run: Path) -> None:
    rewrite(run, LEFT, to=timed(lambda number, each: each.time + 3600 * MICROSECONDS * (number > 20)))
    assert "The client's trace has no packet for 3600 s, or its clock was set then." in findings(run).notes


def test_a_coarse_clock_is_named(run: Path) -> None:
    rewrite(run, LEFT, to=timed(lambda _, each: each.time // 1000 * 1000))
    assert "The times in the client's trace are multiples of 0.001 s." in findings(run).notes


# ---- records that are not read --------------------------------------------------------------


@pytest.mark.parametrize("link", [127, 195])
@pytest.mark.parametrize("side", [LEFT, RIGHT])
def test_a_capture_of_which_half_is_not_read_has_no_invented_cause(run: Path, side: Path, link: int) -> None:
    rewrite(run, side, to=lambda records: pcapng(records, links=(1, link)))
    for output in (qir_output(size=SIZE), qir_output(size=SIZE, timeout=60)):
        (run / "output.txt").write_text(output)
        found = findings(run)
        assert (found.loss_forward, found.loss_return) == (None, None)
        assert any("are not read, so packets may be missing: 19 of link type" in each for each in found.notes)
        assert not any("never sent so" in each or "closed" in each or "bytes arrived" in each for each in found.notes)
    assert "The traces do not show the cause: they are not complete." in found.notes


HIDING: dict[str, Callable[[Record], Record]] = {
    "IP in IP": lambda each: each.inside(4),
    "GRE": lambda each: each.inside(47, struct.pack(">HH", 0, 0x0800)),
    "MPLS": lambda each: replace(each, data=each.data[:12] + b"\x88\x47" + struct.pack(">I", 0x64140) + each.ip),
    "VXLAN": lambda each: each.inside(17, struct.pack(">HHHH", 9, 4789, 36 + len(each.ip), 0) + bytes(28)),
    "IP fragments": lambda each: replace(each, data=each.data[:20] + b"\x20\0" + each.data[22:]),
}


@pytest.mark.parametrize("kind", HIDING)
@pytest.mark.parametrize("share", [1, 2])
def test_packets_inside_of_others_are_named(run: Path, kind: str, share: int) -> None:
    """If all or half of the packets are."""
    hide = HIDING[kind]

    def hidden(records: Records) -> bytes:
        return pcap([each if number % share else hide(each) for number, each in enumerate(records)])

    rewrite(run, LEFT, RIGHT, to=hidden)
    (run / "output.txt").write_text(qir_output(size=SIZE, timeout=60))
    found = findings(run)
    assert (found.goodput, found.loss_forward, found.loss_return) == (None, None, None)
    assert any(f"{38 // share} of {kind}" in each for each in found.notes)
    assert not any(
        word in each for each in found.notes for word in ("0 handshakes", "do not fit", "no connection", "closed")
    )


def test_a_capture_in_several_files_is_not_read_as_a_whole(run: Path) -> None:
    records = recorded(run / LEFT)
    for name, part in (("trace_node_left_00001", records[:20]), ("trace_node_left_00002", records[20:])):
        (run / "sim" / f"{name}.pcap").write_bytes(pcap(part))
    (run / LEFT).unlink()
    (run / "output.txt").write_text(qir_output(size=SIZE, timeout=60))
    found = findings(run)
    assert (found.goodput, found.loss_forward) == (None, None)
    assert "consists of 2 files, of which only trace_node_left_00001.pcap is read" in found.notes[0]
    assert "The traces do not show the cause: they are not complete." in found.notes
    files = [run / "sim" / f"trace_node_left_0000{number}.pcap" for number in (1, 2)]
    subprocess.run(["mergecap", "-w", run / LEFT, *files], check=True)
    for file in files:
        file.unlink()
    (run / "output.txt").write_text(qir_output(size=SIZE))
    check_numbers(findings(run))


@pytest.mark.parametrize(("server", "words"), [(True, "no packet of the client"), (False, "no packet of the server")])
def test_a_capture_of_one_direction_is_named(run: Path, server: bool, words: str) -> None:
    rewrite(run, LEFT, RIGHT, to=lambda records: pcap([each for each in records if each.from_server is server]))
    found = findings(run)
    assert found.goodput is None
    assert any(words in each for each in found.notes)
    assert not any(word in each for each in found.notes for word in ("do not fit", "no connection", "0 handshakes"))
    assert (found.loss_forward if server else found.loss_return) == pytest.approx(LOSS if server else 0)


# ---- courses of connections -----------------------------------------------------------------

OWN = Connection()
VERSIONS = bytes([0x80]) + bytes(4) + b"\x08client-1\x08firsttry" + struct.pack(">I", 1)
"""Version Negotiation of the server."""


def course(connection: Connection = OWN, start: float = 1.0, port: int = 40_000) -> list[Packet]:
    """A handshake of 100 ms, and 9000 bytes in 10 packets that take 9 ms; at the client."""
    request = stream_frame(0, b"GET /x\r\n", fin=True)
    sent: list[tuple[float, bool, bytes]] = [
        (0.0, False, connection.client_hello()),
        (0.051, True, connection.server_hello()),
        (0.0512, True, connection.handshake(0, PING, from_server=True)),
        (0.1, False, connection.handshake(0, ACK, from_server=False)),
        (0.1, False, connection.one_rtt(0, request, from_server=False)),
    ]
    for number in range(10):
        data = stream_frame(0, bytes(900), 900 * number, fin=number == 9)
        sent.append((0.15 + number / 1000, True, connection.one_rtt(1 + number, data, from_server=True)))
    return [Packet(start + time, server, payload, (CLIENT[0], port)) for time, server, payload in sent]


ANOTHER = Connection(original=b"another!", client_id=b"client-2", server_id=b"server-2", random=b"q" * 32)
COURSES: dict[str, tuple[list[Packet], str, float, bool]] = {
    "one connection": (course(), OWN.key_log, 0.1, True),
    "Version Negotiation": (
        [
            Packet(0.9, False, Connection(original=b"firsttry", version=0x1A2A3A4A).client_hello()),
            Packet(0.95, True, VERSIONS),
            *course(),
        ],
        OWN.key_log, 0.2, True,
    ),
    "another ClientHello after Version Negotiation": (
        [
            Packet(0.9, False, Connection(original=b"firsttry", random=b"z" * 32).client_hello()),
            Packet(0.95, True, VERSIONS),
            *course(),
        ],
        OWN.key_log, 0.2, True,
    ),
    "two connections": ([*course(), *course(ANOTHER, 2.0, 40_001)], OWN.key_log + ANOTHER.key_log, 0.1, False),
    "two of which one is logged": ([*course(), *course(ANOTHER, 2.0, 40_001)], OWN.key_log, 0.1, True),
    "the earlier one is not logged": ([*course(ANOTHER, 0.5, 40_001), *course()], OWN.key_log, 0.1, True),
    "another address in the transfer": (
        [*course()[:9], *(replace(each, client=("10.9.9.9", 777)) for each in course()[9:])], OWN.key_log, 0.1, True,
    ),
    "no id of the client": (course(Connection(client_id=b"")), OWN.key_log, 0.1, True),
}  # fmt: skip


@pytest.mark.parametrize("kind", COURSES)
def test_courses_of_connections(tmp_path: Path, kind: str) -> None:
    packets, keys, handshake, single = COURSES[kind]
    run = tmp_path / "a_b/transfer"
    (run / "client").mkdir(parents=True)
    (run / "sim").mkdir()
    (run / "client/keys.log").write_text(keys)
    (run / LEFT).write_bytes(pcap_of(packets))
    delayed = [replace(each, time=each.time + (-0.005 if each.from_server else 0.005)) for each in packets]
    (run / RIGHT).write_bytes(pcap_of(delayed))
    found = findings(run)
    assert found.handshake == pytest.approx(handshake)
    assert (found.loss_forward, found.loss_return) == (0, 0)
    assert found.goodput == (pytest.approx(8 * 9000 / 0.009) if single else None)
    assert any("2 handshakes" in each for each in found.notes) is not single
