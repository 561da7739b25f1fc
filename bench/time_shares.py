"""Compare the shares of transfers' time with what the servers' qlogs say: states, windows, and limits of flow control.

    .venv/bin/python -m bench.time_shares results/latest/quic-go_quic-go/satloss/1 ...

A row per run and share: percent of the transfer's time by the traces and by the qlog, of the moments in which the
server could send: without the handshake, requests, outages, the tail, and moments in which the link is busy. Flow
control holds a server up between two increases of the limit if it sends DATA_BLOCKED there with no credit left. Of
servers that never send this frame, the moments count in which a packet exceeds the limit. Recovery lasts as long as
the state with this name, and by the window, from each decrease of the congestion window until it grows.
"""
# ruff: noqa: T201 - a script

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    sent, limit, flight, stuck = _amounts(place / QLOGS, start)
    server = traces.trace_pair.server
    parameters = server.connections[busiest_connection(server) or 0].client_parameters
    limit = Samples(np.append(0.0, limit.time), np.append(float(parameters["initial_max_data"]), limit.value))
    packet = float(np.percentile(series.forward.size, 75))  # the next one does not fit if less is left
    total = float(found.time[-1])

    def row(name: str, shares: Sequence[TimeShare], truth: Flags) -> _Row:
        return _Row(name, sum(found.seconds[each] for each in shares) / total, float((truth & free).mean()))

    blocked = np.zeros(MOMENTS, dtype=np.bool_)
    if len(sent):
        waiting = np.isin(share, [SHARES.index(each) for each in (*STEADY, TimeShare.CONNECTION_FLOW_CONTROL)])
        blocked = _at(sent, moments) + packet > _at(limit, moments)
        stuck = stuck[_at(sent, stuck) + packet > _at(limit, stuck)]
        used_up = np.searchsorted(limit.time, stuck, "right")
        spent = waiting & np.isin(np.searchsorted(limit.time, moments, "right"), used_up)
        truth = spent if len(stuck) else blocked
        yield row("flow control of the connection", [TimeShare.CONNECTION_FLOW_CONTROL], truth)
    states, full = told.states, _at(flight, moments) + packet > _at(told.window, moments)
    if not states and len(told.threshold):
        below = _at(told.window, moments) < np.where(
            moments < told.threshold.time[0], np.inf, _at(told.threshold, moments)
        )
        yield row("slow start", [TimeShare.SLOW_START], below & ~blocked)
    if states:
        now = _states(states, moments, full)
        yield row("slow start", [TimeShare.SLOW_START], (now == "slow_start") & ~blocked)
        yield row("recovery", [TimeShare.RECOVERY, TimeShare.PTO], now == "recovery")
    if len(told.window) and len(told.threshold) + len(states):  # BBR has neither, and lowers its window otherwise
        lowered = _within(moments, np.array(list(_lowered(told.window))).reshape(-1, 2))
        yield row("recovery, by the window", [TimeShare.RECOVERY], lowered)
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


def _amounts(folder: Path, start: float) -> tuple[Samples, Samples, Samples, Floats]:
    """Bytes that the server's qlog says were sent on all streams, allowed by MAX_DATA, and in flight; and the times at
    which it sent DATA_BLOCKED."""
    ends: dict[int, int] = {}
    stuck = list[float]()
    sent, limit, flight = list[tuple[float, float]](), list[tuple[float, float]](), list[tuple[float, float]]()
    for path in files_below(folder):
        for trace in qlog.read(path).traces:
            for event in trace.events:
                time = start + event.time - trace.events[0].time
                if isinstance(event.data.get(FLIGHT), (int, float)):
                    flight.append((time, event.data[FLIGHT]))
                for frame in event.data.get("frames") or []:
                    kind = frame.get("frame_type")
                    if event.name == "packet_sent" and kind == "stream":
                        stream = frame.get("stream_id", frame.get("id", 0))
                        length = frame.get("length", (frame.get("raw") or {}).get("payload_length", 0))
                        ends[stream] = max(ends.get(stream, 0), frame.get("offset", 0) + length)
                        sent.append((time, sum(ends.values())))
                    elif event.name == "packet_received" and kind == "max_data":
                        limit.append((time, frame.get("maximum", 0)))
                    elif event.name == "packet_sent" and kind == "data_blocked":
                        stuck.append(time)
    return Samples.in_order(sent), Samples.in_order(limit), Samples.in_order(flight), np.array(stuck)


def main(runs: Sequence[str]) -> None:
    """Print the rows."""
    print("| run | share | by the traces [%] | by the qlog [%] |\n|---|---|---:|---:|")
    for run in runs:
        for each in compared(Path(run)):
            values = f"{100 * each.traces:.1f} | {100 * each.qlog:.1f}"
            print(f"| {'/'.join(Path(run).parts[-3:])} | {each.share} | {values} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
