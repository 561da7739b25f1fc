"""Why runs of a cell failed, in sentences."""

from dataclasses import replace

import pytest

from quicsat.model.expectations import Expectations
from quicsat.model.outcomes import Cause, ErrorCode, Outcome, Verdict
from quicsat.report.cell_reasons import reasons
from quicsat.statistics.judgement import judge
from tests.results_builder import result_set, runs, virtual


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([Verdict(Outcome.TIMEOUT, ErrorCode.TIMEOUT)] * 2, ("Repetitions 1-2: timeout.",)),
        ([Verdict(Outcome.TIMEOUT, ErrorCode.TIMEOUT, "It took 6 s.")], ("Timeout: It took 6 s.",)),
        (
            [Verdict(Outcome.FAILED, ErrorCode.CRASHED, "It crashed.", Cause.LINK_LOSS), Verdict(Outcome.SUCCEEDED)],
            ("Repetition 1: failed (crashed, link-loss): It crashed.",),
        ),
    ],
)
def test_outcome_code_and_cause_are_told_once(verdicts: list[Verdict], expected: tuple[str, ...]) -> None:
    ended = [replace(run, verdict=verdict) for run, verdict in zip(runs(*[8e6] * len(verdicts)), verdicts, strict=True)]
    [cell] = judge(virtual(result_set(ended, repetitions=len(ended))), Expectations(), None).cells
    assert reasons(cell) == expected
