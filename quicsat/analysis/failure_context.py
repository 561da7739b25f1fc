"""What is looked at when a run did not succeed: all of its traces, or one of its connections; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from quicsat.analysis.close_reasons import first_close, is_error
from quicsat.analysis.link_events import LinkHistory
from quicsat.traces.columns import Frame, Trace
from quicsat.traces.connections import counterparts, only
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.series import Series, of_connection
from quicsat.traces.streams import finished_connections

END_MARGIN = 0.5
"""Seconds before the end of a trace, or of the transfer, from which on endpoints close because we end them."""
STALL_TRIPS, STALL_LEAST = 8.0, 1.0
"""Round trips, and seconds, without a new byte that are a stall."""


def last_sent(series: Series) -> float:
    """Seconds to the last packet of either end."""
    return max([*series.forward.sent, *series.back.sent], default=0.0)


def last_progress(series: Series) -> float:
    """Seconds to the arrival of the last new byte of the response; before the first, of the last packet."""
    new = series.arrived.time[series.arrived.new > 0]
    if len(new):
        return float(new.max())
    came = [packets.arrived[np.isfinite(packets.arrived)] for packets in (series.forward, series.back)]
    return float(np.concatenate(came).max(initial=0.0))


def is_stall(series: Series, begin: float, end: float) -> bool:
    """Whether the time from ``begin`` to ``end``, seconds, is long compared with the round trip."""
    trip = float(np.median(series.rtt.value)) if len(series.rtt) else 0.0
    return end - begin > max(STALL_TRIPS * trip, STALL_LEAST)


@dataclass(frozen=True, eq=False)
class FailureContext:
    """What is looked at."""

    trace_pair: QuicTracePair
    series: Series
    size: int
    """Bytes of all files."""
    forward_rate: float
    """What the link offered during the run, bit/s."""
    by_us: bool
    """We ended the client, so that its close at the end means nothing."""
    duration: float
    """Seconds that the transfer was given, or took."""
    run: FailureContext | None = None
    """The context of the whole run, if this one is limited to one of its connections."""
    connection: int = 0
    """Number of that connection, from 0."""
    elsewhere: int = 0
    """Bytes of the responses that the run's other connections finished."""
    link: LinkHistory = field(default_factory=LinkHistory)

    @property
    def start(self) -> float:
        """When the client sent the first packet of the run, in the times of its trace."""
        client = (self.run or self).trace_pair.client
        times = client.time[~client.from_server]
        return float(times.min()) if len(times) else 0.0

    @property
    def server_start(self) -> float:
        """The same moment in the times of the server's trace."""
        trace_pair = self.trace_pair
        return self.start + trace_pair.client.epoch - trace_pair.server.epoch + trace_pair.clock.offset

    @property
    def end(self) -> float:
        """Seconds from there to the last packet of either trace."""
        return last_sent(self.series)

    @property
    def last(self) -> float:
        """Seconds to the last packet, or to the time at which the client was ended."""
        return max(self.end, self.duration - END_MARGIN)

    @property
    def arrived(self) -> int:
        """New bytes of the response at the client, with those of other connections that finished."""
        return int(self.series.arrived.new.sum()) + self.elsewhere

    @property
    def left(self) -> int:
        """Bytes that no other connection has brought."""
        return self.size - self.elsewhere

    @property
    def name(self) -> str:
        """``"Connection 2 of 3: "``; empty if the run has one connection."""
        return (
            f"Connection {self.connection + 1} of {len(self.run.trace_pair.client.connections)}: " if self.run else ""
        )

    def closes(self) -> Iterator[tuple[Trace, int, float]]:
        """The first close that is not our doing, as each trace shows it: trace, row of ``signals``, start."""
        run_end = (self.run or self).end
        ended = min(run_end, self.duration or run_end) - END_MARGIN
        for trace, start in ((self.trace_pair.client, self.start), (self.trace_pair.server, self.server_start)):
            row = first_close(trace, start + ended if self.by_us else float("inf"))
            if row is not None:
                yield trace, row, start


def broken(context: FailureContext) -> bool:
    """Whether an endpoint closed the connection with an error."""
    return any(
        is_error(int(trace.signals.kind[row]), int(trace.signals.first[row])) for trace, row, _ in context.closes()
    )


def failed_connection(run: FailureContext) -> FailureContext:
    """The context of the connection on which the run failed; the run itself if it has a single one.

    A client may give a connection up and begin another, so that the last one that was open counts, one closed with an
    error first. Connections are open until the client closes them or sends no more. Those that finished all responses
    are no reason for a failure while bytes are missing.
    """
    client = run.trace_pair.client
    everyone = range(len(client.connections))
    if len(everyone) < 2:
        return run
    finished = finished_connections(client)
    bytes_of = {each: int(run.series.arrived.new[run.series.arrived.connection == each].sum()) for each in everyone}
    unfinished = [each for each in everyone if each not in finished]
    if not unfinished or sum(bytes_of[each] for each in finished) >= run.size:
        unfinished = [*everyone]
    newest = float(client.time[client.connection == everyone[-1]].min())
    open_ = [each for each in unfinished if _last_sign(client, each) >= newest] or unfinished
    scenes = [_context(run, each, sum(bytes_of[other] for other in finished - {each})) for each in open_]
    return next((each for each in reversed(scenes) if broken(each)), scenes[-1])


def _last_sign(client: Trace, connection: int) -> float:
    """When the client closed a connection, or sent its last packet on it."""
    own = (client.connection == connection) & ~client.from_server
    closes = client.signals.packet[np.isin(client.signals.kind, (Frame.CLOSE, Frame.CLOSE_APPLICATION))]
    closes = closes[own[closes]]
    return float(client.time[closes].min() if len(closes) else client.time[own].max())


def closed_by_client(context: FailureContext, server_end: float) -> bool:
    """Whether the client was the first to close the connection, before the server ended.

    ``server_end``: seconds since 1970 by the clock of the traces.
    """
    ends = context.trace_pair.client, context.trace_pair.server
    by_client, by_server = (_closed(trace, from_server=trace is ends[1]) for trace in ends)
    return by_client < min(by_server, server_end)


def _closed(trace: Trace, *, from_server: bool) -> float:
    """When a side first closed a connection; infinite if it did not."""
    closes = trace.signals.packet[np.isin(trace.signals.kind, (Frame.CLOSE, Frame.CLOSE_APPLICATION))]
    own = closes[trace.from_server[closes] == from_server]
    return trace.epoch + float(trace.time[own].min()) if len(own) else float("inf")


def _context(run: FailureContext, connection: int, elsewhere: int) -> FailureContext:
    """The context of one connection of the run."""
    trace_pair = run.trace_pair
    there = np.flatnonzero(counterparts(trace_pair.server, trace_pair.client) == connection)
    server = only(trace_pair.server, int(there[0]) if len(there) else None)
    shown = replace(trace_pair, client=only(trace_pair.client, connection), server=server)
    series = of_connection(run.series, connection)
    return replace(run, trace_pair=shown, series=series, run=run, connection=connection, elsewhere=elsewhere)
