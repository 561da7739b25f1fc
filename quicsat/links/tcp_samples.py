"""Samples of tcp_info: what the kernel knows of the TCP connections that carry a transfer, at the sender's end."""

from collections.abc import Iterable
from pathlib import Path

from quicsat.docker.archive import ArchiveLimits, unpack
from quicsat.links.gateway_description import SIDES, Layout
from quicsat.links.simulator_report import TRACES
from quicsat.model.implementation import Protocol, Role
from quicsat.model.run import Run
from quicsat.model.units import MS

INTERVAL = 50 * MS
"""Seconds between two samples."""
PORT = 443
LOGS = "/logs"
FILE = "tcp_info.csv"


def options(directory: str) -> tuple[str, ...]:
    """Of tcp-info; it writes its file in ``directory``."""
    return (f"--interval={round(INTERVAL / MS)}", f"--port={PORT}", f"--output={directory}/{FILE}")


COMMAND = ("tcp-info", *options(LOGS))
"""In the simulator's image and in that of the link tools."""
STOP_GRACE = 2.0
"""Seconds in which the program completes its file."""
SAMPLER = "sampler"
"""Name of the program among those of a run."""


def sampled_part(run: Run, layout: Layout) -> str | None:
    """Whose network namespace holds the connections over the link; None for a run that has none.

    With proxies, that is the gateway at the server, where a connection over the link begins.
    """
    if run.protocol is not Protocol.TCP:
        return None
    return next(gateway for gateway, role in SIDES.items() if role == Role.SERVER) if layout.pep else Role.SERVER


def keep_samples(directory: Path, archive: Iterable[bytes], limits: ArchiveLimits) -> None:
    """Write what the program left, if anything, beside the traces of the run in ``directory``."""
    unpack(archive, directory / TRACES, limits)
