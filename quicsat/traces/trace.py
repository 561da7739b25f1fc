"""Reads a trace in one pass into columns, with the secrets of its key logs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from quicsat.model.bounds import LEAST_PACKETS
from quicsat.traces.columns import Trace
from quicsat.traces.key_log import secrets
from quicsat.traces.network import UDP
from quicsat.traces.packets import Dissector
from quicsat.traces.pcap import check


def read(path: Path, keys: Iterable[str] = (), flow: int = 1, most: int = LEAST_PACKETS) -> Trace:
    """All QUIC packets of a flow in a trace, decrypted with the lines of a key log as far as they fit.

    Of a damaged file, which ``pcap.check`` finds, those before its fault. Raises HarnessFault (trace-limit) if there
    are more than ``most``, or if they hold more than so many packets can hold.
    """
    dissector = Dissector(secrets(keys), path.name, most)
    check(path, UDP, flow, most, dissector.add)
    return dissector.trace()
