"""Real links: hosts, the link between two of them in a test case, and the report of a run.

Frozen, in SI base units. Forward is server to client, return is client to server. Addresses are private: only
:class:`Host` has them, which is never stored with results.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# ---- configuration ----------------------------------------------------------------------


@dataclass(frozen=True)
class RealLink:
    """A link that exists, between two hosts of the hosts file."""

    client_host: str
    server_host: str
    """Names in the hosts file."""
    forward_rate: float
    return_rate: float
    """As advertised, bit/s."""
    round_trip_delay: float
    """Approximate round-trip time, seconds; timeouts for endpoints are multiples of it."""
    provider: str = ""
    tariff: str = ""
    modem: str = ""
    traffic_limit: str = ""
    """As the provider words it."""

    @property
    def forward_loss(self) -> None:
        """None: only the link itself loses packets."""


@dataclass(frozen=True)
class Tls:
    """Files for mutual TLS authentication with a daemon."""

    ca: Path
    certificate: Path
    key: Path


@dataclass(frozen=True)
class Scheduler:
    """Scheduler of a cluster whose workers execute runs."""

    address: str
    """``tcp://host:port`` or ``tls://host:port``."""
    tls: Path | None = None
    """Folder with ca.pem, cert.pem and key.pem; for ``tls``."""


@dataclass(frozen=True)
class Host:
    """A machine on which endpoints run, and the address of its Docker daemon."""

    name: str
    daemon: str
    """``unix:///path``, ``ssh://user@host:port/path`` or ``tcp://host:port``."""
    tls: Tls | None = None
    """For ``tcp``."""
    ssh_config: Path | None = None
    """For ``ssh``: read instead of the user's own."""
    address4: str = ""
    address6: str = ""
    """Address of a server on this host; empty if it is not reachable over that version of IP."""
    testbeds: int = 0
    """Concurrent testbeds of emulated links; 0 if the host serves only real links."""
    source_address: str = ""
    interface: str = ""
    """By which the client's packets must leave; empty if they may leave as they like."""
    clock_skew: float = 0.0
    """Expected lead of its clock, seconds."""
    host_network: bool = False
    """Endpoints here use the host's own network, instead of their own namespace behind the daemon's bridge."""


# ---- report -----------------------------------------------------------------------

CLOCKS = "The clocks of both hosts"
"""Prefix of the analysis note about clocks that differ; stored results hold the note as text, so readers match it."""


@dataclass(frozen=True)
class Baseline:
    """Measurement of the link without endpoints."""

    taken: str
    """UTC, RFC 3339."""
    round_trips: tuple[float | None, ...]
    """Round-trip times of packets sent at a constant interval, seconds; None where no answer came."""
    interval: float
    """Distance, seconds."""
    goodput: float | None = None
    """Goodput of one TCP connection from server to client (iperf3), bit/s; None if not measured."""


@dataclass(frozen=True)
class CaptureReport:
    """The report of a capture."""

    captured: int
    """Packets written to the trace."""
    received: int
    """Packets that the kernel received for it."""
    dropped: int
    """Packets that the kernel had no room for."""


@dataclass(frozen=True)
class RealLinkReport:
    """The state of a real link during one run."""

    client_host: str
    server_host: str
    expected_skew: float
    """Expected lead of the server's clock over the client's, seconds."""
    client_capture: CaptureReport
    server_capture: CaptureReport
    baseline: Baseline | None = None
    """The last baseline before the run."""
    outage: bool = False
    """A host could not be reached for part of the run."""
