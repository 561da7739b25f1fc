"""What servers send beyond the file: bytes per byte of it, and packets that the queue drops."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from interop.model.results import ResultSet
from interop.model.test_case import TestCase
from interop.report.table import Column, Table, Unit
from interop.statistics.samples import GOODPUT, find, value_of
from scripts.paper.endpoints import hystart_in_words
from scripts.paper.goodput import STREAM_GOODPUT, of_case
from scripts.paper.lines import rendered
from scripts.paper.queues import rank_correlation
from scripts.paper.words import counted, listed

SATELLITE = ("sat", "satloss")
HYSTART = {"yes": True, "no": False}
METRICS = ("sent_per_useful_byte", "queue_loss")


def means(results: ResultSet, case: TestCase, metric: str) -> dict[str, float]:
    """Mean of a metric over the successful runs of each server."""
    found = dict[str, float]()
    for name in results.manifest.servers:
        mine = [run for run in of_case(results, case) if run.server == name]
        if values := [value for run in mine if (value := value_of(run, metric)) is not None]:
            found[name] = statistics.fmean(values)
    return found


def of_senders(results: ResultSet) -> Table:
    """A row for each server: bytes sent per byte of the file, and share of packets dropped, over satellite links."""
    cases = [case for name in SATELLITE if (case := find(results, name)) is not None]
    columns = [Column("server")]
    for case in cases:
        columns += [
            Column(f"bytes sent per byte, {case.name}", Unit.RATIO),
            Column(f"dropped by the queue, {case.name}", Unit.SHARE, 1),
        ]
    cells = [means(results, case, metric) for case in cases for metric in METRICS]
    rows = tuple((name, *(each.get(name) for each in cells)) for name in results.manifest.servers)
    notes = (
        (
            "Ranked by goodput alone, a server can look good even if much of what it sends does not arrive. *Bytes "
            "sent* counts the UDP payload that the server sent, headers and repeated data included, per byte of the "
            "file. *Dropped by the queue* is the share of the server's packets. Both are means of the successful runs; "
            "a cell is empty if there are none."
        ),
    )
    return Table("senders", "What servers send and what the queue drops", tuple(columns), rows, notes)


def senders(results: ResultSet) -> Iterator[str]:
    """The table, the server that wastes most, and servers with and without HyStart."""
    case = find(results, "sat")
    if case is None or not (dropped := means(results, case, "queue_loss")):
        return
    yield from rendered(of_senders(results))
    most = max(dropped, key=dropped.__getitem__)
    sent = means(results, case, "sent_per_useful_byte")
    told = f"; {most} sends {sent[most]:.2f} bytes per byte of the file" if most in sent else ""
    middle = f" (median of the servers: {statistics.median(sent.values()):.2f})" if told else ""
    yield (
        f"Over `{case.name}`, the queue drops {100 * dropped[most]:.0f} % of {most}'s packets, the largest share of "
        f"any server (median: {100 * statistics.median(dropped.values()):.1f} %){told}{middle}. "
        f"{with_hystart(results, dropped)}".strip()
    )
    yield ""
    yield from two_goodputs(results, case)


TOP = 8
"""The report names servers whose rank changes among the first so many."""


def two_goodputs(results: ResultSet, case: TestCase) -> Iterator[str]:
    """How the ranks of servers change if goodput is measured from the first to the last byte of the file."""
    both = [means(results, case, metric) for metric in (GOODPUT, STREAM_GOODPUT)]
    order = rank_correlation(*both)
    if order is None:
        return
    names = both[0].keys() & both[1].keys()
    ranks = [[name for name in sorted(each, key=each.__getitem__, reverse=True) if name in names] for each in both]
    places = {name: tuple(1 + rank.index(name) for rank in ranks) for name in ranks[0]}
    moved = [
        f"{name} from {before} to {after}"
        for name, (before, after) in places.items()
        if before != after and min(before, after) <= TOP
    ]
    changes = f" Among the top {TOP} servers, the following change rank: {listed(moved)}." if moved else ""
    yield (
        f"Over `{case.name}`, the order of the servers by goodput and their order by goodput from the first to the "
        f"last byte of the file have a rank correlation of {order:.3f} ({len(names)} servers; means of the successful "
        f"runs).{changes}"
    )
    yield ""


def with_hystart(results: ResultSet, dropped: dict[str, float]) -> str:
    """Median of the shares of servers with and without HyStart; those that use BBR without it are neither."""
    known = {each.name: each.congestion_control for each in results.manifest.implementations}
    groups: dict[bool, list[float]] = {True: [], False: []}
    for name, share in dropped.items():
        control = known.get(name)
        if hystart_in_words(control) in HYSTART:
            groups[HYSTART[hystart_in_words(control)]].append(share)
    if not all(groups.values()):
        return ""
    medians = {has: 100 * statistics.median(shares) for has, shares in groups.items()}
    told = (
        f"The median share of dropped packets is {medians[True]:.1f} % for the {counted(len(groups[True]), 'server')} "
        f"with HyStart and {medians[False]:.1f} % for the {counted(len(groups[False]), 'server')} without it (see [How "
        "servers send](#how-servers-send))"
    )
    if medians[True] >= medians[False]:
        return f"{told}. These few servers do not show that HyStart reduces drops."
    return f"{told}."
