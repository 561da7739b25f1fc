"""Why quic-go is slow with two clients: the first burst of a response."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from interop.model.results import Measurement, ResultSet
from interop.model.units import KIB, MBPS
from interop.traces.series import Samples, Series
from scripts.paper.packets import STARTS
from scripts.paper.unpaced_start import finding, start_of, unpaced_start
from tests.results_builder import result_set, run_result
from tests.series_builder import Transfer, series

CLIENTS = tuple(pair.client for pair in STARTS)


def beginning(packets: int, lost: int, later: int = 0) -> Series:
    """The burst starts at 0.9 s and loses its last packets; the rest starts at 1 s and loses the last ``later``."""
    made = series(Transfer(size=100_000))
    times = np.concatenate([0.9 + 1e-5 * np.arange(packets), 1.0 + 0.01 * np.arange(100 - packets)])
    place = np.arange(100)
    drops = ((place >= packets - lost) & (place < packets)) | (place >= 100 - later)
    windows = Samples.of(time=(0.5, 1.5, 1.9, 9.0), value=(40_960, 60 * KIB, 42 * KIB, 180 * KIB))
    forward = replace(made.forward, sent=times, lost=drops)
    return replace(made, sent=replace(made.sent, time=times), forward=forward, cwnd=windows)


def campaign(**bursts: float) -> ResultSet:
    """Runs of quic-go over sat with some longest bursts."""
    found = [
        replace(
            run_result(rate * MBPS, server="quic-go", client=client),
            measurement=Measurement({"goodput": rate * MBPS, "longest_burst": bursts.get(client, 10.0)}),
        )
        for client, rate in zip((*CLIENTS, "quinn"), (1.5, 1.4, 9.8, 9.9), strict=True)
    ]
    return result_set(found, servers=("quic-go",), clients=(*CLIENTS, "quinn"), repetitions=1)


def told(later: int = 0, dropped: int = 6) -> str:
    made = dict(zip(STARTS, (beginning(32, dropped, later), beginning(30, 4, later), beginning(9, 0)), strict=True))
    return "\n".join(unpaced_start(campaign(kwik=32.0, lsquic=34.0), campaign(), made))


def test_the_first_burst_and_the_window_after_it() -> None:
    found = start_of(beginning(32, 6, 3))
    assert found is not None
    assert (found.packets, found.lost, found.lost_in_all) == (32, 6, 9)
    assert (found.window, found.before, found.after, found.at) == (40_960, 60 * KIB, 42 * KIB, 1.9)
    assert found.last == 180 * KIB


def test_a_window_that_only_grows_has_no_reduction() -> None:
    growing = replace(beginning(9, 0), cwnd=Samples.of(time=(0.5, 1.5), value=(40_960, 60 * KIB)))
    assert start_of(growing) is None


def test_both_slow_pairs_are_compared_with_a_fast_one() -> None:
    text = told()
    assert "longest burst over `sat` has 32 packets with kwik and 34 packets with lsquic, but only 10 to 10" in text
    assert "quic-go reaches 1.50 Mbit/s with kwik, 1.40 Mbit/s with lsquic and 9.80 Mbit/s with picoquic." in text
    assert "32 packets with kwik (the queue drops 6 of them) and 30 packets with lsquic (the queue drops 4" in text
    assert (
        "With picoquic, the burst contains 9 packets, and the queue drops none of them. The queue holds 25 packets, "
        "and the link is sending one more, so 26 packets of each burst arrive."
    ) in text
    assert "from 60 to 42 KiB (after 1.9 s) with kwik and from 60 to 42 KiB (after 1.9 s) with lsquic" in text
    assert "The queue drops no other packets." in text
    assert "The queue drops 3, 3 other packets" not in told(later=3)
    assert "The queue drops 3 and 3 other packets." in told(later=3)


def test_a_queue_that_lets_other_numbers_through_is_not_explained() -> None:
    assert "none of them. The queue holds 25 packets.\n" in told(dropped=7)


def test_the_longer_queue_shows_what_the_short_one_costs() -> None:
    """Twice as fast with the slow clients, and half as fast again with one of the others."""
    faster = {"kwik": 2.0, "lsquic": 2.0, "picoquic": 1.0, "quinn": 1.5}
    found = tuple(
        replace(run, measurement=Measurement({"goodput": faster[run.client] * run.measurement.values["goodput"]}))
        for run in campaign().results
        if run.measurement is not None
    )
    longer = replace(campaign(), results=found)
    [text] = finding(campaign(), longer)
    assert (
        "With the queue of the paper's simulator, which holds up to 125 packets, quic-go reaches 3.00 instead of 1.50 "
        "Mbit/s with kwik and 2.80 instead of 1.40 Mbit/s with lsquic. With the other clients, its goodput is then "
        "1.00 to 1.50 times as high. Of the clients with which quic-go is fast, we examined only picoquic. We did not "
        "measure kwik and lsquic as clients in real time, so this holds in virtual time only. See"
    ) in text
    [text] = finding(campaign(), longer, campaign())
    assert "we examined only picoquic. See" in text
    made = dict(zip(STARTS, (beginning(32, 6), beginning(30, 4), beginning(9, 0)), strict=True))
    text = "\n".join(unpaced_start(campaign(), campaign(), made, longer))
    assert (
        "1.00 to 1.50 times as high. Only the queue and the image of the virtual machine differ between these" in text
    )
    few = replace(longer, results=longer.results[1:])
    assert "Only the queue" not in "\n".join(unpaced_start(campaign(), campaign(), made, few))


def test_nothing_is_told_without_the_series_of_a_pair() -> None:
    made = dict(zip(STARTS[:2], (beginning(32, 6), beginning(30, 4)), strict=True))
    assert list(unpaced_start(campaign(), campaign(), made)) == []


def test_the_finding_compares_the_slow_clients_with_all_others() -> None:
    [told] = finding(campaign())
    assert "goodput is 1.50 Mbit/s with kwik and 1.40 Mbit/s with lsquic, but 9.80 to 9.90 Mbit/s with the" in told
    assert list(finding(result_set())) == []
