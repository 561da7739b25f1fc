"""How long runs take, from those that have been made."""

from dataclasses import replace

import pytest

from quicsat.model.evidence import Evidence
from quicsat.model.outcomes import Outcome, Verdict
from quicsat.model.results import RunResult
from quicsat.model.run import Run
from quicsat.plan.duration_estimate import MOST_OVERHEAD, OVERHEAD, SPREAD, Durations, Span
from tests.fakes import CASE, run_of


def took(run: Run, seconds: float, outcome: Outcome = Outcome.SUCCEEDED) -> RunResult:
    evidence = Evidence(started="", seed=1, phases={"transfer": seconds - 1, "create": 1.0})
    return RunResult(run.server.name, run.client.name, run.test_case.name, 1, 1, Verdict(outcome), evidence)


def learned(*pairs: tuple[Run, float]) -> Durations:
    durations = Durations()
    for run, seconds in pairs:
        durations.learn(run.test_case, took(run, seconds))
    return durations


FEW = [(run_of(), 10.0), (run_of(), 20.0)]
OTHERS = [(run_of(client=name), seconds) for name, seconds in zip("abc", (1.0, 2.0, 3.0), strict=True)]


@pytest.mark.parametrize(
    ("known", "run", "expected"),
    [
        ([(run_of(), float(seconds)) for seconds in range(1, 21)], run_of(repetition=9), Span(10.5, 18.0)),
        (FEW, run_of(), Span(10 * SPREAD[0], 20 * SPREAD[1])),
        (OTHERS, run_of(client="d"), Span(2.0, 3.0)),  # of a pair that is not known, others tell
    ],
)
def test_durations_follow_from_runs_that_are_known(known: list[tuple[Run, float]], run: Run, expected: Span) -> None:
    assert learned(*known).of(run) == expected
    assert learned(*known).known(run)


def test_another_link_or_another_file_tells_nothing() -> None:
    durations = learned((run_of(), 50.0))
    larger = run_of(case=replace(CASE, file_sizes=(10_000_000,)))
    assert not durations.known(larger)
    assert durations.of(larger) == Span(3 * 0.03 + 4 + OVERHEAD, CASE.timeout + MOST_OVERHEAD)
    renamed = run_of(case=replace(CASE, name="other", timeout=3.0))
    assert durations.known(renamed)


def test_what_did_not_take_place_tells_nothing() -> None:
    durations = Durations()
    durations.learn(CASE, took(run_of(), 5.0, Outcome.SKIPPED))
    durations.learn(CASE, replace(took(run_of(), 5.0), evidence=Evidence(started="", seed=1)))
    assert not durations.known(run_of())


def test_all_runs_one_after_another() -> None:
    known = [(run_of(), 10.0)] * 3 + [(run_of(client="b"), 30.0)] * 3
    total = learned(*known).total([run_of(repetition=n) for n in (1, 2)] + [run_of(client="b")])
    assert total == Span(50.0, 50.0)
    assert str(total) == "50.0 s"
    assert str(Span(50.0, 130.0)) == "50.0 s to 2 min 10 s"
