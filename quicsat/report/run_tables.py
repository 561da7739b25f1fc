"""Tables of links, single runs and groups of runs, from statistics and stored series."""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from quicsat.model.emulated_link import loss_share
from quicsat.model.link_format import format_details, format_queue
from quicsat.model.objective import Objective
from quicsat.model.real_link import Baseline, RealLink
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted, printable
from quicsat.report.pair_series import PairSeries, load_pairs
from quicsat.report.plot_request import PlotRequest
from quicsat.report.successes import mean, successes
from quicsat.report.table import Column, Table, Unit, Value
from quicsat.statistics.clusters import Clustering, cluster, standardised
from quicsat.statistics.objectives import objectives, origin
from quicsat.statistics.overview import relation, sweeps
from quicsat.statistics.samples import EFFICIENCY, GOODPUT, value_of

COMPLETION = "completion_time"
BEHAVIOUR = ("startup_time", "sent_per_useful_byte", "steady_rate")
"""Metrics by which runs are grouped; the first group has the highest value of the last one."""
ALL = "all"


def _mine(results: ResultSet, case: TestCase) -> list[RunResult]:
    """Runs of a test case that succeeded, pair by pair."""
    place = {name: number for number, name in enumerate((*results.manifest.servers, *results.manifest.clients))}
    return sorted(
        successes(results.results, case), key=lambda each: (place[each.server], place[each.client], each.repetition)
    )


# ---- links ----------------------------------------------------------------------------------


def links(_results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """What was emulated, or is advertised, a row per test case (table of the scenarios in the QIR-SE slides)."""
    columns = (
        Column("test case"), Column("forward rate", Unit.RATE, 1), Column("return rate", Unit.RATE, 1),
        Column("RTT", Unit.SECONDS, 3), Column("forward queue"), Column("return queue"),
        Column("forward loss", Unit.SHARE), Column("return loss", Unit.SHARE), Column("bytes", Unit.COUNT),
        Column("deadline", Unit.SECONDS, 0), Column("details"),
    )  # fmt: skip
    rows = tuple((case.abbreviation, *_conditions(case), format_details(case)) for case in cases)
    return Table("links", "Links and files", columns, rows)


def _conditions(case: TestCase) -> tuple[str | float | None, ...]:
    link = case.link
    if case.partly_known:
        return link.forward.rate or None, *[None] * 7, case.timeout or None
    return (
        link.forward.rate, link.back.rate, link.round_trip_delay, *_emulation(case), case.total_size, case.timeout,
    )  # fmt: skip


def accesses(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """Real links: the access (Table I of the paper), and what the bare link did whenever it was looked at."""
    columns = (
        Column("test case"), Column("provider"), Column("tariff"), Column("forward rate", Unit.RATE, 1),
        Column("return rate", Unit.RATE, 1), Column("traffic limit"), Column("modem"), Column("checks", Unit.COUNT),
        Column("RTT, median", Unit.SECONDS, 3), Column("lowest", Unit.SECONDS, 3), Column("highest", Unit.SECONDS, 3),
        Column("packet loss", Unit.SHARE), Column("TCP goodput", Unit.RATE), Column("TCP return", Unit.RATE),
    )  # fmt: skip
    rows = [
        (
            case.abbreviation, link.provider, link.tariff, link.forward.rate, link.back.rate, link.traffic_limit,
            link.modem, *_bare(each for each in results.results if each.test_case == case.name),
        )
        for case in cases
        if isinstance(link := case.link, RealLink)
    ]  # fmt: skip
    note = (
        "Rates are those that the provider advertises. quicsat measures the bare link while no endpoint uses it, with "
        "UDP round trips and, if requested, iperf3."
    )
    own = (f"Note of the campaign: {printable(results.manifest.note)}",) if results.manifest.note else ()
    return Table("accesses", "Real links", columns, tuple(rows), (note, *own))


def _bare(results: Iterable[RunResult]) -> tuple[float | None, ...]:
    baselines = baselines_of(results)
    sent = [each for baseline in baselines for each in baseline.round_trips]
    came = [each for each in sent if each is not None]
    filled, back = (
        [rate for baseline in baselines if (rate := getattr(baseline, name)) is not None]
        for name in ("goodput", "return_goodput")
    )
    return (
        len(baselines), statistics.median(came) if came else None, min(came, default=None), max(came, default=None),
        1 - len(came) / len(sent) if sent else None, mean(filled), mean(back),
    )  # fmt: skip


def baselines_of(results: Iterable[RunResult]) -> list[Baseline]:
    """What runs know of the bare link, each measurement once, by date."""
    reports = [result.evidence.real_link for result in results]
    found = {each.baseline.taken: each.baseline for each in reports if each and each.baseline}
    return [found[taken] for taken in sorted(found)]


def _emulation(case: TestCase) -> tuple[str | float | None, ...]:
    """Queues and losses of an emulated link; unknown for a real one."""
    if case.real:
        return None, None, None, None
    link = case.emulated
    queues = (format_queue(queue) for queue in (link.forward.queue, link.back.queue))
    return *queues, loss_share(link.forward.loss), loss_share(link.back.loss)


LOSSES = {
    "all": ("loss_forward", "gilbert"), "queue": ("queue_loss", ""), "link": ("link_loss", "link_gilbert"),
    "client's queue": ("client_side_queue_loss", ""), "client's side": ("client_side_loss", ""),
}  # fmt: skip
"""Where packets are lost -> the metric of their share, and what the names of the Gilbert model's metrics begin with."""


def loss(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """Loss as it was seen in the traces, and the Gilbert model of it (Table 1 of the SATCOM paper)."""
    columns = (
        Column("test case"), Column("server"), Column("losses"), Column("forward", Unit.SHARE),
        Column("P(g|g)", Unit.SHARE), Column("P(g|b)", Unit.SHARE), Column("P(b|b)", Unit.SHARE),
        Column("P(b|g)", Unit.SHARE), Column("Bmax", Unit.COUNT), Column("return", Unit.SHARE), Column("n", Unit.COUNT),
    )  # fmt: skip
    rows = []
    for case in cases:
        mine = [result for result in _mine(results, case) if value_of(result, "loss_forward") is not None]
        names = [ALL, *(name for name in results.manifest.servers if any(each.server == name for each in mine))]
        for name in names if mine else []:
            group = [result for result in mine if name in (ALL, result.server)]
            rows += [(case.abbreviation, name, place, *row) for place, row in _losses(group)]
    note = (
        "Values are means over the n successful runs. The forward direction is from the server to the client. The "
        "shares of all losses are those in the traces. The shares of the queue, of the link among the packets that "
        "passed the queue, and of the queue and the loss at the client's side are the simulator's counts. The bursts "
        "of the link are unknown if the traces do not show them apart from other drops (docs/reference/metrics.md)."
    )
    states = (
        "P(x|y) is the probability that the packet after one in state y is in state x, where "
        "g means that a packet arrived and b that it was lost. Bmax is the largest number of packets lost in a row in "
        "any run."
    )
    return Table("loss", "Loss in the traces", columns, tuple(rows), (note, states))


def _losses(group: Sequence[RunResult]) -> Iterator[tuple[str, tuple[float | int | None, ...]]]:
    """Where packets are lost, and the values of the row; only what any run tells of."""
    for place, (share, model) in LOSSES.items():
        if (lost := mean(value_of(each, share) for each in group)) is None:
            continue
        names = [f"{model}_{name}" for name in ("gg", "gb", "bb", "bg")]
        bursts = [value for each in group if (value := value_of(each, f"{model}_longest_burst")) is not None]
        back = mean(value_of(each, "loss_return") for each in group) if place == "all" else None
        yield (
            place,
            (
                lost,
                *(mean(value_of(each, name) for each in group) for name in names),
                int(max(bursts)) if bursts else None,
                back,
                len(group),
            ),
        )


def sweep(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """Completion time and goodput against the loss of the link (Table 2 of the SATCOM paper)."""
    columns = (
        Column("test case"), Column("loss of the link", Unit.SHARE), Column("bytes", Unit.COUNT),
        Column("mean completion", Unit.SECONDS, 1), Column("mean", Unit.RATE),
        Column("relative to the first", Unit.SHARE, 0), Column("n", Unit.COUNT),
    )  # fmt: skip
    rows = []
    for group in sweeps(cases):
        first: float | None = None
        for case in group:
            mine = _mine(results, case)
            goodput = mean(value_of(each, GOODPUT) for each in mine)
            first = first or goodput
            rows.append(
                (
                    case.abbreviation, loss_share(case.link.forward.loss), case.total_size,
                    mean(value_of(each, COMPLETION) for each in mine), goodput,
                    goodput / first if goodput is not None and first else None, len(mine),
                )
            )  # fmt: skip
    note = (
        "The table compares test cases that differ only in their loss. Values are means over the n successful runs of "
        "all pairs."
    )
    return Table("sweep", "Goodput and loss", columns, tuple(rows), (note,))


# ---- runs -----------------------------------------------------------------------------------


def runs(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """Start-up, steady rate and redundant data of each run (section IV-D of arXiv 2202.08228)."""
    columns = (
        Column("test case"), Column("server"), Column("client"), Column("repetition", Unit.COUNT),
        Column("completion", Unit.SECONDS, 1), Column("start-up ends after", Unit.SECONDS, 1),
        Column("start-up share", Unit.SHARE, 0), Column("steady rate", Unit.RATE),
        Column("largest burst, packets", Unit.COUNT), Column("sent per useful byte", Unit.COUNT),
        Column("retransmitted", Unit.SHARE, 1), Column("forward loss", Unit.SHARE, 1),
    )  # fmt: skip
    rows = [
        (case.abbreviation, each.server, each.client, each.repetition, *_run(each))
        for case in cases
        for each in _mine(results, case)
    ]
    note = (
        "The steady rate is the 90th percentile of the rate over 1 s. "
        "After start-up, the mean rate stays above 80 % of the steady rate. Both values exist only for transfers that "
        "take longer than 2 s. The start-up share is relative to the time between the first and the last byte."
    )
    burst = (
        "The largest burst is the largest number of packets that the server sends at once, that is, faster than four "
        "times the link's rate."
    )
    return Table("runs", "Runs", columns, tuple(rows), ("The table includes only successful runs.", note, burst))


def _run(result: RunResult) -> tuple[float | int | None, ...]:
    completion, startup, first, burst = (
        value_of(result, name) for name in (COMPLETION, "startup_time", "time_to_first_byte", "longest_burst")
    )
    transfer = completion - first if completion is not None and first is not None else None
    return (
        completion,
        startup,
        startup / transfer if startup is not None and transfer else None,
        value_of(result, "steady_rate"),
        int(burst) if burst is not None else None,
        *(value_of(result, name) for name in ("sent_per_useful_byte", "retransmitted", "loss_forward")),
    )


def senders(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """How each server sends and how often it is answered (section 5.2 of the SATCOM paper): medians of its runs."""
    names = ("initial_window", "in_flight_max", "longest_burst", "sent_per_useful_byte", "return_packets", "rtt_95")
    columns = (
        Column("test case"), Column("server"), Column("first flight, bytes", Unit.COUNT),
        Column("maximum in flight, bytes", Unit.COUNT), Column("largest burst, packets", Unit.COUNT),
        Column("sent per useful byte", Unit.COUNT), Column("return packets per packet", Unit.COUNT),
        Column("95 % of RTTs below", Unit.SECONDS, 3), Column("n", Unit.COUNT),
    )  # fmt: skip
    rows = []
    for case in cases:
        groups: dict[str, list[RunResult]] = {}
        for each in _mine(results, case):
            groups.setdefault(each.server, []).append(each)
        for server, group in groups.items():
            medians = (_median(value_of(each, name) for each in group) for name in names)
            rows.append((case.abbreviation, server, *map(_whole, medians), len(group)))
    note = (
        "Values are medians over the n successful runs. The first flight consists of the response bytes that the "
        "server sends in the first round trip. The largest burst is the longest run of packets whose gaps are less "
        "than half of the gap at the link's rate, and less than half of the sender's mean gap."
    )
    return Table("senders", "Sending behaviour of servers", columns, tuple(rows), (note,))


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _whole(value: float | None) -> float | int | None:
    """Large numbers without a fraction."""
    return round(value) if value is not None and value >= 10 else value


def times(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """How much the time to completion differs between the repetitions of a pair, the least steady pair first."""
    columns = (
        Column("test case"), Column("server"), Column("client"), Column("fastest", Unit.SECONDS, 1),
        Column("median", Unit.SECONDS, 1), Column("slowest", Unit.SECONDS, 1), Column("slowest / fastest", Unit.COUNT),
        Column("n", Unit.COUNT),
    )  # fmt: skip
    rows = []
    for case in cases:
        groups: dict[tuple[str, str], list[float]] = {}
        for each in _mine(results, case):
            if (time := value_of(each, COMPLETION)) is not None:
                groups.setdefault((each.server, each.client), []).append(time)
        here = [
            (case.abbreviation, *pair, min(all_times), statistics.median(all_times), max(all_times),
             max(all_times) / min(all_times), len(all_times))
            for pair, all_times in groups.items()
        ]  # fmt: skip
        rows += sorted(here, key=lambda row: -float(row[6]))
    note = "Times are from the client's first packet to the last new byte, for the n successful runs."
    return Table("times", "Completion time per pair", columns, tuple(rows), (note,))


# ---- objectives -----------------------------------------------------------------------------


def objectives_met(request: PlotRequest) -> Table:
    """Which pairs met which objectives, and by what margin, from their stored series."""
    columns = (
        Column("test case"), Column("objective"), Column("server"), Column("client"), Column("met"),
        Column("median", Unit.SECONDS), Column("margin", Unit.SECONDS), Column("runs that met it", Unit.COUNT),
        Column("n", Unit.COUNT),
    )  # fmt: skip
    rows, notes = [], dict[str, None]()
    for pair in load_pairs(request):
        wanted = objectives(pair.case, request.objectives)
        if not wanted:
            notes[
                f"{pair.case.abbreviation} has no objectives that its files can meet. Set objectives with --objective."
            ] = None
        for objective in wanted:
            rows.append((pair.case.abbreviation, objective.name, pair.server, pair.client, *_met(pair, objective)))
    order = {name: number for number, name in enumerate(dict.fromkeys((row[0], row[1]) for row in rows))}
    rows.sort(key=lambda row: order[row[0], row[1]])
    note = (
        f"The table shows {origin(request.objectives)}. Medians and margins are over the n repetitions with stored "
        "series. A positive margin is the time that remains."
    )
    return Table("objectives", "Objectives met", columns, tuple(rows), (note, *notes))


def _met(pair: PairSeries, objective: Objective) -> tuple[float | int | str | None, ...]:
    found = [run.reached(objective.size) for run in pair.runs]
    middle = statistics.median(found)
    known = isfinite(middle)
    return (
        "yes" if middle <= objective.limit else "no",
        middle if known else None,
        objective.margin(middle) if known else None,
        sum(time <= objective.limit for time in found),
        len(found),
    )


# ---- groups ---------------------------------------------------------------------------------


def groups_of_pairs(results: ResultSet, x: str, y: str) -> tuple[Table, Table]:
    """Groups among the pairs by their efficiency in two test cases (section IV-C of arXiv 2202.08228); members."""
    points = relation(results, x, y)
    found = cluster([(point.x, point.y) for point in points])
    title = f"Groups of pairs in {x} and {y}"
    columns = (
        Column("group"), Column("pairs", Unit.COUNT), Column(f"mean efficiency in {x}", Unit.SHARE, 1),
        Column(f"mean efficiency in {y}", Unit.SHARE, 1), Column("server's congestion control"), Column("servers"),
    )  # fmt: skip
    rows = list[tuple[Value, ...]]()
    for number, centre in enumerate(found.centres if found else ()):
        group = [point for point, label in zip(points, found.labels if found else (), strict=True) if label == number]
        rows.append(
            (str(number + 1), len(group), *centre, _counted(point.family for point in group),
             _counted(point.server for point in group))
        )  # fmt: skip
    members = [
        (str(label + 1), point.server, point.client, point.x, point.y, point.family)
        for label, point in sorted(zip(found.labels if found else (), points, strict=False), key=lambda each: each[0])
    ]
    member_columns = (
        Column("group"), Column("server"), Column("client"), Column(f"efficiency in {x}", Unit.SHARE, 1),
        Column(f"efficiency in {y}", Unit.SHARE, 1), Column("server's congestion control"),
    )  # fmt: skip
    notes = (_clear(found, f"{counted(len(points), 'pair')} with a successful repetition in both test cases"),)
    return (
        Table("groups", title, columns, tuple(rows), notes),
        Table("members", f"Members of the groups in {x} and {y}", member_columns, tuple(members)),
    )


def groups_of_runs(results: ResultSet, case: TestCase) -> tuple[Table, Table]:
    """Groups among the runs of a test case by how they went: start-up, steady rate, what was sent in vain; members."""
    mine = [each for each in _mine(results, case) if None not in _behaviour(each)]
    points = [[value for value in _behaviour(each) if value is not None] for each in mine]
    found = cluster(standardised(points).tolist()) if points else None
    columns = (
        Column("group"), Column("runs", Unit.COUNT), Column("start-up ends after", Unit.SECONDS, 1),
        Column("sent per useful byte", Unit.COUNT), Column("steady rate", Unit.RATE),
        Column("mean efficiency", Unit.SHARE, 1), Column("servers"),
    )  # fmt: skip
    rows, members = list[tuple[Value, ...]](), list[tuple[Value, ...]]()
    for number in range(len(found.centres) if found else 0):
        group = [each for each, label in zip(mine, found.labels if found else (), strict=True) if label == number]
        means = [mean(value_of(each, name) for each in group) for name in (*BEHAVIOUR, EFFICIENCY)]
        rows.append((str(number + 1), len(group), *means, _counted(each.server for each in group)))
        members += [
            (str(number + 1), each.server, each.client, each.repetition, *_behaviour(each), value_of(each, EFFICIENCY))
            for each in group
        ]
    member_columns = (
        columns[0], Column("server"), Column("client"), Column("repetition", Unit.COUNT), *columns[2:5],
        Column("efficiency", Unit.SHARE, 1),
    )  # fmt: skip
    return (
        Table("groups", f"Groups of runs in {case.abbreviation}", columns, tuple(rows),
              (_clear(found, f"{counted(len(mine), 'successful run')} for which all of these values are known"),)),
        Table("members", f"Members of the groups in {case.abbreviation}", member_columns, tuple(members)),
    )  # fmt: skip


def _behaviour(result: RunResult) -> tuple[float | None, ...]:
    return tuple(value_of(result, name) for name in BEHAVIOUR)


def _counted(names: Iterable[str]) -> str:
    """``BBR 6, CUBIC 2``; the most frequent first."""
    counts = sorted(Counter(names).items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{name} {count}" for name, count in counts)


def _clear(found: Clustering | None, n: str) -> str:
    if found is None:
        return f"Too few of the n = {n} differ to form groups."
    return (
        f"The table covers the n = {n}. The groups come from k-means. The number of groups, from 2 to 6, is the one "
        f"with the largest silhouette score ({found.silhouette:.2f}: {found.structure} structure)."
    )


PER_CAMPAIGN = {
    "links": links, "accesses": accesses, "loss": loss, "sweep": sweep, "runs": runs, "senders": senders,
    "times": times,
}  # fmt: skip
"""Tables of one campaign, by name."""
