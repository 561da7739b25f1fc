"""The queue of the paper's simulator, up to 125 packets, beside queues of exactly 25 packets."""

import math
from typing import Any

import pandas as pd

from paper.clocks import errors
from paper.data_set import DataSet, Frame
from paper.goodput import common, row_of
from paper.numbers import Numbers, Unit
from paper.published import TABLE_II
from paper.samples import geometric, interval, rank_correlation
from paper.sensitivity import TOLERANCE
from quicsat.statistics.significance import holm, matched

LEVEL = 0.05
"""Probability that the test calls at least one server faster or slower if the queue changes none."""


def both_queues(data: DataSet) -> Frame:
    """The runs with the longer queue, beside those of the matrix with the same random numbers (``_short``)."""
    return data.part("queues").merge(
        data.part("matrix"), on=["server", "client", "link", "loss_seed"], suffixes=("", "_short")
    )


def queues(data: DataSet, numbers: Numbers) -> None:
    """Table II with both queues, and the factor of each server."""
    both, rows, factors = both_queues(data), [], []
    for link, runs in both.groupby("link", sort=False):
        short = _short(runs)
        paper = TABLE_II[link]
        rows += [{"link": link, "queue": "25 packets", **row_of(short)},
                 {"link": link, "queue": "as in the simulator of the paper", **row_of(runs)},
                 {"link": link, "queue": "the paper's results", "mean [bit/s]": paper.mean,
                  "maximum [bit/s]": paper.maximum, "timed out": paper.timeouts, "failed": paper.failures}]  # fmt: skip
        factors += _factors(data, link, runs, numbers)
        before, after = (common(each).goodput.mean() for each in (short, runs))
        numbers.add(f"queue.{link}.growth", after / before - 1, Unit.SHARE)
        numbers.add(f"queue.{link}.against_paper", after / paper.mean - 1, Unit.SHARE)
        numbers.add(f"queue.{link}.against_paper.short", before / paper.mean - 1, Unit.SHARE)
    numbers.table("table-ii-both-queues", rows)
    numbers.table("queue-factors", factors)
    bursts = data.part("matrix")
    sat = bursts[bursts.link == "sat"].groupby("server").longest_burst.median()
    gains = pd.Series({row["server"]: row["factor"] for row in factors if row["link"] == "sat"})
    numbers.add("queue.sat.bursts.ranks", rank_correlation(sat, gains), Unit.RATIO)
    numbers.names("queue.sat.doubled", gains[gains >= 2].index)
    _without_drops(both, numbers)


def _short(runs: Frame) -> Frame:
    columns = ["outcome", "succeeded", "goodput", "goodput_so_far", "seed"]
    return runs[["server", "client"]].assign(**{name: runs[f"{name}_short"] for name in columns})


def _factors(data: DataSet, link: str, runs: Frame, numbers: Numbers) -> list[dict[str, Any]]:
    runs = runs.assign(factor=runs.goodput_so_far / runs.goodput_so_far_short)
    by_client = {server: list(each.groupby("client").factor.agg(geometric))
                 for server, each in runs[runs.factor.notna()].groupby("server", sort=False)}  # fmt: skip
    means = {server: interval(found) for server, found in by_client.items()}
    logs = {server: [math.log(factor) for factor in found] for server, found in by_client.items()}
    values = dict(zip(logs, holm([matched([0.0] * len(each), each) for each in logs.values()]), strict=True))
    drops = runs.groupby("server")[["queue_loss_short", "queue_loss"]].mean()
    known = errors(data, link)
    faster = [server for server, mean in means.items() if mean.low is not None and mean.low > 1]
    numbers.add(f"queue.{link}.servers", len(means))
    numbers.names(f"queue.{link}.faster", faster)
    numbers.names(f"queue.{link}.corrected", (one for one, p in values.items() if p <= LEVEL))
    numbers.add(f"queue.{link}.more_drops", sum(drops.queue_loss[one] > drops.queue_loss_short[one] for one in faster))
    near = [one for one, mean in means.items() if one in known and abs(math.log(mean.value)) <= known[one]]
    numbers.names(f"queue.{link}.within_clock_error", near)
    return [
        {"link": link, "server": server, "factor": mean.value, "low": mean.low, "high": mean.high,
         "p-value, corrected": values[server], "clients": mean.count,
         "dropped, 25 packets": drops.queue_loss_short[server], "dropped, longer queue": drops.queue_loss[server]}
        for server, mean in means.items()
    ]  # fmt: skip


def _without_drops(both: Frame, numbers: Numbers) -> None:
    """Runs in which no queue dropped a packet: they differ by the image alone, or by how the longer queue is built."""
    drops = both[["forward_queue_drops", "back_queue_drops", "forward_queue_drops_short", "back_queue_drops_short"]]
    same = both[(drops.sum(axis=1, skipna=False) == 0) & both.goodput_so_far.notna()]
    change = (same.goodput_so_far / same.goodput_so_far_short - 1).abs()
    numbers.add("queue.no_drops", len(same))
    numbers.add("queue.no_drops.same", int((change == 0).sum()))
    numbers.add("queue.no_drops.different", int((change > TOLERANCE).sum()))
    numbers.add("queue.no_drops.largest", change.max(), Unit.SHARE)
