"""The stored report docs/paper: what servers send beyond the file."""

from __future__ import annotations

from statistics import fmean, median

import pytest

from tests.scripts.stored_paper_report.stored import (
    FILE,
    cases_of,
    listed,
    manifest,
    matching,
    matrix,
    metrics,
    rows,
    section_of,
    the_page,
)

SENDERS = "What servers send and what the queue drops"


def means(test_case: str, name: str) -> dict[str, float]:
    """Of the successful runs, by server."""
    found = {server: metrics(matching(matrix(), server=server, test_case=test_case), name)
             for server in manifest()["servers"]}  # fmt: skip
    return {server: fmean(values) for server, values in found.items() if values}


def test_bytes_sent_and_packets_dropped() -> None:
    found = rows(SENDERS)
    assert [row[0] for row in found] == manifest()["servers"]
    columns = [(test_case, name) for test_case in ("sat", "satloss") for name in ("sent_per_useful_byte", "queue_loss")]
    for place, (test_case, name) in enumerate(columns, start=1):
        known = means(test_case, name)
        for row in found:
            assert (row[place] != "") == (row[0] in known)
            if row[0] in known:
                times, near = (1, 0.0051) if name == "sent_per_useful_byte" else (100, 0.051)
                assert float(row[place]) == pytest.approx(times * known[row[0]], abs=near)


def test_the_server_that_wastes_most() -> None:
    dropped, sent = means("sat", "queue_loss"), means("sat", "sent_per_useful_byte")
    most = max(dropped, key=lambda name: dropped[name])
    assert (
        f"Over `sat`, the queue drops {100 * dropped[most]:.0f} % of {most}'s packets, the largest share of any server "
        f"(median: {100 * median(dropped.values()):.1f} %); {most} sends {sent[most]:.2f} bytes per byte of the file "
        f"(median of the servers: {median(sent.values()):.2f})."
    ) in section_of(SENDERS)


def test_servers_with_and_without_hystart() -> None:
    shares, dropped = {row[0]: row[1] for row in rows("How servers send")}, means("sat", "queue_loss")
    with_it, without = ([dropped[name] for name, cell in shares.items() if cell == word] for word in ("yes", "no"))
    told = (
        f"The median share of dropped packets is {100 * median(with_it):.1f} % for the {len(with_it)} servers with "
        f"HyStart and {100 * median(without):.1f} % for the {len(without)} servers without it"
    )
    assert told in section_of(SENDERS)
    assert ("do not show that HyStart reduces drops" in section_of(SENDERS)) is (median(with_it) >= median(without))


def test_ranks_by_both_goodputs() -> None:
    goodput, stream = means("sat", "goodput"), means("sat", "stream_goodput")
    ranks = [{name: sum(other >= value for other in each.values()) for name, value in each.items()}
             for each in (goodput, stream)]  # fmt: skip
    count = len(goodput)
    squares = sum((ranks[0][name] - ranks[1][name]) ** 2 for name in goodput)
    moved = [
        f"{name} from {ranks[0][name]} to {ranks[1][name]}"
        for name in sorted(goodput, key=lambda name: ranks[0][name])
        if ranks[0][name] != ranks[1][name] and min(ranks[0][name], ranks[1][name]) <= 8
    ]
    assert (
        "their order by goodput from the first to the last byte of the file have a rank correlation of "
        f"{1 - 6 * squares / (count * (count**2 - 1)):.3f} ({count} servers; means of the successful runs). Among the "
        f"top 8 servers, the following change rank: {listed(moved)}."
    ) in section_of(SENDERS)


def idle(test_case: str, trip: float, **wanted: str) -> list[float]:
    """Time of the goodput without bytes of the file, in round-trip times."""
    runs = matching(matrix(), test_case=test_case, **wanted)
    both = zip(metrics(runs, "goodput"), metrics(runs, "stream_goodput"), strict=True)
    return [8 * FILE * (1 / whole - 1 / stream) / trip for whole, stream in both]


def test_times_without_bytes_of_the_file() -> None:
    trips = dict(zip(cases_of("matrix"), (0.03, 0.6, 0.6), strict=True))
    medians = listed([f"{median(idle(case, trip)):.1f} over `{case}`" for case, trip in trips.items()])
    long = [server for server in manifest()["servers"] if min(idle("sat", 0.6, server=server)) >= 2]
    assert (
        f"the time without bytes of the file has a median of {medians}. Over `sat`, it is at least "
        f"two round-trip times with all clients of {listed(long)}. The data set"
    ) in the_page()
