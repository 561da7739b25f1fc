"""The campaigns that a site shows: found on disk, newest first, with what all their pages need to know.

All results of a campaign are read when a page needs them, and can be let go of; its ``brief`` is always there.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from quicsat.model.errors import InputError
from quicsat.model.link_format import format_link
from quicsat.model.moments import moment
from quicsat.model.outcomes import Outcome
from quicsat.model.results import Manifest, ResultSet, RunResult
from quicsat.model.stored_files import entries, resolved
from quicsat.model.test_case import TestCase
from quicsat.results.attempts import by_cell, was_attempted
from quicsat.results.store import DOCUMENT, JOURNAL, campaigns_in, has, load, no_results
from quicsat.results.summary import Cell, summarise
from quicsat.site import address
from quicsat.site.brief import Brief, brief
from quicsat.statistics.comparison import Goodputs, goodputs

Key = tuple[str, str, str]
"""Server, client, test case."""
CLOCKS_DIFFER = timedelta(days=1)
"""What clocks of machines may differ by."""


@dataclass(frozen=True, eq=False)
class SiteCampaign:
    """One campaign as the site shows it."""

    directory: Path
    """Where its runs' files are."""
    folder: str
    """Its name in addresses."""
    given: ResultSet | None = None
    """Its results, if they are not to be read from ``directory``."""
    known: Brief | None = None
    """What an earlier build or ``find`` has read; otherwise it is made from all results."""

    @cached_property
    def results(self) -> ResultSet:
        """All of it, read when it is asked for. Raises InputError."""
        return self.given or load(self.directory).result_set

    @cached_property
    def brief(self) -> Brief:
        """What other pages than its own tell of it."""
        return self.known or brief(self.results)

    @cached_property
    def goodputs(self) -> Goodputs:
        """What comparisons need of it."""
        return goodputs(self.results)

    def release(self) -> None:
        """Let go of all results, which take 3 to 10 kB of memory each; what asks for them again reads them again."""
        for name in ("results", "goodputs", "cells", "runs", "attempts"):
            self.__dict__.pop(name, None)

    @property
    def manifest(self) -> Manifest:
        """Of its results."""
        return self.brief.manifest

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was wrong with its journal."""
        return self.brief.warnings

    @property
    def time(self) -> str:
        """Its clock in words."""
        return self.manifest.time

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
        return tuple(case for case in self.manifest.test_cases if not case.functional)

    @cached_property
    def cases(self) -> dict[str, TestCase]:
        """Its test cases by name."""
        return {case.name: case for case in self.manifest.test_cases}

    @cached_property
    def links(self) -> dict[str, str]:
        """The link of each test case in words."""
        return {name: format_link(case.link) for name, case in self.cases.items()}

    @property
    def started(self) -> datetime | None:
        """UTC; None if what the manifest says is no time."""
        return moment(self.manifest.started)

    @property
    def finished(self) -> datetime | None:
        """UTC; None while it runs, or after it was cut short."""
        return moment(self.brief.finished or "")

    @property
    def took(self) -> float:
        """Seconds from beginning to end, 0 if either is not known."""
        return (self.finished - self.started).total_seconds() if self.finished and self.started else 0.0

    def count(self, outcome: Outcome) -> int:
        """How many runs ended so."""
        return self.brief.outcomes[outcome]

    def seconds_left(self) -> float:
        """How long the missing runs take if they take as long as the others on average; 0 if that is not known."""
        spent = [sum(result.evidence.phases.values()) for result in self.results.results]
        left = self.results.manifest.planned_runs - len(spent)
        return max(left, 0) * sum(spent) / len(spent) if spent else 0.0


def find(
    places: Iterable[Path], known: Callable[[Path], Brief | None] = lambda _: None, now: datetime | None = None
) -> tuple[list[SiteCampaign], list[str]]:
    """The campaigns in ``places``, newest first, and one sentence for each that cannot be read.

    Placebos, and those that start after ``now``, which only a wrong clock can cause, come last.

    A place is the directory of a campaign or one that holds such directories; ``known``: what an earlier build has read
    of a directory that has not changed. InputError if nothing can be shown.
    """
    problems: list[str] = []
    loaded: list[tuple[Path, Brief]] = []
    last: dict[Path, ResultSet] = {}  # what was read last: mostly the newest, whose results are needed next
    for directory in _directories(places, problems):
        try:
            told = known(directory)
            if told is None:
                last.clear()
                last[directory], told = _read(directory)
            loaded.append((directory, told))
        except InputError as error:
            problems.extend(error.problems)
    if not loaded:
        raise InputError(*problems, "There is no campaign to show. Name the directory of one, e.g. results.")
    loaded.sort(
        key=lambda each: (not each[1].manifest.placebo, each[1].manifest.started, each[1].manifest.id), reverse=True
    )
    loaded = _without_copies(_in_order(loaded, (now or datetime.now(UTC)) + CLOCKS_DIFFER, problems), problems)
    names = address.folders((each.manifest.id, each.manifest.started) for _, each in loaded)
    newest, _ = loaded[0]
    found = [
        SiteCampaign(place, name, given=last.get(place) if place == newest else None, known=each)
        for name, (place, each) in zip(names, loaded, strict=True)
    ]
    return found, problems


def _in_order(loaded: list[tuple[Path, Brief]], latest: datetime, problems: list[str]) -> list[tuple[Path, Brief]]:
    """The same, those that started later at the end."""
    late = [each for each in loaded if (begun := moment(each[1].manifest.started)) and begun > latest]
    problems += [f"{place}: started in the future, {each.manifest.started}; it is listed last." for place, each in late]
    return [*(each for each in loaded if each not in late), *late]


def _read(directory: Path) -> tuple[ResultSet, Brief]:
    """Its results, and what the site shows of it: no name of a directory of this machine."""
    record = load(directory)
    warnings = tuple(each.replace(f"{directory}/", "") for each in record.warnings)
    return record.result_set, brief(record.result_set, warnings)


def _directories(places: Iterable[Path], problems: list[str]) -> list[Path]:
    """Those in ``places``; a link in a place is named unless it leads to another one there, as ``latest`` does."""
    found: dict[Path, None] = {}
    for given in places:
        place = resolved(given)
        if has(place, JOURNAL) or has(place, DOCUMENT):
            found[place] = None
        elif place.is_dir():
            below = campaigns_in(place)
            problems.extend([] if below else no_results(given).problems)
            found.update(dict.fromkeys(below))
            problems += [
                f"{each}: is a symbolic link, which is not followed. Name the directory that it leads to."
                for each in entries(place)
                if each.is_symlink() and resolved(each).parent != place and has(each, JOURNAL)
            ]
        else:
            problems.extend(no_results(given).problems)
    return list(found)


def _without_copies(loaded: list[tuple[Path, Brief]], problems: list[str]) -> list[tuple[Path, Brief]]:
    """Without earlier states of a campaign, and all but one of equal copies. Copies that differ otherwise stay."""
    kept = list[tuple[Path, Brief]]()
    for place, campaign in sorted(loaded, key=lambda each: -each[1].runs):
        same = [each for each in kept if each[1].manifest.id == campaign.manifest.id]
        whole = next((path for path, each in same if _continues(campaign, each)), None)
        if whole is not None:
            problems.append(f"{place}: has no more results of the same campaign than {whole}; left out.")
            continue
        problems += [
            f"{place}: claims to be the same campaign as {path}, but differs; both are shown." for path, _ in same
        ]
        kept.append((place, campaign))
    return [each for each in loaded if each in kept]


def _continues(before: Brief, after: Brief) -> bool:
    """Whether a campaign can be a later state of the other, or is equal to it."""
    if (before.rows, before.tested, before.outcomes) == (after.rows, after.tested, after.outcomes):
        return True
    return before.finished is None and {*before.rows} <= {*after.rows}
