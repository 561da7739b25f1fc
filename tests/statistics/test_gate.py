"""Whether all that compares campaigns says the same of the same runs: check, compare, the site and nightly messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest

from quicsat.cli.exit_status import ExitStatus, exit_status_for
from quicsat.model.expectations import Expectations
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet, RunResult
from quicsat.report import campaign_tables
from quicsat.report.comparison_lines import document
from quicsat.report.table import render
from quicsat.site.since import sentence
from quicsat.statistics.comparison import Comparison, campaigns, links
from quicsat.statistics.judgement import Judgement, judge
from quicsat.statistics.samples import PairOutcome, samples
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs, virtual

REAL, VIRTUAL, OTHER_CPU = "real", "virtual", "virtual, another processor"
OUTCOMES = {"F": Outcome.FAILED, "U": Outcome.UNSUPPORTED, "E": Outcome.ERROR, "S": Outcome.SKIPPED}
MISSING = "-"
FINE, WORSE, UNDECIDED, ERRORS = ExitStatus.SUCCESS, ExitStatus.FAILURE, ExitStatus.UNDECIDED, ExitStatus.MACHINE
NOT_GREEN = re.compile(r"\d+ pairs? got worse|may have got worse|could not be found")
Runs = Sequence[float | str]
"""Goodput of each repetition in Mbit/s, or a letter for its outcome; each repetition has its own seed."""


def made(each: Runs, clock: str, processor: str = "CPU") -> ResultSet:
    """A campaign of one pair; one with missing runs did not end."""
    found = [_run(what, number) for number, what in enumerate(each, start=1) if what != MISSING]
    results = result_set(found, repetitions=len(each), finished=None if MISSING in each else "2026-11-21T08:00:00Z")
    if clock == REAL:
        return results
    results = virtual(results)
    return replace(results, manifest=replace(results.manifest, processor=processor))


def _run(what: float | str, number: int) -> RunResult:
    if isinstance(what, str):
        return run_result(None, repetition=number, outcome=OUTCOMES[what])
    return run_result(what * 1e6, repetition=number)


def both(before: Runs, after: Runs, clock: str, loss: float | None = None) -> tuple[Comparison, Judgement]:
    first = made(before, clock)
    second = made(after, clock, "other" if clock == OTHER_CPU else "CPU")
    return campaigns(first, second, first.manifest.test_cases), judge(second, Expectations(regression=loss), first)


def repeated(what: float | str, times: int) -> list[float | str]:
    return [what] * times


@pytest.mark.parametrize(
    ("clock", "before", "after", "compared", "checked"),
    [
        # success rates; where the baseline never failed, a failure is unexpected whether or not chance explains it
        (REAL, [8], ["F"], UNDECIDED, WORSE),
        (REAL, [*repeated("F", 9), 8], repeated("F", 10), UNDECIDED, UNDECIDED),
        (REAL, [*repeated(8, 9), "F"], [*repeated(8, 5), *repeated("F", 5)], UNDECIDED, UNDECIDED),
        (REAL, repeated(8, 10), [*repeated(8, 6), *repeated("F", 4)], UNDECIDED, WORSE),
        (REAL, repeated(8, 10), repeated("F", 10), WORSE, WORSE),
        (REAL, [*repeated(8, 9), "F"], [*repeated(8, 9), "F"], FINE, FINE),
        (REAL, [*repeated(8, 5), *repeated("F", 5)], repeated(8, 10), FINE, FINE),
        # runs without a result
        (REAL, repeated(8, 10), ["U", *repeated("F", 9)], WORSE, WORSE),
        (REAL, repeated(8, 10), repeated("U", 10), WORSE, WORSE),
        (REAL, repeated(8, 10), ["U", *repeated(8, 9)], UNDECIDED, UNDECIDED),
        (REAL, repeated(8, 10), ["E", *repeated(8, 9)], ERRORS, ERRORS),
        (REAL, repeated(8, 10), ["S", *repeated(8, 9)], UNDECIDED, UNDECIDED),
        (REAL, repeated(8, 10), [*repeated(8, 9), MISSING], WORSE, WORSE),
        # seeds
        (VIRTUAL, [8, 8, 8], [8, 8, 8], FINE, FINE),
        (VIRTUAL, [8, 8, 8], [7, 7, 7], WORSE, WORSE),
        (VIRTUAL, [8, 8, 8], [7, 8, 8], UNDECIDED, UNDECIDED),
        (VIRTUAL, [8, 8], [7, 8], UNDECIDED, UNDECIDED),
        (VIRTUAL, [8, 8], [5.6, 11.36], UNDECIDED, UNDECIDED),
        (VIRTUAL, [8, 8], [5.6, 16], UNDECIDED, UNDECIDED),
        (VIRTUAL, repeated(8, 10), [7.8, *repeated(8.8, 9)], FINE, FINE),
        (VIRTUAL, repeated(8, 10), [8.01, *repeated(7, 9)], WORSE, WORSE),
        (VIRTUAL, [8, 8], [8], UNDECIDED, UNDECIDED),
        (VIRTUAL, [8], [8, 8], FINE, FINE),
        (VIRTUAL, [8], [8, "F"], UNDECIDED, WORSE),
        (VIRTUAL, [8, "F"], [8, "F", "F"], UNDECIDED, UNDECIDED),
        (VIRTUAL, [8], ["F"], WORSE, WORSE),
        # another processor
        (OTHER_CPU, [8, 8, 8], [8, 8, 8.05], FINE, FINE),
        (OTHER_CPU, [8, 8, 8], [9, 9, 9], FINE, FINE),
        (OTHER_CPU, [8, 8, 8], [4, 4, 4], UNDECIDED, UNDECIDED),
        (OTHER_CPU, [8, 8, 8], [9, 9, 7.9], UNDECIDED, UNDECIDED),
        (OTHER_CPU, [8, 8], [8], UNDECIDED, UNDECIDED),
        (OTHER_CPU, [8, 8, 8], [8, 8, "F"], UNDECIDED, WORSE),
    ],
)  # fmt: skip
def test_what_runs_say(clock: str, before: Runs, after: Runs, compared: ExitStatus, checked: ExitStatus) -> None:
    found, judged = both(before, after, clock)
    assert (exit_status_for(found), exit_status_for(judged)) == (compared, checked)


@pytest.mark.parametrize("clock", [REAL, VIRTUAL, OTHER_CPU])
def test_no_report_is_green_where_another_is_not(clock: str) -> None:
    """All campaigns of one or two runs. Green means that no run of the first lacks one as good in the second.

    Without a valid result in the first, there is nothing to compare, and the expectation that runs succeed is left.
    """
    first: Runs = (8, 4, "F", "U")
    second: Runs = (8, 4, *"FUES-")
    for count in (1, 2):
        for before, after in product(product(first, repeat=count), product(second, repeat=count)):
            found, judged = both(before, after, clock)
            green = exit_status_for(found) is FINE
            if set(before) != {"U"}:
                assert green is (exit_status_for(judged) is FINE), (before, after)
            told = document(found, made(before, clock), made(after, clock), "", ())
            assert green is not (told["undecided"] or any(each["worse"] for each in told["changes"]))
            assert green is (NOT_GREEN.search(sentence(found, "x")) is None)
            if green:
                wins, now = (sorted(each for each in some if not isinstance(each, str)) for some in (before, after))
                assert not {*after} & {*"E-", *("S" if wins else "")}
                assert after.count("U") <= before.count("U")
                assert len(wins) <= len(now)
                assert clock == REAL or len(wins) < len(now) or wins <= now


def test_what_the_second_campaign_lacks_is_not_green() -> None:
    whole = result_set([*runs(*[8e6] * 10), *runs(*[8e6] * 10, test_case="satloss")], test_cases=(SAT, SATLOSS))
    less = replace(whole, results=whole.results[:10], manifest=replace(whole.manifest, test_cases=(SAT,)))
    cut = replace(whole, results=whole.results[:10], finished=None)
    for clock in (lambda each: each, virtual):
        one, fewer, killed = clock(whole), clock(less), clock(cut)
        cases = one.manifest.test_cases
        assert exit_status_for(campaigns(one, one, cases)) is FINE
        assert exit_status_for(campaigns(one, one, [SAT])) is FINE
        found = campaigns(one, fewer, cases)
        assert exit_status_for(found) is exit_status_for(judge(fewer, Expectations(), one)) is UNDECIDED
        assert found.gaps == ("The second campaign does not contain 1 cell of the first.",)
        assert any(found.gaps[0] in note for note in campaign_tables.comparison(found, "a", "b").notes)
        assert exit_status_for(campaigns(one, fewer, [SAT])) is FINE
        found = campaigns(one, killed, cases)
        assert exit_status_for(found) is exit_status_for(judge(killed, Expectations(), one)) is WORSE
        assert found.unfinished.startswith("10 of 20 runs")
        assert not found.worse
        backwards = campaigns(killed, one, cases)
        assert exit_status_for(backwards) is UNDECIDED
        assert backwards.gaps == ("The first campaign has no valid result of 1 cell that the second has.",)


@pytest.mark.parametrize(
    ("outcomes", "found"),
    [
        ("UFF", PairOutcome.FAILED),
        ("FUU", PairOutcome.FAILED),
        ("EUF", PairOutcome.FAILED),
        ("UEU", PairOutcome.UNSUPPORTED),
        ("EES", PairOutcome.ERROR),
        ("S", PairOutcome.NOT_RUN),
    ],
)
def test_conclusive_runs_decide_what_became_of_a_pair(outcomes: str, found: PairOutcome) -> None:
    [sample] = samples(made([*outcomes], REAL), "sat")
    assert sample.pair_outcome is found
    [sample] = samples(made([8, *outcomes], REAL), "sat")
    assert sample.pair_outcome is (PairOutcome.FAILED if "F" in outcomes else PairOutcome.SUCCEEDED)


def test_pairs_of_another_selection_are_gaps_and_no_lost_pairs() -> None:
    first = virtual(result_set([*runs(8e6), *runs(8e6, server="b")], servers=("picoquic", "b"), repetitions=1))
    second = virtual(result_set(runs(8e6), repetitions=1))
    found = campaigns(first, second, first.manifest.test_cases)
    assert [pair.change.value for pair in found.pairs] == ["no change shown", "not in both"]
    assert found.gaps == ("The second campaign does not contain 1 cell of the first.",)
    tested = replace(second, manifest=replace(second.manifest, must_include=("picoquic",)))
    assert campaigns(first, tested, first.manifest.test_cases).gaps == ()
    assert campaigns(second, first, second.manifest.test_cases).gaps == ()


def test_seeds_that_decide_on_another_processor_are_named() -> None:
    alike, _ = both([8, 8], [8, 9], OTHER_CPU)
    worse, _ = both([8, 8], [8, 7], OTHER_CPU)
    told = [campaign_tables.comparison(each, "a", "b").notes for each in (alike, worse)]
    assert [any("so no test is needed" in note for note in notes) for notes in told] == [True, False]


def test_a_long_list_of_images_is_not_cut() -> None:
    found = replace(both([8], [8], REAL)[0], changed_images=tuple(f"name{number}: image a → b" for number in range(90)))
    text = " ".join(render(campaign_tables.comparison(found, "a", "b"), "text", 80).split())
    assert all(f"name{number}: image a → b." in text for number in range(90))


def test_two_links_of_one_campaign_have_no_gaps() -> None:
    results = result_set([*runs(8e6), *runs(4e6, test_case="satloss")], test_cases=(SAT, SATLOSS), repetitions=1)
    assert links(results, SAT, SATLOSS).gaps == ()
