"""Shares of the variance and correlations, computed again from sums of squares."""

import math
from collections.abc import Iterable
from statistics import NormalDist, correlation, fmean, geometric_mean, median

import pytest

from paper.tests.raw import (
    IN_THE_PAPER,
    Run,
    all_goodputs,
    by,
    control_of,
    matching,
    metric,
    metrics,
    numbers,
    runs,
    so_far,
    succeeded,
    table,
)
from paper.tests.variance import NEAR_RESAMPLED, Value, Variance


def goodput(run: Run) -> float | None:
    return metric(run, "goodput")


def slowest_first(many: Iterable[Run]) -> list[str]:
    means = {server: fmean(values) for server, each in by("server", many).items()
             if (values := metrics(each, "goodput"))}  # fmt: skip
    return sorted(means, key=means.__getitem__)


def check(name: str, found: Variance, source: str = "server") -> None:
    share, low, high = (100 * numbers()[key] for key in (name, f"{name}.low", f"{name}.high"))
    assert share == pytest.approx(found.shares()[source], abs=0.01)
    assert (low, high) == pytest.approx(found.ends[source], abs=found.near)


@pytest.mark.parametrize("link", IN_THE_PAPER)
def test_shares_over_a_link(link: str) -> None:
    mine = [run for run in matching(runs("matrix"), test_case=link) if succeeded(run)]
    every = Variance(mine, goodput)
    for source in ("server", "client", "interaction"):
        check(f"share.{source}.{link}", every, source)
    ends = [100 * numbers()[f"share.server.{link}.bootstrap.{end}"] for end in ("low", "high")]
    assert ends == pytest.approx(every.resampled, abs=NEAR_RESAMPLED)
    slow = slowest_first(mine)[:5]
    check(f"share.server.{link}.without_slowest", Variance([r for r in mine if r["server"] not in slow], goodput))


@pytest.mark.parametrize("link", ["sat", "satloss"])
def test_shares_with_the_longer_queue(link: str) -> None:
    mine = [run for run in matching(runs("queues"), test_case=f"{link}-paper-queue") if succeeded(run)]
    check(f"share.server.{link}.paper_queue", Variance(mine, goodput))


def test_shares_among_servers_with_bbr() -> None:
    mine = [run for run in matching(runs("matrix"), test_case="satloss")
            if succeeded(run) and control_of(run["server"]) == "BBR"]  # fmt: skip
    found = Variance(mine, goodput)
    for source in ("server", "client", "interaction"):
        check(f"share.{source}.satloss.bbr", found, source)


def test_other_shares() -> None:
    """With timeouts, and from the first to the last byte."""
    for row in table("shares"):
        if row["source"] != "server" or row["queue"] != "25" or row["runs"] not in SHARES:
            continue
        value: Value = SHARES[row["runs"]]
        mine = [run for run in matching(runs("matrix"), test_case=row["link"])
                if run["verdict"]["outcome"] in ("succeeded", "timeout") and value(run) is not None]  # fmt: skip
        assert 100 * float(row["share"]) == pytest.approx(Variance(mine, value).shares()["server"], abs=0.01)


SHARES: dict[str, Value] = {
    "with runs that timed out": so_far,
    "first to last byte": lambda run: metric(run, "stream_goodput"),
}


@pytest.mark.parametrize("link", IN_THE_PAPER)
def test_how_far_means_differ(link: str) -> None:
    mine = matching(runs("matrix"), test_case=link)
    good = {server for server, each in by("server", mine).items() if all(map(succeeded, each))}
    for role in ("server", "client"):
        values = sorted(fmean(metrics(each, "goodput"))
                        for each in by(role, [run for run in mine if run["server"] in good]).values())  # fmt: skip
        places = [share * (len(values) - 1) for share in (0.1, 0.9)]
        low, high = (values[int(at)] + (at % 1) * (values[min(int(at) + 1, len(values) - 1)] - values[int(at)])
                     for at in places)  # fmt: skip
        assert numbers()[f"effect.{role}.{link}"] == pytest.approx(high / low)


def test_correlations_with_acknowledgements() -> None:
    rows = table("acknowledgements")
    half = NormalDist().inv_cdf(1 - 0.025 / len(rows)) / math.sqrt(14 - 3)
    sat = {client: median(metrics(each, "return_packets"))
           for client, each in by("client", matching(runs("matrix"), test_case="sat")).items()}  # fmt: skip
    for row in rows:
        mine = by("client", matching(runs("matrix"), test_case="satloss", server=row["server"]))
        clients = [client for client, each in mine.items() if metrics(each, "return_packets")]
        assert int(row["clients"]) == len(clients)
        returned = [math.log(fmean(metrics(mine[client], "return_packets"))) for client in clients]
        rates = [math.log(geometric_mean(all_goodputs(mine[client]))) for client in clients]
        value = correlation(returned, rates)
        assert float(row["correlation"]) == pytest.approx(value, abs=1e-4)
        if len(clients) == 14:
            assert float(row["low, corrected"]) == pytest.approx(math.tanh(math.atanh(value) - half), abs=1e-3)
        other = correlation([math.log(sat[client]) for client in clients], rates)
        assert float(row["correlation with packets returned over sat"]) == pytest.approx(other, abs=1e-4)


def test_the_underflow() -> None:
    fixed = {(run["client"], run["evidence"]["seed"]): metric(run, "goodput") for run in runs("msquic-counter")}
    same = [run for run in matching(runs("matrix"), test_case="satloss", server="msquic")
            if (run["client"], run["evidence"]["seed"]) in fixed]  # fmt: skip
    assert numbers()["underflow.runs"] == len(same) == 14
    assert numbers()["underflow.with"] == pytest.approx(fmean(metrics(same, "goodput")))
    assert numbers()["underflow.without"] == pytest.approx(fmean(value for value in fixed.values() if value))
