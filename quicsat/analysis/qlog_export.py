"""Writes what both ends and the link of a run did as three qlogs, by one clock."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from heapq import merge
from pathlib import Path
from typing import Any

from quicsat.analysis.link_qlog import SCHEMA as LINK_SCHEMA
from quicsat.analysis.link_qlog import LinkRun, link_events
from quicsat.model.implementation import Role
from quicsat.model.whole_file import new_file
from quicsat.traces.qlog_events import SCHEMA, Event, Timed, endpoint_events, milliseconds, recovery_events
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.records import dated
from quicsat.traces.series import Series

SUFFIX = ".sqlog"
LINK = "link"
FILES = (f"{Role.CLIENT}{SUFFIX}", f"{Role.SERVER}{SUFFIX}", f"{LINK}{SUFFIX}")
"""Names of the files."""
RECORD_SEPARATOR, LINE_FEED = b"\x1e", b"\n"
NANOSECONDS = 1_000_000_000

Record = tuple[float, Event]
"""Time in seconds, and an event with all its members."""


def write_qlogs(directory: Path, title: str, pair: QuicTracePair, series: Series, link: LinkRun) -> list[Path]:
    """Write the files of a run into ``directory``, which exists; their paths. Raises OSError.

    Times count from the client's first packet.
    """
    clock = _clock(link.start)
    client = _records(endpoint_events(pair.client, pair.client_times, server=False))
    server = merge(
        _records(endpoint_events(pair.server, pair.server_times, server=True)),
        _records((each, "") for each in recovery_events(series.rtt, series.in_flight)),
        key=lambda record: record[0],
    )
    network = _records((each, "") for each in link_events(link, series, pair))
    contents = (
        (f"{title}: the client", {"type": "client"}, SCHEMA, client),
        (f"{title}: the server", {"type": "server"}, SCHEMA, server),
        (f"{title}: the link", {"type": "network", "flow": "server"}, LINK_SCHEMA, network),
    )
    paths = list[Path]()
    for name, (about, place, schema, records) in zip(FILES, contents, strict=True):
        head = {"title": about, "common_fields": clock, "vantage_point": place, "event_schemas": [schema]}
        paths.append(directory / name)
        _write(paths[-1], head, records)
    return paths


def _clock(start: float) -> Event:
    """The common fields of the traces, by when the client's first packet was sent, seconds since 1970."""
    if not dated(int(start * NANOSECONDS)):
        return {"reference_time": {"clock_type": "monotonic", "epoch": "unknown"}}
    begin = datetime.fromtimestamp(start, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {"reference_time": {"clock_type": "system", "epoch": begin}}


def _records(events: Iterable[tuple[Timed, str]]) -> Iterator[Record]:
    for (time, name, data), group in events:
        told: dict[str, Any] = {"time": milliseconds(time), "name": name, "data": data}
        yield time, told | ({"group_id": group} if group else {})


def _write(path: Path, head: Event, records: Iterator[Record]) -> None:
    dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
    header = {
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "trace": head,
    }
    with new_file(path) as file:
        for record in (header, *(event for _, event in records)):
            file.write(RECORD_SEPARATOR + dumps(record).encode() + LINE_FEED)
