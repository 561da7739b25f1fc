"""Which run is next, and whether it may begin: hours, deadlines, budgets, and a breaker for who stalls a campaign."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from interop.estimate import Durations
from interop.execution.transfer import Interrupted
from interop.limits import Limits
from interop.model import ErrorCode, Outcome, Role, Run, RunResult, Verdict
from interop.units import seconds

NEAR_THE_END = 2
"""Runs per testbed that are left when the longest go first, lest one testbed works while the others are idle."""
STALLING = (Outcome.TIMEOUT, Outcome.ERROR)
"""Outcomes that cost much time and tell little."""
PATIENCE = 1.0
"""Seconds between two looks at the clock in closed hours."""


class Agenda(Iterator[Run]):
    """The runs of a plan, each when it may begin; safe to use from several threads.

    It ends when no run is left, or when no other is likely to end in time: then ``ended`` says so. Raises
    :class:`Interrupted` if the campaign is to end.
    """

    def __init__(
        self,
        plan: Sequence[Run],
        limits: Limits,
        durations: Durations,
        stop: threading.Event,
        say: Callable[[str], None],
        *,
        earlier: Iterable[RunResult] = (),
        testbeds: int = 1,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """``say`` hears of pauses and of what is skipped; ``stop`` ends waiting.

        ``earlier``: results of a campaign that is continued, in their order, which count for budget and breaker.
        """
        self._left = list(plan)
        self._limits = limits
        self._durations = durations
        self._stop = stop
        self._say = say
        self._testbeds = testbeds
        self._now = now
        self._begin = time.monotonic()
        self._lock = threading.Lock()
        self._spent: dict[str, float] = {}
        self._stalled: Counter[tuple[str, Role, str]] = Counter()
        """Stalled runs in a row, by implementation, role and test case."""
        self._bad: set[tuple[str, str, str]] = set()
        """Server, client and test case of pairs whose last run stalled."""
        self._told: set[str] = set()
        self.ended = ""
        """Why runs are left, if any are; one sentence."""
        for result in earlier:
            self._count(result)

    def __next__(self) -> Run:
        self.wait_for_opening()
        with self._lock:
            if not self._left:
                raise StopIteration
            if self._stop.is_set():
                raise Interrupted
            candidates = self._left
            if self._testbeds > 1 and len(candidates) <= NEAR_THE_END * self._testbeds:
                candidates = sorted(candidates, key=lambda run: -self._durations.of(run).low)
            run = next((run for run in candidates if not self._too_late(run)), None)
            if run is None:
                self.ended = self._too_late(self._left[0])
                raise StopIteration
            self._left.remove(run)
            return run

    def wait_for_opening(self) -> None:
        """Return when hours are open, the campaign is to end, or time is up; at once if it is so now."""
        hours = self._limits.hours
        if hours is None or hours.are_open(self._now()):
            return
        opening = hours.opening(self._now())
        told = f"{opening.astimezone(hours.zone):%a %H:%M %Z}" if opening else "never"
        self._tell(f"paused until {told} ({', '.join(map(str, hours.closed))}, {hours.zone.key})")
        while not hours.are_open(self._now()) and not self._time_is_up() and not self._stop.wait(PATIENCE):
            pass

    def may_begin(self, run: Run) -> bool:
        """Whether a run that was handed out before may begin again now."""
        self.wait_for_opening()
        with self._lock:
            self.ended = self._too_late(run)
        return not self.ended

    def skips(self, run: Run) -> Verdict | None:
        """Why no time is to be spent on ``run``; None if it is to be carried out."""
        limits = self._limits
        with self._lock:
            for name in dict.fromkeys((run.server.name, run.client.name)):
                if limits.budget is not None and self._spent.get(name, 0.0) >= limits.budget:
                    reason = f"The runs of {name} have used up their budget of {seconds(limits.budget)}."
                    return self._skipped(ErrorCode.BUDGET, reason)
            if limits.breaker is None or (run.server.name, run.client.name, run.test_case.name) not in self._bad:
                return None  # a good pair is not to suffer from bad ones, and who has not met is tried once
            for name, role in ((run.server.name, Role.SERVER), (run.client.name, Role.CLIENT)):
                if (count := self._stalled[name, role, run.test_case.name]) >= limits.breaker:
                    reason = f"{count} runs of {name} as {role} in {run.test_case.name} in a row stalled."
                    return self._skipped(ErrorCode.BREAKER, reason, about=f"{name} {role} {run.test_case.name}")
        return None

    def learn(self, run: Run, result: RunResult) -> None:
        """Take a result into account."""
        with self._lock:
            self._durations.learn(run.test_case, result)
            self._count(result)

    def _count(self, result: RunResult) -> None:
        """What a result costs its implementations, and whether it stalled."""
        if result.verdict.outcome is Outcome.SKIPPED:
            return
        for name in {result.server, result.client}:
            self._spent[name] = self._spent.get(name, 0.0) + sum(result.evidence.phases.values())
        stalled = result.verdict.outcome in STALLING
        (self._bad.add if stalled else self._bad.discard)((result.server, result.client, result.test_case))
        for who in ((result.server, Role.SERVER), (result.client, Role.CLIENT)):
            key = (*who, result.test_case)
            self._stalled[key] = self._stalled[key] + 1 if stalled else 0

    # ---- time --------------------------------------------------------------------------------

    def _too_late(self, run: Run) -> str:
        """Why a run is not likely to end in time; empty if it is. One of which nothing is known is tried."""
        return self._time_is_up(self._durations.of(run).high if self._durations.known(run) else 0.0)

    def _time_is_up(self, ahead: float = 0.0) -> str:
        """Why time will be up in ``ahead`` seconds; empty if it will not."""
        limits = self._limits
        if limits.deadline is not None and (limits.deadline - self._now()).total_seconds() <= ahead:
            return f"No other run is likely to end before the deadline, {limits.deadline:%Y-%m-%d %H:%M} UTC."
        if limits.most_seconds is not None and time.monotonic() - self._begin + ahead >= limits.most_seconds:
            return f"No other run is likely to end within {seconds(limits.most_seconds)}."
        return ""

    # ---- what is told ------------------------------------------------------------------------

    def _skipped(self, code: ErrorCode, reason: str, about: str = "") -> Verdict:
        if (key := about or reason) not in self._told:
            self._told.add(key)
            self._say(f"{reason} Its remaining runs are skipped; `./run.py resume --retry skipped` makes them.")
        return Verdict(Outcome.SKIPPED, code, reason)

    def _tell(self, text: str) -> None:
        with self._lock:
            if text not in self._told:
                self._told.add(text)
                self._say(text)
