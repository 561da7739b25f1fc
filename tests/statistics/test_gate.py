"""Whether all that compares campaigns says the same of the same runs: check, compare, the site and nightly messages."""

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.outcome_status import exit_status_for, exit_status_of
from quicsat.model.clock import Clock
from quicsat.model.errors import InputError
from quicsat.model.expectations import Expectations
from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import Outcome
from quicsat.model.perturbation import Amplitudes
from quicsat.model.results import ImageFacts, Manifest, ResultSet, RunResult, Schedule, Versions
from quicsat.report import campaign_tables
from quicsat.report.comparison_lines import document
from quicsat.report.table import render
from quicsat.site.since import sentence
from quicsat.statistics.comparison import Comparison, campaigns, links
from quicsat.statistics.conditions import check_fit
from quicsat.statistics.facts import read_condition, where
from quicsat.statistics.judgement import Judgement, judge
from quicsat.statistics.samples import PairOutcome, samples
from tests.results_builder import SAT, SATLOSS, implementation, result_set, run_result, runs, virtual

REAL, VIRTUAL, OTHER_CPU = "real", "virtual", "virtual, another processor"
OUTCOMES = {
    "N": Outcome.SUCCEEDED,
    "F": Outcome.FAILED,
    "U": Outcome.UNSUPPORTED,
    "E": Outcome.ERROR,
    "S": Outcome.SKIPPED,
}
"""N: without a goodput."""
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
    ("clock", "before", "after", "status"),
    [
        # success rates
        (REAL, [8], ["F"], UNDECIDED),
        (REAL, [*repeated("F", 9), 8], repeated("F", 10), UNDECIDED),
        (REAL, [*repeated(8, 9), "F"], [*repeated(8, 5), *repeated("F", 5)], UNDECIDED),
        (REAL, repeated(8, 10), [*repeated(8, 6), *repeated("F", 4)], UNDECIDED),
        (REAL, repeated(8, 10), repeated("F", 10), WORSE),
        (REAL, [*repeated(8, 9), "F"], [*repeated(8, 9), "F"], FINE),
        (REAL, [*repeated(8, 5), *repeated("F", 5)], repeated(8, 10), FINE),
        # runs without a result
        (REAL, repeated(8, 10), ["U", *repeated("F", 9)], WORSE),
        (REAL, repeated(8, 10), repeated("U", 10), WORSE),
        (REAL, repeated(8, 10), ["U", *repeated(8, 9)], UNDECIDED),
        (REAL, repeated(8, 10), ["E", *repeated(8, 9)], ERRORS),
        (REAL, repeated(8, 10), ["S", *repeated(8, 9)], UNDECIDED),
        (REAL, repeated(8, 10), [*repeated(8, 9), MISSING], WORSE),
        # seeds
        (VIRTUAL, [8, 8, 8], [8, 8, 8], FINE),
        (VIRTUAL, [8, 8, 8], [7, 7, 7], UNDECIDED),
        (VIRTUAL, [8, 8, 8], [7, 8, 8], UNDECIDED),
        (VIRTUAL, [8, 8], [7, 8], UNDECIDED),
        (VIRTUAL, [8, 8], [5.6, 11.36], UNDECIDED),
        (VIRTUAL, [8, 8], [5.6, 16], UNDECIDED),
        (VIRTUAL, repeated(8, 10), [7.8, *repeated(8.8, 9)], FINE),
        (VIRTUAL, repeated(8, 10), [8.01, *repeated(7, 9)], WORSE),
        (VIRTUAL, [8, 8], [8], FINE),
        (VIRTUAL, [8], [8, 8], FINE),
        (VIRTUAL, [8], [8, "F"], UNDECIDED),
        (VIRTUAL, [8, "F"], [8, "F", "F"], UNDECIDED),
        (VIRTUAL, [8], ["F"], UNDECIDED),
        # another processor
        (OTHER_CPU, [8, 8, 8], [8, 8, 8], FINE),
        (OTHER_CPU, repeated(8, 10), repeated(7, 10), WORSE),
        (OTHER_CPU, [8, 8, 8], [8, 8, 8.05], UNDECIDED),
        (OTHER_CPU, [8, 8, 8], [4, 4, 4], UNDECIDED),
        (OTHER_CPU, [8, 8, 8], [9, 9, 7.9], UNDECIDED),
        (OTHER_CPU, [8, 8], [8], FINE),
        (OTHER_CPU, [8, 8, 8], [8, 8, "F"], UNDECIDED),
    ],
)  # fmt: skip
def test_what_runs_say(clock: str, before: Runs, after: Runs, status: ExitStatus) -> None:
    found, judged = both(before, after, clock)
    assert (exit_status_for(found), exit_status_for(judged)) == (status, status)


@pytest.mark.parametrize("clock", [REAL, VIRTUAL, OTHER_CPU])
def test_results_that_a_campaign_has_lost_are_not_green(clock: str) -> None:
    """Although it has ended. Results of a choice are not lost, and those that ended in an error neither."""
    whole = made(repeated(8, 10), clock)
    cases = whole.manifest.test_cases
    for left in (0, 1, 9):
        lost = replace(whole, results=whole.results[:left])
        found = campaigns(whole, lost, cases)
        judged = judge(lost, Expectations(), whole)
        assert exit_status_for(found) is exit_status_for(judged) is exit_status_of(lost) is WORSE
        assert f"{left} of 10 runs" in found.unfinished == judged.unfinished
        backwards = campaigns(lost, whole, cases)
        assert exit_status_for(backwards) is exit_status_for(judge(whole, Expectations(), lost)) is UNDECIDED
        assert f"{left} of 10 runs" in backwards.gaps[0]
        assert (
            lost.of_pairs(lost.planned).lacking
            == where(lost, [read_condition("share.handshake=0")]).lacking
            == 10 - left
        )
    for chosen in (whole.of_pairs([("a", "b")]), where(whole, [read_condition("share.handshake=0")])):
        assert (chosen.results, campaigns(whole, chosen, cases).unfinished) == ((), "")
    assert made([*repeated(8, 9), "E"], clock).lacking == 0


@pytest.mark.parametrize("clock", [REAL, VIRTUAL, OTHER_CPU])
def test_all_reports_follow_one_rule(clock: str) -> None:
    """All campaigns of one or two runs. Green means that no run of the first lacks one as good in the second."""
    kinds: Runs = (8, 4, *"NFUES")
    pairs: list[tuple[Any, ...]] = [*product(product(kinds, repeat=1), repeat=2)]
    second = combinations_with_replacement(kinds, 2) if clock == REAL else product(kinds, repeat=2)
    pairs += product(combinations_with_replacement((8, 4, "F", "U"), 2), second)
    pairs += [(two, (what, MISSING)) for two in product((8, "F"), repeat=2) for what in kinds]
    for before, after in pairs:
        found, judged = both(before, after, clock)
        status = exit_status_for(found)
        assert status is exit_status_for(judged), (before, after)
        green = status is FINE
        told = document(found, made(before, clock), made(after, clock), "", ())
        assert green is not (told["undecided"] or any(each["worse"] for each in told["changes"]))
        assert green is (NOT_GREEN.search(sentence(found, "x")) is None)
        if green:
            wins, now = (sorted(each for each in some if not isinstance(each, str)) for some in (before, after))
            assert not {*after} & {*"NE-", *("S" if wins else "")}
            assert after.count("U") <= before.count("U") + before.count("E") + before.count("S")
            assert len(wins) <= len(now)
            assert clock == REAL or len(wins) < len(now) or wins <= now


def test_what_the_second_campaign_lacks_is_not_green() -> None:
    whole = result_set([*runs(*[8e6] * 10), *runs(*[8e6] * 10, test_case="satloss")], test_cases=(SAT, SATLOSS))
    less = result_set(whole.results[:10])
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
        assert backwards.gaps == (
            f"First campaign: {found.unfinished}",
            "The first campaign has no valid result of 1 cell that the second has.",
        )


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
    backwards = campaigns(second, first, second.manifest.test_cases).gaps
    assert backwards == ("The first campaign has no valid result of 1 cell that the second has.",)


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [("hq", "h3", UNDECIDED), ("hq hq", "hq h3", UNDECIDED), ("h3", "h3", FINE), ("hq", "tcp", UNDECIDED)],
)
@pytest.mark.parametrize("clock", [VIRTUAL, OTHER_CPU])
def test_runs_with_another_protocol_are_not_compared(clock: str, before: str, after: str, status: ExitStatus) -> None:
    def with_protocols(words: str, processor: str) -> ResultSet:
        protocols = [Protocol(word) for word in words.split()]
        results = made([8.0] * len(protocols), clock, processor)
        pairs = zip(results.results, protocols, strict=True)
        return replace(results, results=tuple(replace(each, protocol=protocol) for each, protocol in pairs))

    first, second = with_protocols(before, "CPU"), with_protocols(after, "other" if clock == OTHER_CPU else "CPU")
    found = campaigns(first, second, [SAT])
    judged = judge(second, Expectations(), first)
    assert (exit_status_for(found), exit_status_for(judged)) == (status, status)
    told = [*judged.cells[0].details, *campaign_tables.comparison(found, "a", "b").notes]
    assert sum(" used another application protocol" in each or "Its runs used " in each for each in told) == (
        2 if status else 0
    )


CONDITIONS: dict[str, Any] = {
    "seed": 2,
    "clock": Clock.REAL,
    "cpu_cost": 4e-6,
    "own_cpu_costs": True,
    "cpu_cost_factor": 2.0,
    "test_cases": (replace(SAT, timeout=5.0),),
    "images": {"picoquic": ImageFacts("me/x:1", "sha256:1"), "simulator": ImageFacts("quicsat/s:2", "sha256:9")},
    "options": {"qlog": False},
    "amplitudes": Amplitudes(delay=0.02),
    "placebo": True,
}
"""Facts of a campaign that must be the same, and other values of them."""
OTHERS: dict[str, Any] = {
    "implementations": (replace(implementation("picoquic"), server_parameters="--cc bbr"), implementation("quiche")),
    "parameters": {"CLIENT_PARAMS": "-G bbr"},
}
"""Facts that must be the same unless all implementations that they concern are under test."""
NO_MATTER: dict[str, Any] = {
    "id": "x", "started": "2026-12-01T00:00:00Z", "command": ("x",), "tool_version": "9", "shard": "1/1", "note": "x",
    "schedule": Schedule(testbeds=2), "versions": Versions("9"), "processor": "CPU", "must_include": ("quiche",),
    "pairs": ("picoquic/quiche",), "planned_runs": 1, "servers": ("picoquic",), "clients": ("quiche",),
}  # fmt: skip


def test_each_fact_of_a_campaign_is_a_condition_or_none() -> None:
    assert {each.name for each in fields(Manifest)} == {*CONDITIONS, *OTHERS, *NO_MATTER}


@pytest.mark.parametrize(("name", "value"), [*CONDITIONS.items(), *OTHERS.items(), *NO_MATTER.items()])
@pytest.mark.parametrize("must_include", [(), ("quiche",), ("picoquic",), ("picoquic", "quiche")])
def test_under_other_conditions_neither_command_compares(name: str, value: Any, must_include: tuple[str, ...]) -> None:
    first = made([8], VIRTUAL)
    images = {"picoquic": ImageFacts("me/x:1", "sha256:1"), "simulator": ImageFacts("quicsat/s:1", "sha256:1")}
    options, parameters = {"qlog": True, "keep_files": False}, {"CLIENT_PARAMS": ""}
    first = replace(first, manifest=replace(first.manifest, images=images, options=options, parameters=parameters))
    manifest = replace(first.manifest, must_include=must_include)
    second = replace(first, manifest=replace(manifest, **{name: value}))
    tested = {*second.manifest.must_include}
    refused = name in CONDITIONS
    if name in OTHERS:
        concerned = {"picoquic"} if name == "implementations" else {"picoquic", "quiche"}
        refused = not concerned <= tested
    fits = True
    try:
        check_fit(first.manifest, second.manifest)
    except InputError:
        fits = False
    assert fits is not refused
    if not tested:  # compare then takes all implementations for those under test
        refused = name in CONDITIONS
    found = campaigns(first, second, [SAT])
    assert exit_status_for(found) is (ExitStatus.USAGE if refused else FINE)
    assert bool(found.unlike) is refused
    notes = campaign_tables.comparison(found, "a", "b").notes
    assert ("The campaigns cannot be compared, because their conditions differ." in notes) is refused
    assert bool(NOT_GREEN.search(sentence(found, "x"))) is refused


def test_a_long_list_of_images_is_not_cut() -> None:
    found = replace(both([8], [8], REAL)[0], changed_images=tuple(f"name{number}: image a → b" for number in range(90)))
    text = " ".join(render(campaign_tables.comparison(found, "a", "b"), "text", 80).split())
    assert all(f"name{number}: image a → b." in text for number in range(90))


def test_two_links_of_one_campaign_have_no_gaps() -> None:
    results = result_set([*runs(8e6), *runs(4e6, test_case="satloss")], test_cases=(SAT, SATLOSS), repetitions=1)
    assert links(results, SAT, SATLOSS).gaps == ()
