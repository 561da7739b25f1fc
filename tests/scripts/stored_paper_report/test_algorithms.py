"""The stored report docs/paper: which congestion control algorithms are fast over satloss."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean

from tests.scripts.stored_paper_report.stored import (
    Run,
    all_goodputs,
    documents,
    goodputs,
    listed,
    manifest,
    matching,
    matrix,
    rows,
    runs_of,
    section_of,
    the_findings,
)

LIMIT = 2
"""Mbit/s: an efficiency of 10 %."""
VARIANTS = {"bbr": "BBR", "cubic": "CUBIC", "reno": "Reno", "newreno": "Reno"}
Means = dict[str, dict[str, float]]
"""Mbit/s, by congestion control and server."""


def of_defaults() -> Means:
    controls = {each["name"]: each["congestion_control"]["default"].lower() for each in manifest()["implementations"]}
    found: Means = {"BBR": {}, "CUBIC": {}, "Reno": {}}
    for server in manifest()["servers"]:
        [control] = [name for name in found if name.lower() in controls[server]]
        found[control][server] = fmean(all_goodputs(matching(matrix(), test_case="satloss", server=server)))
    return found


def of_variants() -> Means:
    many: dict[tuple[str, str], list[float]] = defaultdict(list)
    for server in dict.fromkeys(run["server"] for run in runs_of("variants")):
        name, _, variant = server.partition(":")
        if variant in VARIANTS:
            many[VARIANTS[variant], name] += all_goodputs(
                matching(runs_of("variants"), test_case="satloss", server=server)
            )
    order = [each.partition(":")[0] for each in documents("variants")[0]["manifest"]["servers"]]
    return {
        control: {name: fmean(many[control, name]) for name in dict.fromkeys(order) if (control, name) in many}
        for control in ("BBR", "CUBIC", "Reno")
    }


def counts(means: Means, word: str, *, names: bool = True) -> str:
    parts = list[str]()
    for control, each in means.items():
        above = [name for name, mean in each.items() if mean > LIMIT]
        whose = f" ({', '.join(above)})" if above and names else ""
        parts.append(f"{len(above)} of {len(each)}{'' if parts else f' {word}'} with {control}{whose}")
    return listed(parts)


def without_underflow(*clients: str) -> float:
    return fmean(all_goodputs(run for run in runs_of("msquic-counter") if run["client"] in clients))


def with_underflow(runs: Iterable[Run], server: str) -> float:
    """Mean of the runs with the same losses as those without it."""
    same = {(run["client"], run["evidence"]["seed"]) for run in runs_of("msquic-counter")}
    own = matching(runs, test_case="satloss", server=server)
    return fmean(all_goodputs(run for run in own if (run["client"], run["evidence"]["seed"]) in same))


def clients_of_variants() -> list[str]:
    found: list[str] = documents("variants")[0]["manifest"]["clients"]
    return found


def test_servers_and_variants_above_the_threshold() -> None:
    section = section_of("Clients")
    clients, few = manifest()["clients"], clients_of_variants()
    single = [
        f"{name} ({above} of {len(matching(matrix(), test_case='satloss', server=name))} runs)"
        for each in of_defaults().values()
        for name, mean in each.items()
        if (above := sum(value > LIMIT for value in goodputs(test_case="satloss", server=name))) and mean <= LIMIT
    ]
    told = f" Single runs of {listed(single)} also exceed 10 %." if single else ""
    defaults = counts(of_defaults(), "servers")
    assert " The following exceed 10 %:\n" in section
    undecided = []
    for server, *cells in rows("Efficiency of servers, with confidence intervals"):
        if limits := re.fullmatch(r"[\d.]+ \(([\d.]+) to ([\d.]+)\)", cells[-1]):
            undecided += [server] if float(limits[1]) <= 10 <= float(limits[2]) else []
    assert f"- with the default congestion control algorithms and {len(clients)} clients: {defaults}.{told}" in section
    assert ("includes 10 % (geometric means" in section) == (len(undecided) == 1)
    assert not undecided or f"of {listed(undecided)} include" in section
    assert f" and {len(few)} clients: {counts(of_variants(), 'implementations')}.\n" in section


def test_without_the_underflow() -> None:
    """One implementation with CUBIC less."""
    means, clients, few = of_variants()["CUBIC"], manifest()["clients"], clients_of_variants()
    others = [name for name, mean in means.items() if mean > LIMIT and name != "msquic"]
    every, some = with_underflow(matrix(), "msquic"), with_underflow(runs_of("variants"), "msquic:cubic")
    assert without_underflow(*few) < LIMIT < some
    assert means["msquic"] > LIMIT
    assert (
        f" of msquic's counter: {len(others)} of {len(means)} implementations with CUBIC ({', '.join(others)}). In "
        f"runs with the same losses, msquic with CUBIC then reaches {without_underflow(*clients):.2f} instead of "
        f"{every:.2f} Mbit/s with {len(clients)} clients and {without_underflow(*few):.2f} instead of {some:.2f} "
        f"Mbit/s with {len(few)} clients.\n"
    ) in section_of("Clients")


def test_the_finding_about_congestion_control_algorithms() -> None:
    numbers = [str(each["manifest"]["seed"]) for each in documents("variants")]
    seeds = f"seed{'s' if len(numbers) > 1 else ''} {listed(numbers)}"
    assert (
        "- Over `satloss`, the mean efficiency exceeds 10 % for "
        f"{counts(of_defaults(), 'servers', names=False)} as their default congestion control. When we set the "
        f"congestion control ourselves ({len(clients_of_variants())} clients, {seeds}), it exceeds 10 % for "
        f"{counts(of_variants(), 'implementations')}. msquic with CUBIC exceeds 10 % (2.00 Mbit/s) only because a "
        f"counter underflows: it reaches {with_underflow(runs_of('variants'), 'msquic:cubic'):.2f} Mbit/s with the "
        "underflow and "
        f"{without_underflow(*clients_of_variants()):.2f} Mbit/s without it (seed 1). See [Servers and clients]"
    ) in the_findings()
