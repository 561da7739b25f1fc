"""Reads a trace in one pass into columns, with the secrets of its key logs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from interop.model.errors import HarnessFault
from interop.model.outcomes import ErrorCode
from interop.traces.columns import Trace
from interop.traces.key_log import secrets
from interop.traces.network import UDP, segment
from interop.traces.packets import Dissector
from interop.traces.records import DamagedTraceError, records


def read(path: Path, keys: Iterable[str] = (), flow: int = 1) -> Trace:
    """All QUIC packets of a flow in a trace, decrypted with the lines of a key log as far as they fit.

    Raises HarnessFault(ANALYSIS_FAILED) if the file is not whole.
    """
    dissector = Dissector(secrets(keys))
    try:
        for number, record in enumerate(records(path), 1):
            found = segment(record)
            if found is not None and (found.protocol, found.flow) == (UDP, flow):
                dissector.add(record.time, number, found)
    except DamagedTraceError as broken:
        reason = f"{path.name} could not be read: {broken.reason}"
        raise HarnessFault(ErrorCode.ANALYSIS_FAILED, reason) from broken
    return dissector.trace()
