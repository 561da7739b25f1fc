"""How members of an ensemble differ from the nominal run: the same everywhere, within the amplitudes, the first not."""

from __future__ import annotations

from dataclasses import astuple, replace
from statistics import fmean

import pytest

from quicsat.model.perturbation import (
    NOMINAL,
    NONE,
    USUAL,
    Amplitudes,
    Perturbation,
    perturbation_of,
)

MEMBERS = range(2, 402)
LARGE = Amplitudes(delay=0.2, rate=0.3, start=0.5, cpu=0.4)


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


def test_the_mean_of_opposite_members_is_nominal() -> None:
    for first, second in ((2, 3), (10, 11)):
        one, other = (astuple(perturbation_of(member, USUAL)) for member in (first, second))
        assert [(a + b) / 2 for a, b in zip(one, other, strict=True)] == pytest.approx([1, 1, 0.005, 1, 1])
    assert perturbation_of(4, USUAL).delay not in (perturbation_of(2, USUAL).delay, perturbation_of(3, USUAL).delay)


def test_no_amplitude_changes_what_others_draw() -> None:
    for member in (2, 7):
        all_of_them, only_cpu = perturbation_of(member, USUAL), perturbation_of(member, Amplitudes(cpu=0.1))
        assert only_cpu == replace(NOMINAL, server_cpu=all_of_them.server_cpu, client_cpu=all_of_them.client_cpu)


@pytest.mark.parametrize("member", [1, 2, 9])
def test_a_placebo_has_other_cpu_costs_and_nothing_else(member: int) -> None:
    own, placebo = perturbation_of(member, USUAL), perturbation_of(member, USUAL, placebo=True)
    assert replace(placebo, server_cpu=own.server_cpu, client_cpu=own.client_cpu) == own
    assert placebo.server_cpu != own.server_cpu
    assert placebo.client_cpu != own.client_cpu


MEMBER_2 = Perturbation(0.993021608, 0.992487132, 0.000865643, 0.92113255, 0.941944871)


def test_amplitudes_in_words() -> None:
    assert USUAL.words == "delay=1%,rate=1%,cpu=10%,start=10ms"
    assert NONE.words == "0"
