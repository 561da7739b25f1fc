"""Whether a campaign can be compared with a baseline: all that is not under test must be the same; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quicsat.model.clock import Clock
from quicsat.model.errors import InputError
from quicsat.model.implementation import OWN_IMAGES
from quicsat.model.results import ImageFacts, Manifest
from quicsat.model.text import printable
from quicsat.plan.order import is_named
from quicsat.statistics.other_images import same_recipe, told_apart, unknown_images
from quicsat.statistics.same_conditions import differing
from quicsat.statistics.same_seeds import other_processor, same_costs, unknown_processor

SAVE = (
    "Measure again with the same test cases and options as for the baseline, or save a new baseline: "
    "./run.py baseline save DIR FILE"
)


_NAMES = ("baseline", "campaign")


@dataclass(frozen=True)
class BaselineFit:
    """How a campaign differs from its baseline, in sentences."""

    faults: tuple[str, ...]
    """Differences because of which a comparison would not show what the implementation under test has changed."""
    notes: tuple[str, ...]
    """Differences that a reader should know."""


def fit(baseline: Manifest, now: Manifest) -> BaselineFit:
    """Compare the conditions of both; under test are the implementations of ``--must-include``."""
    return BaselineFit(
        (*_clock(baseline, now), *_test_cases(baseline, now), *_images(baseline, now)),
        (
            *_versions(baseline, now),
            *_machines(baseline, now),
            *unknown_processor(baseline, now, _NAMES),
            *unknown_images(baseline, now, _NAMES),
            *_rebuilt(baseline, now),
            *_under_test(baseline, now),
        ),
    )


def check_fit(baseline: Manifest, now: Manifest) -> tuple[str, ...]:
    """The notes of :func:`fit`; raises InputError with its faults."""
    found = fit(baseline, now)
    if found.faults:
        raise InputError(*found.faults, SAVE)
    return found.notes


def _clock(baseline: Manifest, now: Manifest) -> Iterator[str]:
    if baseline.time != now.time:
        yield f"The baseline used {baseline.time}, and this campaign {now.time}."
        return
    if now.clock is not Clock.VIRTUAL:
        return
    if baseline.seed != now.seed:
        yield f"The baseline has the seed {baseline.seed}, and this campaign {now.seed}: use --seed {baseline.seed}."
    before = {each.name: each.cpu_cost for each in baseline.implementations}
    for each in now.implementations:
        if now.own_cpu_costs and each.name in before and before[each.name] != each.cpu_cost:
            yield f"The CPU cost of {each.name} is not that of the baseline."


def _test_cases(baseline: Manifest, now: Manifest) -> Iterator[str]:
    known = {case.name: case for case in baseline.test_cases}
    if not known.keys() & {case.name for case in now.test_cases}:
        yield f"The baseline has none of the test cases of this campaign; it has {', '.join(known)}."
    for case in now.test_cases:
        if case.name in known and (words := differing(known[case.name], case)):
            yield f"The test case {case.name} has other conditions than in the baseline: {words}."


def _images(baseline: Manifest, now: Manifest) -> Iterator[str]:
    for name, before, after in _others(baseline, now):
        if before.id != after.id and not same_recipe(before, after):
            test = "" if name in OWN_IMAGES else f" If {name} is under test, say so with --must-include {name}."
            yield f"The image of {name} is not that of the baseline ({told_apart(before, after)}).{test}"


def _rebuilt(baseline: Manifest, now: Manifest) -> Iterator[str]:
    names = [name for name, one, other in _others(baseline, now) if one.id != other.id and same_recipe(one, other)]
    if names:
        yield f"Built again from the same sources since the baseline: {', '.join(names)}."


def _others(baseline: Manifest, now: Manifest) -> Iterator[tuple[str, ImageFacts, ImageFacts]]:
    """Images that are not under test and that both have."""
    for name, image in now.images.items():
        if name in baseline.images and not is_named(name, now.must_include):
            yield name, baseline.images[name], image


def _versions(baseline: Manifest, now: Manifest) -> Iterator[str]:
    before, after = _version(baseline), _version(now)
    if before != after:
        yield (
            f"The baseline was made with quicsat {before}, and this campaign with {after}; what quicsat has changed "
            "since may look like a change of the implementation."
        )


def _machines(baseline: Manifest, now: Manifest) -> Iterator[str]:
    if not same_costs(baseline, now):
        return
    if other_processor(baseline, now):
        yield (
            f"The baseline ran on {printable(baseline.processor)}, and this campaign on {printable(now.processor)}. "
            "Runs with the same seed may not be exactly the same there, so quicsat uses the same statistical tests as "
            "for real-time campaigns. It finds small changes only with several seeds, or with a baseline from the same "
            "kind of machine."
        )


def _version(manifest: Manifest) -> str:
    return printable(manifest.versions.quicsat if manifest.versions is not None else manifest.tool_version)


def _under_test(baseline: Manifest, now: Manifest) -> Iterator[str]:
    for name, after in now.images.items():
        before = baseline.images.get(name)
        if is_named(name, now.must_include) and before is not None and before.id == after.id:
            yield f"The image of {name} is that of the baseline: nothing can have changed."
