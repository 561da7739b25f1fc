"""What servers send beyond the file."""

from __future__ import annotations

from dataclasses import replace

from interop.model.implementation import CongestionControl
from interop.model.results import Measurement, ResultSet
from interop.model.units import MBPS
from scripts.paper.senders import of_senders, senders, two_goodputs
from tests.results_builder import result_set, run_result, runs

VALUES = {"a": (1.5, 0.3), "b": (1.1, 0.1), "c": (1.2, 0.04)}
"""Bytes sent per byte of the file, and share of packets dropped, by server."""


def campaign(**hystart: bool | None) -> ResultSet:
    found = [
        replace(
            run_result(MBPS, server=server),
            measurement=Measurement({"goodput": MBPS, "sent_per_useful_byte": sent, "queue_loss": dropped}),
        )
        for server, (sent, dropped) in VALUES.items()
    ]
    results = result_set([*found, run_result(None, server="d")], servers=("a", "b", "c", "d"), repetitions=1)
    known = tuple(
        replace(each, congestion_control=CongestionControl("cubic", hystart=hystart[each.name]))
        if each.name in hystart
        else each
        for each in results.manifest.implementations
    )
    return replace(results, manifest=replace(results.manifest, implementations=known))


def test_what_servers_send() -> None:
    assert of_senders(campaign()).rows == (("a", 1.5, 0.3), ("b", 1.1, 0.1), ("c", 1.2, 0.04), ("d", None, None))


def test_the_server_that_wastes_most() -> None:
    *_, told, _ = senders(campaign())
    assert told == (
        "Over `sat`, the queue drops 30 % of a's packets, the largest share of any server (median: 10.0 %); a sends "
        "1.50 bytes per byte of the file (median of the servers: 1.20)."
    )
    assert list(senders(result_set(runs(MBPS)))) == []


def test_hystart_beside_drops() -> None:
    def told(**hystart: bool | None) -> str:
        return "\n".join(senders(campaign(**hystart)))

    more = (
        "The median share of dropped packets is 20.0 % for the 2 servers with HyStart and 4.0 % for the 1 server "
        "without it"
    )
    assert more in told(a=True, b=True, c=False)
    assert "do not show that HyStart reduces drops." in told(a=True, b=True, c=False)
    assert "so HyStart does not explain" not in told(a=False, b=True, c=True)
    assert "HyStart" not in told(a=True, b=None)


def test_the_metric_changes_the_ranks() -> None:
    """a and b change places; c stays the last."""
    found = [
        replace(run_result(MBPS, server=server), measurement=Measurement({"goodput": rate, "stream_goodput": stream}))
        for server, rate, stream in (("a", 3e6, 3e6), ("b", 2e6, 4e6), ("c", 1e6, 1e6))
    ]
    results = result_set(found, servers=("a", "b", "c"), repetitions=1)
    [told, _] = two_goodputs(results, results.manifest.test_cases[0])
    assert told == (
        "Over `sat`, the order of the servers by goodput and their order by goodput from the first to the last byte of "
        "the file have a rank correlation of 0.500 (3 servers; means of the successful runs). Among the top 8 servers, "
        "the following change rank: a from 1 to 2 and b from 2 to 1."
    )
    few = result_set(found[:2], servers=("a", "b"))
    assert list(two_goodputs(few, few.manifest.test_cases[0])) == []
