"""Retries: a run is attempted until it has a valid result, on another worker if the first one has an outage."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from quicsat.execution.run_inputs import INPUTS
from quicsat.execution.worker import Slot, disturbed
from quicsat.execution.worker_pool import WorkerPool
from quicsat.model.errors import HarnessFault, Interrupted, MachineError
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.results import Compliance, RunResult
from quicsat.model.run import Run
from quicsat.model.stored_files import entries, is_directory
from quicsat.model.units import byte_size
from quicsat.model.whole_file import make_directories
from quicsat.results.store import attempt_directory

ATTEMPTS = 3
"""Attempts at a run while its result is ``error``."""
MAX_ATTEMPTS = 10
"""The same, with attempts whose worker was lost (the run may be the cause of that); also of compliance checks."""
FREE_SPACE = 512 * 1024 * 1024
"""Bytes that must be free before a run begins."""
MAKE_ROOM = "Make room, `./run.py prune` shows what could go."


class DisturbedError(Exception):
    """Parallel runs may have invalidated an attempt; the run is to be repeated with fewer beside it."""

    def __init__(self, attempt: int) -> None:
        super().__init__(attempt)
        self.attempt = attempt
        """Number of the next attempt."""


@dataclass
class Runner:
    """Makes runs on one slot, and on another if its worker has an outage; used by one thread."""

    slot: Slot
    workers: WorkerPool
    directory: Path
    """Of the campaign."""
    keep: Callable[[RunResult], object]
    """Gets the results of all attempts but the last."""
    say: Callable[[str], None]

    def run_with_retries(self, run: Run, attempt: int = 1, *, alone: bool = False) -> RunResult:
        """The result of ``run``, from attempt number ``attempt`` on; ``alone``: no other run is under way.

        Raises :class:`DisturbedError` if parallel runs may have invalidated it, :class:`Interrupted` if the campaign is
        stopped, :class:`MachineError` if it cannot continue.
        """
        directory, last, end = self.directory / run.path, attempt + ATTEMPTS - 1, attempt + MAX_ATTEMPTS - 1
        if is_directory(directory):
            _clear_away(directory, attempt - 1)
        while True:
            if self.workers.stop.is_set():
                raise Interrupted
            self._check_disk()
            _make(directory)
            result = self.slot.attempt(run, attempt, directory)
            verdict = result.verdict
            if verdict.outcome is not Outcome.ERROR:
                return result
            if verdict.code is ErrorCode.DISK_FULL:
                raise MachineError(f"{verdict.reason}. {MAKE_ROOM}")
            if verdict.code is ErrorCode.WORKER_LOST:
                last = min(last + 1, end)
            if attempt >= last:
                self.slot.reset(alone=False)  # the next run gets another testbed, whatever was wrong with this one
                return result
            self._set_aside(result, directory)
            attempt += 1
            if disturbed(result) and not alone:  # a worker that is not ours may claim neighbours that it never had
                self.say(f"{run.path} is to be repeated with fewer runs beside it: {verdict.reason}")
                raise DisturbedError(attempt)
            self.say(f"{run.path} is repeated: {verdict.reason}")
            self._recover(alone=alone)

    def check_compliance(self, implementation: Implementation, roles: tuple[Role, ...]) -> tuple[Compliance, ...]:
        """Whether an image is compliant in ``roles``; raises :class:`MachineError` if every check fails."""
        failed = 0
        while True:
            try:
                return self.slot.check_compliance(implementation, roles)
            except HarnessFault as fault:
                failed += 1
                if failed == MAX_ATTEMPTS:
                    message = f"The compliance of {implementation.name} could not be checked: {fault.reason}"
                    raise MachineError(message) from fault
                self._recover(alone=False)

    def _set_aside(self, result: RunResult, directory: Path) -> None:
        """Keep the result of an attempt that is not the last, and its directory under another name."""
        self.keep(result)
        kept = attempt_directory(directory, result.attempt)
        shutil.rmtree(kept, ignore_errors=True)
        directory.rename(kept)

    def _recover(self, *, alone: bool) -> None:
        """Remove the testbed after an invalid attempt; take another slot while the worker has an outage."""
        while (outage := self.slot.reset(alone=alone)) is not None:
            self.slot = self.workers.replace(self.slot, outage)

    def _check_disk(self) -> None:
        free = shutil.disk_usage(self.directory).free
        if free < FREE_SPACE:
            raise MachineError(
                f"Only {byte_size(free)} are free in {self.directory}; a run needs {byte_size(FREE_SPACE)}. "
                f"What was finished is kept. {MAKE_ROOM}"
            )


def restore(directory: Path, tried: Mapping[Run, int]) -> None:
    """Move the directory of the last journalled attempt at each run back; it replaces a later one that was killed.

    ``directory``: of the campaign; ``tried``: number of journalled attempts by run.
    """
    for run, attempt in tried.items():
        current = directory / run.path
        if is_directory(kept := attempt_directory(current, attempt)):
            shutil.rmtree(current, ignore_errors=True)
            kept.rename(current)


def _make(directory: Path) -> None:
    """Make the directory of a run; MachineError if that fails, or if a link leads out of the campaign."""
    try:
        make_directories(directory)
    except OSError as error:
        raise MachineError(f"{directory}: cannot be prepared for a run: {error.strerror}.") from error


def _clear_away(directory: Path, attempt: int) -> None:
    """Move the directory of attempt number ``attempt`` aside, or remove that of an attempt that was killed."""
    killed = not attempt or any(each.name.startswith(INPUTS) for each in entries(directory))
    kept = attempt_directory(directory, 0 if killed else attempt)
    shutil.rmtree(attempt_directory(directory, 0), ignore_errors=True)
    directory.rename(kept)
    if killed:
        shutil.rmtree(kept, ignore_errors=True)
