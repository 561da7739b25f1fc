"""The table of functional tests: a row per pair, a mark per test, and how many passed."""

from dataclasses import replace
from textwrap import dedent

from quicsat.model.outcomes import Check, ErrorCode, Outcome, Rules
from quicsat.model.results import ResultSet, RunResult
from quicsat.report.functional_table import matrix
from tests.results_builder import SAT, result_set, run_result

HANDSHAKE = replace(SAT, name="handshake", abbreviation="H", check=Check.HANDSHAKE)
RETRY = replace(SAT, name="retry", abbreviation="S", check=Check.TRANSFER)


def ended(outcome: Outcome, case: str = "handshake", client: str = "quiche", repetition: int = 1) -> RunResult:
    return run_result(None, outcome=outcome, test_case=case, client=client, repetition=repetition)


def results() -> ResultSet:
    runs = [
        ended(Outcome.SUCCEEDED),
        ended(Outcome.FAILED, repetition=2),
        ended(Outcome.UNSUPPORTED, "retry"),
        ended(Outcome.TIMEOUT, client="kwik"),
        ended(Outcome.TIMEOUT, client="kwik", repetition=2),
        ended(Outcome.ERROR, "retry", client="kwik"),
        run_result(5e6),
    ]
    return result_set(runs, clients=("quiche", "kwik", "xquic"), test_cases=(HANDSHAKE, RETRY, SAT), repetitions=2)


def test_the_whole_table() -> None:
    text = matrix(results())
    assert text.startswith(
        dedent("""\
        functional tests

        ┌────────┬──────────┬─────┬───┬────────┐
        │ client │ server   │ H   │ S │ passed │
        ├────────┼──────────┼─────┼───┼────────┤
        │ quiche │ picoquic │ 1/2 │ – │ 1/2    │
        │ kwik   │ picoquic │ T   │ ! │ 0/2    │
        │ xquic  │ picoquic │ ·   │ · │        │
        ├────────┼──────────┼─────┼───┼────────┤
        │ all    │ all      │ 1/4 │   │ 1/4    │
        └────────┴──────────┴─────┴───┴────────┘
        """)
    )
    assert text.endswith("H handshake, S retry.")


def test_a_run_that_no_key_opens_is_not_called_unsupported() -> None:
    sealed = ended(Outcome.UNSUPPORTED)
    sealed = replace(sealed, verdict=replace(sealed.verdict, code=ErrorCode.KEY_LOG_MISSING))
    runs = [sealed, ended(Outcome.UNSUPPORTED, client="kwik")]
    rows = matrix(result_set(runs, clients=("quiche", "kwik"), test_cases=(HANDSHAKE,), repetitions=1)).splitlines()
    marks = {row.split("│")[1].strip(): row.split("│")[3].strip() for row in rows if "picoquic" in row}
    assert marks == {"quiche": "?", "kwik": "–"}


def test_the_names_of_many_tests_are_all_told() -> None:
    many = tuple(replace(HANDSHAKE, name=f"handshake-over-link-{n}", abbreviation=f"H{n}") for n in range(30))
    text = matrix(result_set([], clients=("quiche",), test_cases=many, repetitions=1))
    assert text.endswith(", H29 handshake-over-link-29.")


def test_as_markdown_and_in_colours() -> None:
    assert "| kwik   | picoquic | T   | ! | 0/2    |" in matrix(results(), markdown=True)
    assert "\x1b[31mT\x1b[0m" in matrix(results(), colour=True)


def test_upstreams_rules_are_told() -> None:
    assert "--strict-upstream" not in matrix(results())
    strict = replace(HANDSHAKE, rules=Rules.UPSTREAM)
    assert "--strict-upstream" in matrix(result_set(test_cases=(strict,)))


def test_no_functional_test_no_table() -> None:
    assert matrix(result_set()) == ""
