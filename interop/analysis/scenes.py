"""What is looked at when a run did not succeed: all of its traces, or one of its connections; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from interop.analysis.closes import first_close, is_error
from interop.traces.columns import Frame, Trace
from interop.traces.connections import counterparts, only
from interop.traces.events import Ends
from interop.traces.series import Series, of_connection
from interop.traces.streams import finished_connections

END_MARGIN = 0.5
"""Seconds before the end of a trace, or of the transfer, from which on endpoints close because we end them."""


@dataclass(frozen=True, eq=False)
class Scene:
    """What is looked at."""

    ends: Ends
    series: Series
    size: int
    """Bytes of all files."""
    forward_rate: float
    """Of the link, bit/s."""
    by_us: bool
    """We ended the client, so that its close at the end means nothing."""
    duration: float
    """Seconds that the transfer was given, or took."""
    run: Scene | None = None
    """The scene of the whole run, if this one shows one of its connections."""
    connection: int = 0
    """Number of that connection, from 0."""
    elsewhere: int = 0
    """Bytes of the responses that the run's other connections finished."""

    @property
    def start(self) -> float:
        """When the client sent the first packet of the run, in the times of its trace."""
        client = (self.run or self).ends.client
        times = client.time[~client.from_server]
        return float(times.min()) if len(times) else 0.0

    @property
    def server_start(self) -> float:
        """The same moment in the times of the server's trace."""
        ends = self.ends
        return self.start + ends.client.epoch - ends.server.epoch + ends.clock.offset

    @property
    def end(self) -> float:
        """Seconds from there to the last packet of either trace."""
        return max([*self.series.forward.sent, *self.series.back.sent], default=0.0)

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
        return f"Connection {self.connection + 1} of {len(self.run.ends.client.connections)}: " if self.run else ""

    def closes(self) -> Iterator[tuple[Trace, int, float]]:
        """The first close that is not our doing, as each trace shows it: trace, row of ``signals``, start."""
        run_end = (self.run or self).end
        ended = min(run_end, self.duration or run_end) - END_MARGIN
        for trace, start in ((self.ends.client, self.start), (self.ends.server, self.server_start)):
            row = first_close(trace, start + ended if self.by_us else float("inf"))
            if row is not None:
                yield trace, row, start


def failed_connection(run: Scene) -> Scene:
    """The scene of the connection on which the run failed; the run itself if it has no two.

    A client may give a connection up and begin another, so that the last one that was open counts, one closed with an
    error first. Connections are open until the client closes them or sends no more. Those that finished all responses
    are no reason for a failure while bytes are missing.
    """
    client = run.ends.client
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
    scenes = [_scene(run, each, sum(bytes_of[other] for other in finished - {each})) for each in open_]
    return next((each for each in reversed(scenes) if _broken(each)), scenes[-1])


def _last_sign(client: Trace, connection: int) -> float:
    """When the client closed a connection, or sent its last packet on it."""
    own = (client.connection == connection) & ~client.from_server
    closes = client.signals.packet[np.isin(client.signals.kind, (Frame.CLOSE, Frame.CLOSE_APPLICATION))]
    closes = closes[own[closes]]
    return float(client.time[closes].min() if len(closes) else client.time[own].max())


def _broken(scene: Scene) -> bool:
    """Whether an endpoint closed the connection with an error."""
    return any(
        is_error(int(trace.signals.kind[row]), int(trace.signals.first[row])) for trace, row, _ in scene.closes()
    )


def _scene(run: Scene, connection: int, elsewhere: int) -> Scene:
    """The scene of one connection of the run."""
    ends = run.ends
    there = np.flatnonzero(counterparts(ends.server, ends.client) == connection)
    server = only(ends.server, int(there[0]) if len(there) else None)
    client = only(ends.client, connection)
    shown = Ends(client, server, ends.at_client, ends.at_server, ends.forward, ends.back, ends.one_clock)
    series = of_connection(run.series, connection)
    return replace(run, ends=shown, series=series, run=run, connection=connection, elsewhere=elsewhere)
