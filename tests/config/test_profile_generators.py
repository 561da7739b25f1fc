"""Generated profiles hold the numbers that their parameters state, and depend on the seed alone."""

from itertools import pairwise

import pytest

from quicsat.config.profile_generators import MODCODS
from quicsat.model.emulated_link import Profile
from tests.config.my_yaml import read


def made(words: str) -> Profile:
    """The forward profile of a test case."""
    keys = {"leo": "queue: 25", "meo": "queue: 25", "fade": "delay: 300 ms, queue: 25"}[words.partition(":")[0]]
    text = f"name: mine\nabbreviation: MINE\ndescription: x\nlink: {{scenario: asymmetric-p2p, {keys}, "
    [case] = read(text + f"profile: {{{words}}}}}\nfile size: 1 B\nrepetitions: 1\ntimeout: 1 s\n")
    assert case.emulated.forward.profile
    return case.emulated.forward.profile


def at(profile: Profile, time: float) -> int:
    """Index of the step that holds then."""
    return max(index for index, begin in enumerate(profile.times) if begin <= time)


def test_leo_hands_over_every_15_s() -> None:
    profile = made("leo: {}")
    assert (profile.length, profile.losses) == (300.0, ())
    for handover in range(0, 300, 15):
        dark = [profile.rates[at(profile, handover + after)] for after in (0.0, 0.1, 0.139)]
        assert dark == [0, 0, 0]
        lit = {profile.rates[at(profile, handover + after)] for after in (0.14, 0.2, 7, 14.99)}
        assert len(lit) == 1
        assert 50e6 <= min(lit) <= 150e6
    assert len({rate for rate in profile.rates if rate}) == 20
    assert 0.010 <= min(profile.delays) < max(profile.delays) <= 0.030


def test_leo_goes_from_one_delay_to_another_between_handovers() -> None:
    profile = made("leo: {round trip: [20 ms, 60 ms], seed: 5}")
    jumps = []
    for (before, after), (first, second) in zip(pairwise(profile.times), pairwise(profile.delays), strict=True):
        if round(after * 1000) % 15000:
            assert abs(second - first) <= 0.020 / 150 * (after - before) / 0.1 + 1e-9
        else:
            jumps.append(abs(second - first))
    assert len(jumps) == 19
    assert max(jumps) > 0.005


def test_leo_can_lose_packets_at_a_handover() -> None:
    words = "leo: {rate: 5 Mbit/s, handover: 5 s, outage: 0 s, burst: 200 ms, burst loss: 30 %, length: 10 s}"
    profile = made(words)
    lossy = [time for time, loss in zip(profile.times, profile.losses, strict=True) if loss]
    assert set(profile.losses) == {0.0, 0.3}
    assert lossy == [0.0, 0.1, 5.0, 5.1]
    assert set(profile.rates) == {5e6}


def test_meo_follows_the_pass_of_a_satellite() -> None:
    profile = made("meo: {rate: [10 Mbit/s, 20 Mbit/s], pass: 100 s, outage: 500 ms}")
    assert profile.length == 100
    assert (profile.delays[0], profile.delays[at(profile, 50)]) == (0.159 / 2, 0.054)
    assert profile.delays[at(profile, 25)] == pytest.approx((0.108 + 0.051 / 4) / 2)
    assert profile.rates[0] == 0
    [rate] = set(profile.rates[1:])
    assert 10e6 <= rate <= 20e6


def test_the_codes_of_a_fade_carry_more_the_more_they_need() -> None:
    assert all(more > less for less, more in pairwise(needed for needed, _ in MODCODS))
    assert all(more > less for less, more in pairwise(bits for _, bits in MODCODS))


def test_a_fade_costs_what_the_codes_need() -> None:
    """Without noise and lag: 14 - 0.7 dB leave 16APSK 9/10 or 32APSK 3/4; 12 dB less leave QPSK 1/2."""
    profile = made("fade: {scintillation: 0 dB, loop delay: 0 s}")
    by_need = dict(MODCODS)
    assert (profile.length, profile.rates[0]) == (90.0, 20e6)
    assert profile.rates[at(profile, 45)] == round(20e6 * by_need[1.00] / by_need[12.73])
    middle = profile.rates[at(profile, 23)]  # 6 dB: 7.3 dB left
    assert middle == round(20e6 * by_need[6.62] / by_need[12.73])
    assert profile.losses == ()


def test_a_sender_that_learns_too_late_loses() -> None:
    """At 0.5 dB/s and a loop of 4 s, the level is 2 dB lower than believed, more than the margin, while it falls."""
    profile = made("fade: {scintillation: 0 dB, loop delay: 4 s}")
    lossy = [time for time, loss in zip(profile.times, profile.losses, strict=True) if loss]
    assert lossy
    assert all(11 <= time < 40 for time in lossy)


@pytest.mark.parametrize("kind", ["leo", "fade"])
def test_the_seed_decides(kind: str) -> None:
    same = made(f"{kind}: {{seed: 3}}")
    assert same == made(f"{kind}: {{seed: 3}}")
    other = made(f"{kind}: {{seed: 4}}")
    assert same.digest != other.digest


def test_profiles_stay_as_they_are() -> None:
    """Other values would make other results of the same test cases."""
    assert {kind: made(f"{kind}: {{}}").digest for kind in ("leo", "meo", "fade")} == {
        "leo": "118ff94ff321", "meo": "c915168c66a1", "fade": "71c632b6ba7d",
    }  # fmt: skip
