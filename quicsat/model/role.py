"""The sides of a transfer, and the protocols that they speak."""

from enum import StrEnum


class Role(StrEnum):
    """The role of an endpoint in a run."""

    CLIENT = "client"
    SERVER = "server"


class Protocol(StrEnum):
    """Application protocols of the transfers, the preferred one first."""

    HQ = "hq"
    """HTTP/0.9 over QUIC, as in the QUIC Interop Runner's transfers."""
    H3 = "h3"
    """HTTP/3."""
    TCP = "tcp"
    """HTTPS over TCP and TLS 1.3."""
    WEBTRANSPORT = "webtransport"
    """WebTransport over HTTP/3, for tests of it only."""
