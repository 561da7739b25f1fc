"""Says why a run did not succeed, from what its traces show: a cause, and one sentence with the packets that prove it.

It states what is on the wire, never what an endpoint may have meant. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from quicsat.analysis.close_reasons import close_sentence, code_name, is_error
from quicsat.analysis.failure_context import END_MARGIN, broken, failed_connection, is_stall, last_progress, last_sent
from quicsat.analysis.failure_context import FailureContext as FailureContext
from quicsat.analysis.link_events import LinkHistory, LinkStop, link_stop
from quicsat.model.arrays import Integers
from quicsat.model.outcomes import Cause
from quicsat.model.text import counted, first_few
from quicsat.model.units import byte_size, mbit_per_s, seconds
from quicsat.traces.columns import Form, Frame, Message, Trace
from quicsat.traces.series import Series, window_rate
from quicsat.traces.tcp_events import TcpTracePair

Explanation = tuple[Cause, str]

SIDES = {False: "client", True: "server"}
FORM_NAMES = {
    Form.INITIAL: "Initial", Form.ZERO_RTT: "0-RTT packet", Form.HANDSHAKE: "Handshake packet", Form.RETRY: "Retry",
    Form.ONE_RTT: "1-RTT packet", Form.VERSION_NEGOTIATION: "Version Negotiation", Form.UNKNOWN: "unknown packet",
    Form.STATELESS_RESET: "stateless reset",
}  # fmt: skip
STEPS = (
    (True, Message.SERVER_HELLO, "the server's ServerHello"),
    (True, Message.FINISHED, "the server's Finished"),
    (False, Message.FINISHED, "the client's Finished"),
)
"""The messages without which a handshake is not complete, in their order (RFC 8446, section 2)."""
BLOCK = 3000
"""Bytes below its limit at which a sender of whole packets has nothing left to send."""
BLOCKED_SHARE = 0.5
"""Share of the packets with new data that were sent at a limit of flow control, if the receiver is the bottleneck."""
SLOW_SHARE = 0.25
"""Share of the link's rate below which loss and a small window, not the link, are the bottleneck."""
MANY = 5
"""Packet numbers that a sentence names."""


def explain(context: FailureContext) -> Explanation:
    """The first cause that the traces prove; ``Cause.NONE`` if they prove none, without a sentence or with the reason.

    Of a run with several connections, the one on which it failed is examined and named.
    """
    explanation = _nothing(context)
    if explanation is not None:
        return explanation
    failed = failed_connection(context)
    link = _link(failed)
    if link is not None and not link.recovered:
        return link.cause, f"{failed.name}{link.sentence}"
    for judge in (_stream_reset, _closed, _reset, _handshake, _request, _whole, _flow_control, _stall, _slow):
        explanation = judge(failed)
        if explanation is not None:
            cause, sentence = explanation
            more = f" {link.sentence}" if link else ""
            return cause, sentence if cause is Cause.ALL_ARRIVED else f"{failed.name}{sentence}{more}"
    return Cause.NONE, link.sentence if link else ""


def explain_tcp(trace_pair: TcpTracePair, series: Series, size: int, link: LinkHistory, duration: float) -> Explanation:
    """The same for a run over TCP, whose payload stays encrypted; ``duration``: see ``FailureContext``."""
    client = trace_pair.seen
    if not (~client.from_server).any():
        return Cause.NOTHING_SENT, "The client sent no segment."
    if not client.from_server.any():
        return Cause.SERVER_SILENT, f"None of the client's {len(client)} segments was answered."
    stop, last = last_progress(series), max(last_sent(series), duration - END_MARGIN)
    stopped = link_stop(link, series, stop, last) if is_stall(series, stop, last) else None
    if stopped is not None and not stopped.recovered:
        return stopped.cause, stopped.sentence
    resets = np.flatnonzero(client.flags & 0x04)
    if len(resets):
        side = SIDES[bool(client.from_server[resets[0]])]
        cause = Cause.CLOSED_BY_SERVER if side == "server" else Cause.CLOSED_BY_CLIENT
        when = seconds(float(client.time[resets[0]] - client.time[0]))
        return (
            cause,
            f"The {side} reset the connection after {when} (segment {int(resets[0]) + 1} of the client's trace).",
        )
    if not len(series.requests):
        return Cause.HANDSHAKE_INCOMPLETE, "The client never sent anything after the server's first TLS record."
    got = int(series.arrived.new.sum())
    rate = window_rate(series.arrived.time, series.arrived.new).value[-50:].mean() if len(series.arrived) else 0.0
    return Cause.TOO_SLOW, f"{byte_size(got)} of {byte_size(size)} arrived, at last with {mbit_per_s(float(rate))}."


# ---- the link --------------------------------------------------------------------------------


def _link(context: FailureContext) -> LinkStop | None:
    """What the link did to a transfer that stopped, unless an endpoint closed the connection soon."""
    stop, ends = last_progress(context.series), [context.last]
    ends += [float(trace.time[int(trace.signals.packet[row])]) - start for trace, row, start in context.closes()]
    if context.arrived >= context.size or not is_stall(context.series, stop, min(ends)):
        return None
    return link_stop(context.link, context.series, stop, context.last)


# ---- before the response ---------------------------------------------------------------------


def _nothing(context: FailureContext) -> Explanation | None:
    client = context.trace_pair.client
    mine = int((~client.from_server).sum())
    if not mine:
        return Cause.NOTHING_SENT, "The client sent no packet."
    if not client.from_server.any():
        reached = int((~context.trace_pair.server.from_server).sum())
        if not reached:
            return (
                Cause.LINK_LOSS,
                f"The link lost {'the only packet' if mine == 1 else f'all {mine} packets'} of the client.",
            )
        return (
            Cause.SERVER_SILENT,
            f"The client sent {counted(mine, 'packet')}, {reached} reached the server, and no answer came.",
        )
    return None


def _stream_reset(context: FailureContext) -> Explanation | None:
    """Responses that the server ended early, of its own accord or because the client asked for it.

    A connection that was closed with an error tells more.
    """
    client = context.trace_pair.client
    signals, packets = client.signals, client.signals.packet
    resets = client.from_server[packets] & np.isin(signals.kind, (Frame.RESET_STREAM, Frame.RESET_STREAM_AT))
    asked = ~client.from_server[packets] & (signals.kind == Frame.STOP_SENDING)
    whole = client.frames.stream[client.from_server[client.frames.packet] & client.frames.fin]
    early = (signals.first % 4 == 0) & ~np.isin(signals.first, whole)
    rows = np.flatnonzero((resets | asked) & early)
    if not len(rows) or context.arrived >= context.size or broken(context):
        return None
    side = SIDES[bool(resets[rows[0]])]
    packet, verb = int(packets[rows[0]]), "reset" if side == "server" else "stopped"
    return Cause.STREAM_RESET, (
        f"The {side} {verb} {counted(len(np.unique(signals.first[rows])), 'response')} before the end, first that on "
        f"stream {int(signals.first[rows[0]])} after {seconds(float(client.time[packet]) - context.start)} with "
        f"{code_name(Frame.CLOSE_APPLICATION, int(signals.second[rows[0]]))} (frame {int(client.frame[packet])} of the "
        "client's trace)."
    )


def _closed(context: FailureContext) -> Explanation | None:
    """An endpoint that gave up; a close without error counts only while something was missing."""
    for trace, row, start in context.closes():
        if (
            not is_error(int(trace.signals.kind[row]), int(trace.signals.first[row]))
            and context.arrived >= context.size
        ):
            continue
        server = trace.from_server[int(trace.signals.packet[row])]
        cause = Cause.CLOSED_BY_SERVER if server else Cause.CLOSED_BY_CLIENT
        place = "client" if trace is context.trace_pair.client else "server"
        return cause, close_sentence(trace, row, start, place)
    return None


def _reset(context: FailureContext) -> Explanation | None:
    """A server that no longer knows the connection."""
    client = context.trace_pair.client
    resets = np.flatnonzero(client.from_server & (client.form == Form.STATELESS_RESET))
    if not len(resets) or context.arrived >= context.size:
        return None
    when = seconds(float(client.time[resets[0]]) - context.start)
    count = f"{len(resets)} stateless resets" if len(resets) > 1 else "a stateless reset"
    return Cause.CLOSED_BY_SERVER, (
        f"The server abandoned the connection without sending a CONNECTION_CLOSE frame: it sent {count}, the first "
        f"after {when} (frame {int(client.frame[resets[0]])} of the client's trace)."
    )


def _handshake(context: FailureContext) -> Explanation | None:
    """Which message never arrived, and who sent last."""
    client = context.trace_pair.client
    protected = (client.form == Form.ONE_RTT) & ~client.from_server
    if protected.any():
        return None
    refused = np.flatnonzero(client.from_server & (client.form == Form.VERSION_NEGOTIATION))
    if len(refused) and not _has(client, True, Message.SERVER_HELLO):
        frame = int(client.frame[refused[0]])
        return Cause.HANDSHAKE_INCOMPLETE, (
            f"The server answered with Version Negotiation (frame {frame}), and the client did not go on in another "
            "version."
        )
    missing = next((name for side, kind, name in STEPS if not _has(client, side, kind)), "an acknowledgement")
    last = len(client) - 1
    side, form = SIDES[bool(client.from_server[last])], FORM_NAMES[Form(int(client.form[last]))]
    when = seconds(float(client.time[last]) - context.start)
    return Cause.HANDSHAKE_INCOMPLETE, (
        f"The handshake was never complete: {missing} is missing, and the {side} sent last, after {when}: {form} "
        f"{int(client.number[last])}{_lost(context)}."
    )


def _has(trace: Trace, from_server: bool, kind: Message) -> bool:
    rows = trace.messages.kind == kind
    return bool((trace.from_server[trace.messages.packet[rows]] == from_server).any())


def _lost(context: FailureContext) -> str:
    forward, back = int(context.series.forward.lost.sum()), int(context.series.back.lost.sum())
    return f"; the link lost {counted(forward, 'packet')} forward and {back} return" if forward + back else ""


def _request(context: FailureContext) -> Explanation | None:
    requests = context.series.requests
    if not _decrypted(context):
        return None
    if not len(requests):
        return Cause.NO_REQUEST, "The handshake was complete, but the client never asked for a file."
    if not len(context.series.sent):
        came = requests.arrived[np.isfinite(requests.arrived)]
        reached = f"reached the server after {seconds(float(came[0]))}" if len(came) else "never reached the server"
        return Cause.NO_RESPONSE, f"The request {reached}, and the server sent not a byte of the response."
    return None


def _whole(context: FailureContext) -> Explanation | None:
    if context.arrived < context.size:
        return None
    arrived = (context.run or context).series.arrived
    last = float(arrived.time[arrived.new > 0][-1])
    return (
        Cause.ALL_ARRIVED,
        f"All {byte_size(context.arrived)} of the response had arrived at the client after {seconds(last)}.",
    )


# ---- during the response ---------------------------------------------------------------------


def _flow_control(context: FailureContext) -> Explanation | None:
    """A server that could send no more than the client allowed: for good, or most of the time."""
    limits = list(_at_limit(context))
    if not limits:
        return None
    sent = context.series.sent
    fresh = int((sent.new > 0).sum())
    row, which, limit = limits[-1]
    last_new = float(sent.time[sent.new > 0][-1])
    if is_stall(context.series, last_new, context.last) and float(sent.time[row]) >= last_new:
        return Cause.FLOW_CONTROL, (
            f"The server had used up the flow control limit of the {which}, {limit} bytes, with packet "
            f"{int(sent.number[row])} after {seconds(last_new)}, and the client never raised it."
        )
    if len(limits) > BLOCKED_SHARE * fresh:
        return Cause.SLOW_RECEIVER, (
            f"The receiver was too slow: {len(limits)} of {counted(fresh, 'packet')} with new data used "
            "up the flow control limit "
            f"that the client had given, the last of them packet {int(sent.number[row])} at {limit} bytes ({which})."
        )
    return None


def _at_limit(context: FailureContext) -> Iterator[tuple[int, str, int]]:
    """The rows of ``sent`` that left no room below a limit as it was known to the server, and which limit."""
    trace, sent = context.trace_pair.server, context.series.sent
    parameters = trace.connections[0].client_parameters if trace.connections else {}
    whole = int(parameters.get("initial_max_data", 0))
    each = int(parameters.get("initial_max_stream_data_bidi_local", 0))
    if not whole:
        return
    signals, start = trace.signals, context.server_start
    raises = [
        (float(trace.time[packet]) - start, kind, first, second)
        for packet, kind, first, second in signals.rows("packet", "kind", "first", "second")
        if kind in (Frame.MAX_DATA, Frame.MAX_STREAM_DATA) and not trace.from_server[packet]
    ]
    raises.reverse()
    streams: dict[int, int] = {}
    tops: dict[int, int] = {}
    for row, (time, stream, offset, length, new) in enumerate(sent.rows("time", "stream", "offset", "length", "new")):
        while raises and raises[-1][0] <= time:
            _, kind, first, second = raises.pop()
            if kind == Frame.MAX_DATA:
                whole = max(whole, first)
            else:
                streams[first] = max(streams.get(first, each), second)
        tops[stream] = max(tops.get(stream, 0), offset + length)
        if not new:
            continue
        if streams.get(stream, each) - tops[stream] < BLOCK and tops[stream] < context.left:
            yield row, f"stream {stream}", streams.get(stream, each)
        elif whole - sum(tops.values()) < BLOCK and sum(tops.values()) < context.left:
            yield row, "connection", whole


def _stall(context: FailureContext) -> Explanation | None:
    """No new byte for long: both endpoints were silent, or the server had stopped."""
    sent, forward = context.series.sent, context.series.forward
    last_new = float(sent.time[sent.new > 0].max(initial=0.0))
    idle = _idle_timeout(context)
    if idle is not None and context.duration - context.end > idle - END_MARGIN:
        sentence = (
            f"Neither side sent anything after {seconds(context.end)}, {_last_words(context)}; the idle time-out is "
            f"{seconds(idle)}."
        )
        return Cause.IDLE_TIMEOUT, sentence
    gap = _longest_silence(context)
    if idle is not None and gap[1] > idle:
        return Cause.IDLE_TIMEOUT, (
            f"Neither side sent anything for {seconds(gap[1])} from {seconds(gap[0])} on; "
            f"the idle time-out is {seconds(idle)}."
        )
    if not _decrypted(context):
        return Cause.NONE, (
            "No key log decrypts the packets after the handshake, so the traces do not show what arrived. The "
            f"last packet came after {seconds(context.end)}."
        )
    if not is_stall(context.series, last_new, context.last):
        return None
    lost = forward.number[forward.lost & (forward.number >= 0)]
    if not (sent.new > 0).any():
        return (
            Cause.SERVER_STOPPED,
            f"The server sent no byte of the files, {_last_words(context)}{_names(context, lost)}.",
        )
    number = int(sent.number[np.flatnonzero(sent.new > 0)[-1]])
    cause = Cause.CONGESTION_CONTROL if len(lost) and _keeps_sending(context, last_new) else Cause.SERVER_STOPPED
    return cause, (
        f"The server sent its last new byte after {seconds(last_new)} in packet {number}, with "
        f"{byte_size(context.arrived)} of {byte_size(context.size)} arrived{_names(context, lost)}."
    )


def _decrypted(context: FailureContext) -> bool:
    """Whether there are keys for packets after the handshake."""
    client = context.trace_pair.client
    return bool(client.decrypted[client.form == Form.ONE_RTT].any())


def _last_words(context: FailureContext) -> str:
    """The last packet of each side, by number."""
    sides = (("server", context.series.forward), ("client", context.series.back))
    last = [f"packet {int(sent.number[-1])} of the {side}" for side, sent in sides if len(sent)]
    return f"the last being {' and '.join(last)}"


def _keeps_sending(context: FailureContext, since: float) -> bool:
    """Whether the server sends again what was lost."""
    sent = context.series.sent
    return bool((sent.retransmission & (sent.time > since)).any())


def _longest_silence(context: FailureContext) -> tuple[float, float]:
    """When the longest time began in which neither end sent, and how long it was."""
    times = np.sort(np.concatenate([context.series.forward.sent, context.series.back.sent]))
    gaps = np.diff(times)
    if not len(gaps):
        return 0.0, 0.0
    place = int(gaps.argmax())
    return float(times[place]), float(gaps[place])


def _idle_timeout(context: FailureContext) -> float | None:
    """The effective idle time-out, seconds (RFC 9000, section 10.1); None if there is none or it is not known."""
    for connection in context.trace_pair.client.connections:
        values = [
            int(parameters["max_idle_timeout"])
            for parameters in (connection.client_parameters, connection.server_parameters)
            if parameters.get("max_idle_timeout")
        ]
        if values:
            return min(values) / 1000
    return None


def _slow(context: FailureContext) -> Explanation | None:
    """The transfer went on, but not fast enough."""
    arrived, forward = context.series.arrived, context.series.forward
    if not len(arrived):
        return None
    rate = 8 * int(arrived.new.sum()) / max(float(arrived.time[-1] - arrived.time[0]), 1e-3)
    fate = f"{byte_size(context.arrived)} of {byte_size(context.size)} arrived, with {mbit_per_s(rate)} on average"
    lost = forward.number[forward.lost & (forward.number >= 0)]
    if len(lost) and rate < SLOW_SHARE * context.forward_rate:
        flying = float(np.median(context.series.in_flight.value)) if len(context.series.in_flight) else 0.0
        return Cause.CONGESTION_CONTROL, (
            f"Congestion control kept {byte_size(flying)} in flight (median): {fate}{_names(context, lost)}."
        )
    return Cause.TOO_SLOW, f"The time was too short: {fate}."


def _names(context: FailureContext, lost: Integers) -> str:
    """Packets that the link lost, the first few by number, and what dropped packets in the run."""
    if not len(lost):
        return ""
    kinds = f" (dropped in the whole run: {context.link.dropped})" if context.link.dropped else ""
    return f"; the link lost packets {first_few(lost.tolist(), MANY)}{kinds}"
