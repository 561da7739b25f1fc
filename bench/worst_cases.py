"""Measures memory and CPU time of the largest and slowest evidence that the limits permit, and the verdict on the run.

    make bench-worst-cases
    python -m bench.worst_cases --only trace

Bars: at most 1 GiB of memory and 60 s of CPU time each, and the verdict on a run is never a fault of the machine.
"""
# ruff: noqa: T201 - a script

import gzip
import hashlib
import json
import os
import struct
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from itertools import count
from pathlib import Path

import numpy as np
from prettytable import PrettyTable

from bench.script import ROOT, options_parser
from quicsat.analysis.analyse import CLIENT_TRACE, SERVER_TRACE, analyse
from quicsat.cli import entry_point
from quicsat.cli.main import main as command_line
from quicsat.cli.output_files import LARGEST_JSON
from quicsat.docker.archive import ArchiveLimits, unpack
from quicsat.links.artefact_limits import LARGEST_REPORT
from quicsat.links.simulator_report import read_report
from quicsat.model.bounds import LEAST_PACKETS
from quicsat.model.errors import HarnessFault
from quicsat.model.evidence import Exit
from quicsat.model.implementation import Protocol
from quicsat.model.run import OUTPUT
from quicsat.model.stored_files import read_file
from quicsat.model.units import MIB, byte_size
from quicsat.results.store import LARGEST, Journal, write_result_json
from quicsat.traces import qlog
from quicsat.traces.key_log import KEY_LOG_LIMIT
from quicsat.traces.run_traces import TCP_INFO, check_traces, read_run
from quicsat.traces.series import MOST_ROWS, Requests, Samples, StreamData, load, save
from tests import hostile_archives
from tests.analysis.test_analyse import EVIDENCE, RUN, transfer
from tests.campaign_builder import NAMES, Shape
from tests.campaign_builder import campaign as synthetic
from tests.quic_builder import Connection, Packet, pcap_records, stream_frame, varint
from tests.results_builder import SAT
from tests.series_builder import Transfer, series
from tests.tcp_traces import Tcp, pcap
from tests.tcp_traces import transfer as tcp_transfer

OLD_REPORT = ROOT / "tests/data/campaign-before-packages/picoquic_quic-go/blackhole/1/sim/link.json"
MOST_MEMORY, LONGEST = 1024 * MIB, 60.0
"""Bytes, and seconds of CPU time, of one process."""
ROOM = LEAST_PACKETS - 20
"""Packets beside those of a transfer that went well."""
MADE = Connection()
COALESCED = b"\xe0" + struct.pack(">I", 1) + b"\0\0\x05" + b"x" * 5
"""The smallest packet with a long header, 13 bytes."""
FAILED = replace(EVIDENCE, client=Exit(1))
Act = Callable[[Path], str]
"""Reads what lies in a directory; what came of it."""


def judged(run_directory: Path) -> str:
    """The verdict on the run, which went well but for what lies there."""
    verdict, _ = analyse(RUN, EVIDENCE, run_directory)
    return f"{verdict.outcome.value} {verdict.code or ''} {verdict.reason[:80]}"


def failed(run_directory: Path) -> str:
    """The verdict on the run, whose client failed."""
    verdict, _ = analyse(RUN, FAILED, run_directory)
    return f"{verdict.outcome.value} {verdict.code or ''} {verdict.reason[:80]}"


# ---- traces -----------------------------------------------------------------------------------


def traced(directory: Path, payloads: Iterable[bytes], *, from_server: bool = True) -> None:
    """A run that went well, whose traces go on with these datagrams."""
    client, server, key_log = transfer()
    for folder in ("sim", "client/qlog", "server/qlog"):
        (directory / folder).mkdir(parents=True)
    (directory / "server/keys.log").write_text(key_log)
    with (directory / CLIENT_TRACE).open("wb") as at_client, (directory / SERVER_TRACE).open("wb") as at_server:
        at_client.writelines(pcap_records(client))
        at_server.writelines(pcap_records(server))
        for number, payload in enumerate(payloads):
            [_, record] = pcap_records([Packet(5.2 + number / 10**6, from_server, payload)])
            at_client.write(record)
            at_server.write(record)


def of_server(frames: Callable[[int], bytes], packets: int = ROOM) -> Iterator[bytes]:
    """Packets of the server after its transfer."""
    return (MADE.one_rtt(10 + number, frames(number), from_server=True) for number in range(packets))


def fragments(number: int) -> bytes:
    """Five bytes of one stream, each alone, so that each second one is missing."""
    return b"".join(stream_frame(4, b"x", 8 * number + 2 * piece) for piece in range(4))


def own_streams(number: int) -> bytes:
    """A byte of each of four streams."""
    return b"".join(stream_frame(16 * number + 4 * piece, b"x") for piece in range(4))


def late_pieces() -> Iterator[bytes]:
    """Handshake whose beginning grows byte by byte, while a thousand later pieces wait."""
    first = 60_000
    for number in range(1000):
        yield MADE.handshake(number, crypto(first + 2 * number, b"x"), from_server=True)
    for number in range(ROOM // 5):
        frames = b"".join(crypto(6 * number % first + piece, b"x") for piece in range(6))
        yield MADE.handshake(1000 + number, frames, from_server=True)


def crypto(offset: int, piece: bytes) -> bytes:
    return b"\x06" + varint(offset) + varint(len(piece)) + piece


def acknowledgements() -> Iterator[bytes]:
    """Nearly half of the packets are sent, and each of the others acknowledges nearly all of them, time and again."""
    for number in range(ROOM // 2 - 100):
        yield MADE.one_rtt(10 + number, b"\x01", from_server=True)


def acks(number: int) -> bytes:
    """Four ACK frames over all packets of the server, each from another number on."""
    most = ROOM // 2
    return b"".join(b"\x02" + varint(most) + b"\0\0" + varint(most - (4 * number + piece) % most) for piece in range(4))


def connections() -> Iterator[bytes]:
    """A thousand connections, with ids of all sizes, then packets that may belong to each."""
    for number in range(990):
        made = Connection(original=number.to_bytes(2, "big") * 8, client_id=b"c" * (number % 256))
        yield made.client_hello()
    for number in range(ROOM - 1000):
        yield b"\x40" + number.to_bytes(30, "big")


def unknown_initials() -> Iterator[bytes]:
    """Initials with a connection id each; no key opens them."""
    return (
        b"\xc0" + struct.pack(">I", 1) + b"\x08" + number.to_bytes(8, "big") + b"\0\0\x40\x19" + b"x" * 25
        for number in range(ROOM)
    )


def undecryptable(directory: Path) -> None:
    """Packets that none of eight secrets opens, kept until the end, and tried again."""
    traced(directory, (b"\x40" + MADE.client_id + number.to_bytes(4, "big") * 12 for number in range(ROOM)))
    random_ = MADE.random.hex()
    lines = [f"SERVER_TRAFFIC_SECRET_0 {random_} {number:064x}\n" for number in range(1, 20)]
    with (directory / "server/keys.log").open("a") as file:
        file.writelines(lines)


def both(first: Iterable[bytes], second: Iterable[bytes]) -> Callable[[Path], None]:
    """Datagrams of the server, then of the client."""

    def make(directory: Path) -> None:
        traced(directory, first)
        with (directory / CLIENT_TRACE).open("ab") as at_client, (directory / SERVER_TRACE).open("ab") as at_server:
            for number, payload in enumerate(second):
                [_, record] = pcap_records([Packet(5.5 + number / 10**6, False, payload)])
                at_client.write(record)
                at_server.write(record)

    return make


def of_payloads(payloads: Iterable[bytes], *, from_server: bool = True) -> Callable[[Path], None]:
    """A run whose traces go on with these."""
    return lambda directory: traced(directory, payloads, from_server=from_server)


TRACES: dict[str, Callable[[Path], None]] = {
    "coalesced packets of 13 bytes": of_payloads(COALESCED * 107 for _ in range(ROOM // 107)),
    "datagrams of 1 byte": of_payloads(b"x" for _ in range(ROOM)),
    "packets full of stream data": of_payloads(of_server(lambda number: stream_frame(4, b"x" * 1300, 1300 * number))),
    "fragments of one byte": of_payloads(of_server(fragments, 4 * (20_000 // 4) // 4)),
    "four streams in each packet": of_payloads(of_server(own_streams)),
    "pieces of handshake": of_payloads(late_pieces()),
    "acknowledgements of all packets": both(
        acknowledgements(), (MADE.one_rtt(10 + n, acks(n), from_server=False) for n in range(ROOM // 2 - 100))
    ),
    "1000 connections, ids of all sizes": of_payloads(connections(), from_server=False),
    "Initials of unknown connections": of_payloads(unknown_initials(), from_server=False),
    "packets that no secret opens": undecryptable,
}


def tcp(segments: Callable[[int], Tcp]) -> Callable[[Path], None]:
    """A run over TCP, whose traces go on with as many segments as are read."""

    def make(directory: Path) -> None:
        (directory / "sim").mkdir(parents=True)
        for trace, first in zip((CLIENT_TRACE, SERVER_TRACE), tcp_transfer(), strict=True):
            (directory / trace).write_bytes(pcap([*first, *(segments(number) for number in range(ROOM))]))

    return make


def tcp_windows(directory: Path) -> None:
    """A run over TCP with as many samples of its window as are read."""
    tcp(lambda number: Tcp(1 + number / 10**6, True, 6500 + number, 1, 400))(directory)
    (directory / TCP_INFO).parent.mkdir(parents=True, exist_ok=True)
    with (directory / TCP_INFO).open("w") as file:
        file.write("time,port,congestion_window\n")
        file.writelines(f"{1_750_000_000_000_000_000 + number},40000,{number}\n" for number in range(1_200_000))


def read_tcp_run(directory: Path) -> str:
    """Traces and series of a run over TCP."""
    try:
        found = read_run(directory, Protocol.TCP, SAT.link, check_traces(directory, Protocol.TCP)).series()
    except HarnessFault as fault:
        return f"refused: {fault.reason}"[:80]
    return f"{len(found.sent)} events"


def sacked(number: int) -> Tcp:
    """A segment of the client with three blocks that have arrived."""
    blocks = tuple((10_000 + number + 4 * block, 10_002 + number + 4 * block) for block in range(3))
    return Tcp(1 + number / 10**6, False, 400, 0, 6500, sacks=blocks)


TCP: dict[str, Callable[[Path], None]] = {
    "segments of one byte": tcp(lambda number: Tcp(1 + number / 10**6, True, 6500 + number, 1, 400)),
    "every second byte": tcp(lambda number: Tcp(1 + number / 10**6, True, 6500 + 2 * number, 1, 400)),
    "bytes in reverse order": tcp(lambda number: Tcp(1 + number / 10**6, True, 6500 + 2 * ROOM - number, 1, 400)),
    "three SACK blocks in each segment": tcp(sacked),
    "samples of the window": tcp_windows,
}


# ---- other files of a run ---------------------------------------------------------------------


def good(directory: Path) -> None:
    """A run that went well."""
    traced(directory, [])


def told(*names_and_contents: tuple[str, Callable[[], Iterable[bytes]]]) -> Callable[[Path], None]:
    """A run that went well, with these files."""

    def make(directory: Path) -> None:
        good(directory)
        for name, content in names_and_contents:
            with (directory / name).open("wb") as file:
                file.writelines(content())

    return make


def repeated(piece: bytes, size: int, begin: bytes = b"", end: bytes = b"") -> Callable[[], Iterable[bytes]]:
    """A piece again and again up to a size."""

    def content() -> Iterator[bytes]:
        block = piece * max(1, min(size, MIB) // len(piece))
        yield begin
        yield from (block for _ in range((size - len(begin) - len(end)) // len(block)))
        yield end

    return content


EVENT = b'{"time":1,"name":"recovery:metrics_updated","data":{"congestion_window":%d}}'
NOW = b'{"time":%d,"name":"recovery:metrics_updated","data":{"congestion_window":%d}}\n'
HEAD = b'{"qlog_version":"0.3","traces":[{"events":['
QLOG = "server/qlog/a.sqlog"


def windows() -> Iterator[bytes]:
    """Lines, each with another window."""
    yield b'{"trace":{}}\n'
    size = 0
    for number in count():
        line = NOW % (number, 10_000 + number)
        size += len(line)
        if size > qlog.LIMIT:
            return
        yield line


QLOGS: dict[str, Callable[[Path], None]] = {
    "document, one line": told((QLOG, repeated(EVENT % 5 + b",", qlog.LIMIT, HEAD, EVENT % 6 + b"]}]}"))),
    "lines": told((QLOG, windows)),
    "deep": told((QLOG, repeated(b"[", qlog.LIMIT, HEAD))),
    "deep objects": told((QLOG, repeated(b'{"a":', qlog.LIMIT, HEAD))),
    "many damaged lines": told((QLOG, repeated(b'{"time":\n', qlog.LIMIT, b'{"trace":{}}\n'))),
    "one text": told((QLOG, repeated(b"x", qlog.LIMIT, HEAD + b'"'))),
    "events of many values": told(
        (QLOG, repeated(b'{"time":1,"name":"x","data":[' + b"1," * 60_000 + b"1]},", qlog.LIMIT, HEAD))
    ),
    "gzip of nothing": told(("server/qlog/a.sqlog.gz", lambda: [gzip.compress(bytes(512 * MIB))])),
    "10,000 files": told(*((f"server/qlog/{n}.sqlog", repeated(NOW % (n, n), 12_000)) for n in range(10_000))),
}
OTHERS: dict[str, tuple[Callable[[Path], None], Act]] = {
    "key log: lines of unknown connections": (
        told(("client/keys.log", lambda: (b"A %064x %064x\n" % (n, n) for n in range(KEY_LOG_LIMIT // 132)))), judged,
    ),
    "key log: secrets of one connection": (
        told(("client/keys.log", lambda: (b"SERVER_TRAFFIC_SECRET_0 %s %064x\n" % (MADE.random.hex().encode(), n)
                                          for n in range(KEY_LOG_LIMIT // 154)))), judged,
    ),
    "log: 64 MiB of newlines": (told((str(OUTPUT), repeated(b"\n", 64 * MIB))), failed),
    "log: panics": (told((str(OUTPUT), repeated(b"client | panic: x\n", 64 * MIB))), failed),
    "log: one line": (told((str(OUTPUT), repeated(b"x", 64 * MIB, b"client | "))), failed),
    "log: gzip of newlines": (told((f"{OUTPUT}.gz", lambda: [gzip.compress(b"\n" * 512 * MIB)])), failed),
}  # fmt: skip


# ---- series, reports, archives -------------------------------------------------------------------


def stored_series(directory: Path) -> None:
    """As many events as are read, in a small file."""
    events = MOST_ROWS // 2 - 1000
    none = np.zeros(events, dtype=np.int64)
    times = np.linspace(0, 60, events)
    data = StreamData(times, none, none, none, none, none, none)
    base = series(Transfer())
    save(replace(base, sent=data, arrived=data, cwnd=Samples.of(), rtt=Samples.of(), requests=Requests.of()), directory)


def read_series(directory: Path) -> str:
    """What is read of it."""
    found = load(directory)
    return "none" if found is None else f"{len(found.sent)} events"


def link_report(directory: Path) -> None:
    """A report as large as one may be, of empty lists."""
    text = OLD_REPORT.read_text()[:-2]
    (directory / "link.json").write_text(
        f'{text}, "more": [{",".join(["[]"] * ((LARGEST_REPORT - len(text) - 20) // 3))}]}}'
    )


def read_link_report(directory: Path) -> str:
    """As at the end of a run."""
    return f"{read_report(json.loads(read_file(directory / 'link.json', LARGEST_REPORT))).lateness is not None}"


def archive(bomb: Callable[[], Iterator[bytes]]) -> Act:
    """Unpacks it."""

    def act(directory: Path) -> str:
        try:
            unpack(bomb(), directory, ArchiveLimits(total=1024 * MIB))  # as of an endpoint's logs
        except HarnessFault as fault:
            return f"refused: {fault.reason}"[:80]
        return "unpacked"

    return act


def nothing(_: Path) -> None:
    """Nothing to prepare."""


# ---- campaigns ----------------------------------------------------------------------------------


def stored(directory: Path, repetitions: int, pairs: int = 1, *, whole: bool = False) -> None:
    """A campaign of so many repetitions, with the journal or, if ``whole``, as result.json alone."""
    names = NAMES[:pairs]
    results = synthetic(Shape(names, NAMES[:1], (SAT,), repetitions=repetitions, failing=0))
    place = directory / "campaign"
    place.mkdir()
    if whole:
        write_result_json(place, results)
        return
    with Journal.create(place, results.manifest) as journal:
        for result in results.results:
            journal.append_result(result)
        journal.finish()


def large_journal(size: int) -> Callable[[Path], None]:
    """One of nearly this size: its results again and again, as later attempts."""

    def make(directory: Path) -> None:
        stored(directory, 1000)
        path = directory / "campaign/journal.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        block = b"".join(lines[1:-1])
        with path.open("ab") as file:
            file.writelines(block for _ in range((size - file.tell()) // len(block)))

    return make


def command(*words: str) -> Act:
    """A command on the campaign."""

    def act(directory: Path) -> str:
        os.chdir(directory)
        for part in ROOT.iterdir():
            if not part.name.startswith("."):
                (directory / part.name).symlink_to(part)
        with redirect_stdout(StringIO()) as output:
            status = command_line(directory, words, entry_point._draw, entry_point._figures)
        return f"exit status {status}, {len(output.getvalue().splitlines())} lines"

    return act


MANY = 10_000


def many(directory: Path) -> None:
    stored(directory, MANY, 3)


def numbers(count: int) -> bytes:
    """JSON of so many numbers, as times of sending."""
    return b"[" + b"1," * (count - 1) + b"1]"


def names(count: int) -> bytes:
    """JSON of so many metrics."""
    return b"{" + b",".join(b'"%d":1' % number for number in range(count)) + b"}"


def heavy_journal(member: bytes, content: bytes) -> Callable[[Path], None]:
    """A journal of as many bytes as are read, whose results have the most values that a line may have."""

    def make(directory: Path) -> None:
        stored(directory, 2)
        path = directory / "campaign/journal.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        line = json.loads(lines[1])
        line.pop("sum")
        text = json.dumps(line).encode()
        value = json.dumps(line["data"]["measurement"][member.decode()]).encode()
        body = text.replace(b'"%s": %s' % (member, value), b'"%s": %s' % (member, content))[:-1]
        sealed = b'%s, "sum": "%s"}\n' % (body, hashlib.sha256(body).hexdigest()[:16].encode())
        with path.open("ab") as file:
            file.writelines(sealed for _ in range((LARGEST - file.tell()) // len(sealed)))

    return make


def foreign(directory: Path) -> None:
    """Results that look like those of QIR, of empty lists up to what is read."""
    size = LARGEST_JSON - 100
    (directory / "result.json").write_text(f'{{"log_dir":"x","servers":[],"clients":[],"x":[{"[]," * (size // 3)}[]]}}')


def damaged_journal(directory: Path) -> None:
    """Newlines only, in the largest journal that quicsat reads."""
    stored(directory, 1)
    with (directory / "campaign/journal.jsonl").open("ab") as file:
        file.writelines(repeated(b"\n", LARGEST - file.tell())())


def damaged_results(directory: Path) -> None:
    """As many bytes as are read, of empty results."""
    stored(directory, 1, whole=True)
    path = directory / "campaign/result.json"
    text = path.read_bytes()
    begin, end = text.split(b'"results": [')
    with path.open("wb") as file:
        file.writelines(repeated(b"{},", LARGEST - len(text), begin + b'"results": [')())
        file.write(end)


CAMPAIGNS: dict[str, tuple[Callable[[Path], None], Act]] = {
    "journal of newlines: show": (damaged_journal, command("show", "campaign")),
    "result.json of empty results: show": (damaged_results, command("show", "campaign")),
    "journal of times: show": (heavy_journal(b"sending_times", numbers(200_000)), command("show", "campaign")),
    "journal of metrics: show": (heavy_journal(b"values", names(200_000)), command("show", "campaign")),
    "result.json of QIR with empty lists: tables": (foreign, command("tables", ".")),
    "journal of 256 MiB: show": (large_journal(LARGEST), command("show", "campaign")),
    "journal of 160 MiB: site": (large_journal(160 * MIB), command("site", ".", "-o", "site")),
    "result.json of 30,000 runs: show": (lambda place: stored(place, MANY, 3, whole=True), command("show", "campaign")),
    "10,000 repetitions of 3 pairs: plot": (many, command("plot", "campaign")),
    "10,000 repetitions of 3 pairs: tables": (
        many, command("tables", "campaign", "--table", "summary", "pairs", "variance", "loss", "runs"),
    ),
    "10,000 repetitions of 3 pairs: compare": (many, command("compare", "campaign", "campaign")),
    "10,000 repetitions of 3 pairs: site": (many, command("site", ".", "-o", "site")),
}  # fmt: skip


def worst_cases() -> Iterator[tuple[str, Callable[[Path], None], Act]]:
    """Name, what prepares it, and what reads it."""
    yield "a run that went well", good, judged
    for name, make in TRACES.items():
        yield f"trace: {name}", make, judged
    for name, make in TCP.items():
        yield f"TCP: {name}", make, read_tcp_run
    for name, make in QLOGS.items():
        yield f"qlog: {name}", make, judged
    for name, (make, act) in (OTHERS | CAMPAIGNS).items():
        yield name, make, act
    yield "series.parquet", stored_series, read_series
    yield "link.json", link_report, read_link_report
    for name, bomb in hostile_archives.BOMBS.items():
        yield f"archive: {name}", nothing, archive(bomb)


def measured(make: Callable[[Path], None], act: Act, directory: Path) -> tuple[str, int, float]:
    """What came of it, with bytes of memory and seconds of CPU time of a process of its own."""
    _forked(lambda: make(directory))
    before = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    memory, cpu = _forked(lambda: (directory / "came").write_text(act(directory)))
    came = (directory / "came").read_text() if (directory / "came").exists() else "ended"
    return f"{came} ({byte_size(before)})", memory, cpu


def _forked(act: Callable[[], object]) -> tuple[int, float]:
    """Do it in a process of its own; its memory in bytes and its CPU time in seconds."""
    process = os.fork()
    if not process:
        try:
            act()
        except BaseException:  # noqa: BLE001 - no line of the bench may run in this process
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, _, used = os.wait4(process, 0)
    return used.ru_maxrss * 1024, used.ru_utime + used.ru_stime


def main() -> int:
    """Exit status: 0 all bars are kept, 1 one is not."""
    parser = options_parser(__doc__, {})
    parser.add_argument("--only", default="", help="cases whose names begin so")
    options = parser.parse_args()
    table = PrettyTable(["case", "memory", "CPU time [s]", "result", "bar"], align="l")
    bad = False
    for name, make, act in worst_cases():
        if not name.startswith(options.only):
            continue
        with tempfile.TemporaryDirectory(prefix="quicsat-worst-") as folder:
            came, memory, cpu = measured(make, act, Path(folder))
        kept = memory <= MOST_MEMORY and cpu <= LONGEST and not came.startswith(("error", "ended"))
        bad |= not kept
        table.add_row([name, byte_size(memory), f"{cpu:.1f}", came, "" if kept else "NOT reached"])
        print(f"{name}: {byte_size(memory)}, {cpu:.1f} s, {came}", file=sys.stderr, flush=True)
    print(table)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
