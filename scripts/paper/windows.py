"""Receive windows of clients: what they change, and why quic-go's client slows picoquic's server down."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.units import KIB, byte_size
from interop.report.table import Column, Table, Unit
from interop.statistics.facts import fact_of
from interop.statistics.samples import GOODPUT, find, value_of
from interop.traces.series import Series
from scripts.paper.endpoints import FULL, RAISED, share_of_window
from scripts.paper.goodput import known
from scripts.paper.lines import Line, rendered
from scripts.paper.real_time import NEAR, both_clocks
from scripts.paper.words import counted, listed

SERVER, CLIENT, BESIDE = "picoquic", "quic-go", "ngtcp2"
"""The pair that is explained, and a client with which the same server is faster."""
SMALLER = "ngtcp2:window-768k"
"""The latter client with smaller windows."""
FACTS = ("initial_max_data", "initial_max_stream_data_bidi_local")
BURST_GAP = 0.001
"""Seconds without a packet that end a burst: a packet of 1,500 bytes takes 0.6 ms on the link."""


def with_variants(results: ResultSet) -> ResultSet:
    """The runs of variants of clients, for the figure."""
    clients = tuple(name for name in results.manifest.clients if ":" in name)
    kept = tuple(run for run in results.results if run.client in clients)
    return replace(results, results=kept, manifest=replace(results.manifest, clients=clients))


def windows(
    results: ResultSet, large: ResultSet | None, figures: Sequence[Line], runs: tuple[Series | None, Series | None]
) -> Iterator[Line]:
    """The table, the figure, and the cause; ``runs``: of the slow pair, without and with qlogs."""
    yield "## Receive windows of clients"
    yield ""
    yield (
        "Each variant of a client sets the client's windows with one option. Some options also limit how far the "
        "windows can grow, so two clients that announce the same windows can behave differently."
    )
    yield ""
    yield from rendered(by_window(results))
    yield from growth(results)
    if figures:
        yield from about_the_figure(results)
    yield from figures
    yield from cause(results, large, *runs)


def by_window(results: ResultSet) -> Table:
    """Goodput of each server by client and its windows."""
    servers = results.manifest.servers
    columns = (
        Column("client"), Column("connection window"), Column("stream window"),
        *(Column(f"{name} [Mbit/s]") for name in servers),
        Column(f"maximum in flight of {servers[0]} [KiB]", Unit.COUNT),
    )  # fmt: skip
    rows = []
    for client in results.manifest.clients:
        mine = [run for run in results.results if run.client == client]
        means = [_marked([run for run in mine if run.server == server]) for server in servers]
        flying = [value for run in mine if run.server == servers[0] and (value := value_of(run, "in_flight_max"))]
        most = round(max(flying) / KIB) if flying else None
        rows.append((client, *(_announced(mine, name) for name in FACTS), *means, most))
    note = (
        "For runs that timed out (T), goodput is based on the bytes that had arrived. If all runs with a client timed "
        "out, its windows are not known."
    )
    return Table("windows", "Goodput over sat by the windows of the client", columns, tuple(rows), (note,))


def growth(results: ResultSet) -> Iterator[str]:
    """Which clients raise a window that a server filled, and which do not, from what was in flight."""
    most: dict[str, float] = {}
    for run in results.results:
        share = share_of_window(run)
        if share is not None:
            most[run.client] = max(share, most.get(run.client, 0.0))
    raised = [name for name in results.manifest.clients if most.get(name, 0.0) > RAISED]
    kept = [name for name in results.manifest.clients if FULL <= most.get(name, 0.0) <= RAISED]
    told = []
    if raised:
        told.append(
            f"With {listed(raised)}, a server had more than {100 * RAISED:.0f} % of the smaller initial window in "
            f"flight, so {'this client raises its' if len(raised) == 1 else 'these clients raise their'} windows."
        )
    if kept:
        told.append(
            f"With {listed(kept)}, the maximum in flight was {100 * FULL:.0f} to {100 * RAISED:.0f} % of the smaller "
            "initial window, so we see no sign of growth."
        )
    if told:
        yield f"{' '.join(told)} With the other clients, no server filled the window."
        yield ""


def about_the_figure(results: ResultSet) -> Iterator[str]:
    """What the next figure, of the variants, does not show: stream windows, and clients without a success."""
    known, smaller = set[str](), dict[str, str]()
    variants = with_variants(results)
    for run in variants.results:
        connection, stream = (fact_of(run, f"client.{name}") for name in FACTS)
        if isinstance(connection, int) and isinstance(stream, int):
            known.add(run.client)
            if stream < connection:
                smaller[run.client] = f"{run.client} ({byte_size(stream)})"
    lost = [name for name in variants.manifest.clients if name not in known]
    told = [f" It omits {listed(lost)}, which did not finish any run."] if lost else []
    told += [f" It does not show stream windows, which are smaller for {listed(smaller.values())}."] if smaller else []
    if told:
        yield f"The next figure shows connection windows.{''.join(told)}"
        yield ""


def _announced(runs: Sequence[RunResult], name: str) -> str:
    found = sorted({value for run in runs if isinstance(value := fact_of(run, f"client.{name}"), int)})
    return " or ".join(map(byte_size, found))


def _marked(runs: Sequence[RunResult]) -> str:
    """``0.68 T`` if a run timed out."""
    late = any(run.verdict.outcome is Outcome.TIMEOUT for run in runs)
    return "" if (mean := _mean(runs)) is None else f"{mean / 1e6:.2f}{' T' if late else ''}"


def _mean(runs: Sequence[RunResult]) -> float | None:
    found = known(runs)
    return statistics.fmean(found) if found else None


# ---- why ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """How a server began to send."""

    first: float
    """Seconds from the client's first packet to the first byte of the response."""
    request: float
    """Seconds to the first arrival of the request at the server."""
    burst: int
    """Packets of the largest burst."""
    lost: int
    """Of them, lost."""
    at: float
    """Seconds to its beginning."""
    offset: int
    """Bytes of the response sent at its end."""
    silence: float
    """Seconds until the next new byte."""


def start_of(series: Series) -> Start:
    """From the stored series of a run."""
    forward, sent = series.forward, series.sent
    times = forward.sent
    breaks = np.flatnonzero(np.diff(times) > BURST_GAP) + 1
    bursts = np.split(np.arange(len(times)), breaks)
    largest = max(bursts, key=len)
    begin, end = float(times[largest[0]]), float(times[largest[-1]])
    until = sent.time <= end
    later = sent.time[(sent.time > end) & (sent.new > 0)]
    return Start(
        first=float(sent.time.min()),
        request=float(np.nanmin(series.requests.arrived)),
        burst=len(largest),
        lost=int(forward.lost[largest].sum()),
        at=begin,
        offset=int((sent.offset + sent.length)[until].max()),
        silence=float(later.min()) - end if len(later) else 0.0,
    )


def cause(
    results: ResultSet, large: ResultSet | None, series: Series | None, with_qlog: Series | None
) -> Iterator[str]:
    """Why the pair is slow, from clients with other windows and from its packets."""
    yield "### Why picoquic is slow with quic-go"
    yield ""
    yield from with_large_windows(results, large)
    if series is None:
        return
    found = start_of(series)
    yield "The packets of picoquic with quic-go show the following sequence:"
    yield ""
    yield (
        f"- The request reaches the server after {found.request:.2f} s, in the same datagram as the client's "
        f"Finished message. picoquic sends the first byte after {found.first:.2f} s, once the client has resent the "
        "request. [Virtual and real time "
        "compared](../measurements/virtual-time.md#picoquic-as-server-and-quic-go-as-client-over-sat) gives the "
        "reason: the client already uses a new connection ID, but picoquic accepts Initial packets only for its first "
        "connection ID. picoquic therefore drops the rest of the datagram."
    )
    yield (
        f"- After {found.at:.2f} s, picoquic sends {found.burst} packets in one burst. The burst ends with byte "
        f"{found.offset} of the response, which is the end of the stream window. The queue drops {found.lost} of "
        f"these packets. The server sends the next new byte {found.silence:.2f} s later, after the client has "
        "raised the window."
    )
    if with_qlog is not None and len(with_qlog.cwnd) > 1:
        window = peak_of(with_qlog)
        yield (
            f"- In a run with qlogs, a single acknowledgement after {window.at:.2f} s increases picoquic's congestion "
            f"window from {window.before / KIB:.0f} to {window.peak / KIB:.0f} KiB. After the losses, the window falls "
            f"to {window.least / KIB:.0f} KiB (at {window.low_at:.2f} s)."
        )
    yield (
        "- picoquic's BBR first overestimates the link's rate, then underestimates it, and needs most of the transfer "
        "to recover (see the figure of offsets over time, above). We assume that with larger windows, the server "
        "continues to send after the burst, and that the packets that arrive then reveal the link's rate. We did not "
        "measure this."
    )


@dataclass(frozen=True)
class Peak:
    """The congestion window around its steepest growth, bytes and seconds."""

    before: float
    peak: float
    at: float
    least: float
    """The smallest one after that."""
    low_at: float


def peak_of(series: Series) -> Peak:
    """From the windows in the server's qlog."""
    times, values = series.cwnd.time, series.cwnd.value
    place = int(np.argmax(values[1:] / values[:-1]))
    low = place + 1 + int(np.argmin(values[place + 1 :]))
    return Peak(
        float(values[place]), float(values[place + 1]), float(times[place + 1]), float(values[low]), float(times[low])
    )


def with_large_windows(results: ResultSet, large: ResultSet | None) -> Iterator[str]:
    """What a client of quic-go reaches if its windows are larger, and nothing else is changed."""
    own = {(run.server, run.client): value for run in results.results if (value := value_of(run, GOODPUT))}
    wider = {run.server: value for run in large.results if (value := value_of(run, GOODPUT))} if large else {}
    slow, other = own.get((SERVER, CLIENT)), own.get((SERVER, BESIDE))
    if large is None or slow is None or other is None or SERVER not in wider:
        return
    connection, stream = (_announced(large.results, name) for name in FACTS)
    yield (
        f"With quic-go as client, {SERVER}'s server reaches {slow / 1e6:.2f} Mbit/s; with {BESIDE}, it reaches "
        f"{other / 1e6:.2f} Mbit/s. We built quic-go's client with a stream window of {stream} and a connection window "
        f"of {connection} (`bench/quic_go_windows.Dockerfile`), and changed nothing else. "
        f"With this client, {SERVER} reaches {wider[SERVER] / 1e6:.2f} Mbit/s. There is one run with one seed for each "
        f"variant.{_beside_the_windows(results, slow)}{_first_bytes(results, large)}"
    )
    yield ""
    others = [
        f"from {own[server, CLIENT] / 1e6:.2f} to {value / 1e6:.2f} Mbit/s for {server}"
        for server, value in sorted(wider.items())
        if server != SERVER and (server, CLIENT) in own
    ]
    if others:
        yield f"The larger windows of quic-go's client change the goodput of other servers less: {listed(others)}."
        yield ""


def _beside_the_windows(results: ResultSet, slow: float) -> str:
    """Other clients that announce the same windows, and are faster; a sentence, or nothing."""
    by_client = {
        name: [run for run in results.results if run.client == name and run.server == SERVER]
        for name in results.manifest.clients
    }
    windows = {name: [_announced(runs, fact) for fact in FACTS] for name, runs in by_client.items()}
    faster = [
        f"{name} receives {mean / 1e6:.2f} Mbit/s"
        for name, runs in by_client.items()
        if name != CLIENT and windows[name] == windows.get(CLIENT) and (mean := _mean(runs)) and mean > slow
    ]
    return f" Small windows are not the whole cause: with the same windows, {listed(faster)}." if faster else ""


def _first_bytes(results: ResultSet, large: ResultSet) -> str:
    """Whether the request was late with both clients of quic-go, and with others; sentences, or nothing."""
    own, wider = (_first_byte(each, CLIENT) for each in (results, large))
    others = {name: value for name in results.manifest.clients if (value := _first_byte(results, name)) is not None}
    others.pop(CLIENT, None)
    if own is None or wider is None or not others:
        return ""
    limit = LATE * min(others.values())
    soon = [value for value in others.values() if value <= limit]
    times = [f"{own:.2f} s with quic-go's client", f"{wider:.2f} s with the larger windows"]
    late = [name for name, value in others.items() if value > limit]
    times += [f"{others[name]:.2f} s with {name}" for name in late]
    told = (
        f" The first byte arrives after {listed(times)}. With the other clients of the table, it arrives after "
        f"{min(soon):.2f} to {max(soon):.2f} s."
    )
    if OPENSSL in late:
        told += (
            " [Virtual and real time compared]"
            "(../measurements/virtual-time.md#picoquic-as-server-and-s2n-quic-as-client-over-sat) explains why it "
            f"arrives late with {OPENSSL}."
        )
    if min(own, wider) <= limit:
        return told
    return (
        f"{told} The late first byte indicates that {SERVER} drops the same datagram (see below) in both runs with "
        f"{CLIENT}'s client. The dropped datagram alone does not make the pair slow; these runs do not show whether "
        "the small windows alone would."
    )


OPENSSL = "openssl"
LATE = 1.5
"""A first byte is late if it takes this many times as long as the earliest one."""


def _first_byte(results: ResultSet, client: str) -> float | None:
    """Seconds from the client's first packet to the first byte of the file, with ``SERVER``."""
    runs = (run for run in results.results if (run.server, run.client) == (SERVER, client))
    return next((value for run in runs if (value := value_of(run, "time_to_first_byte")) is not None), None)


def in_real_time(results: ResultSet, matrix: ResultSet, real: ResultSet | None) -> Iterator[str]:
    """Which servers of the table differ much in real time, as a paragraph; nothing if there are none."""
    if told := _faster_or_slower(results, matrix, real):
        yield (
            f"{told} We did not measure the variants of clients in real time, so the numbers of this section hold in "
            "virtual time only."
        )
        yield ""


def _faster_or_slower(results: ResultSet, matrix: ResultSet, real: ResultSet | None) -> str:
    """``In real time, picoquic is faster …``: servers whose ratio of both clocks is far from 1; or nothing."""
    case = find(matrix, "sat")
    if real is None or case is None:
        return ""
    pairs, told = both_clocks(matrix, real, case), list[str]()
    for server in results.manifest.servers:
        mine = [each for each in pairs if each.server == server]
        ratio = statistics.geometric_mean(each.ratio for each in mine) if mine else 1.0
        beside = next((each for each in mine if each.client == BESIDE), None)
        if abs(ratio - 1) > NEAR[-1] and beside is not None:
            told.append(
                f"{server} reaches {min(beside.real) / 1e6:.2f} to {max(beside.real) / 1e6:.2f} Mbit/s with {BESIDE} "
                f"({counted(len(beside.real), 'run')}) instead of {beside.virtual / 1e6:.2f} Mbit/s in virtual time"
            )
    return f"In real time, {listed(told)}." if told else ""


def _with_growing_windows(results: ResultSet) -> str:
    """What other servers than ``SERVER`` reach with clients that announce the windows of ``SMALLER``, as a sentence.

    ``SERVER`` is slow with them for another reason (``cause``).
    """
    windows_of = {
        client: [_announced([run for run in results.results if run.client == client], fact) for fact in FACTS]
        for client in results.manifest.clients
    }
    same = [name for name, own in windows_of.items() if name != SMALLER and own == windows_of.get(SMALLER)]
    told = list[str]()
    for server in results.manifest.servers:
        runs = [[run for run in results.results if (run.server, run.client) == (server, name)] for name in same]
        means = [mean for each in runs if (mean := _mean(each))]
        if server != SERVER and means:
            told.append(f"{listed(f'{mean / 1e6:.2f}' for mean in means)} Mbit/s with {server}")
    return (
        f" With {listed(same)}, which {'announces' if len(same) == 1 else 'announce'} the same windows but "
        f"{'raises' if len(same) == 1 else 'raise'} them, goodput is {listed(told)}."
        f"{_with_the_slow_server(results, same)}"
        if told
        else ""
    )


def _with_the_slow_server(results: ResultSet, clients: Sequence[str]) -> str:
    """What ``SERVER`` reaches with these clients, as a sentence; empty if it was not measured with all of them."""
    runs = [[run for run in results.results if (run.server, run.client) == (SERVER, name)] for name in clients]
    means = [mean for each in runs if (mean := _mean(each))]
    if len(means) < len(clients):
        return ""
    return (
        f" With {SERVER}, it is {listed(f'{mean / 1e6:.2f}' for mean in means)} Mbit/s, for reasons that we do not "
        "fully separate (see [Why picoquic is slow with quic-go](#why-picoquic-is-slow-with-quic-go))."
    )


def _limit(results: ResultSet) -> str:
    """The smaller window of ``SMALLER`` per round-trip time, as a sentence; empty if it is not known."""
    runs = [run for run in results.results if run.client == SMALLER]
    windows_of = [value for run in runs for name in FACTS if isinstance(value := fact_of(run, f"client.{name}"), int)]
    case = find(results, "sat")
    if not windows_of or case is None:
        return ""
    rate = 8 * min(windows_of) / case.emulated.round_trip_delay
    return (
        f" If windows do not grow, goodput cannot exceed the window divided by the round-trip time, here "
        f"{byte_size(min(windows_of))} / {1000 * case.emulated.round_trip_delay:.0f} ms = {rate / 1e6:.2f} Mbit/s."
    )


def finding(results: ResultSet, matrix: ResultSet, real: ResultSet | None) -> Iterator[str]:
    """What smaller windows of the same client change, as an item of a list."""
    means = {
        (server, client): mean
        for server in results.manifest.servers
        for client in (BESIDE, SMALLER)
        if (mean := _mean([run for run in results.results if (run.server, run.client) == (server, client)]))
    }
    told = [
        f"from {means[server, BESIDE] / 1e6:.2f} to {means[server, SMALLER] / 1e6:.2f} Mbit/s with {server}"
        for server in results.manifest.servers
        if {(server, SMALLER), (server, BESIDE)} <= means.keys()
    ]
    if told:
        windows_of = {
            client: [_announced([run for run in results.results if run.client == client], fact) for fact in FACTS]
            for client in (BESIDE, SMALLER)
        }
        (connection, stream), (small_connection, small_stream) = windows_of[BESIDE], windows_of[SMALLER]
        yield (
            "- A client's receive windows can limit goodput over `sat` if they do not grow. We reduced the windows of "
            f"{BESIDE}'s client from {connection} for the connection and {stream} for a stream to {small_connection} "
            f"and {small_stream}. "
            f"This reduced goodput {listed(told)} (one run each).{_limit(results)}{_with_growing_windows(results)}"
            f"{(slower := _faster_or_slower(results, matrix, real)) and f' {slower}'} See [Receive windows of "
            "clients](#receive-windows-of-clients)."
        )
