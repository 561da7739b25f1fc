"""All repetitions of one pair in one test case, seen through one metric; what figures and statistics are made of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from interop.model import Outcome, ResultSet, RunResult, TestCase

EFFICIENCY, GOODPUT = "efficiency", "goodput"


class Fate(StrEnum):
    """What became of a pair in a test case, all its repetitions together."""

    SUCCEEDED = "succeeded"
    """Every repetition that says something about the pair succeeded."""
    TIMEOUT = "timeout"
    FAILED = "failed"
    """The first repetition that did not succeed timed out, or failed."""
    UNSUPPORTED = "unsupported"
    ERROR = "error"
    """Only our own faults: nothing is known of the pair."""
    NOT_RUN = "not run"


ABOUT_THE_PAIR = frozenset({Fate.SUCCEEDED, Fate.TIMEOUT, Fate.FAILED})
MARKS = {Fate.TIMEOUT: "T", Fate.FAILED: "×", Fate.UNSUPPORTED: "–", Fate.ERROR: "!", Fate.NOT_RUN: "·"}
"""As in Fig. 4 of arXiv 2202.08228, and in the matrices of the terminal."""


@dataclass(frozen=True)
class Sample:
    """One pair in one test case."""

    server: str
    client: str
    test_case: str
    values: tuple[float, ...]
    """The metric, in its SI unit, of the repetitions that succeeded and have it; in their order."""
    outcomes: tuple[Outcome, ...]
    """Of all repetitions that have a result and were not skipped, in their order."""
    repetitions: tuple[int, ...] = ()
    """Number of the repetition of each outcome; empty: 1, 2, …"""
    seeds: tuple[int, ...] = ()
    """Seed of the losses of each outcome; empty: unknown. All pairs of a test case share the seed of a repetition."""
    places: tuple[int, ...] = ()
    """Index into ``outcomes`` of each value; empty: the first outcomes that succeeded."""

    @property
    def blocks(self) -> tuple[int, ...]:
        """Number of the repetition of each outcome."""
        return self.repetitions or tuple(range(1, len(self.outcomes) + 1))

    @property
    def by_repetition(self) -> dict[int, float]:
        """The values by the number of their repetition."""
        return {self.blocks[place]: value for place, value in zip(self._places, self.values, strict=True)}

    @property
    def by_seed(self) -> dict[int, float]:
        """The values by their seed; empty if seeds are unknown or repeat."""
        found = {self.seeds[place]: value for place, value in zip(self._places, self.values, strict=True) if self.seeds}
        return found if len(found) == len(self.values) else {}

    @property
    def _places(self) -> tuple[int, ...]:
        good = [place for place, outcome in enumerate(self.outcomes) if outcome is Outcome.SUCCEEDED]
        return self.places or tuple(good[: len(self.values)])

    @property
    def mean(self) -> float | None:
        """Of the repetitions that succeeded; None if none did."""
        return math.fsum(self.values) / len(self.values) if self.values else None

    @property
    def told(self) -> int:
        """Repetitions that say something about the pair: not unsupported, not ended by our own fault."""
        return sum(outcome in (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMEOUT) for outcome in self.outcomes)

    @property
    def succeeded(self) -> int:
        """Repetitions that succeeded, with or without a number."""
        return Counter(self.outcomes)[Outcome.SUCCEEDED]

    @property
    def fate(self) -> Fate:
        """As QIR-SE counts pairs: one repetition that did not succeed decides, the first one; ours never do."""
        theirs = [outcome for outcome in self.outcomes if outcome is not Outcome.ERROR]
        if not theirs:
            return Fate.ERROR if self.outcomes else Fate.NOT_RUN
        worst = next((outcome for outcome in theirs if outcome is not Outcome.SUCCEEDED), Outcome.SUCCEEDED)
        return Fate(worst.value)


def find(result_set: ResultSet, name: str) -> TestCase | None:
    """The test case with this name or abbreviation, upper and lower case being alike."""
    wanted = name.casefold()
    cases = result_set.manifest.test_cases
    return next((case for case in cases if wanted in (case.name.casefold(), case.abbreviation.casefold())), None)


def samples(result_set: ResultSet, test_case: str, metric: str = EFFICIENCY) -> tuple[Sample, ...]:
    """Every pair of the campaign in ``test_case``: clients as in the manifest, for each its servers."""
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for result in result_set.results:
        if result.test_case == test_case and result.verdict.outcome is not Outcome.SKIPPED:
            groups.setdefault((result.server, result.client), []).append(result)
    manifest = result_set.manifest
    return tuple(
        _sample(server, client, test_case, groups.get((server, client), ()), metric)
        for client in manifest.clients
        for server in manifest.servers
    )


def _sample(server: str, client: str, test_case: str, results: Sequence[RunResult], metric: str) -> Sample:
    ordered = sorted(results, key=lambda result: result.repetition)
    values = [value_of(result, metric) for result in ordered]
    return Sample(
        server,
        client,
        test_case,
        tuple(value for value in values if value is not None),
        tuple(result.verdict.outcome for result in ordered),
        tuple(result.repetition for result in ordered),
        tuple(result.evidence.seed for result in ordered),
        tuple(place for place, value in enumerate(values) if value is not None),
    )


def value_of(result: RunResult, metric: str) -> float | None:
    """A number of one repetition; None unless it succeeded and has it."""
    if result.verdict.outcome is not Outcome.SUCCEEDED or result.measurement is None:
        return None
    return result.measurement.values.get(metric)


def with_zeros(sample: Sample) -> tuple[float, ...]:
    """The values, and 0 for every repetition that failed or timed out, as Fig. 3 of arXiv 2202.08228 counts them."""
    return sample.values + (0.0,) * (sample.told - sample.succeeded)


def left_out(many: Iterable[Sample]) -> str:
    """What a figure of these pairs cannot show: ``2 pairs unsupported, 1 pair not run``; empty if there is nothing."""
    return silent(Counter(sample.fate for sample in many))


def without_number(many: Iterable[Sample]) -> str:
    """What a figure of the means of pairs cannot show: as ``left_out``, and pairs of which no repetition succeeded."""
    known = tuple(many)
    failed = sum(sample.mean is None and sample.fate in ABOUT_THE_PAIR for sample in known)
    told = f"{failed} {'pair' if failed == 1 else 'pairs'} without a success" if failed else ""
    return ", ".join(part for part in (told, left_out(known)) if part)


def silent(fates: Mapping[Fate, int]) -> str:
    """How many pairs say nothing, and why; empty if there are none."""
    words = {Fate.ERROR: "lost to errors of ours"}
    return ", ".join(
        f"{fates[fate]} {'pair' if fates[fate] == 1 else 'pairs'} {words.get(fate, fate.value)}"
        for fate in (Fate.UNSUPPORTED, Fate.ERROR, Fate.NOT_RUN)
        if fates.get(fate)
    )
