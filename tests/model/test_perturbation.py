"""How members of an ensemble differ from the nominal run: the same everywhere, within the amplitudes, the first not."""

from dataclasses import astuple, replace
from itertools import combinations
from statistics import correlation, fmean

import pytest

from quicsat.model.perturbation import (
    NOMINAL,
    NONE,
    USUAL,
    WAKE_UP_LATENCIES,
    Amplitudes,
    Perturbation,
    perturbation_of,
)

MEMBERS = range(2, 402)
LARGE = Amplitudes(delay=0.2, rate=0.3, start=0.5, cpu=0.4, wake_up=2.0)


def test_the_first_member_is_nominal() -> None:
    assert perturbation_of(1, USUAL) == NOMINAL


@pytest.mark.parametrize("member", [1, 2, 10])
def test_without_amplitudes_all_are_nominal(member: int) -> None:
    assert perturbation_of(member, NONE) == NOMINAL
    assert perturbation_of(member, NONE, placebo=True) == NOMINAL


def test_members_repeat_across_versions() -> None:
    """Stored campaigns are compared with new ones, member by member."""
    assert perturbation_of(2, USUAL) == MEMBER_2


@pytest.mark.parametrize("amplitudes", [USUAL, LARGE])
def test_differences_are_uniform_within_the_amplitudes(amplitudes: Amplitudes) -> None:
    members = [perturbation_of(member, amplitudes) for member in MEMBERS]
    ranges = {
        "delay": (1 - amplitudes.delay, 1 + amplitudes.delay),
        "rate": (1 - amplitudes.rate, 1 + amplitudes.rate),
        "start": (0.0, amplitudes.start),
        "server_cpu": (1 - amplitudes.cpu, 1 + amplitudes.cpu),
        "client_cpu": (1 - amplitudes.cpu, 1 + amplitudes.cpu),
    }
    for name, (least, most) in ranges.items():
        values = [getattr(member, name) for member in members]
        width = most - least
        assert least <= min(values) < least + width / 20
        assert most - width / 20 < max(values) <= most
        assert fmean(values) == pytest.approx((least + most) / 2, abs=width * 0.06)
        assert len(set(values)) == len(values)
    assert all(member.server_cpu != member.client_cpu for member in members)


def test_members_are_independent() -> None:
    """The quantities of a member, and those of a member and of the next one, are not correlated."""
    members = [astuple(perturbation_of(member, USUAL))[:5] for member in MEMBERS]
    columns = list(zip(*members, strict=True))
    for column in columns:
        assert abs(correlation(column[1:], column[:-1])) < 0.15
    for one, other in combinations(columns, 2):
        assert abs(correlation(one, other)) < 0.15


def test_no_amplitude_changes_what_others_draw() -> None:
    for member in (2, 7):
        all_of_them, only_cpu = perturbation_of(member, USUAL), perturbation_of(member, Amplitudes(cpu=0.1))
        assert only_cpu == replace(NOMINAL, server_cpu=all_of_them.server_cpu, client_cpu=all_of_them.client_cpu)


@pytest.mark.parametrize("member", [1, 2, 9])
def test_a_placebo_has_other_cpu_costs_and_latencies_and_nothing_else(member: int) -> None:
    own, placebo = perturbation_of(member, USUAL), perturbation_of(member, USUAL, placebo=True)
    alike = replace(placebo, server_cpu=own.server_cpu, client_cpu=own.client_cpu, wake_up_seed=own.wake_up_seed)
    assert alike == own
    assert (placebo.wake_up_seed == own.wake_up_seed) == (member == 1)
    assert placebo.server_cpu != own.server_cpu
    assert placebo.client_cpu != own.client_cpu


MEMBER_2 = Perturbation(0.992462359, 0.996038125, 0.000555106, 1.012533713, 1.092689922, 1.0, 1199002781)


def test_latencies_have_random_numbers_of_their_own() -> None:
    members = [perturbation_of(member, LARGE) for member in MEMBERS]
    assert {member.wake_up for member in members} == {2.0}
    assert len({member.wake_up_seed for member in members}) == len(members)
    assert all(0 < member.wake_up_seed < 2**31 for member in members)


def test_latencies_are_those_that_were_measured() -> None:
    """Most are near the median; one in a thousand is more than ten times as late."""
    assert len(WAKE_UP_LATENCIES) == 63 + 64
    assert list(WAKE_UP_LATENCIES) == sorted(WAKE_UP_LATENCIES)
    assert WAKE_UP_LATENCIES[31] == pytest.approx(64_200, abs=200)
    assert WAKE_UP_LATENCIES[-4] > 10 * WAKE_UP_LATENCIES[31]


def test_amplitudes_in_words() -> None:
    assert USUAL.words == "delay=1%,rate=1%,cpu=10%,wake-up=100%,start=10ms"
    assert NONE.words == "0"
