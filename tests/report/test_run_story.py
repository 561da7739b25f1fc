"""The course of a run: each event with its time and packet, in order."""

from dataclasses import replace

import numpy as np
import pytest

from quicsat.links.simulator_report import read_report
from quicsat.model.emulated_link import ClientSideReport, DirectionReport
from quicsat.model.evidence import Deadline, Exit
from quicsat.model.time_shares import TimeShare
from quicsat.report.run_story import StoryEvent, end_of, hop_lines, story, time_line
from quicsat.traces.series import Packets
from tests.fakes import REPORT
from tests.results_builder import run_result
from tests.series_builder import Transfer, series


def told(events: list[StoryEvent]) -> list[str]:
    return [f"{event.time:.3f} {event.text}" for event in events]


def test_a_transfer_with_a_loss() -> None:
    events = story(100_000, series(Transfer(lost=(7,))))
    assert told(events) == [
        "0.000 The client sends its first packet; it arrives after 300.0 ms.",
        "0.600 The client sends its request; it arrives after 300.0 ms.",
        "0.900 The server sends its first packet; it arrives after 300.0 ms.",
        "0.956 A packet of the server is lost for the first time, packet number 7; in all, 1 of 101 is lost (1.0 %).",
        "1.200 The first byte of a response arrives at the client, in packet number 0.",
        "2.292 The server sends its last of 101 packets, packet number 100.",
        "2.592 The last new byte arrives at the client, in packet number 100: 97.66 KiB.",
        "2.592 The client sends its last of 102 packets, packet number 101.",
    ]
    assert [(event.number, event.from_server) for event in events][3:6] == [(7, True), (0, True), (100, True)]


def test_what_did_not_arrive_is_told() -> None:
    assert "97.66 KiB (10 % of the files)" in told(story(1_000_000, series()))[-2]


@pytest.mark.parametrize(("pause", "shown"), [(0.4, False), (5.0, True)])
def test_a_silence_longer_than_round_trips(pause: float, shown: bool) -> None:
    made = series(Transfer(delay=0.01))
    late = np.where(made.forward.sent > 0.5, made.forward.sent + pause, made.forward.sent)
    back = np.where(made.back.sent > 0.5, made.back.sent + pause, made.back.sent)
    paused = replace(made, forward=replace(made.forward, sent=late), back=replace(made.back, sent=back))
    assert any("Neither side sends anything for 5.0 s" in line for line in told(story(100_000, paused))) is shown


def test_a_client_that_nobody_answers() -> None:
    made = series()
    nothing = {
        name: replace(table, **{column: values[:0] for column, values in vars(table).items()})
        for name, table in vars(made).items()
        if name in ("sent", "arrived", "forward", "rtt", "requests", "in_flight")
    }
    alone = Packets(*(np.array([value]) for value in (0.0, np.nan, True, -1, 1200, 0)))
    events = story(100_000, replace(made, **nothing, back=alone))
    assert told(events)[0] == "0.000 The client sends its first packet; it is lost."
    assert told(events)[-1] == "0.000 The client sends its last of 1 packet."


def test_the_end_of_a_run() -> None:
    assert end_of(run_result()) == "The transfer took 20.0 s, the client ended with exit status 0."
    late = run_result(None)
    evidence = replace(late.evidence, client=Exit(None, killed=True), timed_out=Deadline.TRANSFER)
    assert (
        end_of(replace(late, evidence=evidence)) == "The transfer took 20.0 s, quicsat ended the run at its deadline."
    )
    none = replace(late.evidence, phases={}, client=None, server=None)
    assert end_of(replace(late, evidence=none)) == "There was no transfer."


def test_what_each_link_of_a_path_did() -> None:
    counters = DirectionReport(100, 94, 4, 2, ecn_marks=7), DirectionReport(50, 49, 0, 1)
    report = replace(read_report(REPORT), client_side=ClientSideReport(*counters))
    result = replace(run_result(), evidence=replace(run_result().evidence, simulator=report))
    _, beside = hop_lines(result)
    assert beside == (
        "The link at the client's side got 100 packets to the client and 50 from it: it dropped 4 and 0 in the queue, "
        "lost 2 and 1 and marked 7 and 0."
    )
    alone = replace(report, client_side=None)
    assert hop_lines(replace(result, evidence=replace(result.evidence, simulator=alone))) == ()


def test_what_the_time_went_into() -> None:
    spent = {TimeShare.FULL_RATE: 4.0, TimeShare.RECOVERY: 5.9, TimeShare.TAIL: 0.1}
    assert time_line(spent) == "The transfer's 10.0 s: recovery 59 %, link at its full rate 40 %, others 1 %."
    assert "10.0 s until" in time_line(spent, whole=False)
    assert time_line({}) == ""


def test_what_is_unknown_is_told_for_itself() -> None:
    spent = {TimeShare.FULL_RATE: 9.4, TimeShare.UNKNOWN: 0.2, TimeShare.TAIL: 0.4}
    assert time_line(spent) == "The transfer's 10.0 s: link at its full rate 94 %, unknown 2 %, others 4 %."
