"""The events of one end of a run as qlog, from its decrypted trace; pure.

draft-ietf-quic-qlog-main-schema-14 and draft-ietf-quic-qlog-quic-events-13. Frames of a packet are in the order of
their kinds, since ``Trace`` does not keep that of the packet; PADDING is left out of packets with other frames.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from quicsat.model.arrays import Floats
from quicsat.model.negotiated import CIPHERS, DEFAULTS
from quicsat.traces.columns import Form, Frame, Message, Trace
from quicsat.traces.series import Samples

SCHEMA = "urn:ietf:params:qlog:events:quic-13"
PACKET_TYPES = {
    Form.INITIAL: "initial", Form.ZERO_RTT: "0RTT", Form.HANDSHAKE: "handshake", Form.RETRY: "retry",
    Form.ONE_RTT: "1RTT", Form.VERSION_NEGOTIATION: "version_negotiation", Form.UNKNOWN: "unknown",
    Form.STATELESS_RESET: "stateless_reset",
}  # fmt: skip
TRANSPORT_ERRORS = (
    "no_error", "internal_error", "connection_refused", "flow_control_error", "stream_limit_error",
    "stream_state_error", "final_size_error", "frame_encoding_error", "transport_parameter_error",
    "connection_id_limit_error", "protocol_violation", "invalid_token", "application_error", "crypto_buffer_exceeded",
    "key_update_error", "aead_limit_reached", "no_viable_path",
)  # fmt: skip
"""By their codes (RFC 9000, section 20.1)."""
ECN_MARKS = ("Not-ECT", "ECT(1)", "ECT(0)", "CE")
"""By ``Trace.ecn``."""
CRYPTO_ERRORS = range(0x100, 0x200)
CONNECTION_IDS = (
    "original_destination_connection_id", "initial_source_connection_id", "retry_source_connection_id",
    "stateless_reset_token",
)  # fmt: skip
"""Transport parameters that hold hexadecimal digits, both here and in qlog."""

Event = dict[str, Any]
Timed = tuple[float, str, Event]
"""Seconds, name and data of an event."""


def endpoint_events(trace: Trace, times: Floats, *, server: bool) -> Iterator[tuple[Timed, str]]:
    """All events of an endpoint, by time, each with the group of its connection, empty if that is unknown.

    ``times``: seconds of the packets of ``trace``, from whenever the qlog counts.
    """
    frames = frames_by_packet(trace)
    notices = _notices(trace, server=server)
    groups = _groups(trace)
    datagrams = _datagrams(trace, times)
    known = set[int]()
    for row, (time, from_server, connection) in enumerate(
        zip(times.tolist(), trace.from_server.tolist(), trace.connection.tolist(), strict=True)
    ):
        group = groups[connection] if connection >= 0 else ""
        if connection >= 0 and connection not in known:
            known.add(connection)
            yield (time, "quic:connection_started", _ends(trace, row, server=server)), group
        sent = from_server == server
        if row in datagrams:
            yield (time, f"quic:udp_datagrams_{'sent' if sent else 'received'}", datagrams[row]), group
        data: Event = {"header": _header(trace, row), "raw": {"length": int(trace.length[row])}}
        if trace.decrypted[row]:
            data["frames"] = frames.get(row) or [{"frame_type": "padding"}]
        if trace.form[row] == Form.VERSION_NEGOTIATION and (versions := trace.tokens[trace.token[row]]):
            data["supported_versions"] = [versions[at : at + 8] for at in range(0, len(versions) - 7, 8)]
        yield (time, f"quic:packet_{'sent' if sent else 'received'}", data), group
        for name, told in notices.get(row, ()):
            yield (time, name, told), group


def _datagrams(trace: Trace, times: Floats) -> dict[int, Event]:
    """Sizes and marks of datagrams that the export states, by the row of their first packet.

    Of those with long headers, with more than their packets, or with another ECN mark than the one before in their
    direction, and of those at the same time behind one of these. All others have one packet, and its size.
    """
    firsts = np.flatnonzero(np.diff(trace.frame, prepend=-1))
    if not len(firsts):
        return {}
    sizes, way, marks = trace.size[firsts], trace.from_server[firsts], trace.ecn[firsts]
    changed = np.zeros(len(firsts), dtype=np.bool_)
    for own in (way, ~way):
        changed[own] = np.diff(marks[own], prepend=0) != 0
    told = changed | (trace.form[firsts] != Form.ONE_RTT) | (sizes != np.add.reduceat(trace.length, firsts))
    told[1:] |= told[:-1] & (np.diff(times[firsts]) == 0)
    found: dict[int, Event] = {}
    for row, size, mark, is_changed in zip(
        firsts[told].tolist(), sizes[told].tolist(), marks[told].tolist(), changed[told].tolist(), strict=True
    ):
        found[row] = {"count": 1, "raw": [{"length": size}]} | ({"ecn": [ECN_MARKS[mark]]} if is_changed else {})
    return found


def recovery_events(rtt: Samples, in_flight: Samples) -> Iterator[Timed]:
    """What a sender must have known at each acknowledgement: its newest round trip, and the bytes in flight."""
    places = np.searchsorted(in_flight.time, rtt.time, "right") - 1
    for time, trip, place in zip(rtt.time.tolist(), rtt.value.tolist(), places.tolist(), strict=True):
        data: Event = {"latest_rtt": milliseconds(trip)}
        if place >= 0:
            data["bytes_in_flight"] = int(in_flight.value[place])
        yield time, "quic:recovery_metrics_updated", data


def window_events(cwnd: Samples) -> Iterator[Timed]:
    """Each change of a sender's congestion window, as its own qlog states it."""
    for time, window in zip(cwnd.time.tolist(), cwnd.value.tolist(), strict=True):
        yield time, "quic:recovery_metrics_updated", {"congestion_window": int(window)}


def milliseconds(seconds: float) -> float:
    """To the microsecond."""
    return round(seconds * 1000, 3)


def _groups(trace: Trace) -> list[str]:
    """Of each connection: the first destination connection id, with its number if several have the same."""
    found = list[str]()
    for connection in range(len(trace.connections)):
        rows = np.flatnonzero(trace.connection == connection)
        name = trace.connection_ids[int(trace.dcid[rows[0]])] if len(rows) else ""
        found.append(f"{name}-{connection}" if not name or name in found else name)
    return found


def _ends(trace: Trace, row: int, *, server: bool) -> Event:
    ends = [_end(text) for text in trace.paths[int(trace.path[row])].split(" ")]
    local, remote = reversed(ends) if server else ends
    return {"local": local, "remote": remote}


def _end(text: str) -> Event:
    address, _, port = text.rpartition(":")
    version = "v6" if ":" in address else "v4"
    return {f"ip_{version}": address.strip("[]"), f"port_{version}": int(port)}


def _header(trace: Trace, row: int) -> Event:
    form, number = int(trace.form[row]), int(trace.number[row])
    header: Event = {"packet_type": PACKET_TYPES[Form(form)]}
    if number >= 0:
        header["packet_number"] = number
    if trace.version[row] >= 0:
        header["version"] = f"{int(trace.version[row]):08x}"
        header["scid"] = trace.connection_ids[int(trace.scid[row])]
    if form not in (Form.UNKNOWN, Form.STATELESS_RESET):
        header["dcid"] = trace.connection_ids[int(trace.dcid[row])]
    if form == Form.ONE_RTT and trace.spin[row] >= 0:
        header["spin_bit"] = bool(trace.spin[row])
    if form == Form.ONE_RTT and trace.decrypted[row]:
        header["key_phase"] = int(trace.generation[row])
    if form in (Form.INITIAL, Form.RETRY) and (token := trace.tokens[int(trace.token[row])]):
        header["token"] = _token(token)
    return header


def _token(digits: str) -> Event:
    return {"raw": {"length": len(digits) // 2, "data": digits}}


# ---- frames ---------------------------------------------------------------------------------


def frames_by_packet(trace: Trace) -> dict[int, list[Event]]:
    """The frames of each packet that has some, as qlog has them, by its row."""
    found = defaultdict[int, list[Event]](list)
    exponents = delay_exponents(trace)
    lows, highs = trace.ack_ranges.smallest.tolist(), trace.ack_ranges.largest.tolist()
    for packet, delay, count, start, ect0, ect1, ce in trace.acks.rows(
        "packet", "delay", "ranges", "start", "ect0", "ect1", "ce"
    ):
        pairs = zip(lows[start : start + count], highs[start : start + count], strict=True)
        ranges = [[low] if low == high else [low, high] for low, high in pairs][::-1]
        scale = 2 ** exponents(packet) / 1e6
        frame = {"frame_type": "ack", "ack_delay": milliseconds(delay * scale), "acked_ranges": ranges}
        found[packet].append(frame | ({"ect0": ect0, "ect1": ect1, "ce": ce} if ce >= 0 else {}))
    for packet, offset, length in trace.crypto.rows("packet", "offset", "length"):
        found[packet].append({"frame_type": "crypto", "offset": offset, "raw": {"payload_length": length}})
    for packet, stream, offset, length, fin in trace.frames.rows("packet", "stream", "offset", "length", "fin"):
        frame = {"frame_type": "stream", "stream_id": stream, "offset": offset, "raw": {"payload_length": length}}
        found[packet].append(frame | ({"fin": True} if fin else {}))
    for packet, kind, first, second, text in trace.signals.rows("packet", "kind", "first", "second", "text"):
        found[packet].append(_signal(kind, first, second, trace.texts[text]))
    return found


def delay_exponents(trace: Trace) -> Callable[[int], int]:
    """By the row of a packet: the exponent of the acknowledgement delays in it (RFC 9000, section 19.3)."""
    default = DEFAULTS["ack_delay_exponent"]

    def exponent(row: int) -> int:
        connection = int(trace.connection[row])
        if trace.form[row] != Form.ONE_RTT or connection < 0:
            return default
        stated = trace.connections[connection]
        sent = stated.server_parameters if trace.from_server[row] else stated.client_parameters
        value = sent.get("ack_delay_exponent", default)
        return value if isinstance(value, int) and value <= 20 else default

    return exponent


def _signal(kind: int, first: int, second: int, text: str) -> Event:
    if kind == Frame.CLOSE:
        told = {"error_space": "transport", **_error(first, "error"), "reason": text, "trigger_frame_type": second}
        return {"frame_type": CLOSE, **told}
    if kind == Frame.CLOSE_APPLICATION:
        told = {"error_space": "application", "error": "unknown", "error_code": first, "reason": text}
        return {"frame_type": CLOSE, **told}
    form = SIGNALS.get(kind)
    if form is None:
        return {"frame_type": "unknown", "frame_type_bytes": kind}
    event: Event = {"frame_type": form.name, **form.fixed}
    event |= {name: value for name, value in ((form.first, first), (form.second, second)) if name}
    if form.sizes:
        event |= dict(zip(form.sizes, map(int, text.split()), strict=True))
    elif form.text:
        event[form.text] = _token(text) if form.text == "token" else text
    return {"raw": {"payload_length": event.pop(LENGTH)}, **event} if LENGTH in event else event


class SignalForm(NamedTuple):
    """A frame of ``Signals`` as qlog has it: its name, and the names of its numbers and of its text."""

    name: str
    first: str = ""
    second: str = ""
    text: str = ""
    """Hexadecimal digits."""
    sizes: tuple[str, ...] = ()
    """Names of the numbers that ``Signals.text`` holds."""
    fixed: Mapping[str, str] = MappingProxyType({})


CLOSE, LENGTH = "connection_close", "payload_length"
BIDI, UNI = ({"stream_type": each} for each in ("bidirectional", "unidirectional"))
UNKNOWN_ERROR = {"error": "unknown"}
SIGNALS: Mapping[int, SignalForm] = {
    Frame.PING: SignalForm("ping"),
    Frame.HANDSHAKE_DONE: SignalForm("handshake_done"),
    Frame.MAX_DATA: SignalForm("max_data", "maximum"),
    Frame.MAX_STREAM_DATA: SignalForm("max_stream_data", "stream_id", "maximum"),
    Frame.MAX_STREAMS_BIDI: SignalForm("max_streams", "maximum", fixed=BIDI),
    Frame.MAX_STREAMS_UNI: SignalForm("max_streams", "maximum", fixed=UNI),
    Frame.STREAMS_BLOCKED_BIDI: SignalForm("streams_blocked", "limit", fixed=BIDI),
    Frame.STREAMS_BLOCKED_UNI: SignalForm("streams_blocked", "limit", fixed=UNI),
    Frame.DATA_BLOCKED: SignalForm("data_blocked", "limit"),
    Frame.STREAM_DATA_BLOCKED: SignalForm("stream_data_blocked", "stream_id", "limit"),
    Frame.RESET_STREAM: SignalForm(
        "reset_stream", "stream_id", "error_code", sizes=("final_size",), fixed=UNKNOWN_ERROR
    ),
    Frame.RESET_STREAM_AT: SignalForm(
        "reset_stream_at", "stream_id", "error_code", sizes=("final_size", "reliable_size"), fixed=UNKNOWN_ERROR
    ),
    Frame.STOP_SENDING: SignalForm("stop_sending", "stream_id", "error_code", fixed=UNKNOWN_ERROR),
    Frame.NEW_CONNECTION_ID: SignalForm("new_connection_id", "sequence_number", "retire_prior_to", "connection_id"),
    Frame.RETIRE_CONNECTION_ID: SignalForm("retire_connection_id", "sequence_number"),
    Frame.NEW_TOKEN: SignalForm("new_token", text="token"),
    Frame.PATH_CHALLENGE: SignalForm("path_challenge", text="data"),
    Frame.PATH_RESPONSE: SignalForm("path_response", text="data"),
    Frame.DATAGRAM: SignalForm("datagram", LENGTH),
    Frame.DATAGRAM_SIZED: SignalForm("datagram", LENGTH),
}
"""The frames for which qlog defines members, without CONNECTION_CLOSE."""


def _error(code: int, member: str) -> Event:
    if code < len(TRANSPORT_ERRORS):
        return {member: TRANSPORT_ERRORS[code]}
    if code in CRYPTO_ERRORS:
        return {member: f"crypto_error_0x{code:x}"}
    return {member: "unknown", "error_code": code}


# ---- what packets tell beyond their frames --------------------------------------------------


def _notices(trace: Trace, *, server: bool) -> dict[int, list[tuple[str, Event]]]:
    """Names and data of the events that a packet causes, by its row."""
    found = defaultdict[int, list[tuple[str, Event]]](list)
    for packet, kind in trace.messages.rows("packet", "kind"):
        connection = int(trace.connection[packet])
        if connection < 0:
            continue
        stated = trace.connections[connection]
        if kind == Message.CLIENT_HELLO and not trace.from_server[packet]:
            parameters = _parameters(stated.client_parameters)
            found[packet].append(("quic:parameters_set", {"initiator": _owner(False, server), **parameters}))
        elif kind == Message.ENCRYPTED_EXTENSIONS and trace.from_server[packet]:
            parameters = _parameters(stated.server_parameters)
            if stated.cipher in CIPHERS:
                parameters["tls_cipher"] = CIPHERS[stated.cipher]
            found[packet].append(("quic:parameters_set", {"initiator": _owner(True, server), **parameters}))
            found[packet].append(("quic:version_information", {"chosen_version": f"{int(trace.version[packet]):08x}"}))
            if stated.alpn:
                found[packet].append(("quic:alpn_information", {"chosen_alpn": {"string_value": stated.alpn}}))
    closed = set[int]()
    for packet, kind, code, text in trace.signals.rows("packet", "kind", "first", "text"):
        connection = int(trace.connection[packet])
        if kind in (Frame.CLOSE, Frame.CLOSE_APPLICATION) and connection not in closed:
            closed.add(connection)
            error = (
                _error(code, "connection_error")
                if kind == Frame.CLOSE
                else {"application_error": "unknown", "error_code": code}
            )
            owner = _owner(bool(trace.from_server[packet]), server)
            found[packet].append(("quic:connection_closed", {"initiator": owner, **error, "reason": trace.texts[text]}))
    return found


def _owner(from_server: bool, server: bool) -> str:
    return "local" if from_server == server else "remote"


def _parameters(stated: Mapping[str, int | str]) -> Event:
    """Transport parameters in the words of qlog."""
    found: Event = {name: value for name, value in stated.items() if name in DEFAULTS or name in CONNECTION_IDS}
    if "disable_active_migration" in found:
        found["disable_active_migration"] = True
    return found
