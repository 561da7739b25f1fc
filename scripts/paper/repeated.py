"""Cells that were measured again with the same seed: whether virtual time gives the same results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from interop.model.results import ResultSet, RunResult
from interop.report.table import Column, Table, Unit
from scripts.paper.lines import moment, rendered

TOLERANCE = 0.005
"""Relative difference of two goodputs up to which they count as reproduced."""


@dataclass(frozen=True)
class Repeated:
    """A run, and the run of the same pair over the same link with the same seed."""

    first: RunResult
    again: RunResult

    @property
    def same_outcome(self) -> bool:
        """Whether both ended alike."""
        return self.first.verdict.outcome is self.again.verdict.outcome

    @property
    def difference(self) -> float | None:
        """Relative difference of the goodputs; None unless both runs succeeded."""
        first, again = (_goodput(each) for each in (self.first, self.again))
        return None if first is None or again is None else abs(again / first - 1)

    @property
    def is_reproduced(self) -> bool:
        """Both succeeded with nearly the same goodput, or both did not and ended alike."""
        return self.same_outcome and (self.difference or 0.0) <= TOLERANCE

    @property
    def name(self) -> str:
        """For a reader: ``neqo with quiche over sat``."""
        return f"{self.again.server} with {self.again.client} over {self.again.test_case}"


def _goodput(run: RunResult) -> float | None:
    return run.measurement.values.get("goodput") if run.measurement else None


def pairs_of_runs(matrix: ResultSet, again: ResultSet) -> list[Repeated]:
    """The runs of ``again``, each with its first run."""
    first = {_identity(run): run for run in matrix.results}
    return [Repeated(first[_identity(run)], run) for run in again.results if _identity(run) in first]


def _identity(run: RunResult) -> tuple[str, str, str, int | None]:
    return run.server, run.client, run.test_case, run.evidence.seed


def repeated(campaigns: Sequence[tuple[ResultSet, ResultSet]]) -> Iterator[str]:
    """Of campaigns of the matrix and those that repeat them: how many runs were reproduced, and which ones were not."""
    found = [(matrix, again, pairs) for matrix, again in campaigns if (pairs := pairs_of_runs(matrix, again))]
    if found:
        yield "## Repeated runs"
    for matrix, again, pairs in sorted(found, key=lambda each: _began(each[2])):
        yield ""
        yield from _campaign(matrix, again, pairs)


def _campaign(matrix: ResultSet, again: ResultSet, found: Sequence[Repeated]) -> Iterator[str]:
    hours = [f"{each:.0f}" for each in sorted(_hours(each) for each in found)]
    first, second = (_version(each) for each in (matrix, again))
    same, shared = _same_images(matrix, again)
    after = f"{hours[0]} hours" if hours[0] == hours[-1] else f"{hours[0]} to {hours[-1]} hours"
    images = (
        f"All {shared} images are the same"
        if same == shared
        else f"{same} of {shared} images {'is' if same == 1 else 'are'} the same; the others were built again from the "
        "same sources"
    )
    yield (
        f"A random sample of {len(found)} of the {len(matrix.results)} runs of the matrix with seed "
        f"{matrix.manifest.seed} was measured again, {after} after the first time (from {moment(_began(found))} on), "
        f"with {second}{'' if first == second else f' instead of {first}'}. {images}. A run counts as reproduced if "
        f"its outcome is the same, and its goodput within {100 * TOLERANCE:.1f} %."
    )
    yield ""
    yield from rendered(by_case(matrix, found))
    others = [each for each in found if not each.is_reproduced]
    yield from (f"- **{each.name}** is not reproduced: {_explain(each)}." for each in others)
    if not others:
        yield "All runs of the sample are reproduced."


def _began(found: Sequence[Repeated]) -> str:
    return min(each.again.evidence.started for each in found)


def _same_images(matrix: ResultSet, again: ResultSet) -> tuple[int, int]:
    first, second = matrix.manifest.images, again.manifest.images
    shared = [name for name in first if name in second]
    return sum(first[name].id == second[name].id for name in shared), len(shared)


def _version(results: ResultSet) -> str:
    versions = results.manifest.versions
    return f"quicsat {versions.quicsat}" if versions and versions.quicsat else "an unknown version of quicsat"


def _hours(each: Repeated) -> float:
    began, again = (datetime.fromisoformat(run.evidence.started) for run in (each.first, each.again))
    return (again - began).total_seconds() / 3600


def _explain(each: Repeated) -> str:
    if each.difference is None:
        return f"first {each.first.verdict.outcome.value}, then {each.again.verdict.outcome.value}"
    return f"its goodput differs by {100 * each.difference:.2f} %"


def by_case(matrix: ResultSet, found: Sequence[Repeated]) -> Table:
    """A row for each test case."""
    columns = (
        Column("test case"), Column("runs", Unit.COUNT), Column("reproduced", Unit.COUNT),
        Column("same outcome", Unit.COUNT), Column("exactly the same goodput", Unit.COUNT),
        Column("both succeeded", Unit.COUNT), Column("largest difference of goodput", Unit.SHARE, 3),
    )  # fmt: skip
    rows = list[tuple[float | int | str | None, ...]]()
    for case in matrix.manifest.test_cases:
        mine = [each for each in found if each.again.test_case == case.name]
        differences = [each.difference for each in mine if each.difference is not None]
        if mine:
            rows.append(
                (
                    case.name,
                    len(mine),
                    sum(each.is_reproduced for each in mine),
                    sum(each.same_outcome for each in mine),
                    sum(difference == 0 for difference in differences),
                    len(differences),
                    max(differences, default=None),
                )
            )
    seed = matrix.manifest.seed
    return Table(f"repeated-{seed}", f"Runs measured again with seed {seed}", columns, tuple(rows))
