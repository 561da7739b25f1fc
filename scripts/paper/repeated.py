"""Runs that were measured again with the same seed: whether virtual time gives the same results."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from interop.model.results import ResultSet, RunResult
from interop.report.table import Column, Table, Unit
from scripts.paper.lines import moment, rendered
from scripts.paper.words import counted, listed, part_of

TOLERANCE = 0.005
"""Relative difference of two goodputs up to which they count as reproduced."""
SENSITIVE = ("aioquic", "kwik")
"""Implementations whose runs differ most with another image of the virtual machine, or on another machine."""


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
    def is_of_another_machine(self) -> bool:
        """Whether the two runs took place on different processors or kernels."""
        return _machine(self.first) != _machine(self.again)

    @property
    def names(self) -> tuple[str, str]:
        """Server and client."""
        return self.again.server, self.again.client

    @property
    def name(self) -> str:
        """For a reader: ``neqo with quiche over sat``."""
        return f"{self.again.server} with {self.again.client} over {self.again.test_case}"


def _day(run: RunResult) -> str:
    """In UTC."""
    return run.evidence.started[:10]


def _machine(run: RunResult) -> tuple[str, str]:
    host = run.evidence.host
    return (host.processor, host.kernel) if host is not None else ("", "")


def _goodput(run: RunResult) -> float | None:
    return run.measurement.values.get("goodput") if run.measurement else None


def pairs_of_runs(matrix: ResultSet, again: ResultSet) -> list[Repeated]:
    """The runs of ``again``, each with its first run."""
    first = {_identity(run): run for run in matrix.results}
    return [Repeated(first[_identity(run)], run) for run in again.results if _identity(run) in first]


def _identity(run: RunResult) -> tuple[str, str, str, int | None]:
    return run.server, run.client, run.test_case, run.evidence.seed


@dataclass(frozen=True)
class Sample:
    """A campaign of ``make paper``, and one that repeats a random sample of its runs."""

    part: str
    """Name of the campaign for a reader: ``matrix``."""
    first: ResultSet
    again: ResultSet

    @property
    def runs(self) -> list[Repeated]:
        """The repeated runs."""
        return pairs_of_runs(self.first, self.again)


def repeated(samples: Sequence[Sample]) -> Iterator[str]:
    """How many runs of all samples were reproduced, and for each sample also which ones were not."""
    found = sorted((each for each in samples if each.runs), key=lambda each: _began(each.runs))
    if not found:
        return
    yield "## Repeated runs"
    yield ""
    yield (
        "A run counts as reproduced if its repetition has the same outcome and a goodput within "
        f"{100 * TOLERANCE:.1f} %. "
        f"{summary([run for each in found for run in each.runs])}{_other_machine_code(found)}"
    )
    for each in found:
        yield ""
        yield from _campaign(each.part, each.first, each.again, each.runs)


WHERE = {False: "on the same machine", True: "on a different machine"}
"""By whether the machine differs."""


def summary(runs: Sequence[Repeated]) -> str:
    """How many runs were reproduced, by machine, and how much later."""
    groups = {where: [run for run in runs if run.is_of_another_machine == where] for where in WHERE}
    parts = [f"{_again(group, WHERE[where])} {_reproduced(group)}" for where, group in groups.items() if group]
    reason = f" {never_the_same(groups[True])}{REASON}" if groups[True] else ""
    return f"{' '.join(parts)}{reason}"


def _other_machine_code(samples: Sequence[Sample]) -> str:
    """That another image of the virtual machine may be the reason, as sentences; empty if it is the same."""
    if not any("virtual-time" in changed_sources(each.first, each.again) for each in samples):
        return ""
    return (
        f" The image of the virtual machine is another one, too. On one machine, runs with {' or '.join(SENSITIVE)} "
        "also differ between these images (see [Queue of the paper's simulator](#queue-of-the-papers-simulator)), so "
        "these repetitions do not show an effect of the machine."
    )


def never_the_same(runs: Sequence[Repeated]) -> str:
    """Implementations that no two runs with exactly the same goodput have, and all other runs; empty without any."""
    good = [run for run in runs if run.difference is not None]
    same = {name for run in good if run.difference == 0 for name in run.names}
    names = list(dict.fromkeys(name for run in good for name in run.names if name not in same))
    if not names or not same:
        return ""
    rest = [run.difference for run in good if not {*run.names} & {*names}]
    return (
        f"No successful run with {' or '.join(names)} had exactly the same goodput on the different machine; of the "
        f"{counted(len(rest), 'other successful run')}, {rest.count(0.0)} had. "
    )


def _again(runs: Sequence[Repeated], where: str) -> str:
    """``We repeated 46 runs of 2026-11-26 on the same machine on 2026-11-27, 1.4 to 6.2 hours later.``"""
    hours = [f"{each:.1f}" for each in sorted(map(_hours, runs))]
    after = hours[0] if hours[0] == hours[-1] else f"{hours[0]} to {hours[-1]}"
    first, again = (
        listed(sorted({_day(run) for run in side}))
        for side in zip(*((each.first, each.again) for each in runs), strict=True)
    )
    return f"We repeated {counted(len(runs), 'run')} of {first} {where} on {again}, {after} hours later."


def _reproduced(runs: Sequence[Repeated]) -> str:
    """``All 46 runs were reproduced; the 39 that succeeded had exactly the same goodput.``"""
    good = [run for run in runs if run.is_reproduced]
    differences = [run.difference for run in runs if run.difference is not None]
    same = sum(difference == 0 for difference in differences)
    told = f"{part_of(len(good), len(runs), 'run')} {'was' if len(good) == 1 else 'were'} reproduced"
    if 0 < same == len(differences):
        told += f"; {'the one' if same == 1 else f'the {same}'} that succeeded had exactly the same goodput"
    elif differences:
        told += f"; of the {len(differences)} that succeeded, {same or 'none'} had exactly the same goodput"
    return f"{told[0].upper()}{told[1:]}."


REASON = "See [Another machine](../measurements/virtual-time.md#the-papers-matrix-on-another-machine)."


def _campaign(part: str, matrix: ResultSet, again: ResultSet, found: Sequence[Repeated]) -> Iterator[str]:
    hours = [round(each) for each in sorted(_hours(each) for each in found)]
    first, second = (_version(each) for each in (matrix, again))
    same, shared = _same_images(matrix, again)
    before = counted(hours[0], "hour") if hours[0] == hours[-1] else f"{hours[0]} to {hours[-1]} hours"
    used = "used the same version" if first == second else f"used {first}"
    yield (
        f"Starting at {moment(_began(found))} UTC, we repeated a random sample of {len(found)} of the "
        f"{len(matrix.results)} runs of the {part} with seed {matrix.manifest.seed}{_elsewhere(found)}, using "
        f"{second}; the originals, {before} earlier, {used if first != UNKNOWN else 'did not store their version'}. "
        f"{_images(same, shared, changed_sources(matrix, again))}."
    )
    yield ""
    yield from rendered(by_case(part, matrix, found))
    others = [each for each in found if not each.is_reproduced]
    yield from (f"- **{each.name}** was not reproduced: {_explain(each)}." for each in others)
    if not others:
        yield "All runs of the sample were reproduced."


def _began(found: Sequence[Repeated]) -> str:
    return min(each.again.evidence.started for each in found)


def without_a_version(results: ResultSet, samples: Sequence[Sample]) -> str:
    """What is known of campaigns of the matrix that did not store their version; empty if all did, or nothing is.

    ``results``: the whole matrix.
    """
    told = list[str]()
    for each in samples:
        if each.part != "matrix" or each.first.manifest.versions or not each.runs:
            continue
        if each.runs[0].is_of_another_machine:
            continue
        mine = {run.evidence.seed for run in each.first.results}
        cases = [
            f"`{case.name}`"
            for case in results.manifest.test_cases
            if (seeds := {run.evidence.seed for run in results.results if run.test_case == case.name}) and seeds <= mine
        ]
        whole = f" contains all runs over {listed(cases)}" if cases else " did not store its version"
        good = sum(run.is_reproduced for run in each.runs)
        told.append(
            f"The campaign with seed {each.first.manifest.seed}{whole}; with {_version(each.again)}, "
            f"{part_of(good, len(each.runs), 'run')} in a random sample of this campaign "
            f"{'was' if good == 1 else 'were'} reproduced (see [Repeated runs](#repeated-runs))."
        )
    return " ".join(told)


NO_ENDPOINTS = {"simulator": "the simulator", "virtual-time": "the virtual machine of virtual time"}
"""Images that are not of implementations."""


def _of_what(names: Collection[str]) -> str:
    """`` (16 implementations, the simulator and …)``; empty if all are implementations."""
    others = [told for name, told in NO_ENDPOINTS.items() if name in names]
    endpoints = counted(len(names) - len(others), "implementation")
    return f" (of {listed([endpoints, *others])})" if others else ""


def _images(same: int, names: Collection[str], changed: Sequence[str] = ()) -> str:
    """Whether the images are the same, and where the others come from; ``changed``: those with other sources."""
    shared = f"{len(names)} images{_of_what(names)}"
    if same == len(names):
        return f"All {shared} are the same"
    others = [NO_ENDPOINTS.get(name, name) for name in changed]
    but = f", except for {listed(others)}, whose sources had changed" if others else ""
    if same == 0:
        return f"None of the {shared} is the same; all were rebuilt from the same sources{but}"
    verb = "is" if same == 1 else "are"
    return f"{same} of the {shared} {verb} the same; the others were rebuilt from the same sources{but}"


def changed_sources(matrix: ResultSet, again: ResultSet) -> list[str]:
    """The images with another tag: the digest of the files that an image is built from."""
    first, second = matrix.manifest.images, again.manifest.images
    return [name for name in first if name in second and first[name].reference != second[name].reference]


def _same_images(matrix: ResultSet, again: ResultSet) -> tuple[int, Collection[str]]:
    first, second = matrix.manifest.images, again.manifest.images
    shared = [name for name in first if name in second]
    return sum(first[name].id == second[name].id for name in shared), shared


def _elsewhere(found: Sequence[Repeated]) -> str:
    """The other machine, if there is one: by its kernel, and by its processor if that differs."""
    pairs = zip(_machine(found[0].first), _machine(found[0].again), ("processor", "kernel"), strict=True)
    changes = [f"{what} {after} instead of {before}" for before, after, what in pairs if before != after]
    return f", on a different machine ({', '.join(changes)})" if changes else ""


UNKNOWN = "an unknown version of quicsat"


def _version(results: ResultSet) -> str:
    versions = results.manifest.versions
    return f"quicsat {versions.quicsat}" if versions and versions.quicsat else UNKNOWN


def _hours(each: Repeated) -> float:
    began, again = (datetime.fromisoformat(run.evidence.started) for run in (each.first, each.again))
    return (again - began).total_seconds() / 3600


def _explain(each: Repeated) -> str:
    if each.difference is None:
        return f"its outcome was first {each.first.verdict.outcome.value}, and then {each.again.verdict.outcome.value}"
    return f"its goodput differs by {100 * each.difference:.2f} %"


def by_case(part: str, matrix: ResultSet, found: Sequence[Repeated]) -> Table:
    """A row for each test case."""
    columns = (
        Column("test case"), Column("runs", Unit.COUNT), Column("reproduced", Unit.COUNT),
        Column("same outcome", Unit.COUNT), Column("both succeeded", Unit.COUNT),
        Column("exactly the same goodput", Unit.COUNT), Column("largest difference of goodput", Unit.SHARE, 3),
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
                    len(differences),
                    sum(difference == 0 for difference in differences),
                    max(differences, default=None),
                )
            )
    seed = matrix.manifest.seed
    elsewhere = " on a different machine" if any(each.is_of_another_machine for each in found) else ""
    title = f"Runs of the {part} measured again with seed {seed}{elsewhere}"
    return Table(f"repeated-{part}-{seed}", title, columns, tuple(rows))
