"""How much servers and clients differ."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from interop.model.results import Measurement, ResultSet
from interop.model.units import MBPS
from scripts.paper.influence import (
    effects,
    far_below,
    finding,
    influence,
    means_of_clients,
    of_clients,
    share_of_server,
)
from tests.results_builder import SATLOSS, result_set, run_result, runs
from tests.scripts.paper.test_algorithms import with_controls

SERVERS, CLIENTS = ("a", "b", "c", "d"), ("x", "y", "z")


def campaign() -> ResultSet:
    """Servers at 1, 1.1, 1.2 and 16 Mbit/s, and clients within a few percent; c fails with z."""
    found = [
        run
        for server, rate in zip(SERVERS, (1.0, 1.1, 1.2, 16.0), strict=True)
        for number, client in enumerate(CLIENTS)
        if (server, client) != ("c", "z")
        for run in runs(rate * (1 + 0.01 * number) * MBPS, server=server, client=client, test_case="satloss")
    ]
    found.append(run_result(None, server="c", client="z", test_case="satloss"))
    return result_set(found, servers=SERVERS, clients=CLIENTS, test_cases=(SATLOSS,), repetitions=1)


def test_percentiles_of_the_means() -> None:
    """Of the servers a, b and d alone, also for the clients; they are 6.03 Mbit/s times 1, 1.01 and 1.02."""
    [row] = effects(campaign()).rows
    low, high = 1.0 + 0.2 * 0.1, 1.1 + 0.8 * (16 - 1.1)
    assert row == ("satloss", f"{high / low:.0f}", 3, f"{(1.02 - 0.002) / 1.002:.1f}", 3)
    means = means_of_clients(campaign(), SATLOSS)
    assert list(means.values()) == [pytest.approx(18.1 / 3 * step * MBPS) for step in (1, 1.01, 1.02)]


def test_without_the_slowest_server() -> None:
    told = "\n".join(influence(campaign()))
    share = share_of_server(campaign(), SATLOSS, ["b", "c", "d"])
    assert share is not None
    assert f"of the servers with a successful run, the server's share is {100 * share.share:.0f} % (" in told
    assert "over `satloss` (without a)." in told
    assert "the shares are the same for the logarithm of goodput" in told


def test_the_share_of_goodput_from_the_first_byte_on() -> None:
    """Here it is the same for all servers."""
    runs = tuple(
        replace(run, measurement=Measurement({**run.measurement.values, "stream_goodput": 1e6 * (1 + number % 3)}))
        for number, run in enumerate(campaign().results)
        if run.measurement is not None
    )
    told = "\n".join(influence(replace(campaign(), results=runs)))
    assert "For goodput from the first to the last byte of the file, the server's share is 0 % (" in told
    assert "For goodput from the first" not in "\n".join(influence(campaign()))


def test_the_slowest_and_the_fastest_client_of_each_server() -> None:
    """Runs that timed out count, if it is known what had arrived."""
    rows = of_clients(campaign(), "satloss").rows
    assert list(rows[0]) == ["a", "x", 1.0 * MBPS, "z", pytest.approx(1.02 * MBPS), "1.0"]
    assert rows[2][3] == "y"
    assert of_clients(campaign(), "sat").rows == ()


def test_a_single_server_has_no_share() -> None:
    assert share_of_server(campaign(), SATLOSS, ["a"]) is None


def test_the_finding_names_links_that_depend_on_one_server() -> None:
    """One of five servers makes the share."""
    found = [
        run
        for number, server in enumerate("abcde")
        for step, client in enumerate(CLIENTS)
        for run in runs((8 if number else 1) * (1 + 0.1 * (step * number % 3)) * MBPS, server=server, client=client)
    ]
    [told] = finding(result_set(found, servers=tuple("abcde"), clients=CLIENTS, repetitions=1))
    assert told.startswith(
        "- Over `sat`, the data do not show that goodput depends mostly on the server: the server's share is "
    )
    assert ", with a bootstrap interval of 0 to " in told
    assert " Without a, this share is " in told
    assert "the 90th percentile of the servers' means is " in told


def test_the_finding_names_links_that_depend_mostly_on_the_server() -> None:
    servers = tuple("abcdefghij")
    found = [
        run
        for number, server in enumerate(servers)
        for step, client in enumerate(CLIENTS)
        for run in runs(2**number * (1 + 0.01 * (step * number % 3)) * MBPS, server=server, client=client)
    ]
    [told] = finding(result_set(found, servers=servers, clients=CLIENTS, repetitions=1))
    assert told.startswith(
        "- Over `sat` with queues of 25 packets, the goodput of a pair depends mostly on its server: the server's share"
    )
    assert "second one assumes normal distributions. The lower limits also exceed 50 % without the slowest" in told
    assert "The interaction of server and client accounts for 0 % (0 to 0 %) over `sat`." in told
    assert "do not show" not in told
    assert list(finding(result_set())) == []


def test_the_finding_names_links_for_which_the_longer_queue_changes_it() -> None:
    """With it, all servers are the same, or differ as before."""
    servers = tuple("abcdefghij")

    def made(factor: float) -> ResultSet:
        found = [
            run
            for number, server in enumerate(servers)
            for step, client in enumerate(CLIENTS)
            for run in runs(factor**number * (1 + 0.01 * (step * number % 3)) * MBPS, server=server, client=client)
        ]
        return result_set(found, servers=servers, clients=CLIENTS, repetitions=1)

    [told] = finding(made(2), made(1))
    assert "With the queue of the paper's simulator, the share over `sat` is " in told
    assert ", so the data do not show this there." in told
    [told] = finding(made(2), made(2))
    assert "With the queue of the paper's simulator" not in told


def test_the_finding_has_the_share_among_servers_with_bbr_over_random_loss() -> None:
    rates = {"a": 1, "b": 2, "c": 4, "d": 8}
    found = [
        run
        for server, rate in rates.items()
        for step, client in enumerate(CLIENTS)
        for run in runs(rate * (1 + 0.1 * step * (rate % 3)) * MBPS, server=server, client=client, test_case="satloss")
    ]
    results = result_set(found, servers=tuple(rates), clients=CLIENTS, test_cases=(SATLOSS,), repetitions=1)
    [told] = finding(with_controls(results, a="bbr", b="bbr", c="cubic", d="cubic"))
    assert "Among servers with BBR, the shares over `satloss` are different: the server accounts for " in told
    assert re.search(r" %\), the client for \d+ % \(\d+ to \d+ %\) and their interaction for \d+ % \(", told)
    [told] = finding(with_controls(results, a="bbr", b="cubic", c="cubic", d="cubic"))
    assert "Among servers with BBR" not in told


def test_clients_far_below_the_median_are_named() -> None:
    """A third of 6 Mbit/s is not below it."""
    found = [
        run
        for server, rates in (("a", (1, 6, 8)), ("b", (2, 6, 7)))
        for client, rate in zip(CLIENTS, rates, strict=True)
        for run in runs(rate * MBPS, server=server, client=client)
    ]
    results = result_set(found, servers=("a", "b"), clients=CLIENTS, repetitions=1)
    [told, _] = far_below(results, "sat")
    assert told == (
        "Over `sat`, the goodput of the following pair is less than a third of the median over the server's clients: a "
        "with x (1.00 Mbit/s). With the other clients, a reaches 6.00 to 8.00 Mbit/s. This report does not explain the "
        "difference."
    )
    [told, _] = far_below(results, "sat", "[Why](#why)")
    assert told.endswith(" [Why](#why) explains the difference.")
    slow = runs(0.5 * MBPS, server="b", client="x")
    more = replace(results, results=tuple(run for run in results.results if (run.server, run.client) != ("b", "x")))
    [told, _] = far_below(replace(more, results=(*more.results, *slow)), "sat")
    assert "of the following pairs is less" in told
    assert ": a with x (1.00 Mbit/s); b with x (0.50 Mbit/s). With the other clients, a reaches 6.00 to " in told
    assert " and b reaches 6.00 to 7.00 Mbit/s." in told
    assert list(far_below(campaign(), "satloss")) == []
