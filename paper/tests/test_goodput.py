"""Numbers of goodput, computed again from the stored results."""

import math
from statistics import fmean, median

import pytest

from paper.tests.raw import (
    FILE,
    IN_BOTH,
    IN_THE_PAPER,
    all_goodputs,
    by,
    control_of,
    matching,
    metric,
    metrics,
    numbers,
    runs,
    succeeded,
    table,
)

RATE = 20e6


@pytest.mark.parametrize("link", IN_THE_PAPER)
def test_table_ii(link: str) -> None:
    found = {row["measured by"]: row for row in table("table-ii") if row["link"] == link}
    every = matching(runs("matrix"), test_case=link)
    shared = [run for run in every if {run["server"], run["client"]} <= IN_BOTH]
    for name, mine in (("quicsat, all servers and clients", every),
                       ("quicsat, servers and clients of the paper", shared)):  # fmt: skip
        row = found[name]
        assert float(row["mean [bit/s]"]) == pytest.approx(fmean(metrics(mine, "goodput")), rel=1e-5)
        assert float(row["mean, all runs [bit/s]"]) == pytest.approx(fmean(all_goodputs(mine)), rel=1e-5)
        assert float(row["median, all runs [bit/s]"]) == pytest.approx(median(all_goodputs(mine)), rel=1e-5)
        assert float(row["maximum [bit/s]"]) == pytest.approx(max(metrics(mine, "goodput")), rel=1e-5)
        pairs: dict[tuple[str, str], list[bool]] = {}
        for run in mine:
            pairs.setdefault((run["server"], run["client"]), []).append(succeeded(run))
        assert int(float(row["pairs"])) == len(pairs)
        bad = int(float(row["timed out"])) + int(float(row["failed"]))
        assert bad == sum(not all(good) for good in pairs.values())
    assert float(found["paper"]["mean [bit/s]"]) == IN_THE_PAPER[link]
    assert numbers()[f"efficiency.{link}"] == pytest.approx(fmean(metrics(every, "goodput")) / RATE)
    change = fmean(metrics(shared, "goodput")) / IN_THE_PAPER[link] - 1
    assert numbers()[f"common.{link}.against_paper"] == pytest.approx(change)


def test_slow_start() -> None:
    """By hand: ten packets, doubled six times, then the rest at the link's rate."""
    per_packet, packets = 8 * 1502 / RATE, math.ceil(FILE / (1500 - 28 - 25))
    full = math.ceil(math.log2(0.6 / per_packet / 10))
    sent = 10 * (2**full - 1)
    time = 0.6 * full + (packets - sent) * per_packet
    assert numbers()["slow_start.sat"] == pytest.approx(8 * FILE / time)


def test_servers_and_clients() -> None:
    for row in table("servers"):
        mine = matching(runs("matrix"), server=row["server"])
        assert (int(row["succeeded"]), int(row["runs"])) == (sum(map(succeeded, mine)), len(mine))
        assert row["congestion control, now"] == control_of(row["server"])
        for link in IN_THE_PAPER:
            values = metrics(matching(mine, test_case=link), "goodput")
            assert (row[f"{link} [bit/s]"] != "") == bool(values)
            if values:
                assert float(row[f"{link} [bit/s]"]) == pytest.approx(fmean(values), rel=1e-5)
    for link in IN_THE_PAPER:
        good = {server for server, each in by("server", matching(runs("matrix"), test_case=link)).items()
                if all(map(succeeded, each))}  # fmt: skip
        for row in table("clients"):
            mine = [run for run in matching(runs("matrix"), test_case=link, client=row["client"])
                    if run["server"] in good]  # fmt: skip
            assert float(row[f"{link} [bit/s]"]) == pytest.approx(fmean(metrics(mine, "goodput")), rel=1e-5)


def test_formulas() -> None:
    """Reno by Mathis et al., and CUBIC by RFC 9438, at 1 % loss and a round trip of 0.6 s."""
    for row in table("formulas"):
        sat = matching(runs("matrix"), test_case="sat", server=row["server"])
        size = median(
            value * FILE / run["evidence"]["simulator"]["forward"]["received"]
            for run in sat
            if (value := metric(run, "sent_per_useful_byte")) is not None
        )
        packets = math.sqrt(1.5 / 0.01) if row["server"] != "quic-go" else math.sqrt(1.7 / 0.3 / 2 / 0.01)
        rate = 8 * size / 0.6 * packets
        if row["congestion control"] == "CUBIC":
            rate = max(rate, 8 * size / 0.6 * (0.4 * 3.7 / (4 * 0.3)) ** 0.25 * (0.6 / 0.01) ** 0.75)
        if row["server"] == "nginx":
            rate = max(rate, 8 * 2 * 65527 / 0.6)
        assert float(row["formula [bit/s]"]) == pytest.approx(rate, rel=1e-4)
        lossy = matching(runs("matrix"), test_case="satloss", server=row["server"])
        assert float(row["measured, all runs [bit/s]"]) == pytest.approx(fmean(all_goodputs(lossy)), rel=1e-5)
    ratios = [float(row["measured / formula"]) for row in table("formulas")]
    assert numbers()["formula.ratio"] == pytest.approx(median(ratios), rel=1e-5)


def test_what_servers_send() -> None:
    for row in table("senders"):
        mine = matching(runs("matrix"), test_case=row["link"], server=row["server"])
        for column, name in (("bytes sent per byte of the file", "sent_per_useful_byte"),
                             ("dropped by the queue", "queue_loss")):  # fmt: skip
            assert float(row[column]) == pytest.approx(fmean(metrics(mine, name)), rel=1e-5, abs=1e-9)


def test_unsuccessful_runs() -> None:
    bad = [run for run in runs("matrix") if not succeeded(run)]
    assert sum(int(row["runs"]) for row in table("unsuccessful-runs")) == len(bad)
    for row in table("timed-out-runs"):
        late = [run for run in matching(bad, test_case=row["link"], server=row["server"])
                if run["verdict"]["outcome"] == "timeout"]  # fmt: skip
        assert int(row["timed out"]) == len(late)
        assert float(row["goodput, timed out [bit/s]"]) == pytest.approx(fmean(all_goodputs(late)), rel=1e-5)
    late_ones = {(run["server"], run["client"], run["evidence"]["seed"]) for run in bad
                 if run["verdict"]["outcome"] == "timeout"}  # fmt: skip
    again = [run for run in runs("limits") if (run["server"], run["client"], run["evidence"]["seed"]) in late_ones]
    assert numbers()["more_time.runs"] == len(again)
    assert numbers()["more_time.succeeded"] == sum(map(succeeded, again))
    times = metrics(again, "completion_time")
    assert (numbers()["more_time.time.low"], numbers()["more_time.time.high"]) == pytest.approx(
        (min(times), max(times))
    )
