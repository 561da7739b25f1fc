"""The last line of an endpoint's log, quoted in the reason of a failure."""

from __future__ import annotations

import os
from pathlib import Path

from interop.model.evidence import Evidence
from interop.model.implementation import Role
from interop.model.outcomes import ErrorCode, Verdict
from interop.model.run import OUTPUT
from interop.model.text import printable

TAIL = 65536
"""Bytes at the end of the output that are looked at."""
LONGEST = 160
"""Characters of a line that are quoted."""
CUT = '…".'
"""End of a quote whose line is longer."""

SPOKEN = frozenset(
    {
        ErrorCode.CLIENT_FAILED,
        ErrorCode.SERVER_EXITED,
        ErrorCode.SERVER_NOT_READY,
        ErrorCode.CRASHED,
        ErrorCode.OUT_OF_MEMORY,
    }
)
"""The failures about which an endpoint may know more than the traces."""


def quote(verdict: Verdict, evidence: Evidence, directory: Path) -> str:
    """``" The client's last line: …"``, or nothing if the failure is none of an endpoint's or it said nothing.

    What it said is hostile: it is cut and made printable.
    """
    if verdict.code not in SPOKEN:
        return ""
    role = _culprit(verdict.code, evidence)
    line = _last_line(directory / OUTPUT, role)
    return f' The {role}\'s last line: "{line}".' if line else ""


def _culprit(code: ErrorCode, evidence: Evidence) -> Role:
    client = evidence.client
    if code is ErrorCode.OUT_OF_MEMORY:
        return Role.CLIENT if client is not None and client.out_of_memory else Role.SERVER
    if code is ErrorCode.CRASHED:
        alive = client is None or client.killed or (client.status or 0) <= 128
        return Role.SERVER if alive else Role.CLIENT
    return Role.CLIENT if code is ErrorCode.CLIENT_FAILED else Role.SERVER


def _last_line(output: Path, role: Role) -> str:
    try:
        with output.open("rb") as file:
            file.seek(-min(TAIL, output.stat().st_size), os.SEEK_END)
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    messages = (line.partition("|")[2].strip().partition(" ")[2] for line in reversed(lines) if line.startswith(role))
    last = next(filter(None, map(str.strip, messages)), "")
    return printable(last, LONGEST)
