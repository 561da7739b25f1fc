"""Dispatches the runs of a plan to free slots, in parallel; each result is journalled as soon as it is known."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from quicsat.execution.observer import Observer
from quicsat.execution.remaining_work import RemainingWork
from quicsat.execution.retries import DisturbedError, Runner
from quicsat.execution.run_queue import RunQueue
from quicsat.execution.worker import result_of
from quicsat.execution.worker_pool import WorkerPool
from quicsat.model.errors import HarnessFault, Interrupted
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import RunResult
from quicsat.model.run import Run
from quicsat.model.text import counted
from quicsat.plan.duration_estimate import Durations
from quicsat.plan.limits import CampaignLimits
from quicsat.results.store import Journal

T = TypeVar("T")

WAKE = 0.25
"""Seconds after which a signal is handled at the latest."""
FEWER = 4
"""Factor by which fewer runs are parallel each time that those are repeated which parallel runs may have disturbed."""


class Dispatcher:
    """Runs a plan on the slots of a worker pool; safe against signals and against the loss of workers."""

    def __init__(self, workers: WorkerPool, journal: Journal, observer: Observer) -> None:
        self._workers = workers
        self._journal = journal
        self._observer = observer
        self._lock = threading.Lock()
        """Held while the journal or a callback is used."""

    def check_compliance(self, wanted: Mapping[str, tuple[Implementation, set[Role]]]) -> set[tuple[str, Role]]:
        """Check every implementation in the roles that the plan needs; returns those that are not compliant."""
        offenders: set[tuple[str, Role]] = set()

        def check(runner: Runner, what: tuple[Implementation, set[Role]]) -> None:
            implementation, roles = what
            for compliance in runner.check_compliance(implementation, tuple(sorted(roles))):
                with self._lock:
                    self._journal.append_compliance(compliance)
                if not compliance.compliant:
                    self._tell(f"{implementation.name} is not compliant as {compliance.role}: {compliance.reason}")
                    offenders.add((implementation.name, compliance.role))

        self._in_parallel(wanted.values(), check, self._workers.max_slots)
        return offenders

    def run_all(
        self,
        work: RemainingWork,
        not_compliant: set[tuple[str, Role]],
        *,
        limits: CampaignLimits = CampaignLimits(),  # noqa: B008 - a frozen value
        durations: Durations | None = None,
    ) -> str | None:
        """Make all runs of ``work`` in order, and after them, fewer at a time, those that parallel runs have disturbed.

        ``durations`` are estimates from earlier campaigns. Returns why runs are left if ``limits`` allow no more of
        them, else None.
        Raises :class:`Interrupted` if the campaign is stopped, :class:`MachineError` if it cannot continue.
        """
        attempts = {run: work.tried.get(run, 0) + 1 for run in work.runs}
        disturbed = [run for run in work.runs if run in work.disturbed]
        queue = RunQueue(work, limits, durations or Durations(), self._workers, self._tell)
        slots = self._workers.max_slots

        def attempt(runner: Runner, run: Run) -> None:
            try:
                result = runner.run_with_retries(run, attempts[run], alone=slots == 1)
            except DisturbedError as again:
                attempts[run] = again.attempt
                disturbed.append(run)
            else:
                queue.record(run, result)
                self._finish(result)

        def run_one(runner: Runner, run: Run) -> None:
            ends = [(end.name, role) for end, role in run.ends]
            if offenders := [end for end in ends if end in not_compliant]:
                self._finish(_not_compliant(run, offenders))
            elif verdict := queue.skips(run):
                self._finish(result_of(run, attempts[run], verdict))
            else:
                attempt(runner, run)

        def repeat(runner: Runner, run: Run) -> None:
            if queue.may_start(run):
                attempt(runner, run)

        self._in_parallel(queue, run_one, slots, queue.over)
        while disturbed:
            slots = max(1, slots // FEWER)
            again, disturbed = disturbed, []
            at_a_time = "one" if slots == 1 else str(slots)
            self._tell(
                f"repeating {counted(len(again), 'run')} that parallel runs may have disturbed, {at_a_time} at a time"
            )
            self._in_parallel(again, repeat, slots)
        return queue.stop_reason

    def _in_parallel(
        self,
        work: Iterable[T],
        act: Callable[[Runner, T], None],
        slots: int,
        end: Callable[[T], object] = lambda _: None,
    ) -> None:
        """Apply ``act`` to the items of ``work`` in order, on up to ``slots`` slots at a time; raises the first error.

        ``end`` is called with each item after it, however that ends.
        """
        source, taking, over = iter(work), threading.Lock(), threading.Event()

        def take() -> T | None:
            with taking:
                item = next(source, None)
            if item is None:
                over.set()
                self._workers.wake()
            return item

        def worker_loop() -> None:
            try:
                while True:
                    with self._runner(over.is_set) as runner:
                        if runner is None or (item := take()) is None:
                            return
                        try:
                            act(runner, item)
                        finally:
                            end(item)
            except BaseException:
                self._workers.stop.set()
                raise

        with ThreadPoolExecutor(slots) as pool:
            futures = [pool.submit(worker_loop) for _ in range(slots)]
            while wait(futures, WAKE).not_done:
                pass  # Python handles signals in this thread only, which must be awake for that
        faults = [fault for future in futures if (fault := future.exception()) is not None]
        if faults:
            raise next((fault for fault in faults if not isinstance(fault, Interrupted)), faults[0])

    @contextmanager
    def _runner(self, over: Callable[[], bool] = bool) -> Iterator[Runner | None]:
        """A runner with a slot until the block is left; None once ``over`` returns true."""
        slot = self._workers.acquire(over)
        if slot is None:
            yield None
            return
        runner = Runner(slot, self._workers, self._journal.place, self._keep, self._tell)
        try:
            yield runner
        finally:
            self._workers.release(runner.slot)

    # ---- messages and journal ----------------------------------------------------------------

    def _tell(self, text: str) -> None:
        with self._lock:
            self._observer.say(text)

    def _finish(self, result: RunResult) -> None:
        kept = self._keep(result)
        with self._lock:
            self._observer.done(kept)

    def _keep(self, result: RunResult) -> RunResult:
        """Append a result to the journal; an error result instead if it cannot be written as it is."""
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
    return result_of(run, 1, verdict)
