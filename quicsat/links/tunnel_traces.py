"""Traces of a link with a VPN: the simulator has the packets of the tunnel, the gateways those of the endpoints."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from quicsat.docker.archive import ArchiveLimits, unpack
from quicsat.links.artefact_limits import LARGEST_REPORT
from quicsat.links.simulator_report import TRACES
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode
from quicsat.model.stored_files import read_file
from quicsat.model.text import counted
from quicsat.model.whole_file import scratch_directory

NAMES = {"client-gateway": "left", "server-gateway": "right"}
"""Side of the link, in the names of the simulator's traces, by gateway."""


def keep_endpoint_traces(directory: Path, logs: Mapping[str, Iterable[bytes]], limits: ArchiveLimits) -> None:
    """Keep both pairs of traces below ``directory/sim``, which holds those of the simulator.

    ``trace_node_left.pcap`` and ``trace_node_right.pcap`` become the traces of the gateways, as all analysis expects
    them: packets as the endpoints send and receive them. Those of the simulator become ``tunnel_left.pcap`` and
    ``tunnel_right.pcap``. ``logs``: archive of the directory that each gateway leaves. Raises :class:`HarnessFault`
    (simulator-failed) if a gateway left no trace, or one that lacks packets.
    """
    for gateway, archive in logs.items():
        trace = directory / TRACES / f"trace_node_{NAMES[gateway]}.pcap"
        trace.replace(trace.with_name(f"tunnel_{NAMES[gateway]}.pcap"))
        with scratch_directory(directory) as folder:
            unpack(archive, folder, limits)
            try:
                dropped = int(json.loads(read_file(folder / "capture.json", LARGEST_REPORT))["dropped"])
                (folder / "trace.pcap").replace(trace)
            except (OSError, ValueError, KeyError, TypeError) as error:
                reason = f"the {gateway} left no trace ({error})"
                raise HarnessFault(ErrorCode.SIMULATOR_FAILED, reason) from error
        if dropped:
            raise HarnessFault(
                ErrorCode.SIMULATOR_FAILED, f"the trace of the {gateway} lacks {counted(dropped, 'packet')}"
            )
