"""The files of a run that a visitor may take away: traces with their secrets, qlogs and logs, under harmless names."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from quicsat.model.errors import HarnessFault
from quicsat.model.run import OUTPUT
from quicsat.model.stored_files import entries, files_below, has_content, read_file
from quicsat.results.compression import LARGEST, content, plain_name, stored
from quicsat.traces.records import DamagedTraceError, PacketRecord, records

_FLOW = re.compile(r"flow-[2-9]")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_SUFFIXES = {".txt": ".txt", ".json": ".json", ".qlog": ".qlog.json", ".sqlog": ".sqlog.json"}
"""Suffixes under which files are handed out, by their own; all others become text. Every web server knows the types of
these, without which browsers guess, and may take a file for a page."""
_TRACES = {
    "trace_node_left.pcap": "client-side.pcapng",
    "trace_node_right.pcap": "server-side.pcapng",
    "link_left.pcap": "client-side-of-link.pcapng",
    "trace_client.pcap": "behind-proxy.pcapng",
    "tunnel_left.pcap": "client-side-tunnel.pcapng",
    "tunnel_right.pcap": "server-side-tunnel.pcapng",
}

_SECTION, _INTERFACE, _SECRETS, _PACKET = 0x0A0D0D0A, 1, 10, 6
_TLS_KEY_LOG = 0x544C534B
_NANOSECONDS = b"\x09\x00\x01\x00\x09\x00\x00\x00\x00\x00\x00\x00"
"""Option if_tsresol: 10^-9 s; then the end of the options."""


def downloads(run: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file; what is no regular file or too large is left out."""
    flows = [run, *(each for each in entries(run) if _FLOW.fullmatch(each.name))]
    keys = b"".join(_content(flow / role / "keys.log") for flow in flows for role in ("client", "server"))
    for trace, name in _TRACES.items():
        path = run / "sim" / trace
        if _fits(path):
            yield name, pcapng(_readable(path), keys)
    taken: set[str] = set()
    endpoints = (path for role in ("client", "server") for path in files_below(run / role))
    for path in (stored(run / OUTPUT), *endpoints):
        if _fits(path):
            log, text = _log(path)
            name = _unlike(taken, taken_as(str(log.relative_to(run))))
            taken.add(name)
            yield name, text


def _log(path: Path) -> tuple[Path, bytes]:
    """Path and content of a log. What is compressed is unpacked: qvis and browsers on any web server then read it."""
    if (plain := plain_name(path)) != path:
        with suppress(OSError):
            return plain, content(path)
    return path, read_file(path, LARGEST)


def taken_as(log: str) -> str:
    """Under which name a file is handed out: ``client/log.txt`` as ``client-log.txt``."""
    role, *folders = log.split("/")
    return f"{role}-{harmless(folders[-1])}" if folders else harmless(role)


def _unlike(taken: set[str], name: str) -> str:
    """The name, with a number before its suffix if another file has it."""
    stem, dot, suffix = name.partition(".")
    number, unlike = 1, name
    while unlike in taken:
        number += 1
        unlike = f"{stem}-{number}{dot}{suffix}"
    return unlike


def harmless(name: str) -> str:
    """A file's name that leads nowhere else, and by which a browser shows its content as text.

    There is no other suffix in it: Apache takes ``x.var.txt`` for a list of the variants of a page.
    """
    path = PurePosixPath(name)
    suffix = _SUFFIXES.get(path.suffix, ".txt")
    stem = path.stem if path.suffix in _SUFFIXES else name
    return f"{_UNSAFE.sub('-', stem)[-80:].strip('-') or 'file'}{suffix}"


def _fits(path: Path) -> bool:
    return has_content(path, LARGEST)


def _content(path: Path) -> bytes:
    return read_file(path, LARGEST) if _fits(path) else b""


def _readable(path: Path) -> Iterator[PacketRecord]:
    """The records up to the first broken one, or up to the largest number that is read."""
    with suppress(DamagedTraceError, HarnessFault):
        yield from records(path)


def pcapng(packets: Iterable[PacketRecord], keys: bytes) -> bytes:
    """A trace with the TLS secrets that decrypt it (draft-ietf-opsawg-pcapng, Decryption Secrets Block)."""
    blocks = [_block(_SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    if keys:
        blocks.append(_block(_SECRETS, struct.pack("<II", _TLS_KEY_LOG, len(keys)) + keys))
    interfaces: dict[int, int] = {}
    for packet in packets:
        if packet.link_type not in interfaces:
            interfaces[packet.link_type] = len(interfaces)
            blocks.append(_block(_INTERFACE, struct.pack("<HHI", packet.link_type, 0, 0) + _NANOSECONDS))
        head = struct.pack(
            "<IIIII", interfaces[packet.link_type], packet.time >> 32, packet.time & 0xFFFFFFFF,
            len(packet.data), packet.length,
        )  # fmt: skip
        blocks.append(_block(_PACKET, head + packet.data))
    return b"".join(blocks)


def _block(kind: int, body: bytes) -> bytes:
    padded = body + b"\0" * (-len(body) % 4)
    length = struct.pack("<I", len(padded) + 12)
    return struct.pack("<I", kind) + length + padded + length
