"""Runs in a testbed of their own, each until it has a result: tried again where the fault was ours."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from interop.errors import HarnessFault, MachineError, UserError
from interop.execution import host
from interop.execution.compliance import check_compliance
from interop.execution.daemon import Daemon
from interop.execution.load import Meter
from interop.execution.transfer import KEPT, Interrupted, Surroundings, transfer
from interop.links import LinkBackend
from interop.model import (
    Compliance,
    ErrorCode,
    Evidence,
    Implementation,
    Link,
    Measurement,
    Outcome,
    RealLink,
    Role,
    Run,
    RunResult,
    Verdict,
)
from interop.units import byte_size

ATTEMPTS = 3
"""How often in a row a run is tried that ended by our own fault."""
DAEMON_PATIENCE = 300.0
"""Seconds for which a daemon that has vanished is waited for."""
FREE_SPACE = 512 * 1024 * 1024
"""Bytes that must be free before a run begins."""
DISTURBED = (ErrorCode.SIMULATOR_LAG, ErrorCode.HOST_STARVED)
"""What neighbours can do to a run."""

log = logging.getLogger(__name__)

Judge = Callable[[Run, Evidence, Path], tuple[Verdict, Measurement | None]]
"""From evidence and traces to a verdict and numbers."""


class DisturbedError(Exception):
    """A run that its neighbours may have disturbed; it is to be repeated alone."""

    def __init__(self, attempt: int) -> None:
        super().__init__(attempt)
        self.attempt = attempt
        """The number of the attempt that comes next."""


@dataclass(frozen=True)
class Conditions:
    """What holds for every run of a campaign."""

    daemon: Daemon
    backend: LinkBackend
    images: Mapping[str, str]
    """Image id by implementation name, and ``simulator``."""
    stop: threading.Event
    parameters: Mapping[str, str]
    meter: Meter
    qlog: bool = True
    keep_files: bool = False
    """Keep the files of runs that do not succeed."""
    links: Mapping[tuple[str, str], LinkBackend] = field(default_factory=dict)
    """Backends of real links, by the names of their client's and server's host; all other links are ``backend``'s."""
    hosts: tuple[Daemon, ...] = ()
    """Daemons of real links."""

    def backend_of(self, link: Link) -> LinkBackend:
        """What makes testbeds with that link."""
        return self.links[link.client_host, link.server_host] if isinstance(link, RealLink) else self.backend

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """All at which the campaign makes something."""
        return (self.daemon, *self.hosts)


class Runner:
    """One testbed of a campaign, opened when it is needed; used by one thread at a time."""

    def __init__(
        self,
        conditions: Conditions,
        directory: Path,
        judge: Judge,
        keep: Callable[[RunResult], object],
        say: Callable[[str], None],
    ) -> None:
        """``keep`` hears every attempt that is not the last, ``say`` what a person wants to know."""
        self._conditions = conditions
        self._directory = directory
        self._judge = judge
        self._keep = keep
        self._say = say
        self._around: dict[LinkBackend, Surroundings] = {}
        self._testbed = ExitStack()

    def carry_out(self, run: Run, attempt: int = 1, neighbours: Callable[[], int] | None = None) -> RunResult:
        """The result of ``run``, of which ``attempt`` is the next.

        ``neighbours`` tells how many runs were side by side with it at most; None if it is alone in its campaign.
        Raises :class:`DisturbedError` if those may have disturbed it, :class:`Interrupted` if told to stop,
        :class:`MachineError` if the campaign cannot go on.
        """
        directory, last = self._directory / run.path, attempt + ATTEMPTS - 1
        if directory.exists():  # of an attempt that is to be repeated, or of one that was killed
            _move_aside(directory, attempt - 1)
        while True:
            if self._conditions.stop.is_set():
                raise Interrupted
            self._check_disk()
            result = self._run_once(run, directory, attempt, neighbours or (lambda: 0))
            verdict = result.verdict
            if verdict.outcome is not Outcome.ERROR:
                return result
            if verdict.code is ErrorCode.DISK_FULL:
                raise MachineError(verdict.reason)
            if attempt == last:
                self.close()  # whatever was wrong with it, the next run begins with another
                return result
            self._set_aside(result, directory)
            attempt += 1
            if neighbours and neighbours() and verdict.code in DISTURBED:
                self._say(f"{run.path} is to be repeated alone: {verdict.reason}")
                raise DisturbedError(attempt)
            self._say(f"{run.path} is repeated: {verdict.reason}")
            self._recover(alone=neighbours is None)

    def check_compliance(self, implementation: Implementation, roles: tuple[Role, ...]) -> tuple[Compliance, ...]:
        """Whether an image is compliant in ``roles``; raises :class:`MachineError` if that cannot be found out."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return check_compliance(implementation, roles, self._surroundings(self._conditions.backend))
            except HarnessFault as fault:
                if attempt == ATTEMPTS:
                    message = f"The compliance of {implementation.name} could not be checked: {fault.reason}"
                    raise MachineError(message) from fault
                self._recover(alone=False)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def close(self) -> None:
        """Remove the testbed; the next run gets another."""
        self._around.clear()
        stack, self._testbed = self._testbed, ExitStack()
        try:
            stack.close()
        except HarnessFault as fault:
            self._say(f"the testbed could not be removed yet: {fault.reason}")

    # ---- one run ---------------------------------------------------------------------------

    def _run_once(self, run: Run, directory: Path, attempt: int, neighbours: Callable[[], int]) -> RunResult:
        directory.mkdir(parents=True, exist_ok=True)
        evidence, measurement = Evidence(started="", seed=run.seed), None
        begin = time.monotonic()
        try:
            evidence = self._evidence(run, directory, neighbours)
            begin = time.monotonic()
            with host.yielding():
                verdict, measurement = self._judge(run, evidence, directory)
        except Interrupted:
            shutil.rmtree(directory, ignore_errors=True)  # half a run is no evidence
            raise
        except UserError:
            raise
        except Exception as error:  # the only one in the program: a bug that one run meets must not cost the campaign
            log.debug("%s", run.path, exc_info=True)
            reason = f"This program has a fault: {type(error).__name__}: {error}."
            verdict = Verdict(Outcome.ERROR, ErrorCode.HARNESS_FAULT, reason)
        if verdict.outcome is Outcome.SUCCEEDED:
            for name in KEPT:
                shutil.rmtree(directory / name, ignore_errors=True)
        phases = {**evidence.phases, "analyse": round(time.monotonic() - begin, 6)}
        return result_of(run, attempt, verdict, replace(evidence, phases=phases), measurement)

    def _evidence(self, run: Run, directory: Path, neighbours: Callable[[], int]) -> Evidence:
        try:
            around = self._surroundings(self._conditions.backend_of(run.test_case.link))
            facts = host.watch(self._conditions.daemon.info, self._conditions.meter)
            evidence = transfer(run, around, directory)
            return replace(evidence, host=replace(facts(), neighbours=neighbours()))
        except HarnessFault as fault:  # no testbed
            return Evidence(started="", seed=run.seed, fault_code=fault.code, fault=fault.reason)

    def _set_aside(self, result: RunResult, directory: Path) -> None:
        """Keep an attempt that is not the last, and its directory under another name."""
        self._keep(result)
        _move_aside(directory, result.attempt)

    # ---- where runs happen -----------------------------------------------------------------

    def _surroundings(self, backend: LinkBackend) -> Surroundings:
        if backend not in self._around:
            conditions = self._conditions
            testbed = self._testbed.enter_context(backend.open())
            self._around[backend] = Surroundings(
                daemon=conditions.daemon,
                testbed=testbed,
                images=conditions.images,
                stop=conditions.stop,
                qlog=conditions.qlog,
                keep_files=conditions.keep_files,
                parameters=conditions.parameters,
            )
        return self._around[backend]

    def _recover(self, *, alone: bool) -> None:
        """After a fault of ours: wait until the daemon answers, and begin with a new testbed."""
        deadline = time.monotonic() + DAEMON_PATIENCE
        while silent := self._clear(alone):
            if time.monotonic() > deadline:
                raise MachineError(
                    f"The Docker daemon at {silent} has not answered for {DAEMON_PATIENCE:.0f} s. "
                    "What was finished is kept."
                )
            if self._conditions.stop.wait(2):
                raise Interrupted

    def _clear(self, alone: bool) -> str:
        """Remove the testbed and, if no other is in use, all that is left of the campaign; who kept that from us."""
        self.close()
        for daemon in self._conditions.daemons:
            try:
                if alone:
                    daemon.sweep(daemon.campaign)
            except HarnessFault:
                return daemon.host or daemon.url
            if not daemon.answers():
                return daemon.host or daemon.url
        return ""

    def _check_disk(self) -> None:
        free = shutil.disk_usage(self._directory).free
        if free < FREE_SPACE:
            raise MachineError(
                f"Only {byte_size(free)} are free in {self._directory}; a run needs {byte_size(FREE_SPACE)}. "
                "What was finished is kept; make room (old campaigns below results/) and start again."
            )


def _move_aside(directory: Path, attempt: int) -> None:
    """Give the directory of an attempt another name; attempt 0 never came to an end and is removed."""
    aside = directory.with_name(f"{directory.name}.attempt-{attempt}")
    shutil.rmtree(aside, ignore_errors=True)
    directory.rename(aside)
    if not attempt:
        shutil.rmtree(aside, ignore_errors=True)


def result_of(
    run: Run, attempt: int, verdict: Verdict, evidence: Evidence, measurement: Measurement | None
) -> RunResult:
    """A line of the journal."""
    names = (run.server.name, run.client.name, run.test_case.name)
    return RunResult(*names, run.repetition, attempt, verdict, evidence, measurement, run.protocol)
