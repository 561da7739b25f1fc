"""The nouns of a real link: hosts, what a test case says of the link between two, and what a run over it reports.

Frozen, in SI base units. Forward is server to client, return is client to server. Addresses are private: they stand in
a :class:`Host` alone, which is never stored with results.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# ---- what is asked for ----------------------------------------------------------------------


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
    """About how long a round trip takes, seconds: for that long endpoints are waited for, in multiples."""
    provider: str = ""
    tariff: str = ""
    modem: str = ""
    traffic_limit: str = ""
    """As the provider words it."""

    @property
    def forward_loss(self) -> None:
        """Nothing is lost but by the link itself."""


@dataclass(frozen=True)
class Tls:
    """Files by which a daemon and we prove to each other who we are."""

    ca: Path
    certificate: Path
    key: Path


@dataclass(frozen=True)
class Scheduler:
    """Of a cluster, whose workers carry runs out."""

    address: str
    """``tcp://host:port`` or ``tls://host:port``."""
    tls: Path | None = None
    """Folder with ca.pem, cert.pem and key.pem; for ``tls``."""


@dataclass(frozen=True)
class Host:
    """A machine on which endpoints run, and how its Docker daemon is reached."""

    name: str
    daemon: str
    """``unix:///path``, ``ssh://user@host:port/path`` or ``tcp://host:port``."""
    tls: Tls | None = None
    """For ``tcp``."""
    ssh_config: Path | None = None
    """For ``ssh``: read instead of the user's own."""
    address4: str = ""
    address6: str = ""
    """At which a server here is reached; empty if it is not reached by that version of IP."""
    testbeds: int = 0
    """For emulated links, side by side; 0 if it is for real ones only."""
    source_address: str = ""
    interface: str = ""
    """By which the client's packets must leave; empty if they may leave as they like."""
    clock_skew: float = 0.0
    """By how much its clock is expected to be ahead, seconds."""
    host_network: bool = False
    """Endpoints here use the host's own network, instead of a namespace of theirs behind the daemon's bridge."""


# ---- what is reported -----------------------------------------------------------------------

CLOCKS = "The clocks of both hosts"
"""How the note of a measurement begins that tells of them."""


@dataclass(frozen=True)
class Baseline:
    """What the bare link did, with no endpoint on it."""

    taken: str
    """UTC, RFC 3339."""
    round_trips: tuple[float | None, ...]
    """Of packets sent at even distances, seconds; None where no answer came."""
    interval: float
    """Distance, seconds."""
    goodput: float | None = None
    """Of one TCP connection from server to client (iperf3), bit/s; None if it was not asked for."""


@dataclass(frozen=True)
class CaptureReport:
    """What a capture says of itself."""

    captured: int
    """Packets written to the trace."""
    received: int
    """Packets that the kernel had for it."""
    dropped: int
    """Packets that the kernel had no room for."""


@dataclass(frozen=True)
class RealLinkReport:
    """What is known of a real link during one run."""

    client_host: str
    server_host: str
    expected_skew: float
    """By how much the server's clock is expected to be ahead of the client's, seconds."""
    client_capture: CaptureReport
    server_capture: CaptureReport
    baseline: Baseline | None = None
    """The last one that was taken before the run."""
    outage: bool = False
    """A host could not be reached for a time during the run."""
