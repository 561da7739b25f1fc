"""What differs between the conditions of two campaigns is named, with both values, and refused where it must be."""

from dataclasses import replace
from typing import Any

import pytest

from quicsat.model.cpu_cost import DEFAULT, CpuCost
from quicsat.model.emulated_link import Profile, unknown_link
from quicsat.model.errors import InputError
from quicsat.model.results import ImageFacts, Manifest, ResultSet
from quicsat.model.test_case import TestCase
from quicsat.model.units import KIB, MIB
from quicsat.statistics.conditions import BASELINE, Differences, check_fit, differences, differing, matching
from tests.results_builder import SAT, SATLOSS, result_set, runs
from tests.statistics.test_judgement import campaign, image, with_images


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
    return replace(SAT, link=unknown_link(rate), file_sizes=(), timeout=timeout, client_test="x")


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
    fading = replace(SAT, link=SAT.emulated.with_forward(rate=12.5e6, profile=profile))
    assert differing(from_elsewhere(20e6, 0.0), fading) == ""


@pytest.mark.parametrize("many", [8, 9])
def test_many_different_files_have_no_long_list(many: int) -> None:
    case: TestCase = replace(SAT, file_sizes=tuple(KIB * (n + 1) for n in range(many)))
    assert ("9 × 1 KiB to 9 KiB" in differing(SAT, case)) is (many == 9)


def fit(before: Manifest, now: Manifest) -> Differences:
    """Of a campaign and its baseline."""
    return differences(before, now, matching(before.test_cases, now.test_cases), now.must_include, BASELINE)


def test_the_same_conditions_fit() -> None:
    one, other = (with_images(campaign(8e6), picoquic=image(1), quiche=image(number)).manifest for number in (1, 2))
    assert fit(one, other).faults == fit(one, other).notes == ()
    assert check_fit(one, one) == ("The image of quiche is that of the baseline: nothing can have changed.",)


def changed(which: str) -> ResultSet:
    """A campaign that differs from ``campaign(8e6)`` in one condition."""
    base = campaign(8e6)
    manifest = base.manifest
    parts = {
        "clock": replace(result_set(runs(8e6), repetitions=1).manifest),
        "cost": replace(manifest, cpu_cost=4e-6),
        "placebo": replace(manifest, placebo=True),
        "seed": replace(manifest, seed=2),
        "limit": replace(manifest, test_cases=(replace(manifest.test_cases[0], timeout=5.0),)),
        "cases": replace(manifest, test_cases=(replace(SAT, name="other", abbreviation="O"),)),
        "partner": with_images(base, picoquic=image(2)).manifest,
        "simulator": with_images(base, simulator=image(2, "quicsat/simulator:b")).manifest,
    }
    return replace(base, manifest=parts[which])


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ("clock", "The baseline used virtual time"),
        ("cost", "The baseline used virtual time (3 µs per system call)"),
        ("placebo", "3 µs per system call; placebo)"),
        ("seed", "use --seed 1"),
        ("limit", "The test case sat has other conditions than in the baseline: time limit 2 min 0 s → 5.0 s."),
        ("cases", "none of the test cases"),
        ("partner", "The image of picoquic is not that of the baseline (version v1 → v2, image 1 → 2)"),
        ("simulator", "The image of simulator is not that of the baseline"),
    ],
)
def test_another_condition_is_refused_in_one_sentence(which: str, words: str) -> None:
    before = with_images(campaign(8e6), picoquic=image(1), simulator=image(1, "quicsat/simulator:a"))
    [fault] = fit(before.manifest, changed(which).manifest).faults
    assert words in fault
    with pytest.raises(InputError, match=r"with the same test cases and options .* or save a new baseline"):
        check_fit(before.manifest, changed(which).manifest)


@pytest.mark.parametrize("version", ["3", ""])
def test_images_of_one_version_are_told_apart_by_their_ids(version: str) -> None:
    one, other = (
        with_images(campaign(8e6), simulator=ImageFacts("x", f"sha256:{digit * 64}", version=version)).manifest
        for digit in "ab"
    )
    told = f"{'version 3, ' if version else ''}image {'a' * 12} → {'b' * 12}"
    assert fit(one, other).faults == (f"The image of simulator is not that of the baseline ({told}).",)


@pytest.mark.parametrize("costs", [{"own_cpu_costs": True}, {"cpu_cost_factor": 1.0}])
def test_another_cpu_cost_of_an_implementation_is_refused(costs: dict[str, Any]) -> None:
    manifest = replace(campaign(8e6).manifest, **costs)

    def with_cost(cost: CpuCost) -> Manifest:
        changed = tuple(replace(each, cpu_cost=cost) for each in manifest.implementations[:1])
        return replace(manifest, implementations=(*changed, *manifest.implementations[1:]))

    first, again, other = (
        CpuCost(DEFAULT, measured="2026-11-27"), CpuCost(DEFAULT, measured="2026-11-28"), CpuCost(None, DEFAULT),
    )  # fmt: skip
    assert fit(with_cost(first), with_cost(again)).faults == ()
    assert fit(with_cost(first), with_cost(other)).faults == ("The CPU cost of picoquic is not that of the baseline.",)


def test_costs_per_system_call_are_not_compared_with_cost_models() -> None:
    manifest = campaign(8e6).manifest
    before, now = replace(manifest, own_cpu_costs=True), replace(manifest, cpu_cost=None, cpu_cost_factor=1.0)
    [fault] = fit(before, now).faults
    assert "measured or default CPU costs" in fault
    assert "CPU costs of cost models" in fault


def test_another_processor_is_told() -> None:
    manifest = campaign(8e6).manifest
    found = fit(replace(manifest, processor="A (family 1)"), replace(manifest, processor="A (family 2)\x1b[31m"))
    assert found.faults == ()
    assert found.notes[0].startswith("The baseline ran on A (family 1), and the campaign on A (family 2)")
    assert "\x1b" not in found.notes[0]
    unknown = replace(manifest, processor="")
    [note] = fit(unknown, manifest).notes
    assert note.startswith("The processor of the baseline is unknown.")
    [note] = fit(unknown, unknown).notes
    assert note.startswith("The processor of the baseline and of the campaign is unknown.")


def test_unknown_images_are_told() -> None:
    one = with_images(campaign(8e6), picoquic=image(1), quiche=image(2)).manifest
    for known, told in ((("picoquic",), "quiche"), ((), "picoquic, quiche")):
        other = replace(one, images={name: one.images[name] for name in known})
        for before, after, which in ((other, one, "baseline"), (one, other, "campaign")):
            words = f"Images of the {which} that are unknown, so that they may differ: {told}."
            assert [note for note in fit(before, after).notes if "unknown" in note] == [words]


def test_another_virtual_machine_does_not_fit() -> None:
    one, other = (
        with_images(campaign(8e6), virtual_time=image(1 + (source == "b"), f"quicsat/virtual-time:{source}")).manifest
        for source in "ab"
    )
    [fault] = fit(one, other).faults
    assert fault.startswith("The image of virtual-time is not that of the baseline")
    assert fit(one, one).faults == ()


def test_in_real_time_seeds_may_differ() -> None:
    manifest = result_set(runs(8e6)).manifest
    assert fit(manifest, replace(manifest, seed=9)).faults == ()


def test_an_image_that_was_built_again_and_another_version_are_told() -> None:
    one, other = (
        with_images(campaign(8e6), picoquic=image(number, "quicsat/picoquic:abc")).manifest for number in (1, 2)
    )
    found = fit(one, replace(other, tool_version="0.2.0"))
    assert found.faults == ()
    assert [note.split(",")[0] for note in found.notes] == [
        "The baseline was made with quicsat 0.1.0",
        "Built again from the same sources since the baseline: picoquic.",
    ]
