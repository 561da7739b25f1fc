"""Captures as other tools write them, derived from one recorded pair, must give the numbers of that pair."""

from __future__ import annotations

import gzip
import lzma
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterable, Sequence
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
from tests.traces.test_pcap import patched

SIZE = 30_000
NUMBERS = {"H": 0.01182, "G": 15_409_310, "L": 1 / 29, "R": 0}
"""Handshake (s), goodput (bit/s) and losses of the recorded pair, forward and return."""
SECRETS = 10
"""Type of a Decryption Secrets Block (draft-ietf-opsawg-pcapng, section 4.7)."""
SLL, SLL2 = 113, 276
SIDES = {LEFT: "client", RIGHT: "server"}


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

    def patched(self, at: int, value: bytes) -> Record:
        """The same packet with other bytes at a place of its frame."""
        return replace(self, data=patched(at, value, self.data))

    def inside(self, protocol: int, header: bytes = b"") -> Record:
        """The IP packet in another one, behind a header."""
        inner = header + self.ip
        outer = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(inner), 0, 0, 64, protocol, 0) + bytes([10, 0, 0, 1]) * 2
        return replace(self, data=self.data[:14] + outer + inner)


Records = Sequence[Record]
Change = Callable[[Records], bytes]
"""A capture file with these records."""
Setup = Callable[[Path], None]
"""Changes the files of a run."""


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
    data = block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)
    if secrets:
        data += block(SECRETS, struct.pack(f"{order}II", 0x544C534B, len(secrets)) + secrets, order)
    data += b"".join(block(1, struct.pack(f"{order}HHI", link, 0, 0) + options, order) for link in links)
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


def by_tool(program: str, *words: str) -> Change:
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


def mapped(change: Callable[[Record], Record], link: int = 1) -> Change:
    return lambda records: pcap([change(each) for each in records], link)


def framed(header: Callable[[Record], bytes], link: int = 1) -> Change:
    return mapped(lambda each: replace(each, data=header(each) + each.ip), link)


def timed(time: Callable[[int, Record], int]) -> Change:
    return lambda records: pcap([replace(each, time=time(number, each)) for number, each in enumerate(records)])


def without(lacks: Callable[[int, Record], bool]) -> Change:
    return lambda records: pcap([each for number, each in enumerate(records) if not lacks(number, each)])


def tagged(*tags: int) -> Callable[[Record], bytes]:
    inner = b"".join(struct.pack(">HH", tag, 7) for tag in tags)
    return lambda each: each.data[:12] + inner + each.data[12:14]


def cooked(each: Record) -> bytes:
    return struct.pack(">HHH8sH", 0 if each.from_server else 4, 1, 6, bytes(8), 0x0800)


def with_ip_options(each: Record) -> bytes:
    return each.data[:14] + b"\x46" + each.ip[1:2] + struct.pack(">H", len(each.ip) + 4) + each.ip[4:20] + bytes(4)


def in_port(port: int, client: str = "10.0.0.2", server: str = "10.0.1.2") -> Change:
    """Between other addresses, with another port of the server's."""

    def moved(each: Record) -> Record:
        ends = [ip_address(client).packed, ip_address(server).packed]
        ports = [*struct.unpack_from(">HH", each.data, 34)]
        ports[not each.from_server] = port
        ends = ends[::-1] if each.from_server else ends
        return each.patched(26, b"".join(ends) + struct.pack(">HH", *ports))

    return mapped(moved)


def with_checksums(records: Records) -> bytes:
    """With frame check sequences, which the upper bits of the link type announce."""
    data = pcap([replace(each, data=each.data + b"FCS.") for each in records])
    return patched(20, struct.pack("<I", 0x54000001), data)


def in_ipv6(each: Record) -> Record:
    """Over IPv6, with an extension header before UDP."""
    client, server = (ip_address(f"fd00:cafe:cafe:{part}::100").packed for part in (0, 100))
    ends = server + client if each.from_server else client + server
    options = struct.pack(">BBHI", 17, 0, 0x0104, 0)
    head = struct.pack(">IHBB", 6 << 28, len(options) + len(each.ip) - 20, 60, 64)
    return replace(each, data=each.data[:12] + b"\x86\xdd" + head + ends + options + each.ip[20:])


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


def copied(*late: int) -> Change:
    """As a capture at all interfaces of a bridge has it: each packet so many microseconds later, too."""
    return lambda records: pcap([replace(each, time=each.time + by) for each in records for by in (0, *late)])


def late(records: Records) -> bytes:
    return pcap([*records[:10], replace(records[10], time=records[9].time - 2000), *records[11:]])


def draft(each: Record) -> Record:
    """With a version without known keys."""
    return each.patched(43, b"\xff\0\0\x1d") if each.payload[0] & 0x80 else each


def among_others(records: Records) -> bytes:
    """With other traffic: TCP, a QUIC server elsewhere at port 443, DNS, ARP."""
    first = records[0].carrying(Connection(original=b"elsewhere").client_hello())
    elsewhere = first.patched(26, bytes([10, 0, 0, 1, 10, 0, 0, 2]))
    dns = records[0].carrying(b"query").patched(34, struct.pack(">HH", 5353, 53))
    arp = replace(first, data=first.data[:12] + b"\x08\x06" + bytes(28))
    return pcap([elsewhere, first.patched(23, b"\x06"), dns, arp, *records, replace(elsewhere, time=records[-1].time)])


PLAIN: dict[str, Change] = {
    "pcap": pcap,
    "nanoseconds": partial(pcap, nano=True),
    "big endian": partial(pcap, order=">"),
    "big endian nanoseconds": partial(pcap, order=">", nano=True),
    "pcapng big endian": partial(pcapng, order=">"),
    "three interfaces": partial(pcapng, links=(1, 1, 1)),
    "two sections": lambda records: pcapng(records[:9]) + pcapng(records[9:]),
    "gzip": lambda records: gzip.compress(pcap(records)),
    "VLAN": framed(tagged(0x8100)),
    "802.1ad": framed(tagged(0x88A8, 0x8100)),
    "three tags": framed(tagged(0x9100, 0x88A8, 0x8100)),
    "cooked": framed(cooked, SLL),
    "cooked 2": framed(lambda _: struct.pack(">HHIHBB8s", 0x0800, 0, 2, 1, 0, 6, bytes(8)), SLL2),
    "raw IP": framed(lambda _: b"", 101),
    "IPv4": framed(lambda _: b"", 228),
    "loopback": framed(lambda _: b"\x02\0\0\0", 0),
    "loopback big endian": framed(lambda _: b"\0\0\0\x02", 108),
    "PPPoE": framed(lambda each: each.data[:12] + struct.pack(">HBBHHH", 0x8864, 0x11, 0, 1, 0, 0x21)),
    "PPP in HDLC": framed(lambda _: b"\xff\x03\0\x21", 50),
    "PPP with address and control": framed(lambda _: b"\xff\x03\0\x21", 9),
    "IPv6 with options": mapped(in_ipv6),
    "options of IP": mapped(lambda each: replace(each, data=with_ip_options(each) + each.ip[20:])),
    "among others": among_others,
    "checksums of Ethernet": with_checksums,
    "without a trailer": lambda records: pcap([replace(each, data=each.data + bytes(4)) for each in records], drop=4),
    "client behind a NAT": mapped(lambda each: each.patched(30 if each.from_server else 26, bytes([192, 168, 7, 7]))),
    "both ports 443": mapped(lambda each: each.patched(34, struct.pack(">HH", 443, 443))),
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
}
NOTES = {
    "among others": [
        f"The {side}'s trace has other traffic of port 443, which was left out." for side in SIDES.values()
    ],
    "PPP with address and control": ["A trace was recorded inside ns-3, behind the queue: what the queue dropped"],
}

# ---- packets of other connections -----------------------------------------------------------


def elsewhere(records: Records) -> Record:
    """The first packet of the run, from another port of the client's."""
    return records[0].patched(34, struct.pack(">H", 40_001))


def other_connection(records: Records) -> list[Record]:
    """A handshake that the key log does not name, from another port of the client's; its answer is the last packet."""
    other = Connection(original=b"elsewhere", random=b"x" * 32)
    there, back = elsewhere(records), next(each for each in records if each.from_server)
    back = back.patched(36, struct.pack(">H", 40_001)).carrying(other.server_hello())
    return [there.carrying(other.client_hello()), there.carrying(other.one_rtt(0, PING, from_server=False)), back]


def before(packets: Records, records: Records) -> bytes:
    """A second before the run."""
    early = [replace(each, time=packets[0].time - MICROSECONDS + n) for n, each in enumerate(packets)]
    return pcap([*early, *records])


def others_at(place: int, records: Records) -> bytes:
    others = [replace(each, time=records[place].time) for each in other_connection(records)]
    return pcap([*records[:place], *others, *records[place:]])


STRAY = Connection(server_id=b"stranger")
STRAY_PING = STRAY.one_rtt(9, PING, from_server=False)
STRANGERS: dict[str, Change] = {
    "a short header before": lambda records: before([records[0].carrying(STRAY_PING)], records),
    "a short header of another port before": lambda records: before([elsewhere(records).carrying(STRAY_PING)], records),
    "a short header in the handshake": lambda records: pcap([
        records[0], records[0].carrying(STRAY_PING), *records[1:],
    ]),
    "an Initial before": lambda records: before(
        [records[0].carrying(Connection(original=b"elsewhere").client_hello())], records
    ),
    "a Handshake packet before": lambda records: before(
        [records[0].carrying(STRAY.handshake(0, PING, from_server=False))], records
    ),
    "another connection before": lambda records: before(other_connection(records), records),
    "another connection behind": partial(others_at, -1),
    "another connection within": partial(others_at, 6),
}  # fmt: skip
REPAIRED: dict[str, tuple[Change, str]] = {
    "late record": (late, "All records were sorted by time: 1 record of"),
    "reversed": (lambda records: pcap(records[::-1]), "All records were sorted by time: "),
    "clock of 1990": (timed(lambda _, each: each.time + 640_000_000_000_000), "clock of"),
    "a record of another clock": (
        lambda records: pcap([*records[:1], replace(records[0], time=10**15), *records[1:]]),
        "impossible time",
    ),
    "port": (in_port(4433), "has port 4433."),
    "low port of the contract": (in_port(853, "193.167.0.100", "193.167.100.100"), "has port 853."),
    "two copies": (copied(3), "copies were left out."),
    "three copies": (copied(2, 4), "copies were left out."),
    "offload": (lambda records: pcap(offloaded(records)), "with several datagrams each"),
    "year 2150": (
        lambda records: pcapng([replace(each, time=each.time + 180 * 365 * 86400 * MICROSECONDS) for each in records]),
        "clock of",
    ),
    "two files in one": (lambda records: pcapng(records[20:]) + pcapng(records[:20]), "All records were sorted"),
    **{name: (change, " of no connection that key logs name") for name, change in STRANGERS.items()},
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return foreign_run(tmp_path / "quic-go_ngtcp2/transfer", output=qir_output(size=SIZE), start=2_500_000)


def rewrite(run: Path, *sides: Path, to: Change) -> None:
    for side in sides:
        (run / side).write_bytes(to(recorded(run / side)))


def findings(run: Path) -> Findings:
    (one,) = find_runs(run).runs
    return examine(one, None)


def check(found: Findings, known: str, *notes: str) -> None:
    """Numbers with a capital letter are those of the pair, with a small one others, and without one unknown.

    Each note has the words that are given for it.
    """
    numbers = zip(NUMBERS, (found.handshake, found.goodput, found.loss_forward, found.loss_return), strict=True)
    alike = {name: value == pytest.approx(NUMBERS[name], rel=1e-4) for name, value in numbers if value is not None}
    assert "".join(name if same else name.lower() for name, same in alike.items()) == known
    assert len(found.notes) == len(notes), found.notes
    for said, words in zip(found.notes, notes, strict=True):
        assert words in said


@pytest.mark.parametrize("kind", PLAIN)
def test_formats_and_link_layers(run: Path, kind: str) -> None:
    rewrite(run, LEFT, RIGHT, to=PLAIN[kind])
    check(findings(run), "HGLR", *NOTES.get(kind, []))


@pytest.mark.parametrize("sides", [(LEFT,), (RIGHT,), (LEFT, RIGHT)])
@pytest.mark.parametrize("kind", REPAIRED)
def test_what_is_repaired_or_not_of_the_run_is_named(run: Path, kind: str, sides: tuple[Path, ...]) -> None:
    """It counts neither for handshake and goodput, nor for the loss."""
    change, note = REPAIRED[kind]
    before = {side: (run / side).read_bytes() for side in sides}
    rewrite(run, *sides, to=change)
    assert all((run / side).read_bytes() != before[side] for side in sides)
    found = findings(run)
    check(found, "HGLR", *[""] * len(found.notes))
    for side in sides:
        assert [note in each and f"the {SIDES[side]}'s trace" in each.lower() for each in found.notes].count(True) == 1


# ---- what is damaged, missing, or not understood --------------------------------------------


def at(sides: Iterable[Path], change: Change) -> Setup:
    return lambda run: rewrite(run, *sides, to=change)


left, right, both = partial(at, [LEFT]), partial(at, [RIGHT]), partial(at, SIDES)


def damaged(change: Callable[[bytes], bytes], *sides: Path, form: Change = pcap) -> Setup:
    return at(sides or SIDES, lambda records: change(form(records)))


def compressed(damage: Callable[[bytes], bytes]) -> Setup:
    def made(run: Path) -> None:
        (run / LEFT).with_suffix(".pcap.gz").write_bytes(damage(gzip.compress((run / LEFT).read_bytes())))
        (run / LEFT).unlink()

    return made


def cut(share: float) -> Callable[[bytes], bytes]:
    return lambda data: data[: int(len(data) * share)]


def flipped(data: bytes, at: int) -> bytes:
    """With one byte changed."""
    return patched(at, bytes([data[at] ^ 255]), data)


def exchanged(run: Path) -> None:
    files = [(run / side).read_bytes() for side in SIDES]
    for side, content in zip(SIDES, reversed(files), strict=True):
        (run / side).write_bytes(content)


def of_client(form: Change) -> Setup:
    """The client's capture in both places."""
    return lambda run: rewrite(run, RIGHT, to=lambda _: form(recorded(run / LEFT)))


def together(run: Path) -> None:
    records = [each for side in SIDES for each in recorded(run / side)]
    rewrite(run, LEFT, to=lambda _: pcap(sorted(records, key=lambda each: each.time)))


def offloaded_alone(run: Path) -> None:
    both(lambda records: pcap(offloaded(records)))(run)
    (run / RIGHT).unlink()


def without_keys(run: Path) -> bytes:
    keys = (run / "client/keys.log").read_bytes()
    for folder in ("client", "server"):
        shutil.rmtree(run / folder)
    return keys


def secrets_in_captures(run: Path) -> None:
    both(partial(pcapng, secrets=without_keys(run)))(run)


def post_processed(run: Path) -> None:
    """As QIR-SE leaves captures."""
    secrets_in_captures(run)
    for side in SIDES:
        (run / side).rename(run / "sim" / f"{side.stem}_with_secrets.pcapng")
    assert not any("trace_node" in each for each in find_runs(run).runs[0].missing)


def deeper_key_log(run: Path) -> None:
    (run / "client/keys.log").unlink()
    (run / "server/first").mkdir()
    (run / "server/keys.log").rename(run / "server/first/keys.log")


def unanswered_without_keys(run: Path) -> None:
    without_keys(run)
    left(lambda records: before(other_connection(records)[:-1], records))(run)


def notes_of_both(words: str) -> list[str]:
    """For packets of the client's and of the server's trace, of which there are 38 and 39."""
    return [f"The {side}'s trace {words.format(38 + more)}" for more, side in enumerate(SIDES.values())]


def hidden(hide: Callable[[Record], Record], share: int) -> Setup:
    """If all or half of the packets are inside of others."""
    return both(lambda records: pcap([each if n % share else hide(each) for n, each in enumerate(records)]))


HIDING: dict[str, Callable[[Record], Record]] = {
    "IP in IP": lambda each: each.inside(4),
    "GRE": lambda each: each.inside(47, struct.pack(">HH", 0, 0x0800)),
    "MPLS": lambda each: replace(each, data=each.data[:12] + b"\x88\x47" + struct.pack(">I", 0x64140) + each.ip),
    "VXLAN": lambda each: each.inside(17, struct.pack(">HHHH", 9, 4789, 36 + len(each.ip), 0) + bytes(28)),
    "IP fragments": lambda each: each.patched(20, b"\x20\0"),
}
CUT_OFF = "is cut off. Before that, 37 are complete", "is cut off. Before that, 38 are complete"
DAMAGED = "since they are damaged: the loss is not known."
PARTIAL = "The client's trace does not show the whole response, so there is no goodput."
GAPS = "{} of the packets of the {} that arrived are missing in the {}'s trace, so the loss is not known.".format
UNKNOWN_PORT = "has no packet from or to port 443. It holds {0} records: {0} of "
NO_INITIAL = "The client's trace begins after the handshake: it has no Initial packet, so nothing can be decrypted."
SNAP = "of the client's trace are cut (snap length), so "
LOSS_CUT = "packets of the traces are cut, so that the loss could not be measured."
SAME = "Both traces are the same capture: it is read as the client's, and the loss is not known."
FOREIGN = "The client's trace cannot be used: trace_node_left.pcap is "
AT_CLIENT = "Handshake and goodput are seen at the client, whose trace cannot be used."
NO_ANSWER = "The client's trace shows no handshake that the server answered"
MISSING = "has records that are not read, so packets may be missing: "
CASES: dict[str, tuple[Setup, str, list[str]]] = {
    "secrets in the capture, no folder of an endpoint": (secrets_in_captures, "HGLR", []),
    "layout of QIR-SE": (post_processed, "HGLR", []),
    "a key log deeper in a folder": (deeper_key_log, "HGLR", []),
    "exchanged": (exchanged, "HGLR", ["they were exchanged."]),
    # without keys, the connection that is answered counts
    "unanswered before, no keys": (
        unanswered_without_keys, "HGLR", ["2 records of the client's trace of no", "No response could be decrypted"],
    ),
    # a connection id shows the datagrams of records without a counterpart
    "offload, one capture": (offloaded_alone, "HG", ["Split: 4 records", "There is no file trace_node_right.pcap."]),
    # cut records do not show where the next datagram begins
    "offload, cut records": (
        left(lambda records: pcap(offloaded(records), snap=1000)), "",
        ["Larger than an Ethernet packet, and not split: 4 records", f"10 records {SNAP}the rest cannot be decrypted."],
    ),
    "cut pcap": (damaged(lambda data: data[:-20]), "HGLR", [*CUT_OFF]),
    "cut pcapng": (damaged(lambda data: data[:-20], form=pcapng), "HGLR", [*CUT_OFF]),
    "both cut in the transfer": (damaged(cut(0.5)), "H", ["18 are complete", "18 are complete", PARTIAL, DAMAGED]),
    "a changed packet": (
        damaged(lambda data: flipped(data, len(data) // 2), LEFT), "HlR",
        ["1 packet of the server cannot be decrypted", "1 packet arrived forward changed, and counts as lost."],
    ),
    **{
        f"{form.__name__} and {tail[:2]!r} behind": (
            damaged(lambda data, tail=tail: data + tail, form=form), "HGLR", ["38 are complete", "39 are complete"],  # type: ignore[misc]
        )
        for form in (pcap, pcapng) for tail in (bytes(4096), b"\xff" * 4096, b"garbage")
    },
    "gzip, cut": (compressed(cut(2 / 3)), "H", ["trace_node_left.pcap.gz appears to have been cut", PARTIAL, DAMAGED]),
    "gzip, end cut": (compressed(lambda data: data[:-6]), "HGLR", ["appears to have been cut short"]),
    "gzip, wrong sum": (compressed(lambda data: flipped(data, len(data) - 6)), "HGLR", ["be damaged or corrupt."]),
    "xz": (damaged(lambda _: lzma.compress(bytes(99))[:-9], LEFT), "", [f"{FOREIGN}compressed with xz", AT_CLIENT]),
    "zstd": (damaged(lambda _: b"\x28\xb5\x2f\xfd" * 9, LEFT), "", [f"{FOREIGN}compressed with zstd", AT_CLIENT]),
    "K12": (damaged(lambda _: b"+---------+\n", LEFT), "", [f"{FOREIGN}a text file of K12", AT_CLIENT]),
    **{
        f"{whose}'s {what}": (
            damaged(change, side), "HG" if side == RIGHT else "", [reason, *([AT_CLIENT] * (side == LEFT))],
        )
        for side, whose in SIDES.items()
        for what, change, reason in (
            ("first record", lambda data: patched(24, bytes(4) + b"\xff" * 12, data), "claims 4294967295 bytes"),
            ("whole file", lambda _: b"", "has no bytes."),
        )
    },
    "link type": (both(framed(lambda _: bytes(30), 127)), "", notes_of_both(f"{UNKNOWN_PORT}link type 127.")),
    "protocol": (both(mapped(lambda each: each.patched(23, b"\x2f"))), "", notes_of_both(f"{UNKNOWN_PORT}GRE.")),
    "headers": (both(partial(pcap, snap=38)), "", notes_of_both(f"{UNKNOWN_PORT}headers that are cut.")),
    **{
        f"port {port}, begun late": (
            both(lambda records, port=port: in_port(port)(records[13:])), "",  # type: ignore[misc]
            [f"It holds {count} records: {count} of {name}." for count in (25, 26)],
        )
        for port, name in ((4433, "UDP port 4433"), (4789, "VXLAN"))
    },
    **{f"in {kind}": (hidden(hide, 1), "", notes_of_both(f"{UNKNOWN_PORT}{kind}.")) for kind, hide in HIDING.items()},
    "begins after the handshake": (both(lambda records: pcap(records[5:])), "lR", [NO_INITIAL]),
    # the only Initial that is left is a later one, which the keys of the first one's connection ID would open
    "begins during the handshake": (
        left(lambda records: pcap(records[2:])), "",
        ["does not have the client's first Initial packet", GAPS("10 %", "client", "client")],
    ),
    # neither of its own packets nor of those that it received
    "gaps at the client": (
        left(without(lambda number, _: number in (4, 11, 19))), "H", [PARTIAL, GAPS("10 %", "client", "client")],
    ),
    "server's begins late": (right(lambda records: pcap(records[5:])), "HG", [GAPS("7 %", "server", "server")]),
    # the runner says that all files arrived, but the trace has no whole response
    "receiver's lacks packets": (
        left(without(lambda number, each: number % 6 == 5 and len(each.data) >= 500)), "HR",
        [PARTIAL, "Packets that the client received are missing in its trace, so the forward loss is not known."],
    ),
    "client's half of a link type": (left(partial(pcapng, links=(1, 127))), "H", [f"{MISSING}19 of link", NO_ANSWER]),
    "server's half of a link type": (right(partial(pcapng, links=(1, 127))), "HG", [f"{MISSING}19 of link"]),
    "no client at the server": (
        right(without(lambda _, each: not each.from_server)), "HGL",
        ["The server's trace has no packet of the client, so their loss is not known."],
    ),
    "no client": (both(without(lambda _, each: not each.from_server)), "L", ["no packet of the client, so nothing"]),
    "no server": (both(without(lambda _, each: each.from_server)), "HR", ["has no packet of the server.", NO_ANSWER]),
    "unknown version": (both(mapped(draft)), "HGLR", ["QUIC version 0xff00001d, which is not decrypted."]),
    # what stands behind the first packet of a datagram is gone
    "snap length 60": (both(partial(pcap, snap=60)), "", [f"38 records {SNAP}nothing can", f"77 {LOSS_CUT}"]),
    "snap length 200": (both(partial(pcap, snap=200)), "", [f"30 records {SNAP}the rest cannot", f"61 {LOSS_CUT}"]),
    "snap length 1100": (
        both(partial(pcap, snap=1100)), "", [f"28 records {SNAP}the handshake and the goodput", f"57 {LOSS_CUT}"],
    ),
    "one for both": (of_client(pcap), "HG", [SAME]),
    "one for both, cut": (of_client(lambda records: pcap(records, nano=True)[:-20]), "HG", [SAME]),
    "one for both, pcapng": (of_client(pcapng), "HG", [SAME]),
    "both together": (together, "HG", ["copies were left out.", "1 packet has fewer copies"]),
    "a gap of an hour": (
        left(timed(lambda number, each: each.time + 3600 * MICROSECONDS * (number > 20))), "HgLR",
        ["The client's trace has no packet for 3600 s, or its clock was set then."],
    ),
    "a coarse clock": (
        left(timed(lambda _, each: each.time // 1000 * 1000)), "hgLR",
        ["The times in the client's trace are multiples of 0.001 s."],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CASES)
def test_what_is_damaged_or_missing_is_named_and_costs_only_what_it_shows(run: Path, kind: str) -> None:
    change, known, notes = CASES[kind]
    change(run)
    found = findings(run)
    check(found, known, *notes)
    assert found.outcome == "files complete"


def in_two_files(run: Path) -> None:
    records = recorded(run / LEFT)
    for number, part in enumerate((records[:20], records[20:]), 1):
        (run / "sim" / f"trace_node_left_0000{number}.pcap").write_bytes(pcap(part))
    (run / LEFT).unlink()


def both_late_and_cut(run: Path) -> None:
    rewrite(run, LEFT, to=lambda records: pcap(records[:20]))
    rewrite(run, RIGHT, to=lambda records: pcap(records[7:20]))


NO_CAUSE = "The traces do not show the cause: they are not complete."
TIMED_OUT: dict[str, tuple[Setup, str, list[str]]] = {
    **{f"{whose}'s cut": (damaged(cut(0.5), side), "H", [f"The {whose}'s trace is damaged", DAMAGED])
       for side, whose in SIDES.items()},
    "server's begins late": (both_late_and_cut, "H", [GAPS("21 %", "server", "server")]),
    **{f"{whose}'s half of link type {link}": (at([side], partial(pcapng, links=(1, link))), "H",
                                               [f"{MISSING}19 of link type {link}.", *([NO_ANSWER] * (side == LEFT))])
       for side, whose in SIDES.items() for link in (127, 195)},
    **{f"half in {kind}": (hidden(hide, 2), "", [*(f"{MISSING}{count} of {kind}." for count in (19, 20)), NO_INITIAL])
       for kind, hide in HIDING.items()},
    "in several files": (in_two_files, "H", ["consists of 2 files, of which only trace_node_left_00001.pcap is read"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", TIMED_OUT)
def test_a_failure_of_which_packets_are_missing_has_no_invented_cause(run: Path, kind: str) -> None:
    (run / "output.txt").write_text(qir_output(size=SIZE, timeout=60))
    change, known, notes = TIMED_OUT[kind]
    change(run)
    found = findings(run)
    check(found, known, *notes, NO_CAUSE)
    assert found.outcome == "timeout after 60 s"


def test_files_of_a_capture_that_were_joined_are_a_whole_one(run: Path) -> None:
    in_two_files(run)
    files = sorted((run / "sim").glob("trace_node_left_0000?.pcap"))
    subprocess.run(["mergecap", "-w", run / LEFT, *files], check=True)
    for file in files:
        file.unlink()
    check(findings(run), "HGLR")


def test_nothing_of_the_run_changes_and_no_copy_stays(run: Path) -> None:
    rewrite(run, LEFT, RIGHT, to=lambda records: late(offloaded(records)))
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with plain_captures(run) as captures:
        assert captures.directory != run
        assert int((read(captures.directory / CLIENT_TRACE).size > 0).sum()) == 38
    assert not captures.directory.exists()
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


# ---- times ----------------------------------------------------------------------------------


TIMELESS: dict[str, tuple[Change, str]] = {
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


@pytest.mark.parametrize("sides", [(LEFT, RIGHT), (LEFT,), (RIGHT,)])
@pytest.mark.parametrize("kind", TIMELESS)
def test_times_that_say_nothing_give_no_times_and_do_not_spoil_those_of_the_other(
    run: Path, kind: str, sides: tuple[Path, ...]
) -> None:
    change, reason = TIMELESS[kind]
    rewrite(run, *sides, to=change)
    found = findings(run)
    check(found, "HG" if sides == (RIGHT,) else "", *[""] * len(found.notes))
    for side in sides:
        said = [note for note in found.notes if f"the {SIDES[side]}'s trace" in note.lower()]
        assert any(reason in note and note.endswith("its times cannot be used.") for note in said)
    assert not any("exchanged" in note or "same capture" in note for note in found.notes)


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
