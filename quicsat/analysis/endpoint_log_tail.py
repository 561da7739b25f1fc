"""What an endpoint's log says about its failure: the first line of a panic, else its last line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from quicsat.analysis.run_outcome import first_failure
from quicsat.model.evidence import Evidence
from quicsat.model.flow import part_name
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode, Verdict
from quicsat.model.run import OUTPUT
from quicsat.model.test_case import TestCase
from quicsat.model.text import printable
from quicsat.results.compression import tail

TAIL = 8 * 1024 * 1024
"""Bytes at the end of the output that are looked at: all that is kept of two endpoints, since a Go program prints the
stacks of all goroutines after its panic."""
LONGEST = 240
"""Characters of a line that are quoted."""
CUT = '…".'
"""End of a quote whose line is longer."""
TOGETHER = timedelta(seconds=2)
"""Between the first line of a panic and the end of the log: a panic brings others, and what was printed earlier was
survived."""

SPOKEN = {
    ErrorCode.CLIENT_FAILED: Role.CLIENT,
    ErrorCode.SERVER_EXITED: Role.SERVER,
    ErrorCode.SERVER_NOT_READY: Role.SERVER,
    ErrorCode.CRASHED: None,
    ErrorCode.OUT_OF_MEMORY: None,
}
"""The failures about which an endpoint may know more than the traces; None: the one that ended first."""
SURVIVED = (ErrorCode.CLIENT_FAILED, ErrorCode.TIMEOUT)
"""The failures in which a server, or both endpoints, still ran: of them, only panics are quoted, of threads or tasks. A
server may panic after the client's end because it is stopped."""
PANICS = re.compile(
    r"panic: |fatal error: |unexpected fault address"  # Go
    r"|thread '[^']*' (\(\d+\) )?(panicked at|has overflowed its stack)|fatal runtime error: |Error: "  # Rust
    r"|thread \d+ panic: "  # Zig
    r"|terminate called |libc\+\+abi: "  # C++
    r"|(=+\d+=+)?(ERROR|WARNING|FATAL): \w+Sanitizer|\S+: runtime error: "  # sanitizers
    r"|\*\*\* .* \*\*\*|Fatal glibc error: "  # glibc
    r"|(malloc|calloc|realloc|free|munmap_chunk)\(\): |double free or corruption|corrupted (size|double-linked)"
    r"|.*\bAssertion .*failed|Assertion failed: |.*\bCheck failed: |F\d{4} "  # C, abseil, Chromium
    r"|Exception in thread |Unhandled exception|# +(SIG[A-Z]+|Internal Error|Out of Memory Error)\b"  # Java, .NET
    r"|Fatal Python error: "
    r"|(.*: line \d+: +\d+ )?(Segmentation fault|Aborted|Killed|Bus error|Illegal instruction|"
    r"Floating point exception|Trace/breakpoint trap)\b"  # a shell, of its child
)
"""How the first line of a panic begins, by what prints it."""
TRACEBACK = "Traceback (most recent call last):"
CONTINUED = re.compile(r"thread '[^']*' .*:$|terminate called after ")
"""Lines whose message is on the next one: of Rust since 1.73, and of C++."""
STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\S* ?")
"""Time at the beginning of each line."""


def quote(verdict: Verdict, evidence: Evidence, test_case: TestCase, directory: Path, flow: int = 1) -> str:
    """What the endpoint that failed said about it: ``" The client's last line: …"``, or of a panic ``" The client says:
    …"``, also of one that an endpoint survived; empty if the failure is none of an endpoint's or it said nothing.

    ``evidence`` is that of one flow, counted from 1, of the run with ``directory``. What an endpoint said is hostile:
    it is cut and made printable.
    """
    output = directory / OUTPUT
    words = ""
    if verdict.code in SPOKEN:
        failing = first_failure(evidence, test_case)
        role = SPOKEN[verdict.code] or (failing[0] if failing is not None else Role.SERVER)
        lines = _lines(output, part_name(role, flow))
        last = next((text for _, text in reversed(lines) if text), "")
        words = _says(role, lines) or (f' The {role}\'s last line: "{printable(last, LONGEST)}".' if last else "")
    elif verdict.code in SURVIVED:
        words = _says(Role.CLIENT, _lines(output, part_name(Role.CLIENT, flow)))
    if verdict.code in SURVIVED:
        words += _says(Role.SERVER, _before_the_end(_lines(output, part_name(Role.SERVER, flow)), evidence))
    return words


def _says(role: Role, lines: Sequence[tuple[str, str]]) -> str:
    panic = _panic(lines)
    return f' The {role} says: "{printable(panic, LONGEST)}".' if panic else ""


def _before_the_end(lines: Iterable[tuple[str, str]], evidence: Evidence) -> list[tuple[str, str]]:
    """The lines of the server that it printed at least a second before the client's end; none if that is unknown."""
    client = evidence.client
    if client is None or client.life is None or evidence.real_link:
        return []
    end = datetime.fromtimestamp(client.life.end, UTC) - timedelta(seconds=1)
    return [(stamp, text) for stamp, text in lines if stamp and stamp <= f"{end:%Y-%m-%dT%H:%M:%S}"]


def _lines(output: Path, part: str) -> list[tuple[str, str]]:
    """Time and text of each line of a part."""
    try:
        lines = tail(output, TAIL).decode(errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        name, _, rest = line.partition(" | ")
        if name.rstrip() == part:
            stamp = STAMP.match(rest)
            found.append((stamp[1], rest[stamp.end() :].rstrip()) if stamp else ("", rest.rstrip()))
    return found


def _panic(lines: Sequence[tuple[str, str]]) -> str:
    """The first line of the panic at the end of a log, with the next one if that has its message; empty without one.

    Of a Python traceback, the line that names the exception.
    """
    rows = [row for row, (_, text) in enumerate(lines) if text == TRACEBACK or PANICS.match(text)]
    rows = [row for row in rows if _together(lines[row][0], lines[-1][0])]
    if not rows:
        return ""
    row = rows[0]
    if lines[row][1] == TRACEBACK:
        row = max(each for each in rows if lines[each][1] == TRACEBACK)  # earlier ones led to it
    text, following = lines[row][1], [text for _, text in lines[row + 1 :]]
    if text == TRACEBACK:
        return next((line for line in following if line and not line.startswith(" ")), "")
    return f"{text} {following[0].strip()}" if CONTINUED.match(text) and following else text


def _together(first: str, second: str) -> bool:
    """Whether two times of the log are close."""
    try:
        return datetime.fromisoformat(second) - datetime.fromisoformat(first) <= TOGETHER
    except ValueError:
        return True
