"""Reads the packets of a qlog, of an endpoint or as ``export`` writes it, into the columns of a trace.

All drafts, see :mod:`quicsat.traces.qlog`. What a qlog does not have stays unknown: addresses of single packets and TLS
messages, and often ECN and padding behind the packets of a datagram. Frame numbers count the datagrams of the qlog.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np

from quicsat.model.bounds import LEAST_PACKETS
from quicsat.model.implementation import Role
from quicsat.model.negotiated import CIPHERS, DEFAULTS
from quicsat.model.text import escaped, printable
from quicsat.traces import qlog
from quicsat.traces.columns import ColumnTable, Connection, Datagrams, Form, Frame, Trace
from quicsat.traces.frames import NO_MARKS, QUIET
from quicsat.traces.network import UDP, Segment, digest
from quicsat.traces.packet_columns import COLUMNS, CONNECTION, ELICITING, Packet, PacketColumns
from quicsat.traces.packet_matching import DatagramContents
from quicsat.traces.pcap import TraceState
from quicsat.traces.qlog_events import (
    CLOSE,
    CONNECTION_IDS,
    ECN_MARKS,
    LENGTH,
    PACKET_TYPES,
    SIGNALS,
    TRANSPORT_ERRORS,
    delay_exponents,
)
from quicsat.traces.records import MOST_CONNECTIONS, NANOSECONDS, Condition, dated, too_large

SENT, RECEIVED = "packet_sent", "packet_received"
STARTED, PARAMETERS, PROTOCOL = "connection_started", "parameters_set", "alpn_information"
DATAGRAMS = ("udp_datagrams_sent", "udp_datagrams_received", "datagrams_sent", "datagrams_received")
FORMS: Mapping[str, Form] = {
    **{name.casefold(): form for form, name in PACKET_TYPES.items()},
    "onertt": Form.ONE_RTT, "one_rtt": Form.ONE_RTT, "short": Form.ONE_RTT,
    "zerortt": Form.ZERO_RTT, "zero_rtt": Form.ZERO_RTT,
}  # fmt: skip
"""By the names of the drafts, and of stacks."""
LEVELS = (Form.INITIAL, Form.ZERO_RTT, Form.HANDSHAKE, Form.ONE_RTT)
"""Types of packets in the order of their encryption levels."""
LONGEST_PACKET, LARGEST = 65_535, 1 << 62
"""Bytes of a datagram, and the largest number of QUIC (RFC 9000, section 16)."""
LONGEST_NAME = 100
"""Characters of a name that the qlog states."""
LONGEST_TEXT = 4096
"""Hexadecimal digits and characters of a value that are kept."""
NO_PATH = "client server"
"""Path of packets whose addresses the qlog does not tell."""
CRYPTO_ERROR = "crypto_error_"
TYPE_NAMES, UNKNOWN_TYPE = ("frame_type_bytes", "raw_frame_type", "frame_type_value"), -1
"""Members with the number of the type of a frame without a name, and the number if there is none."""
OTHER_NAMES = {"stream_id": "id", "retire_prior_to": "retire_before"}
"""Names of members in the qlogs of some stacks."""
LONGEST_DELAY = 1e9
"""Milliseconds."""
SIGNAL_KINDS = {(form.name, form.fixed.get("stream_type", "")): kind for kind, form in reversed([*SIGNALS.items()])}
"""By the name in qlog, and the type of the streams."""
CIPHER_CODES = {name: code for code, name in CIPHERS.items()}
LENGTH_COLUMN, SPIN_COLUMN = COLUMNS.index("length"), COLUMNS.index("spin")

NO_TYPE, NO_SIZE = "packets of an unknown type", "packets without their size"
BAD_FRAME, OTHER_PLACE = "frames with impossible values", "events of another vantage point"


@dataclass(frozen=True)
class QlogPackets:
    """The packets that one end logged; also the reader of ``TraceStates``."""

    role: Role
    """Of the end."""
    title: str
    groups: tuple[str, ...]
    """Names of the connections."""
    packets: Trace
    state: TraceState
    notes: tuple[str, ...]
    """A sentence for each kind of what could not be read."""
    is_stated: bool = True
    """The qlog states the end."""

    def trace(self) -> Trace:
        """The columns."""
        return self.packets


def read_packets(path: Path, name: str, role: Role = Role.CLIENT, most: int = LEAST_PACKETS) -> QlogPackets:
    """The packets of the qlog ``path``, of the end that it states.

    If it states none: of the client if it sent the first packet and this is an Initial, of the server if it received
    it (RFC 9000, section 17.2.2), else of ``role``. ``name``: for messages. Raises OSError; ValueError with a sentence
    if it has no packet; and HarnessFault(trace-limit) if it has more than ``most`` packets, or if they hold more than
    so many can hold.
    """
    found = _read(path, name, role, most)
    if found.is_stated:
        return found
    trace = found.packets
    if trace.form[0] == Form.INITIAL and trace.from_server[0]:
        role = Role.CLIENT if role is Role.SERVER else Role.SERVER
        found = _read(path, name, role, most)
    return replace(found, notes=(*found.notes, f"{name}: states no vantage point; read as the {role}'s."))


def _read(path: Path, name: str, role: Role, most: int) -> QlogPackets:
    reader = _Reader(name, role, most)
    faults = Counter(qlog.read_events(path, reader.take, qlog.Wanted(), name=name))
    return reader.packets(faults)


def whole(value: Any, most: int = LARGEST - 1) -> int | None:
    """A whole number from 0 to ``most``, also one written as text; else None."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most else None


def _time(head: qlog.TraceHead, event: qlog.QlogEvent) -> int:
    """Nanoseconds since 1970, or since whenever the qlog counts."""
    return round((head.clock.epoch or 0.0) * 1e6) * 1000 + round(event.time * NANOSECONDS)


def _text(value: Any) -> str:
    return value[:LONGEST_TEXT] if isinstance(value, str) else ""


def _bytes(value: Any) -> bytes:
    try:
        return bytes.fromhex(_text(value))
    except ValueError:
        return b""


def _token(value: Any) -> bytes:
    """A token, or in older drafts its digits alone."""
    token = _mapping(value)
    return _bytes(_mapping(token.get("raw")).get("data", token.get("data", value)))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


@dataclass
class _Datagram:
    """The latest datagram."""

    time: int = -1
    sent: bool = False
    form: Form = Form.ONE_RTT
    """Of its latest packet."""
    identifier: int | None = None
    frame: int = 0
    size: int = 0
    """Bytes, if they were announced."""
    left: int = 0
    """Of these, for further packets."""


class _Reader:
    """Takes the events of one qlog."""

    def __init__(self, name: str, role: Role, most: int) -> None:
        self._name, self._role, self._most = name, role, most
        self._is_stated = False
        self._title = ""
        self._rows = PacketColumns(name, most)
        self._count = 0
        self._faults = Counter[str]()
        self._groups: dict[str, int] = {}
        self._connections: list[Connection] = []
        self._alone = Connection()
        """That of all packets, if the qlog names no group."""
        self._paths: dict[str, str] = {}
        self._datagram = _Datagram()
        self._announced: _Datagram | None = None
        """The next datagram, before its first packet."""
        self._announces = False
        """Datagrams with several packets are announced."""
        self._marks = [0, 0]
        """ECN of received and sent datagrams."""

    def take(self, head: qlog.TraceHead, event: qlog.QlogEvent) -> None:
        """Take an event."""
        if head.vantage_point in [*Role] and not self._count:
            self._role, self._is_stated = Role(head.vantage_point), True
        if head.vantage_point and head.vantage_point != self._role:
            self._faults[OTHER_PLACE] += 1
            return
        self._title = self._title or head.title
        if event.name in (SENT, RECEIVED):
            self._packet(head, event)
        elif event.name in DATAGRAMS:
            self._announce(head, event)
        elif event.name == STARTED:
            self._paths[event.group] = self._path(event.data)
        elif event.name == PARAMETERS:
            self._parameters(event)
        elif event.name == PROTOCOL:
            chosen = event.data.get("chosen_alpn")
            name = escaped(_text(_mapping(chosen).get("string_value", chosen)), LONGEST_NAME)
            self._know(event.group, lambda _: {"alpn": name})

    # ---- connections ------------------------------------------------------------------------

    def _connection(self, group: str) -> int:
        """Number of the connection of a group; -1 without one."""
        if not group:
            return -1
        number = self._groups.setdefault(group, len(self._groups))
        if number == len(self._connections):
            if number == MOST_CONNECTIONS:
                raise too_large(self._name, MOST_CONNECTIONS, "connections")
            self._connections.append(Connection())
        return number

    def _know(self, group: str, tell: Callable[[Connection], dict[str, Any]]) -> None:
        """Add what ``tell`` says to what is known of a connection."""
        number = self._connection(group)
        if number < 0:
            self._alone = replace(self._alone, **tell(self._alone))
        else:
            self._connections[number] = replace(self._connections[number], **tell(self._connections[number]))

    def _path(self, data: Mapping[str, Any]) -> str:
        ends = [_end(data, "local", "src"), _end(data, "remote", "dst")]
        if not all(ends):
            return NO_PATH
        return " ".join(reversed(ends) if self._role is Role.SERVER else ends)

    def _parameters(self, event: qlog.QlogEvent) -> None:
        """Transport parameters, of the end that the event names by ``initiator``, in older drafts ``owner``."""
        data = event.data
        owner = data.get("initiator", data.get("owner"))
        if owner not in ("local", "remote"):
            return
        of_server = (owner == "local") == (self._role is Role.SERVER)
        found: dict[str, int | str] = {}
        for name in DEFAULTS:
            value = data.get(name)
            number = int(value) if isinstance(value, bool) else whole(value)
            if number is not None:
                found[name] = number
        found |= {name: _bytes(data[name]).hex() for name in CONNECTION_IDS if isinstance(data.get(name), str)}
        side = "server_parameters" if of_server else "client_parameters"
        cipher = CIPHER_CODES.get(_text(data.get("tls_cipher")))
        chosen = {} if cipher is None else {"cipher": cipher}
        self._know(event.group, lambda known: {side: {**getattr(known, side), **found}, **chosen})

    # ---- packets ----------------------------------------------------------------------------

    def _packet(self, head: qlog.TraceHead, event: qlog.QlogEvent) -> None:
        data = event.data
        header = _mapping(data.get("header"))
        form = FORMS.get(_text(data.get("packet_type", header.get("packet_type"))).casefold())
        if form is None:
            self._faults[NO_TYPE] += 1
            return
        sent = event.name == SENT
        segment = Segment(
            sent == (self._role is Role.SERVER),
            self._paths.get(event.group, NO_PATH),
            self._marks[sent],
            UDP,
            b"",
            b"",
            0,
        )
        version = -1 if form in (Form.ONE_RTT, Form.STATELESS_RESET) else _hexadecimal(header.get("version"))
        target, source = (_bytes(header.get(name)) for name in ("dcid", "scid"))
        packet = Packet(form, version, target, source, _token(header.get("token")), b"\0", 0)
        size = self._size(data, header)
        datagram = self._datagram_of(
            _time(head, event), sent=sent, form=form, size=size, identifier=whole(data.get("datagram_id"))
        )
        row = self._rows.packet(datagram.time, datagram.frame, segment, datagram.size, packet)
        self._count += 1
        self._rows.set(row, LENGTH_COLUMN, size)
        spin = header.get("spin_bit")
        self._rows.set(row, SPIN_COLUMN, int(spin) if isinstance(spin, bool) else -1)
        self._rows.set(row, CONNECTION, self._connection(event.group))
        number = whole(header.get("packet_number"))
        if number is not None:
            generation = whole(header.get("key_phase"), LONGEST_PACKET) or 0
            self._rows.opened(row, number, generation & 1 if form is Form.ONE_RTT else -1, generation)
        eliciting = [self._frame(row, _mapping(frame)) for frame in _list(data.get("frames"))]
        self._rows.set(row, ELICITING, any(eliciting))

    def _announce(self, head: qlog.TraceHead, event: qlog.QlogEvent) -> None:
        """Store the size of a single datagram, and the ECN mark, which also holds for later datagrams."""
        sent = event.name.endswith("sent")
        for mark in _list(event.data.get("ecn"))[-1:]:
            if mark in ECN_MARKS:
                self._marks[sent] = ECN_MARKS.index(mark)
        sizes = [whole(_mapping(raw).get("length"), LONGEST_PACKET) for raw in _list(event.data.get("raw"))]
        if len(sizes) == 1 and sizes[0]:
            self._announced = _Datagram(_time(head, event), sent, size=sizes[0], left=sizes[0])

    def _datagram_of(self, time: int, *, sent: bool, form: Form, size: int, identifier: int | None) -> _Datagram:
        """That of a packet: the one that was just announced, or that of the packets before it.

        Packets of one ``datagram_id`` are together, and those that fill an announced datagram. Without either, those of
        one time are if their encryption levels rise: that is how they are coalesced, and nothing follows a packet with
        a short header (RFC 9000, section 12.2).
        """
        before, told = self._datagram, self._announced
        if told is not None and (told.time, told.sent) == (time, sent) and size <= told.left:
            self._announced, self._announces = None, True
            self._datagram = replace(told, form=form, left=told.left - size, frame=before.frame + 1)
            return self._datagram
        if identifier is not None:
            together = identifier == before.identifier
        elif self._announces:
            together = time == before.time and size <= before.left
        else:
            levels = [LEVELS.index(each) if each in LEVELS else -1 for each in (before.form, form)]
            together = time == before.time and -1 < levels[0] < levels[1]
        if together and sent == before.sent and before.form is not Form.ONE_RTT:
            before.form, before.left = form, before.left - size
            return before
        self._datagram = _Datagram(time, sent, form, identifier, before.frame + 1)
        return self._datagram

    def _size(self, data: Mapping[str, Any], header: Mapping[str, Any]) -> int:
        raw = _mapping(data.get("raw"))
        told = (
            raw.get("length"),
            header.get("packet_size"),
            data.get("packet_size"),
            raw.get(LENGTH),
            header.get("length"),
        )
        size = next((size for each in told if (size := whole(each, LONGEST_PACKET))), 0)
        self._faults[NO_SIZE] += not size
        return size

    # ---- frames -----------------------------------------------------------------------------

    def _frame(self, row: int, frame: Mapping[str, Any]) -> bool:
        """Take down a frame; whether it asks for an acknowledgement."""
        kind = _text(frame.get("frame_type")).casefold()
        if kind == "padding":
            return False
        try:
            if kind == "ack":
                self._rows.frame_columns.add_ack(row, *_acknowledgement(frame))
            elif kind == "stream":
                stream, offset = (
                    _number(frame, "stream_id", frame.get(OTHER_NAMES["stream_id"])),
                    _number(frame, "offset", 0),
                )
                self._rows.frame_columns.add_stream(row, stream, offset, _length(frame), frame.get("fin") is True)
            elif kind == "crypto":
                self._rows.frame_columns.add_crypto(row, _number(frame, "offset", 0), _length(frame))
            else:
                signal = _signal(kind, frame)
                self._rows.frame_columns.add_signal(row, *signal)
                self._rows.check_frames()
                return signal[0] not in QUIET
        except ValueError:
            self._faults[BAD_FRAME] += 1
        self._rows.check_frames()
        return kind != "ack"

    # ---- result -----------------------------------------------------------------------------

    def packets(self, faults: Counter[str]) -> QlogPackets:
        """What was taken; ``faults``: what could not be read as an event."""
        if not self._count:
            raise ValueError(f"{self._name} has no packets: no event {SENT} or {RECEIVED} of a known type.")
        trace = self._rows.trace(tuple(self._connections) or (self._alone,))
        if not self._groups:
            trace = replace(trace, connection=np.zeros(len(trace), dtype=np.int64))
        if (np.diff(trace.time) < 0).any():
            trace = _sorted(trace)
        trace = _with_sizes(_with_delays(trace))
        faults += self._faults
        notes = tuple(f"{self._name}: {reason}: {count}." for reason, count in sorted(faults.items()))
        damaged = faults.keys() & {qlog.CUT, qlog.TOO_LARGE}
        groups = tuple(self._groups) or ("",)
        state = TraceState(
            condition=Condition.TRUNCATED if damaged else Condition.OK,
            packets=self._count,
            datagrams=datagrams(trace, groups),
            reason=f"{self._name} ends early." if damaged else "",
            duration=float(trace.time[-1] - trace.time[0]),
            simulated=not dated(trace.epoch * NANOSECONDS),
        )
        return QlogPackets(self._role, self._title, groups, trace, state, notes, self._is_stated)


def datagrams(trace: Trace, groups: Sequence[str]) -> Datagrams:
    """The datagrams of the packets, which both ends know by the same kinds and numbers of packets.

    ``groups``: names of the connections.
    """
    marks = _marks(trace, groups)
    firsts = np.flatnonzero(np.diff(trace.frame, prepend=-1))
    ends = [*firsts[1:].tolist(), len(trace)]
    together = [marks[begin:end] for begin, end in zip(firsts.tolist(), ends, strict=True)] if len(firsts) else []
    return Datagrams(
        epoch=trace.epoch,
        time=trace.time[firsts],
        from_server=trace.from_server[firsts],
        size=trace.size[firsts],
        digest=np.array([digest(repr(each).encode()) for each in together], dtype=np.uint64),
    )


def contents(trace: Trace, state: TraceState, groups: Sequence[str]) -> DatagramContents:
    """The packets of the datagrams of ``state``, which are those of ``trace``; ``groups`` as of :func:`datagrams`."""
    digests = [digest(repr(mark).encode()) for mark in _marks(trace, groups)]
    rows = np.cumsum(np.diff(trace.frame, prepend=-1) != 0) - 1
    return DatagramContents(state.datagrams, rows, np.array(digests, dtype=np.uint64))


def _marks(trace: Trace, groups: Sequence[str]) -> list[tuple[object, ...]]:
    """What both ends know of each packet: its connection, direction, type and number, or its size without one."""
    names = [*groups, ""]
    columns = (trace.connection, trace.from_server, trace.form, trace.number, trace.length)
    return [
        (names[connection], *mark, number, length if number < 0 else 0)
        for connection, *mark, number, length in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _sorted(trace: Trace) -> Trace:
    """The same packets in the order of time."""
    order = np.argsort(trace.time, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    parts: dict[str, Any] = {}
    for name, part in vars(trace).items():
        if isinstance(part, np.ndarray):
            parts[name] = part[order]
        elif isinstance(part, ColumnTable) and name != "ack_ranges":
            columns = {**vars(part), "packet": place[vars(part)["packet"]]}
            rows = np.argsort(columns["packet"], kind="stable")
            parts[name] = type(part)(**{column: values[rows] for column, values in columns.items()})
    return replace(trace, **parts)


def _with_sizes(trace: Trace) -> Trace:
    """With the sizes of the datagrams: the stated size, or the sum of the packets."""
    firsts = np.flatnonzero(np.diff(trace.frame, prepend=-1))
    size = np.zeros(len(trace), dtype=np.int64)
    size[firsts] = np.maximum(trace.size[firsts], np.add.reduceat(trace.length, firsts))
    return replace(trace, size=size)


def _with_delays(trace: Trace) -> Trace:
    """With delays of acknowledgements as on the wire, which are microseconds until then."""
    exponent = delay_exponents(trace)
    acks = trace.acks
    delay = [value >> exponent(packet) for packet, value in acks.rows("packet", "delay")]
    return replace(trace, acks=replace(acks, delay=np.array(delay, dtype=np.int64)))


# ---- frames ---------------------------------------------------------------------------------


def _number(frame: Mapping[str, Any], name: str, default: Any = None) -> int:
    """A member of a frame; raises ValueError if it is no possible number."""
    found = whole(frame.get(name, default))
    if found is None:
        raise ValueError(name)
    return found


def _length(frame: Mapping[str, Any]) -> int:
    """Bytes of data of a frame, in older drafts ``length``, which some stacks have beside the raw bytes."""
    raw = _mapping(frame.get("raw"))
    found = whole(raw.get(LENGTH, frame.get("length", raw.get("length"))), LONGEST_PACKET)
    if found is None:
        raise ValueError(LENGTH)
    return found


def _acknowledgement(frame: Mapping[str, Any]) -> tuple[int, list[int], tuple[int, int, int]]:
    """Delay in microseconds, ranges from the highest down, and counts of ECN marks."""
    pairs = list[tuple[int, int]]()
    for each in _list(frame.get("acked_ranges")):
        ends = [whole(end) for end in (each if isinstance(each, list) else [each])]
        if not 1 <= len(ends) <= 2 or ends[0] is None or ends[-1] is None or ends[0] > ends[-1]:
            raise ValueError("acked_ranges")
        pairs.append((ends[0], ends[-1]))
    if not pairs:
        raise ValueError("acked_ranges")
    marks = [whole(frame.get(name)) for name in ("ect0", "ect1", "ce")]
    known = NO_MARKS if marks[2] is None else (marks[0] or 0, marks[1] or 0, marks[2])
    delay = qlog.number(frame.get("ack_delay")) or 0.0
    ranges = [end for pair in sorted(pairs, reverse=True) for end in pair]
    return round(min(delay, LONGEST_DELAY) * 1000), ranges, known


def _signal(name: str, frame: Mapping[str, Any]) -> tuple[int, int, int, str]:
    """Kind, numbers and text of another frame, as in ``Signals``; raises ValueError."""
    if name == CLOSE:
        phrase = printable(_text(frame.get("reason")), LONGEST_TEXT)
        if frame.get("error_space") in ("application", "application_error"):
            return Frame.CLOSE_APPLICATION, _error(frame), 0, phrase
        return Frame.CLOSE, _error(frame), whole(frame.get("trigger_frame_type")) or 0, phrase
    kind = SIGNAL_KINDS.get((name, "")) or SIGNAL_KINDS.get((name, _text(frame.get("stream_type"))))
    if kind is None:
        code = next((frame[each] for each in TYPE_NAMES if each in frame), None)
        return Frame.__members__.get(name.upper(), whole(code) or UNKNOWN_TYPE), 0, 0, ""
    form = SIGNALS[kind]
    if form.first == LENGTH:
        return kind, _length(frame), 0, ""
    first, second = (
        _number(frame, each, frame.get(OTHER_NAMES.get(each, ""))) if each else 0 for each in (form.first, form.second)
    )
    text = " ".join(str(_number(frame, each)) for each in form.sizes)
    if form.text == "token":
        text = _token(frame.get("token", frame.get("new_token"))).hex()
    elif form.text:
        text = _bytes(frame.get(form.text)).hex()
    return kind, first, second, text


def _error(frame: Mapping[str, Any]) -> int:
    """The code of an error, which the drafts have as a name or as a number."""
    for name in ("error", "error_code", "raw_error_code", "code"):
        value = frame.get(name)
        if (code := whole(value)) is not None:
            return code
        if value in TRANSPORT_ERRORS:
            return TRANSPORT_ERRORS.index(value)
        if _text(value).startswith(CRYPTO_ERROR):
            return _hexadecimal(_text(value).removeprefix(CRYPTO_ERROR))
    return 0


def _hexadecimal(value: Any) -> int:
    """A number in hexadecimal digits, as of a version; -1 if it is none."""
    try:
        found = int(_text(value), 16)
    except ValueError:
        return -1
    return found if 0 <= found < LARGEST else -1


def _end(data: Mapping[str, Any], name: str, older: str) -> str:
    """Address and port of an end; empty if they are not known."""
    end = _mapping(data.get(name))
    for version in ("v4", "v6"):
        address = end.get(f"ip_{version}", data.get(f"{older}_ip"))
        port = whole(end.get(f"port_{version}", data.get(f"{older}_port")), LONGEST_PACKET)
        with suppress(ValueError):
            known = ip_address(_text(address))
            return f"[{known}]:{port or 0}" if known.version == 6 else f"{known}:{port or 0}"
    return ""
