"""Acknowledgements of clients: which servers are faster with clients that acknowledge more often."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interop.model.results import ResultSet
from interop.report.table import Column, Table, Unit
from interop.statistics.samples import find, value_of
from scripts.paper.goodput import goodput_so_far, of_case
from scripts.paper.lines import rendered

LEAST_CLIENTS = 4
"""With fewer, the interval of a correlation is not defined."""
NORMAL_95 = 1.96
STRONG = 0.5
"""Correlation that the whole interval has to exceed before a server is named."""


@dataclass(frozen=True)
class Correlation:
    """Pearson's correlation, with its 95 % confidence interval (Fisher 1921)."""

    value: float
    low: float
    high: float


def correlate(first: Sequence[float], second: Sequence[float]) -> Correlation | None:
    """The correlation of pairs of values; None if there are too few, or if one of both does not vary."""
    if len(first) < LEAST_CLIENTS or len({*first}) == 1 or len({*second}) == 1:
        return None
    value = max(-1.0, min(1.0, statistics.correlation(first, second)))
    if abs(value) == 1.0:
        return Correlation(value, value, value)
    half = NORMAL_95 / math.sqrt(len(first) - 3)
    return Correlation(value, math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half))


@dataclass(frozen=True)
class ByAcknowledgements:
    """Goodput of a server and packets that its clients return, each a value for each client."""

    server: str
    clients: Sequence[str]
    returned: Sequence[float]
    """Packets of the client per packet that reached it."""
    goodputs: Sequence[float]
    """Geometric means, bit/s."""

    @property
    def correlation(self) -> Correlation | None:
        """Of the logarithms."""
        return correlate(*([math.log(value) for value in values] for values in (self.returned, self.goodputs)))


def by_acknowledgements(results: ResultSet, test_case: str) -> list[ByAcknowledgements]:
    """The servers whose packets the traces show, with the clients for which both values are known."""
    case, found = find(results, test_case), list[ByAcknowledgements]()
    for server in results.manifest.servers if case is not None else ():
        values = dict[str, tuple[float, float]]()
        for client in results.manifest.clients:
            runs = (
                [run for run in of_case(results, case) if (run.server, run.client) == (server, client)] if case else []
            )
            returned = [value for run in runs if (value := value_of(run, "return_packets"))]
            goodputs = [value for run in runs if (value := goodput_so_far(run))]
            if returned and goodputs:
                values[client] = statistics.fmean(returned), statistics.geometric_mean(goodputs)
        if values:
            found.append(
                ByAcknowledgements(
                    server, list(values), *(list(column) for column in zip(*values.values(), strict=True))
                )
            )
    return found


def acknowledgements(results: ResultSet) -> Iterator[str]:
    """The table, the servers with a strong correlation, and what is known about the reason."""
    found = [each for each in by_acknowledgements(results, "satloss") if each.correlation is not None]
    if not found:
        return
    yield from rendered(_table(found))
    faster = [each for each in found if each.correlation and each.correlation.low > STRONG]
    slower = [each for each in found if each.correlation and each.correlation.high < -STRONG]
    told = [
        f"{', '.join(map(_range, servers))} {'is' if len(servers) == 1 else 'are'} {word}"
        for servers, word in ((faster, "faster"), (slower, "slower"))
        if servers
    ]
    if told:
        yield (
            f"Over `satloss`, {', and '.join(told)} with clients that acknowledge more often (the whole interval of "
            f"the correlation is beyond {STRONG:g}). Clients also differ in other ways, and no run changed the "
            "acknowledgements alone."
        )
        yield ""
    yield from (text for server, text in REASONS.items() if server in {each.server for each in faster})


def _range(each: ByAcknowledgements) -> str:
    return f"{each.server} ({min(each.goodputs) / 1e6:.2f} to {max(each.goodputs) / 1e6:.2f} Mbit/s)"


REASONS = {
    "msquic": (
        "For msquic, its source code has a reason (2.5.1-beta, `cubic.c`): while its window grows as Reno's, it counts "
        "acknowledged bytes in `AimdAccumulator`. When they exceed the window, it first adds a packet to the window, "
        "and then subtracts this larger window from the counter. If the counter exceeds the old window by less than a "
        "packet, it becomes negative. It is an unsigned integer of 32 bits, so its value is then nearly 2^32, and the "
        "window grows by a packet with each acknowledgement instead of each round trip.\n"
    ),
}
"""What source code shows, by server, as paragraphs."""


def _table(found: Sequence[ByAcknowledgements]) -> Table:
    columns = (
        Column("server"), Column("correlation"), Column("low"), Column("high"), Column("clients", Unit.COUNT),
        Column("packets returned per 100"), Column("fastest / slowest client"),
    )  # fmt: skip
    rows: list[tuple[float | int | str | None, ...]] = [
        (
            each.server,
            *(f"{value:.2f}" for value in (both.value, both.low, both.high)),
            len(each.clients),
            f"{100 * min(each.returned):.0f} to {100 * max(each.returned):.0f}",
            f"{max(each.goodputs) / min(each.goodputs):.1f}",
        )
        for each in found
        if (both := each.correlation) is not None
    ]
    note = (
        "Correlation over the clients, between the logarithms of goodput and of the packets that a client returned per "
        "packet that reached it, most of them acknowledgements. Low and high are the limits of its 95 % confidence "
        "interval (Fisher 1921), not corrected for the number of servers. Servers without a successful run are left "
        "out."
    )
    title = "Goodput and acknowledgements over satloss"
    return Table("acknowledgements", title, columns, tuple(rows), (note,))
