"""What the endpoints of a run agreed on in its handshake, and the limits that each of them stated over QUIC."""

from dataclasses import dataclass
from enum import StrEnum

VERSIONS = {1: "QUIC v1", 0x6B3343CF: "QUIC v2", 0x0303: "TLS 1.2", 0x0304: "TLS 1.3"}
"""RFC 9000 and RFC 9369; over TCP, the version of TLS."""
CIPHERS = {0x1301: "AES-128-GCM", 0x1302: "AES-256-GCM", 0x1303: "ChaCha20-Poly1305"}
"""Cipher suites of TLS 1.3 that QUIC can use (RFC 8446, appendix B.4)."""
DEFAULTS = {
    "max_udp_payload_size": 65527,
    "initial_max_data": 0,
    "initial_max_stream_data_bidi_local": 0,
    "initial_max_stream_data_bidi_remote": 0,
    "initial_max_stream_data_uni": 0,
    "initial_max_streams_bidi": 0,
    "initial_max_streams_uni": 0,
    "max_idle_timeout": 0,
    "ack_delay_exponent": 3,
    "max_ack_delay": 25,
    "active_connection_id_limit": 2,
    "disable_active_migration": 0,
    "max_datagram_frame_size": 0,
}
"""Transport parameters that hold a number -> the value that applies if one is not sent.

RFC 9000, section 18.2, and RFC 9221, section 3.
"""
COMMON = ("version", "cipher", "alpn", "resumed", "early_data", "fast_open")
FACTS = (*COMMON, *(f"{role}.{name}" for role in ("client", "server") for name in DEFAULTS))
"""Names of all facts, as options have them."""
UNITS = {
    "max_udp_payload_size": "B", "initial_max_data": "B", "initial_max_stream_data_bidi_local": "B",
    "initial_max_stream_data_bidi_remote": "B", "initial_max_stream_data_uni": "B", "max_idle_timeout": "ms",
    "max_ack_delay": "ms",
}  # fmt: skip
"""Units of transport parameters."""


def fact_in_words(fact: str) -> str:
    """``client.initial_max_data`` -> ``client: initial max data [B]``, as figures and pages name it."""
    unit = UNITS.get(fact.partition(".")[2], "")
    words = fact.replace(".", ": ").replace("_", " ")
    return f"{words} [{unit}]" if unit else words


class EarlyData(StrEnum):
    """What became of data that a client sent before the handshake."""

    NONE = "none"
    """It sent none."""
    ACCEPTED = "accepted"
    REFUSED = "refused"


@dataclass(frozen=True)
class Negotiated:
    """What the handshake of a run's first connection says, as far as it could be decrypted.

    If a second connection resumes the session of the first one (checks ``resumption``, ``0-rtt``), that of this one.
    """

    version: int
    """QUIC version, or over TCP the version of TLS, as on the wire."""
    cipher: int
    """Cipher suite as on the wire; 0 if unknown."""
    alpn: str
    """Application protocol that the server chose; empty if unknown."""
    resumed: bool = False
    """Whether the connection took up an earlier session."""
    client: dict[str, int] | None = None
    server: dict[str, int] | None = None
    """Transport parameters that the endpoint sent, of those in ``DEFAULTS``; times in milliseconds, sizes in bytes.
    None if its handshake could not be read."""
    early_data: EarlyData | None = None
    """Early data of TLS 1.3 (RFC 8446, section 2.3); None in results of versions that did not look for them."""
    fast_open: EarlyData | None = None
    """Data in a SYN (RFC 7413); None over QUIC."""

    @property
    def facts(self) -> dict[str, int | str]:
        """Every known fact by its name in ``FACTS``; parameters that were not sent have the value that then applies."""
        found: dict[str, int | str] = {"version": VERSIONS.get(self.version, f"0x{self.version:08x}")}
        if self.cipher:
            found["cipher"] = CIPHERS.get(self.cipher, f"0x{self.cipher:04x}")
        if self.alpn:
            found["alpn"] = self.alpn
        found["resumed"] = "yes" if self.resumed else "no"
        found |= {
            name: str(early)
            for name, early in (("early_data", self.early_data), ("fast_open", self.fast_open))
            if early is not None
        }
        for role, sent in (("client", self.client), ("server", self.server)):
            if sent is not None:
                found |= {f"{role}.{name}": sent.get(name, value) for name, value in DEFAULTS.items()}
        return found
