"""Reads a qlog, whichever of its dialects a stack writes, as events; pure but for the file.

JSON (draft-ietf-quic-qlog-main-schema; older drafts with ``event_fields`` too), JSON-SEQ (RFC 7464), lines of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT = 128 * 1024 * 1024
"""Bytes of a qlog that are read; 10 MiB take up to about 40 MB."""
CATEGORIES = ("connectivity", "http", "quic", "recovery", "security", "transport")
"""Categories of events of QUIC and HTTP/3, in the drafts so far."""
RECORD_SIGN = b"\x1e"


@dataclass(frozen=True)
class QlogEvent:
    """What one event of a qlog says."""

    time: float
    """Seconds, since whenever its trace begins to count."""
    name: str
    """``recovery:metrics_updated``."""
    data: Mapping[str, Any]


def read(path: Path, *words: bytes) -> tuple[QlogEvent, ...]:
    """All events of QUIC and HTTP/3 in a qlog, in its order; raises ValueError with a sentence if there are none.

    If ``words`` are given, events that mention none of them may be left out, but not the first one: that saves most of
    the time where each event is a record of its own.

    A last record that was cut, as a stack that is ended may leave it, is passed over, and so is whatever is no event:
    an endpoint has written it.
    """
    with path.open("rb") as stream:
        content = stream.read(LIMIT + 1)
    if len(content) > LIMIT:
        raise ValueError(f"{path.name} is larger than {LIMIT // 1024**2} MiB.")
    found = tuple(event for event in _events(content, words) if event.name.partition(":")[0] in CATEGORIES)
    if not found:
        raise ValueError(f"{path.name} holds no event of QUIC.")
    return found


def _events(content: bytes, words: Sequence[bytes]) -> Iterator[QlogEvent]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        yield from _sequence(content, words)
        return
    traces = document.get("traces", []) if isinstance(document, dict) else []
    for trace in traces if isinstance(traces, list) else []:
        if isinstance(trace, dict) and isinstance(trace.get("events"), list):
            yield from _of_trace(trace, trace["events"])


def _sequence(content: bytes, words: Sequence[bytes]) -> Iterator[QlogEvent]:
    """Of JSON-SEQ, or of one JSON text per line; the first record describes the trace."""
    separator = RECORD_SIGN if content.lstrip().startswith(RECORD_SIGN) else b"\n"
    parts = [part for part in content.split(separator) if part.strip()]
    if words:
        parts = parts[:2] + [part for part in parts[2:] if any(word in part for word in words)]
    records = [record for part in parts if (record := _parse(part)) is not None]
    if records and isinstance(records[0], dict):
        header = records[0].get("trace")
        yield from _of_trace(header if isinstance(header, dict) else {}, records[1:])


def _parse(part: bytes) -> Any:
    try:
        return json.loads(part)
    except (ValueError, RecursionError):
        return None


def _of_trace(trace: Mapping[str, Any], events: Sequence[Any]) -> Iterator[QlogEvent]:
    settings = trace.get("configuration")
    unit = settings.get("time_units") if isinstance(settings, dict) else None
    scale = 1e-6 if unit == "us" else 1e-3
    fields = trace.get("event_fields")
    for event in events:
        members = event
        if isinstance(event, list) and isinstance(fields, list):
            members = dict(zip(map(str, fields), event, strict=False))
        if isinstance(members, dict):
            yield from _event(members, scale)


def _event(members: Mapping[str, Any], scale: float) -> Iterator[QlogEvent]:
    name = members.get("name") or f"{members.get('category')}:{members.get('event', members.get('event_type'))}"
    time = next((members[key] for key in ("time", "relative_time") if isinstance(members.get(key), int | float)), 0.0)
    data = members.get("data")
    yield QlogEvent(float(time) * scale, str(name), data if isinstance(data, dict) else {})
