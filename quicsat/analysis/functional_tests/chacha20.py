"""C20: only the cipher suite ChaCha20 is offered, and used; pure."""

from __future__ import annotations

from collections.abc import Iterable

from quicsat.analysis.functional_tests.rule import Observation, connections, rule
from quicsat.analysis.run_outcome import failed
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.traces.columns import Trace

CHACHA20 = 0x1303
"""TLS_CHACHA20_POLY1305_SHA256 (RFC 8446, appendix B.4)."""


@rule(
    Check.CHACHA20,
    requirement="the client offers only 0x1303, and the server chooses it; reserved values do not count",
    rfc="8446: 4.1.3; 8701",
    qir="checks only the first value that each ClientHello offers, even if it is reserved",
)
def chacha20(seen: Observation) -> Verdict | None:
    return connections(seen) or (upstream if seen.upstream else standard)(seen.client)


def standard(client: Trace) -> Verdict | None:
    """Whether the client offered ChaCha20 only, and the server took it (RFC 8446, section 4.1.3).

    Values that are reserved to keep servers tolerant (RFC 8701) are no cipher suites.
    """
    for connection in client.connections:
        offered = [suite for suite in connection.offered if suite & 0x0F0F != 0x0A0A]
        if set(offered) != {CHACHA20}:
            return failed(ErrorCode.WRONG_CIPHER, f"The client offered {_suites(offered)}, not only 0x1303.")
        if connection.cipher != CHACHA20:
            return failed(ErrorCode.WRONG_CIPHER, f"The server chose {_suites([connection.cipher])}, not 0x1303.")
    return None if client.connections else failed(ErrorCode.WRONG_CIPHER, "The trace shows no ClientHello.")


def _suites(numbers: Iterable[int]) -> str:
    """Cipher suites by their numbers."""
    return ", ".join(f"0x{number:04x}" for number in numbers) or "nothing"


def upstream(client: Trace) -> Verdict | None:
    """Whether the first cipher suite of each ClientHello is ChaCha20."""
    first = [connection.offered[0] for connection in client.connections if connection.offered]
    if {*first} == {CHACHA20}:
        return None
    offered = _suites(sorted({*first}))
    return failed(ErrorCode.WRONG_CIPHER, f"The client offered {offered} first, not 0x1303.")
