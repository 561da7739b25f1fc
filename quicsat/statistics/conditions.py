"""Whether two campaigns ran under the same conditions; pure.

A comparison shows what the implementations under test have changed only if all else is the same. ``baseline check``,
``compare``, the website and nightly messages follow what is found here: docs/reference/exit-status.md.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

from quicsat.model.clock import Clock
from quicsat.model.errors import InputError
from quicsat.model.implementation import OWN_IMAGES, Implementation
from quicsat.model.link_format import format_link
from quicsat.model.names import is_named
from quicsat.model.perturbation import NONE
from quicsat.model.results import ImageFacts, Manifest, ResultSet
from quicsat.model.test_case import TestCase, constant_rate, files_in_words
from quicsat.model.text import printable
from quicsat.model.units import mbit_per_s, seconds
from quicsat.statistics.samples import find_case

SAVE = (
    "Measure again with the same test cases and options as for the baseline, or save a new baseline: "
    "./run.py baseline save DIR FILE"
)
BUILT = "quicsat/"
"""Begin of references of images that quicsat builds; their tag is a digest of all sources that the build reads."""
NO_CONDITIONS = frozenset(
    {"name", "abbreviation", "description", "source", "repetitions", "objectives", "random_numbers_of"}
)
"""Fields of a test case that do not change a run of it with the same seed."""
IN_FILES_OF_OTHERS = frozenset({"timeout", "link"})
"""Conditions that files of other runners contain at least in part: the time limit, and the rate of the link."""
BASELINE = ("baseline", "campaign")
PLACEBO = ("campaign", "placebo")
CAMPAIGNS = ("first campaign", "second campaign")
"""What sentences call the two."""


@dataclass(frozen=True)
class Differences:
    """How the conditions of a campaign differ from those of an earlier one, in sentences."""

    faults: tuple[str, ...]
    """Those because of which a comparison would not show what the implementations under test have changed."""
    notes: tuple[str, ...]
    """Those that a reader should know."""


Matches = Sequence[tuple[TestCase, TestCase]]


def check_fit(baseline: Manifest, now: Manifest) -> tuple[str, ...]:
    """The notes on a campaign and its baseline; raises InputError with the faults.

    Under test are the implementations of ``--must-include``.
    """
    found = differences(baseline, now, matching(baseline.test_cases, now.test_cases), now.must_include, BASELINE)
    if found.faults:
        raise InputError(*found.faults, SAVE)
    return (*found.notes, *_unchanged(baseline, now))


def with_placebo(results: ResultSet, placebo: ResultSet, place: str) -> ResultSet:
    """A campaign with the runs of its placebo in ``place``; raises InputError if their builds or conditions differ."""
    before, now = results.manifest, replace(placebo.manifest, placebo=False)
    faults = differences(before, now, matching(before.test_cases, now.test_cases), (), PLACEBO).faults
    if not placebo.manifest.placebo:
        faults = (f"{place}: is no placebo. `run --placebo` measures one.", *faults)
    if faults:
        raise InputError(*faults)
    return replace(results, placebo=placebo.results)


def _unchanged(baseline: Manifest, now: Manifest) -> Iterator[str]:
    for name, image in now.images.items():
        if is_named(name, now.must_include) and name in baseline.images and baseline.images[name].id == image.id:
            yield f"The image of {name} is that of the baseline: nothing can have changed."


def matching(cases: Iterable[TestCase], others: Sequence[TestCase]) -> list[tuple[TestCase, TestCase]]:
    """Each test case with that of the others of the same name or abbreviation; without those that have none."""
    found = ((case, find_case(others, case.name) or find_case(others, case.abbreviation)) for case in cases)
    return [(case, other) for case, other in found if other is not None]


def differences(
    before: Manifest, now: Manifest, cases: Matches, under_test: Iterable[str], parties: tuple[str, str] = CAMPAIGNS
) -> Differences:
    """What differs; ``cases``: see :func:`matching`; ``under_test``: implementations; ``parties``: in words."""
    tested = frozenset(under_test)
    one = parties[0]
    own = (*_images(before, now, tested, one), *_parameters(before, now, tested, one))
    return Differences(
        (*_options(before, now, parties), *_test_cases(before, cases, one), *(each for each, fault in own if fault)),
        (
            *_versions(before, now, parties),
            *_machines(before, now, parties),
            *_unknown_images(before, now, parties),
            *(each for each, fault in own if not fault),
        ),
    )


def times_in_words(manifests: Sequence[Manifest]) -> list[str]:
    """The clock of each campaign; says so where there are no perturbations, if others have them."""
    perturbed = any(each.amplitudes != NONE for each in manifests)
    return [
        f"{each.time.removesuffix(')')}; not perturbed)"
        if perturbed and each.clock is Clock.VIRTUAL and each.amplitudes == NONE
        else each.time
        for each in manifests
    ]


# ---- options ----------------------------------------------------------------------------------


def _options(before: Manifest, now: Manifest, parties: tuple[str, str]) -> Iterator[str]:
    one, other = parties
    if before.time != now.time:
        then, today = times_in_words((before, now))
        yield f"The {one} used {then}, and the {other} {today}."
    elif now.clock is Clock.VIRTUAL and before.seed != now.seed and before.tool_version and now.tool_version:
        yield f"The {one} has the seed {before.seed}, and the {other} {now.seed}: use --seed {before.seed}."
    if {before.options.get("qlog"), now.options.get("qlog")} == {True, False}:
        yield f"Only the {other if now.options['qlog'] else one} requested qlogs, which slow some endpoints down."


# ---- test cases -------------------------------------------------------------------------------


def _test_cases(before: Manifest, cases: Matches, one: str) -> Iterator[str]:
    if not cases:
        names = ", ".join(case.name for case in before.test_cases)
        yield f"The {one} has none of the test cases of this campaign; it has {printable(names)}."
    for case, other in cases:
        if words := differing(case, other):
            yield f"The test case {case.name} has other conditions than in the {one}: {words}."


def differing(before: TestCase, after: TestCase) -> str:
    """``time limit 60.0 s → 5.0 s, chain length``: with values if they are short; empty if nothing known differs."""
    return ", ".join(_differing(before, after))


def _differing(before: TestCase, after: TestCase) -> Iterator[str]:
    conditions = [each.name for each in fields(TestCase) if each.name not in NO_CONDITIONS]
    partly = before.partly_known or after.partly_known
    for field in (name for name in conditions if not partly or name in IN_FILES_OF_OTHERS):
        if getattr(before, field) == getattr(after, field):
            continue
        if field == "timeout":
            if before.timeout and after.timeout:
                yield _changed("time limit", seconds(before.timeout), seconds(after.timeout))
        elif field == "link" and partly:
            yield from _rates(constant_rate(before.link), constant_rate(after.link))
        elif field == "file_sizes":
            yield _changed("files", files_in_words(before), files_in_words(after))
        elif field == "link":
            yield _changed("link", format_link(before.link), format_link(after.link))
        else:
            yield field.replace("_", " ")


def _rates(before: float | None, after: float | None) -> Iterator[str]:
    if before is not None and after is not None and not math.isclose(before, after):
        yield _changed("rate of the link", mbit_per_s(before), mbit_per_s(after))


def _changed(name: str, before: str, after: str) -> str:
    """Without values if they differ in what their words leave out."""
    return printable(f"{name} {before} → {after}", None) if before != after else name


# ---- implementations --------------------------------------------------------------------------


def _images(before: Manifest, now: Manifest, tested: frozenset[str], one: str) -> Iterator[tuple[str, bool]]:
    """Sentences on the images, and whether each is a fault."""
    rebuilt = list[str]()
    for name, image in now.images.items():
        other = before.images.get(name)
        if other is None or other.id == image.id or is_named(name, tested):
            continue
        if _same_recipe(other, image):
            rebuilt.append(name)
        else:
            test = "" if name in OWN_IMAGES else f" If {name} is under test, measure with --must-include {name}."
            yield f"The image of {name} is not that of the {one} ({_told_apart(other, image)}).{test}", True
    if rebuilt:
        yield f"Built again from the same sources since the {one}: {', '.join(rebuilt)}.", False


def changed_images(before: Manifest, after: Manifest) -> tuple[str, ...]:
    """``quic-go: version v0.65.0, image 0123456789ab → ba9876543210``, of each image that differs."""
    found = []
    for name, image in after.images.items():
        other = before.images.get(name)
        if other is not None and other.id != image.id:
            again = ", built again from the same sources" if _same_recipe(other, image) else ""
            found.append(f"{printable(name)}: {_told_apart(other, image)}{again}")
    return tuple(found)


def _told_apart(before: ImageFacts, after: ImageFacts) -> str:
    """The versions of two images, as far as they are known, and their ids."""
    then, now = (printable(each.version) or "unknown" for each in (before, after))
    version = f"version {then} → {now}, " if then != now else f"version {now}, " if before.version else ""
    return f"{version}image {printable(before.short_id)} → {printable(after.short_id)}"


def _same_recipe(before: ImageFacts, after: ImageFacts) -> bool:
    """Whether quicsat built both from the same files."""
    return before.reference == after.reference and before.reference.startswith(BUILT) and before.source != "pulled"


def _unknown_images(before: Manifest, now: Manifest, parties: tuple[str, str]) -> Iterator[str]:
    """Sentences on the images of which only one campaign says what they are, so that they may differ."""
    for name, known, other in zip(parties, (before, now), (now, before), strict=True):
        taking_part = {*known.servers, *known.clients, *OWN_IMAGES}
        if missing := [each for each in other.images if each in taking_part and each not in known.images]:
            yield f"Images of the {name} that are unknown, so that they may differ: {printable(', '.join(missing))}."


def _parameters(before: Manifest, now: Manifest, tested: frozenset[str], one: str) -> Iterator[tuple[str, bool]]:
    """Sentences on the settings of implementations, and whether each is a fault."""
    if before.parameters is not None and now.parameters is not None:
        for name in sorted(before.parameters.keys() | now.parameters.keys()):
            then, word = (each.get(name, "") for each in (before.parameters, now.parameters))
            if then != word:
                all_tested = all(is_named(each, tested) for each in (*now.servers, *now.clients))
                told = f"{name} is not that of the {one}: {then!r} then, {word!r} now."
                yield printable(told, None), not all_tested
    known = {each.name: each for each in before.implementations}
    for each in now.implementations:
        if each.name in known:
            if now.clock is Clock.VIRTUAL and _costs(known[each.name], now) != _costs(each, now):
                yield f"The CPU cost of {each.name} is not that of the {one}.", True
            if settings(known[each.name]) != settings(each):
                yield f"The parameters of {each.name} are not those of the {one}.", not is_named(each.name, tested)


def _costs(of: Implementation, campaign: Manifest) -> object:
    """What computing takes an implementation in a campaign; all had the same costs in some of earlier versions."""
    modelled = campaign.cpu_cost_factor is not None or campaign.own_cpu_costs
    return (of.cpu_cost.server, of.cpu_cost.client) if modelled else None


def settings(of: Implementation) -> tuple[object, ...]:
    """What decides how its image behaves."""
    return of.server_parameters, of.client_parameters, of.contract


# ---- machines ---------------------------------------------------------------------------------


def _versions(before: Manifest, now: Manifest, parties: tuple[str, str]) -> Iterator[str]:
    then, later = _version(before), _version(now)
    if then and later and then != later:
        one, other = parties
        yield (
            f"The {one} was made with quicsat {then}, and the {other} with {later}; what quicsat has changed "
            "since may look like a change of the implementation."
        )


def _version(manifest: Manifest) -> str:
    return printable(manifest.versions.quicsat if manifest.versions is not None else manifest.tool_version)


def _machines(before: Manifest, now: Manifest, parties: tuple[str, str]) -> Iterator[str]:
    if not before.clock is now.clock is Clock.VIRTUAL:
        return
    one, other = parties
    if before.processor and now.processor and before.processor != now.processor:
        yield (
            f"The {one} ran on {printable(before.processor)}, and the {other} on {printable(now.processor)}. "
            "Runs with the same seed may not be exactly the same there."
        )
    unknown = [name for name, each in zip(parties, (before, now), strict=True) if not each.processor]
    if unknown:
        yield (
            f"The processor of the {' and of the '.join(unknown)} is unknown. On another one, runs with the same seed "
            "may not be exactly the same."
        )
