"""Which run is next, and whether it may start: time windows, deadlines, budgets, required test cases, a breaker for
stalling pairs, and an end of the repetitions of failing ones."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

from quicsat.execution.remaining_work import RemainingWork
from quicsat.execution.worker_pool import WorkerPool
from quicsat.model.errors import Interrupted
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import RunResult
from quicsat.model.run import Run
from quicsat.model.units import seconds
from quicsat.plan.duration_estimate import Durations
from quicsat.plan.limits import CampaignLimits

NEAR_THE_END = 2
"""Runs per testbed that are left when the longest start first, so that no testbed is idle at the end."""
STALLING = (Outcome.TIMEOUT, Outcome.ERROR)
"""Outcomes that cost much time and give little information."""
NOT_SUCCEEDED = (Outcome.FAILED, Outcome.TIMEOUT, Outcome.UNSUPPORTED)
"""Outcomes for which the pair is responsible."""
PATIENCE = 1.0
"""Seconds between two checks of the clock outside the time windows."""


class RunQueue(Iterator[Run]):
    """The runs of a plan, each as soon as it may start; safe to use from several threads.

    It ends when no run is left, or when no other run is likely to end in time; ``stop_reason`` is set then. Raises
    :class:`Interrupted` if the campaign is to end.
    """

    def __init__(
        self,
        work: RemainingWork,
        limits: CampaignLimits,
        durations: Durations,
        workers: WorkerPool,
        say: Callable[[str], None],
    ) -> None:
        """``say`` gets messages about pauses and skipped runs; the end of the campaign of ``workers`` ends waiting."""
        plan = [run for run in work.runs if run not in work.disturbed]
        self._left = sorted(plan, key=lambda run: run.test_case.name != limits.required) if limits.required else plan
        self._begun: Counter[tuple[str, str]] = Counter()
        """Runs of the required test case that have begun and are not over, by server and client."""
        self._passed: dict[tuple[str, str], bool] = {}
        """Whether a repetition of the required test case has succeeded, by server and client."""
        self._limits = limits
        self._durations = durations
        self._stop = workers.stop
        self._say = say
        self._testbeds = workers.parallel_runs
        self.now: Callable[[], datetime] = partial(datetime.now, UTC)
        self._begin = time.monotonic()
        self._lock = threading.Lock()
        self._spent: dict[str, float] = {}
        self._stalled: Counter[tuple[str, Role, str]] = Counter()
        """Stalled runs in a row, by implementation, role and test case."""
        self._bad: set[tuple[str, str, str]] = set()
        """Server, client and test case of pairs whose last run stalled."""
        self._failed: set[tuple[str, str, str]] = set()
        """Server, client and test case of pairs with a run that did not succeed."""
        self._said: set[str] = set()
        """Messages that are not repeated."""
        self.stop_reason: str | None = None
        """Why runs are left, as a sentence; None if none are."""
        for result in work.counting:
            self._count(result)

    def __next__(self) -> Run:
        self.wait_for_opening()
        while True:
            with self._lock:
                if not self._left:
                    raise StopIteration
                if self._stop.is_set():
                    raise Interrupted
                if candidates := self._candidates():
                    return self._take(candidates)
            self._stop.wait(PATIENCE)

    def over(self, run: Run) -> None:
        """A run that was next has ended, however it did."""
        with self._lock:
            if run.test_case.name == self._limits.required:
                self._begun[run.key[:2]] -= 1

    def _candidates(self) -> list[Run]:
        """The runs that are left, without those that wait for their pair's runs of the required test case."""
        required = self._limits.required
        if required is None:
            return self._left
        undecided = {run.key[:2] for run in self._left if run.test_case.name == required} | set(+self._begun)
        return [run for run in self._left if run.test_case.name == required or run.key[:2] not in undecided]

    def _take(self, candidates: list[Run]) -> Run:
        if self._testbeds > 1 and len(candidates) <= NEAR_THE_END * self._testbeds:
            candidates = sorted(candidates, key=lambda run: -self._durations.of(run).low)
        run = next((run for run in candidates if self._too_late(run) is None), None)
        if run is None:
            self.stop_reason = self._too_late(candidates[0])
            raise StopIteration
        self._left.remove(run)
        if run.test_case.name == self._limits.required:
            self._begun[run.key[:2]] += 1
        return run

    def wait_for_opening(self) -> None:
        """Wait until a time window is open, the campaign is to end, or its time is up."""
        hours = self._limits.hours
        if hours is None or hours.are_open(self.now()):
            return
        opening = hours.opening(self.now())
        until = f"{opening.astimezone(hours.zone):%a %H:%M %Z}" if opening else "never"
        self._tell(f"paused until {until} ({', '.join(map(str, hours.closed))}, {hours.zone.key})")
        while not hours.are_open(self.now()) and self._time_is_up() is None and not self._stop.wait(PATIENCE):
            pass

    def may_start(self, run: Run) -> bool:
        """Whether a run that was started before may be repeated now."""
        self.wait_for_opening()
        with self._lock:
            too_late = self._too_late(run)
            self.stop_reason = self.stop_reason or too_late
        return too_late is None

    def skips(self, run: Run) -> Verdict | None:
        """The verdict of a ``run`` that is skipped; None if it is to be made."""
        limits = self._limits
        with self._lock:
            for name in dict.fromkeys((run.server.name, run.client.name)):
                if limits.budget is not None and self._spent.get(name, 0.0) >= limits.budget:
                    reason = f"The runs of {name} have used up their budget of {seconds(limits.budget)}."
                    return self._skipped(ErrorCode.BUDGET, reason)
            if run.test_case.name != limits.required and not self._passed.get(run.key[:2], True):
                reason = f"{run.client.name} with server {run.server.name} did not succeed in {limits.required}."
                return self._skipped(ErrorCode.REQUIREMENT, reason)
            cell = run.key[:3]
            if limits.skip_on_failure and cell in self._failed:
                reason = f"{run.client.name} with server {run.server.name} did not succeed in {run.test_case.name}."
                return self._skipped(ErrorCode.BREAKER, reason)
            if limits.breaker is None or cell not in self._bad:
                return None  # a pair is skipped only if its own last run stalled; each pair gets a first run
            for name, role in ((run.server.name, Role.SERVER), (run.client.name, Role.CLIENT)):
                if (count := self._stalled[name, role, run.test_case.name]) >= limits.breaker:
                    runs = f"The last {count} runs of {name} as {role} in {run.test_case.name}"
                    reason = f"{runs} timed out or ended in an error."
                    return self._skipped(ErrorCode.BREAKER, reason, about=f"{name} {role} {run.test_case.name}")
        return None

    def record(self, run: Run, result: RunResult) -> None:
        """Count a result for budget, breaker and estimated durations."""
        with self._lock:
            self._durations.learn(run.test_case, result)
            self._count(result)

    def _count(self, result: RunResult) -> None:
        """Count the time that a result took, and whether it stalled."""
        if result.verdict.outcome is Outcome.SKIPPED:
            return
        if result.test_case == self._limits.required and result.verdict.outcome is not Outcome.ERROR:
            succeeded = result.verdict.outcome is Outcome.SUCCEEDED
            pair = result.key[:2]
            self._passed[pair] = succeeded or self._passed.get(pair, False)
        for name in {result.server, result.client}:
            self._spent[name] = self._spent.get(name, 0.0) + sum(result.evidence.phases.values())
        cell = result.key[:3]
        stalled = result.verdict.outcome in STALLING
        (self._bad.add if stalled else self._bad.discard)(cell)
        if result.verdict.outcome in NOT_SUCCEEDED:
            self._failed.add(cell)
        for who in ((result.server, Role.SERVER), (result.client, Role.CLIENT)):
            key = (*who, result.test_case)
            self._stalled[key] = self._stalled[key] + 1 if stalled else 0

    # ---- time --------------------------------------------------------------------------------

    def _too_late(self, run: Run) -> str | None:
        """Why a run is not likely to end in time; None if it is. A run without history is attempted."""
        return self._time_is_up(self._durations.of(run).high if self._durations.known(run) else 0.0)

    def _time_is_up(self, ahead: float = 0.0) -> str | None:
        """Why time will be up in ``ahead`` seconds; None if it will not."""
        limits = self._limits
        if limits.deadline is not None and (limits.deadline - self.now()).total_seconds() <= ahead:
            return f"No other run is likely to end before the deadline, {limits.deadline:%Y-%m-%d %H:%M} UTC."
        if limits.most_seconds is not None and time.monotonic() - self._begin + ahead >= limits.most_seconds:
            return f"No other run is likely to end within {seconds(limits.most_seconds)}."
        return None

    # ---- messages ------------------------------------------------------------------------------

    def _skipped(self, code: ErrorCode, reason: str, about: str = "") -> Verdict:
        if (key := about or reason) not in self._said:
            self._said.add(key)
            self._say(f"{reason} Its remaining runs are skipped.")
        return Verdict(Outcome.SKIPPED, code, reason)

    def _tell(self, text: str) -> None:
        with self._lock:
            if text not in self._said:
                self._said.add(text)
                self._say(text)
