"""How far single runs depend on seeds, delays, machines and images."""

import math
from typing import Any

import numpy as np
import pandas as pd

from paper.complete_design import shares
from paper.data_set import DataSet, Frame
from paper.goodput import always
from paper.numbers import Numbers, Unit
from paper.samples import over_clients_and_seeds, spread

TOLERANCE = 0.005
"""Relative difference of two goodputs up to which a run counts as reproduced."""
SENSITIVE = ("aioquic", "kwik")
"""Implementations whose runs differ most with another image of the virtual machine, or on another machine."""
KEY = ["server", "client", "test_case", "loss_seed"]


def seeds(data: DataSet, numbers: Numbers) -> None:
    """Intervals of servers, the spread of pairs, and goodput and drops by seed."""
    matrix, further = data.part("matrix"), data.part("spread")
    rows = []
    for server in data.manifest().servers:
        for case in data.manifest().test_cases:
            runs = matrix[(matrix.server == server) & (matrix.link == case.name)]
            runs = runs.assign(share=runs.goodput_so_far.where(runs.succeeded | runs.timed_out) / runs.rate)
            mean = over_clients_and_seeds(runs, "share")
            if mean is not None:
                rows.append({"server": server, "link": case.name, "efficiency, geometric mean": mean.value,
                             "low": mean.low, "high": mean.high})  # fmt: skip
    numbers.table("efficiency-intervals", rows)
    numbers.table("spread-over-seeds", _spread(pd.concat([matrix, further]), numbers))
    lossy = matrix[matrix.link == "satloss"]
    goodput = lossy.groupby(["server", "seed"], sort=False).goodput_so_far.mean()
    drops = lossy.groupby(["server", "seed"], sort=False).agg(
        packets=("forward_packets", "sum"), drops=("forward_queue_drops", "sum"),
        runs=("forward_queue_drops", lambda values: int((values > 0).sum())),
    )  # fmt: skip
    numbers.table("by-seed-satloss", pd.DataFrame({
        "mean goodput, all runs [bit/s]": goodput, "dropped by the queue": drops.drops / drops.packets,
        "runs with drops": drops.runs}).reset_index())  # fmt: skip
    means = lossy.groupby("seed").goodput_so_far.mean()
    numbers.add("seeds.satloss", len(means))
    numbers.add("seeds.satloss.first", means[1], Unit.RATE)
    numbers.span("seeds.satloss.others", means.drop(1), Unit.RATE)
    for (first, *rest), share in shares(_complete(lossy)).items():
        if "seed" in (first, *rest):
            numbers.add(f"seeds.variance.{'_'.join((first, *rest))}", share, Unit.SHARE)


def _spread(runs: Frame, numbers: Numbers) -> list[dict[str, Any]]:
    rows = []
    for link, these in runs.groupby("link", sort=False):
        pairs = these.groupby(["server", "client"])
        most = pairs.size().max()
        found = {pair: spread(list(each.goodput)) for pair, each in pairs
                 if len(each) == most and each.succeeded.all()}  # fmt: skip
        values, worst = pd.Series(found), max(found, key=found.__getitem__)
        rows.append({"link": link, "pairs": len(found), "seeds": int(most), "median": values.median(),
                     "90th percentile": values.quantile(0.9), "largest": values.max(),
                     "pair with the largest": " with ".join(worst)})  # fmt: skip
        numbers.add(f"spread_over_seeds.{link}", values.median(), Unit.SHARE)
        numbers.add(f"spread_over_seeds.{link}.largest", values.max(), Unit.SHARE)
    return rows


def _complete(lossy: Frame) -> Any:
    """Logarithms of goodput, servers x clients x seeds, of servers whose runs all succeeded."""
    good = always(lossy)
    table = good.goodput.map(math.log).groupby([good.server, good.client, good.seed]).first()
    sizes = [good[key].nunique() for key in ("server", "client", "seed")]
    return np.asarray(table.sort_index()).reshape(sizes)


def delays(data: DataSet, numbers: Numbers) -> None:
    """The spread of each pair over five delays that hardly differ, and where an option selects the default."""
    runs = data.part("delays")
    pairs = {pair: spread(list(each.goodput)) for pair, each in runs.groupby(["server", "client"], sort=False)}
    found = pd.Series(pairs)
    found.index.names = ["server", "client"]
    numbers.table("spread-over-delays", found.rename("spread").reset_index())
    numbers.add("delays.pairs", len(found))
    numbers.add("delays.count", runs.test_case.nunique())
    numbers.add("delays.median", found.median(), Unit.SHARE)
    numbers.add("delays.90", found.quantile(0.9), Unit.SHARE)
    numbers.add("delays.largest", found.max(), Unit.SHARE)
    numbers.add("delays.largest.pair", " with ".join(found.idxmax()), Unit.TEXT)
    for server, each in found.groupby("server", sort=False):
        numbers.add(f"delays.{server}", each.median(), Unit.SHARE)
    _explicit_defaults(data, numbers)


def _explicit_defaults(data: DataSet, numbers: Numbers) -> None:
    """Runs of variants that select the default congestion control, beside runs of the matrix with the same seed."""
    matrix, variants = data.part("matrix"), data.part("variants").copy()
    default = {each.name: each.congestion_control.default for each in data.manifest().implementations
               if each.congestion_control}  # fmt: skip
    variants["variant"] = variants.server.str.partition(":")[2]
    variants["server"] = variants.server.str.partition(":")[0]
    chosen = variants[variants.variant == variants.server.map(default)]
    both = matrix.merge(chosen, on=[*KEY, "link"], suffixes=("", "_explicit"))
    change = both.goodput_so_far_explicit / both.goodput_so_far - 1
    table = both.assign(change=change)[["link", "server", "client", "seed", "goodput_so_far",
                                        "goodput_so_far_explicit", "change"]]  # fmt: skip
    names = {"goodput_so_far": "goodput, default [bit/s]", "goodput_so_far_explicit": "goodput, explicit [bit/s]"}
    numbers.table("explicit-defaults", table.rename(columns=names))
    sat = table[table.link == "sat"]
    numbers.add("explicit.sat", len(sat))
    numbers.add("explicit.sat.same", int((sat.change == 0).sum()))
    numbers.add("explicit.sat.largest", sat.change.abs().max(), Unit.SHARE)


def repeated(data: DataSet, numbers: Numbers) -> None:
    """Runs that were measured again with the same seed, on the same machine and on another one."""
    first = data.runs[data.runs.part.isin(["matrix", "spread"])]
    rows = []
    for part in ("repeat", "another-machine"):
        both = data.part(part).merge(first, on=KEY, suffixes=("", "_first"))
        change = (both.goodput / both.goodput_first - 1).abs()
        good = (both.outcome == both.outcome_first) & ~(change > TOLERANCE)
        hours = (both.started - both.started_first).dt.total_seconds() / 3600
        numbers.add(f"repeated.{part}", len(both))
        numbers.add(f"repeated.{part}.reproduced", int(good.sum()))
        numbers.add(f"repeated.{part}.succeeded", int(change.notna().sum()))
        numbers.add(f"repeated.{part}.exact", int((change == 0).sum()))
        sensitive = both.server.isin(SENSITIVE) | both.client.isin(SENSITIVE)
        numbers.add(f"repeated.{part}.others", int((change.notna() & ~sensitive).sum()))
        numbers.add(f"repeated.{part}.others.exact", int(((change == 0) & ~sensitive).sum()))
        rows.append(pd.DataFrame({
            "runs": part, "of": both.part_first, "seed": both.seed, "link": both.link, "server": both.server,
            "client": both.client, "outcome, first": both.outcome_first, "outcome, again": both.outcome,
            "goodput, first [bit/s]": both.goodput_first, "goodput, again [bit/s]": both.goodput,
            "change": change, "hours later": hours, "reproduced": good}))  # fmt: skip
    numbers.table("repeated-runs", pd.concat(rows))


def images(data: DataSet, numbers: Numbers) -> None:
    """Successful runs that took place with two builds of the virtual machine, on one machine."""
    changed = ("quic-go-windows", "msquic-counter", "quic-go-qlog", "another-machine", "quic-go-start")
    found: dict[tuple[object, ...], dict[str, float]] = {}
    for name, many in data.campaigns.items():
        runs = data.named(name)
        if runs.part.iloc[0] in changed:
            continue
        for each in many:
            image = each.manifest.images.get("virtual-time")
            links = {case.name: (repr(case.link), case.file_sizes) for case in each.manifest.test_cases}
            for run in runs[(runs.seed == each.manifest.seed) & runs.succeeded].itertuples() if image else ():
                key = (run.server, run.client, links[run.test_case], run.loss_seed)
                found.setdefault(key, {}).setdefault(image.reference if image else "", run.goodput)
    both = [list(values.values()) for values in found.values() if len(values) > 1]
    changes = [max(values) / min(values) - 1 for values in both]
    numbers.add("images.runs", len(both))
    numbers.add("images.same", changes.count(0.0))
