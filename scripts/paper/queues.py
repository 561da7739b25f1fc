"""The queue of the paper's simulator, which holds 125 packets, compared with queues of exactly 25 packets."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from interop.model.emulated_link import loss_share
from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.report.table import Column, Table, Unit
from interop.statistics.intervals import Mean, of_repetitions
from interop.statistics.overview import scenario
from interop.statistics.samples import find, value_of
from interop.statistics.significance import holm, matched
from scripts.paper.data_set import seeds_in_words
from scripts.paper.goodput import goodput_so_far, known, of_case
from scripts.paper.influence import means_of_servers, with_both_intervals
from scripts.paper.lines import rendered
from scripts.paper.matrix import common, in_common, relative, row_of
from scripts.paper.published import TABLE_II
from scripts.paper.real_time import errors_of_servers
from scripts.paper.repeated import SENSITIVE, TOLERANCE
from scripts.paper.seeds import by_seed, runs_with_drops
from scripts.paper.words import counted, listed

SUFFIX = "-paper-queue"


def queues(matrix: ResultSet, longer: ResultSet, real: ResultSet | None = None) -> Iterator[str]:
    """Both queues in Table II, the difference of each server, and its reason; ``real``: runs in real time."""
    yield "## Queue of the paper's simulator"
    yield ""
    yield (
        "According to the paper, the queues hold 25 packets. Over `sat` and `satloss`, however, the queues of its "
        "simulator held up to 125, in both directions. The source code of the QUIC Interop Runner Satellite Edition "
        "(`asymmetric-p2p.cc` at commit c1977f4 of its simulator, ns-3 3.32) sets the queue of the ns-3 device to 25 "
        "packets, and ns-3 puts its default queue of 100 packets in front of this queue. Over "
        "`terrestrial`, the source code uses another scenario: it sets the queue in front to 25 packets and that of "
        "the device to 1, so these queues held 26 packets. Apart from the [image of the virtual "
        "machine](#data-set), the runs in this section differ from the matrix only in the queue: the random numbers "
        "are the same, and so is the sequence of losses. The tables compare only runs that "
        "both campaigns contain: the same "
        f"pairs{_with_seeds(longer)}. Values with 25 packets can therefore differ from those in [Table "
        "II](#table-ii)."
    )
    yield ""
    one, other = same_runs(matrix, longer)
    if told := same_without_drops(one, other):
        yield told
        yield ""
    yield from rendered(both(one, other))
    for case in other.manifest.test_cases:
        if not of_case(other, case):
            continue
        yield from rendered(by_server(one, other, case.name))
        yield from reason(one, other, case.name)
        if real is not None:
            yield from in_virtual_time_only(matrix, real, ratios(one, other, case.name), base(case.name))
        if loss_share(case.emulated.forward_loss):
            yield from with_other_seeds(matrix, one, base(case.name))
        else:
            yield from more_of_both(one, other, case.name)
            yield from bursts(matrix, ratios(one, other, case.name), base(case.name))
        yield ""


@dataclass(frozen=True)
class Unchanged:
    """A pair of runs in which neither queue dropped a packet, with its goodputs, bit/s."""

    server: str
    client: str
    shorter: float
    longer: float

    @property
    def change(self) -> float:
        """Relative difference."""
        return abs(self.longer / self.shorter - 1)


def without_drops(one: ResultSet, other: ResultSet) -> list[Unchanged]:
    """The pairs of runs whose queues dropped nothing in either direction, so that their length had no influence.

    ``one``, ``other``: the same runs with both queues (``same_runs``).
    """
    before = {(run.server, run.client, run.test_case, run.repetition): run for run in one.results}
    found = list[Unchanged]()
    for run in other.results:
        same = before.get((run.server, run.client, base(run.test_case), run.repetition))
        rates = [goodput_so_far(each) for each in (same, run)] if same is not None else []
        if len(rates) == 2 and rates[0] and rates[1] and not any(map(_queue_drops, (same, run))):
            found.append(Unchanged(run.server, run.client, rates[0], rates[1]))
    return found


def _queue_drops(run: RunResult | None) -> bool:
    """Whether a queue dropped a packet, or may have."""
    report = run.evidence.simulator if run is not None else None
    return report is None or bool(report.forward.queue_drops or report.back.queue_drops)


def same_without_drops(one: ResultSet, other: ResultSet) -> str:
    """How far runs differ in which no queue dropped a packet: what is not due to the queue; empty if there are none."""
    found = without_drops(one, other)
    if not found:
        return ""
    most = max(found, key=lambda each: each.change)
    groups = [[each for each in found if (({each.server, each.client} & {*SENSITIVE}) != set()) is with_them]
              for with_them in (True, False)]  # fmt: skip
    same = [sum(each.change == 0 for each in group) for group in groups]
    told = (
        f" ({same[0]} of {len(groups[0])} with {' or '.join(SENSITIVE)}, and {same[1]} of {len(groups[1])} without "
        "them)"
        if groups[0]
        else ""
    )
    return (
        f"In {len(found)} pairs of these runs, neither queue dropped a packet. Goodput is then exactly the same in "
        f"{sum(same)} of them{told}. It differs by more than {100 * TOLERANCE:.1f} % in "
        f"{sum(each.change > TOLERANCE for each in found)}, at most by {100 * most.change:.1f} % ({most.server} with "
        f"{most.client}). These differences are due to the image, or to how the longer queue is built, rather than to "
        "the number of packets that a queue holds; the factors below contain such differences."
    )


def bursts(matrix: ResultSet, factors: Mapping[str, Mean], test_case: str) -> Iterator[str]:
    """Which of the servers that gain most send bursts that the shorter queue cannot hold, and which ones do not."""
    case, longest = results_case(matrix, test_case), dict[str, float]()
    queue = case.emulated.forward_queue
    for name in factors:
        values = [value_of(run, "longest_burst") for run in of_case(matrix, case) if run.server == name]
        if known_values := [value for value in values if value is not None]:
            longest[name] = statistics.median(known_values)
    most = [name for name, mean in factors.items() if mean.value >= MUCH]
    if not most:
        return
    told = f"- {listed(most)} {'gains' if len(most) == 1 else 'gain'} a factor of {MUCH:g} or more. "
    if isinstance(queue, int):
        large = [f"{name} ({longest[name]:.0f})" for name in most if longest.get(name, 0.0) > queue]
        small = [f"{name} ({longest[name]:.0f})" for name in most if longest.get(name, queue + 1.0) <= queue]
        if large:
            told += f"The longest bursts of {listed(large)} contain more packets than the shorter queue (medians). "
        if small:
            told += (
                f"Bursts do not explain the gain of {listed(small)}, whose longest bursts fit into the shorter queue. "
            )
        little = [
            f"{name} ({longest[name]:.0f}, factor {mean.value:.2f})"
            for name, mean in factors.items()
            if name not in most and longest.get(name, 0.0) > queue
        ]
        if little:
            told += (
                f"In contrast, {listed(little)} {'gains' if len(little) == 1 else 'gain'} less, although "
                f"{'its' if len(little) == 1 else 'their'} longest bursts do not fit into the shorter queue. "
            )
    order = rank_correlation(longest, {name: mean.value for name, mean in factors.items()})
    if order is not None:
        told += (
            f"The rank correlation between the longest burst and the factor is {order:.2f} over "
            f"{counted(len(longest), 'server')}. "
        )
    yield told.rstrip()
    yield WITHOUT_PACING


def more_of_both(matrix: ResultSet, longer: ResultSet, name: str) -> Iterator[str]:
    """For how many of the servers that are faster with the longer queue it also drops a larger share."""
    faster = [server for server, mean in ratios(matrix, longer, name).items() if mean.low is not None and mean.low > 1]
    rows = [row for row in by_server(matrix, longer, name).rows if row[0] in faster]
    both = [row[0] for row in rows if row[5] is not None and row[6] is not None and float(row[6]) > float(row[5])]
    if both:
        yield (
            f"- Of the {counted(len(rows), 'server')} with an interval above 1, {len(both)} also "
            f"{'has' if len(both) == 1 else 'have'} a larger share of dropped packets with the longer queue. A smaller "
            "share therefore cannot explain why goodput is higher; a later first drop might."
        )


MUCH = 2.0
"""Factor from which on a server gains much."""
WITHOUT_PACING = (
    "- For some servers, a lack of pacing may explain the gain. Without pacing, a server that doubles its window in a "
    "round trip sends twice as fast as its acknowledgements arrive. A queue of 25 packets then overflows when the "
    "window exceeds about 50 packets, and slow start ends. According to their source code, nginx 1.26.3 and the QUIC "
    "implementation of haproxy 3.0.11 have no pacing, quiche 0.30.0 does not pace its CUBIC (`recovery.rs`), and "
    "ngtcp2 1.11.0 sends up to 64 KiB at once (`ngtcp2_conn.c`), which is 45 packets. We have not checked the other "
    "servers, and no two runs differ in pacing only."
)


def _with_seeds(results: ResultSet) -> str:
    found = sorted({run.repetition for run in results.results})
    return f" with {'seed' if len(found) == 1 else 'seeds'} {listed(map(str, found))}" if found else ""


def same_runs(matrix: ResultSet, longer: ResultSet) -> tuple[ResultSet, ResultSet]:
    """The runs that both have, with the same random numbers."""
    theirs = {(run.server, run.client, base(run.test_case), run.evidence.seed): run for run in longer.results}
    mine = {(*run.key[:3], run.evidence.seed): run for run in matrix.results}
    shared = [key for key in mine if key in theirs]
    return (
        replace(matrix, results=tuple(mine[key] for key in shared)),
        replace(longer, results=tuple(theirs[key] for key in shared)),
    )


def over_the_same_links(longer: ResultSet) -> ResultSet:
    """The runs with the longer queue, over links with the names of those of the matrix."""
    cases = tuple(replace(case, name=base(case.name)) for case in longer.manifest.test_cases)
    runs = tuple(replace(run, test_case=base(run.test_case)) for run in longer.results)
    return replace(longer, manifest=replace(longer.manifest, test_cases=cases), results=runs)


def base(test_case: str) -> str:
    """The test case of the matrix that differs in the queue only."""
    return test_case.removesuffix(SUFFIX)


def both(matrix: ResultSet, longer: ResultSet) -> Table:
    """Rows of Table II with each queue, and the paper's."""
    columns = (
        Column("test case"), Column("queue"), Column("mean", Unit.RATE), Column("mean, all runs", Unit.RATE),
        Column("median, all runs", Unit.RATE), Column("max", Unit.RATE, 1), Column("T", Unit.COUNT),
        Column("×", Unit.COUNT), Column("pairs", Unit.COUNT),
    )  # fmt: skip
    rows = list[tuple[float | int | str | None, ...]]()
    for case in longer.manifest.test_cases:
        exact = results_case(matrix, base(case.name))
        rows.append((exact.name, "25 packets", *_of_pairs(matrix, exact.name)))
        rows.append((exact.name, "as in the simulator of the paper", *_of_pairs(longer, case.name)))
        if paper := TABLE_II.get(exact.name):
            counts = (paper.timeouts, paper.failures, None)
            rows.append((exact.name, "the paper's results", paper.mean, None, None, paper.maximum, *counts))
    return Table("queues", "Table II with both queues", columns, tuple(rows))


def _of_pairs(results: ResultSet, name: str) -> tuple[float | int | None, ...]:
    return row_of(results, results_case(results, name))


def ratios(matrix: ResultSet, longer: ResultSet, name: str) -> dict[str, Mean]:
    """By how much the longer queue multiplies the goodput of each server: geometric mean over clients."""
    found = by_client(matrix, longer, name)
    return {server: mean for server, each in found.items() if (mean := of_repetitions(each)) is not None}


def by_client(matrix: ResultSet, longer: ResultSet, name: str) -> dict[str, list[float]]:
    """By how much the longer queue multiplies the goodput of each server with each client.

    Each client counts with the geometric mean over its seeds.
    """
    before = {(run.server, run.client, run.repetition): run for run in matrix.results if run.test_case == base(name)}
    found: dict[str, dict[str, list[float]]] = {}
    for run in longer.results:
        other = before.get((run.server, run.client, run.repetition))
        if run.test_case == name and other is not None:
            one, two = goodput_so_far(other), goodput_so_far(run)
            if one and two:
                found.setdefault(run.server, {}).setdefault(run.client, []).append(two / one)
    return {server: list(map(statistics.geometric_mean, each.values())) for server, each in found.items()}


def by_server(matrix: ResultSet, longer: ResultSet, name: str) -> Table:
    """The factor of each server, and what the queues dropped."""
    columns = (
        Column("server"), Column("factor", Unit.RATIO, 3), Column("low", Unit.RATIO, 3), Column("high", Unit.RATIO, 3),
        Column("clients", Unit.COUNT),
        Column("dropped, 25 packets", Unit.SHARE, 1), Column("dropped, longer queue", Unit.SHARE, 1),
    )  # fmt: skip
    rows = [
        (
            server,
            mean.value,
            mean.low,
            mean.high,
            mean.count,
            _dropped([run for run in matrix.results if (run.server, run.test_case) == (server, base(name))]),
            _dropped([run for run in longer.results if (run.server, run.test_case) == (server, name)]),
        )
        for server, mean in ratios(matrix, longer, name).items()
    ]
    note = (
        "*Factor* is the goodput with the longer queue divided by the goodput with 25 packets, as the geometric mean "
        "over the clients. *Low* and *high* are the limits of its 95 % confidence interval, generalized to other "
        "clients. *Dropped* is the share of packets that the queue dropped (mean over the successful runs)."
    )
    title = f"Goodput with the longer queue over {base(name)}"
    return Table("queue-factors", title, columns, tuple(rows), (note, *_without_drops(rows)))


def _without_drops(rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Which servers have empty cells, and why."""
    names = [str(row[0]) for row in rows if row[5] is None or row[6] is None]
    if names:
        yield f"Cells of {listed(names)} are empty where no run succeeded. Means of drops omit these cells."


def _dropped(runs: Sequence[RunResult]) -> float | None:
    found = [value for run in runs if (value := value_of(run, "queue_loss")) is not None]
    return statistics.fmean(found) if found else None


def reason(matrix: ResultSet, longer: ResultSet, name: str) -> Iterator[str]:
    """What the factors show, and what changes with the queue."""
    factors = by_client(matrix, longer, name)
    yield faster_and_slower(longer, name, ratios(matrix, longer, name)) + corrected_for_servers(factors)
    dropped = [_all(matrix, base(name), "queue_loss"), _all(longer, name, "queue_loss")]
    flying = [_all(matrix, base(name), "in_flight_max"), _all(longer, name, "in_flight_max")]
    shared = flying[0].keys() & flying[1].keys()
    if shared:
        shares = [100 * statistics.fmean(each.values()) for each in dropped]
        growth = statistics.median(flying[1][key] / flying[0][key] for key in shared)
        yield (
            f"- On average, the shorter queue drops {shares[0]:.1f} % of the packets, and the longer queue "
            f"{shares[1]:.1f} %. The maximum in flight is {growth:.2f} times as high with the longer queue (median of "
            "the pairs)."
        )
    yield from _shares_of_servers(matrix, longer, name)
    paper, means = TABLE_II.get(base(name)), common_means(matrix, longer, name)
    if paper is not None and means is not None:
        changes = [relative(mean, paper.mean) for mean in means]
        yield (
            f"- For the {in_common(matrix)} that are also in the paper, our mean with 25 packets is {changes[0]} the "
            f"paper's mean, and our mean with the longer queue is {changes[1]} it."
        )


def in_virtual_time_only(
    matrix: ResultSet, real: ResultSet, factors: Mapping[str, Mean], test_case: str
) -> Iterator[str]:
    """Which factors are nearer to 1 than virtual time is to real time for the same server."""
    found = errors_of_servers(matrix, real, results_case(matrix, test_case))
    known = {server: mean for server, mean in factors.items() if server in found}
    if not known:
        return
    near = [server for server, mean in known.items() if abs(math.log(mean.value)) <= found[server]]
    told = (
        f"- We did not measure the longer queue in real time, so all factors hold in virtual time. For "
        f"{len(near) or 'none'} of {counted(len(known), 'server')}{_in_parentheses(near)}, the factor differs from 1 "
        "by no more than the goodput of the same server in virtual time differs from real time with 25 packets (RMS "
        f"over the clients; see [Virtual and real time](#virtual-and-real-time))."
    )
    if missing := [server for server in factors if server not in known]:
        told += f" For {listed(missing)}, there are no runs in real time over `{test_case}`."
    yield told


def _in_parentheses(names: Sequence[str]) -> str:
    return f" ({listed(names)})" if names else ""


def with_other_seeds(matrix: ResultSet, compared: ResultSet, test_case: str) -> Iterator[str]:
    """What the shorter queue drops with the seeds that were not measured with the longer queue.

    ``compared``: the runs of the matrix that were.
    """
    case = results_case(matrix, test_case)
    mine, every = by_seed(compared, case), by_seed(matrix, case)
    others = {seed: runs for seed, runs in every.items() if seed not in mine}
    if not others:
        return
    used = seeds_in_words(sorted(mine))
    few, never = dict[str, str](), list[str]()
    for server in matrix.manifest.servers:
        now = [run for runs in mine.values() for run in runs if run.server == server]
        then = {seed: [run for run in runs if run.server == server] for seed, runs in others.items()}
        counts = [runs_with_drops(runs) for runs in then.values()]
        if 2 * runs_with_drops(now) < len(now) and any(
            2 * count > len(runs) for count, runs in zip(counts, then.values(), strict=True)
        ):
            few[server] = f"{runs_with_drops(now)}; {', '.join(map(str, counts))}"
        elif not runs_with_drops(now) and not any(counts):
            never.append(server)
    yield (
        f"- All runs over `{test_case}` in this section have {used}, so their results hold for "
        f"{'one sequence' if len(mine) == 1 else f'{len(mine)} sequences'} of losses only."
        f"{_few_and_never(few, never, used, sorted(others))} See [Queue drops by seed over {test_case}]"
        f"(#queue-drops-by-seed-over-{test_case})."
    )


def _few_and_never(few: Mapping[str, str], never: Sequence[str], used: str, others: Sequence[int]) -> str:
    """Servers for which other seeds matter, with their runs with drops, and those for which they do not."""
    told = (
        f" For {listed(few)}, the queue of 25 packets drops packets in fewer than half of the runs with {used}, but in "
        "more than half of the runs with at least one other seed. The numbers of runs with drops (for "
        f"{used}; for {seeds_in_words(others)}) are: "
        f"{listed(f'{server} ({counts})' for server, counts in few.items())}. For "
        f"{'this server' if len(few) == 1 else 'these servers'}, a factor near 1 may not hold with other seeds."
        if few
        else ""
    )
    if never:
        told += f" For {listed(never)}, the queue of 25 packets drops no packets with any seed."
    return told


def _shares_of_servers(matrix: ResultSet, longer: ResultSet, name: str) -> Iterator[str]:
    """Whether the server has as large a share of the variance, and servers have the same order."""
    cases = results_case(matrix, base(name)), results_case(longer, name)
    shares = [with_both_intervals(results, case) for results, case in zip((matrix, longer), cases, strict=True)]
    means = [means_of_servers(results, case) for results, case in zip((matrix, longer), cases, strict=True)]
    order = rank_correlation(*means)
    if shares[0] and shares[1] and order is not None:
        yield (
            f"- The server accounts for {shares[0]} of the variance of the logarithm of goodput with 25 packets, and "
            f"for {shares[1]} with the longer queue. The first interval in parentheses is the 95 % confidence interval "
            "of a bootstrap over servers and clients; the second one assumes normal distributions. The rank "
            f"correlation between the servers' means with the two queues is {order:.2f}."
        )


def rank_correlation(first: Mapping[str, float], second: Mapping[str, float]) -> float | None:
    """Spearman's, over the names that both have; None if there are fewer than three."""
    names = sorted(first.keys() & second.keys())
    if len(names) < LEAST_SERVERS:
        return None
    ranks = [_ranks([values[name] for name in names]) for values in (first, second)]
    return statistics.correlation(*ranks) if all(len({*each}) > 1 for each in ranks) else None


def _ranks(values: Sequence[float]) -> list[float]:
    """Equal values have the mean of their ranks."""
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2 for value in values
    ]


LEAST_SERVERS = 3
"""With fewer, a rank correlation says nothing."""


def faster_and_slower(longer: ResultSet, name: str, found: Mapping[str, Mean]) -> str:
    """How many servers have an interval above or below 1 if only the queue differs."""
    faster = [server for server, mean in found.items() if mean.low is not None and mean.low > 1]
    slower = [server for server, mean in found.items() if mean.high is not None and mean.high < 1]
    named = f": {', '.join(slower)}" if slower else ""
    count = len({run.evidence.seed for run in longer.results if run.test_case == name})
    return (
        f"- Over `{base(name)}`, {len(faster) or 'none'} of {len(found)} servers {_is_or_are(faster)} faster with the "
        f"longer queue ({_intervals(faster, '95 % confidence interval')} above 1), and {len(slower) or 'none'} "
        f"{_is_or_are(slower)} slower ({_intervals(slower, 'interval')} below 1{named}). These runs have "
        f"{'one seed' if count == 1 else f'{count} seeds'}. The intervals are over the clients, and are not corrected "
        "for the number of servers."
    )


LEVEL = 0.05
"""Probability that the test calls at least one server faster or slower if the queue changes none."""


def corrected_for_servers(factors: Mapping[str, Sequence[float]]) -> str:
    """Which servers are faster or slower according to a test that takes their number into account.

    ``factors``: of each server, with each client. Exact test of the signs of the logarithms (Fisher 1935), corrected
    for the number of servers (Holm 1979); empty if there are no servers.
    """
    if not factors:
        return ""
    logs = {server: [math.log(each) for each in found] for server, found in factors.items()}
    values = holm([matched([0.0] * len(each), each) for each in logs.values()])
    known = {server: sum(each) for (server, each), p in zip(logs.items(), values, strict=True) if p <= LEVEL}
    faster, slower = ([server for server, total in known.items() if sign * total > 0] for sign in (1, -1))
    named = f" ({listed(slower)})" if slower else ""
    first = f"{counted(len(faster), 'server')} ({listed(faster)})" if faster else "no server"
    return (
        " In an exact test over the clients (permuted signs, Fisher 1935) that is corrected for the "
        f"{counted(len(factors), 'server')} (Holm 1979, level {100 * LEVEL:.0f} %), "
        f"{first} {_is_or_are(faster)} faster, and {len(slower) or 'none'} {_is_or_are(slower)} slower{named}."
    )


def _is_or_are(servers: Sequence[str]) -> str:
    return "are" if len(servers) > 1 else "is"


def _intervals(servers: Sequence[str], word: str) -> str:
    """``their intervals are``, ``its interval is``, ``no interval is``."""
    if len(servers) > 1:
        return f"their {word}s are"
    return f"its {word} is" if servers else f"no {word} is"


def common_means(matrix: ResultSet, longer: ResultSet, name: str) -> tuple[float, float] | None:
    """Mean goodput with both queues, of servers and clients that the paper measured, too; None if there is none."""
    one, other = same_runs(matrix, longer)
    means = [
        scenario(common(results), results_case(results, case)).mean
        for results, case in ((one, base(name)), (other, name))
    ]
    return (means[0], means[1]) if means[0] and means[1] else None


def finding(matrix: ResultSet, longer: ResultSet) -> Iterator[str]:
    """What the queue changes over ``sat``, as an item of a list."""
    name, paper = f"sat{SUFFIX}", TABLE_II["sat"].mean
    means = common_means(matrix, longer, name) if find(longer, name) and find(matrix, "sat") else None
    if means is not None:
        growth = 100 * (means[1] / means[0] - 1)
        yield (
            "- The queue of the paper's simulator held up to 125 packets rather than 25. With this queue, our mean "
            f"goodput over `sat` {'rises' if growth >= 0 else 'falls'} by {abs(growth):.0f} % for the "
            f"{in_common(matrix)} that are also in the paper{_of_all_runs(matrix, longer, name)}. Our mean is then "
            f"{relative(means[1], paper)} the paper's mean; with 25 packets, it is {relative(means[0], paper)} the "
            "paper's mean. The paper's mean includes other servers and clients, so these differences are only rough. "
            "We cannot separate their "
            "causes, such as newer versions and the receive windows that our programs set. See [Queue of the paper's "
            "simulator](#queue-of-the-papers-simulator)."
        )


def _of_all_runs(matrix: ResultSet, longer: ResultSet, name: str) -> str:
    """`` (successful runs; 36 % for all runs)``; empty if all succeeded with both queues."""
    cases = results_case(matrix, base(name)), results_case(longer, name)
    runs = [of_case(common(results), case) for results, case in zip((matrix, longer), cases, strict=True)]
    if all(run.verdict.outcome is Outcome.SUCCEEDED for each in runs for run in each):
        return ""
    before, after = (statistics.fmean(known(each)) for each in runs)
    return f" (successful runs; {100 * (after / before - 1):.0f} % for all runs)"


def _all(results: ResultSet, name: str, metric: str) -> dict[tuple[str, str, int], float]:
    return {
        (run.server, run.client, run.repetition): value
        for run in of_case(results, results_case(results, name))
        if (value := value_of(run, metric)) is not None
    }


def results_case(results: ResultSet, name: str) -> TestCase:
    """The test case of this name."""
    return next(case for case in results.manifest.test_cases if case.name == name)
