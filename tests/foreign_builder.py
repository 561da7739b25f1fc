"""Log directories as the QUIC Interop Runner and QIR-SE leave them, made of recorded traces of this project."""

import shutil
import struct
from pathlib import Path

DATA = Path(__file__).parent / "data"
PPP = 9
MICROSECONDS = 1_000_000
SCENARIO = 'SCENARIO="simple-p2p --delay=15ms --bandwidth=100Mbps --queue=25"'
LEFT, RIGHT = Path("sim", "trace_node_left.pcap"), Path("sim", "trace_node_right.pcap")


def pieces(trace: bytes) -> list[tuple[int, int, bytes]]:
    """Time in microseconds, length on the wire and data of each record of a little-endian pcap file."""
    assert trace[:4] == bytes.fromhex("d4c3b2a1")
    found, place = [], 24
    while place < len(trace):
        second, fraction, kept, length = struct.unpack_from("<IIII", trace, place)
        found.append((second * MICROSECONDS + fraction, length, trace[place + 16 : place + 16 + kept]))
        place += 16 + kept
    return found


def shifted(trace: bytes, by: int, *, ppp: bool = False) -> bytes:
    """The trace with all times ``by`` microseconds later; with ``ppp`` as ns-3 records it at its own devices."""
    out = trace[:20] + struct.pack("<I", PPP) if ppp else trace[:24]
    for time, length, data in pieces(trace):
        if ppp:
            assert data[12:14] == b"\x08\x00"
            data, length = b"\x00\x21" + data[14:], length - 12
        out += struct.pack("<IIII", *divmod(time + by, MICROSECONDS), len(data), length) + data
    return out


def begin(source: Path) -> int:
    """When the earlier one of both traces begins, microseconds."""
    return min(pieces((source / trace).read_bytes())[0][0] for trace in (LEFT, RIGHT))


def foreign_run(place: Path, source: str = "lossy", *, output: str = "", ppp: bool = False, start: int = 0) -> Path:
    """A run of another runner whose first packet comes ``start`` microseconds after the start of the simulation."""
    shutil.copytree(DATA / source, place, ignore=shutil.ignore_patterns("series.parquet"))
    by = start - begin(place)
    for trace in (LEFT, RIGHT):
        (place / trace).write_bytes(shifted((place / trace).read_bytes(), by, ppp=ppp))
    if output:
        (place / "output.txt").write_text(output)
    return place


def qir_output(*, size: int = 30_000, status: int = 0, timeout: int = 0, checked: bool = True) -> str:
    """What QIR writes of a run, with lines of an endpoint that pretends to be the runner."""
    stamp = "2026-04-06 04:31:00,123 "
    lines = [
        f"{stamp}Generated random file: slow-blue-cat of size: {size}",
        f"{stamp}Requests: ['https://server4:443/slow-blue-cat']",
        f"{stamp}Command: WAITFORSERVER=server:443 CERTS=/tmp/c {SCENARIO} CLIENT=x docker compose up",
        f"{stamp} Container sim  Created",
        f"client  | {stamp}Generated random file: evil of size: 999999999",
        "client  | client exited with code 9",
        *([f"{stamp}Test failed: took longer than {timeout}s."] if timeout else [f"client exited with code {status}"]),
        *([f"{stamp}Check of downloaded files succeeded."] if checked and not (timeout or status) else []),
    ]
    return "\n".join(lines) + "\n"


def qir_se_output(*, size: int = 30_000, status: int = 0) -> str:
    """What QIR-SE writes of a run."""
    stamp = "2022-03-15 12:00:00,123 "
    return "\n".join(
        [
            f"{stamp}Generated random file: abcdefghij of size: {size}",
            f"{stamp}server | exit status 137",
            f"{stamp}client | exit status {status}",
            f"{stamp}Check of downloaded files succeeded.",
            "",
        ]
    )
