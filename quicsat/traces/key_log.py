"""Key logs of TLS: their lines, and the secrets in them (draft-ietf-tls-keylogfile)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from quicsat.model.stored_files import open_file

OLD_PREFIX = "QUIC_"
"""Begins labels of some implementations, as drafts of TLS over QUIC had them."""
KEY_LOG_LIMIT = 4 * 1024 * 1024
"""Bytes of each key log that are read."""
ACCEPTED = "SERVER_HANDSHAKE_TRAFFIC_SECRET"
KEY_LINE = re.compile(rb"[A-Z0-9_]{1,48} [0-9a-fA-F]{64} (?:[0-9a-fA-F]{64}|[0-9a-fA-F]{96})")
"""A line of a key log (draft-ietf-tls-keylogfile)."""


def key_lines(*key_logs: Path) -> tuple[str, ...]:
    """All well-formed lines of the key logs that exist, each once.

    Key logs are written by endpoints: links are not followed, other lines and what lies beyond the limit are ignored.
    """
    lines: dict[str, None] = {}
    for key_log in key_logs:
        with suppress(OSError), open_file(key_log) as stream:
            lines.update(dict.fromkeys(well_formed(stream.read(KEY_LOG_LIMIT))))
    return tuple(lines)


def upstream_lines(*key_logs: Path) -> tuple[str, ...]:
    """The lines of the only key log that the QUIC Interop Runner takes: the first with a secret of ACCEPTED."""
    each = (key_lines(key_log) for key_log in key_logs)
    return next((lines for lines in each if any(line.startswith(ACCEPTED) for line in lines)), ())


def well_formed(content: bytes) -> tuple[str, ...]:
    """The lines of a key log that can be right."""
    lines = map(bytes.strip, content.splitlines())
    return tuple(line.decode("ascii") for line in lines if KEY_LINE.fullmatch(line))


def secrets(keys: Iterable[str]) -> dict[bytes, dict[str, tuple[bytes, ...]]]:
    """The secrets in the lines of ``key_lines``, by client random and label."""
    found: defaultdict[bytes, defaultdict[str, dict[bytes, None]]] = defaultdict(lambda: defaultdict(dict))
    for line in keys:
        label, random, secret = line.removeprefix(OLD_PREFIX).split()
        found[bytes.fromhex(random)][label][bytes.fromhex(secret)] = None
    return {random: {label: tuple(each) for label, each in labels.items()} for random, labels in found.items()}
