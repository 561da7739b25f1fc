"""Stored runs are judged again, in their journal and on disk, and nothing is lost where traces are."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.analysis.reanalysis import analyse_again, carry_out
from quicsat.cli import main as cli
from quicsat.model.errors import InputError
from quicsat.model.evidence import Exit
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import RunResult
from quicsat.model.run import File
from quicsat.results.store import Journal, load
from quicsat.traces import series
from quicsat.traces.run_traces import CLIENT_TRACE
from tests.analysis.test_run_outcome import REPORT
from tests.results_builder import SAT, result_set, run_result

DATA = Path(__file__).parents[1] / "data"
FILES = (File("f", 30_000, "x"),)


def stored(directory: Path, *, finished: bool = True) -> RunResult:
    """A campaign of one succeeded run, with the traces of a transfer of 30,000 bytes and a wrong goodput."""
    result = run_result(goodput=1.0)
    evidence = replace(result.evidence, offered=FILES, downloaded=FILES, simulator=REPORT, server=Exit(0))
    result = replace(result, evidence=evidence)
    with Journal.create(directory, result_set(test_cases=(SAT,), repetitions=1).manifest) as journal:
        journal.append_result(result)
        if finished:
            journal.finish()
    place = directory / "picoquic_quiche" / "sat" / "1"
    shutil.copytree(DATA / "lossy", place)
    return result


def test_numbers_are_those_of_the_traces_again(tmp_path: Path) -> None:
    before = stored(tmp_path)
    again = analyse_again(tmp_path)
    assert (again.analysed, again.without_traces, again.spoiled) == (1, (), False)
    assert again.changed == ("picoquic_quiche/sat/1: other numbers",)
    [after] = load(tmp_path).result_set.results
    assert after.measurement.values["goodput"] > 1e4
    assert (after.evidence, load(tmp_path).result_set.finished is not None) == (before.evidence, True)
    assert series.load(tmp_path / "picoquic_quiche/sat/1") is not None
    assert (tmp_path / "result.json").is_file()


def test_what_has_not_changed_is_not_written_again(tmp_path: Path) -> None:
    stored(tmp_path, finished=False)
    analyse_again(tmp_path)
    size = (tmp_path / "journal.jsonl").stat().st_size
    assert analyse_again(tmp_path).changed == ()
    assert (tmp_path / "journal.jsonl").stat().st_size == size
    assert load(tmp_path).result_set.finished is None


def test_another_verdict_is_told_with_its_reason(tmp_path: Path) -> None:
    stored(tmp_path)
    trace = tmp_path / "picoquic_quiche/sat/1" / CLIENT_TRACE
    trace.write_bytes(trace.read_bytes()[:-1])
    [line] = analyse_again(tmp_path).changed
    assert line.startswith("picoquic_quiche/sat/1: succeeded -> trace-truncated. The client's trace cannot be used:")
    assert load(tmp_path).result_set.results[0].verdict.outcome is Outcome.ERROR


def test_what_cannot_be_judged_now_is_told_by_the_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored(tmp_path)
    assert cli.main(tmp_path, ["analyse", str(tmp_path)]) == 0
    trace = tmp_path / "picoquic_quiche/sat/1" / CLIENT_TRACE
    trace.unlink()
    os.mkfifo(trace)
    assert cli.main(tmp_path, ["analyse", str(tmp_path)]) == 3
    assert "succeeded -> trace-corrupt" in capsys.readouterr().out


def test_runs_without_traces_stay_as_they_are(tmp_path: Path) -> None:
    before = stored(tmp_path)
    shutil.rmtree(tmp_path / "picoquic_quiche")
    again = analyse_again(tmp_path)
    assert (again.analysed, again.changed, again.without_traces) == (0, (), ("picoquic_quiche/sat/1",))
    told = "0 runs analysed, 0 changed; 1 without traces were left as they are: picoquic_quiche/sat/1"
    assert carry_out([tmp_path]) == (f"{tmp_path}: {told}", False)
    assert load(tmp_path).result_set.results == (before,)


def test_a_directory_without_journal(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        analyse_again(tmp_path)


def test_a_stored_pass_with_a_late_simulator_is_excluded_like_a_stored_failure(tmp_path: Path) -> None:
    """The released version kept the pass and excluded the failure."""
    passed = stored(tmp_path, finished=False)
    late = replace(passed.evidence, simulator=replace(REPORT, lag_max=0.5, receive_overflows=3))
    excluded = Verdict(Outcome.ERROR, ErrorCode.SIMULATOR_LAG, "Late.")
    failed = replace(passed, attempt=1, evidence=replace(late, client=Exit(1)), verdict=excluded, measurement=None)
    with Journal.open(tmp_path) as journal:
        journal.append_result(failed)
        journal.append_result(replace(passed, attempt=2, evidence=late))
    run = tmp_path / "picoquic_quiche/sat/1"
    shutil.copytree(run, run.with_name("1.attempt-1"))
    again = analyse_again(tmp_path)
    assert again.spoiled
    assert [line.partition(". ")[0] for line in again.changed] == [
        "picoquic_quiche/sat/1: succeeded -> simulator-lag",
        "attempt 1 at picoquic_quiche/sat/1: simulator-lag; valid, it would be client-failed",
    ]
    found = load(tmp_path).result_set
    verdicts = {each.attempt: each.verdict for each in (*found.results, *found.earlier)}
    would_be = {attempt: each.if_valid.code for attempt, each in verdicts.items() if each.if_valid is not None}
    assert {each.code for each in verdicts.values()} == {ErrorCode.SIMULATOR_LAG}
    assert would_be == {1: ErrorCode.CLIENT_FAILED, 2: ErrorCode.NONE}
    assert analyse_again(tmp_path).changed == ()
