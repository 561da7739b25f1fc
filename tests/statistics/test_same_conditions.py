"""What differs between the conditions of a test case in two campaigns is named with both values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quicsat.model.emulated_link import UNKNOWN, EmulatedLink, Profile
from quicsat.model.test_case import TestCase
from quicsat.model.units import KIB, MIB
from quicsat.statistics.same_conditions import differing
from tests.results_builder import SAT, SATLOSS


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"timeout": 5.0}, "time limit 2 min 0 s → 5.0 s"),
        ({"file_sizes": (MIB, MIB)}, "files 10 MiB → 2 × 1 MiB"),
        ({"file_sizes": (10 * MIB + 1,)}, "files"),
        ({"chain_length": 9, "timeout": 60.0}, "time limit 2 min 0 s → 60.0 s, chain length"),
        ({"repetitions": 1, "source": "mine.yaml", "description": "Mine", "abbreviation": "S"}, ""),
        ({"random_numbers_of": "satloss"}, ""),
    ],
)
def test_only_what_differs_is_named(changes: dict[str, Any], words: str) -> None:
    assert differing(SAT, replace(SAT, **changes)) == words


def test_links_are_told_in_words() -> None:
    words = differing(SAT, replace(SATLOSS, timeout=SAT.timeout))
    assert words.startswith("link 20.00 / 2.00 Mbit/s, RTT 600.0 ms")
    assert words.endswith("no loss → 20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, loss 1 %")


def from_elsewhere(rate: float, timeout: float) -> TestCase:
    """As in a file of another runner, which lacks the rest of the link, the files, and what the endpoints do."""
    return replace(
        SAT, link=EmulatedLink(UNKNOWN, 0.0, 0.0, rate, 0.0, 0, 0), file_sizes=(), timeout=timeout, client_test="x"
    )


@pytest.mark.parametrize(
    ("rate", "timeout", "words"),
    [
        (0.0, 0.0, ""),
        (20e6, SAT.timeout, ""),
        (20e6 * (1 + 1e-12), 0.0, ""),
        (10e6, 60.0, "time limit 60.0 s → 2 min 0 s, rate of the link 10.00 Mbit/s → 20.00 Mbit/s"),
    ],
)
def test_what_a_file_of_another_runner_lacks_does_not_differ(rate: float, timeout: float, words: str) -> None:
    case = from_elsewhere(rate, timeout)
    assert sorted(differing(case, SAT).split(", ")) == sorted(words.split(", "))
    assert bool(differing(SAT, case)) is bool(words)
    assert differing(case, from_elsewhere(0.0, 0.0)) == ""


def test_a_rate_that_changes_is_not_that_of_a_file() -> None:
    profile = Profile("fade", 60.0, (0.0, 30.0), rates=(20e6, 5e6))
    fading = replace(SAT, link=replace(SAT.emulated, forward_rate=12.5e6, forward_profile=profile))
    assert differing(from_elsewhere(20e6, 0.0), fading) == ""


@pytest.mark.parametrize("many", [8, 9])
def test_many_different_files_have_no_long_list(many: int) -> None:
    case: TestCase = replace(SAT, file_sizes=tuple(KIB * (n + 1) for n in range(many)))
    assert ("9 × 1 KiB to 9 KiB" in differing(SAT, case)) is (many == 9)
