"""The files of a run that a visitor may take away: traces with their secrets, qlogs and logs, under harmless names."""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from quicsat.model.errors import HarnessFault
from quicsat.model.run import OUTPUT
from quicsat.model.stored_files import entries, files_below, has_content, read_file
from quicsat.results.compression import LARGEST, content, plain_name, stored
from quicsat.traces.pcapng_writer import CapturedEnd, write_pcapng
from quicsat.traces.records import DamagedTraceError, PacketRecord, records

_FLOW = re.compile(r"flow-[2-9]")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_SUFFIXES = {".txt": ".txt", ".json": ".json", ".qlog": ".qlog.json", ".sqlog": ".sqlog.json"}
"""Suffixes under which files are handed out, by their own; all others become text. Every web server knows the types of
these, without which browsers guess, and may take a file for a page."""
_QVIS_HEAD = 1024
"""Bytes of a file in which qvis looks for its version."""
_QVIS_VERSION = re.compile(rb'"qlog_version"\s*:\s*"(0\.[13]|draft-0[012]|draft-02-wip)"')
"""Of qlogs that qvis opens (its QlogLoader.ts of 2025-10-08). Later drafts have no version, but a schema."""
_QVIS_SEQUENCE = re.compile(rb'"qlog_format"\s*:\s*"JSON-SEQ"')
_TRACES = {
    "trace_node_left.pcap": "client-side.pcapng",
    "trace_node_right.pcap": "server-side.pcapng",
    "link_left.pcap": "client-side-of-link.pcapng",
    "trace_client.pcap": "behind-proxy.pcapng",
    "tunnel_left.pcap": "client-side-tunnel.pcapng",
    "tunnel_right.pcap": "server-side-tunnel.pcapng",
}


class TakenFile(NamedTuple):
    """A file of a run in the site."""

    name: str
    address: str
    """From the page of its cell."""
    in_qvis: bool
    """Whether qvis opens it."""


def downloads(run: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file; what is no regular file or too large is left out."""
    flows = [run, *(each for each in entries(run) if _FLOW.fullmatch(each.name))]
    keys = b"".join(_content(flow / role / "keys.log") for flow in flows for role in ("client", "server"))
    for trace, name in _TRACES.items():
        path = run / "sim" / trace
        if _fits(path):
            file = BytesIO()
            write_pcapng(file, keys, [CapturedEnd(PurePosixPath(name).stem, partial(_readable, path))])
            yield name, file.getvalue()
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


def opens_in_qvis(name: str, start: bytes) -> bool:
    """Whether qvis opens a file that is handed out as ``name`` and starts like this."""
    head = start[:_QVIS_HEAD]
    if not name.endswith("qlog.json") or not _QVIS_VERSION.search(head):
        return False
    return not name.endswith(".sqlog.json") or _QVIS_SEQUENCE.search(head) is not None


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
