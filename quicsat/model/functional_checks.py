"""Names of the checks that functional tests must pass, and by whose rules they are judged."""

from __future__ import annotations

from enum import StrEnum


class Check(StrEnum):
    """What a functional test proves; ``quicsat.analysis.functional`` has the function to each name."""

    VERSION_NEGOTIATION = "version negotiation"
    HANDSHAKE = "handshake"
    TRANSFER = "transfer"
    LONG_RTT = "long rtt"
    CHACHA20 = "chacha20"
    MULTIPLEXING = "multiplexing"
    RETRY = "retry"
    RESUMPTION = "resumption"
    ZERO_RTT = "0-rtt"
    HTTP3 = "http3"
    KEY_UPDATE = "key update"
    ECN = "ecn"
    AMPLIFICATION_LIMIT = "amplification limit"
    MULTICONNECT = "multiconnect"
    IPV6 = "ipv6"
    VERSION_2 = "version 2"
    REBINDING = "rebinding"
    ADDRESS_REBINDING = "address rebinding"
    MIGRATION = "migration"
    WEBTRANSPORT = "webtransport"


class Rules(StrEnum):
    """Whose rules judge a functional test."""

    STANDARD = "standard"
    """What the RFCs ask for."""
    UPSTREAM = "upstream"
    """What the QUIC Interop Runner asks for, where that differs."""
