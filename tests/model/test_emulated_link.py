"""Shares and bursts that a loss model stands for; values of a profile over time; links that are scaled."""

import math
import random
from dataclasses import replace

import pytest

from quicsat.model.emulated_link import (
    ClientSide,
    ClientSideDirection,
    Demand,
    Direction,
    EmulatedLink,
    GilbertElliottLoss,
    Loss,
    Profile,
    UniformLoss,
    loss_share,
)

BOTH_STATES = GilbertElliottLoss(0.05, 0.3, 0.02, 0.6)


@pytest.mark.parametrize(
    ("loss", "share"),
    [
        (None, 0.0),
        (UniformLoss(0.01), 0.01),
        (GilbertElliottLoss(0.017, 0.935), 0.017 / 0.952),
        (GilbertElliottLoss(0.0, 0.0), 0.0),
        (GilbertElliottLoss(0.0, 0.0, loss_in_good=0.1), 0.1),
        (GilbertElliottLoss(0.1, 0.3, 0.01, 0.5), 0.75 * 0.01 + 0.25 * 0.5),
    ],
)
def test_loss_share(loss: Loss | None, share: float) -> None:
    assert loss_share(loss) == pytest.approx(share)


@pytest.mark.parametrize(
    ("loss", "burst"),
    [
        (GilbertElliottLoss(0.017, 0.935), 1 / 0.935),
        (GilbertElliottLoss(0.01, 0.25), 4.0),
        (GilbertElliottLoss(0.5, 0.0), math.inf),
        (GilbertElliottLoss(0.3, 0.7, 0.2, 0.2), 1 / 0.8),  # both states alike: independent loss of 20 %
    ],
)
def test_mean_burst(loss: GilbertElliottLoss, burst: float) -> None:
    assert loss.mean_burst == pytest.approx(burst)


def test_share_and_burst_are_those_of_the_chain() -> None:
    """The formulas agree with packets that are drawn one by one, as the simulator does."""
    chance, bad, lost, bursts, before = random.Random(1), False, 0, 0, False
    n = 400_000
    for _ in range(n):
        bad = chance.random() >= BOTH_STATES.bad_to_good if bad else chance.random() < BOTH_STATES.good_to_bad
        hit = chance.random() < (BOTH_STATES.loss_in_bad if bad else BOTH_STATES.loss_in_good)
        lost, bursts, before = lost + hit, bursts + (hit and not before), hit
    assert lost / n == pytest.approx(loss_share(BOTH_STATES), rel=0.02)
    assert lost / bursts == pytest.approx(BOTH_STATES.mean_burst, rel=0.02)


STEPS = Profile("rates.csv", 10.0, (0.0, 2.0, 6.0), rates=(10e6, 0.0, 30e6))
"""14 Mbit/s on average."""


@pytest.mark.parametrize(("time", "looped", "once"), [
    (0.0, 10e6, 10e6), (1.999, 10e6, 10e6), (2.0, 0.0, 0.0), (9.0, 30e6, 30e6), (10.0, 10e6, 30e6), (23.0, 0.0, 30e6),
])  # fmt: skip
def test_a_profile_begins_again_or_its_last_step_holds(time: float, looped: float, once: float) -> None:
    assert STEPS.at(STEPS.rates, time) == looped
    assert replace(STEPS, loop=False).at(STEPS.rates, time) == once


@pytest.mark.parametrize(("begin", "end", "looped", "once"), [
    (0.0, 10.0, 14e6, 14e6),
    (2.0, 6.0, 0.0, 0.0),
    (1.0, 3.0, 5e6, 5e6),
    (6.5, 7.5, 30e6, 30e6),
    (8.0, 14.0, (2 * 30e6 + 2 * 10e6) / 6, 30e6),
    (8.0, 38.0, 14e6, 30e6),
    (25.0, 27.0, 15e6, 30e6),
])  # fmt: skip
def test_mean_over_a_part_of_a_profile(begin: float, end: float, looped: float, once: float) -> None:
    assert STEPS.mean_between(STEPS.rates, begin, end) == pytest.approx(looped)
    assert replace(STEPS, loop=False).mean_between(STEPS.rates, begin, end) == pytest.approx(once)
    assert STEPS.mean(STEPS.rates) == pytest.approx(14e6)


def test_steps_of_a_part_of_a_profile() -> None:
    again = [(9.0, 30e6), (10.0, 10e6), (12.0, 0.0), (16.0, 30e6), (20.0, 10e6)]
    assert STEPS.steps_between(STEPS.rates, 9.0, 22.0) == again
    assert replace(STEPS, loop=False).steps_between(STEPS.rates, 1.0, 22.0) == [(1.0, 10e6), (2.0, 0.0), (6.0, 30e6)]


def highest_rates(link: EmulatedLink) -> tuple[float, float]:
    assert link.highest_rate == max(link.forward.highest_rate, link.back.highest_rate)
    return link.forward.highest_rate, link.back.highest_rate


def test_highest_rates_are_those_of_the_steps() -> None:
    link = EmulatedLink("simple-p2p", Direction(0.01, 14e6, 25), Direction(0.01, 2e6, 25))
    assert highest_rates(link) == (14e6, 2e6)
    assert highest_rates(link.with_forward(profile=STEPS)) == (30e6, 2e6)
    only_delays = replace(STEPS, rates=(), delays=(0.1, 0.2, 0.1))
    assert highest_rates(link.with_forward(profile=only_delays).with_back(profile=STEPS)) == (14e6, 30e6)


VARYING = Profile("", 10.0, (0.0, 5.0), rates=(1e6, 0.0), delays=(0.1, 0.2), losses=(0.0, 0.5))
LINK = EmulatedLink(
    "asymmetric-p2p",
    Direction(0.3, 20e6, 25, profile=VARYING),
    Direction(0.2, 2e6, 50),
    client_side=ClientSide(ClientSideDirection(0.01, rate=10e6, queue=9), ClientSideDirection(0.0)),
)


def test_delays_and_rates_are_scaled_wherever_a_link_has_them() -> None:
    found = LINK.scaled(1.5, 0.5)
    assert (found.forward.delay, found.back.delay) == pytest.approx((0.45, 0.3))
    assert (found.forward.rate, found.back.rate, found.forward.queue) == (10e6, 1e6, 25)
    assert found.forward.profile.delays == pytest.approx((0.15, 0.3))
    assert replace(found.forward.profile, delays=VARYING.delays) == replace(VARYING, rates=(5e5, 0.0))
    assert found.client_side == ClientSide(ClientSideDirection(0.015, rate=5e6, queue=9), ClientSideDirection(0.0))
    assert found.round_trip_delay == pytest.approx(1.5 * LINK.round_trip_delay)
    assert LINK.scaled(1.0, 1.0) == LINK


def test_a_number_of_slots_is_not_scaled() -> None:
    link = replace(LINK, demand=Demand(frame=0.1, delay=0.5, slot=100))
    found = link.scaled(1.5, 0.5)
    assert (found.back.rate, found.forward.rate, found.demand) == (2e6, 10e6, link.demand)
    assert found.back.delay == pytest.approx(0.3)
