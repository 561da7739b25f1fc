"""Carries a plan out over testbeds that stand side by side; every result is journalled as soon as it is known."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from interop.errors import HarnessFault
from interop.estimate import Durations
from interop.execution.agenda import Agenda
from interop.execution.crew import Crew
from interop.execution.place import result_of
from interop.execution.runner import DisturbedError, Runner
from interop.execution.transfer import Interrupted
from interop.limits import Limits
from interop.model import (
    Compliance,
    ErrorCode,
    Evidence,
    Implementation,
    Outcome,
    Role,
    Run,
    RunResult,
    Verdict,
)
from interop.store import Journal

T = TypeVar("T")

WAKE = 0.25
"""Seconds after which a signal is noticed at the latest."""


class Campaign:
    """A plan on its way; ``say`` hears what a person wants to know, ``done`` every result, one at a time."""

    def __init__(
        self,
        crew: Crew,
        journal: Journal,
        stop: threading.Event,
        say: Callable[[str], None],
        done: Callable[[RunResult], None],
    ) -> None:
        """``crew`` has the places where runs are made, here or elsewhere; ``stop`` ends it."""
        self._crew = crew
        self._journal = journal
        self._stop = stop
        self._say = say
        self._done = done
        self._lock = threading.Lock()
        """Held while something is told or written."""

    @contextmanager
    def open(self) -> Iterator[Campaign]:
        """The campaign with testbeds that are gone when the block is left."""
        try:
            yield self
        finally:
            self._crew.close()

    def check_compliance(self, wanted: Mapping[str, tuple[Implementation, set[Role]]]) -> set[tuple[str, Role]]:
        """Check every implementation in the roles that the plan needs; return those that are not compliant."""
        offenders: set[tuple[str, Role]] = set()

        def check(runner: Runner, what: tuple[Implementation, set[Role]]) -> None:
            implementation, roles = what
            for compliance in runner.check_compliance(implementation, tuple(sorted(roles))):
                if not self._note(compliance):
                    offenders.add((implementation.name, compliance.role))

        self._side_by_side(wanted.values(), check)
        return offenders

    def carry_out(
        self,
        plan: Sequence[Run],
        not_compliant: set[tuple[str, Role]],
        tried: Mapping[Run, int] | None = None,
        earlier: Iterable[RunResult] = (),
        *,
        alone: Collection[Run] = (),
        limits: Limits = Limits(),  # noqa: B008 - a frozen value
        durations: Durations | None = None,
    ) -> str:
        """All runs, begun in this order, and at the end those again, alone, that neighbours have disturbed.

        Of a campaign that is continued, ``tried``: how many attempts of a run there have been, ``earlier``: the
        results that limits are to count, too, ``alone``: which runs neighbours have disturbed; ``durations``: what is
        known from other campaigns.

        Returns why runs are left, if ``limits`` allow no more of them, else nothing.
        Raises :class:`Interrupted` if told to stop, :class:`MachineError` if it cannot go on.
        """
        attempts = {run: (tried or {}).get(run, 0) + 1 for run in plan}
        disturbed = [(run, attempts[run]) for run in plan if run in alone]
        plan = [run for run in plan if run not in alone]
        testbeds = min(self._crew.testbeds, self._crew.most)
        known = durations or Durations()
        agenda = Agenda(plan, limits, known, self._stop, self._tell, earlier=earlier, testbeds=testbeds)
        single = self._crew.most == 1

        def carry_out(runner: Runner, run: Run) -> None:
            offenders = [(run.server.name, Role.SERVER), (run.client.name, Role.CLIENT)]
            if offenders := [offender for offender in offenders if offender in not_compliant]:
                self._finish(_not_compliant(run, offenders))
                return
            if verdict := agenda.skips(run):
                self._finish(result_of(run, attempts[run], verdict, Evidence(started="", seed=run.seed), None))
                return
            try:
                result = runner.carry_out(run, attempts[run], alone=single)
            except DisturbedError as again:
                disturbed.append((run, again.attempt))
                return
            agenda.learn(run, result)
            self._finish(result)

        self._side_by_side(agenda, carry_out)
        if disturbed:
            self._tell(f"{len(disturbed)} runs that others may have disturbed are repeated, one after another")
        for run, attempt in disturbed:
            if agenda.may_begin(run):
                with self._runner() as runner:
                    assert runner is not None
                    self._finish(runner.carry_out(run, attempt, alone=True))
        return agenda.ended

    def _side_by_side(self, work: Iterable[T], act: Callable[[Runner, T], None]) -> None:
        """Hand out ``work`` in order, to each testbed when it is free; raises what the first of them raised."""
        source, taking, over = iter(work), threading.Lock(), threading.Event()

        def take() -> T | None:
            with taking:
                item = next(source, None)
            if item is None:
                over.set()
                self._crew.wake()
            return item

        def labour() -> None:
            try:
                while True:
                    with self._runner(over.is_set) as runner:
                        if runner is None or (item := take()) is None:
                            return
                        act(runner, item)
            except BaseException:
                self._stop.set()
                raise

        with ThreadPoolExecutor(self._crew.most) as pool:
            futures = [pool.submit(labour) for _ in range(self._crew.most)]
            while wait(futures, WAKE).not_done:
                pass  # signals may reach any thread, but are handled in this one, which has to be awake for that
        faults = [fault for future in futures if (fault := future.exception()) is not None]
        if faults:
            raise next((fault for fault in faults if not isinstance(fault, Interrupted)), faults[0])

    @contextmanager
    def _runner(self, over: Callable[[], bool] = bool) -> Iterator[Runner | None]:
        """Who has a place as long as the block lasts; None if it is ``over``."""
        place = self._crew.take(over)
        if place is None:
            yield None
            return
        runner = Runner(place, self._crew, self._journal.directory, self._stop, self._keep, self._tell)
        try:
            yield runner
        finally:
            self._crew.give_back(runner.place)

    # ---- what is told and written ------------------------------------------------------------

    def _tell(self, text: str) -> None:
        with self._lock:
            self._say(text)

    def _note(self, compliance: Compliance) -> bool:
        """Put on disk, and say, what is known of an image; whether it is compliant."""
        with self._lock:
            self._journal.append_compliance(compliance)
        if not compliance.compliant:
            self._tell(f"{compliance.implementation} is not compliant as {compliance.role}: {compliance.reason}")
        return compliance.compliant

    def _finish(self, result: RunResult) -> None:
        kept = self._keep(result)
        with self._lock:
            self._done(kept)

    def _keep(self, result: RunResult) -> RunResult:
        """Put a result on disk; if it cannot be written as it is, the fact that it could not."""
        with self._lock:
            try:
                self._journal.append_result(result)
            except HarnessFault as fault:
                verdict = Verdict(Outcome.ERROR, ErrorCode.HARNESS_FAULT, fault.reason)
                result = replace(result, verdict=verdict, measurement=None)
                self._journal.append_result(result)
        return result


def _not_compliant(run: Run, offenders: list[tuple[str, Role]]) -> RunResult:
    names = " and ".join(f"{name} as {role}" for name, role in offenders)
    reason = f"not compliant with the endpoint contract: {names}"
    verdict = Verdict(Outcome.UNSUPPORTED, ErrorCode.NOT_COMPLIANT, reason)
    return result_of(run, 1, verdict, Evidence(started="", seed=run.seed), None)
