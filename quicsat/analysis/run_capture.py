"""Writes a run as one capture: both traces by the client's clock, their keys, and comments on packets that matter."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from quicsat.analysis.packet_comments import comments
from quicsat.analysis.time_shares import run_time_shares
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Role
from quicsat.model.test_case import TestCase
from quicsat.model.trace_size import trace_packets
from quicsat.traces.key_log import key_lines
from quicsat.traces.pcapng_writer import CapturedEnd, write_pcapng
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.records import NANOSECONDS, records_before_fault
from quicsat.traces.run_traces import CLIENT_TRACE, KEY_LOGS, SERVER_TRACE, RunTraces


def write_capture(file: BinaryIO, place: Path, traces: RunTraces, case: TestCase, evidence: Evidence) -> None:
    """Write the capture of the run over QUIC in ``place``; ``case`` as it was perturbed. Raises OSError."""
    pair, series = cast("QuicTracePair", traces.trace_pair), traces.series()
    of_client, of_server = comments(pair, series, run_time_shares(traces, series, case, evidence))
    ahead = pair.clock.offset if pair.clock.uncertainty else 0.0
    most = trace_packets(case)
    places = [
        CapturedEnd(Role.CLIENT, partial(records_before_fault, place / CLIENT_TRACE, most), of_client),
        CapturedEnd(
            Role.SERVER,
            partial(records_before_fault, place / SERVER_TRACE, most),
            of_server,
            round(-ahead * NANOSECONDS),
        ),
    ]
    keys = "\n".join(key_lines(*(place / log for log in KEY_LOGS))) + "\n"
    write_pcapng(file, keys.encode(), places)
