"""The stored report docs/paper: the first burst of quic-go."""

from __future__ import annotations

import re
from itertools import pairwise

import pyarrow.parquet as parquet
import pytest

from tests.scripts.stored_paper_report.stored import (
    PAPER,
    Run,
    listed,
    matching,
    matrix,
    metric,
    runs_of,
    section_of,
    stored_part,
    the_findings,
    the_page,
)

pytestmark = pytest.mark.skipif(not stored_part["quic-go-start"], reason="the runs with qlogs are not stored")

SECTION = "Why quic-go is slow with kwik and lsquic"


def rate(runs: tuple[Run, ...], client: str, test_case: str = "sat") -> float:
    found = matching(runs, server="quic-go", client=client, test_case=test_case)
    return min(value / 1e6 for run in found if (value := metric(run, "goodput")) is not None)


def test_goodput_with_and_without_qlogs() -> None:
    names = ("kwik", "lsquic", "picoquic")
    again = listed([f"{rate(runs_of('quic-go-start'), name):.2f} Mbit/s with {name}" for name in names])
    before = listed([f"{rate(matrix(), name):.2f}" for name in names])
    assert f"quic-go reaches {again}. In the matrix, which has no qlogs, it reaches {before} Mbit/s." in (
        section_of(SECTION)
    )
    [processor] = {run["evidence"]["host"]["processor"] for run in runs_of("quic-go-start")}
    assert f"on a machine with the processor {processor}. quic-go" in section_of(SECTION)
    short = listed([f"{rate(matrix(), name, 'terrestrial'):.2f} Mbit/s with {name}" for name in names[:2]])
    assert f"shorter than this probe timeout, and quic-go reaches {short}." in section_of(SECTION)


def test_longest_bursts_in_the_matrix() -> None:
    bursts = {
        run["client"]: metric(run, "longest_burst") for run in matching(matrix(), server="quic-go", test_case="sat")
    }
    others = [value for client, value in bursts.items() if client not in ("kwik", "lsquic") and value is not None]
    assert (
        f"has {bursts['kwik']:.0f} packets with kwik and {bursts['lsquic']:.0f} packets with lsquic, but only "
        f"{min(others):.0f} to {max(others):.0f} packets with the other clients."
    ) in section_of(SECTION)


@pytest.mark.parametrize("client", ["kwik", "lsquic", "picoquic"])
def test_first_burst_and_windows(client: str) -> None:
    """From the columns of the stored series, which are in microseconds."""
    path = PAPER / "data" / "series-with-qlog" / f"quic-go_{client}" / "sat" / "1" / "series.parquet"
    events = parquet.read_table(path).to_pylist()
    start = min(event["time"] for event in events if event["kind"] == "sent")
    packets = [event for event in events if event["kind"] == "forward" and event["sent"] >= start]
    burst = packets[:1]
    for before, packet in pairwise(packets):
        if packet["sent"] - before["sent"] > 2000:
            break
        burst.append(packet)
    lost = sum(packet["lost"] for packet in burst)
    section = section_of(SECTION)
    if client == "picoquic":
        assert f"the burst contains {len(burst)} packets, and the queue drops {lost or 'none'} of them" in section
    else:
        assert f"{len(burst)} packets with {client} (the queue drops {lost} of them)" in section
        assert ("The queue drops no other packets." in section) == (sum(p["lost"] for p in packets) == lost)
    windows = [(event["time"] / 1e6, event["value"] / 1024) for event in events if event["kind"] == "cwnd"]
    assert f"is {windows[0][1] * 1024:,.0f} bytes, that is, {windows[0][1] / 1.25:.0f} packets" in section
    before, (time, after) = next(pair for pair in pairwise(windows) if pair[1][1] < 0.95 * pair[0][1])
    assert f"from {before[1]:.0f} to {after:.0f} KiB (after {time:.1f} s)" in section
    if client != "picoquic":
        assert f"{windows[-1][1]:.0f} KiB with {client}" in section


def test_the_slow_pairs_refer_to_their_reason() -> None:
    assert f"[{SECTION}](#why-quic-go-is-slow-with-kwik-and-lsquic) explains the difference." in the_page()


def test_the_finding() -> None:
    names = {run["client"] for run in matrix()}
    rates = {name: rate(matrix(), name) for name in names}
    others = [rates[name] for name in names - {"kwik", "lsquic"}]
    assert (
        f"goodput is {rates['kwik']:.2f} Mbit/s with kwik and {rates['lsquic']:.2f} Mbit/s with lsquic, but "
        f"{min(others):.2f} to {max(others):.2f} Mbit/s with the other clients."
    ) in the_findings()


@pytest.mark.skipif(not stored_part["queues"], reason="the campaign with the longer queue is not stored")
def test_the_longer_queue() -> None:
    """Only the queue differs: the seeds are the same."""
    pairs = {}
    for run in matching(runs_of("queues"), server="quic-go", test_case="sat-paper-queue"):
        [same] = matching(matrix(), server="quic-go", client=run["client"], test_case="sat")
        assert run["evidence"]["seed"] == same["evidence"]["seed"]
        pairs[run["client"]] = tuple(float(metric(each, "goodput") or 0) / 1e6 for each in (same, run))
    assert len(pairs) == len({run["client"] for run in matrix()})
    slow = [f"{pairs[name][1]:.2f} instead of {pairs[name][0]:.2f} Mbit/s with {name}" for name in ("kwik", "lsquic")]
    rest = [after / before for name, (before, after) in pairs.items() if name not in ("kwik", "lsquic")]
    told = (
        f"With the queue of the paper's simulator, which holds up to 125 packets, quic-go reaches {listed(slow)}. With "
        f"the other clients, its goodput is then {min(rest):.2f} to {max(rest):.2f} times as high."
    )
    assert told in the_findings()
    also = "Only the queue and the image of the virtual machine differ between these runs and those of the matrix."
    assert f"- {told} {also}" in section_of(SECTION)


def test_the_slow_clients_have_no_runs_in_real_time() -> None:
    assert not {"kwik", "lsquic"} & {run["client"] for run in runs_of("real")}
    told = (
        "Of the clients with which quic-go is fast, we examined only picoquic. We did not measure kwik and lsquic as "
        "clients in real time, so this holds in virtual time only."
    )
    assert told in the_findings()
    assert told in section_of(SECTION)


def test_packets_that_the_queue_lets_through() -> None:
    """The 25 of the queue and the one that the link is sending."""
    found = re.findall(r"(\d+) packets with \w+ \(the queue drops (\d+) of them\)", section_of(SECTION))
    assert {int(packets) - int(dropped) for packets, dropped in found} == {26}
    assert "so 26 packets of each burst arrive." in section_of(SECTION)
