"""Checks of functional tests that look into packets: ClientHellos, sessions, limits, 0-RTT, key updates; pure."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from quicsat.analysis.run_outcome import failed, frames_of
from quicsat.model.arrays import Flags, Integers
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.text import counted
from quicsat.model.units import seconds
from quicsat.traces.columns import Form, Frame, Message, Trace
from quicsat.traces.streams import ByteRanges

CHACHA20 = 0x1303
"""TLS_CHACHA20_POLY1305_SHA256 (RFC 8446, appendix B.4)."""
MOST_STREAMS = 1000
"""Streams that a server may allow at first in the multiplexing test."""
PROBE = 0.05
"""Seconds after which a packet is no part of a client's first flight any more."""
INITIAL_RTT = 0.333
"""Seconds that a client takes for the round trip until it has measured one (RFC 9002, section 6.2.2)."""
FIRST_TIMEOUT = 3.0
"""The first probe time-out in initial round trips: the round trip and four times its half (sections 5.3 and 6.2.1)."""
EARLY_SHARE = 0.5
"""Share of the requests that must be early."""


def sealed(what: str) -> Verdict:
    """A test that cannot be judged, since a key log does not open what it is about."""
    return Verdict(Outcome.UNSUPPORTED, ErrorCode.KEY_LOG_MISSING, f"The key logs do not open {what}.")


def closed(trace: Trace, *, from_server: bool) -> bool:
    """Whether no key opens any of the 1-RTT packets of a side."""
    own = (trace.from_server == from_server) & (trace.form == Form.ONE_RTT)
    return bool(own.any()) and not trace.decrypted[own].any()


def _rows(flags: Flags) -> Integers:
    return np.flatnonzero(flags)


# ---- ClientHello, cipher suite, streams -----------------------------------------------------


def long_rtt(client: Trace, *, round_trip: float) -> Verdict | None:
    """Whether the client tried again while it had no answer to its first flight; ``round_trip``: of the link, seconds.

    When its probe time-out ends, a client has to send something ack-eliciting (RFC 9002, section 6.2.4): its
    ClientHello, or a PING. The first time-out ends after 1 s if it assumes a round trip of 333 ms, as it should, and
    later if it knows a longer one of an earlier connection (section 6.2.2). The longest that it can know is that of the
    link. A client fails if it sent no probe although such a time-out had ended.
    """
    own = ~client.from_server & (client.form == Form.INITIAL)
    flight, answers = _rows(own & client.eliciting), _rows(client.from_server)
    flight = flight[(np.arange(len(flight)) == 0) | ~np.isin(flight, _new_crypto(client, own))]
    if not len(flight):
        return failed(ErrorCode.HELLO_NOT_REPEATED, "The client sent no Initial that asks for an acknowledgement.")
    until = client.time[answers[0]] if len(answers) else np.inf
    times = client.time[flight]
    longest = FIRST_TIMEOUT * max(INITIAL_RTT, round_trip)
    if ((times > times[0] + PROBE) & (times < until)).any() or until - times[0] < longest:
        return None
    first = frames_of(client, flight[:1])
    waited = f"in {seconds(float(until - times[0]))}" if len(answers) else "and no answer came"
    reason = (
        f"The client sent no probe after its first Initial ({first}) {waited}; with a round trip of "
        f"{seconds(round_trip)} the longest first probe time-out is {seconds(longest)}."
    )
    return failed(ErrorCode.HELLO_NOT_REPEATED, reason)


def _new_crypto(client: Trace, chosen: Flags) -> Integers:
    """Chosen packets with a part of the ClientHello that none before had: a large one needs several packets."""
    ranges, rows = ByteRanges(), list[int]()
    for packet, offset, length in zip(client.crypto.packet, client.crypto.offset, client.crypto.length, strict=True):
        if chosen[packet] and ranges.add(int(offset), int(offset + length)):
            rows.append(int(packet))
    return np.array(rows, dtype=np.int64)


def chacha20(client: Trace) -> Verdict | None:
    """Whether the client offered ChaCha20 only, and the server took it (RFC 8446, section 4.1.3).

    Values that are reserved to keep servers tolerant (RFC 8701) are no cipher suites.
    """
    for connection in client.connections:
        offered = [suite for suite in connection.offered if suite & 0x0F0F != 0x0A0A]
        if set(offered) != {CHACHA20}:
            return failed(ErrorCode.WRONG_CIPHER, f"The client offered {suites(offered)}, not only 0x1303.")
        if connection.cipher != CHACHA20:
            return failed(ErrorCode.WRONG_CIPHER, f"The server chose {suites([connection.cipher])}, not 0x1303.")
    return None if client.connections else failed(ErrorCode.WRONG_CIPHER, "The trace shows no ClientHello.")


def suites(numbers: Iterable[int]) -> str:
    """Cipher suites by their numbers."""
    return ", ".join(f"0x{number:04x}" for number in numbers) or "nothing"


def multiplexing(client: Trace) -> Verdict | None:
    """Whether the server allowed at most 1000 streams at first (initial_max_streams_bidi; RFC 9000, 4.6 and 18.2)."""
    parameters = next((each.server_parameters for each in client.connections if each.server_parameters), None)
    if parameters is None:
        return sealed("the server's transport parameters")
    return stream_limit(int(parameters.get("initial_max_streams_bidi", 0)))


def stream_limit(limit: int) -> Verdict | None:
    """Whether a client may have to wait before it opens 2000 streams."""
    if limit <= MOST_STREAMS:
        return None
    reason = (
        f"The server allows {counted(limit, 'stream')} at first, more than {MOST_STREAMS}, so that "
        "none ever has to wait."
    )
    return failed(ErrorCode.STREAM_LIMIT, reason)


# ---- sessions -------------------------------------------------------------------------------


def resumption(client: Trace) -> Verdict | None:
    """Whether the server proved itself by certificates first, by the earlier session then, and served files over it.

    RFC 8446, section 2.2.
    """
    flights = client.from_server & (client.form == Form.HANDSHAKE)
    own = client.connection
    seen = list(dict.fromkeys(own[flights].tolist()))
    if len(seen) != 2:
        reason = f"The server's Handshake packets are of {counted(len(seen), 'connection')} instead of 2."
        return failed(ErrorCode.HANDSHAKE_COUNT, reason)
    packets = client.messages.packet[client.messages.kind == Message.CERTIFICATE]
    packets = packets[client.from_server[packets]]
    certified = own[packets].tolist()
    for connection, which in zip(seen, ("first", "second"), strict=True):
        if not client.decrypted[flights & (own == connection)].any():
            return sealed(f"the server's Handshake packets of the {which} connection")
    if seen[0] not in certified:
        return failed(ErrorCode.CERTIFICATE_MISSING, "The server sent no certificate in the first handshake.")
    if seen[1] in certified:
        again = packets[own[packets] == seen[1]]
        reason = f"The server sent its certificate again in the second handshake ({frames_of(client, again)})."
        return failed(ErrorCode.CERTIFICATE_RESENT, reason)
    if not client.connections[seen[1]].resumed:
        reason = "The server did not accept the earlier session: its second ServerHello has no pre_shared_key."
        return failed(ErrorCode.SESSION_NOT_RESUMED, reason)
    answers = client.frames.packet[client.frames.stream % 4 == 0]
    answers = answers[client.from_server[answers]]
    if len(answers) and not (own[answers] == seen[1]).any():
        return failed(ErrorCode.SESSION_NOT_RESUMED, "No part of a file came over the resumed connection.")
    return None


def zero_rtt(client: Trace) -> Verdict | None:
    """Whether most requests were early, and the server took them (RFC 9001, section 4.6).

    A request is early if the server answered it on a connection with 0-RTT packets, and the client sent no byte of it
    in a 1-RTT packet, as it does with all of them if the server refuses. Packets that only the early keys open are not
    needed for that: not every endpoint logs these keys. A client may run into its congestion window or the remembered
    limits, so half of the requests of both connections is enough.
    """
    sent = ~client.from_server & (client.form == Form.ZERO_RTT)
    if not sent.any():
        return failed(ErrorCode.EARLY_DATA_MISSING, "The client sent no 0-RTT packet.")
    second = np.isin(client.connection, client.connection[sent]) & (client.form == Form.ONE_RTT)
    for side, packets in (("server", second & client.from_server), ("client", second & ~client.from_server)):
        if packets.any() and not (packets & client.decrypted).any():
            return sealed(f"the {side}'s 1-RTT packets")
    packets, frames = client.frames.packet, client.frames
    of_client = ~client.from_server[packets]
    late = of_client & second[packets] & (frames.length > 0)
    asked = _requests(client, frames.stream % 4 == 0)
    early = _requests(client, second[packets] & ~of_client) - _requests(client, late)
    if len(early) >= EARLY_SHARE * len(asked):
        return None
    taken = any(client.connections[number].early_data for number in {*client.connection[sent].tolist()} - {-1})
    refused = "" if taken else "; the server did not accept early data"
    where = f" ({frames_of(client, packets[late])})" if late.any() else ""
    reason = f"Only {len(early)} of {counted(len(asked), 'request was', 'requests were')} early{refused}{where}."
    return failed(ErrorCode.EARLY_DATA_LATE, reason)


def _requests(client: Trace, chosen: Flags) -> set[tuple[int, int]]:
    """Connection and stream of the chosen STREAM frames that belong to requests."""
    rows = chosen & (client.frames.stream % 4 == 0)
    return set(
        zip(client.connection[client.frames.packet[rows]].tolist(), client.frames.stream[rows].tolist(), strict=True)
    )


# ---- key update -----------------------------------------------------------------------------


def key_update(client: Trace, server: Trace) -> Verdict | None:
    """Whether one side updated the keys once it might, and the other followed (RFC 9001, sections 6.1 and 6.2).

    It might when the handshake was confirmed (section 4.1.2): the client by HANDSHAKE_DONE, or an acknowledgement in a
    1-RTT packet; the server when it could send HANDSHAKE_DONE. Which of them begins does not matter.
    """
    for trace, from_server, side in ((client, False, "client"), (server, True, "server")):
        if not _updated(trace, from_server=from_server).any():
            packets = (trace.from_server == from_server) & (trace.form == Form.ONE_RTT)
            if not trace.decrypted[packets].any():
                return sealed(f"the {side}'s 1-RTT packets")
            return not_updated(side, int(packets.sum()))
    mine, theirs = (_rows(_updated(client, from_server=side)) for side in (False, True))
    by_server = bool(len(theirs) and theirs[0] < mine[0])
    trace, side = (server, "server") if by_server else (client, "client")
    first = _rows(_updated(trace, from_server=by_server))[:1]
    confirmations = trace.signals.packet[trace.signals.kind == Frame.HANDSHAKE_DONE]
    if not by_server:
        acks = trace.acks.packet[trace.form[trace.acks.packet] == Form.ONE_RTT]
        confirmations = np.concatenate([confirmations, acks])
    confirmations = confirmations[trace.from_server[confirmations]]
    if len(confirmations) and confirmations.min() < first[0] + by_server:
        return None
    reason = f"The {side} updated the keys ({frames_of(trace, first)}) before the handshake was confirmed."
    return failed(ErrorCode.KEY_UPDATE_ORDER, reason)


def _updated(trace: Trace, *, from_server: bool) -> Flags:
    updated: Flags = (trace.from_server == from_server) & trace.decrypted & (trace.generation > 0)
    return updated


def not_updated(side: str, packets: int) -> Verdict:
    """The verdict on a side that never used new keys."""
    reason = f"The {side} sent {packets} 1-RTT packets, none of them with updated keys."
    return failed(ErrorCode.KEY_UPDATE_MISSING, reason)
