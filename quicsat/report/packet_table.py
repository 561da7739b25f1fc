"""The packets of a trace, a row each."""

from collections.abc import Collection
from typing import Any

from quicsat.model.text import printable
from quicsat.report.drawing import NARROWEST, fill
from quicsat.report.table import Column, Table, Unit
from quicsat.traces.columns import Form, Trace
from quicsat.traces.qlog_events import LENGTH, PACKET_TYPES, frames_by_packet

LEFT_OUT = frozenset({"frame_type", "raw", "error_space"})
"""Members of a frame that its text does not name."""
LONGEST = 1000
"""Characters of the frames of a packet."""
ENDS = ("client", "server")
GAP = "  "
UNREAD = "not decrypted"


def packet_table(trace: Trace, title: str, wanted: Collection[int] = ()) -> Table:
    """Time since the first packet, direction, type, number, size and frames; of ``wanted`` frames only, if it has some.

    Frames are in the order of their kinds, see :mod:`quicsat.traces.qlog_events`.
    """
    frames, chosen = frames_by_packet(trace), frozenset(wanted)
    columns = (
        Column("frame", Unit.COUNT), Column("time", Unit.SECONDS, 6), Column("from"), Column("type"),
        Column("number", Unit.COUNT), Column("bytes", Unit.COUNT), Column("frames"),
    )  # fmt: skip
    start = float(trace.time[0]) if len(trace) else 0.0
    table = zip(
        *(
            column.tolist()
            for column in (trace.frame, trace.time - start, trace.from_server, trace.form, trace.number, trace.length)
        ),
        trace.decrypted.tolist(),
        strict=True,
    )
    rows = [
        (
            frame, time, ENDS[from_server], PACKET_TYPES[Form(form)], number if number >= 0 else None,
            length, _texts(frames.get(row, [])) if decrypted else UNREAD,
        )
        for row, (frame, time, from_server, form, number, length, decrypted) in enumerate(table)
        if not chosen or frame in chosen
    ]  # fmt: skip
    return Table("packets", title, columns, tuple(rows))


def listing(table: Table, width: int | None) -> str:
    """The table as lines, as tcpdump and tshark list packets; the last column is wrapped to fit into ``width``."""
    header, *rows = [[column.shown for column in table.columns], *(table.texts(row) for row in table.rows)]
    sizes = [max(map(len, column)) for column in zip(header, *rows, strict=True)][:-1]
    right = [column.unit is not Unit.WORDS for column in table.columns]
    indent = sum(sizes) + len(GAP) * len(sizes)
    room = None if width is None else max(width - indent, NARROWEST)
    lines = list[str]()
    for *fields, last in (header, *rows):
        front = [
            text.rjust(size) if number else text.ljust(size)
            for text, size, number in zip(fields, sizes, right, strict=False)
        ]
        lines.append(GAP.join([*front, fill(last, room).replace("\n", "\n" + " " * indent)]).rstrip())
    return "\n".join([table.title, "", *lines])


def _texts(frames: list[dict[str, Any]]) -> str:
    """``ack 0-3, stream 0 0-1199 fin``; PADDING alone has no frames."""
    return printable(", ".join(map(_text, frames)) or "padding", LONGEST)


def _text(frame: dict[str, Any]) -> str:
    kind, length = frame["frame_type"], frame.get("raw", {}).get(LENGTH)
    if kind == "ack":
        ends = [f"{each[0]}-{each[-1]}" if len(each) > 1 else str(each[0]) for each in reversed(frame["acked_ranges"])]
        return f"ack {' '.join(ends)}"
    if kind in ("stream", "crypto"):
        begin = frame["offset"]
        words = [str(frame["stream_id"])] if kind == "stream" else []
        words.append(f"{begin}-{begin + length - 1}" if length else f"{begin} (0 bytes)")
        return " ".join([kind, *words, *(["fin"] if frame.get("fin") else [])])
    words = [_value(value) for name, value in frame.items() if name not in LEFT_OUT]
    return " ".join(filter(None, [kind, *words, str(length) if length is not None else ""]))


def _value(value: Any) -> str:
    """A number, or a short text; of a token its length."""
    if isinstance(value, dict):
        return f"{value.get('raw', {}).get('length', 0)} bytes"
    return str(value)
