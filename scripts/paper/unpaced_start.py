"""Why quic-go's server is slow with two clients over sat: it sends its first window in one burst."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from interop.model.results import ResultSet
from interop.model.units import KIB
from interop.statistics.samples import GOODPUT, find, value_of
from interop.traces.series import Series
from scripts.paper.goodput import known, of_case
from scripts.paper.packets import STARTS, Pair
from scripts.paper.words import counted, listed

SERVER, TEST_CASE = "quic-go", "sat"
*SLOW, BESIDE = STARTS
"""Slow pairs of a server, and a fast one."""
TITLE = "Why quic-go is slow with kwik and lsquic"
LINK = f"[{TITLE}](#why-quic-go-is-slow-with-kwik-and-lsquic)"
PACKET = 1280
"""Bytes of UDP payload in the server's first packets."""
PAUSE = 0.002
"""Seconds without a packet that end a burst: three packets at the link's rate."""
SHORT = 0.03
"""Round-trip time of the link on which the first probe timeout of 200 ms does not matter, seconds."""
LOWER = 0.95
"""A window below this part of the previous one has been reduced."""


@dataclass(frozen=True)
class Start:
    """The first burst of a response, and the congestion window at the first reduction and at the end."""

    packets: int
    lost: int
    """Of the burst."""
    lost_in_all: int
    window: float
    """Initial congestion window, bytes, as the next."""
    before: float
    after: float
    at: float
    """Seconds from the client's first packet."""
    last: float


def start_of(series: Series) -> Start | None:
    """From a series with the congestion windows of the server's qlog; None if the window was never reduced."""
    table = series.forward
    times = table.sent[table.sent >= series.sent.time[0]]
    lost = table.lost[table.sent >= series.sent.time[0]]
    pauses = np.flatnonzero(np.diff(times) > PAUSE)
    burst = int(pauses[0]) + 1 if len(pauses) else len(times)
    values = series.cwnd.value
    reduced = np.flatnonzero(values[1:] < LOWER * values[:-1])
    if not len(reduced):
        return None
    place = int(reduced[0])
    return Start(
        burst, int(lost[:burst].sum()), int(table.lost.sum()), float(values[0]), float(values[place]),
        float(values[place + 1]), float(series.cwnd.time[place + 1]), float(values[-1]),
    )  # fmt: skip


def unpaced_start(
    matrix: ResultSet,
    results: ResultSet,
    series: Mapping[Pair, Series],
    longer: ResultSet | None = None,
    real: ResultSet | None = None,
) -> Iterator[str]:
    """The reason, from the bursts of the matrix and the packets of runs with qlogs; nothing if one is not stored.

    ``results``: runs with qlogs. ``series``: of these runs. ``longer``: runs with the queue of the paper's simulator,
    over links with the names of those of the matrix. ``real``: runs in real time.
    """
    starts = {pair: found for pair, each in series.items() if (found := start_of(each)) is not None}
    rates = {(run.server, run.client): value for run in results.results if (value := value_of(run, GOODPUT))}
    if any(pair not in starts or (pair.server, pair.client) not in rates for pair in STARTS):
        return
    yield f"### {TITLE}"
    yield ""
    yield from _bursts_of_the_matrix(matrix)
    speeds = listed(f"{rates[pair.server, pair.client] / 1e6:.2f} Mbit/s with {pair.client}" for pair in STARTS)
    yield (
        f"We measured three pairs again with qlogs, on a machine with {_processor(results)}. {SERVER} reaches {speeds}."
        f"{_without_qlogs(matrix)} The packets and qlogs show the following reason:"
    )
    yield ""
    bursts = listed(
        f"{starts[pair].packets} packets with {pair.client} (the queue drops {starts[pair].lost} of them)"
        for pair in SLOW
    )
    yield (
        f"- The initial congestion window of {SERVER} is {starts[BESIDE].window:,.0f} bytes, that is, "
        f"{starts[BESIDE].window / PACKET:.0f} packets of {PACKET:,} bytes. The response begins with a burst of "
        f"{bursts}. With {BESIDE.client}, the burst contains {counted(starts[BESIDE].packets, 'packet')}, and the "
        f"queue drops {starts[BESIDE].lost or 'none'} of them.{_queue(matrix, [starts[pair] for pair in SLOW])}"
    )
    ends = listed(f"from {_ends(starts[pair])} with {pair.client}" for pair in SLOW)
    largest = listed(f"{starts[pair].last / KIB:.0f} KiB with {pair.client}" for pair in SLOW)
    further = [starts[pair].lost_in_all - starts[pair].lost for pair in SLOW]
    yield (
        f"- These drops end slow start: the congestion window falls {ends}. From then on, it grows by about one packet "
        f"per round-trip time, and reaches {largest} at the end of the transfer. "
        f"{'The queue drops no other packets.' if not any(further) else _further(further)} With {BESIDE.client}, slow "
        f"start lasts longer: the congestion window falls from {_ends(starts[BESIDE])}."
    )
    yield (
        f"- {SERVER} does not pace the burst because it has no estimate of the round-trip time yet. According to its "
        "source code (v0.65.0), the estimate is 0 at first if the client has no token (`SetInitialRTT` in "
        "`connection.go`), and the pacing rate is then two windows per millisecond (`cubic_sender.go`). The first "
        "probe timeout is 200 ms, twice the default round-trip time of 100 ms (`rtt_stats.go`), and shorter than the "
        f"round-trip time of the link. {SERVER} therefore sends the packets of the handshake again, and considers the "
        "first ones lost (`QueueProbePacket`). Acknowledgements of such packets give no estimate. With kwik and "
        f"lsquic, no other acknowledgement arrives before the response begins. {BESIDE.client} also acknowledges a "
        f"packet that {SERVER} has not sent again. {ONE_FAST_CLIENT}{_not_in_real_time(real)}"
    )
    if told := _over_a_short_link(matrix):
        yield told
    if told := _with_the_longer_queue(matrix, longer):
        yield (
            f"- {told} Only the queue and the image of the virtual machine differ between these runs and those of the "
            "matrix."
        )
    yield ""


def _queue(matrix: ResultSet, bursts: Sequence[Start]) -> str:
    """What the queue holds, and whether that is what it let through of each burst."""
    case = find(matrix, TEST_CASE)
    queue = case.emulated.forward_queue if case is not None else None
    if not isinstance(queue, int):
        return ""
    if {each.packets - each.lost for each in bursts} == {queue + 1}:
        return (
            f" The queue holds {queue} packets, and the link is sending one more, so {queue + 1} packets of each burst "
            "arrive."
        )
    return f" The queue holds {queue} packets."


def _with_the_longer_queue(matrix: ResultSet, longer: ResultSet | None) -> str:
    """What the server reaches with the longer queue, with the same random numbers; empty if it was not measured."""
    if longer is None:
        return ""
    rates = [
        {(run.client, run.evidence.seed): value for run in results.results
         if (run.server, run.test_case) == (SERVER, TEST_CASE) and (value := value_of(run, GOODPUT))}
        for results in (matrix, longer)
    ]  # fmt: skip
    shared = {key[0]: (rates[0][key], rates[1][key]) for key in rates[0].keys() & rates[1].keys()}
    slow = [pair.client for pair in SLOW]
    rest = [after / before for client, (before, after) in shared.items() if client not in slow]
    if not rest or any(client not in shared for client in slow):
        return ""
    told = listed(
        f"{shared[client][1] / 1e6:.2f} instead of {shared[client][0] / 1e6:.2f} Mbit/s with {client}"
        for client in slow
    )
    return (
        f"With the queue of the paper's simulator, which holds up to 125 packets, {SERVER} reaches {told}. With the "
        f"other clients, its goodput is then {min(rest):.2f} to {max(rest):.2f} times as high."
    )


def _ends(start: Start) -> str:
    """``68 to 48 KiB (after 1.9 s)``."""
    return f"{start.before / KIB:.0f} to {start.after / KIB:.0f} KiB (after {start.at:.1f} s)"


def _further(counts: Sequence[int]) -> str:
    return f"The queue drops {listed(map(str, counts))} other packets."


def _processor(results: ResultSet) -> str:
    names = {run.evidence.host.processor for run in results.results if run.evidence.host is not None}
    return f"the processor {listed(sorted(names))}" if names else "another processor"


def _without_qlogs(matrix: ResultSet) -> str:
    """Goodput of the same pairs in the matrix, with the first seed."""
    runs = {(run.server, run.client): run for run in matrix.results if run.test_case == TEST_CASE}
    found = [value for pair in STARTS if (run := runs.get((pair.server, pair.client))) is not None
             if (value := value_of(run, GOODPUT)) is not None]  # fmt: skip
    if len(found) < len(STARTS):
        return ""
    return f" In the matrix, which has no qlogs, it reaches {listed(f'{value / 1e6:.2f}' for value in found)} Mbit/s."


def _bursts_of_the_matrix(matrix: ResultSet) -> Iterator[str]:
    """The longest burst with each client, in the runs of the matrix."""
    case = find(matrix, TEST_CASE)
    runs = [run for run in of_case(matrix, case) if run.server == SERVER] if case is not None else []
    bursts = {run.client: value for run in runs if (value := value_of(run, "longest_burst")) is not None}
    names = [pair.client for pair in SLOW]
    rest = [value for client, value in bursts.items() if client not in names]
    if rest and all(name in bursts for name in names):
        yield (
            f"In the matrix, {SERVER}'s longest burst over `{TEST_CASE}` has "
            f"{listed(f'{bursts[name]:.0f} packets with {name}' for name in names)}, but only {min(rest):.0f} to "
            f"{max(rest):.0f} packets with the other clients. (The longest burst includes all packets that are sent "
            "back to back, not only those of the response.)"
        )
        yield ""


def _over_a_short_link(matrix: ResultSet) -> str:
    """What the slow pairs reach over a link whose round-trip time is below the probe timeout; empty if unknown."""
    for case in matrix.manifest.test_cases:
        if case.emulated.forward_delay + case.emulated.return_delay > SHORT:
            continue
        runs = [run for run in of_case(matrix, case) if run.server == SERVER]
        means = {
            pair.client: statistics.fmean(values)
            for pair in SLOW
            if (values := known(run for run in runs if run.client == pair.client))
        }
        if len(means) == len(SLOW):
            rates = listed(f"{mean / 1e6:.2f} Mbit/s with {client}" for client, mean in means.items())
            return (
                f"- Over `{case.name}`, the round-trip time is shorter than this probe timeout, and {SERVER} reaches "
                f"{rates}."
            )
    return ""


ONE_FAST_CLIENT = f"Of the clients with which {SERVER} is fast, we examined only {BESIDE.client}."


def _not_in_real_time(real: ResultSet | None) -> str:
    """That the slow clients were not measured in real time, as a sentence; empty if they were."""
    measured = {run.client for run in real.results} if real is not None else set[str]()
    missing = [pair.client for pair in SLOW if pair.client not in measured]
    return (
        f" We did not measure {listed(missing)} as {'a client' if len(missing) == 1 else 'clients'} in real time, so "
        "this holds in virtual time only."
        if missing
        else ""
    )


def finding(matrix: ResultSet, longer: ResultSet | None = None, real: ResultSet | None = None) -> Iterator[str]:
    """What the burst costs over the link, as an item of a list; nothing if a slow pair was not measured.

    ``longer``: runs with the queue of the paper's simulator, over links with the names of those of the matrix.
    ``real``: runs in real time.
    """
    case = find(matrix, TEST_CASE)
    runs = [run for run in of_case(matrix, case) if run.server == SERVER] if case is not None else []
    means = {
        client: statistics.fmean(values)
        for client in matrix.manifest.clients
        if (values := known(run for run in runs if run.client == client))
    }
    slow = {pair.client: means[pair.client] for pair in SLOW if pair.client in means}
    rest = [mean for client, mean in means.items() if client not in slow]
    if len(slow) == len(SLOW) and rest:
        rates = listed(f"{mean / 1e6:.2f} Mbit/s with {client}" for client, mean in slow.items())
        counterfactual = _with_the_longer_queue(matrix, longer)
        yield (
            f"- {SERVER}'s server does not pace its first window if it has no estimate of the round-trip time. Over "
            f"`{TEST_CASE}`, the queue then drops packets at once, slow start ends, and goodput is {rates}, but "
            f"{min(rest) / 1e6:.2f} to {max(rest) / 1e6:.2f} Mbit/s with the other clients."
            f"{counterfactual and f' {counterfactual}'} {ONE_FAST_CLIENT}{_not_in_real_time(real)} See {LINK}."
        )
