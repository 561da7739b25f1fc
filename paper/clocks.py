"""Virtual and real time: the same pairs, measured with both clocks."""

import math
from typing import Any

import pandas as pd

from paper.data_set import DataSet, Frame
from paper.numbers import Numbers, Unit, listed
from paper.samples import geometric, interval, rank_correlation, shares

CLOSE, FAR = 0.03, 0.1
"""Differences of the means up to which clocks are close, and near. Neither is a test."""
LINKS = ("terrestrial", "sat", "satloss")
LOSSY = "satloss"
FEWEST = 3
"""Repetitions that the comparison of real time with itself takes."""


def both_clocks(data: DataSet, link: str, *, virtual: Frame | None = None) -> Frame:
    """A row for each pair that succeeded with both clocks: mean in virtual, least to most in real time, and the ratio.

    Over random loss, only runs with the same sequence of losses; over other links, virtual time has one seed.
    """
    runs = data.part("matrix") if virtual is None else virtual
    one, other = (each[(each.link == link) & each.succeeded] for each in (runs, data.part("real")))
    if link == LOSSY:
        key = ["server", "client", "loss_seed"]
        one, other = one.merge(other[key], on=key), other.merge(one[key], on=key)
    means = one.groupby(["server", "client"]).goodput.mean().rename("virtual")
    real = other.groupby(["server", "client"], sort=False).goodput.agg(["mean", "min", "max", "size"])
    table = real.join(means, how="inner").reset_index()
    return table.assign(ratio=table.virtual / table["mean"])


def rms(ratios: Any) -> float:
    """Root mean square of the logarithms of ratios, which does not let them cancel out."""
    return math.sqrt(sum(math.log(ratio) ** 2 for ratio in ratios) / len(ratios))


def errors(data: DataSet, link: str) -> dict[str, float]:
    """The RMS of each server that was measured with both clocks over a link."""
    return {str(server): rms(each.ratio) for server, each in both_clocks(data, link).groupby("server")}


def measured_costs(data: DataSet) -> set[str]:
    """Implementations whose system calls take a measured time in virtual time."""
    return {each.name for each in data.manifest().implementations if each.cpu_cost.is_own}


def clocks(data: DataSet, numbers: Numbers) -> None:
    """How far the clocks differ: over pairs, over servers, and over the order of the servers."""
    measured, pairs, groups, servers, single = measured_costs(data), [], [], [], []
    for link in LINKS:
        found = both_clocks(data, link)
        pairs.append(found.assign(link=link))
        numbers.add(f"clocks.{link}.pairs", len(found))
        numbers.add(f"clocks.{link}.close", int(((found.ratio - 1).abs() <= CLOSE).sum()))
        numbers.add(f"clocks.{link}.near", int(((found.ratio - 1).abs() <= FAR).sum()))
        numbers.add(f"clocks.{link}.rms", rms(found.ratio), Unit.SHARE)
        numbers.span(f"clocks.{link}.ratio", found.ratio, Unit.RATIO)
        numbers.add(f"clocks.{link}.ratio", _over_servers(found).value, Unit.RATIO)
        for cost in ("measured", "default"):
            these = found[found.server.isin(measured) == (cost == "measured")]
            mean = _over_servers(these)
            groups.append({
                "link": link, "CPU cost of the server": cost, "pairs": len(these),
                "within 3 %": int(((these.ratio - 1).abs() <= CLOSE).sum()),
                "within 10 %": int(((these.ratio - 1).abs() <= FAR).sum()), "mean ratio": mean.value,
                "low": mean.low, "high": mean.high, "RMS": rms(these.ratio), "least ratio": these.ratio.min(),
                "greatest ratio": these.ratio.max(),
            })  # fmt: skip
        for server, each in found.groupby("server", sort=False):
            mean = interval(each.ratio)
            servers.append({
                "link": link, "server": server, "clients": len(each), "mean ratio": mean.value, "low": mean.low,
                "high": mean.high, "RMS": rms(each.ratio),
                "CPU cost": "measured" if server in measured else "default",
            })  # fmt: skip
        single += [f"{server} over {link}" for server, each in found.groupby("server") if len(each) == 1]
    table = pd.concat(pairs)[["link", "server", "client", "virtual", "mean", "ratio"]]
    numbers.table("clocks-pairs", table.rename(columns={
        "virtual": "virtual time, mean [bit/s]", "mean": "real time, mean [bit/s]"}))  # fmt: skip
    numbers.table("clocks", groups)
    numbers.table("clocks-servers", servers)
    several = pd.DataFrame(servers)
    several = several[several.clients > 1]
    apart = several[(several.low > 1) | (several.high < 1)]
    numbers.names("clocks.apart", (f"{row.server} over {row.link}" for row in apart.itertuples()))
    far = several[(several["mean ratio"] - 1).abs() > FAR]
    numbers.add("clocks.far", listed(
        f"{row['server']} ({row['mean ratio']:.2f}, {row['low']:.2f} to {row['high']:.2f}, over {row['link']})"
        for row in far.to_dict("records")), Unit.TEXT)  # fmt: skip
    numbers.add("clocks.single", len(single))
    real = data.part("real")
    numbers.names("clocks.clients", (name for name in data.manifest().clients if name in set(real.client)))
    numbers.add("real.runs", len(real))
    numbers.add("real.succeeded", int(real.succeeded.sum()))
    numbers.add("real.repeated", sum(len(each.earlier) for each in data.of_part("real")))
    _itself(data, numbers)
    _more_seeds(data, numbers)
    _same_findings(data, numbers)


def _over_servers(found: Frame) -> Any:
    """The geometric mean of the servers' geometric means, with its interval over the servers."""
    return interval(found.groupby("server").ratio.agg(geometric))


def _itself(data: DataSet, numbers: Numbers) -> None:
    """Each repetition in real time in place of virtual time, beside the others of its pair."""
    real = data.part("real")
    for link in LINKS[:2]:
        ratios = list[float]()
        for _, each in real[(real.link == link) & real.succeeded].groupby(["server", "client"]):
            values = list(each.goodput)
            if len(values) >= FEWEST:
                ratios += [value * (len(values) - 1) / (sum(values) - value) for value in values]
        numbers.add(f"itself.{link}", len(ratios))
        numbers.add(f"itself.{link}.rms", rms(ratios), Unit.SHARE)


def _more_seeds(data: DataSet, numbers: Numbers) -> None:
    """How many pairs are near with one seed in virtual time, and with the mean of all seeds."""
    further = data.part("spread")
    for link in LINKS[:2]:
        pairs = further[further.link == link][["server", "client"]].drop_duplicates()
        every = pd.concat([data.part("matrix"), further])
        for name, runs in (("one", None), ("all", every)):
            found = both_clocks(data, link, virtual=runs).merge(pairs, on=["server", "client"])
            numbers.add(f"clocks.{link}.near.{name}", int(((found.ratio - 1).abs() <= FAR).sum()))
        numbers.add(f"clocks.{link}.near.pairs", len(pairs))


def _same_findings(data: DataSet, numbers: Numbers) -> None:
    """Shares of the variance, order of the servers and outcomes with both clocks."""
    rows, same, count = [], 0, 0
    matrix, real = data.part("matrix"), data.part("real")
    for link in LINKS:
        key = ["server", "client", *(["loss_seed"] if link == LOSSY else [])]
        one, other = (each[(each.link == link)] for each in (matrix, real))
        both = other.merge(one, on=key, suffixes=("", "_virtual"))
        same, count = same + int((both.outcome == both.outcome_virtual).sum()), count + len(both)
        pairs = both_clocks(data, link)[["server", "client"]]
        pairs = pairs[pairs.groupby("server").client.transform("size") > 1]
        good = [each[each.succeeded].merge(pairs, on=["server", "client"]) for each in (one, other)]
        if link == LOSSY:
            good = [good[0].merge(good[1][key], on=key), good[1].merge(good[0][key], on=key)]
        parts = [shares(each)["server"] for each in good]
        order = rank_correlation(*(each.groupby("server").goodput.mean() for each in good))
        rows.append({
            "link": link, "servers": pairs.server.nunique(), "clients": pairs.client.nunique(),
            **{f"server's share, {name} time{end}": value for name, part in zip(("virtual", "real"), parts, strict=True)
               for end, value in (("", part.share), (", low", part.low), (", high", part.high))},
            "rank correlation of the servers": order,
        })  # fmt: skip
        numbers.add(f"clocks.{link}.ranks", order, Unit.RATIO)
    numbers.table("clocks-influence", rows)
    numbers.add("clocks.outcomes", count)
    numbers.add("clocks.outcomes.same", same)
