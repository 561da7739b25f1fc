"""Says in words why an endpoint closed its connection: the codes of CONNECTION_CLOSE frames."""

from __future__ import annotations

import numpy as np

from quicsat.model.units import seconds
from quicsat.traces.columns import Frame, Trace

TRANSPORT = (
    "NO_ERROR", "INTERNAL_ERROR", "CONNECTION_REFUSED", "FLOW_CONTROL_ERROR", "STREAM_LIMIT_ERROR",
    "STREAM_STATE_ERROR", "FINAL_SIZE_ERROR", "FRAME_ENCODING_ERROR", "TRANSPORT_PARAMETER_ERROR",
    "CONNECTION_ID_LIMIT_ERROR", "PROTOCOL_VIOLATION", "INVALID_TOKEN", "APPLICATION_ERROR", "CRYPTO_BUFFER_EXCEEDED",
    "KEY_UPDATE_ERROR", "AEAD_LIMIT_REACHED", "NO_VIABLE_PATH",
)  # fmt: skip
"""By code (RFC 9000, section 20.1)."""
CRYPTO_ERROR, CRYPTO_ERRORS = 0x100, range(0x100, 0x200)
ALERTS = {
    0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 40: "handshake_failure", 42: "bad_certificate",
    43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired", 46: "certificate_unknown",
    47: "illegal_parameter", 48: "unknown_ca", 49: "access_denied", 50: "decode_error", 51: "decrypt_error",
    70: "protocol_version", 71: "insufficient_security", 80: "internal_error", 90: "user_canceled",
    109: "missing_extension", 110: "unsupported_extension", 112: "unrecognized_name", 116: "certificate_required",
    120: "no_application_protocol",
}  # fmt: skip
"""Alerts of TLS by code (RFC 8446, section 6), which QUIC adds to CRYPTO_ERROR."""
H3_NO_ERROR = 0x100
"""HTTP/3 closes with it when all is well (RFC 9114, section 8.1)."""


def code_name(kind: int, code: int) -> str:
    """``PROTOCOL_VIOLATION``, ``CRYPTO_ERROR 0x12a (bad_certificate)``, ``application code 0x101``."""
    if kind == Frame.CLOSE_APPLICATION:
        return f"application code 0x{code:x}"
    if code in CRYPTO_ERRORS:
        return f"CRYPTO_ERROR 0x{code:x} ({ALERTS.get(code - CRYPTO_ERROR, 'unknown alert')})"
    return TRANSPORT[code] if code < len(TRANSPORT) else f"code 0x{code:x}"


def is_error(kind: int, code: int) -> bool:
    """Whether a close with this code says that something went wrong."""
    return code != 0 and not (kind == Frame.CLOSE_APPLICATION and code == H3_NO_ERROR)


def first_close(trace: Trace, before: float) -> int | None:
    """The row in ``signals`` of the first CONNECTION_CLOSE, one with an error if there is one; None if there is none.

    Those that came after ``before``, seconds of the trace, count only if they are the server's and tell of an error.
    """
    signals = trace.signals
    closes = np.isin(signals.kind, (Frame.CLOSE, Frame.CLOSE_APPLICATION))
    early = trace.time[signals.packet] < before
    rows = np.flatnonzero(closes & (trace.from_server[signals.packet] | early)).tolist()
    errors = [row for row in rows if is_error(int(signals.kind[row]), int(signals.first[row]))]
    return next(iter(errors + [row for row in rows if early[row]]), None)


def close_sentence(trace: Trace, row: int, start: float, place: str) -> str:
    """Who closed the connection when, with which code and phrase, and in which frame.

    ``start``: as in the trace; ``place``: where the trace was captured, ``client`` or ``server``.
    """
    signals, packet = trace.signals, int(trace.signals.packet[row])
    side = "server" if trace.from_server[packet] else "client"
    phrase = trace.texts[int(signals.text[row])][:200]
    phrase_text = f', saying "{phrase}"' if phrase else ""
    name = code_name(int(signals.kind[row]), int(signals.first[row]))
    when = seconds(float(trace.time[packet]) - start)
    return (
        f"The {side} closed the connection after {when} with {name}{phrase_text} (frame {int(trace.frame[packet])} of "
        f"the {place}'s trace)."
    )
