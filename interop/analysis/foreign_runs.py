"""Numbers of a run that another runner made, as far as its traces, key logs and output tell them.

Nothing is assumed of the link: only the runner's own output tells its rate, and nothing tells what its queue dropped.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from interop.analysis import metrics
from interop.analysis.causes import Scene, explain
from interop.errors import HarnessFault
from interop.foreign_logs import ForeignRun
from interop.model import EmulatedLink, Link, Protocol, RealLink
from interop.traces.columns import Trace
from interop.traces.connections import handshakes
from interop.traces.events import Ends
from interop.traces.network import PPP
from interop.traces.reading import CLIENT_TRACE, KEY_LOGS, SERVER_TRACE, Reading, States, read_run, states
from interop.traces.records import BrokenError, Condition, records
from interop.traces.streams import ByteRanges, response_frames
from interop.traces.trace import key_lines, read
from interop.units import byte_size, percent

SIMULATOR, HOST, MIXED = "simulator", "1970", "mixed"
"""From when the times of traces count: the start of a simulation, 1970, or one of them per trace."""
STRANGERS = 0.05
"""Share of packets that arrived and were never sent, above which the traces do not tell the loss."""


@dataclass(frozen=True)
class Findings:
    """What could be found out about a run; SI units, None for what is not known."""

    outcome: str
    """What the runner's output says, else what the streams show."""
    clock: str = ""
    """One of ``SIMULATOR``, ``HOST`` and ``MIXED``; empty without traces."""
    size: int | None = None
    """Bytes of all files."""
    size_from: str = ""
    """Where the size comes from."""
    handshake: float | None = None
    goodput: float | None = None
    efficiency: float | None = None
    loss_forward: float | None = None
    loss_return: float | None = None
    notes: tuple[str, ...] = ()
    """A sentence each: the cause of a failure, and what could not be found out."""


def examine(run: ForeignRun, size: int | None) -> Findings:
    """What the files of a run say; ``size`` of all its files in bytes, if the caller knows it. Nothing is written."""
    if run.refused:
        return Findings("not read", notes=(f"Not read: {run.refused}.",))
    found = states(run.directory, Protocol.HQ)
    at_client, at_server = found.client.condition is Condition.OK, found.server.condition is Condition.OK
    if not at_client and not at_server:
        return Findings(run.told.outcome, notes=tuple(_broken(found)))
    if not at_client:
        reason = "Handshake and goodput are seen at the client, whose trace cannot be used."
        return Findings(run.told.outcome, _clock(found), notes=(*_broken(found), reason))
    try:
        if not at_server:
            keys = key_lines(*(run.directory / log for log in KEY_LOGS))
            client = read(run.directory / CLIENT_TRACE, keys)
            return _findings(run, found, client, None, size)
        reading = read_run(run.directory, Protocol.HQ, _link(found), found)
    except HarnessFault as fault:
        return Findings(run.told.outcome, _clock(found), notes=(fault.reason,))
    assert isinstance(reading.ends, Ends)
    return _findings(run, found, reading.ends.client, reading, size)


def _broken(found: States) -> list[str]:
    sides = (("client", found.client), ("server", found.server))
    return [
        f"The {side}'s trace cannot be used: {state.reason}"
        for side, state in sides
        if state.condition is not Condition.OK
    ]


def _clock(found: States) -> str:
    clocks = {SIMULATOR if state.simulated else HOST for state in (found.client, found.server) if state.packets}
    return MIXED if len(clocks) > 1 else next(iter(clocks), "")


def _link(found: States) -> Link:
    """A link of which nothing is known but whether one clock stamped both traces."""
    if found.client.simulated and found.server.simulated:
        return EmulatedLink("unknown", 0.0, 0.0, 0.0, 0.0, 0, 0)
    return RealLink("client", "server", 0.0, 0.0, 0.0)


# ---- numbers --------------------------------------------------------------------------------


def _findings(run: ForeignRun, found: States, client: Trace, reading: Reading | None, given: int | None) -> Findings:
    notes = _broken(found)
    streams = stream_bytes(client)
    size, source = _size(run, streams, given, notes)
    if streams.whole is None:
        notes.append("No response could be decrypted: key logs are missing or do not fit, or nothing was answered.")
    connections = handshakes(client)
    goodput = None
    if connections != 1:
        notes.append(f"The client's trace shows {connections} handshakes, so there is no goodput of one connection.")
    elif size is None:
        notes.append("The size of the files is not known, so there is no goodput; --file-size names it.")
    elif not _failed(run, streams):
        goodput = metrics.goodput(client, size)
    rate = run.told.forward_rate
    losses = _losses(run, found, reading, notes)
    if _failed(run, streams) and reading is not None:
        notes.append(_cause(run, reading, size))
    return Findings(
        outcome=_outcome(run, streams),
        clock=_clock(found),
        size=size,
        size_from=source,
        handshake=metrics.handshake_time(client),
        goodput=goodput,
        efficiency=metrics.efficiency(goodput, rate) if goodput is not None and rate else None,
        loss_forward=losses[0],
        loss_return=losses[1],
        notes=tuple(filter(None, notes)),
    )


@dataclass(frozen=True)
class StreamBytes:
    """What the client's trace shows of the responses."""

    arrived: int
    """Different bytes."""
    whole: bool | None
    """Every stream that was asked on is answered to its end; None if nothing of the responses could be decrypted."""
    http3: bool
    """The streams hold HTTP/3, whose frames are more than the files."""


def stream_bytes(client: Trace) -> StreamBytes:
    """The bytes of the responses and whether all are there (RFC 9000, section 3.2: all data up to the final size)."""
    frames, answers = client.frames, response_frames(client)
    asked = (~client.from_server[frames.packet]) & (frames.stream % 4 == 0)
    connection = client.connection[frames.packet]
    ranges: defaultdict[tuple[int, int], ByteRanges] = defaultdict(ByteRanges)
    final: dict[tuple[int, int], int] = {}
    for row in np.flatnonzero(answers).tolist():
        key = int(connection[row]), int(frames.stream[row])
        begin, end = int(frames.offset[row]), int(frames.offset[row] + frames.length[row])
        ranges[key].add(begin, end)
        if frames.fin[row]:
            final[key] = end
    wanted = {*zip(connection[asked].tolist(), frames.stream[asked].tolist(), strict=True), *ranges}
    complete = all(key in final and ranges[key].size == final[key] for key in wanted) if ranges else None
    http3 = any(each.alpn.startswith("h3") for each in client.connections)
    return StreamBytes(sum(each.size for each in ranges.values()), complete, http3)


def _size(run: ForeignRun, streams: StreamBytes, given: int | None, notes: list[str]) -> tuple[int | None, str]:
    """Bytes of all files, and who says so; None if that contradicts the streams, or nobody says it."""
    shown = streams.arrived if streams.whole and not streams.http3 else None
    for size, source in ((given, "option"), (run.told.size, "output")):
        if size is not None:
            if shown is None or shown == size:
                return size, source
            notes.append(f"The streams hold {shown} bytes, but the {source} says {size}.")
            return None, ""
    return (shown, "streams") if shown is not None else (None, "")


def _outcome(run: ForeignRun, streams: StreamBytes) -> str:
    if run.told.outcome != "not told" or streams.whole is None:
        return run.told.outcome
    return "streams whole" if streams.whole else "streams not whole"


def _failed(run: ForeignRun, streams: StreamBytes) -> bool:
    """Whether the runner, the client or the streams say that something is missing."""
    status = dict(run.told.exits).get("client", 0)
    return run.told.timeout is not None or status != 0 or streams.whole is False


def _losses(
    run: ForeignRun, found: States, reading: Reading | None, notes: list[str]
) -> tuple[float | None, float | None]:
    """Loss forward and return; None for what the traces do not tell."""
    if reading is None:
        return None, None
    if reading.cut:
        notes.append(f"{reading.cut} packets of the traces are cut, so that the loss could not be measured.")
        return None, None
    if _inside_ns3(run.directory / CLIENT_TRACE) or _inside_ns3(run.directory / SERVER_TRACE):
        notes.append("A trace was recorded inside ns-3, behind the queue: what the queue dropped is not in the loss.")
    values = list[float | None]()
    for passage, name in ((reading.ends.forward, "forward"), (reading.ends.back, "return")):
        came = passage.strangers + int((passage.arrived >= 0).sum())
        if passage.strangers > STRANGERS * came:
            share = percent(passage.strangers / came)
            notes.append(f"{share} of the packets that arrived {name} were never sent so: the loss is not known.")
        elif passage.strangers:
            notes.append(f"{passage.strangers} packets arrived {name} changed, and count as lost.")
        values.append(passage.loss if passage.strangers <= STRANGERS * came else None)
    if _clock(found) == MIXED:
        notes.append("One trace counts from the start of a simulation, the other from 1970: clocks are estimated.")
    return values[0], values[1]


def _inside_ns3(path: Path) -> bool:
    """Whether ns-3 wrote a trace at one of its own devices, whose link type is PPP."""
    try:
        return next(iter(records(path))).link_type == PPP
    except (BrokenError, StopIteration):
        return False


def _cause(run: ForeignRun, reading: Reading, size: int | None) -> str:
    """Why the transfer failed, as far as that can be said without the size of the files."""
    assert isinstance(reading.ends, Ends)
    series = reading.series()
    if size is None and len(series.arrived):
        return f"{byte_size(int(series.arrived.new.sum()))} arrived; the cause needs the size, see --file-size."
    stopped = run.told.timeout is not None
    scene = Scene(reading.ends, series, size or 1, run.told.forward_rate or 0.0, stopped, 0.0)
    return explain(scene)[1]
