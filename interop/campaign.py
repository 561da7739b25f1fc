"""Carries a plan out: one run after another, repeated where the fault was ours, journalled as soon as it is known."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from interop import host
from interop.compliance import check_compliance
from interop.daemon import Daemon
from interop.errors import HarnessFault, MachineError, UserError
from interop.links import LinkBackend
from interop.model import (
    Compliance,
    ErrorCode,
    Evidence,
    Implementation,
    Measurement,
    Outcome,
    Role,
    Run,
    RunResult,
    Verdict,
)
from interop.store import Journal
from interop.transfer import KEPT, Interrupted, Surroundings, transfer
from interop.units import byte_size

ATTEMPTS = 3
"""How often a run is tried that ended by our own fault."""
DAEMON_PATIENCE = 300.0
"""Seconds for which a daemon that has vanished is waited for."""
FREE_SPACE = 512 * 1024 * 1024
"""Bytes that must be free before a run begins."""

log = logging.getLogger(__name__)

Judge = Callable[[Run, Evidence, Path], tuple[Verdict, Measurement | None]]
"""From evidence and traces to a verdict and numbers."""


@dataclass(frozen=True)
class Conditions:
    """What holds for every run of a campaign."""

    daemon: Daemon
    backend: LinkBackend
    images: Mapping[str, str]
    """Image id by implementation name, and ``simulator``."""
    stop: threading.Event
    parameters: Mapping[str, str]
    qlog: bool = True
    keep_files: bool = False
    """Keep the files of runs that do not succeed."""


class Campaign:
    """A plan on its way; ``say`` hears what a person wants to know, ``done`` every result."""

    def __init__(
        self,
        conditions: Conditions,
        journal: Journal,
        judge: Judge,
        say: Callable[[str], None],
        done: Callable[[RunResult], None],
    ) -> None:
        self._conditions = conditions
        self._journal = journal
        self._judge = judge
        self._say = say
        self._done = done
        self._around: Surroundings | None = None
        self._testbed = ExitStack()

    @contextmanager
    def open(self) -> Iterator[Campaign]:
        """The campaign with a testbed that is gone when the block is left."""
        try:
            yield self
        finally:
            self._clear()

    def check_compliance(self, wanted: Mapping[str, tuple[Implementation, set[Role]]]) -> set[tuple[str, Role]]:
        """Check every implementation in the roles that the plan needs; return those that are not compliant."""
        found: list[Compliance] = []
        for implementation, roles in wanted.values():
            for compliance in self._check_one(implementation, tuple(sorted(roles))):
                self._journal.append_compliance(compliance)
                found.append(compliance)
                if not compliance.compliant:
                    self._say(f"{implementation.name} is not compliant as {compliance.role}: {compliance.reason}")
        return {(each.implementation, each.role) for each in found if not each.compliant}

    def carry_out(self, plan: Iterable[Run], not_compliant: set[tuple[str, Role]]) -> None:
        """All runs, in order; raises :class:`Interrupted` if told to stop, :class:`MachineError` if it cannot go on."""
        for run in plan:
            offenders = [(run.server.name, Role.SERVER), (run.client.name, Role.CLIENT)]
            offenders = [offender for offender in offenders if offender in not_compliant]
            result = self._not_compliant(run, offenders) if offenders else self._attempt(run)
            self._done(self._keep(result))

    def _keep(self, result: RunResult) -> RunResult:
        """Put a result on disk; if it cannot be written as it is, the fact that it could not."""
        try:
            self._journal.append_result(result)
        except HarnessFault as fault:
            verdict = Verdict(Outcome.ERROR, ErrorCode.HARNESS_FAULT, fault.reason)
            result = replace(result, verdict=verdict, measurement=None)
            self._journal.append_result(result)
        return result

    # ---- one run ---------------------------------------------------------------------------

    def _attempt(self, run: Run) -> RunResult:
        directory = self._journal.directory / run.path
        for attempt in range(1, ATTEMPTS + 1):
            if self._conditions.stop.is_set():
                raise Interrupted
            self._check_disk()
            result = self._run_once(run, directory, attempt)
            verdict = result.verdict
            if verdict.outcome is not Outcome.ERROR:
                return result
            if verdict.code is ErrorCode.DISK_FULL:
                raise MachineError(verdict.reason)
            if attempt == ATTEMPTS:
                self._close_testbed()  # whatever was wrong with it, the next run begins with another
                return result
            self._say(f"{run.path} is repeated: {verdict.reason}")
            self._keep(result)
            shutil.rmtree(directory.with_name(f"{directory.name}.attempt-{attempt}"), ignore_errors=True)
            directory.rename(directory.with_name(f"{directory.name}.attempt-{attempt}"))
            self._recover()
        raise AssertionError("unreachable: the last attempt returns")

    def _run_once(self, run: Run, directory: Path, attempt: int) -> RunResult:
        directory.mkdir(parents=True, exist_ok=True)
        evidence, measurement = Evidence(started="", seed=run.seed), None
        begin = time.monotonic()
        try:
            evidence = self._evidence(run, directory)
            begin = time.monotonic()
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
        return _result(run, attempt, verdict, replace(evidence, phases=phases), measurement)

    def _evidence(self, run: Run, directory: Path) -> Evidence:
        try:
            around = self._surroundings()
            facts = host.watch(self._conditions.daemon.info)
            return replace(transfer(run, around, directory), host=facts())
        except HarnessFault as fault:  # no testbed
            return Evidence(started="", seed=run.seed, fault_code=fault.code, fault=fault.reason)

    def _not_compliant(self, run: Run, offenders: list[tuple[str, Role]]) -> RunResult:
        names = " and ".join(f"{name} as {role}" for name, role in offenders)
        reason = f"not compliant with the endpoint contract: {names}"
        verdict = Verdict(Outcome.UNSUPPORTED, ErrorCode.NOT_COMPLIANT, reason)
        return _result(run, 1, verdict, Evidence(started="", seed=run.seed), None)

    # ---- where runs happen -----------------------------------------------------------------

    def _surroundings(self) -> Surroundings:
        if self._around is None:
            conditions = self._conditions
            testbed = self._testbed.enter_context(conditions.backend.open())
            self._around = Surroundings(
                daemon=conditions.daemon,
                testbed=testbed,
                images=conditions.images,
                stop=conditions.stop,
                qlog=conditions.qlog,
                keep_files=conditions.keep_files,
                parameters=conditions.parameters,
            )
        return self._around

    def _close_testbed(self) -> None:
        self._around = None
        stack, self._testbed = self._testbed, ExitStack()
        try:
            stack.close()
        except HarnessFault as fault:
            self._say(f"the testbed could not be removed yet: {fault.reason}")

    def _clear(self) -> bool:
        """Remove all of this campaign at the daemon; whether that could be done."""
        daemon = self._conditions.daemon
        self._close_testbed()
        try:
            daemon.sweep(daemon.campaign)
        except HarnessFault:
            return False
        return True

    def _recover(self) -> None:
        """After a fault of ours: wait until the daemon answers, and begin with a new testbed."""
        deadline = time.monotonic() + DAEMON_PATIENCE
        while not self._clear():
            if time.monotonic() > deadline:
                raise MachineError(
                    f"The Docker daemon at {self._conditions.daemon.url} has not answered for {DAEMON_PATIENCE:.0f} s. "
                    "What was finished is kept."
                )
            if self._conditions.stop.wait(2):
                raise Interrupted

    def _check_one(self, implementation: Implementation, roles: tuple[Role, ...]) -> tuple[Compliance, ...]:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return check_compliance(implementation, roles, self._surroundings())
            except HarnessFault as fault:
                if attempt == ATTEMPTS:
                    message = f"The compliance of {implementation.name} could not be checked: {fault.reason}"
                    raise MachineError(message) from fault
                self._recover()
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _check_disk(self) -> None:
        free = shutil.disk_usage(self._journal.directory).free
        if free < FREE_SPACE:
            raise MachineError(
                f"Only {byte_size(free)} are free in {self._journal.directory}; a run needs {byte_size(FREE_SPACE)}. "
                "What was finished is kept; make room (old campaigns below results/) and start again."
            )


def _result(run: Run, attempt: int, verdict: Verdict, evidence: Evidence, measurement: Measurement | None) -> RunResult:
    names = (run.server.name, run.client.name, run.test_case.name)
    return RunResult(*names, run.repetition, attempt, verdict, evidence, measurement, run.protocol)
