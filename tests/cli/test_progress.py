"""What is said of each run as soon as it is over."""

from dataclasses import replace

from quicsat.cli.progress import Progress
from quicsat.model.evidence import Evidence
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import RunResult
from tests.fakes import run_of


def test_a_run_that_has_no_number_is_told_by_its_outcome_and_its_reason_if_it_has_one() -> None:
    run = run_of()
    passed = RunResult("good", "good", "short", 1, 1, Verdict(Outcome.SUCCEEDED), Evidence(started="", seed=1))
    failed = replace(passed, verdict=Verdict(Outcome.FAILED, ErrorCode.CLIENT_FAILED, "It ended with 1."))
    for result, words in ((passed, "succeeded"), (failed, "failed: It ended with 1.")):
        progress = Progress()
        progress.begin([run])
        assert progress.line(result) == f"[1/1] good_good/short/1: {words}"
