"""Merges the parts of a plan, measured by several machines, into one campaign."""

import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quicsat.model.errors import InputError, MachineError
from quicsat.model.results import Manifest, ResultSet
from quicsat.model.stored_files import entries, resolved
from quicsat.model.text import counted, escaped
from quicsat.model.whole_file import draft_directory, sync_directory, take_files
from quicsat.plan.order import shard
from quicsat.plan.stored_plan import plan_of
from quicsat.results.document import StoredResults
from quicsat.results.store import Journal, check_campaign_directory, load, write_result_json

ALIKE = ("seed", "servers", "clients", "must_include", "pairs", "implementations", "options", "tool_version", "clock",
         "cpu_cost", "own_cpu_costs", "cpu_cost_factor", "amplitudes", "placebo")  # fmt: skip
"""Fields of a manifest in which the parts of a plan must not differ."""


@dataclass(frozen=True)
class Part:
    """One part and its directory."""

    directory: Path
    record: StoredResults

    @property
    def manifest(self) -> Manifest:
        """What it set out to do."""
        return self.record.result_set.manifest


def merge(places: Sequence[Path], target: Path) -> str:
    """Make one campaign in ``target`` of the parts in ``places``; returns a sentence about its contents.

    Raises :class:`InputError` with all faults unless they are all parts of one plan, with the same
    images; :class:`MachineError` if the target cannot be written.
    """
    parts = [Part(place, load(place)) for place in places]
    if problems := [*_numbers_wrong(parts), *_differences(parts)]:
        raise InputError(*problems)
    parts.sort(key=lambda part: shard(part.manifest.shard)[0])
    check_campaign_directory(target)
    try:
        results = _write(parts, resolved(target))
    except OSError as error:
        raise MachineError(f"{target}: cannot be written: {error.strerror}. Make room, and try again.") from error
    runs = counted(results.manifest.planned_runs, "run")
    return f"{escaped(str(target))}: {len(results.results)} of {runs} of {counted(len(parts), 'part')}"


def _write(parts: Sequence[Part], place: Path) -> ResultSet:
    """Put the campaign of the parts in ``place`` in one step; what is in it. Raises OSError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with draft_directory(place.parent, place.name, 0o777) as draft:
        try:
            results = _fill(parts, draft)
            draft.replace(place)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    sync_directory(place.parent)
    return results


def _fill(parts: Sequence[Part], directory: Path) -> ResultSet:
    with Journal.create(directory, _whole(parts)) as journal:
        compliance = {(c.implementation, c.role): c for part in parts for c in part.record.result_set.compliance}
        for each in compliance.values():
            journal.append_compliance(each)
        for part in parts:
            _take_files(part, directory)
            for result in part.record.history:
                journal.append_result(result)
        if all(part.record.result_set.finished for part in parts):
            journal.finish()
        results = journal.record().result_set
    write_result_json(directory, results)
    return results


def _numbers_wrong(parts: Sequence[Part]) -> list[str]:
    """Faults of the set of parts."""
    whole = [f"{part.directory}: is no part of a plan (--shard)." for part in parts if not part.manifest.shard]
    if whole or not parts:
        return whole or ["Name the directories of the parts."]
    numbers = [shard(part.manifest.shard) for part in parts]
    counts = {of for _, of in numbers}
    if len(counts) > 1:
        return [f"These are parts of plans divided differently: {', '.join(p.manifest.shard for p in parts)}."]
    (of,) = counts
    there = [number for number, _ in numbers]
    twice = sorted({number for number in there if there.count(number) > 1})
    missing = [number for number in range(1, of + 1) if number not in there]
    problems = [f"Part {number}/{of} is there more than once." for number in twice]
    if missing:
        problems.append(f"Parts are missing: {', '.join(f'{number}/{of}' for number in missing)}.")
    return problems


def _differences(parts: Sequence[Part]) -> list[str]:
    problems = []
    first, *others = parts
    for part in others:
        wrong = [name for name in ALIKE if getattr(part.manifest, name) != getattr(first.manifest, name)]
        parameters = {None if each is None else tuple(sorted(each.items())) for each in
                      (part.manifest.parameters, first.manifest.parameters)} - {None}  # fmt: skip
        wrong += ["parameters"] if len(parameters) > 1 else []
        images, mine = first.manifest.images, part.manifest.images
        wrong += [f"image of {name}" for name in mine if name in images and mine[name].id != images[name].id]
        cases = {case.name: case for case in first.manifest.test_cases}
        wrong += [
            f"test case {case.name}" for case in part.manifest.test_cases if cases.get(case.name, case) != case
        ]  # a small part may lack some
        if wrong:
            differences = ", ".join(name.replace("_", " ") for name in wrong)
            problems.append(f"{part.directory}: differs from {first.directory} in: {differences}.")
    return problems


def _whole(parts: Sequence[Part]) -> Manifest:
    """The manifest of the plan that consists of these parts."""
    first = parts[0].manifest
    return replace(
        first,
        id=secrets.token_hex(4),
        started=min(part.manifest.started for part in parts),
        test_cases=tuple({case.name: case for part in parts for case in part.manifest.test_cases}.values()),
        images={name: image for part in parts for name, image in part.manifest.images.items()},
        planned_runs=sum(part.manifest.planned_runs for part in parts),
        shard="",
        versions=first.versions if all(part.manifest.versions == first.versions for part in parts) else None,
        processor=first.processor if all(part.manifest.processor == first.processor for part in parts) else "",
    )


def _take_files(part: Part, directory: Path) -> None:
    """Files of all runs, earlier attempts too, as hard links where possible; links are left out. Raises OSError."""
    top = resolved(part.directory)
    for run in plan_of(part.manifest):
        source = top / run.path
        attempts = (each for each in entries(source.parent) if each.name.startswith(f"{source.name}.attempt-"))
        for place in (source, *attempts):
            take_files(place, directory / place.relative_to(top))
