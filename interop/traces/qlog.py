"""Reads a qlog, whichever of its dialects a stack writes, as events; pure but for the file.

JSON (draft-marx-qlog-main-schema-00 and later, draft-ietf-quic-qlog-main-schema-00 to -13), JSON-SEQ (RFC 7464) and
lines of JSON, each also in a gzip file. Of a file that was cut, all events before the cut are read.

Whatever is no event is passed over and counted: an endpoint has written it.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from interop.model.text import escaped, quoted

LIMIT = 128 * 1024 * 1024
"""Bytes of a qlog that are read, after decompression; 10 MiB take up to about 40 MB."""
CATEGORIES = frozenset({"connectivity", "http", "metric_update", "quic", "recovery", "security", "transport"})
"""Categories of events of QUIC and HTTP/3: those of the drafts so far, and one of mvfst."""
RENAMED = {"cc_state_update": "congestion_state_updated", "metric_update": "metrics_updated"}
"""Names of events in draft-00 -> names since draft-01."""
MEMBERS = ("configuration", "common_fields", "event_fields")
"""Members of a trace that say how to read its events."""
DELTAS = ("delta", "relative_to_previous_event")
"""Values of ``time_format`` whose times count from the event before."""
DELTA_WORDS = (b'"delta_time"', *(f'"{name}"'.encode() for name in DELTAS))
RECORD_SIGN = b"\x1e"
GZIP = b"\x1f\x8b"
MOST_FAULTS, MOST_TOKENS = 100, 1_000_000
"""Records of a damaged document that are no JSON, and brackets and texts in one of them, at which reading ends."""
LONGEST, LATEST = 30 * 86400.0, 4_102_444_800.0
"""Seconds between two events of a qlog, and since 1970, above which a time is wrong."""

_EVENTS = re.compile(r'"events"\s*:\s*\[')
_FILLER = re.compile(r"[\s,]*")
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_NUMBER = re.compile(r"\d{1,20}(?:\.\d{1,20})?")
_DECODER = json.JSONDecoder()

CUT, NO_JSON, NO_EVENT = "records that are cut", "records that are no JSON", "records that are no events"
NO_DATA = "events whose data are no object"
NO_TIME, AFTER_GAP = "events without a usable time", "events whose times count from one that cannot be read"


@dataclass(frozen=True)
class QlogEvent:
    """What one event of a qlog says."""

    time: float
    """Seconds, since whenever its trace begins to count."""
    name: str
    """``metrics_updated``: as the drafts since -01 name it, without its category."""
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Qlog:
    """What could be read of a file."""

    events: tuple[QlogEvent, ...]
    """Of QUIC and HTTP/3, in the order of the file."""
    passed_over: Mapping[str, int] = field(default_factory=dict)
    """How many records could not be read, by the reason."""


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


def read(path: Path, *words: bytes) -> Qlog:
    """The events of a qlog; raises OSError, and ValueError with a sentence if it has no event of QUIC or HTTP/3.

    If ``words`` are given, events that mention none of them may be left out, but not the first one: that saves most of
    the time where each event is a record of its own.
    """
    name = shown_name(path)
    content, cut = _content(path)
    if len(content) > LIMIT:
        raise ValueError(f"{name} is larger than {LIMIT // 1024**2} MiB.")
    reader = _Reader(words)
    if cut:
        reader.faults[CUT] += 1
    events = tuple(reader.events(content))
    if not events:
        raise ValueError(f"{name} is a qlog of an unknown schema ({reader.schema()}) or no qlog: no event of QUIC.")
    return Qlog(events, dict(+reader.faults))


def shown_name(path: Path) -> str:
    """For messages: the name that the endpoint gave it, so that they stay the same when quicsat compresses it."""
    return escaped(path.name.removesuffix(".gz"), 80)


def _content(path: Path) -> tuple[bytes, bool]:
    """At most ``LIMIT`` + 1 bytes of a file, and whether it is a gzip file that was cut or damaged."""
    with path.open("rb") as stream:
        content = stream.read(LIMIT + 1)
    if not content.startswith(GZIP):
        return content, False
    pieces, size = list[bytes](), 0
    while content and size <= LIMIT:
        member = zlib.decompressobj(wbits=31)
        try:
            pieces.append(member.decompress(content, LIMIT + 1 - size))
        except zlib.error:
            return b"".join(pieces), True
        size += len(pieces[-1])
        if not member.eof:
            return b"".join(pieces), size <= LIMIT
        content = member.unused_data
    return b"".join(pieces), False


class _Reader:
    """Reads the events of one file, and counts what is none."""

    def __init__(self, words: Sequence[bytes]) -> None:
        self.faults = Counter[str]()
        self._words = words
        self._categories = dict[str, None]()
        self._versions = dict[str, None]()

    def schema(self) -> str:
        """What the file says of its own schema, for a message."""
        said = [*self._versions, *(f"events of {quoted(each)}" for each in self._categories)]
        return ", ".join(said[:4]) or "no version"

    def events(self, content: bytes) -> Iterator[QlogEvent]:
        first = content.lstrip().partition(b"\n")[0]
        try:
            document = json.loads(content)
        except (ValueError, RecursionError):
            text = (
                "" if RECORD_SIGN in content or isinstance(_parsed(first), dict) else content.decode(errors="replace")
            )
            yield from self._damaged_document(text) if _EVENTS.search(text) else self._sequence(content)
            return
        if not isinstance(document, dict) or "traces" not in document:
            yield from self._sequence(content)
            return
        self._see(document)
        for trace in document["traces"] if isinstance(document["traces"], list) else []:
            if isinstance(trace, dict) and isinstance(trace.get("events"), list):
                yield from self._of_trace(trace, trace["events"])

    # ---- sequences --------------------------------------------------------------------------

    def _sequence(self, content: bytes) -> Iterator[QlogEvent]:
        """Of JSON-SEQ, or of one JSON text per line; the first record describes the trace."""
        parts = [part for part in content.split(RECORD_SIGN if RECORD_SIGN in content else b"\n") if part.strip()]
        if self._words and not any(word in content for word in DELTA_WORDS):
            parts = [part for at, part in enumerate(parts) if at < 2 or self._is_wanted(part)]
        trace, records = dict[str, Any](), list[Any]()
        for at, part in enumerate(parts):
            record = _parsed(part)
            if record is None:
                self.faults[CUT if at == len(parts) - 1 else NO_JSON] += 1
            elif isinstance(record, dict) and isinstance(record.get("trace"), dict):
                yield from self._of_trace(trace, records)
                trace, records = record["trace"], []
                self._see(record)
                continue
            elif at == 0 and isinstance(record, dict) and "name" not in record:
                self._see(record)
                continue
            records.append(record)
        yield from self._of_trace(trace, records)

    def _is_wanted(self, part: bytes) -> bool:
        """Whether a record may hold one of the words, or is damaged, so that it must be counted."""
        return not part.rstrip().endswith(b"}") or any(word in part for word in self._words)

    # ---- damaged documents ------------------------------------------------------------------

    def _damaged_document(self, text: str) -> Iterator[QlogEvent]:
        """Of a JSON document that cannot be parsed as a whole: all events that can be parsed alone."""
        at = 0
        while found := _EVENTS.search(text, at):
            trace = {name: _member(text, name, at, found.start()) for name in MEMBERS}
            for name in ("qlog_version", "file_schema"):
                self._see({name: _member(text, name, at, found.start())})
            events, at = self._elements(text, found.end())
            yield from self._of_trace(trace, events)
        if not self.faults.total():
            self.faults[CUT] += 1

    def _elements(self, text: str, at: int) -> tuple[list[Any], int]:
        """The elements of an array from ``at`` on, None for what is no JSON, and the position behind them."""
        elements = list[Any]()
        while True:
            at = _FILLER.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
            if text[at : at + 1] in ("", "]", "}"):
                break
            try:
                element, at = _DECODER.raw_decode(text, at)
            except (ValueError, RecursionError):
                end = _end(text, at) if self.faults[NO_JSON] < MOST_FAULTS else None
                self.faults[CUT if end is None else NO_JSON] += 1
                elements.append(None)
                if end is None:
                    return elements, len(text)
                at = end
            else:
                elements.append(element)
        if at >= len(text):
            self.faults[CUT] += 1
        return elements, at

    # ---- events -----------------------------------------------------------------------------

    def _see(self, header: Mapping[str, Any]) -> None:
        for name in ("qlog_version", "file_schema"):
            if isinstance(header.get(name), str):
                self._versions[f"{name} {quoted(header[name])}"] = None

    def _of_trace(self, trace: Mapping[str, Any], records: Sequence[Any]) -> Iterator[QlogEvent]:
        """Events of QUIC and HTTP/3; ``records`` are None where one could not be parsed, which is counted already."""
        clock = _Clock(trace)
        fields = trace.get("event_fields")
        names = [str(each).casefold() for each in fields] if isinstance(fields, list) else []
        for record in records:
            members = record
            if isinstance(record, list) and names:
                members = dict(zip(names, record, strict=False))
            if not isinstance(members, dict) or (name := _name(members)) is None:
                clock.lose()
                self.faults[NO_EVENT] += record is not None
                continue
            time = clock.time(members)
            if isinstance(time, str):
                self.faults[time] += 1
                continue
            category, _, own = name.casefold().rpartition(":")
            if category in CATEGORIES:
                own = own.removeprefix("recovery_")
                yield QlogEvent(time, RENAMED.get(own, own), self._data(members.get("data")))
            elif len(self._categories) < 2:
                self._categories[category] = None

    def _data(self, data: Any) -> Mapping[str, Any]:
        self.faults[NO_DATA] += data is not None and not isinstance(data, dict)
        return _mapping(data)


class _Clock:
    """Times of the events of one trace."""

    def __init__(self, trace: Mapping[str, Any]) -> None:
        settings, common = _mapping(trace.get("configuration")), _mapping(trace.get("common_fields"))
        self._scale = 1e-6 if settings.get("time_units") == "us" else 1e-3
        self._format = common.get("time_format")
        self._reference = number(common.get("reference_time")) or 0.0
        self._first: float | None = None
        self._last: float | None = 0.0

    def lose(self) -> None:
        """Note that an event could not be read, from which the next one may count."""
        self._last = None

    def time(self, members: Mapping[str, Any]) -> float | str:
        """Seconds of the next event, or why they are not known."""
        key = next((key for key in ("time", "relative_time", "delta_time") if key in members), "")
        value, form = number(members.get(key)), members.get("time_format", self._format)
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


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _name(members: Mapping[str, Any]) -> str | None:
    """``category:event`` of an event; None if it has no name."""
    if isinstance(members.get("name"), str):
        return str(members["name"])
    category, own = members.get("category"), members.get("event", members.get("event_type"))
    return f"{category}:{own}" if isinstance(category, str) and isinstance(own, str) else None


def _parsed(part: bytes) -> Any:
    """The value of a JSON text; None if it is none."""
    try:
        return json.loads(part)
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
