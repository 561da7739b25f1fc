"""Runs, each until it has a result: tried again where the fault was ours, at another place if the first is lost."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from interop.errors import HarnessFault, MachineError
from interop.execution.crew import Crew
from interop.execution.inputs import INPUTS
from interop.execution.place import Place, disturbed
from interop.execution.transfer import Interrupted
from interop.model import Compliance, ErrorCode, Implementation, Outcome, Role, Run, RunResult
from interop.store import aside
from interop.units import byte_size

ATTEMPTS = 3
"""How often in a row a run is tried that ended by our own fault."""
MOST_ATTEMPTS = 10
"""The same, counting those whose worker was lost: it may be the run itself that kills workers.

Also of a compliance check, with which the whole campaign would end.
"""
FREE_SPACE = 512 * 1024 * 1024
"""Bytes that must be free before a run begins."""
MAKE_ROOM = "Make room, `./run.py prune` shows what could go."


class DisturbedError(Exception):
    """A run that its neighbours may have disturbed; it is to be repeated alone."""

    def __init__(self, attempt: int) -> None:
        super().__init__(attempt)
        self.attempt = attempt
        """The number of the attempt that comes next."""


class Runner:
    """Who has a place, and another one if that is lost; used by one thread."""

    def __init__(
        self,
        place: Place,
        crew: Crew,
        directory: Path,
        stop: threading.Event,
        keep: Callable[[RunResult], object],
        say: Callable[[str], None],
    ) -> None:
        """``keep`` hears every attempt that is not the last, ``say`` what a person wants to know."""
        self.place = place
        self._crew = crew
        self._directory = directory
        self._stop = stop
        self._keep = keep
        self._say = say

    def carry_out(self, run: Run, attempt: int = 1, *, alone: bool = False) -> RunResult:
        """The result of ``run``, of which ``attempt`` is the next; ``alone``: no other run is under way.

        Raises :class:`DisturbedError` if neighbours may have disturbed it, :class:`Interrupted` if told to stop,
        :class:`MachineError` if the campaign cannot go on.
        """
        directory, last, end = self._directory / run.path, attempt + ATTEMPTS - 1, attempt + MOST_ATTEMPTS - 1
        if directory.exists():
            _clear_away(directory, attempt - 1)
        while True:
            if self._stop.is_set():
                raise Interrupted
            self._check_disk()
            result = self.place.attempt(run, attempt, directory)
            verdict = result.verdict
            if verdict.outcome is not Outcome.ERROR:
                return result
            if verdict.code is ErrorCode.DISK_FULL:
                raise MachineError(f"{verdict.reason}. {MAKE_ROOM}")
            if verdict.code is ErrorCode.WORKER_LOST:
                last = min(last + 1, end)
            if attempt >= last:
                self.place.clear(alone=False)  # whatever was wrong with it, the next run begins with another
                return result
            self._set_aside(result, directory)
            attempt += 1
            if disturbed(result):
                self._say(f"{run.path} is to be repeated alone: {verdict.reason}")
                raise DisturbedError(attempt)
            self._say(f"{run.path} is repeated: {verdict.reason}")
            self._recover(alone=alone)

    def check_compliance(self, implementation: Implementation, roles: tuple[Role, ...]) -> tuple[Compliance, ...]:
        """Whether an image is compliant in ``roles``; raises :class:`MachineError` if that cannot be found out."""
        tried = 0
        while True:
            try:
                return self.place.check_compliance(implementation, roles)
            except HarnessFault as fault:
                tried += 1
                if tried == MOST_ATTEMPTS:
                    message = f"The compliance of {implementation.name} could not be checked: {fault.reason}"
                    raise MachineError(message) from fault
                self._recover(alone=False)

    def _set_aside(self, result: RunResult, directory: Path) -> None:
        """Keep an attempt that is not the last, and its directory under another name."""
        self._keep(result)
        place = aside(directory, result.attempt)
        shutil.rmtree(place, ignore_errors=True)
        directory.rename(place)

    def _recover(self, *, alone: bool) -> None:
        """After a fault of ours: begin with a new testbed, elsewhere if nobody answers here."""
        while silent := self.place.clear(alone=alone):
            self.place = self._crew.replace(self.place, silent)

    def _check_disk(self) -> None:
        free = shutil.disk_usage(self._directory).free
        if free < FREE_SPACE:
            raise MachineError(
                f"Only {byte_size(free)} are free in {self._directory}; a run needs {byte_size(FREE_SPACE)}. "
                f"What was finished is kept. {MAKE_ROOM}"
            )


def restore(directory: Path, tried: Mapping[Run, int]) -> None:
    """Give the last attempt at each run that the journal knows its place again, where a later one that was killed is.

    ``directory``: of the campaign; ``tried``: how many attempts the journal knows.
    """
    for run, attempt in tried.items():
        place = directory / run.path
        if (kept := aside(place, attempt)).exists():
            shutil.rmtree(place, ignore_errors=True)
            kept.rename(place)


def _clear_away(directory: Path, attempt: int) -> None:
    """Make room for the attempt after ``attempt``: keep its directory, or remove that of one that was killed."""
    killed = not attempt or any(directory.glob(f"{INPUTS}*"))
    place = aside(directory, 0 if killed else attempt)
    shutil.rmtree(aside(directory, 0), ignore_errors=True)
    directory.rename(place)
    if killed:
        shutil.rmtree(place, ignore_errors=True)
