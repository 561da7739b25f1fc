"""Baselines: a campaign reduced to what comparisons need, in one small file to keep with an implementation's sources.

The file is a ``result.json`` without evidence beyond seeds, so that all that reads campaigns reads it as well.
"""

from dataclasses import replace
from pathlib import Path

from quicsat.model.errors import InputError
from quicsat.model.evidence import Evidence
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.text import command_line, counted
from quicsat.model.whole_file import write_atomically
from quicsat.results.document import StoredResults, document
from quicsat.results.store import load


def reduced(results: ResultSet) -> ResultSet:
    """The campaign without evidence, objects, flows, variants and attempts that do not count."""
    manifest = results.manifest
    return ResultSet(
        replace(
            manifest, implementations=tuple(replace(each, variants=()) for each in manifest.implementations), command=()
        ),
        results.compliance,
        tuple(map(_reduced, results.results)),
        results.finished,
        placebo=tuple(map(_reduced, results.placebo)),
    )


def _reduced(result: RunResult) -> RunResult:
    measurement = result.measurement
    return replace(
        result,
        verdict=replace(result.verdict, if_valid=None),
        evidence=Evidence(result.evidence.started, result.evidence.seed, clock=result.evidence.clock),
        measurement=measurement and replace(measurement, objects=(), flows=()),
    )


def save(results: ResultSet, directory: Path, file: Path) -> None:
    """Write the baseline of the campaign in ``directory``.

    Raises InputError if the campaign cannot be one: it is not finished, or a run ended in an error of ours.
    """
    errors = sum(result.verdict.outcome is Outcome.ERROR for result in results.results)
    if errors or len(results.results) < results.manifest.planned_runs:
        done = len(results.results) - errors
        raise InputError(
            f"{done} of {counted(results.manifest.planned_runs, 'run has', 'runs have')} a valid result, "
            "so the campaign cannot be a "
            f"baseline. To continue it: {command_line('resume', directory)}"
        )
    write_atomically(file, document(reduced(results)))


def is_baseline(file: Path) -> bool:
    """Whether a file contains a baseline, and not a whole campaign or anything else."""
    try:
        results = load(file).result_set
    except InputError:
        return False
    return results == reduced(results)


def read(file: Path) -> StoredResults:
    """The campaign of a baseline; raises InputError if the file is none."""
    if not file.exists():
        raise InputError(f"{file}: no such file. `{command_line('baseline', 'save', 'DIR', file)}` writes a baseline.")
    if not file.is_file():
        kind = "a directory" if file.is_dir() else "no regular file"
        raise InputError(f"{file}: is {kind}. Name a file that `./run.py baseline save DIR FILE` has written.")
    return load(file)
