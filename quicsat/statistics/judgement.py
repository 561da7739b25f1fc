"""Judges the cells of a campaign by what is expected of it: known failures, goodput floors, a baseline; pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from quicsat.model.expectations import CellPattern, Expectations, GoodputFloor, KnownFailure
from quicsat.model.names import is_named
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ImageFacts, Manifest, ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted, first_few, printable
from quicsat.model.units import mbit_per_s, percent
from quicsat.plan.stored_plan import plan_of
from quicsat.statistics import comparison
from quicsat.statistics.comparison import (
    ALL,
    BETTER,
    COARSEST,
    PERHAPS_WORSE,
    WORSE,
    Cell,
    Change,
    Comparison,
    Conclusion,
    Doubt,
    PairChange,
    cell_of,
    conclude,
    detectable_in_words,
    effect_in_words,
    in_words,
    progress,
    time_in_words,
)
from quicsat.statistics.differences import behaviour, differences
from quicsat.statistics.samples import GOODPUT, PairOutcome, Sample, samples
from quicsat.statistics.significance import matters

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
    """A repetition failed; there is no baseline, and no known failure says so."""
    LOST = "unexpectedly unsupported"
    """It had a result in the baseline, or has a goodput floor."""
    SLOWER = "slower than the baseline"
    BELOW_FLOOR = "below the goodput floor"
    UNFINISHED = "unfinished"
    """The campaign was interrupted before all runs of the cell were made."""
    PERHAPS_SLOWER = "slower, not significant"
    """More repetitions would tell whether chance has done it."""
    NO_RESULT = "no result"
    """It was not run, and had a result in the baseline, or has a goodput floor."""
    UNDECIDED = "undecided"
    """It may be worse, and the data cannot show it."""
    SLIGHTLY_SLOWER = "slower, within the limit"
    """By less than what counts as worse."""
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
OPEN = frozenset({Finding.PERHAPS_SLOWER, Finding.NO_RESULT, Finding.UNDECIDED})
"""Findings that do not make a campaign fail, and do not let it succeed either."""
NEWS = frozenset({Finding.SLIGHTLY_SLOWER, Finding.UNEXPECTED_SUCCESS, Finding.FIXED, Finding.FASTER})
"""Findings that reports show, and that let a campaign succeed."""
CHANGED = UNEXPECTED | OPEN | NEWS | {Finding.ERROR}
"""Findings that a reader is told."""
_SPEEDS = {Change.SLOWER: Finding.SLOWER, Change.PERHAPS_SLOWER: Finding.PERHAPS_SLOWER, Change.FASTER: Finding.FASTER}
_CHANGES = {
    Change.BROKEN: Finding.BROKEN,
    Change.LESS_RELIABLE: Finding.BROKEN,
    Change.FIXED: Finding.FIXED,
    Change.MORE_RELIABLE: Finding.FIXED,
    Change.PERHAPS_FIXED: Finding.FIXED,
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


_WITHOUT_RESULT = {PairOutcome.UNSUPPORTED: Finding.UNSUPPORTED, PairOutcome.NOT_RUN: Finding.NOT_RUN}


@dataclass(frozen=True)
class GroupChange:
    """An implementation that changed over all its pairs together, or all pairs."""

    text: str
    """A sentence."""
    worse: bool
    """Whether it makes the campaign fail."""
    details: tuple[str, ...] = ()
    """Where its transfers lost or saved time, and what else differs, a sentence each."""


@dataclass(frozen=True)
class Judgement:
    """All cells of a campaign, worst first, and what is to be told about it as a whole."""

    cells: tuple[JudgedCell, ...]
    notes: tuple[str, ...] = ()
    groups: tuple[GroupChange, ...] = ()
    builds: tuple[str, ...] = ()
    """What is compared with what, for each image under test a sentence; empty without a baseline."""
    unfinished: str = ""
    """``4 of 9 runs measured; unfinished.``; empty if the campaign has all of its runs."""
    open: tuple[str, ...] = ()
    """Why the campaign as a whole cannot be judged, a sentence each, and how it could be."""
    errors: bool = False
    """Whether a run ended with a fault of quicsat or of the machine."""
    power: str = ""
    """Which loss would have been found, a sentence; empty if no goodput was tested."""
    behaviour: tuple[str, ...] = ()
    """What endpoints do differently in cells that are not among the changed ones, a sentence each."""

    @property
    def changed(self) -> tuple[JudgedCell, ...]:
        """The cells that a reader is told about."""
        return tuple(cell for cell in self.cells if cell.finding in CHANGED)

    @property
    def conclusion(self) -> Conclusion:
        """Of all cells together."""
        return conclude(
            worse=any(each.worse for each in self.groups) or any(cell.unexpected for cell in self.cells),
            unfinished=bool(self.unfinished),
            errors=self.errors,
            undecided=bool(self.open) or any(cell.finding in OPEN for cell in self.cells),
        )

    @property
    def counts(self) -> str:
        """``1 worse over several cells, 2 slower than the baseline, 5 passed, undecided as a whole``."""
        found = Counter(cell.finding for cell in self.cells)
        worse = sum(each.worse for each in self.groups)
        parts = [f"{worse} worse over several cells"] if worse else []
        parts += [f"{found[each]} {each.value}" for each in Finding if found[each]]
        whole = self.open and self.conclusion in (Conclusion.ERRORS, Conclusion.UNDECIDED)
        return ", ".join([*parts, *(["undecided as a whole"] if whole else [])])


def judge(
    results: ResultSet,
    expected: Expectations,
    baseline: ResultSet | None = None,
    notes: Sequence[str] = (),
    found: Comparison | None = None,
) -> Judgement:
    """The judgement of a campaign; ``baseline`` must be comparable, and ``notes`` says how it differs.

    ``found``: how the campaign compares with the baseline, if that is known. See ``quicsat.statistics.conditions``.
    """
    loss = expected.regression
    if baseline is not None and found is None:
        found = comparison.campaigns(baseline, results, baseline.manifest.test_cases, loss)
    changes = {cell_of(each.second): each for each in found.pairs} if found is not None else {}
    left = _left(results)
    planned = list(_planned(results))
    needed = _needed(planned, expected, changes, left)
    judged = [
        _judge(results, sample, case, expected, baseline, changes, left[cell_of(sample)], needed)
        for sample, case in planned
    ]
    judged.sort(key=lambda cell: list(Finding).index(cell.finding))
    return Judgement(
        tuple(judged),
        (*notes, *_unused("known failure", expected.known_failures, planned)),
        tuple(_groups(found, loss or 0.0, baseline, results)) if found is not None and baseline is not None else (),
        tuple(_builds(baseline.manifest, results.manifest)) if baseline is not None else (),
        progress(results),
        tuple(_open(results, expected, planned, baseline, found)),
        any(result.verdict.outcome is Outcome.ERROR for result in results.results),
        detectable_in_words(found) if found is not None else "",
        tuple(_behaviour(judged)),
    )


def _open(
    results: ResultSet,
    expected: Expectations,
    planned: Sequence[tuple[Sample, TestCase]],
    baseline: ResultSet | None,
    found: Comparison | None,
) -> Iterator[str]:
    """Why the campaign as a whole cannot be judged."""
    if not any(sample.conclusive for sample, _ in planned):
        yield "No run of this campaign has succeeded or failed, so there is nothing to judge."
    elif found is not None and found.nothing:
        yield "No cell has a valid result in both the baseline and this campaign."
    yield from _unused("goodput floor", expected.floors, planned)
    if baseline is not None and (cut := progress(baseline)):
        yield f"Baseline: {cut}"
    if found is not None and found.gone:
        yield f"Cells of the baseline that are not part of this campaign: {found.gone}."
    if found is not None and found.fresh:
        yield f"Cells of this campaign that have no valid result in the baseline: {found.fresh}. Save a new baseline."
    faults = {cell_of(each) for each in results.results if each.verdict.outcome is Outcome.ERROR}
    if partly := sum(cell_of(sample) in faults and sample.conclusive > 0 for sample, _ in planned):
        yield f"In {counted(partly, 'cell')}, some runs ended with a fault of quicsat or of the machine."
    skipped = {cell_of(each) for each in results.results if each.verdict.outcome is Outcome.SKIPPED}
    if lost := sum(
        cell_of(sample) in skipped and sample.succeeded == sample.conclusive and _excuse(sample, case, expected) is None
        for sample, case in planned
    ):
        yield f"In {counted(lost, 'cell')}, runs were skipped."
    if found is not None and found.blind:
        yield (
            f"In {counted(found.blind, 'cell')}, a loss of "
            f"{percent(max(COARSEST, expected.regression or 0.0))} might not have been found. Use more repetitions."
        )


def _who(change: PairChange) -> str:
    words = in_words(change)
    return f"{words[0].upper()}{words[1:]}"


def _groups(found: Comparison, regression: float, before: ResultSet, after: ResultSet) -> Iterator[GroupChange]:
    """What changed over all pairs of an implementation."""
    for each in found.groups:
        if each.over_all is not None:
            worse = each.change in WORSE and matters(each.over_all, regression)
            within = "" if worse or each.change in BETTER else ", which is within the limit"
            text = f"{_who(each)}: the goodput changed by {effect_in_words(each)}{within}."
            yield GroupChange(text, worse, _reasons(each, before, after))
            continue
        then, now = (f"{sample.succeeded}/{sample.conclusive}" for sample in (each.first, each.second))
        text = f"{_who(each)}: {each.change.value} than in the baseline, {then} then, {now} now."
        yield GroupChange(text, each.change in WORSE)
    for each in found.times:
        worse = each.change in WORSE and matters(each.ratio, regression)
        yield GroupChange(f"{time_in_words(each)}.", worse, _reasons(each, before, after))


def _reasons(change: PairChange, before: ResultSet, after: ResultSet) -> tuple[str, ...]:
    """What differs between the runs of an implementation, or of a cell, that both campaigns have."""
    one = change.first
    if one.server == one.client == ALL:
        return ()
    both = before.done & after.done
    runs = (
        [
            run
            for run in results.results
            if run.key in both
            and one.server in (ALL, run.server)
            and one.client in (ALL, run.client)
            and one.test_case in (ALL, run.test_case)
            and change.over in ("", run.test_case)
        ]
        for results in (before, after)
    )
    return differences(*runs)


def _behaviour(cells: Iterable[JudgedCell]) -> Iterator[str]:
    for cell in cells:
        for text in behaviour(cell.before, cell.results) if cell.finding not in CHANGED else ():
            sample = cell.sample
            yield f"{cell.case.name}, server {sample.server}, client {sample.client}: {text[0].lower()}{text[1:]}"


def _left(results: ResultSet) -> Counter[Cell]:
    """Number of runs of each cell that a campaign lacks."""
    if not results.lacking:
        return Counter()
    made = results.made
    keys = [run.key for run in plan_of(results.manifest)]
    return Counter((key.server, key.client, key.test_case) for key in keys if key not in made)


def _builds(before: Manifest, now: Manifest) -> Iterator[str]:
    """``quic-go: v0.65.0, commit 12ab in the baseline of 2026-11-24; v0.65.0, commit 34cd now.``"""
    for name, image in now.images.items():
        if is_named(name, now.must_include) and name in before.images:
            old = before.images[name]
            alike = _build(old) == _build(image) and old.id != image.id  # another build of the same commit
            one, other = (_build(each, by_commit=not alike) for each in (old, image))
            yield f"{name}: {one} in the baseline of {printable(before.started[:10])}; {other} now."


def _build(image: ImageFacts, *, by_commit: bool = True) -> str:
    """Version and commit of an image, or its identity where its labels do not name a commit."""
    revision = image.provenance.revision if by_commit else ""
    words = (image.version, f"commit {revision[:COMMIT]}" if revision else f"image {image.id[:COMMIT]}")
    return printable(", ".join(filter(None, words)))


def _planned(results: ResultSet) -> Iterator[tuple[Sample, TestCase]]:
    """The cells of the plan, with or without results."""
    for case in results.manifest.test_cases:
        for sample in samples(results, case.name, GOODPUT):
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
    change = changes.get(cell_of(sample))
    findings = _findings(sample, case, expected, change, left, needed, compared=baseline is not None)
    found = sorted(findings, key=lambda each: list(Finding).index(each[0]))
    details = tuple(text for _, text in found if text)
    own = _of(results, sample, case.name)
    before = _of(baseline, sample, case.name) if baseline is not None else ()
    return JudgedCell(sample, case, found[0][0], details, own, before, change)


def _of(results: ResultSet, sample: Sample, test_case: str) -> tuple[RunResult, ...]:
    wanted = (sample.server, sample.client, test_case)
    mine = [each for each in results.results if cell_of(each) == wanted]
    return tuple(sorted(mine, key=lambda each: each.repetition))


def _findings(
    sample: Sample,
    case: TestCase,
    expected: Expectations,
    change: PairChange | None,
    left: int,
    needed: Mapping[KnownFailure, Sequence[Cell]],
    *,
    compared: bool,
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
        lost = _lost(sample, expected.floors, case, change) if known is None else (_WITHOUT_RESULT[outcome], "")
        return [*rest, lost]
    if known is not None:
        success = [_known(sample, known, needed.get(known, ()))]
    else:
        success = [*_outcome(sample, change, compared=compared)]
    found = [*rest, *success, *_speed(change, expected), *_floors(sample, case, expected)]
    if sample.succeeded or known is None:
        found += _undecided(sample, case, expected, change)
    return found or [(Finding.PASSED, "")]


def _undecided(
    sample: Sample, case: TestCase, expected: Expectations, change: PairChange | None
) -> Iterator[tuple[Finding, str]]:
    """What the results of a cell cannot show."""
    doubts = change.doubts if change is not None else frozenset()
    unknown = 0 if case.functional else sample.succeeded - len(sample.values)
    if change is not None and Doubt.PROTOCOL in doubts:
        then, now = (", ".join(sorted(each.protocols)) for each in (change.first, change.second))
        yield Finding.UNDECIDED, f"Its runs used {now}, and those of the baseline {then}."
    if unknown:
        of = counted(sample.succeeded, "success", "successes")
        yield Finding.UNDECIDED, f"The goodput of {unknown} of {of} is unknown."
    elif Doubt.NO_NUMBER in doubts:
        yield Finding.UNDECIDED, "With no seed is the goodput known in the baseline, too."
    elif change is not None and Doubt.BLIND in doubts:
        few = f"{counted(len(change.first.values), 'repetition')} in the baseline and {len(change.second.values)} now"
        told = change.ratio and change.speed not in _SPEEDS  # else :func:`_speed` tells it
        changed = f"The goodput changed by {effect_in_words(change)}. " if told else ""
        yield Finding.UNDECIDED, f"{changed}With {few}, {_detectable(change)} would have been found."
    if Doubt.MISSING in doubts:
        yield Finding.UNDECIDED, "Some of its repetitions are unsupported."


def _detectable(change: PairChange) -> str:
    size = 1.0 if change.detectable is None else change.detectable
    return "not even a total loss" if size >= 1 else f"only a loss of {percent(size)}"


def _lost(
    sample: Sample, floors: Sequence[GoodputFloor], case: TestCase, change: PairChange | None
) -> tuple[Finding, str]:
    outcome = sample.pair_outcome
    finding = Finding.LOST if outcome is PairOutcome.UNSUPPORTED else Finding.NO_RESULT
    if change is not None and change.first.conclusive:
        return finding, f"The baseline has a result of this cell, and now it is {outcome.value}."
    if any(each.cells.fits(sample.server, sample.client, case) for each in floors):
        return finding, f"A goodput floor applies to this cell, and it is {outcome.value}."
    return _WITHOUT_RESULT[outcome], ""


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
        cell, outcome = cell_of(sample), sample.pair_outcome
        failing = outcome is not PairOutcome.SUCCEEDED
        if outcome in _LOST and not left[cell]:
            failing = bool(_lost(sample, expected.floors, case, changes.get(cell))[1])
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
    return first_few((CellPattern(*each).entry for each in merged), NAMED)


def _outcome(sample: Sample, change: PairChange | None, *, compared: bool) -> Iterator[tuple[Finding, str]]:
    """Failures, and their change from the baseline; ``compared``: there is one."""
    now = change.second if change is not None and change.second.conclusive else sample
    shown = f"{now.succeeded} of {counted(now.conclusive, 'repetition')} succeeded"
    before = change.first if change is not None and change.first.conclusive else None
    if change is None or before is None:
        if now.failed:
            new = "; the baseline has no result of this cell" if compared else ""
            yield Finding.UNDECIDED if compared else Finding.FAILURE, f"{shown}{new}."
        return
    kind = _CHANGES.get(change.reliability)
    if kind is None and now.failed:
        kind = Finding.UNDECIDED if change.reliability in PERHAPS_WORSE else Finding.FAILS_AS_BEFORE
    if kind is not None:
        yield kind, f"{shown}; in the baseline, {before.succeeded} of {before.conclusive}."


def _speed(change: PairChange | None, expected: Expectations) -> Iterator[tuple[Finding, str]]:
    """The goodput's change; what is lost within the limit is told and accepted."""
    if change is None or change.ratio is None or change.speed not in _SPEEDS:
        return
    finding = _SPEEDS[change.speed]
    if finding is Finding.SLOWER and not matters(change.ratio, expected.regression or 0.0):
        finding = Finding.SLIGHTLY_SLOWER
    yield finding, f"The goodput changed by {effect_in_words(change)}{_means(change)}."


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


def _unused(
    kind: str, entries: Iterable[KnownFailure | GoodputFloor], planned: Sequence[tuple[Sample, TestCase]]
) -> Iterator[str]:
    """Entries of the expectations that are for none of the cells: mistyped, or for another campaign."""
    for entry in entries:
        if not any(entry.cells.fits(sample.server, sample.client, case) for sample, case in planned):
            yield f"The {kind} for {entry.cells} is for no cell of this campaign."
