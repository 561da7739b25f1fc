"""Congestion control: the same servers with several algorithms, and which servers are fast in spite of loss."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import pandas as pd

from paper.crossed import Crossed, decompose_crossed, with_several_algorithms
from paper.data_set import DataSet, Frame
from paper.endpoints import controls
from paper.numbers import Numbers, Unit
from paper.samples import geometric, interval, over_clients_and_seeds
from quicsat.statistics.overview import THRESHOLD

CONTROLS = {"reno": "Reno", "newreno": "Reno", "cubic": "CUBIC", "bbr": "BBR"}
"""Variants of servers that several implementations have, and their congestion control."""
ORDER = ("Reno", "CUBIC", "BBR")
SINGLE_LOSS = ("picoquic", "quiche")
"""Implementations whose CUBIC does not reduce its window after every loss, by their source code."""
UNDERFLOWING = "msquic:cubic"
SECOND_BBR = "picoquic:bbr1"
"""A second BBR of an implementation, version 1 according to ``bbr1.c``."""
VERSION = re.compile(r"its BBR is version (\d)")
"""In the sources of ``implementations.json``."""

Cells = dict[tuple[str, str, str], float]
"""Logarithm of goodput by implementation, control and client."""


def variants(data: DataSet) -> Frame:
    """The runs of servers with a congestion control that several implementations have, with columns for both."""
    runs = data.part("variants").copy()
    runs["implementation"] = runs.server.str.partition(":")[0]
    runs["control"] = runs.server.str.partition(":")[2].map(CONTROLS)
    return runs[runs.control.notna()]


def congestion_controls(data: DataSet, numbers: Numbers) -> None:
    """Goodput and factors of each implementation, shares of the variance, and who exceeds 10 % over satloss."""
    runs = variants(data)
    numbers.add("variants.pairs", len(runs[["server", "client"]].drop_duplicates()))
    groups = runs.groupby(["link", "implementation", "control"], sort=False)
    numbers.table("controls", groups.agg(**{
        "runs": ("succeeded", "size"), "timed out": ("timed_out", "sum"),
        "mean goodput, all runs [bit/s]": ("goodput_so_far", "mean"), "dropped by the queue": ("queue_loss", "mean"),
        "arrived again": ("spurious", "mean"),
    }).reset_index())  # fmt: skip
    _factors(data, numbers)
    _spans(numbers)
    _shares(data, numbers)
    _above(data, numbers)


def factors(runs: Frame, slower: str, faster: str) -> Frame:
    """By what a control multiplies the goodput of each implementation: of geometric means over all runs."""
    means = runs.groupby(["implementation", "control"]).goodput_so_far.agg(geometric).unstack()
    return (means[faster] / means[slower]).dropna()


def _factors(data: DataSet, numbers: Numbers) -> None:
    runs, rows = variants(data), []
    for link in ("sat", "satloss"):
        for slower, faster in pairwise(ORDER):
            found = factors(runs[runs.link == link], slower, faster)
            name = f"factor.{link}.{slower.lower()}_{faster.lower()}"
            mean = interval(found)
            numbers.add(name, mean.value, Unit.RATIO)
            numbers.ends(name, mean.low, mean.high, Unit.RATIO)
            left_out = {one: geometric(found.drop(one)) for one in found.index}
            rows += [{"link": link, "from": slower, "to": faster, "implementation": one, "factor": factor,
                      "mean factor without it": left_out[one]} for one, factor in found.items()]  # fmt: skip
            without = interval(found.drop("msquic", errors="ignore"))
            numbers.add(f"{name}.without_msquic", without.value, Unit.RATIO)
            numbers.ends(f"{name}.without_msquic", without.low, without.high, Unit.RATIO)
            if (slower, faster) == ("Reno", "CUBIC"):
                single = found.index.isin(SINGLE_LOSS)
                numbers.span(f"{name}.single_loss", found[single], Unit.RATIO)
                numbers.span(f"{name}.others", found[~single], Unit.RATIO)
                numbers.add(f"{name}.others.count", int((~single).sum()))
    numbers.table("factors", rows)
    fixed = without_the_underflow(data)
    mean = interval(factors(fixed[fixed.link == "satloss"], "CUBIC", "BBR"))
    numbers.add("factor.satloss.cubic_bbr.fixed", mean.value, Unit.RATIO)
    numbers.ends("factor.satloss.cubic_bbr.fixed", mean.low, mean.high, Unit.RATIO)
    with_it = runs[(runs.server == UNDERFLOWING) & (runs.link == "satloss")]
    without = fixed[(fixed.server == UNDERFLOWING) & (fixed.link == "satloss")]
    same = with_it.merge(without, on=["client", "loss_seed"], suffixes=("", "_fixed"))
    numbers.add("underflow.variants.with", same.goodput_so_far.mean(), Unit.RATE)
    numbers.add("underflow.variants.without", same.goodput_so_far_fixed.mean(), Unit.RATE)


def without_the_underflow(data: DataSet) -> Frame:
    """The runs of variants, with corrected runs of msquic in place of all of its runs with the same client."""
    runs, fixed = variants(data), data.part("msquic-counter")
    fixed = fixed.merge(runs[runs.server == UNDERFLOWING][["link", "client", "loss_seed"]],
                        on=["link", "client", "loss_seed"])  # fmt: skip
    fixed = fixed.assign(server=UNDERFLOWING, implementation="msquic", control="CUBIC")
    replaced = (runs.server == UNDERFLOWING) & runs.link.isin(fixed.link) & runs.client.isin(fixed.client)
    return pd.concat([runs[~replaced], fixed])


def _spans(numbers: Numbers) -> None:
    """How far implementations differ with the same control, and which one loses most in the queue."""
    table = numbers.tables["controls"]
    for link, rows in table.groupby("link"):
        goodput = rows.groupby("control")["mean goodput, all runs [bit/s]"]
        numbers.span(f"spread.{link}", goodput.max() / goodput.min(), Unit.RATIO)
        for control, values in goodput:
            numbers.span(f"goodput.{link}.{str(control).lower()}", values, Unit.RATE)
        most = rows.loc[rows["dropped by the queue"].idxmax()]
        numbers.add(f"dropped.{link}.most.server", f"{most.implementation} with {most.control}", Unit.TEXT)
        numbers.add(f"dropped.{link}.most", most["dropped by the queue"], Unit.SHARE)
        numbers.add(f"dropped.{link}.most.again", most["arrived again"], Unit.SHARE)


# ---- shares of the variance -----------------------------------------------------------------


def cells_of(runs: Frame) -> Cells:
    """Mean logarithm of goodput of all runs of each implementation, control and client."""
    good = runs[runs.goodput_so_far > 0]
    logs = good.goodput_so_far.map(math.log).groupby([good.implementation, good.control, good.client]).mean()
    return {(str(one), str(two), str(three)): float(value) for (one, two, three), value in logs.items()}


def subsets(data: DataSet, link: str) -> Iterator[tuple[str, Cells]]:
    """Name and cells of all runs and of each subset that differs from the others."""
    runs = variants(data)
    cells = cells_of(runs[runs.link == link])
    fixed = without_the_underflow(data)
    versions = bbr_versions(data)
    second = data.part("variants")
    second = second[(second.server == SECOND_BBR) & (second.link == link)]
    of_second = cells_of(second.assign(implementation="picoquic", control="BBR"))
    complete = {name for name, _, _ in cells
                if {control for one, control, _ in cells if one == name} == set(ORDER)}  # fmt: skip
    choices: Mapping[str, Callable[[tuple[str, str, str]], bool]] = {
        "all runs": lambda _: True,
        "implementations with all three algorithms": lambda key: key[0] in complete,
        "Reno and CUBIC only": lambda key: key[1] != "BBR",
        "BBR version 1 only": lambda key: key[1] != "BBR" or versions.get(key[0]) == "1",
        "without msquic:bbr": lambda key: key[:2] != ("msquic", "BBR"),
        "msquic:cubic without the underflow": lambda _: True,
        "without picoquic:cubic": lambda key: key[:2] != ("picoquic", "CUBIC"),
        "without CUBIC of picoquic, quiche and msquic": lambda key: (
            key[1] != "CUBIC" or key[0] not in (*SINGLE_LOSS, "msquic")
        ),
    }
    known = list[Cells]()
    for name, keep in choices.items():
        base = cells_of(fixed[fixed.link == link]) if "underflow" in name else cells
        kept = {key: value for key, value in base.items() if keep(key)}
        if "version 1" in name:
            kept |= of_second
        chosen = with_several_algorithms(kept)
        if chosen not in known:
            known.append(chosen)
            yield name, chosen


def bbr_versions(data: DataSet) -> dict[str, str]:
    """The version of BBR of each implementation whose source names it."""
    found = {}
    for each in data.manifest("variants").implementations:
        name, _, variant = each.name.partition(":")
        source = each.congestion_control.source if each.congestion_control else ""
        if variant == "bbr" and (match := VERSION.search(source)):
            found[name] = match[1]
    return found


def _shares(data: DataSet, numbers: Numbers) -> None:
    rows = []
    for link in ("sat", "satloss"):
        for name, cells in subsets(data, link):
            found = decompose_crossed(cells)
            rows.append({"link": link, "runs": name, "implementations": len({key[0] for key in cells}),
                         **(_shown(found) if found else {})})  # fmt: skip
    table = pd.DataFrame(rows)
    numbers.table("algorithm-or-implementation", table)
    for row in table[table["runs"] == "all runs"].to_dict("records"):
        name = f"crossed.{row['link']}"
        for source in ("implementation", "algorithm", "interaction"):
            numbers.add(f"{name}.{source}", row[source], Unit.SHARE)
        numbers.add(f"{name}.difference", row["difference"], Unit.SHARE)
        numbers.ends(f"{name}.difference", row["low"], row["high"], Unit.SHARE)
        numbers.ends(f"{name}.with_interaction", row["low, interaction as implementation"],
                     row["high, interaction as implementation"], Unit.SHARE)  # fmt: skip
    informative = table[(table.implementations > 3) & (table["runs"] != "all runs")]
    numbers.add("crossed.subsets", len(informative))
    numbers.add("crossed.subsets.open", int(((informative.low <= 0) & (informative.high >= 0)).sum()))


def _shown(found: Crossed) -> dict[str, Any]:
    both = found.with_interaction
    return {
        **found.shares, "difference": found.difference.value, "low": found.difference.low,
        "high": found.difference.high, "difference, interaction as implementation": both.value,
        "low, interaction as implementation": both.low, "high, interaction as implementation": both.high,
        "least without one implementation": min(found.difference.without.values()),
        "greatest without one implementation": max(found.difference.without.values()),
    }  # fmt: skip


# ---- who is fast in spite of loss ------------------------------------------------------------


def _above(data: DataSet, numbers: Numbers) -> None:
    """The servers whose mean efficiency of all runs over satloss exceeds the paper's 10 %, by congestion control."""
    own, rows = controls(data), []
    chosen = variants(data)
    for name, runs, control, server in (
        ("defaults", data.part("matrix"), own, "server"),
        ("defaults, queue of the paper's simulator", data.part("queues"), own, "server"),
        ("variants", chosen, None, "server"),
    ):
        lossy = runs[runs.link == "satloss"]
        for one, these in lossy.groupby(server, sort=False):
            efficiency = (these.goodput_so_far / these.rate).mean()
            single = these.assign(share=these.goodput_so_far / these.rate)
            mean = over_clients_and_seeds(single, "share")
            rows.append({
                "servers": name, "server": one,
                "congestion control": control[one] if control else these.control.iloc[0],
                "mean efficiency": efficiency, "above 10 %": bool(efficiency > THRESHOLD),
                "low": mean.low if mean else None, "high": mean.high if mean else None,
                "runs above 10 %": int((these.efficiency > THRESHOLD).sum()), "runs": len(these),
            })  # fmt: skip
    table = pd.DataFrame(rows)
    numbers.table("above-10-percent", table)
    for (name, control), group in table.groupby(["servers", "congestion control"]):
        key = {"defaults": "above", "variants": "above.variants"}.get(str(name), "above.paper_queue")
        numbers.names(f"{key}.{str(control).lower()}", group[group["above 10 %"]].server)
        numbers.add(f"{key}.{str(control).lower()}.of", len(group))
    for name, group in table[(table.low <= THRESHOLD) & (table.high >= THRESHOLD)].groupby("servers"):
        key = {"defaults": "above", "variants": "above.variants"}.get(str(name), "above.paper_queue")
        numbers.names(f"{key}.undecided", group.server)
    total, with_bbr = len(data.manifest().servers), numbers.values["above.bbr.count"].value
    assert isinstance(with_bbr, int)
    numbers.add("above.chance", math.comb(total, with_bbr), Unit.COUNT)
    slow = sum(own[name] == "Reno" for name in data.manifest().servers)
    numbers.add("above.chance.reno", math.comb(total - slow, with_bbr) / math.comb(total, with_bbr), Unit.RATIO)
