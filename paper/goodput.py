"""Goodput per link, per server and per client, beside the paper and beside formulas."""

import statistics

import numpy as np
import pandas as pd

from paper.data_set import DataSet, Frame
from paper.endpoints import controls, payload
from paper.numbers import Numbers, Unit
from paper.published import PAPER_CONGESTION_CONTROL, PAPER_PAIRS, PAPER_TIME_LIMITS, TABLE_II
from paper.samples import rank_correlation
from paper.theory import KEPT, LEAST_WINDOW, formula, slow_start
from quicsat.model.emulated_link import loss_share
from quicsat.model.units import KIB

HYSTART = {"HyStart": "with", "no": "without"}
TOP = 8


def common(runs: Frame) -> Frame:
    """The runs of servers and clients that the paper measured, too."""
    return runs[runs.server.isin(PAPER_CONGESTION_CONTROL) & runs.client.isin(PAPER_CONGESTION_CONTROL)]


def always(runs: Frame) -> Frame:
    """The runs of servers whose runs all succeeded."""
    return runs[runs.groupby("server").succeeded.transform("all")]


def row_of(runs: Frame) -> dict[str, float]:
    """A row of Table II of the paper; a pair without success counts once, by its first such run."""
    bad = runs[~runs.succeeded].sort_values("seed").groupby(["server", "client"]).outcome.first()
    return {
        "mean [bit/s]": runs.goodput.mean(), "mean, all runs [bit/s]": runs.goodput_so_far.mean(),
        "median, all runs [bit/s]": runs.goodput_so_far.median(), "maximum [bit/s]": runs.goodput.max(),
        "timed out": int((bad == "timeout").sum()), "failed": int((bad == "failed").sum()),
        "pairs": len(runs[["server", "client"]].drop_duplicates()),
    }  # fmt: skip


def per_link(data: DataSet, numbers: Numbers) -> None:
    """Table II, efficiency, time limits, and what slow start allows."""
    matrix = data.part("matrix")
    table, limits = [], []
    for case in data.manifest().test_cases:
        link, runs = case.name, matrix[matrix.link == case.name]
        good, shared, paper = runs[runs.succeeded], common(runs), TABLE_II[link]
        numbers.add(f"efficiency.{link}", good.efficiency.mean(), Unit.SHARE)
        table.append({"link": link, "measured by": "quicsat, all servers and clients", **row_of(runs)})
        table.append({"link": link, "measured by": "quicsat, servers and clients of the paper", **row_of(shared)})
        table.append({"link": link, "measured by": "paper", "mean [bit/s]": paper.mean,
                      "maximum [bit/s]": paper.maximum, "timed out": paper.timeouts, "failed": paper.failures,
                      "pairs": PAPER_PAIRS})  # fmt: skip
        numbers.add(f"common.{link}.against_paper", shared.goodput.mean() / paper.mean - 1, Unit.SHARE)
        ideal = slow_start(sum(case.file_sizes), case.emulated.forward.rate, case.emulated.round_trip_delay)
        idle = 8 * runs.file_size * (1 / runs.goodput - 1 / runs.stream_goodput)
        numbers.add(f"idle.{link}", (idle / runs.round_trip).median(), Unit.RATIO)
        if link != "satloss":
            numbers.add(f"slow_start.{link}", ideal, Unit.RATE)
            numbers.add(f"slow_start.{link}.efficiency", ideal / case.emulated.forward.rate, Unit.SHARE)
            size = 8 * sum(case.file_sizes)
            numbers.add(f"slow_start.{link}.with_idle", size / (size / ideal + idle.median()), Unit.RATE)
        ranked = sorted([0.0] * int(runs.timed_out.sum()) + list(good.goodput))
        limits.append({
            "link": link, "time limit [s]": case.timeout, "in the paper [s]": PAPER_TIME_LIMITS[link],
            "runs": len(runs), "reached the limit": int(runs.timed_out.sum()),
            "longest success [s]": good.completion_time.max(), "file size / limit [bit/s]": size_rate(runs),
            "median with runs at the limit [bit/s]": statistics.median(ranked),
        })  # fmt: skip
    sat = matrix[matrix.link == "sat"]
    numbers.add("stream_factor.sat", (sat.stream_goodput / sat.goodput).median(), Unit.RATIO)
    numbers.names("common", (name for name in data.manifest().servers if name in PAPER_CONGESTION_CONTROL))
    numbers.table("table-ii", table)
    numbers.table("time-limits", limits)


def size_rate(runs: Frame) -> float:
    """The least goodput of a run that finishes in time, bit/s."""
    return float(8 * runs.file_size.iloc[0] / runs.timeout.iloc[0])


def implementations(data: DataSet, numbers: Numbers) -> None:
    """Tables of servers, clients and pairs."""
    matrix, manifest = data.part("matrix"), data.manifest()
    own = controls(data)
    rows = []
    for name in manifest.servers:
        runs = matrix[matrix.server == name]
        mean = runs.groupby("link").goodput.mean()
        rows.append({
            "server": name, "version": manifest.images[name].version,
            "congestion control, paper": PAPER_CONGESTION_CONTROL.get(name, "not measured"),
            "congestion control, now": own[name], **{f"{case.name} [bit/s]": mean[case.name]
                                                     for case in manifest.test_cases},
            "succeeded": int(runs.succeeded.sum()), "runs": len(runs),
        })  # fmt: skip
    numbers.table("servers", rows)
    steady = {case.name: always(matrix[matrix.link == case.name]) for case in manifest.test_cases}
    rows = []
    for name in manifest.clients:
        runs = matrix[matrix.client == name]
        rows.append({
            "client": name, **{f"{link} [bit/s]": these[these.client == name].goodput.mean()
                               for link, these in steady.items()},
            "succeeded": int(runs.succeeded.sum()), "runs": len(runs),
        })  # fmt: skip
    numbers.table("clients", rows)
    pairs = matrix.groupby(["link", "server", "client"], sort=False)
    numbers.table("pairs", pairs.agg(**{
        "runs": ("succeeded", "size"), "succeeded": ("succeeded", "sum"), "timed out": ("timed_out", "sum"),
        "mean goodput [bit/s]": ("goodput", "mean"), "mean goodput, all runs [bit/s]": ("goodput_so_far", "mean"),
        "mean completion time [s]": ("completion_time", "mean"), "mean time to 2 MB [s]": ("time_to_2_mb", "mean"),
    }).reset_index())  # fmt: skip


def senders(data: DataSet, numbers: Numbers) -> None:
    """What servers send beyond the file, what the queue drops, and ranks by both kinds of goodput."""
    matrix = data.part("matrix")
    good = matrix[matrix.succeeded & (matrix.link != "terrestrial")]
    means = good.groupby(["link", "server"], sort=False)[
        ["sent_per_useful_byte", "queue_loss", "goodput", "stream_goodput"]
    ].mean()
    numbers.table("senders", means.reset_index().rename(columns={
        "sent_per_useful_byte": "bytes sent per byte of the file", "queue_loss": "dropped by the queue",
        "goodput": "goodput [bit/s]", "stream_goodput": "goodput, first to last byte [bit/s]"}))  # fmt: skip
    sat = means.loc["sat"]
    most = sat.queue_loss.idxmax()
    numbers.add("drops.sat.most.server", most, Unit.TEXT)
    numbers.add("drops.sat.most", sat.queue_loss[most], Unit.SHARE)
    numbers.add("drops.sat.most.sent", sat.sent_per_useful_byte[most], Unit.RATIO)
    numbers.add("drops.sat.median", sat.queue_loss.median(), Unit.SHARE)
    start = numbers.tables["servers-send"].set_index("server")["end of slow start before loss"]
    for kind, name in HYSTART.items():
        group = sat.queue_loss[start[start == kind].index]
        numbers.add(f"drops.sat.{name}_hystart", group.median(), Unit.SHARE)
        numbers.add(f"servers.{name}_hystart", len(group))
    numbers.add("ranks.sat", rank_correlation(sat.goodput, sat.stream_goodput), Unit.RATIO)
    ranks = [list(sat[key].sort_values(ascending=False).index) for key in ("goodput", "stream_goodput")]
    moved = [(name, ranks[0].index(name) + 1, ranks[1].index(name) + 1) for name in ranks[0]]
    numbers.names("ranks.sat.moved", (f"{name} from {before} to {after}" for name, before, after in moved
                                      if before != after and min(before, after) <= TOP))  # fmt: skip


def formulas(data: DataSet, numbers: Numbers) -> None:
    """The formulas of Reno and CUBIC beside the measurements over satloss."""
    matrix, own = data.part("matrix"), controls(data)
    sat, lossy = (matrix[matrix.link == link] for link in ("sat", "satloss"))
    link = next(case.emulated for case in data.manifest().test_cases if case.name == "satloss")
    loss, trip = loss_share(link.forward.loss), link.round_trip_delay
    rows = []
    for name in data.manifest().servers:
        runs = lossy[lossy.server == name]
        size = payload(sat[sat.server == name]).median()
        if own[name] not in ("Reno", "CUBIC") or np.isnan(size):
            continue
        dropped = (runs.forward_queue_drops + runs.forward_loss_drops).sum() / runs.forward_packets.sum()
        rows.append({
            "server": name, "congestion control": own[name], "UDP payload per packet [B]": round(size),
            "formula [bit/s]": formula(name, own[name], size, trip, loss),
            "measured, all runs [bit/s]": runs.goodput_so_far.mean(), "dropped by link and queue": dropped,
            "formula with these drops [bit/s]": formula(name, own[name], size, trip, dropped),
        })  # fmt: skip
    table = pd.DataFrame(rows)
    table["measured / formula"] = table["measured, all runs [bit/s]"] / table["formula [bit/s]"]
    again = table["measured, all runs [bit/s]"] / table["formula with these drops [bit/s]"]
    numbers.table("formulas", table)
    numbers.add("formula.ratio", table["measured / formula"].median(), Unit.RATIO)
    numbers.span("formula.ratio", table["measured / formula"], Unit.RATIO)
    numbers.add("formula.ratio.drops", again.median(), Unit.RATIO)
    numbers.span("formula.ratio.drops", again, Unit.RATIO)
    for name in ("quiche", "msquic"):
        numbers.add(f"formula.ratio.{name}", table.set_index("server")["measured / formula"][name], Unit.RATIO)
    numbers.add("formula.kept.quic-go", KEPT["quic-go"], Unit.SHARE)
    numbers.add("formula.window.nginx", LEAST_WINDOW["nginx"] / KIB, Unit.RATIO)
    late = set(lossy[lossy.timed_out].server)
    below = table[table.server.isin(late) & (table["formula [bit/s]"] < size_rate(lossy))]
    numbers.names("below_limit", below.server)
    numbers.span("below_limit.formula", below["formula [bit/s]"], Unit.RATE)
    numbers.add("below_limit.needed", size_rate(lossy), Unit.RATE)
    numbers.add("below_limit.runs", int(lossy[lossy.server.isin(below.server)].timed_out.sum()))
    numbers.add("timed_out.satloss", int(lossy.timed_out.sum()))
    numbers.add("losses.satloss", lossy[lossy.succeeded].forward_loss_drops.median())
