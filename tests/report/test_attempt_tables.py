"""Every attempt is counted and shown, those that are excluded with their reason and what they would have been."""

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.model.outcomes import Check, ErrorCode, Outcome, Verdict
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.report import attempt_tables, functional_table, terminal_tables
from quicsat.report.table import render
from quicsat.results import document
from quicsat.results.attempts import NOT_STORED, by_cell, tally
from quicsat.results.store import Journal, load, write_result_json
from quicsat.results.summary import summarise
from quicsat.statistics.exclusion import Stratum, dependence
from tests.hostile_results import sealed
from tests.results_builder import SAT, result_set, run_result

LAG = ErrorCode.SIMULATOR_LAG
HANDSHAKE = replace(SAT, name="handshake", abbreviation="H", check=Check.HANDSHAKE)


def excluded(otherwise: Outcome | None, repetition: int = 1, attempt: int = 1, code: ErrorCode = LAG) -> RunResult:
    """An attempt that does not count, and what it would have been."""
    made = run_result(
        None, outcome=Outcome.ERROR, code=code, repetition=repetition, attempt=attempt, reason="It lagged."
    )
    if_valid = Verdict(otherwise) if otherwise else None
    return replace(made, verdict=replace(made.verdict, if_valid=if_valid))


PASSED, TIMEOUT, FAILED = Outcome.SUCCEEDED, Outcome.TIMEOUT, Outcome.FAILED
ATTEMPTS = (
    excluded(TIMEOUT),
    excluded(PASSED, attempt=2),
    run_result(5e6, attempt=3),
    excluded(None, repetition=2, code=ErrorCode.DAEMON_FAULT),
    run_result(6e6, repetition=2, attempt=2),
    run_result(None, repetition=3),
)
"""Of three repetitions; the last result of each counts."""


def campaign(case: TestCase = SAT, attempts: tuple[RunResult, ...] = ATTEMPTS) -> ResultSet:
    named = [replace(each, test_case=case.name) for each in attempts]
    last = {each.repetition: each for each in named}
    made = result_set(last.values(), test_cases=(case,), repetitions=3)
    return replace(made, earlier=tuple(each for each in named if each not in last.values()))


# ---- counted --------------------------------------------------------------------------------


def test_attempts_are_counted_with_reasons_and_what_they_would_have_been() -> None:
    [found] = by_cell(campaign()).values()
    assert [each.attempt for each in found] == [1, 2, 3, 1, 2, 1]
    tallied = tally(found)
    assert (tallied.attempts, tallied.runs, tallied.valid, tallied.excluded) == (6, 3, 3, 3)
    assert list(tallied.reasons.items()) == [("simulator-lag", 2), ("daemon-fault", 1)]
    assert (tallied.passed, tallied.decisive, tallied.would_pass, tallied.would_decide) == (2, 3, 1, 2)
    [cell] = summarise(campaign())
    assert (cell.n, cell.attempts, cell.excluded, cell.repeated) == (3, 6, 3, 3)


@pytest.mark.parametrize("code", [ErrorCode.NOT_COMPLIANT, ErrorCode.IMAGE_MISSING, ErrorCode.BUDGET])
def test_runs_that_were_not_started_have_no_attempt(code: ErrorCode) -> None:
    outcome = {ErrorCode.NOT_COMPLIANT: Outcome.UNSUPPORTED, ErrorCode.BUDGET: Outcome.SKIPPED}
    result = run_result(None, outcome=outcome.get(code, Outcome.ERROR), code=code)
    assert tally([result]).attempts == 0
    [cell] = summarise(result_set([result], repetitions=1))
    assert (cell.attempts, cell.excluded, cell.repeated) == (0, 0, 0)


def test_a_run_that_was_skipped_after_an_attempt_has_that_one() -> None:
    skipped = run_result(None, outcome=Outcome.SKIPPED, attempt=2)
    assert tally([excluded(PASSED), skipped]).attempts == 1


def test_a_valid_attempt_that_somebody_had_repeated_stays_valid() -> None:
    tallied = tally([run_result(None), run_result(5e6, attempt=2)])
    assert (tallied.attempts, tallied.valid, tallied.passed, tallied.decisive) == (2, 2, 1, 2)
    assert (tallied.retried, tally([run_result(5e6)]).retried) == (1, 0)


RETRIED = (run_result(None), excluded(None, attempt=2), run_result(5e6, attempt=3))
"""At one repetition: a valid one that somebody had repeated, an excluded one, and the last one."""


# ---- stored ---------------------------------------------------------------------------------


def test_earlier_attempts_are_in_journal_and_document(tmp_path: Path) -> None:
    wanted = campaign()
    with Journal.create(tmp_path, wanted.manifest) as journal:
        for each in ATTEMPTS:
            journal.append_result(each)
        journal.append_result(changed := replace(ATTEMPTS[0], verdict=replace(ATTEMPTS[0].verdict, reason="Again.")))
    found = load(tmp_path).result_set
    assert found.results == wanted.results
    assert found.earlier == (changed, *wanted.earlier[1:])
    (tmp_path / "journal.jsonl").unlink()
    write_result_json(tmp_path, wanted)
    assert load(tmp_path).result_set == wanted
    assert load(tmp_path).history == (*wanted.earlier, *wanted.results)


def test_a_journal_that_lost_its_manifest_takes_earlier_attempts_from_the_document(tmp_path: Path) -> None:
    wanted = campaign()
    write_result_json(tmp_path, wanted)
    (tmp_path / "journal.jsonl").write_bytes(b"")
    assert load(tmp_path).result_set.earlier == wanted.earlier


def test_documents_of_the_released_version_are_read_and_what_they_lack_is_told(tmp_path: Path) -> None:
    text = json.loads(document.document(campaign()))
    del text["earlier"]
    for each in text["results"]:
        del each["verdict"]["if_valid"]
    for cell in text["summary"]:
        del cell["attempts"], cell["excluded"]
    (tmp_path / "result.json").write_text(json.dumps(text))
    found = load(tmp_path).result_set
    assert found.earlier == ()
    [attempts] = by_cell(found).values()
    tallied = tally(attempts)
    assert (tallied.attempts, tallied.reasons) == (6, {NOT_STORED: 3})


def test_journals_of_the_released_version_are_read(tmp_path: Path) -> None:
    lines = []
    with Journal.create(tmp_path, campaign().manifest) as journal:
        for each in ATTEMPTS:
            journal.append_result(each)
    for line in (tmp_path / "journal.jsonl").read_bytes().splitlines():
        plain = json.loads(line)
        del plain["sum"]
        if plain["kind"] == "result":
            del plain["data"]["verdict"]["if_valid"]
        lines.append(sealed(plain))
    (tmp_path / "journal.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    found = load(tmp_path)
    assert found.warnings == ()
    [attempts] = by_cell(found.result_set).values()
    assert (tally(attempts).attempts, tally(attempts).excluded, tally(attempts).would_decide) == (6, 3, 0)


# ---- shown ----------------------------------------------------------------------------------


def test_the_matrix_shows_attempts_where_there_are_more_than_repetitions() -> None:
    text = terminal_tables.matrix(campaign(), "sat")
    assert "5.50 ± 0.71 ≈  28 %  (2/3, 1 T)  (6 attempts)" in text
    assert "--table attempts" in text
    assert "attempts" not in terminal_tables.matrix(campaign(attempts=ATTEMPTS[-1:]), "sat")


@pytest.mark.parametrize("markdown", [False, True])
def test_the_table_of_functional_tests_shows_attempts(markdown: bool) -> None:
    text = functional_table.matrix(campaign(HANDSHAKE), markdown=markdown)
    assert " 2/3+3 " in text
    assert "Of 6 attempts in total, quicsat excluded 3 and repeated 0 with --retry" in text
    text = functional_table.matrix(campaign(HANDSHAKE, RETRIED), markdown=markdown)
    assert "Of 3 attempts in total, quicsat excluded 1 and repeated 1 with --retry" in text
    assert "+" not in functional_table.matrix(campaign(HANDSHAKE, ATTEMPTS[-1:]), markdown=markdown)


def test_the_table_of_attempts() -> None:
    table = attempt_tables.attempts(campaign(), (SAT,))
    assert table.rows == (
        ("SAT", "picoquic", "quiche", 3, 6, 3, 3, "2 simulator-lag, 1 daemon-fault", "2/3", "1/2", 1.0),
    )
    assert all(note in render(table, "text") for note in table.notes), "none is cut"
    other = tuple(replace(each, client="kwik") for each in ATTEMPTS)
    both = replace(campaign(), results=(*campaign().results, *other[2::3]), earlier=(*campaign().earlier, *other[:2]))
    both = replace(both, manifest=replace(both.manifest, clients=("quiche", "kwik")))
    rows = attempt_tables.attempts(both, (SAT,)).rows
    assert [row[:4] for row in rows] == [
        ("SAT", "picoquic", "quiche", 3), ("SAT", "picoquic", "kwik", 2), ("SAT", "all", "all", 5),
    ]  # fmt: skip


def test_the_table_of_attempts_tells_what_was_repeated_on_request() -> None:
    [row] = attempt_tables.attempts(campaign(attempts=RETRIED), (SAT,)).rows
    assert row[3:8] == (1, 3, 2, 1, "1 simulator-lag, 1 repeated with --retry")


# ---- whether exclusion depends on the outcome -----------------------------------------------


def test_with_one_pair_it_is_fishers_test() -> None:
    """Fisher's tea (1935): 3 of 4, two-sided p = 34/70; and 0 of 5 excluded passes against 20 of 25, by hand."""
    assert dependence([Stratum(3, 4, 1, 4)]) == pytest.approx(34 / 70)
    ways = math.comb(30, 5)
    assert dependence([Stratum(0, 5, 20, 25)]) == pytest.approx(math.comb(10, 5) / ways)


def test_several_pairs_are_compared_each_within_itself() -> None:
    """A pair that always passes on a quiet hour and one that always fails on a noisy one tell nothing (Simpson)."""
    assert dependence([Stratum(1, 1, 30, 30), Stratum(0, 20, 0, 2)]) is None
    strata = [Stratum(1, 3, 5, 6), Stratum(0, 2, 3, 4), Stratum(2, 2, 1, 5)]
    assert dependence(strata) == pytest.approx(enumerated(strata))


def enumerated(strata: list[Stratum]) -> float:
    """The same p-value from all ways to exclude as many attempts of each pair."""
    sums: dict[int, float] = {0: 1.0}
    for each in strata:
        outcomes = [1] * (each.would_pass + each.passed)
        outcomes += [0] * (each.excluded + each.valid - len(outcomes))
        choices = [sum(choice) for choice in itertools.combinations(outcomes, each.excluded)]
        after: dict[int, float] = {}
        for before, weight in sums.items():
            for one in choices:
                after[before + one] = after.get(before + one, 0.0) + weight / len(choices)
        sums = after
    likely = sums[sum(each.would_pass for each in strata)] * (1 + 1e-9)
    return sum(weight for weight in sums.values() if weight <= likely)
