"""What the formulas of Reno and CUBIC predict for a link with loss, and what the servers reached over it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from interop.model.emulated_link import EmulatedLink, loss_share
from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.report.table import Column, Table, Unit
from interop.statistics.overview import family
from interop.statistics.samples import find, value_of
from scripts.paper.goodput import known, of_case
from scripts.paper.lines import rendered

CUBIC_C, CUBIC_BETA = 0.4, 0.7
"""Constants of RFC 9438, sections 4.1 and 4.6."""


def reno(payload: float, trip: float, loss: float, kept: float = 0.5) -> float:
    """Bit/s of Reno (Mathis et al. 1997, every packet acknowledged); bytes per packet, seconds, share of packets.

    ``kept``: share of its window that a sender keeps after a loss. The window grows by a packet per round trip, and a
    loss comes after each 1 / loss packets.
    """
    return 8 * payload / trip * math.sqrt((1 + kept) / (1 - kept) / 2 / loss)


def cubic(payload: float, trip: float, loss: float) -> float:
    """Bit/s of CUBIC (RFC 9438, equation 5), or of Reno if that is faster: then CUBIC behaves like Reno."""
    constant = math.pow(CUBIC_C * (3 + CUBIC_BETA) / 4 / (1 - CUBIC_BETA), 0.25)
    return max(8 * payload / trip * constant * math.pow(trip / loss, 0.75), reno(payload, trip, loss))


MTU, IP_AND_UDP, LINK_HEADER = 1500, 28, 2
"""Bytes: largest IP packet of a link, headers of IPv4 and UDP in it, and the PPP header that a link's rate counts."""
QUIC_OVERHEAD = 25
"""Bytes, about: short header, header of the STREAM frame and authentication tag of a packet."""
INITIAL_WINDOW = 10
"""Packets, as RFC 9002 recommends (section 7.2)."""
INITIAL_BYTES = INITIAL_WINDOW * (MTU - IP_AND_UDP)
"""The same in bytes of UDP payload: the 14,720 bytes of RFC 9002."""
PER_PACKET = MTU - IP_AND_UDP - QUIC_OVERHEAD
"""Bytes of the file in a packet that is as large as possible."""


def fastest(size: int, link: EmulatedLink) -> float:
    """Goodput, bit/s, of a server that only slow start and the forward rate limit.

    It begins with ``INITIAL_WINDOW`` packets, sends twice as many in each further round trip until that fills the link,
    and from then on at its rate; all packets are as large as possible, each with ``QUIC_OVERHEAD``, and none is lost.
    """
    payload, per_packet = PER_PACKET, 8 * (MTU + LINK_HEADER) / link.forward_rate
    window, left, time = INITIAL_WINDOW, math.ceil(size / payload), 0.0
    while window * per_packet < link.round_trip_delay and window < left:
        left -= window
        time += link.round_trip_delay
        window *= 2
    return 8 * size / (time + left * per_packet)


FORMULAS = {"Reno": reno, "NewReno": reno, "CUBIC": cubic}
KEPT = {"quic-go": 0.7}
"""Share of its window that a server with Reno keeps after a loss, where it is not half: ``cubic_sender.go``."""
LEAST_WINDOW = {"nginx": 2 * 65527}
"""Bytes below which a window never falls, where they are more than a few packets: ``ngx_event_quic_ack.c``."""


def formula_of(server: str, algorithm: str, payload: float, trip: float, loss: float) -> float | None:
    """Bit/s of a server's congestion control in a steady state; None if it has no formula."""
    if algorithm not in FORMULAS:
        return None
    rate = reno(payload, trip, loss, KEPT[server]) if server in KEPT else FORMULAS[algorithm](payload, trip, loss)
    return max(rate, 8 * LEAST_WINDOW.get(server, 0) / trip)


def payload_of(runs: Sequence[RunResult]) -> float | None:
    """Median over runs of the mean UDP payload of a server's packets, bytes; None if no run has it."""
    found = []
    for run in runs:
        sent, report = value_of(run, "sent_per_useful_byte"), run.evidence.simulator
        if sent is not None and report is not None and report.forward.received:
            found.append(sent * sum(file.size for file in run.evidence.offered) / report.forward.received)
    return statistics.median(found) if found else None


def formulas_beside_measurements(results: ResultSet) -> Table | None:
    """A row for each server with Reno or CUBIC over ``satloss``; the payload per packet is that over ``sat``."""
    sat, lossy = find(results, "sat"), find(results, "satloss")
    if sat is None or lossy is None:
        return None
    implementations = {each.name: each for each in results.manifest.implementations}
    trip, loss = lossy.link.round_trip_delay, loss_share(lossy.link.forward_loss)
    rows = list[tuple[float | int | str | None, ...]]()
    for name in results.manifest.servers:
        algorithm = family(implementations.get(name))
        payload = payload_of([run for run in of_case(results, sat) if run.server == name])
        reached = known(run for run in of_case(results, lossy) if run.server == name)
        formula = formula_of(name, algorithm, payload, trip, loss) if payload else None
        if formula and payload and reached:
            mean = statistics.fmean(reached)
            dropped = dropped_share([run for run in of_case(results, lossy) if run.server == name])
            other = formula_of(name, algorithm, payload, trip, dropped) if dropped else None
            rows.append((name, algorithm, round(payload), formula, mean, f"{mean / formula:.1f}", dropped, other))
    columns = (
        Column("server"), Column("congestion control"), Column("UDP payload per packet [B]", Unit.COUNT),
        Column("formula", Unit.RATE), Column("measured", Unit.RATE), Column("measured / formula"),
        Column("dropped by link and queue", Unit.SHARE, 1), Column("formula with these drops", Unit.RATE),
    )  # fmt: skip
    note = (
        "*Measured* is the mean of all runs with all clients; for unsuccessful runs, goodput is based on the bytes "
        "that had arrived. The payload per packet is the median over the clients in `sat`. *Dropped by link and queue* "
        "is the share of the server's packets in all its runs. If a server also sends small packets, the mean payload "
        "is below the size of its full packets, and the formula is too low."
    )
    return Table("formulas", "Formulas and measurements over satloss", columns, tuple(rows), (note,))


def dropped_share(runs: Sequence[RunResult]) -> float | None:
    """Share of the packets on the forward link that it or its queue dropped; None if no run counted them."""
    counters = [run.evidence.simulator.forward for run in runs if run.evidence.simulator is not None]
    received = sum(each.received for each in counters)
    return sum(each.loss_drops + each.queue_drops for each in counters) / received if received else None


def below_the_limit(results: ResultSet) -> tuple[list[str], str]:
    """Servers that timed out over ``satloss`` and whose formula is too slow for its time limit; and both rates."""
    table, lossy = formulas_beside_measurements(results), find(results, "satloss")
    if table is None or lossy is None:
        return [], ""
    needed = 8 * sum(lossy.file_sizes) / lossy.timeout
    late = {run.server for run in of_case(results, lossy) if run.verdict.outcome is Outcome.TIMEOUT}
    found = {str(row[0]): float(row[3] or 0) for row in table.rows if row[0] in late and float(row[3] or 0) < needed}
    rates = sorted(f"{value / 1e6:.2f}" for value in found.values())
    shown = " to ".join(dict.fromkeys((rates[0], rates[-1]))) if rates else ""
    told = f"needs {needed / 1e6:.2f} Mbit/s to finish in time, but the Reno formula predicts only {shown} Mbit/s"
    return list(found), told


def theory(results: ResultSet) -> Iterator[str]:
    """The table, and what it means."""
    table, lossy = formulas_beside_measurements(results), find(results, "satloss")
    if table is None or lossy is None or not table.rows:
        return
    trip, loss = lossy.link.round_trip_delay, loss_share(lossy.link.forward_loss)
    yield (
        "In a steady state, Reno reaches MSS / RTT · √(3 / 2p) (Mathis et al. 1997), and CUBIC reaches the rate of "
        "equation 5 of [RFC 9438](https://www.rfc-editor.org/rfc/rfc9438#section-5.1). The table compares these rates "
        f"with the measurements, for RTT = {1000 * trip:.0f} ms, p = {100 * loss:.0f} %, and the UDP payload per "
        "packet as MSS."
    )
    yield ""
    yield from _exceptions([str(row[0]) for row in table.rows])
    yield from rendered(table)
    yield from _distance(table)
    yield from _far(results, table)
    drops = [
        run.evidence.simulator.forward.loss_drops
        for run in of_case(results, lossy)
        if run.evidence.simulator is not None and value_of(run, "goodput") is not None
    ]
    if drops:
        yield (
            "- A transfer is not in a steady state: it begins with slow start, and the link drops only "
            f"{statistics.median(drops):.0f} packets per transfer (median of the successful runs). The formulas also "
            "assume that nothing else limits the sender, and that the sender reacts to every loss."
        )


def _exceptions(servers: Sequence[str]) -> Iterator[str]:
    """Servers whose formula is different, from their source code."""
    told = [
        f"{name} keeps {100 * kept:.0f} % of its window after a loss, rather than half, so its formula is "
        f"MSS / RTT · √({(1 + kept) / (1 - kept) / 2:.2g} / p)."
        for name, kept in KEPT.items()
        if name in servers
    ]
    told += [
        f"{name} calculates its window in packets of {window // 2} bytes, the largest UDP payload that it accepts. Its "
        f"window never falls below two of these packets, so its formula gives at least {window} bytes / RTT."
        for name, window in LEAST_WINDOW.items()
        if name in servers
    ]
    if told:
        yield " ".join(told)
        yield ""


def _distance(table: Table) -> Iterator[str]:
    ratios = list(_ratios(table).values())
    others = [float(row[4] or 0) / float(row[7]) for row in table.rows if row[7]]
    told = (
        f"- The measured goodput is {statistics.median(ratios):.1f} times the formula (median of the servers; "
        f"{min(ratios):.1f} to {max(ratios):.1f} times for individual servers)."
    )
    if others:
        told += (
            " If p is replaced by the share of packets that the link and the queue dropped, the measured goodput is "
            f"{statistics.median(others):.1f} times the formula ({min(others):.1f} to {max(others):.1f} times)."
        )
    yield told


def _ratios(table: Table) -> dict[str, float]:
    """Measured goodput over the formula, by server."""
    return {str(row[0]): float(row[4] or 0) / float(row[3]) for row in table.rows if row[3]}


MUCH = 2.0
"""Times the formula from which on a server is much faster."""


def _far(results: ResultSet, table: Table) -> Iterator[str]:
    """Servers that are much faster than the formula, and what their source code says."""
    lossy = find(results, "satloss")
    for name, ratio in _ratios(table).items():
        if ratio <= MUCH or lossy is None:
            continue
        means = [
            statistics.fmean(values)
            for client in results.manifest.clients
            if (values := known(r for r in of_case(results, lossy) if (r.server, r.client) == (name, client)))
        ]
        reason = REASONS.get(name, "The measurements do not show which assumption of the formula it violates.")
        yield (
            f"- {name} exceeds the formula by more than a factor of {MUCH:g} ({ratio:.1f} times; "
            f"{min(means) / 1e6:.2f} to {max(means) / 1e6:.2f} Mbit/s, depending on the client; arithmetic means). "
            f"{reason}"
        )


REASONS = {
    "quiche": (
        "Its CUBIC (`cubic.rs` of 0.30.0) undoes a reduction of the window if only a single packet was lost, or fewer "
        "than a fifth of the packets in the window. It may therefore hardly react if the link drops single packets. "
        "Its Reno has no such rule, and is as slow as the formula predicts (see [Congestion control algorithms over "
        "satloss](#congestion-control-algorithms-over-satloss))."
    ),
    "msquic": (
        "Its goodput is higher with clients that acknowledge more often; [Goodput and acknowledgements over "
        "satloss](#goodput-and-acknowledgements-over-satloss) discusses possible causes."
    ),
}
"""Why servers are faster than the formula, from their source code."""
