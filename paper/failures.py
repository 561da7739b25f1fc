"""Runs that did not succeed, and why."""

import re

from paper.data_set import DataSet
from paper.numbers import Numbers, Unit

NUMBER = re.compile(r"\d+(?:\.\d+)?")
LOST = re.compile(r"; the link lost packets \d+(, \d+)*( and \d+ more)?| \(frame \d+ of the \w+'s trace\)")


def failures(data: DataSet, numbers: Numbers) -> None:
    """Outcomes, reasons, what had arrived, and the same runs with more time."""
    matrix, limits = data.part("matrix"), data.part("limits")
    bad = matrix[~matrix.succeeded].copy()
    bad["text"] = bad.reason.map(lambda reason: NUMBER.sub("N", LOST.sub("", reason)))
    rows = []
    for (link, outcome, text), runs in bad.groupby(["link", "outcome", "text"], sort=False):
        pairs = dict.fromkeys(f"{run.server} with {run.client}" for run in runs.itertuples())
        rows.append({"link": link, "outcome": outcome, "reason, without numbers": text, "runs": len(runs),
                     "first reason": runs.reason.iloc[0], "pairs": "; ".join(pairs)})  # fmt: skip
    numbers.table("unsuccessful-runs", rows)
    rows = []
    for (link, server), runs in matrix.groupby(["link", "server"], sort=False):
        late = runs[runs.timed_out]
        if len(late):
            rows.append({"link": link, "server": server, "timed out": len(late),
                         "arrived": (late.received / late.file_size).mean(),
                         "goodput, timed out [bit/s]": late.goodput_so_far.mean(),
                         "succeeded": int(runs.succeeded.sum()),
                         "goodput, succeeded [bit/s]": runs.goodput.mean()})  # fmt: skip
    numbers.table("timed-out-runs", rows)
    numbers.add("matrix.timed_out", int(matrix.timed_out.sum()))
    numbers.add("matrix.failed", int((matrix.outcome == "failed").sum()))
    key = ["server", "client", "loss_seed"]
    again = limits.merge(matrix[matrix.timed_out][key], on=key)
    numbers.add("more_time.runs", len(again))
    numbers.add("more_time.succeeded", int(again.succeeded.sum()))
    numbers.add("more_time.limit", again.timeout.max(), Unit.SECONDS)
    numbers.span("more_time.time", again[again.succeeded].completion_time, Unit.SECONDS)
