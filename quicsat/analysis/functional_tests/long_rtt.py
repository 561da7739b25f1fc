"""LR: the handshake completes although the round trip is longer than the first probe time-out; pure."""

from __future__ import annotations

import numpy as np

from quicsat.analysis.functional_tests.rule import Observation, connections, rule
from quicsat.analysis.run_outcome import failed, frames_of
from quicsat.model.arrays import Flags, Integers
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.model.text import counted
from quicsat.model.units import seconds
from quicsat.traces.columns import Form, Trace
from quicsat.traces.streams import ByteRanges

INITIAL_RTT = 0.333
"""Seconds that a client takes for the round trip until it has measured one (RFC 9002, section 6.2.2)."""
FIRST_TIMEOUT = 3.0
"""The first probe time-out in initial round trips: the round trip and four times its half (sections 5.3 and 6.2.1)."""
PROBE = 0.05
"""Seconds after which a packet is no part of a client's first flight any more."""


@rule(
    Check.LONG_RTT,
    requirement=(
        "the client sends a second ack-eliciting packet before the server's first packet arrives; see [LR](#lr-long-"
        "round-trip)"
    ),
    rfc="9002: 6.2.1, 6.2.2, 6.2.4",
    qir="requires two ClientHellos, although a PING is also a valid probe",
)
def long_rtt(seen: Observation) -> Verdict | None:
    return connections(seen) or (
        upstream(seen.client) if seen.upstream else standard(seen.client, round_trip=seen.case.link.round_trip_delay)
    )


def standard(client: Trace, *, round_trip: float) -> Verdict | None:
    """Whether the client tried again while it had no answer to its first flight; ``round_trip``: of the link, seconds.

    When its probe time-out ends, a client has to send something ack-eliciting (RFC 9002, section 6.2.4): its
    ClientHello, or a PING. The first time-out ends after 1 s if it assumes a round trip of 333 ms, as it should, and
    later if it knows a longer one of an earlier connection (section 6.2.2). The longest that it can know is that of the
    link. A client fails if it sent no probe although such a time-out had ended.
    """
    own = ~client.from_server & (client.form == Form.INITIAL)
    flight, answers = np.flatnonzero(own & client.eliciting), np.flatnonzero(client.from_server)
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
    for packet, offset, length in client.crypto.rows("packet", "offset", "length"):
        if chosen[packet] and ranges.add(offset, offset + length):
            rows.append(packet)
    return np.array(rows, dtype=np.int64)


def upstream(client: Trace) -> Verdict | None:
    """Whether the client sent its ClientHello twice."""
    hellos = np.unique(client.crypto.packet[client.crypto.offset == 0])
    hellos = hellos[~client.from_server[hellos] & (client.form[hellos] == Form.INITIAL)]
    if len(hellos) >= 2:
        return None
    reason = f"The client sent its ClientHello {counted(len(hellos), 'time')}, not twice ({frames_of(client, hellos)})."
    return failed(ErrorCode.HELLO_NOT_REPEATED, reason)
