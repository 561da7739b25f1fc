"""What the bench of cuts makes of campaigns: what is lost, who is blamed, and when cuts fell."""

import datetime
from pathlib import Path

import pytest

from bench.ssh_cuts import Case, Cut, moments, phase_at, report
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.results import Compliance, RunResult
from quicsat.results.store import Journal
from tests.results_builder import result_set, run_result

BEGIN = datetime.datetime(2026, 11, 21, 6, 1, tzinfo=datetime.UTC).timestamp()
PHASES = {"create": 2.0, "transfer": 5.0, "remove": 1.0}


def case(folder: Path, *results: RunResult, compliant: bool = True) -> Case:
    """A campaign that came to its end."""
    with Journal.create(folder, result_set().manifest) as journal:
        journal.append_compliance(Compliance("quiche", Role.CLIENT, compliant, "it hung", "i"))
        for result in results:
            journal.append_result(result)
        journal.finish()
    found = Case(folder, status=0)
    found.seen = found.journal
    return found


def test_nothing_lost_and_nobody_blamed(tmp_path: Path) -> None:
    error = run_result(None, repetition=2, outcome=Outcome.ERROR, code=ErrorCode.HOST_LOST)
    whole = case(tmp_path, run_result(phases=PHASES), error)
    whole.cuts = [Cut(BEGIN + 3, silent=False)]
    assert (whole.lost, whole.blamed) == (0, [])
    assert report([whole], 1) == 0
    assert report([whole], 2) == 1  # too few cuts


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMEOUT, Outcome.UNSUPPORTED, Outcome.SKIPPED])
def test_a_pair_that_is_blamed(tmp_path: Path, outcome: Outcome) -> None:
    blaming = case(tmp_path, run_result(None, outcome=outcome), run_result(attempt=2))
    assert len(blaming.blamed) == 1
    assert report([blaming], 0) == 1


def test_an_image_that_is_blamed(tmp_path: Path) -> None:
    assert case(tmp_path, run_result(), compliant=False).blamed == ["it hung"]


def test_lines_that_are_gone_or_changed_are_lost(tmp_path: Path) -> None:
    found = case(tmp_path, run_result(), run_result(repetition=2))
    lines = found.seen.splitlines(keepends=True)
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"".join(lines[:-2]))
    assert found.lost == 2
    path.write_bytes(
        found.seen.replace(b'"repetition":2', b'"repetition":3').replace(b'"repetition": 2', b'"repetition": 3')
    )
    assert found.lost == 1
    found.seen += b"half a line"
    path.write_bytes(b"".join(lines))
    assert found.lost == 0


def test_what_is_left_or_ended_oddly_fails(tmp_path: Path) -> None:
    left = case(tmp_path, run_result())
    left.left = 1
    assert report([left], 0) == 1
    left.left, left.status = 0, 1
    assert report([left], 0) == 1


def test_when_a_cut_fell(tmp_path: Path) -> None:
    found = case(tmp_path, run_result(phases=PHASES))
    found.cuts = [Cut(BEGIN + moment, silent=False) for moment in (0, 1.9, 2, 7.5, 8, -1)]
    assert list(moments(found)) == ["create", "create", "transfer", "remove", "between runs", "between runs"]
    assert phase_at(run_result(), BEGIN - 1) == ""
