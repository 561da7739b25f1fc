"""Judges the cells of a campaign by what is expected of it: known failures, goodput floors, a baseline; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from interop.model.expectations import CellPattern, Expectations, GoodputFloor, KnownFailure
from interop.model.results import ImageFacts, Manifest, ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.model.text import printable
from interop.model.units import mbit_per_s, percent
from interop.plan.order import is_named
from interop.plan.stored_plan import plan_of
from interop.statistics import comparison
from interop.statistics.comparison import BETTER, WORSE, Change, PairChange
from interop.statistics.samples import CONCLUSIVE, GOODPUT, PairOutcome, Sample, samples

Cell = tuple[str, str, str]
"""Server, client and test case."""
_LOST = frozenset({PairOutcome.UNSUPPORTED, PairOutcome.NOT_RUN})
"""Outcomes of a planned cell that do not show whether it became worse."""


NAMED = 3
"""Entries that the advice to narrow a known failure names."""
COMMIT = 19
"""Characters that are shown of a commit, or of an image's identity, which begins with ``sha256:``."""


class Finding(StrEnum):
    """What is found about a cell, worst first."""

    ERROR = "harness error"
    """All of its attempts ended with a fault of ours."""
    BROKEN = "new failure"
    """It succeeded in the baseline, or succeeded more often."""
    FAILURE = "unexpected failure"
    """A repetition failed, and neither a known failure nor the baseline says so."""
    LOST = "no result"
    """It had a result in the baseline, or has a goodput floor, and is now unsupported or was not run."""
    SLOWER = "slower than the baseline"
    BELOW_FLOOR = "below the goodput floor"
    UNFINISHED = "unfinished"
    """The campaign was interrupted before all runs of the cell were made."""
    PARTLY_SLOWER = "slower with some seeds"
    """Slower in the mean over three or more seeds, but not with each of them: chance may have done it."""
    UNEXPECTED_SUCCESS = "unexpected success"
    """A known failure succeeded."""
    FIXED = "fixed"
    """It succeeds, or succeeds more often than in the baseline."""
    FASTER = "faster than the baseline"
    KNOWN_FAILURE = "known failure"
    FAILS_AS_BEFORE = "fails as in the baseline"
    NOT_RUN = "not run"
    UNSUPPORTED = "unsupported"
    PASSED = "passed"


UNEXPECTED = frozenset({Finding.BROKEN, Finding.FAILURE, Finding.LOST, Finding.SLOWER, Finding.BELOW_FLOOR})
"""Findings that make a campaign fail."""
CHANGED = UNEXPECTED | {
    Finding.ERROR,
    Finding.PARTLY_SLOWER,
    Finding.UNEXPECTED_SUCCESS,
    Finding.FIXED,
    Finding.FASTER,
}
"""Findings that a reader is told."""
_CHANGES = {
    Change.BROKEN: Finding.BROKEN,
    Change.LESS_RELIABLE: Finding.BROKEN,
    Change.FIXED: Finding.FIXED,
    Change.MORE_RELIABLE: Finding.FIXED,
    Change.FASTER: Finding.FASTER,
}


@dataclass(frozen=True)
class JudgedCell:
    """A pair in a test case."""

    sample: Sample
    case: TestCase
    finding: Finding
    """The worst."""
    details: tuple[str, ...]
    """What was expected and what was found, a sentence each, the worst first; empty if there is nothing to tell."""
    results: tuple[RunResult, ...]
    before: tuple[RunResult, ...] = ()
    """The results of the baseline; empty if it has none or if there is no baseline."""
    change: PairChange | None = None
    """From the baseline; None without one."""

    @property
    def unexpected(self) -> bool:
        """Whether the cell makes the campaign fail."""
        return self.finding in UNEXPECTED


@dataclass(frozen=True)
class Judgement:
    """All cells of a campaign, worst first, and what is to be told about it as a whole."""

    cells: tuple[JudgedCell, ...]
    notes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Implementations that fail more often than in the baseline over all their pairs together, a sentence each."""
    builds: tuple[str, ...] = ()
    """What is compared with what, for each image under test a sentence; empty without a baseline."""
    unfinished: str = ""
    """``4 of 9 runs measured; unfinished.``; empty if the campaign has all of its runs."""

    @property
    def changed(self) -> tuple[JudgedCell, ...]:
        """The cells that a reader is told about."""
        return tuple(cell for cell in self.cells if cell.finding in CHANGED)

    @property
    def failed(self) -> bool:
        """Whether something is worse than expected."""
        return bool(self.groups) or any(cell.unexpected for cell in self.cells)

    @property
    def counts(self) -> str:
        """``2 slower than the baseline, 5 passed``."""
        found = Counter(cell.finding for cell in self.cells)
        return ", ".join(f"{found[each]} {each.value}" for each in Finding if found[each])


def judge(
    results: ResultSet, expected: Expectations, baseline: ResultSet | None = None, notes: Sequence[str] = ()
) -> Judgement:
    """The judgement of a campaign; ``baseline`` must be comparable, and ``notes`` says how it differs.

    See ``interop.statistics.baselines``.
    """
    changes, groups = _changes(results, baseline)
    left = _left(results)
    planned = list(_planned(results))
    needed = _needed(planned, expected, changes, left)
    cells = [
        _judge(results, sample, case, expected, baseline, changes, left[_cell(sample)], needed)
        for sample, case in planned
    ]
    cells.sort(key=lambda cell: list(Finding).index(cell.finding))
    told = [*notes, *_unused(expected, planned), *_not_measured(planned, baseline)]
    builds = tuple(_builds(baseline.manifest, results.manifest)) if baseline is not None else ()
    progress = f"{len(results.done)} of {results.manifest.planned_runs} runs measured; unfinished." if left else ""
    return Judgement(tuple(cells), tuple(told), groups, builds, progress)


def _cell(sample: Sample) -> Cell:
    return sample.server, sample.client, sample.test_case


def _left(results: ResultSet) -> Counter[Cell]:
    """Number of runs of each cell that a campaign which was cut short has not made."""
    if results.finished is not None:
        return Counter()
    keys = [run.key for run in plan_of(results.manifest)]
    return Counter((key.server, key.client, key.test_case) for key in keys if key not in results.done)


def _builds(before: Manifest, now: Manifest) -> Iterator[str]:
    """``quic-go: v0.65.0, commit 12ab in the baseline of 2026-11-24; v0.65.0, commit 34cd now.``"""
    for name, image in now.images.items():
        if is_named(name, now.must_include) and name in before.images:
            then = f"{_build(before.images[name])} in the baseline of {printable(before.started[:10])}"
            yield f"{name}: {then}; {_build(image)} now."


def _build(image: ImageFacts) -> str:
    """Version and commit of an image, or its identity where its labels do not name a commit."""
    revision = image.provenance.revision
    words = (image.version, f"commit {revision[:COMMIT]}" if revision else f"image {image.id[:COMMIT]}")
    return printable(", ".join(filter(None, words)))


def _changes(results: ResultSet, baseline: ResultSet | None) -> tuple[dict[Cell, PairChange], tuple[str, ...]]:
    if baseline is None:
        return {}, ()
    found = comparison.campaigns(baseline, results, results.manifest.test_cases)
    groups = (
        f"Server {each.first.server}, client {each.first.client}: {each.change.value} than in the baseline, "
        f"{each.first.succeeded}/{each.first.conclusive} then, {each.second.succeeded}/{each.second.conclusive} now."
        for each in found.groups
        if each.change in WORSE
    )
    return {_cell(each.first): each for each in found.pairs}, tuple(groups)


def _planned(results: ResultSet) -> Iterator[tuple[Sample, TestCase]]:
    """The cells of the plan, with or without results."""
    required = results.manifest.must_include
    for case in results.manifest.test_cases:
        for sample in samples(results, case.name, GOODPUT):
            if not required or is_named(sample.server, required) or is_named(sample.client, required):
                yield sample, case


def _judge(
    results: ResultSet,
    sample: Sample,
    case: TestCase,
    expected: Expectations,
    baseline: ResultSet | None,
    changes: Mapping[Cell, PairChange],
    left: int,
    needed: Mapping[KnownFailure, Sequence[Cell]],
) -> JudgedCell:
    change = changes.get(_cell(sample))
    findings = _findings(sample, case, expected, change, left, needed)
    found = sorted(findings, key=lambda each: list(Finding).index(each[0]))
    details = tuple(text for _, text in found if text)
    own = _of(results, sample, case.name)
    before = _of(baseline, sample, case.name) if baseline is not None else ()
    return JudgedCell(sample, case, found[0][0], details, own, before, change)


def _of(results: ResultSet, sample: Sample, test_case: str) -> tuple[RunResult, ...]:
    wanted = (sample.server, sample.client, test_case)
    mine = [each for each in results.results if (each.server, each.client, each.test_case) == wanted]
    return tuple(sorted(mine, key=lambda each: each.repetition))


def _findings(
    sample: Sample,
    case: TestCase,
    expected: Expectations,
    change: PairChange | None,
    left: int,
    needed: Mapping[KnownFailure, Sequence[Cell]],
) -> list[tuple[Finding, str]]:
    """All that is found about a cell, with a sentence; at least one finding."""
    outcome = sample.pair_outcome
    if outcome is PairOutcome.ERROR:
        return [(Finding.ERROR, "All attempts ended with a fault of quicsat or of the machine.")]
    known = _excuse(sample, case, expected)
    rest = [(Finding.UNFINISHED, f"Remaining runs of this cell: {left}.")] if left else []
    if outcome is PairOutcome.NOT_RUN and rest:
        return rest
    if outcome in _LOST:
        return [*rest, _lost(sample, expected.floors if known is None else (), case, change if known is None else None)]
    success = [_known(sample, known, needed.get(known, ()))] if known is not None else _outcome(sample, change)
    found = [*rest, *success, *_speed(change, expected), *_floors(sample, case, expected)]
    return found or [(Finding.PASSED, "")]


def _lost(
    sample: Sample, floors: Sequence[GoodputFloor], case: TestCase, change: PairChange | None
) -> tuple[Finding, str]:
    outcome = sample.pair_outcome
    if change is not None and change.first.conclusive:
        return Finding.LOST, f"The baseline has a result of this cell, and now it is {outcome.value}."
    if any(each.cells.fits(sample.server, sample.client, case) for each in floors):
        return Finding.LOST, f"A goodput floor applies to this cell, and it is {outcome.value}."
    return (Finding.UNSUPPORTED if outcome is PairOutcome.UNSUPPORTED else Finding.NOT_RUN), ""


def _known(sample: Sample, known: KnownFailure, needed: Sequence[Cell]) -> tuple[Finding, str]:
    reason = f": {printable(known.reason)}" if known.reason else ""
    if sample.pair_outcome is not PairOutcome.SUCCEEDED:
        return Finding.KNOWN_FAILURE, f"It is expected to fail{reason}."
    narrow = f"Narrow the known failure to the cells that did not succeed: {_entries(needed)}."
    advice = narrow if needed else "Remove the known failure."
    return Finding.UNEXPECTED_SUCCESS, f"It succeeded, and is expected to fail{reason}. {advice}"


def _excuse(sample: Sample, case: TestCase, expected: Expectations) -> KnownFailure | None:
    """The known failure that applies to a cell."""
    fitting = (each for each in expected.known_failures if each.cells.fits(sample.server, sample.client, case))
    return next(fitting, None)


def _needed(
    planned: Iterable[tuple[Sample, TestCase]],
    expected: Expectations,
    changes: Mapping[Cell, PairChange],
    left: Counter[Cell],
) -> dict[KnownFailure, list[Cell]]:
    """The cells of each known failure that did not succeed, and would no longer be excused without it."""
    found: defaultdict[KnownFailure, list[Cell]] = defaultdict(list)
    for sample, case in planned:
        cell, outcome = _cell(sample), sample.pair_outcome
        failing = outcome is not PairOutcome.SUCCEEDED
        if outcome in _LOST and not left[cell]:
            failing = _lost(sample, expected.floors, case, changes.get(cell))[0] is Finding.LOST
        if failing and (known := _excuse(sample, case, expected)) is not None:
            found[known].append(cell)
    return found


def _entries(cells: Iterable[Cell]) -> str:
    """Entries of an expectations file for just these cells: ``{server: a, client: [b, c], test: sat}``."""
    merged: list[tuple[tuple[str, ...], ...]] = [tuple((name,) for name in cell) for cell in cells]
    for place in (1, 0, 2):
        alike: defaultdict[tuple[tuple[str, ...], ...], list[str]] = defaultdict(list)
        for each in merged:
            alike[each[:place] + each[place + 1 :]].extend(each[place])
        merged = [(*rest[:place], tuple(names), *rest[place:]) for rest, names in alike.items()]
    more = f" and {len(merged) - NAMED} more" if len(merged) > NAMED else ""
    return f"{', '.join(CellPattern(*each).entry for each in merged[:NAMED])}{more}"


def _outcome(sample: Sample, change: PairChange | None) -> Iterator[tuple[Finding, str]]:
    """Failures, and their change from the baseline."""
    shown = f"{sample.succeeded} of {sample.conclusive} repetitions succeeded"
    kind = _CHANGES.get(change.change) if change is not None else None
    if change is not None and kind in (Finding.BROKEN, Finding.FIXED):
        yield kind, f"{shown}; in the baseline, {change.first.succeeded} of {change.first.conclusive}."
    elif sample.pair_outcome in CONCLUSIVE - {PairOutcome.SUCCEEDED}:
        before = change.first if change is not None else None
        if before is not None and before.succeeded < before.conclusive:
            yield Finding.FAILS_AS_BEFORE, f"{shown}; in the baseline, {before.succeeded} of {before.conclusive}."
        else:
            yield Finding.FAILURE, f"{shown}."


def _speed(change: PairChange | None, expected: Expectations) -> Iterator[tuple[Finding, str]]:
    if change is None or change.change not in (Change.SLOWER, Change.FASTER) or change.ratio is None:
        return
    seeds = change.seeds
    direction = f" {seeds.agreeing} of {seeds.numbers} seeds agree." if seeds is not None and seeds.direction else ""
    text = f"The goodput changed by {change.ratio * 100:+.1f} %{_means(change)}.{direction}"
    if change.change in BETTER:
        yield Finding.FASTER, text
    elif -change.ratio >= (expected.regression or 0.0):
        unanimous = seeds is None or not seeds.direction or seeds.agreeing == seeds.numbers
        yield Finding.SLOWER if unanimous else Finding.PARTLY_SLOWER, text


def _means(change: PairChange) -> str:
    before, after = change.first.mean, change.second.mean
    return f", from {mbit_per_s(before)} to {mbit_per_s(after)}" if before is not None and after is not None else ""


def _floors(sample: Sample, case: TestCase, expected: Expectations) -> Iterator[tuple[Finding, str]]:
    floors = [each.rate for each in expected.floors if each.cells.fits(sample.server, sample.client, case)]
    mean = sample.mean
    if floors and mean is not None and mean < max(floors):
        short = percent(1 - mean / max(floors), 1)
        yield (
            Finding.BELOW_FLOOR,
            f"The goodput is {mbit_per_s(mean)}, {short} below the floor of {mbit_per_s(max(floors))}.",
        )


def _unused(expected: Expectations, planned: Sequence[tuple[Sample, TestCase]]) -> Iterator[str]:
    """Entries of the expectations that are for none of the cells: mistyped, or for another campaign."""
    for kind, entries in (("known failure", expected.known_failures), ("goodput floor", expected.floors)):
        for entry in entries:
            if not any(entry.cells.fits(sample.server, sample.client, case) for sample, case in planned):
                yield f"The {kind} for {entry.cells} is for no cell of this campaign."


def _not_measured(planned: Sequence[tuple[Sample, TestCase]], baseline: ResultSet | None) -> Iterator[str]:
    if baseline is None:
        return
    mine = {_cell(sample) for sample, _ in planned}
    theirs = {(each.server, each.client, each.test_case) for each in baseline.results}
    if lost := len(theirs - mine):
        yield f"{lost} of the {len(theirs)} cells of the baseline are not part of this campaign."
    if fresh := len(mine - theirs):
        yield f"{fresh} of the {len(mine)} cells of this campaign are not in the baseline."
