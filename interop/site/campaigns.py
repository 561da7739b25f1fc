"""The campaigns that a site shows: found on disk, read, newest first, with what all their pages need to know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from interop.model.errors import InputError
from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.results.attempts import by_cell, was_attempted
from interop.results.store import DOCUMENT, JOURNAL, load
from interop.results.summary import Cell, summarise
from interop.site import address

Key = tuple[str, str, str]
"""Server, client, test case."""


@dataclass(frozen=True, eq=False)
class SiteCampaign:
    """One campaign as the site shows it."""

    directory: Path
    """Where its runs' files are."""
    folder: str
    """Its name in addresses."""
    results: ResultSet
    warnings: tuple[str, ...] = ()

    @property
    def time(self) -> str:
        """Its clock in words."""
        return self.results.manifest.time

    @cached_property
    def cells(self) -> dict[Key, Cell]:
        """Each pair and test case that has a result."""
        return {(cell.server, cell.client, cell.test_case): cell for cell in summarise(self.results)}

    @cached_property
    def runs(self) -> dict[Key, list[RunResult]]:
        """The results of each cell, by repetition."""
        groups: dict[Key, list[RunResult]] = {}
        for result in sorted(self.results.results, key=lambda each: each.repetition):
            groups.setdefault((result.server, result.client, result.test_case), []).append(result)
        return groups

    @cached_property
    def attempts(self) -> dict[Key, list[RunResult]]:
        """The results of all attempts at each cell, by repetition and number; runs without an attempt have none."""
        return {key: [each for each in found if was_attempted(each)] for key, found in by_cell(self.results).items()}

    @property
    def attempts_in_all(self) -> int:
        """Over all cells."""
        return sum(cell.attempts for cell in self.cells.values())

    @property
    def excluded(self) -> int:
        """Attempts of all cells that do not count."""
        return sum(cell.excluded for cell in self.cells.values())

    @cached_property
    def measurements(self) -> tuple[TestCase, ...]:
        """Test cases whose results are numbers."""
        return tuple(case for case in self.results.manifest.test_cases if not case.functional)

    @property
    def started(self) -> datetime | None:
        """UTC; None if what the manifest says is no time."""
        return moment(self.results.manifest.started)

    @property
    def finished(self) -> datetime | None:
        """UTC; None while it runs, or after it was cut short."""
        return moment(self.results.finished or "")

    @property
    def took(self) -> float:
        """Seconds from beginning to end, 0 if either is not known."""
        return (self.finished - self.started).total_seconds() if self.finished and self.started else 0.0

    def count(self, outcome: Outcome) -> int:
        """How many runs ended so."""
        return sum(result.verdict.outcome is outcome for result in self.results.results)

    def seconds_left(self) -> float:
        """How long the missing runs take if they take as long as the others on average; 0 if that is not known."""
        spent = [sum(result.evidence.phases.values()) for result in self.results.results]
        left = self.results.manifest.planned_runs - len(spent)
        return max(left, 0) * sum(spent) / len(spent) if spent else 0.0


def moment(text: str) -> datetime | None:
    """A time of RFC 3339 with its zone; None for anything else."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else None


def find(places: Iterable[Path]) -> tuple[list[SiteCampaign], list[str]]:
    """The campaigns in ``places``, newest first, and one sentence for each that cannot be read.

    A place is the directory of a campaign or one that holds such directories. InputError if nothing can be shown.
    """
    problems: list[str] = []
    loaded: list[tuple[Path, ResultSet, tuple[str, ...]]] = []
    for directory in _directories(places, problems):
        try:
            record = load(directory)
        except InputError as error:
            problems.extend(error.problems)
        else:
            loaded.append((directory, record.result_set, record.warnings))
    if not loaded:
        raise InputError(*problems, "There is no campaign to show. Name the directory of one, e.g. results.")
    loaded.sort(key=lambda each: (each[1].manifest.started, each[1].manifest.id), reverse=True)
    names = address.folders((results.manifest.id, results.manifest.started) for _, results, _ in loaded)
    found = [SiteCampaign(place, names[results.manifest.id], results, told) for place, results, told in loaded]
    return _without_twins(found, problems), problems


def _directories(places: Iterable[Path], problems: list[str]) -> list[Path]:
    found: dict[Path, None] = {}
    for place in places:
        if _holds_results(place):
            found[place.resolve()] = None
        elif place.is_dir():
            found.update({each.resolve(): None for each in sorted(place.iterdir()) if _holds_results(each)})
        else:
            problems.append(f"{place}: there is no such directory.")
    return list(found)


def _holds_results(place: Path) -> bool:
    return (place / JOURNAL).is_file() or (place / DOCUMENT).is_file()


def _without_twins(campaigns: list[SiteCampaign], problems: list[str]) -> list[SiteCampaign]:
    """Of copies of a campaign, the one with most results."""
    kept: dict[str, SiteCampaign] = {}
    for campaign in campaigns:
        other = kept.setdefault(campaign.results.manifest.id, campaign)
        if other is campaign:
            continue
        less, more = sorted((campaign, other), key=lambda each: len(each.results.results))
        kept[more.results.manifest.id] = more
        problems.append(f"{less.directory}: has no more results of the same campaign than {more.directory}; left out.")
    return list(kept.values())
