"""Compare the shares of transfers' time with what the servers' qlogs say: states, windows, and limits of flow control.

    .venv/bin/python -m bench.time_shares results/latest/quic-go_quic-go/satloss/1 ...

A row per run and share: percent of the transfer's time by the traces and by the qlog, of the moments in which the
server could send: without the handshake, requests, outages, the tail, and moments in which the link is busy. Flow
control holds a server up between two increases of the limit if it uses up its credit there, or sends DATA_BLOCKED or
STREAM_DATA_BLOCKED with less than a packet left. Recovery lasts as long as the state with this name, and by the
window, from each decrease of the congestion window until it grows; slow start and recovery without the moments in
which the credit is used up.
"""
# ruff: noqa: T201 - a script

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quicsat.analysis.reanalysis import planned
from quicsat.analysis.time_shares import SHARES, _within, run_time_shares
from quicsat.cli.stored_run import stored_run
from quicsat.model.arrays import Flags, Floats
from quicsat.model.stored_files import files_below
from quicsat.model.time_shares import TimeShare
from quicsat.traces import qlog
from quicsat.traces.congestion import recovery
from quicsat.traces.flow_control import busiest_connection
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.run_traces import QLOGS, check_traces, read_run
from quicsat.traces.series import Samples

MOMENTS = 100_000
FLOW_CONTROL = (TimeShare.CONNECTION_FLOW_CONTROL, TimeShare.STREAM_FLOW_CONTROL)
OTHERS = (TimeShare.HANDSHAKE, TimeShare.REQUEST, TimeShare.FULL_RATE, TimeShare.OUTAGE, TimeShare.TAIL)
STEADY = (TimeShare.CONGESTION_WINDOW, TimeShare.PACING, TimeShare.APPLICATION, TimeShare.UNKNOWN)
FLIGHT, LIMITED = "bytes_in_flight", "application_limited"


@dataclass(frozen=True)
class _Row:
    share: str
    traces: float
    qlog: float


def compared(run: Path) -> Iterator[_Row]:
    """The rows of the run with this directory; shares of its time. Raises InputError, HarnessFault."""
    results, result, place, _ = stored_run(run, "bench.time_shares RUN")
    planned_run = planned(results.manifest, result).under(result.evidence.perturbation)
    traces = read_run(place, result.protocol, planned_run.test_case.link, check_traces(place, result.protocol))
    series = traces.series()
    found = run_time_shares(traces, series, planned_run.endpoint_test_case, result.evidence)
    if found is None or not isinstance(traces.trace_pair, QuicTracePair):
        return
    moments = (np.arange(MOMENTS) + 0.5) * found.time[-1] / MOMENTS
    share = found.share[np.searchsorted(found.time, moments, "right") - 1]
    free = ~np.isin(share, [SHARES.index(each) for each in OTHERS])
    start = float(np.nanmin(series.back.arrived))
    told = recovery(place / QLOGS, start)
    whole, streams, flight = _amounts(place / QLOGS, start)
    server = traces.trace_pair.server
    parameters = server.connections[busiest_connection(server) or 0].client_parameters
    packet = float(np.percentile(series.forward.size, 75))  # the next one does not fit if less is left
    total = float(found.time[-1])

    def row(name: str, shares: Sequence[TimeShare], truth: Flags) -> _Row:
        return _Row(name, sum(found.seconds[each] for each in shares) / total, float((truth & free).mean()))

    blocked = np.zeros(MOMENTS, dtype=np.bool_)
    waiting = np.isin(share, [SHARES.index(each) for each in (*STEADY, *FLOW_CONTROL)])
    longest = max(streams.values(), key=lambda each: len(each.sent), default=_Credit())
    limits = parameters["initial_max_data"], parameters["initial_max_stream_data_bidi_local"]
    for kind, credit, initial in zip(FLOW_CONTROL, (whole, longest), limits, strict=True):
        if credit.sent:
            spent, empty = credit.used_up(moments, float(initial), packet)
            yield row(kind.label, [kind], spent & waiting)
            blocked |= empty
    states, full = told.states, _at(flight, moments) + packet > _at(told.window, moments)
    if not states and len(told.threshold):
        below = _at(told.window, moments) < np.where(
            moments < told.threshold.time[0], np.inf, _at(told.threshold, moments)
        )
        yield row("slow start", [TimeShare.SLOW_START], below & ~blocked)
    if states:
        now = _states(states, moments, full)
        yield row("slow start", [TimeShare.SLOW_START], (now == "slow_start") & ~blocked)
        yield row("recovery", [TimeShare.RECOVERY, TimeShare.PTO], (now == "recovery") & ~blocked)
    if len(told.window) and len(told.threshold) + len(states):  # BBR has neither, and lowers its window otherwise
        lowered = _within(moments, np.array(list(_lowered(told.window))).reshape(-1, 2))
        yield row("recovery, by the window", [TimeShare.RECOVERY], lowered & ~blocked)
    if len(told.window) and len(flight):
        full &= ~blocked & np.isin(share, [SHARES.index(each) for each in STEADY])
        yield row("congestion window", [TimeShare.CONGESTION_WINDOW], full)


def _states(states: Sequence[tuple[float, str]], moments: Floats, full: Flags) -> NDArray[np.str_]:
    """The state at each moment; with a full window, in place of ``application_limited`` the state before it."""
    words = np.array(["", *(word for _, word in states)])
    place = np.searchsorted([time for time, _ in states], moments, "right")
    early = (words[place] == LIMITED) & full
    found: NDArray[np.str_] = words[np.where(early, place - 1, place)]
    return found


def _lowered(window: Samples) -> Iterator[tuple[float, float]]:
    """From each decrease of the window until it grows: a recovery period, and in congestion avoidance of NewReno up to
    a round trip more."""
    time, value = np.append(window.time, np.inf), window.value
    change, end = np.sign(np.diff(value)), -np.inf
    grows = np.append(np.flatnonzero(change > 0) + 1, len(value))
    for row in (np.flatnonzero(change < 0) + 1).tolist():
        if time[row] >= end:
            end = float(time[grows[np.searchsorted(grows, row)]])
            yield float(time[row]), end


def _at(samples: Samples, times: Floats) -> Floats:
    found: Floats = np.append(0.0, samples.value)[np.searchsorted(samples.time, times, "right")]
    return found


@dataclass
class _Credit:
    """Times with bytes that the server had sent, and was allowed to send; and those at which it said to be blocked."""

    sent: list[tuple[float, float]] = field(default_factory=list)
    limit: list[tuple[float, float]] = field(default_factory=list)
    stuck: list[float] = field(default_factory=list)

    def used_up(self, moments: Floats, initial: float, packet: float) -> tuple[Flags, Flags]:
        """Whether each moment is between two increases of the limit in which the credit is used up, and whether less
        than a ``packet`` of it is left at the moment."""
        sent, limit = Samples.in_order(self.sent), Samples.in_order([(0.0, initial), *self.limit])
        stuck = np.array(self.stuck)
        stuck = stuck[_at(sent, stuck) + packet > _at(limit, stuck)]
        stuck = np.append(stuck, sent.time[sent.value >= _at(limit, sent.time)])
        periods = np.searchsorted(limit.time, stuck, "right")
        spent = np.isin(np.searchsorted(limit.time, moments, "right"), periods)
        return spent, _at(sent, moments) + packet > _at(limit, moments)


def _amounts(folder: Path, start: float) -> tuple[_Credit, dict[int, _Credit], Samples]:
    """What the server's qlog says of the credit of the connection and of each stream, and of the bytes in flight."""
    ends: dict[int, int] = {}
    whole, streams = _Credit(), defaultdict[int, _Credit](_Credit)
    flight = list[tuple[float, float]]()
    for path in files_below(folder):
        for trace in qlog.read(path).traces:
            for event in trace.events:
                time = start + event.time - trace.events[0].time
                if isinstance(event.data.get(FLIGHT), (int, float)):
                    flight.append((time, event.data[FLIGHT]))
                for frame in event.data.get("frames") or []:
                    kind, stream = frame.get("frame_type"), frame.get("stream_id", frame.get("id", 0))
                    limited = {"max_data": whole, "max_stream_data": streams[stream]}
                    blocked = {"data_blocked": whole, "stream_data_blocked": streams[stream]}
                    if event.name == "packet_received" and kind in limited:
                        limited[kind].limit.append((time, frame.get("maximum", 0)))
                    elif event.name == "packet_sent" and kind in blocked:
                        blocked[kind].stuck.append(time)
                    elif event.name == "packet_sent" and kind == "stream":
                        length = frame.get("length", (frame.get("raw") or {}).get("payload_length", 0))
                        ends[stream] = max(ends.get(stream, 0), frame.get("offset", 0) + length)
                        whole.sent.append((time, sum(ends.values())))
                        streams[stream].sent.append((time, ends[stream]))
    return whole, streams, Samples.in_order(flight)


def main(runs: Sequence[str]) -> None:
    """Print the rows."""
    print("| run | share | by the traces [%] | by the qlog [%] |\n|---|---|---:|---:|")
    for run in runs:
        for each in compared(Path(run)):
            values = f"{100 * each.traces:.1f} | {100 * each.qlog:.1f}"
            print(f"| {'/'.join(Path(run).parts[-3:])} | {each.share} | {values} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
