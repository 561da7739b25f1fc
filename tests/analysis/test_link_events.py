"""The link's history has every change that the simulator made, at its time in the run, and nothing else."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from quicsat.analysis.link_events import LinkHistory, LinkStop, link_history, link_stop
from quicsat.model.emulated_link import (
    Blackhole,
    ClientSideReport,
    Direction,
    DirectionReport,
    EmulatedLink,
    Interval,
    LinkDirection,
    Profile,
    ProfileReport,
    Rebinding,
    SimulatorReport,
)
from quicsat.model.outcomes import Cause
from quicsat.model.real_link import RealDirection, RealLink
from quicsat.traces.series import Packets
from tests.series_builder import Transfer, series

BEGIN = 1000.0
LINK = EmulatedLink("simple-p2p", Direction(0.3, 20e6, 100), Direction(0.3, 2e6, 100))
COUNTERS = DirectionReport(0, 0, 0, 0)
REPORT = SimulatorReport(BEGIN - 1, False, 0.0, 0.0, 0, COUNTERS, COUNTERS)


def history(link: EmulatedLink = LINK, report: SimulatorReport = REPORT, seed: int = 1) -> LinkHistory:
    return link_history(link, report, seed, BEGIN, 60.0)


def times(found: LinkHistory) -> list[tuple[Cause, float, float]]:
    return [(event.cause, round(event.begin, 6), round(event.end, 6)) for event in found.events]


def report(**profiles: ProfileReport) -> SimulatorReport:
    """The report, with those of profiles by direction."""
    return replace(REPORT, **{way: replace(getattr(REPORT, way), profile=each) for way, each in profiles.items()})


def test_nothing_is_known_of_a_real_link_or_without_a_report() -> None:
    real = RealLink("a", "b", RealDirection(1e6), RealDirection(1e6), 0.6)
    for link, report in ((real, REPORT), (LINK, None), (LINK, REPORT)):
        assert link_history(link, report, 1, BEGIN, 60.0) == LinkHistory()


def test_rebindings_and_blackholes() -> None:
    report = replace(
        REPORT,
        rebinds=tuple(Rebinding(BEGIN + time, ()) for time in (1.0, 6.0)),
        blackholes=(Interval(BEGIN + 5.0, BEGIN + 7.0),),
    )
    found = history(replace(LINK, blackhole=Blackhole(5, 2, direction=LinkDirection.CLIENT)), report)
    assert times(found) == [(Cause.NAT_REBINDING, 1, 1), (Cause.LINK_OUTAGE, 5, 7), (Cause.NAT_REBINDING, 6, 6)]
    assert found.events[1].text == "The link delivered nothing forward for 2.0 s"


def test_changes_of_a_profile() -> None:
    profile = Profile(
        "fade.csv", 100.0, (0.0, 10.0, 20.0, 30.0, 40.0),
        rates=(20e6, 8e6, 0.0, 20e6, 11e6), delays=(0.3, 0.3, 0.3, 0.32, 0.325), losses=(0.0, 0.0, 0.1, 0.12, 1.0),
    )  # fmt: skip
    link = LINK.with_forward(profile=replace(profile, start=5.0))
    found = history(link, report(forward=ProfileReport(BEGIN + 0.5, 4)))
    assert [(event.cause, round(event.begin, 6), round(event.end, 6), event.text) for event in found.events] == [
        (Cause.LINK_CHANGE, 5.5, 5.5, "The rate of the forward link fell from 20.00 Mbit/s to 8.00 Mbit/s"),
        (Cause.LINK_OUTAGE, 15.5, 25.5, "The forward link delivered nothing for 10.0 s"),
        (Cause.LINK_CHANGE, 15.5, 15.5, "The loss of the forward link rose from 0.0 % to 10.0 %"),
        (Cause.LINK_CHANGE, 25.5, 25.5, "The delay of the forward link rose from 300.0 ms to 320.0 ms"),
        (Cause.LINK_OUTAGE, 35.5, 60.5, "The forward link delivered nothing for 25.0 s"),
    ]
    back = history(LINK.with_back(profile=profile), report(back=ProfileReport(BEGIN, 4)))
    assert "return link" in back.events[0].text
    assert history(link, report(forward=ProfileReport(None, 0))).events == ()


def test_a_random_start_of_a_profile_is_that_of_the_seed() -> None:
    profile = Profile("rates.csv", 50.0, (0.0, 40.0), rates=(20e6, 1e6), start=None)
    link = LINK.with_forward(profile=profile)
    began = report(forward=ProfileReport(BEGIN, 1))
    for seed in (1, 2):
        fall = (40.0 - profile.begin(seed)) % 50.0
        assert times(history(link, began, seed))[0] == (Cause.LINK_CHANGE, round(fall, 6), round(fall, 6))


def test_packets_by_what_dropped_them() -> None:
    forward = replace(COUNTERS, nat_drops=122, queue_drops=3, corrupted=1)
    back = replace(COUNTERS, blackhole_drops=2, loss_drops=5, listed_drops=6, queue_drops=1)
    assert history(report=replace(REPORT, forward=forward, back=back)).dropped == (
        "122 at the NAT, 2 in outages, 4 by the queue, 5 by the link's loss, 6 by its list of drops, 1 by corruption"
    )
    beside = ClientSideReport(replace(COUNTERS, queue_drops=7), replace(COUNTERS, loss_drops=8))
    assert history(report=replace(REPORT, client_side=beside)).dropped == (
        "7 by the queue at the client's side, 8 by the loss at the client's side"
    )


# ---- how a transfer stopped -------------------------------------------------------------------


def fates(sent: Sequence[float], lost: Sequence[bool]) -> Packets:
    times, gone = np.array(sent), np.array(lost)
    zeros = np.zeros(len(times), dtype=np.int64)
    return Packets(times, np.where(gone, np.nan, times + 0.3), gone, zeros, zeros + 1000, zeros)


def stopped(
    forward: Sequence[tuple[float, bool]], back: Sequence[tuple[float, bool]], found: LinkHistory, stop: float = 5.0
) -> LinkStop | None:
    made = replace(series(Transfer()), forward=fates(*zip(*forward, strict=True)), back=fates(*zip(*back, strict=True)))
    return link_stop(found, made, stop, END)


END = 13.0
REBOUND = history(
    report=replace(REPORT, rebinds=(Rebinding(BEGIN + 4.9, ()),), forward=replace(COUNTERS, nat_drops=122))
)
BEFORE = [(time, False) for time in range(5)]
GONE = [(5.5 + time, True) for time in range(7)]
CAME = [(5.5 + time, False) for time in range(7)]


def test_a_transfer_that_stops_when_the_nat_rebinds() -> None:
    found = stopped([*BEFORE, *GONE], [*BEFORE, (6.0, False)], REBOUND)
    assert found == LinkStop(
        Cause.NAT_REBINDING,
        "The NAT in front of the client changed its mappings after 4.9 s. The transfer stopped after 5.0 s. From then "
        "on, the link lost 7 of 7 packets of the server and 0 of 1 of the client; in the whole run, it dropped 122 at "
        "the NAT.",
        recovered=False,
    )


def test_endpoints_that_do_not_go_on_when_the_link_carries_packets_again() -> None:
    found = stopped([*BEFORE, *GONE[:1], *CAME[2:]], [*BEFORE, *CAME], REBOUND)
    assert found.recovered
    assert "lost 1 of 6 packets of the server" in found.sentence


def test_a_change_without_a_loss_or_at_another_time_is_no_cause() -> None:
    assert stopped([*BEFORE, *CAME], [*BEFORE, *CAME], REBOUND) is None
    assert stopped([*BEFORE, *CAME[2:], *GONE[:1]], [*BEFORE, *CAME], REBOUND, stop=8.0) is None


def test_a_link_that_carries_nothing_any_more() -> None:
    found = stopped([*BEFORE, *GONE], [*BEFORE, *CAME], LinkHistory())
    assert (found.cause, found.recovered) == (Cause.LINK_LOSS, False)
    assert found.sentence == (
        "The transfer stopped after 5.0 s. From then on, the link lost 7 of 7 packets of the server and 0 of 7 of the "
        "client."
    )
    requests = stopped([*BEFORE, (5.5, False)], [*BEFORE, *GONE], LinkHistory())
    assert requests.cause is Cause.LINK_LOSS
    assert stopped([*BEFORE, *GONE[:4]], [*BEFORE, *CAME], LinkHistory()) is None  # too few
    late = [(END - 0.2, True)] * 9  # under way at the end
    assert stopped([*BEFORE, *late], [*BEFORE, *CAME], LinkHistory()) is None
