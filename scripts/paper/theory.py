"""What the formulas of Reno and CUBIC give for a link with loss, beside what the servers reached over it."""

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


def reno(payload: float, trip: float, loss: float) -> float:
    """Bit/s of Reno (Mathis et al. 1997, every packet acknowledged); bytes per packet, seconds, share of packets."""
    return 8 * payload / trip * math.sqrt(1.5 / loss)


def cubic(payload: float, trip: float, loss: float) -> float:
    """Bit/s of CUBIC (RFC 9438, equation 5), or of Reno if that is faster: then CUBIC behaves like Reno."""
    constant = math.pow(CUBIC_C * (3 + CUBIC_BETA) / 4 / (1 - CUBIC_BETA), 0.25)
    return max(8 * payload / trip * constant * math.pow(trip / loss, 0.75), reno(payload, trip, loss))


MTU, IP_AND_UDP, LINK_HEADER = 1500, 28, 2
"""Bytes: largest IP packet of a link, headers of IPv4 and UDP in it, and the PPP header that a link's rate counts."""
INITIAL_WINDOW = 10
"""Packets, as RFC 9002 recommends (section 7.2)."""


def fastest(size: int, link: EmulatedLink) -> float:
    """Goodput, bit/s, of a server that only slow start and the forward rate limit.

    It begins with ``INITIAL_WINDOW`` packets, sends twice as many in each further round trip until that fills the link,
    and from then on at its rate; all packets are as large as possible, no header of QUIC counts, and none is lost.
    """
    payload, per_packet = MTU - IP_AND_UDP, 8 * (MTU + LINK_HEADER) / link.forward_rate
    window, left, time = INITIAL_WINDOW, math.ceil(size / payload), 0.0
    while window * per_packet < link.round_trip_delay and window < left:
        left -= window
        time += link.round_trip_delay
        window *= 2
    return 8 * size / (time + left * per_packet)


FORMULAS = {"Reno": reno, "NewReno": reno, "CUBIC": cubic}


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
        if algorithm in FORMULAS and payload and reached:
            formula = FORMULAS[algorithm](payload, trip, loss)
            mean = statistics.fmean(reached)
            dropped = dropped_share([run for run in of_case(results, lossy) if run.server == name])
            other = FORMULAS[algorithm](payload, trip, dropped) if dropped else None
            rows.append((name, algorithm, round(payload), formula, mean, f"{mean / formula:.1f}", dropped, other))
    columns = (
        Column("server"), Column("congestion control"), Column("UDP payload per packet [B]", Unit.COUNT),
        Column("formula", Unit.RATE), Column("measured", Unit.RATE), Column("measured / formula"),
        Column("dropped by link and queue", Unit.SHARE, 1), Column("formula with these drops", Unit.RATE),
    )  # fmt: skip
    note = (
        "Measured is the mean over all clients, and includes runs that timed out with what had arrived. The payload "
        "per packet is the median over the clients in `sat`. *Dropped* is the share of the server's packets in all its "
        "runs."
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
    return list(found), f"needs {needed / 1e6:.2f} Mbit/s, and the formula of Reno gives only {shown} Mbit/s"


def theory(results: ResultSet) -> Iterator[str]:
    """The table, and what it means."""
    table, lossy = formulas_beside_measurements(results), find(results, "satloss")
    if table is None or lossy is None or not table.rows:
        return
    trip, loss = lossy.link.round_trip_delay, loss_share(lossy.link.forward_loss)
    yield (
        f"In a steady state, Reno reaches MSS / RTT · √(3 / 2p) (Mathis et al. 1997), and CUBIC the rate of equation 5 "
        f"of [RFC 9438](https://www.rfc-editor.org/rfc/rfc9438#section-5.1). The table compares them with the "
        f"measurements, with RTT = {1000 * trip:.0f} ms, p = {100 * loss:.0f} %, and the UDP payload as MSS."
    )
    yield ""
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
            f"- A transfer is not in a steady state: it begins with slow start, and the link drops only "
            f"{statistics.median(drops):.0f} packets in one (median of the successful runs). The formulas also "
            "assume that nothing else limits the sender, and that it acts on each loss."
        )


def _distance(table: Table) -> Iterator[str]:
    ratios = [float(row[5] or 0) for row in table.rows]
    others = [float(row[4] or 0) / float(row[7]) for row in table.rows if row[7]]
    yield (
        f"- The measured goodput of {_close(ratios)} of {len(ratios)} servers is within a factor of 2 of the formula. "
        f"With the drops of link and queue instead of p, it is {_close(others)} of {len(others)}."
    )


def _close(ratios: Sequence[float]) -> int:
    return sum(0.5 <= ratio <= MUCH for ratio in ratios)


MUCH = 2.0
"""Times the formula from which on a server is much faster."""
NEARLY = 0.8
"""Share of the goodput without random loss from which on it is nearly the same."""


def _far(results: ResultSet, table: Table) -> Iterator[str]:
    """Servers that are much faster than the formula, and whether they react to loss."""
    sat, lossy = find(results, "sat"), find(results, "satloss")
    far = {str(row[0]): float(row[5] or 0) for row in table.rows if float(row[5] or 0) > MUCH}
    if not far or sat is None or lossy is None:
        return
    told = []
    for name, ratio in far.items():
        means = [
            statistics.fmean(values)
            for client in results.manifest.clients
            if (values := known(r for r in of_case(results, lossy) if (r.server, r.client) == (name, client)))
        ]
        told.append(f"{name} ({ratio:.1f} times; {min(means) / 1e6:.2f} to {max(means) / 1e6:.2f} Mbit/s by client)")
    yield (
        f"- These servers exceed it by more than that: {', '.join(told)}. An assumption of the formula does not hold "
        "for them; the measurements do not show which."
    )
    for name in far:
        without, with_loss = (
            statistics.fmean(known(run for run in of_case(results, case) if run.server == name))
            for case in (sat, lossy)
        )
        if with_loss >= NEARLY * without:
            yield (
                f"- {name} reaches nearly the same over `sat`, without random loss ({without / 1e6:.2f} Mbit/s), and "
                f"over `satloss` ({with_loss / 1e6:.2f} Mbit/s). So it hardly reacts to loss, or something else limits "
                "it."
            )
