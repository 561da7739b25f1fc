"""Comments on the packets of a run that matter, for its capture; pure."""

from __future__ import annotations

from collections import Counter

import numpy as np

from quicsat.analysis.time_shares import SHARES, Stretches
from quicsat.model.time_shares import TimeShare
from quicsat.model.units import seconds
from quicsat.traces.columns import Frame, Trace
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.series import Series

PAUSES = {
    TimeShare.PTO: "PTO {number}: the server had been silent for {time}",
    TimeShare.CONNECTION_FLOW_CONTROL: "blocked by MAX_DATA for {time} until now",
    TimeShare.STREAM_FLOW_CONTROL: "blocked by MAX_STREAM_DATA for {time} until now",
    TimeShare.APPLICATION: "the server's application had paused for {time}",
    TimeShare.OUTAGE: "the link had delivered nothing for {time}",
}
"""Comment on the first packet that the server sends after a share of its time."""
LEAST_TRIPS = 0.1
"""Shortest pause that gets a comment, in round-trip times."""

Comments = dict[int, str]
"""By the number of a frame in its trace."""


def comments(pair: QuicTracePair, series: Series, stretches: Stretches | None) -> tuple[Comments, Comments]:
    """Those of the client's trace and of the server's."""
    client = _signals(pair.client)
    for name, time in (
        ("the first byte of a response", series.requests.first_byte), ("the last new byte", series.requests.last_byte)
    ):  # fmt: skip
        known = time[~np.isnan(time)]
        if len(known):
            moment = known.min() if name.startswith("the first") else known.max()
            _add(client, pair.client, int(np.abs(pair.client_times - moment).argmin()), name)
    server = _signals(pair.server)
    rows = pair.forward.sent[pair.forward.lost]
    by_datagram = np.flatnonzero(np.diff(pair.server.frame, prepend=-1))
    if len(by_datagram) == len(pair.at_server):
        for number, row in enumerate(rows.tolist(), 1):
            text = f"first loss of {len(rows)}: it did not arrive" if number == 1 else "lost: it did not arrive"
            _add(server, pair.server, int(by_datagram[row]), text)
    if stretches is not None:
        _pauses(server, pair, series, stretches)
    return client, server


def _signals(trace: Trace) -> Comments:
    """Frames in which an endpoint says that it is blocked, or that it ends."""
    found: Comments = {}
    words = {
        Frame.DATA_BLOCKED: "DATA_BLOCKED", Frame.STREAM_DATA_BLOCKED: "STREAM_DATA_BLOCKED",
        Frame.CLOSE: "CONNECTION_CLOSE", Frame.CLOSE_APPLICATION: "CONNECTION_CLOSE",
    }  # fmt: skip
    for packet, kind in trace.signals.rows("packet", "kind"):
        if kind in words:
            _add(found, trace, packet, words[kind])
    return found


def _pauses(found: Comments, pair: QuicTracePair, series: Series, stretches: Stretches) -> None:
    least = LEAST_TRIPS * float(series.rtt.value.min())
    ours = np.flatnonzero(pair.server.from_server & pair.server.eliciting)
    times, counts = pair.server_times[ours], Counter[TimeShare]()
    for begin, end, number in zip(
        stretches.time[:-1].tolist(), stretches.time[1:].tolist(), stretches.share.tolist(), strict=True
    ):
        share = SHARES[number]
        place = int(np.searchsorted(times, end - 1e-6))
        if share in PAUSES and end - begin >= least and place < len(ours):
            counts[share] += 1
            text = PAUSES[share].format(number=counts[share], time=seconds(end - begin))
            _add(found, pair.server, int(ours[place]), text)


def _add(found: Comments, trace: Trace, row: int, text: str) -> None:
    frame = int(trace.frame[row])
    found[frame] = f"{found[frame]}; {text}" if frame in found else text
