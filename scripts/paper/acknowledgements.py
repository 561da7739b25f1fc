"""Acknowledgements of clients: which servers are faster with clients that acknowledge more often."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from interop.model.results import ResultSet
from interop.report.table import Column, Table, Unit
from interop.statistics.samples import GOODPUT, find, value_of
from scripts.paper.goodput import goodput_so_far, of_case
from scripts.paper.lines import rendered
from scripts.paper.words import counted, listed

LEAST_CLIENTS = 4
"""With fewer, the interval of a correlation is not defined."""
ERROR = 0.05
"""Probability that an interval misses the correlation, or at least one of several if they are corrected."""


@dataclass(frozen=True)
class Correlation:
    """Pearson's correlation, with its confidence interval (Fisher 1921)."""

    value: float
    low: float
    high: float


def correlate(first: Sequence[float], second: Sequence[float], intervals: int = 1) -> Correlation | None:
    """The correlation of pairs of values; None if there are too few, or if one of both does not vary.

    ``intervals``: how many intervals the 95 % confidence is for (Bonferroni).
    """
    if len(first) < LEAST_CLIENTS or len({*first}) == 1 or len({*second}) == 1:
        return None
    value = max(-1.0, min(1.0, statistics.correlation(first, second)))
    if abs(value) == 1.0:
        return Correlation(value, value, value)
    half = statistics.NormalDist().inv_cdf(1 - ERROR / 2 / intervals) / math.sqrt(len(first) - 3)
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
        return self.corrected(1)

    def corrected(self, intervals: int) -> Correlation | None:
        """The same with an interval that is corrected for the number of intervals."""
        returned, goodputs = ([math.log(value) for value in values] for values in (self.returned, self.goodputs))
        return correlate(returned, goodputs, intervals)


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


REFERENCE = "sat"
"""Link without random loss, over which servers are fast enough that clients do not acknowledge single packets."""


def returned_over(results: ResultSet, test_case: str) -> dict[str, float]:
    """Packets that each client returns per packet that reaches it over a link: the median over the servers."""
    found: dict[str, list[float]] = {}
    case = find(results, test_case)
    for run in of_case(results, case) if case is not None else ():
        if (value := value_of(run, "return_packets")) is not None:
            found.setdefault(run.client, []).append(value)
    return {client: statistics.median(values) for client, values in found.items()}


def with_reference(each: ByAcknowledgements, reference: Mapping[str, float]) -> ByAcknowledgements:
    """The same goodputs with what clients return over another link, which does not depend on this server's speed."""
    known = [place for place, client in enumerate(each.clients) if client in reference]
    clients = [each.clients[place] for place in known]
    goodputs = [each.goodputs[place] for place in known]
    return ByAcknowledgements(each.server, clients, [reference[client] for client in clients], goodputs)


def acknowledgements(results: ResultSet, corrected: ResultSet | None) -> Iterator[str]:
    """The table, the servers with a strong correlation, and what is known about the reason.

    ``corrected``: runs of msquic without the underflow.
    """
    found = [each for each in by_acknowledgements(results, "satloss") if each.correlation is not None]
    if not found:
        return
    reference = returned_over(results, REFERENCE)
    yield from rendered(_table(found, reference))
    corrected_ones = [(each, both) for each in found if (both := each.corrected(len(found))) is not None]
    faster = [each for each, both in corrected_ones if both.low > 0]
    slower = [each for each, both in corrected_ones if both.high < 0]
    told = list[str]()
    for servers, word in ((faster, "faster"), (slower, "slower")):
        if servers:
            clients = "such clients" if told else "clients that acknowledge more often"
            told.append(f"{listed(map(_range, servers))} {'is' if len(servers) == 1 else 'are'} {word} with {clients}")
    if told:
        unexplained = (
            f" We do not explain why {listed(each.server for each in slower)} "
            f"{'is' if len(slower) == 1 else 'are'} slower with such clients."
            if slower
            else ""
        )
        yield (
            f"Over `satloss`, {', and '.join(told)} (geometric means of a client's runs). For "
            f"{'this server' if len(faster) + len(slower) == 1 else 'these servers'}, the interval still excludes 0 if "
            f"it is corrected for the {counted(len(found), 'interval')} of the table (Bonferroni: "
            f"{100 * (1 - ERROR / len(found)):.2f} % confidence each). However, clients also differ in other ways, and "
            "in no run did we change only the acknowledgements. The correlations therefore do not show the cause. The "
            "intervals of the other servers are wide, so these data do not show that acknowledgements have no "
            f"influence there.{unexplained}"
        )
        yield ""
    if reference:
        named = {each.server for each in (*faster, *slower)}
        yield from _with_reference([with_reference(each, reference) for each in found], named)
    yield from _growth([each.server for each in faster], found)
    if SERVER in {each.server for each in faster}:
        yield f"{UNDERFLOW} {in_words(results, corrected)}".strip()
        yield ""


def _with_reference(found: Sequence[ByAcknowledgements], named: Collection[str]) -> Iterator[str]:
    """Which of the servers with a correlation keep it with the clients' acknowledgements over another link."""
    both = {each.server: each.corrected(len(found)) for each in found}
    kept = [server for server, each in both.items() if server in named and each and not each.low <= 0 <= each.high]
    lost = [server for server in both if server in named and server not in kept]
    sides = (("excludes", kept), ("includes", lost))
    told = [f"the corrected interval {verb} 0 for {listed(servers)}" for verb, servers in sides if servers]
    yield (
        "The number of acknowledgements per packet also depends on goodput: if packets arrive one by one, a client "
        "acknowledges each of them. The last column therefore uses the median over all servers of what the client "
        f"returns over `{REFERENCE}`, which does not depend on the goodput of a server over `satloss`."
        f"{f' With it, {listed(told)}.' if told else ''}"
    )
    yield ""


def _growth(faster: Sequence[str], found: Sequence[ByAcknowledgements]) -> Iterator[str]:
    """What the source code of CUBIC says about acknowledgements."""
    slow = [name for name in faster if name in PER_ACKNOWLEDGEMENT]
    if not slow:
        return
    others = [(each.server, each.correlation) for each in found if each.server in PER_PACKET and each.correlation]
    wide = [both for _, both in others if both.low <= 0 <= both.high]
    rest = (
        f" In {listed(server for server, _ in others)}, the window grows with the number of packets or bytes that an "
        f"acknowledgement covers. The confidence {'interval' if len(others) == 1 else 'intervals'} of "
        f"{'its correlation' if len(others) == 1 else 'their correlations'} ("
        f"{listed(f'{both.low:.2f} to {both.high:.2f}' for _, both in others)}) {'does' if len(others) == 1 else 'do'} "
        "not rule out a correlation."
        if others and len(wide) == len(others)
        else ""
    )
    yield (
        f"According to the source code of {listed(slow)}, the window of CUBIC grows by (target − window) / window "
        "packets with each acknowledgement that arrives, no matter how many packets it covers. [RFC 9438, section "
        "4.4](https://www.rfc-editor.org/rfc/rfc9438#section-4.4) specifies the same for the acknowledgements of TCP. "
        f"With clients that acknowledge rarely, the window therefore grows more slowly than the target, which fits "
        f"the correlation.{rest}"
    )
    yield ""


PER_ACKNOWLEDGEMENT = ("s2n-quic", "msquic", "ngtcp2")
"""Servers whose CUBIC grows with each acknowledgement: ``cubic.rs``, ``cubic.c``, ``ngtcp2_cc.c``."""
PER_PACKET = ("quinn", "neqo")
"""Servers whose CUBIC grows with what is acknowledged: ``connection/mod.rs`` and ``cubic.rs``, ``classic_cc.rs``."""


def _range(each: ByAcknowledgements) -> str:
    return f"{each.server} ({min(each.goodputs) / 1e6:.2f} to {max(each.goodputs) / 1e6:.2f} Mbit/s)"


SERVER = "msquic"
UNDERFLOW = (
    "For msquic, the source code shows a reason (2.5.1-beta, `cubic.c`). While the window grows like that of Reno, "
    "`AimdAccumulator` counts acknowledged bytes. When this counter exceeds the window, msquic first adds a packet to "
    "the window, and then subtracts the enlarged window from the counter. If the counter exceeded the old window by "
    "less than a packet, the difference is negative. Because the counter is an unsigned 32-bit integer, it is then "
    "nearly 2^32, and the window grows by a packet with each acknowledgement instead of each round trip."
)


def with_and_without(results: ResultSet, corrected: ResultSet | None) -> list[tuple[float, float]]:
    """Goodput of msquic's server, and goodput without the underflow, bit/s, of runs with the same losses."""
    known = {
        (run.client, run.test_case, run.evidence.seed): value
        for run in results.results
        if run.server == SERVER and (value := value_of(run, GOODPUT)) is not None
    }
    return [
        (known[key], value)
        for run in (corrected.results if corrected is not None else ())
        for key in [(run.client, run.test_case, run.evidence.seed)]
        if key in known and (value := value_of(run, GOODPUT)) is not None
    ]


def in_words(results: ResultSet, corrected: ResultSet | None) -> str:
    """What changes without the underflow; empty if it was not measured."""
    found = with_and_without(results, corrected)
    if not found:
        return ""
    before, after = ([each[place] / 1e6 for each in found] for place in (0, 1))
    return (
        "We built msquic with these two steps in the opposite order, and changed nothing else. In "
        f"{counted(len(found), 'run')} over `satloss` with the same losses, one for each client{_seed(corrected)}, "
        f"{SERVER}'s mean goodput is then {statistics.fmean(after):.2f} Mbit/s ({min(after):.2f} to {max(after):.2f}) "
        f"instead of {statistics.fmean(before):.2f} Mbit/s ({min(before):.2f} to {max(before):.2f}). "
        f"{_correlations(results, corrected)}"
        "[Causes](../measurements/causes.md#msquic-as-server) gives the command."
    )


def _correlations(results: ResultSet, corrected: ResultSet | None) -> str:
    """The correlation of the same runs with and without the underflow; empty if one of both is not known."""
    if corrected is None:
        return ""
    kept = {(run.client, run.test_case, run.evidence.seed) for run in corrected.results}
    runs = (run for run in results.results if run.server == SERVER)
    same = replace(
        results,
        results=tuple(run for run in runs if (run.client, run.test_case, run.evidence.seed) in kept),
    )
    both = [
        (found, correlation)
        for each in (same, corrected)
        for found in by_acknowledgements(each, "satloss")
        if (correlation := found.correlation) is not None
    ]
    if len(both) < 2:
        return ""
    before, after = (f"{each.value:.3f} ({each.low:.3f} to {each.high:.3f})" for _, each in both)
    most, least = (max(found.goodputs) / min(found.goodputs) for found, _ in both)
    also = "The underflow is therefore not the only cause of the correlation. " if both[1][1].low > 0 else ""
    return (
        "In these runs, the correlation between goodput and acknowledgements, with its 95 % confidence interval, is "
        f"{before} with the underflow and {after} without it. The fastest client is {most:.1f} times as fast as the "
        f"slowest with the underflow, and {least:.1f} times without it. {also}"
    )


def _seed(corrected: ResultSet | None) -> str:
    """``, all with seed 1``; empty if the runs have several seeds."""
    numbers = {run.repetition for run in corrected.results} if corrected is not None else set()
    return f", all with seed {corrected.manifest.seed}" if corrected is not None and len(numbers) == 1 else ""


def finding(results: ResultSet, corrected: ResultSet | None) -> Iterator[str]:
    """What the underflow changes, as an item of a list."""
    if found := with_and_without(results, corrected):
        before, after = (statistics.fmean(each[place] for each in found) / 1e6 for place in (0, 1))
        yield (
            "- msquic's server with CUBIC is fast over `satloss` because a counter underflows. Its mean goodput is "
            f"{before:.2f} Mbit/s with the underflow, and {after:.2f} Mbit/s without it "
            f"({counted(len(found), 'run')} each{_seed(corrected)}). See [Goodput and acknowledgements over "
            "satloss](#goodput-and-acknowledgements-over-satloss)."
        )


def _table(found: Sequence[ByAcknowledgements], reference: Mapping[str, float]) -> Table:
    columns = (
        Column("server"), Column("correlation", Unit.RATIO), Column("low", Unit.RATIO), Column("high", Unit.RATIO),
        Column("clients", Unit.COUNT),
        Column("packets returned per 100"), Column("fastest / slowest client"),
        Column(f"correlation with packets returned over {REFERENCE}"),
    )  # fmt: skip
    rows: list[tuple[float | int | str | None, ...]] = [
        (
            each.server,
            *(both.value, both.low, both.high),
            len(each.clients),
            f"{100 * min(each.returned):.0f} to {100 * max(each.returned):.0f}",
            f"{max(each.goodputs) / min(each.goodputs):.1f}",
            _with_interval(with_reference(each, reference).correlation),
        )
        for each in found
        if (both := each.correlation) is not None
    ]
    note = (
        "*Correlation* is computed over the clients, between the logarithm of goodput and the logarithm of the number "
        "of packets (mostly acknowledgements) that a client sent per packet it received. *Low* and *high* are the "
        "limits of its 95 % confidence interval (Fisher 1921), which is not corrected for the number of "
        f"intervals ({len(found)}). The last column shows the correlation and its interval for the packets that the "
        f"client returned over `{REFERENCE}`. Servers without a successful run are omitted."
    )
    title = "Goodput and acknowledgements over satloss"
    return Table("acknowledgements", title, columns, tuple(rows), (note,))


def _with_interval(each: Correlation | None) -> str:
    """``0.88 (0.66 to 0.96)``."""
    return f"{each.value:.2f} ({each.low:.2f} to {each.high:.2f})" if each else ""
