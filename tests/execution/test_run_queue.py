"""Which run is next, and whether it may begin."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quicsat.execution import run_queue
from quicsat.execution.remaining_work import RemainingWork
from quicsat.execution.run_queue import RunQueue
from quicsat.execution.worker import result_of
from quicsat.execution.worker_pool import WorkerPool
from quicsat.model.errors import Interrupted
from quicsat.model.evidence import Evidence
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import RunResult
from quicsat.model.run import Run
from quicsat.plan.duration_estimate import Durations
from quicsat.plan.limits import CampaignLimits
from quicsat.plan.time_windows import Hours, window, zone
from tests.execution.test_worker_pool import FakeWorker
from tests.fakes import CASE, run_of
from tests.waiting import Later

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
SLOW = replace(CASE, name="slow", abbreviation="SL", file_sizes=(10_000_000,))


class Stop(threading.Event):
    """Waiting moves the clock ``now`` instead of taking time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOON
        self.ending: tuple[Run, RunQueue] | None = None
        """A run that is over after the next wait, and its queue."""

    def wait(self, timeout: float | None = None) -> bool:
        self.now += timedelta(minutes=10)
        if self.ending:
            run, queue = self.ending
            self.ending = None
            queue.over(run)
        return self.is_set()


def result_with(run: Run, outcome: Outcome = Outcome.SUCCEEDED, seconds: float = 10.0) -> RunResult:
    evidence = Evidence(started="", seed=1, phases={"transfer": seconds})
    return result_of(run, 1, Verdict(outcome), evidence)


class Told:
    """An agenda with a clock of its own, and what it said."""

    def __init__(
        self, plan: Sequence[Run], limits: CampaignLimits, *results: tuple[Run, RunResult], **options: Any
    ) -> None:
        self.stop, self.said = Stop(), list[str]()
        durations = Durations()
        for run, result in results:
            durations.learn(run.test_case, result)
        work = RemainingWork(tuple(plan), {}, tuple(options.get("earlier", ())))
        workers = WorkerPool(self.stop, FakeWorker("a", count=options.get("testbeds", 1)))
        self.queue = RunQueue(work, limits, durations, workers, self.said.append)
        self.queue.now = lambda: self.stop.now


def names(runs: Sequence[Run]) -> list[str]:
    return [f"{run.client.name} {run.test_case.name} {run.repetition}" for run in runs]


def runs(*clients: str, repetitions: int = 2) -> list[Run]:
    return [run_of(client=client, repetition=each) for each in range(1, repetitions + 1) for client in clients]


def test_without_limits_the_order_is_that_of_the_plan() -> None:
    told = Told(runs("a", "b"), CampaignLimits())
    assert list(told.queue) == runs("a", "b")
    assert (told.queue.stop_reason, told.said) == (None, [])


# ---- time -----------------------------------------------------------------------------------


def test_nothing_begins_in_closed_hours() -> None:
    closed = Hours(zone("Europe/Zurich"), (window("13:00-18:00"),))
    told = Told(runs("a"), CampaignLimits(hours=closed))
    next(told.queue)
    assert told.stop.now == datetime(2026, 1, 15, 17, tzinfo=UTC)
    assert told.said == ["paused until Thu 18:00 CET (13:00-18:00, Europe/Zurich)"]
    next(told.queue)
    assert told.stop.now == datetime(2026, 1, 15, 17, tzinfo=UTC)


def test_closed_hours_end_with_the_campaign() -> None:
    closed = Hours(zone("UTC"), (window("11:00-18:00"),))
    told = Told(runs("a"), CampaignLimits(hours=closed))
    told.stop.set()
    with pytest.raises(Interrupted):
        next(told.queue)
    assert told.stop.now < NOON + timedelta(hours=1)
    late = Told(runs("a"), CampaignLimits(hours=closed, deadline=NOON + timedelta(hours=2)))
    assert list(late.queue) == []
    assert late.stop.now == NOON + timedelta(hours=2)
    assert "deadline, 2026-01-15 14:00 UTC" in (late.queue.stop_reason or "")


def test_no_run_begins_that_would_not_end_before_the_deadline() -> None:
    long, short = run_of(case=SLOW), run_of()
    known = [(long, result_with(long, seconds=100)), (short, result_with(short, seconds=20))]
    told = Told([long, long, short, short], CampaignLimits(deadline=NOON + timedelta(seconds=150)), *known)
    assert next(told.queue) is long
    told.stop.now += timedelta(seconds=100)
    assert next(told.queue) is short
    told.stop.now += timedelta(seconds=20)
    assert next(told.queue) is short
    told.stop.now += timedelta(seconds=20)
    assert list(told.queue) == []
    assert told.queue.stop_reason == "No other run is likely to end before the deadline, 2026-01-15 12:02 UTC."


def test_a_run_of_which_nothing_is_known_is_tried() -> None:
    told = Told(runs("a"), CampaignLimits(deadline=NOON + timedelta(seconds=1)))
    assert next(told.queue)
    told.stop.now += timedelta(seconds=1)
    assert list(told.queue) == []
    assert told.queue.stop_reason


def test_the_time_that_a_campaign_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    later = Later()
    monkeypatch.setattr(run_queue, "time", later)
    told = Told(runs("a", "b"), CampaignLimits(most_seconds=60), (run_of(), result_with(run_of(), seconds=20)))
    assert next(told.queue)
    later.pass_by(40)
    assert not told.queue.may_start(run_of())
    assert list(told.queue) == []
    assert told.queue.may_start(run_of(case=SLOW))  # its duration is not known
    assert told.queue.stop_reason == "No other run is likely to end within 60.0 s."


def test_the_longest_go_first_near_the_end() -> None:
    long, short = [run_of(case=SLOW, repetition=n) for n in (1, 2)], [run_of(repetition=n) for n in range(1, 9)]
    known = [(long[0], result_with(long[0], seconds=100)), (short[0], result_with(short[0], seconds=1))]
    plan = [*short, *long]
    assert list(Told(plan, CampaignLimits(), *known).queue) == plan
    assert list(Told(plan, CampaignLimits(), *known, testbeds=2).queue) == [*short[:6], *long, *short[6:]]


# ---- who stalls -----------------------------------------------------------------------------


def carry_out(told: Told, outcomes: dict[str, Outcome]) -> str:
    """What was made, and ``-`` before what was skipped."""
    made = []
    for run in told.queue:
        verdict = told.queue.skips(run)
        made.append(f"{'-' if verdict else ''}{run.client.name}{run.repetition}")
        if not verdict:
            told.queue.record(run, result_with(run, outcomes.get(run.client.name, Outcome.SUCCEEDED)))
    return " ".join(made)


STALLED = [result_with(run_of(client="bad"), Outcome.TIMEOUT)] * 2
MACHINE_FAULTS = {"x": Outcome.TIMEOUT, "y": Outcome.ERROR}


@pytest.mark.parametrize(
    ("plan", "limits", "outcomes", "earlier", "made"),
    [
        # what ends fast opens no breaker
        *((runs("bad", repetitions=4), CampaignLimits(breaker=2), {"bad": outcome}, [], "bad1 bad2 bad3 bad4")
          for outcome in (Outcome.FAILED, Outcome.UNSUPPORTED, Outcome.SUCCEEDED)),
        # the server's runs stall with two bad clients in a row: the third client is tried all the same
        (runs("x", "y", "good"), CampaignLimits(breaker=2), MACHINE_FAULTS, [], "x1 y1 good1 x2 y2 good2"),
        (runs("x", "y"), CampaignLimits(breaker=2), MACHINE_FAULTS, [], "x1 y1 -x2 -y2"),
        # what was made before an interruption counts
        (runs("bad"), CampaignLimits(breaker=2), {}, STALLED, "-bad1 -bad2"),
        (runs("bad"), CampaignLimits(breaker=2), {}, [*STALLED, result_with(run_of(client="bad"))], "bad1 bad2"),
        (runs("good"), CampaignLimits(budget=15), {}, [result_with(run_of())], "good1 -good2"),
        # who plays both roles pays once
        (runs("good", repetitions=4), CampaignLimits(budget=35), {}, [], "good1 good2 good3 good4"),
        # errors of the machine skip no repetition
        (runs("x", repetitions=3), CampaignLimits(skip_on_failure=True), {"x": Outcome.ERROR}, [], "x1 x2 x3"),
    ],
)  # fmt: skip
def test_what_is_skipped(
    plan: list[Run], limits: CampaignLimits, outcomes: dict[str, Outcome], earlier: list[RunResult], made: str
) -> None:
    assert carry_out(Told(plan, limits, earlier=earlier), outcomes) == made


def test_a_breaker_opens_after_runs_in_a_row_that_stall() -> None:
    told = Told(runs("good", "bad", repetitions=5), CampaignLimits(breaker=2))
    made = carry_out(told, {"bad": Outcome.TIMEOUT})
    assert made == "good1 bad1 good2 bad2 good3 -bad3 good4 -bad4 good5 -bad5"
    assert len(told.said) == 1
    reason = "The last 2 runs of bad as client in short timed out or ended in an error."
    assert told.said[0].startswith(f"{reason} Its remaining runs are skipped")


def test_a_verdict_of_the_breaker_blames_nobody() -> None:
    told = Told(runs("bad", repetitions=3), CampaignLimits(breaker=1))
    told.queue.record(run_of(client="bad"), result_with(run_of(client="bad"), Outcome.TIMEOUT))
    verdict = told.queue.skips(run_of(client="bad", repetition=2))
    assert (verdict.outcome, verdict.code) == (Outcome.SKIPPED, ErrorCode.BREAKER)


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMEOUT, Outcome.UNSUPPORTED])
def test_repetitions_after_a_failure_are_skipped(outcome: Outcome) -> None:
    """Whatever other pairs of the same server do, and however soon it failed, as with QIR-SE's option."""
    told = Told(runs("bad", "good", repetitions=3), CampaignLimits(skip_on_failure=True))
    assert carry_out(told, {"bad": outcome}) == "bad1 good1 -bad2 good2 -bad3 good3"
    assert len(told.said) == 1


def test_a_failure_in_one_test_case_skips_no_other() -> None:
    other = run_of(client="bad", case=SLOW)
    told = Told([*runs("bad", repetitions=2), other], CampaignLimits(skip_on_failure=True))
    told.queue.record(run_of(client="bad"), result_with(run_of(client="bad"), Outcome.FAILED))
    assert told.queue.skips(run_of(client="bad", repetition=2)) is not None
    assert told.queue.skips(other) is None


def test_a_budget_is_used_up() -> None:
    told = Told(runs("a", "b", repetitions=4), CampaignLimits(budget=35))
    assert carry_out(told, {}) == "a1 b1 a2 b2 -a3 -b3 -a4 -b4"  # the server's: 4 times 10 s
    assert told.said[0].startswith("The runs of good have used up their budget of 35.0 s.")
    verdict = told.queue.skips(run_of())
    assert verdict.code is ErrorCode.BUDGET


# ---- required test cases --------------------------------------------------------------------

REQUIRED = CampaignLimits(required=SLOW.name)


def required(client: str, repetition: int = 1) -> Run:
    return run_of(client=client, case=SLOW, repetition=repetition)


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMEOUT, Outcome.UNSUPPORTED])
def test_a_required_test_case_is_first_and_decides_about_its_pairs(outcome: Outcome) -> None:
    told = Told([*runs("good", "bad", repetitions=1), required("good"), required("bad")], REQUIRED)
    assert [run.client.name for run in (begin(told, Outcome.SUCCEEDED), begin(told, outcome))] == ["good", "bad"]
    good, bad = told.queue
    assert told.queue.skips(good) is None
    verdict = told.queue.skips(bad)
    assert (verdict.outcome, verdict.code) == (Outcome.SKIPPED, ErrorCode.REQUIREMENT)
    assert verdict.reason == f"bad with server {bad.server.name} did not succeed in slow."


def test_one_success_is_enough_and_errors_decide_nothing() -> None:
    once, broken = [required("once", each) for each in (1, 2)], [required("broken")]
    told = Told([*runs("once", "broken", repetitions=1), *once, *broken], REQUIRED)
    for outcome in (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.ERROR):
        begin(told, outcome)
    assert [told.queue.skips(run) for run in told.queue] == [None, None]


def test_runs_wait_until_the_required_ones_of_their_pair_are_over() -> None:
    told = Told([*runs("a", "b", repetitions=1), required("a"), required("b")], REQUIRED, testbeds=4)
    first, second = next(told.queue), next(told.queue)
    assert names([first, second]) == ["a slow 1", "b slow 1"]
    told.queue.over(second)
    assert names([next(told.queue)]) == ["b short 1"]
    started = told.stop.now
    told.stop.ending = first, told.queue
    assert names([next(told.queue)]) == ["a short 1"]
    assert told.stop.now > started


def test_earlier_results_decide_too() -> None:
    earlier = [result_with(required("a"), Outcome.FAILED)]
    assert carry_out(Told(runs("a", "b", repetitions=1), REQUIRED, earlier=earlier), {}) == "-a1 b1"


def begin(told: Told, outcome: Outcome) -> Run:
    """Make the next run."""
    run = next(told.queue)
    told.queue.record(run, result_with(run, outcome))
    told.queue.over(run)
    return run
