"""Real links: hosts, the link between two of them in a test case, and the report of a run.

Frozen, in SI base units. Forward is server to client, return is client to server. Addresses are private: only
:class:`Host` has them, which is never stored with results.
"""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from quicsat.model.text import quoted

DAEMON_EXAMPLE = "ssh://user@host.example"

# ---- configuration ----------------------------------------------------------------------


@dataclass(frozen=True)
class RealDirection:
    """One direction of a real link."""

    rate: float
    """As advertised, bit/s."""

    @property
    def highest_rate(self) -> float:
        """``rate``, as in :class:`quicsat.model.emulated_link.Direction`."""
        return self.rate

    @property
    def loss(self) -> None:
        """None: only the link itself loses packets."""


@dataclass(frozen=True)
class RealLink:
    """A link that exists, between two hosts of the hosts file."""

    client_host: str
    server_host: str
    """Names in the hosts file."""
    forward: RealDirection
    back: RealDirection
    round_trip_delay: float
    """Approximate round-trip time, seconds; timeouts for endpoints are multiples of it."""
    provider: str = ""
    tariff: str = ""
    modem: str = ""
    traffic_limit: str = ""
    """As the provider words it."""


@dataclass(frozen=True)
class Tls:
    """Files for TLS with a daemon."""

    ca: Path | None
    """Certificates of the authorities of the daemon's certificate; None for those of this machine."""
    certificate: Path | None
    key: Path | None
    """Of the client; None if it shows no certificate."""
    verify: bool = True
    """Whether the certificate of the daemon is checked."""


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
    """Empty for this machine."""
    daemon: str
    """``unix:///path``, ``ssh://user@host:port/path`` or ``tcp://host:port``."""
    tls: Tls | None = None
    """For ``tcp``."""
    ssh_config: Path | None = None
    """For ``ssh``: read instead of the user's own."""
    address4: str = ""
    address6: str = ""
    """Address of a server on this host; empty if it is not reachable over that version of IP."""
    source_address: str = ""
    interface: str = ""
    """By which the client's packets must leave; empty if they may leave as they like."""
    clock_skew: float = 0.0
    """Expected lead of its clock, seconds."""
    host_network: bool = False
    """Endpoints here use the host's own network, instead of their own namespace behind the daemon's bridge."""
    named_by: str = "its entry in the hosts file"
    """Where the user chose the address, for messages."""


def daemon_address(text: str) -> str:
    """``text`` if it is ``unix:///path``, ``ssh://user@host:port/path`` or ``tcp://host:port``; else ValueError."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"is no address; write for example {quoted(DAEMON_EXAMPLE)}.") from None
    if parts.query or parts.fragment or parts.password is not None:
        raise ValueError("must hold neither a password nor ? nor #.")
    whole = {
        "unix": bool(parts.path) and not parts.netloc,
        "ssh": bool(parts.hostname) and not (parts.hostname or "").startswith("-"),
        "tcp": bool(parts.hostname) and port is not None and parts.path in ("", "/") and parts.username is None,
    }
    if parts.scheme not in whole:
        raise ValueError(f"must begin with unix://, ssh:// or tcp://; write for example {quoted(DAEMON_EXAMPLE)}.")
    if not whole[parts.scheme] or (parts.username or "").startswith("-"):
        example = {"unix": "unix:///run/docker.sock", "ssh": DAEMON_EXAMPLE, "tcp": "tcp://host.example:2376"}
        raise ValueError(f"is not whole; write for example {quoted(example[parts.scheme])}.")
    return text


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
    return_goodput: float | None = None
    """The same from client to server, measured after it; None also in results of versions that did not measure it."""


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
