"""Whether the share of the client is small because of its receive windows: some clients have those that we chose."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from interop.model.results import ResultSet
from interop.statistics.facts import fact_of
from interop.statistics.samples import EFFICIENCY, find, samples
from interop.statistics.variance import Share, decompose
from scripts.paper.endpoints import SETTINGS, WINDOWS
from scripts.paper.goodput import mean_of, of_case
from scripts.paper.matrix import always_successful
from scripts.paper.words import counted, listed

FEWEST = 3
"""The report computes no share for fewer clients."""


@dataclass(frozen=True)
class ByWindow:
    """Clients by the smaller of the two windows that they announce, over ``sat``."""

    product: float
    """Bandwidth-delay product of the link, bytes."""
    large: list[str]
    """Clients with at least so much."""
    small: list[str]


def by_window(results: ResultSet) -> ByWindow | None:
    """None if no client announced both windows over ``sat``."""
    case = find(results, "sat")
    if case is None:
        return None
    least: dict[str, int] = {}
    for run in of_case(results, case):
        for name in WINDOWS:
            if isinstance(value := fact_of(run, f"client.{name}"), int):
                least[run.client] = min(value, least.get(run.client, value))
    product = case.emulated.forward_rate * case.emulated.round_trip_delay / 8
    known = [name for name in results.manifest.clients if name in least]
    groups = [[name for name in known if (least[name] >= product) is large] for large in (True, False)]
    return ByWindow(product, *groups) if known else None


def raised(results: ResultSet) -> list[str]:
    """Clients whose receive windows we set."""
    return [name for name in results.manifest.clients if "receive" in SETTINGS.get(name, "")]


def share_of_client(results: ResultSet, test_case: str, clients: list[str]) -> Share | None:
    """The client's share of the variance of the logarithm of goodput, with these clients alone."""
    found = decompose([each for each in samples(results, test_case, EFFICIENCY) if each.client in clients])
    return next((part for part in found.shares if part.source == "client"), None) if found else None


def settings(results: ResultSet) -> str:
    """``Our programs set …, and 9 of 14 clients announce at least …``; empty if the windows are not known."""
    found = by_window(results)
    if found is None:
        return ""
    ours, every = raised(results), len(found.large) + len(found.small)
    set_by_us = f"our programs set larger receive windows for {counted(len(ours), 'client')}, and " if ours else ""
    return (
        f"{set_by_us}{len(found.large)} of {every} clients announce at least the bandwidth-delay product of `sat` "
        f"({found.product / 1e6:.1f} MB)"
    )


def among_small(results: ResultSet) -> str:
    """The client's share over ``sat`` among clients with smaller windows, as a sentence; empty if it is not known."""
    found = by_window(results)
    if found is None or len(found.small) < FEWEST or (share := share_of_client(results, "sat", found.small)) is None:
        return ""
    return (
        f" However, among the {len(found.small)} clients with smaller windows, the client's share over `sat` is also "
        f"only {in_tenths(share)}."
    )


def in_tenths(part: Share) -> str:
    """``0.4 % (0.0 to 6.6 %)``."""
    return f"{100 * part.share:.1f} % ({100 * part.low:.1f} to {100 * part.high:.1f} %)"


def client_windows(results: ResultSet) -> Iterator[str]:
    """The client's share over ``sat`` among clients with large and with small windows, as items of a list."""
    found, case = by_window(results), find(results, "sat")
    if found is None or case is None:
        return
    told = (
        f"- The client's share could be small because of our settings: {settings(results)}. Here, a client's window is "
        "the smaller of its two windows; [Programs](#programs) lists our settings."
    )
    if min(len(found.large), len(found.small)) < FEWEST:
        yield told
        return
    servers, parts = always_successful(results, case), list[str]()
    for clients, what in ((found.large, "with such windows"), (found.small, "with smaller windows")):
        share = share_of_client(results, case.name, clients)
        means = [mean for name in clients if (mean := mean_of(results, case, servers, client=name)) is not None]
        if share is None or not means:
            continue
        parts.append(
            f"{in_tenths(share)} among the {len(clients)} clients {what} ({', '.join(clients)}; "
            f"{min(means) / 1e6:.2f} to {max(means) / 1e6:.2f} Mbit/s, {statistics.fmean(means) / 1e6:.2f} Mbit/s on "
            "average)"
        )
    yield (
        f"{told} Over `{case.name}`, the client's share is {listed(parts)}. The clients of both groups also differ in "
        "other ways, and in no run of this section did we change only the windows."
    )
