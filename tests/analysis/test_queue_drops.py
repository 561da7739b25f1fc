"""Losses of the link are told apart from drops of its queue, in runs of a simulated queue whose fates are known."""

import heapq
import random
from dataclasses import dataclass, replace

import numpy as np
import pytest

from quicsat.analysis.queue_drops import link_losses
from quicsat.analysis.series_metrics import gilbert
from quicsat.model.arrays import Flags
from quicsat.model.emulated_link import DirectionReport, GilbertElliottLoss, Jitter, Profile, Queue, QueueDiscipline
from quicsat.model.real_link import RealDirection, RealLink
from quicsat.traces.series import Packets
from tests.ready import ready_test_cases

LINK = ready_test_cases()["sat"].emulated.with_forward(queue=125)
HEADER = 30
"""Bytes of a packet on the link beside those of the series."""
WIFI = GilbertElliottLoss(0.018, 0.645)
"""Table 1 of the SATCOM paper, behind Wi-Fi."""


@dataclass(frozen=True)
class Simulated:
    """A run: what the traces show, the simulator's counters, and what became of those that passed the queue."""

    packets: Packets
    counters: DirectionReport
    fates: Flags


def simulated(loss: GilbertElliottLoss, pace: float, *, count: int = 40_000, seed: int = 1) -> Simulated:
    """Packets that are sent at ``pace`` times the link's rate in periods that overfill the queue, and then pause."""
    numbers = random.Random(seed)
    sent, arrived, size, fates = [], [], [], []
    now, free, bad, drops = 0.0, 0.0, False, 0
    waiting: list[float] = []
    for place in range(count):
        length = 1200 if numbers.random() < 0.95 else numbers.randrange(50, 1200)
        on_link = 8 * (length + HEADER) / LINK.forward.rate
        now += on_link / pace * numbers.choice((0.2, 1.8)) + (0.3 if place % 1500 == 0 else 0.0)
        while waiting and waiting[0] <= now:
            heapq.heappop(waiting)
        sent.append(now)
        size.append(length)
        arrived.append(np.nan)
        if len(waiting) > 125:
            drops += 1
            continue
        free = max(free, now) + on_link
        heapq.heappush(waiting, free)
        bad = numbers.random() >= loss.bad_to_good if bad else numbers.random() < loss.good_to_bad
        fates.append(numbers.random() < (loss.loss_in_bad if bad else loss.loss_in_good))
        if not fates[-1]:
            arrived[-1] = free + 0.3
    came = np.array(arrived)
    nothing = np.zeros(count, dtype=np.int64)
    packets = Packets(np.array(sent), came, np.isnan(came), nothing, np.array(size), nothing)
    lost = sum(fates)
    return Simulated(packets, DirectionReport(count, count - drops - lost, drops, lost), np.array(fates))


@pytest.mark.parametrize("pace", [1.5, 2.0])
@pytest.mark.parametrize("loss", [WIFI, GilbertElliottLoss(0.017, 0.935), GilbertElliottLoss(0.002, 0.1)])
def test_the_bursts_of_the_link_are_found_beside_drops_of_the_queue(loss: GilbertElliottLoss, pace: float) -> None:
    run = simulated(loss, pace)
    assert run.counters.queue_drops > 1000
    found = link_losses(run.packets, LINK, run.counters)
    assert found is not None
    true, estimated, mixed = (gilbert(each) for each in (run.fates, found, run.packets.judged))
    for name in ("bg", "bb"):
        assert estimated[name] == pytest.approx(true[name], rel=0.02, abs=0.006)
    assert (mixed["bg"] or 0) > 2 * (true["bg"] or 1)


def test_without_drops_of_the_queue_all_losses_are_the_links_own() -> None:
    run = simulated(WIFI, 0.5)
    assert run.counters.queue_drops == 0
    for link in (LINK, LINK.with_forward(jitter=Jitter(0.01))):
        found = link_losses(run.packets, link, run.counters)
        assert found.tolist() == run.fates.tolist()


def test_without_losses_of_the_link_all_are_drops_of_the_queue() -> None:
    run = simulated(GilbertElliottLoss(0.0, 1.0), 1.5)
    for link in (LINK, LINK.with_forward(queue=Queue(QueueDiscipline.CODEL, 100))):
        found = link_losses(run.packets, link, run.counters)
        assert found.tolist() == run.fates.tolist()


@pytest.mark.parametrize(
    "link",
    [
        LINK.with_forward(queue=Queue(QueueDiscipline.CODEL, 100)),
        LINK.with_forward(jitter=Jitter(0.01)),
        LINK.with_forward(profile=Profile("a", 10.0, (0.0,), (20e6,))),
        RealLink("here", "there", RealDirection(20e6), RealDirection(2e6), 0.6),
    ],
)
def test_other_links_are_not_told_apart(link: RealLink) -> None:
    run = simulated(WIFI, 1.5, count=4000)
    assert link_losses(run.packets, link, run.counters) is None
    assert link_losses(run.packets, LINK, None) is None


def test_an_estimate_that_does_not_fit_the_simulators_count_is_none() -> None:
    run = simulated(WIFI, 1.5)
    other = replace(run.counters, queue_drops=run.counters.queue_drops * 11 // 10)
    assert link_losses(run.packets, LINK, other) is None
