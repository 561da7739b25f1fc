"""Makes plain captures of those that other tools wrote: sorted, split into datagrams, with the server at port 443.

Copies are changed, never the files of the run. Captures of our own need none of this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from quicsat.model.implementation import Role
from quicsat.model.stored_files import files, files_below, has_content, is_file
from quicsat.model.whole_file import scratch_directory, take_file, take_files
from quicsat.traces.capture_contents import TRACES, Capture, find_servers
from quicsat.traces.capture_repair import Repair, write_capture
from quicsat.traces.key_log import key_lines, well_formed
from quicsat.traces.records import NANOSECONDS, embedded_secrets
from quicsat.traces.run_traces import CLIENT_TRACE, EMBEDDED_KEYS, KEY_LOGS, QLOGS

LEAST_TRIP = 100_000
"""Nanoseconds by which packets arrive before they are sent if the traces of both ends are exchanged."""
PART = re.compile(r"(.+?)(?:_\d{5}(?:_\d{14})?\.pcap(?:ng)?|(?<=\.pcap)\d+)")
"""Name of a further file of a capture."""
SAME_TIME = 1000
"""Nanoseconds that the times of a packet may differ in two formats of one capture."""


@dataclass(frozen=True)
class PlainCaptures:
    """The captures of a run, as ``check_traces`` and ``read_run`` expect them."""

    directory: Path
    """That of the run, or of copies of what analysis needs."""
    sources: Mapping[Role, Path]
    """The files that the captures were made from."""
    notes: tuple[str, ...] = ()
    """A sentence each: what was changed, and what is not understood."""
    damaged: frozenset[Role] = frozenset()
    """Whose capture ends early: only the records before its fault are used."""
    incomplete: bool = False
    """Packets may be missing or too many for other reasons, so that loss and causes are not known."""
    absent: frozenset[Role] = frozenset()
    """Whose capture is not there, or is left out, which a note says."""
    timeless: frozenset[Role] = frozenset()
    """Whose times say nothing."""


@contextmanager
def plain_captures(directory: Path) -> Iterator[PlainCaptures]:
    """The captures of a run of any tool; copies are removed at the end.

    Not understood link types, tunnels and ports are named in the notes, and so is damage. No exception leaves this
    function for what the captures contain.
    """
    sources = {role: _capture(directory, trace) for role, trace in TRACES.items()}
    with scratch_directory() as place:
        found = {role: Capture.read(role, source, place) for role, source in sources.items()}
        known, keys = _keys(directory, found)
        servers = find_servers(found.values(), keys)
        for each in found.values():
            each.judge(servers, keys)
            each.parts = _parts(sources[each.role])
        notes = list[str]()
        if _exchanged(found):
            notes.append("The left trace is that of the server, the right one that of the client: they were exchanged.")
            found = {role: found[_other(role)] for role in Role}
            for role, each in found.items():
                each.role = role
        absent = frozenset[Role]()
        if _same(found):
            notes.append("Both traces are the same capture: it is read as the client's, and the loss is not known.")
            absent = frozenset({Role.SERVER})
        repairs = {role: Repair(found[role], found[_other(role)]) for role in Role if role not in absent}
        notes += [note for role, repair in repairs.items() for note in (*found[role].notes(), *repair.notes)]
        plain = directory
        changed = absent or any(repair.needed for repair in repairs.values())
        usual = all(each.path == directory / TRACES[role] for role, each in found.items())
        if changed or not usual or len(keys) > len(known):
            plain = place / "run"
            _copy(directory, plain, keys, repairs)
            notes += [note for repair in repairs.values() for note in repair.done]
        yield PlainCaptures(
            plain,
            {role: each.path for role, each in found.items()},
            tuple(notes),
            frozenset(role for role, each in found.items() if each.damage and each.records),
            any(repair.incomplete for repair in repairs.values()),
            absent,
            frozenset(role for role in repairs if found[role].flows and found[role].timeless),
        )


def _other(role: Role) -> Role:
    return Role.SERVER if role is Role.CLIENT else Role.CLIENT


def _exchanged(found: Mapping[Role, Capture]) -> bool:
    """Whether packets are seen at their receiver before they are seen at their sender, whatever the clocks.

    A round trip that is too short to be sure needs a second sign: packets that were received and never sent, but none
    that was sent and not received.
    """
    client, server = found[Role.CLIENT], found[Role.SERVER]
    if client.timeless or server.timeless:
        return False
    ends = (False, client, server), (True, server, client)
    ways = [(sent.seen[way], arrived.seen[way]) for way, sent, arrived in ends]
    delays = [
        [arrived[mark][0] - times[0] for mark, times in sent.items() if mark in arrived] for sent, arrived in ways
    ]
    if not all(delays):
        return False
    trip = sum(max(delay) for delay in delays)  # of the fastest packets, if all delays are negative
    received = any(arrived.keys() - sent.keys() for sent, arrived in ways)
    lost = any(sent.keys() - arrived.keys() for sent, arrived in ways)
    sure = LEAST_TRIP + max(client.resolution, server.resolution) * NANOSECONDS
    return trip < -sure or (trip < 0 and received and not lost)


def _same(found: Mapping[Role, Capture]) -> bool:
    """Whether both files are copies of one capture, of which one may be cut."""
    one, other = found.values()
    pairs = list(zip(one.digest, other.digest, one.time, other.time, strict=False))
    return (
        bool(pairs)
        and not (one.timeless or other.timeless)
        and all(mark == there and abs(time - then) < SAME_TIME for mark, there, time, then in pairs)
    )


def _capture(directory: Path, trace: Path) -> Path:
    """The file of a capture: of its usual name, or of one that other tools and compression programs make of it."""
    usual = directory / trace
    others = sorted(_like(usual, ".pcap*"), key=lambda path: (len(path.name), path))
    found = [path for path in (usual, *others) if is_file(path)]
    return next(filter(has_content, found), found[0] if found else usual)


def _parts(path: Path) -> int:
    """Files of a capture that was written to several ones, as by tcpdump -C, dumpcap -b and editcap -c."""
    found = PART.fullmatch(path.name)
    stem: str = path.name if found is None else found[1]
    others = filter(None, (PART.fullmatch(other.name) for other in files(path.parent)))
    return max(len([other for other in others if other[1] == stem]) + (found is None), 1)


def _like(usual: Path, suffix: str) -> list[Path]:
    """Files whose names begin as that of ``usual``; ``suffix`` may have wildcards."""
    return [path for path in files(usual.parent) if fnmatchcase(path.name, f"{usual.stem}*{suffix}")]


def _keys(directory: Path, found: Mapping[Role, Capture]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines of the key logs at their usual places, and with those of all others and of the captures."""
    known = key_lines(*(directory / log for log in KEY_LOGS))
    below = (path for part in ("client", "server") for path in files_below(directory / part))
    more = key_lines(directory / "keys.log", *(path for path in below if path.name == "keys.log"))
    captures = {each.path for each in found.values()}
    captures |= {path for trace in TRACES.values() for path in _like(directory / trace, ".pcapng")}
    embedded = well_formed(b"\n".join(embedded_secrets(path) for path in sorted(captures)))
    return known, tuple(dict.fromkeys((*known, *more, *embedded)))


def _copy(directory: Path, target: Path, keys: Sequence[str], repairs: Mapping[Role, Repair]) -> None:
    (target / CLIENT_TRACE).parent.mkdir(parents=True)
    take_files(directory / QLOGS, target / QLOGS)
    (target / EMBEDDED_KEYS).write_text("".join(f"{line}\n" for line in keys), encoding="ascii")
    for role, repair in repairs.items():
        if repair.needed:
            write_capture(target / TRACES[role], repair.records())
        elif is_file(repair.capture.path):
            take_file(repair.capture.path, target / TRACES[role])
