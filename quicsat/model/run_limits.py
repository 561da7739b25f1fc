"""Limits of what a run of a test case may use and leave; see docs/reference/test-cases.md."""

from dataclasses import dataclass

from quicsat.model.units import MIB

MEMORY = 4096 * MIB
"""Bytes of memory of each endpoint in real time, unless a test case sets another limit."""
HOST_PATIENCE, HOST_FACTOR = 300.0, 10.0
"""Seconds of real time that a run in virtual time may take, and a multiple of its simulated deadline beside them."""


@dataclass(frozen=True)
class RunLimits:
    """Limits that a test case sets itself; None for quicsat's default, which may follow from the files and the link."""

    memory: int | None = None
    """Bytes of memory of each endpoint; with the virtual clock, of the machine that all endpoints share."""
    cpus: float | None = None
    """CPUs of each endpoint; without effect in virtual time."""
    processes: int | None = None
    """Processes and threads of each endpoint; without effect in virtual time."""
    logs: int | None = None
    """Bytes that are copied from the logs of each endpoint."""
    downloads: int | None = None
    """Bytes that are copied from the downloads of the client."""
    traces: int | None = None
    """Bytes that are copied of all traces of a run together."""


def wall_clock_limit(timeout: float) -> float:
    """Seconds of real time after which a run in virtual time is broken off; ``timeout``: its simulated deadline."""
    return HOST_PATIENCE + HOST_FACTOR * timeout
