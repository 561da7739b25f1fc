"""The stored report docs/paper: receive windows of clients and the client's share of the variance."""

from __future__ import annotations

import re
from collections import defaultdict
from statistics import fmean

import pytest

from tests.scripts.stored_paper_report.stored import (
    IN_THE_PAPER,
    goodputs,
    listed,
    manifest,
    matching,
    matrix,
    rows,
    succeeded,
    the_findings,
    the_page,
)
from tests.scripts.stored_paper_report.variance import Variance, goodput_of, of_servers, servers_of

PRODUCT = 20e6 * 0.6 / 8
"""Bytes: bandwidth-delay product of sat."""


def clients_by_window() -> tuple[list[str], list[str]]:
    """Clients whose smaller window is at least the product, and the others."""
    least: dict[str, float] = defaultdict(lambda: float("inf"))
    for run in matching(matrix(), test_case="sat"):
        if succeeded(run):
            sent = run["measurement"]["negotiated"]["client"]
            windows = sent["initial_max_data"], sent["initial_max_stream_data_bidi_local"]
            least[run["client"]] = min(least[run["client"]], *windows)
    large = [name for name in manifest()["clients"] if least[name] >= PRODUCT]
    return large, [name for name in manifest()["clients"] if name not in large]


def settings() -> str:
    large, small = clients_by_window()
    ours = [row[0] for row in rows("Programs") if "receive" in row[-1]]
    return (
        f"our programs set larger receive windows for {len(ours)} clients, and "
        f"{len(large)} of {len(large) + len(small)} clients announce at least the bandwidth-delay product of `sat` "
        "(1.5 MB)"
    )


def test_the_finding_about_clients() -> None:
    shares = [
        f"{Variance(of_servers(test_case, servers_of(test_case)), goodput_of).shares()['client']:.0f} % over "
        f"`{test_case}`"
        for test_case in IN_THE_PAPER
    ]
    _, small = clients_by_window()
    [share] = re.findall(rf"([^)]+\)) among the {len(small)} clients with smaller windows", the_page())
    share = share.rpartition(" and ")[2]
    assert (
        f"The client's share is {listed(shares)}. Our settings may be one reason: {settings()}. However, among the "
        f"{len(small)} clients with smaller windows, the client's share over `sat` is also only {share}. See"
    ) in the_findings()


def test_the_share_of_clients_with_large_and_with_small_windows() -> None:
    [line] = [line for line in the_page().splitlines() if line.startswith("- The client's share could be small")]
    assert settings() in line
    lost = {run["server"] for run in matching(matrix(), test_case="sat") if not succeeded(run)}
    servers = [name for name in manifest()["servers"] if name not in lost]
    for clients, what in zip(clients_by_window(), ("with such windows", "with smaller windows"), strict=True):
        assert len(clients) >= 3
        found = Variance((run for run in matching(matrix(), test_case="sat") if run["client"] in clients), goodput_of)
        means = [
            fmean(value for server in servers for value in goodputs(test_case="sat", server=server, client=client))
            for client in clients
        ]
        told = re.search(
            rf"([\d.]+) % \(([\d.]+) to ([\d.]+) %\) among the {len(clients)} clients {what} "
            rf"\({', '.join(clients)}; {min(means):.2f} to {max(means):.2f} Mbit/s, {fmean(means):.2f} Mbit/s on",
            line,
        )
        assert told is not None
        share, *ends = map(float, told.groups())
        assert share == pytest.approx(found.shares()["client"], abs=0.051)
        assert ends == pytest.approx(found.ends["client"], abs=1.1)
