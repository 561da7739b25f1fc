"""Writes what both ends and the link of a run did as three qlogs, by one clock."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from heapq import merge
from itertools import chain
from pathlib import Path
from typing import Any, cast

from quicsat.analysis.link_qlog import SCHEMA as LINK_SCHEMA
from quicsat.analysis.link_qlog import LinkRun, link_events
from quicsat.model.implementation import Role
from quicsat.model.stored_files import open_file, resolved
from quicsat.model.whole_file import new_file
from quicsat.traces.qlog_events import SCHEMA, Event, Timed, endpoint_events, recovery_events, window_events
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.records import dated
from quicsat.traces.run_traces import RunTraces

SUFFIX = ".sqlog"
LINK = "link"
FILES = (f"{Role.CLIENT}{SUFFIX}", f"{Role.SERVER}{SUFFIX}", f"{LINK}{SUFFIX}")
"""Names of the files."""
OLDER_SUFFIX = ".qlog"
LONGEST_HEAD = 64 * 1024
"""Bytes of a file that are looked at to recognise it."""
OLDER_NAMES = {
    "quic:connection_started": "connectivity:connection_started",
    "quic:connection_closed": "connectivity:connection_closed",
    "quic:recovery_metrics_updated": "recovery:metrics_updated",
    "quic:udp_datagrams_received": "transport:datagrams_received",
    "quic:udp_datagrams_sent": "transport:datagrams_sent",
}
"""Names of events in qlog 0.3 that are not of its category ``transport``."""
RECORD_SEPARATOR, LINE_FEED = b"\x1e", b"\n"
HEADER = {
    "file_schema": "urn:ietf:params:qlog:file:sequential",
    "serialization_format": "application/qlog+json-seq",
}
OLDER_HEADER = {"qlog_version": "0.3", "qlog_format": "JSON"}
"""What files begin with."""
NANOSECONDS = 1_000_000_000
DIGITS = 6
"""Of times in milliseconds, behind the point: as precise as the traces, so that equal times stay so when read back."""

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

Record = tuple[float, Event]
"""Time in seconds, and an event with all its members."""


def write_qlogs(directory: Path, title: str, traces: RunTraces, link: LinkRun, *, older: bool = False) -> list[Path]:
    """Write the files of a run over QUIC into ``directory``, which exists; their paths. Raises OSError."""
    paths = list[Path]()
    for name, content in qlogs(title, traces, link, older=older):
        paths.append(directory / name)
        with new_file(paths[-1]) as file:
            file.writelines(content)
    return paths


def file_names(*, older: bool = False) -> tuple[str, ...]:
    """Those of the files of a run."""
    return tuple(f"{name.removesuffix(SUFFIX)}{OLDER_SUFFIX}" for name in FILES) if older else FILES


def is_export(path: Path) -> bool:
    """Whether :func:`write_qlogs` wrote a file of this name."""
    head = b""
    with suppress(OSError), open_file(resolved(path)) as file:
        head = file.read(LONGEST_HEAD)
    start, rest = (OLDER_HEADER, b',"traces":[') if path.suffix == OLDER_SUFFIX else (HEADER, b',"trace":')
    begin = _ENCODE(start).encode().removesuffix(b"}") + rest + b'{"title":"'
    return head.removeprefix(RECORD_SEPARATOR).startswith(begin) and f': the {path.stem}",'.encode() in head


def qlogs(
    title: str, traces: RunTraces, link: LinkRun, *, older: bool = False
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Names of the files of a run over QUIC, and their content in parts: JSON-SEQ, or as qvis reads them.

    Times count from the client's first packet.
    """
    pair, series = cast("QuicTracePair", traces.trace_pair), traces.series()
    clock = _clock(link.start)
    client = _records(endpoint_events(pair.client, pair.client_times, server=False))
    server = merge(
        _records(endpoint_events(pair.server, pair.server_times, server=True)),
        _records((each, "") for each in recovery_events(series.rtt, series.in_flight)),
        _records((each, "") for each in window_events(series.cwnd)),
        key=lambda record: record[0],
    )
    network = _records((each, "") for each in link_events(link, series, pair))
    contents = (
        (f"{title}: the client", {"type": "client"}, SCHEMA, client),
        (f"{title}: the server", {"type": "server"}, SCHEMA, server),
        (f"{title}: the link", {"type": "network", "flow": "server"}, LINK_SCHEMA, network),
    )
    for name, (about, place, schema, records) in zip(file_names(older=older), contents, strict=True):
        head = {"title": about, "common_fields": clock, "vantage_point": place, "event_schemas": [schema]}
        events = (event for _, event in records)
        if older:
            yield name, _older(head, events)
        else:
            yield name, _sequence(head, events)


def _clock(start: float) -> Event:
    """The common fields of the traces, by when the client's first packet was sent, seconds since 1970."""
    if not dated(int(start * NANOSECONDS)):
        return {"reference_time": {"clock_type": "monotonic", "epoch": "unknown"}}
    begin = datetime.fromtimestamp(start, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {"reference_time": {"clock_type": "system", "epoch": begin}}


def _records(events: Iterable[tuple[Timed, str]]) -> Iterator[Record]:
    for (time, name, data), group in events:
        told: dict[str, Any] = {"time": round(time * 1000, DIGITS), "name": name, "data": data}
        yield time, told | ({"group_id": group} if group else {})


def _sequence(head: Event, events: Iterable[Event]) -> Iterator[bytes]:
    """A header and the events as JSON-SEQ (RFC 7464)."""
    for record in chain([HEADER | {"trace": head}], events):
        yield RECORD_SEPARATOR + _ENCODE(record).encode() + LINE_FEED


def _older(head: Event, events: Iterable[Event]) -> Iterator[bytes]:
    """The same as one JSON object of qlog 0.3, which qvis reads, an event a line."""
    trace = {name: head[name] for name in ("title", "vantage_point")}
    trace |= {"common_fields": {"time_format": "relative", "reference_time": 0}, "events": []}
    begin, end = _ENCODE(OLDER_HEADER | {"traces": [trace]}).rsplit("[]", 1)
    yield f"{begin}[".encode()
    for number, event in enumerate(_older_events(events)):
        yield (b",\n" if number else b"\n") + _ENCODE(event).encode()
    yield f"\n]{end}".encode()


def _older_events(events: Iterable[Event]) -> Iterator[Event]:
    """With the names of qlog 0.3. qvis shows events of each group for itself: those without are of that before."""
    group = ""
    for event in events:
        group = event.get("group_id", group)
        space, _, name = event["name"].partition(":")
        data = event["data"]
        if "frames" in data:
            data = data | {"frames": [_with_length(frame) for frame in data["frames"]]}
        old = OLDER_NAMES.get(event["name"], f"transport:{name}" if space == "quic" else event["name"])
        yield event | {"name": old, "data": data} | ({"group_id": group} if group else {})


def _with_length(frame: Event) -> Event:
    length = frame.get("raw", {}).get("payload_length")
    return frame if length is None else frame | {"length": length}
