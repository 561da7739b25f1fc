"""Reads a qlog, whichever of its dialects a stack writes, as events; pure but for the file.

JSON (draft-marx-qlog-main-schema-00 and later, draft-ietf-quic-qlog-main-schema-00 to -13), JSON-SEQ (RFC 7464) and
lines of JSON, each also in a gzip or zstd file. Of a file that was cut, all events before the cut are read.

Whatever is no event is passed over and counted: an endpoint has written it.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from quicsat.model.gzip_file import MAGIC, DamagedGzipError, unpacked
from quicsat.model.stored_files import open_file
from quicsat.model.text import escaped, quoted
from quicsat.traces import zstd_file

NAME = re.compile(r".+\.s?qlog(\.json)?(\.(gz|zst))?", re.IGNORECASE | re.DOTALL)
"""Names of qlogs, of endpoints and exported ones."""
LIMIT = 128 * 1024 * 1024
"""Bytes of qlogs that are read together, after decompression; 10 MiB take up to about 40 MB."""
MOST_RECORDS = 500_000
"""Records of qlogs that are looked at together."""
LONGEST_NAME = 200
"""Characters of the name of a qlog in a message."""
LONGEST_RECORD = 1024 * 1024
"""Bytes; longer ones are passed over, since a value takes up to 30 times the memory of its text."""
CATEGORIES = frozenset({"connectivity", "http", "metric_update", "quic", "recovery", "security", "transport"})
"""Categories of events of QUIC and HTTP/3: those of the drafts so far, and one of mvfst."""
LINK = "link"
"""Category of the events of a link, see :mod:`quicsat.analysis.link_qlog`."""
UNQUALIFIED = frozenset(
    {
        "alpn_information", "connection_closed", "connection_started", "connection_state_updated", "cc_state_update",
        "congestion_state_updated", "frames_processed", "key_updated", "loss_timer_updated", "marked_for_retransmit",
        "metric_update", "metrics_updated", "packet_buffered", "packet_dropped", "packet_lost", "packet_received",
        "packet_sent", "packets_acked", "parameters_restored", "parameters_set", "recovery_metrics_updated",
        "recovery_parameters_set", "spin_bit_updated", "version_information",
    }
)  # fmt: skip
"""Names of events of QUIC that are known without their category, too."""
RENAMED = {"cc_state_update": "congestion_state_updated", "metric_update": "metrics_updated"}
"""Names of events in draft-00 -> names since draft-01."""
OWN_NAMES = ("event", "event_type", "type")
"""Members with the name of an event beside its category, in the drafts so far."""
MEMBERS = ("configuration", "common_fields", "event_fields", "title", "vantage_point")
"""Members of a trace that say how to read its events."""
DELTAS = ("delta", "relative_to_previous_event")
"""Values of ``time_format`` whose times count from the event before."""
TIME_FORMATS = frozenset({"absolute", "relative", "relative_to_epoch", *DELTAS})
TIME_UNITS = {"ms": 1e-3, "us": 1e-6}
"""Seconds."""
RECORD_SIGN = "\x1e"
SPACE = " \t\n\r\v\f"
BEFORE_JSON = f"{SPACE}{RECORD_SIGN}".encode()
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_HEAD = 64 * 1024
"""Bytes of a qlog that are looked at for its title."""
CHUNK, MOST_CUTS = 64 * 1024, 8
"""Bytes of an array that are split into elements at once, and places that are tried as the end of the last element."""
MOST_FAULTS, MOST_TOKENS = 100, 1_000_000
"""Records of a damaged document that are no JSON, and brackets and texts in one of them, at which reading ends."""
LONGEST, LATEST = 30 * 86400.0, 4_102_444_800.0
"""Seconds between two events of a qlog, and since 1970, above which a time is wrong."""

_EVENTS = re.compile(r'"events"\s*:\s*\[')
_DELTAS = re.compile(rf'"time_format"\s*:\s*"(?:{"|".join(DELTAS)})"')
_VERSION = re.compile(rb'"(?:qlog_version|qlog_format|file_schema)"\s*:')
_FILLER = re.compile(r"[\s,]*")
_PARTS = {sign: re.compile(f"[^{sign}]+") for sign in (RECORD_SIGN, "\n")}
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_NUMBER = re.compile(r"\d{1,20}(?:\.\d{1,20})?")
_DECODER = json.JSONDecoder()
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])

CUT, NO_JSON, NO_EVENT = "records that are cut", "records that are no JSON", "records that are no events"
TOO_LARGE = "what lies beyond the limits of size"
NO_DATA = "events whose data are no object"
UNKNOWN_TIME = "events of the unknown time"
NO_TIME, AFTER_GAP = "events without a usable time", "events whose times count from one that cannot be read"


@dataclass(frozen=True, slots=True)
class QlogEvent:
    """What one event of a qlog says."""

    time: float
    """Seconds, since whenever its trace begins to count."""
    name: str
    """``metrics_updated``: as the drafts since -01 name it, without its category."""
    data: Mapping[str, Any]
    group: str = ""
    """Of its connection, if it is stated."""


@dataclass(frozen=True)
class Wanted:
    """Which events are read, see :func:`read`."""

    words: tuple[str, ...] = ()
    members: Collection[str] | None = None
    categories: frozenset[str] = CATEGORIES


@dataclass
class Room:
    """What may still be read of several files together."""

    size: int = LIMIT
    """Bytes, after decompression."""
    records: int = MOST_RECORDS


@dataclass(frozen=True)
class QlogTrace:
    """The events of QUIC and HTTP/3 at one place, in the order of the file."""

    events: tuple[QlogEvent, ...]
    vantage_point: str = ""
    """``client``, ``server`` or ``network``; empty if it is not stated."""
    epoch: float | None = None
    """Seconds since 1970 from which its times count; None if it is not stated."""


@dataclass(frozen=True)
class Qlog:
    """What could be read of a file."""

    traces: tuple[QlogTrace, ...]
    """Those that have an event."""
    passed_over: Mapping[str, int] = field(default_factory=dict)
    """How many records could not be read, by the reason."""

    @property
    def events(self) -> tuple[QlogEvent, ...]:
        """Those of all traces, one after the other."""
        return tuple(event for trace in self.traces for event in trace.events)


def number(value: Any) -> float | None:
    """A number that is finite and not negative, also one written as text, as 64-bit integers may be; else None."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) and found >= 0 else None


def read(
    path: Path, *words: str, members: Collection[str] | None = None, room: Room | None = None, name: str = ""
) -> Qlog:
    """The events of a qlog; raises OSError, and ValueError with a sentence if it has no event of QUIC or HTTP/3.

    If ``words`` are given, only the first event of each trace is kept, and those whose name or a member of whose data
    is one of them, unless the numbers of these members are those of the event kept before. ``members`` of the data are
    kept, all if it is None. What lies beyond ``room`` is not read, and ``room`` has less of it afterwards. ``name``:
    for messages, see :func:`shown_name`.
    """
    traces: dict[TraceHead, list[QlogEvent]] = {}

    def take(trace: TraceHead, event: QlogEvent) -> None:
        traces.setdefault(trace, []).append(event)

    faults = read_events(path, take, Wanted(words, members), room=room, name=name)
    found = (QlogTrace(tuple(events), trace.vantage_point, trace.clock.epoch) for trace, events in traces.items())
    return Qlog(tuple(found), faults)


def read_events(
    path: Path,
    take: Callable[[TraceHead, QlogEvent], None],
    wanted: Wanted,
    *,
    room: Room | None = None,
    name: str = "",
) -> Mapping[str, int]:
    """Give each event of a qlog to ``take``, and say how many records could not be read, by the reason.

    Raises as :func:`read`, and what ``take`` raises.
    """
    name = name or shown_name(path, path.parent)
    room = room or Room(LIMIT)
    reader = _Reader(wanted, room)
    content, fault = _content(path, room.size)
    room.size -= len(content)
    if fault:
        reader.faults[fault] += 1
    has_event = False
    for trace, event in reader.events(content):
        take(trace, event)
        has_event = True
    if fault:
        reader.faults[fault] = 1  # the record that it cuts is no second fault
    if not has_event and reader.faults[TOO_LARGE]:
        raise ValueError(f"{name} is not read: the qlogs of a run are too large or have too many records.")
    if not has_event:
        raise ValueError(f"{name} {reader.why_nothing(content)}.")
    return dict(+reader.faults)


def title(path: Path) -> str:
    """The first title in a qlog; empty if there is none near its beginning. Raises OSError."""
    text = _content(path, LONGEST_HEAD)[0].decode("latin-1")
    found = _member(text, "title", 0, len(text))
    return found if isinstance(found, str) else ""


def is_qlog(path: Path) -> bool:
    """Whether a file begins as a qlog, whatever its name is. Raises OSError."""
    head = _content(path, LONGEST_HEAD)[0].removeprefix(BYTE_ORDER_MARK).lstrip(BEFORE_JSON)
    return head.startswith(b"{") and _VERSION.search(head) is not None


def shown_name(path: Path, folder: Path) -> str:
    """For messages: the path of a file below ``folder``, without ``.gz``, which quicsat adds later."""
    return escaped(str(path.relative_to(folder)).removesuffix(".gz"), LONGEST_NAME)


def _content(path: Path, limit: int) -> tuple[bytes, str]:
    """At most ``limit`` bytes of a file, unpacked, and why the rest is missing: too large, or a damaged archive."""
    content, fault = bytearray(), ""
    with open_file(path) as stream:
        begin = stream.read(len(zstd_file.MAGIC))
        stream.seek(0)
        if not begin.startswith((MAGIC, zstd_file.MAGIC)):
            whole = stream.read(min(limit, os.fstat(stream.fileno()).st_size) + 1)
            return whole[:limit], TOO_LARGE if len(whole) > limit else ""
        try:
            for piece in (unpacked if begin.startswith(MAGIC) else zstd_file.unpacked)(stream):
                content += piece
                if len(content) > limit:
                    fault = TOO_LARGE
                    break
        except (DamagedGzipError, zstd_file.DamagedZstdError):
            fault = CUT
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            fault = TOO_LARGE
    del content[limit:]
    return bytes(content), fault


class _Reader:
    """Reads the events of one file one by one, and counts what is none."""

    def __init__(self, wanted: Wanted, room: Room) -> None:
        self.faults = Counter[str]()
        self._words = words = wanted.words
        self._members = wanted.members
        self._accepted = wanted.categories
        self._room = room
        self._every = not words
        """All records must be read, for example since times count from the event before."""
        self._find_numbers = re.compile(rf'"({"|".join(words)})"\s*:\s*([\d.eE+-]+)').findall
        self._numbers = list[tuple[str, str]]()
        """Those of the latest record's members that are words."""
        self._categories = dict[str, None]()
        self._versions = dict[str, None]()

    def why_nothing(self, content: bytes) -> str:
        """Why no event was read of the content of the file."""
        unknown = [reason for reason in self.faults if reason.startswith(UNKNOWN_TIME)]
        if not content:
            return "is a damaged gzip or zstd file" if self.faults[CUT] else "is empty"
        if unknown:
            return f"has no event that can be read: {unknown[0]}"
        if LINK in self._categories:
            return "is the qlog of a link, which has no packets of an end. Name that of the client or of the server"
        if not content.removeprefix(BYTE_ORDER_MARK).lstrip(BEFORE_JSON).startswith((b"{", b"[")):
            return "is no qlog: it does not begin as JSON"
        said = [*self._versions, *(f"events of {quoted(each)}" for each in self._categories)]
        if self.faults.total() and not self._categories:
            return f"is no qlog that can be read: {', '.join(+self.faults)}"
        return f"is a qlog of an unknown schema ({', '.join(said[:4]) or 'no version'}) or no qlog: no event of QUIC"

    def events(self, content: bytes) -> Iterator[tuple[TraceHead, QlogEvent]]:
        text = content.removeprefix(BYTE_ORDER_MARK).decode("latin-1")  # a byte is a character, whatever else it holds
        if '"delta_time"' in text or ('"time_format"' in text and _DELTAS.search(text)):
            self._every = True
        records = self._document(text) if _is_document(text) else self._sequence(text)
        for trace, record in records:
            if not self._room.records:
                self.faults[TOO_LARGE] += 1
                return
            self._room.records -= 1
            if record is None:
                trace.clock.lose()
            elif (event := self._event(trace, record)) is not None:
                trace.numbers = self._numbers
                yield trace, event

    def _is_wanted(self, trace: TraceHead, part: str) -> bool:
        """Whether a record may hold one of the words, and says more than the event before."""
        if self._every or not trace.began:
            return True
        words = [word for word in self._words if word in part]
        self._numbers = self._find_numbers(part) if words else []
        repeated = self._numbers == trace.numbers and set(words) == {name for name, _ in self._numbers}
        return bool(words) and not repeated

    # ---- sequences --------------------------------------------------------------------------

    def _sequence(self, text: str) -> Iterator[Located]:
        """The records of JSON-SEQ, or of one JSON text per line; the first record describes the trace."""
        text = text.strip(SPACE + RECORD_SIGN)
        trace = TraceHead({})
        for at, found in enumerate(_PARTS[RECORD_SIGN if RECORD_SIGN in text else "\n"].finditer(text)):
            part = found[0].strip(SPACE)
            if not part or not (self._is_wanted(trace, part) or '"trace"' in part or part[-1] != "}"):
                continue
            record = _parsed(part)
            if record is None:
                self.faults[CUT if found.end() == len(text) else NO_JSON] += 1
            elif isinstance(record, dict) and isinstance(record.get("trace"), dict):
                trace = TraceHead(record["trace"])
                self._see(record)
                continue
            elif at == 0 and isinstance(record, dict) and "name" not in record:
                self._see(record)
                continue
            yield trace, record

    # ---- documents --------------------------------------------------------------------------

    def _document(self, text: str) -> Iterator[Located]:
        """The events of a JSON document, one at a time, also of one that is damaged or cut."""
        at = depth = 0
        latest = {name: text.rfind(f'"{name}"') for name in MEMBERS}
        while found := _EVENTS.search(text, at):
            depth += _depth(text, at, found.end() - 1)
            members = self._header(text, at, found.start())
            events = _Array(text, found.end())
            behind = events.end
            absent = any(latest[name] > found.end() for name in MEMBERS if name not in members)
            if absent and sum(1 for _ in islice(events, self._room.records)) < self._room.records:
                behind = _closing(text, events.end)
                members = self._header(text, events.end, behind) | members
            events = _Array(text, found.end())
            trace = TraceHead(members)
            self._every |= "delta_time" in trace.names
            for part in events:
                yield trace, self._element(part) if part and self._is_wanted(trace, part) else None
            at = max(behind, events.end)
            depth += _depth(text, events.end, at)
            self.faults += events.faults
        if depth + _depth(text, at, len(text)) and not self.faults.total():
            self.faults[CUT] += 1

    def _element(self, part: str) -> Any:
        """The value of an element of a document; None if it is no JSON."""
        try:
            return _DECODER.decode(part)
        except (ValueError, RecursionError):
            self.faults[NO_JSON] += 1
            return None

    def _header(self, text: str, begin: int, end: int) -> dict[str, Any]:
        """The members of a trace that say how to read its events, between two positions."""
        self._see({name: _member(text, name, begin, end) for name in ("qlog_version", "file_schema")})
        found = {name: _member(text, name, begin, end) for name in MEMBERS}
        return {name: value for name, value in found.items() if value is not None}

    # ---- events -----------------------------------------------------------------------------

    def _see(self, header: Mapping[str, Any]) -> None:
        for name in ("qlog_version", "file_schema"):
            if isinstance(header.get(name), str):
                self._versions[f"{name} {quoted(header[name])}"] = None

    def _event(self, trace: TraceHead, record: Any) -> QlogEvent | None:
        """An event of QUIC or HTTP/3."""
        members = record
        if isinstance(record, list) and trace.names:
            members = dict(zip(trace.names, record, strict=False))
        if not isinstance(members, dict) or (name := _name(members)) is None:
            trace.clock.lose()
            self.faults[NO_EVENT] += 1
            return None
        time = trace.clock.time(members)
        if isinstance(time, str):
            self.faults[time] += 1
            return None
        category, _, own = name.casefold().rpartition(":")
        if category not in self._accepted and (category or own not in UNQUALIFIED):
            if len(self._categories) < 2:
                self._categories[category] = None
            return None
        own = own.removeprefix("recovery_")
        own, data = RENAMED.get(own, own), self._data(members.get("data"))
        if trace.began and self._words and own not in self._words and not any(word in data for word in self._words):
            return None
        trace.began = True
        kept = data if self._members is None else {name: data[name] for name in self._members if name in data}
        group = members.get("group_id")
        return QlogEvent(time, own, kept, group if isinstance(group, str) else trace.group)

    def _data(self, data: Any) -> Mapping[str, Any]:
        self.faults[NO_DATA] += data is not None and not isinstance(data, dict)
        return _mapping(data)


class TraceHead:
    """How to read the events of one trace."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        fields = members.get("event_fields")
        self.names = [str(each).casefold() for each in fields] if isinstance(fields, list) else []
        self.clock = _Clock(members)
        place = _mapping(members.get("vantage_point")).get("type")
        self.vantage_point = place if isinstance(place, str) and place != "unknown" else ""
        title = members.get("title")
        self.title = title if isinstance(title, str) else ""
        common = _mapping(members.get("common_fields"))
        groups = (common.get(name) for name in ("group_id", "ODCID", "odcid"))
        self.group = next((each for each in groups if isinstance(each, str)), "")
        """Of its connection, if it is one and if it is stated."""
        self.began = False
        """An event was read."""
        self.numbers = list[tuple[str, str]]()
        """Of the members that are words in the latest event."""


Located = tuple[TraceHead, Any]
"""A record and its trace; None in place of one that is not wanted, or no JSON."""


class _Array:
    """The texts of the elements of an array of a text from a position on, one at a time; empty for no JSON."""

    def __init__(self, text: str, begin: int) -> None:
        self._text = text
        self.end = begin
        """The position behind the elements that were read."""
        self.faults = Counter[str]()

    def __iter__(self) -> Iterator[str]:
        window, at, alone = "", 0, self.end
        while True:
            if self.end + at >= alone:
                self.end, window, at = self.end + at, "", 0
                parts, size = _elements(self._text, self.end)
                yield from parts
                self.end, alone = self.end + size, self.end + (size or CHUNK)
            at = _FILLER.match(window, at).end()  # type: ignore[union-attr]  # it matches nothing, too
            if at == len(window) or (end := self._decoded(window, at)) is None:
                self.end, at = self.end + at, 0
                window = self._text[self.end : self.end + LONGEST_RECORD]
                at = _FILLER.match(window).end()  # type: ignore[union-attr]
                if at == len(window) and self.end + at < len(self._text):
                    continue
                end = self._decoded(window, at)
            if window[at : at + 1] in ("", "]", "}"):
                break
            if end is not None:
                begin, at = at, end
                yield window[begin:at]
            elif (after := self._skipped(self.end + at)) is not None:
                self.end, window, at = after, "", 0
                yield ""
            else:
                self.end = len(self._text)
                yield ""
                return
        self.end += at + 1
        if self.end > len(self._text):
            self.faults[CUT] += 1

    def _decoded(self, window: str, at: int) -> int | None:
        """Where the value at a position of a part of the text ends; None if it is none, or may go on behind."""
        try:
            _, end = _DECODER.raw_decode(window, at)
        except (ValueError, RecursionError):
            return None
        return None if end == len(window) == LONGEST_RECORD else end

    def _skipped(self, at: int) -> int | None:
        """Where a value ends that is no JSON or too long."""
        end = _end(self._text, at) if self.faults[NO_JSON] < MOST_FAULTS else None
        self.faults[CUT if end is None else NO_JSON] += 1
        return end


def _elements(text: str, begin: int) -> tuple[list[str], int]:
    """The texts of the elements in the next ``CHUNK`` bytes of an array, and their length with what is between them.

    Nothing if they cannot be told apart. If the text up to a comma is a list of values, the comma is behind a value.
    """
    chunk = text[begin : begin + min(CHUNK, LONGEST_RECORD)]
    first = _FILLER.match(chunk).end()  # type: ignore[union-attr]
    last, cut = "]," if chunk[first : first + 1] == "[" else "},", len(chunk)
    for _ in range(MOST_CUTS):
        if (cut := chunk.rfind(last, first, cut)) < 0:
            break
        try:
            found = _ELEMENTS.decode(b"[%b]" % chunk[first : cut + 1].encode("latin-1"))
        except (msgspec.DecodeError, RecursionError):
            continue
        return [bytes(each).decode("latin-1") for each in found], cut + len(last)
    return [], 0


class _Clock:
    """Times of the events of one trace."""

    def __init__(self, trace: Mapping[str, Any]) -> None:
        settings, common = _mapping(trace.get("configuration")), _mapping(trace.get("common_fields"))
        self._units = settings.get("time_units", common.get("time_units", "ms"))
        self._scale = TIME_UNITS.get(self._units, 0.0) if isinstance(self._units, str) else 0.0
        self._format = common.get("time_format")
        reference = common.get("reference_time")
        self._reference = number(reference) or 0.0
        dates = (_date(_mapping(reference).get(name)) for name in ("epoch", "wall_clock_time"))
        named = next((date for date in dates if date is not None), None)
        self.epoch = 0.0 if self._format == "absolute" else self._reference * self._scale or named
        """Seconds since 1970 from which the times of the trace count; None if it is not stated."""
        self._first: float | None = None
        self._last: float | None = 0.0

    def lose(self) -> None:
        """Note that an event could not be read, from which the next one may count."""
        self._last = None

    def time(self, members: Mapping[str, Any]) -> float | str:
        """Seconds of the next event, or why they are not known."""
        key = next((key for key in ("time", "relative_time", "delta_time") if key in members), "")
        value, form = number(members.get(key)), members.get("time_format", self._format)
        if unknown := self._unknown(form, key):
            self.lose()
            return unknown
        if value is not None and (key == "delta_time" or form in DELTAS):
            if self._last is None:
                return AFTER_GAP
            value += self._last
        elif value is not None and form != self._format:
            value += self._reference * ((form == "relative") - (self._format == "relative"))
        seconds = math.inf if value is None else value * self._scale
        if self._first is None and value is not None and seconds < LATEST:
            self._first = seconds
        if self._first is None or abs(seconds - self._first) > LONGEST:
            self.lose()
            return NO_TIME
        self._last = value
        return seconds

    def _unknown(self, form: Any, key: str) -> str:
        """Why the unit or the format of a time is not understood; empty if it is."""
        if not self._scale:
            return f"{UNKNOWN_TIME} unit {quoted(str(self._units))}"
        if key != "time" or form is None or (isinstance(form, str) and form in TIME_FORMATS):
            return ""
        return f"{UNKNOWN_TIME} format {quoted(str(form))}"


def _date(value: Any) -> float | None:
    """Seconds since 1970 of a date of RFC 3339, as drafts since -05 of the main schema have it; None if it is none."""
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _name(members: Mapping[str, Any]) -> str | None:
    """``category:event`` of an event; None if it has no name."""
    if isinstance(members.get("name"), str):
        return str(members["name"])
    own = next((members[key] for key in OWN_NAMES if key in members), None)
    category = members.get("category")
    return f"{category}:{own}" if isinstance(category, str) and isinstance(own, str) else None


def _is_document(text: str) -> bool:
    """Whether it is one JSON document with all events, and not a sequence of JSON texts."""
    begin = text[:LONGEST_RECORD].lstrip(SPACE)
    if begin.startswith(RECORD_SIGN) or not _EVENTS.search(text):
        return False
    header = _parsed(begin.partition("\n")[0])
    return not isinstance(header, dict) or "traces" in header


def _depth(text: str, begin: int, end: int) -> int:
    """How many more brackets open than close between two positions; counted up to ``MOST_TOKENS``."""
    tokens = islice(_TOKEN.finditer(text, begin, end), MOST_TOKENS)
    return sum((token[0] in ("{", "[")) - (token[0] in ("}", "]")) for token in tokens)


def _closing(text: str, begin: int) -> int:
    """Where the object closes that holds a position, at most ``LONGEST_RECORD`` behind it."""
    depth, end = 1, min(len(text), begin + LONGEST_RECORD)
    for token in islice(_TOKEN.finditer(text, begin, end), MOST_TOKENS):
        depth += (token[0] in ("{", "[")) - (token[0] in ("}", "]"))
        if depth == 0:
            return token.start()
    return end


def _parsed(part: str) -> Any:
    """The value of a JSON text, whose characters are bytes; None if it is none, or too long."""
    if len(part) > LONGEST_RECORD:
        return None
    try:
        return _DECODER.decode(part if part.isascii() else part.encode("latin-1").decode())
    except (ValueError, RecursionError):
        return None


def _member(text: str, name: str, begin: int, end: int) -> Any:
    """The value of the first member of this name between two positions; None if there is none."""
    found = re.compile(rf'"{name}"\s*:\s*').search(text, begin, end)
    try:
        return _DECODER.raw_decode(text, found.end())[0] if found else None
    except (ValueError, RecursionError):
        return None


def _end(text: str, at: int) -> int | None:
    """Where the array or object ends that begins at a position; None if it does not, or is larger than any event."""
    depth = 0
    for token in islice(_TOKEN.finditer(text, at), MOST_TOKENS):
        depth += (token[0] in ("{", "[")) - (token[0] in ("}", "]"))
        if depth <= 0:
            return token.end()
    return None
