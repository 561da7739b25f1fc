"""What is found about the cells of a campaign, and whether it may be compared with a baseline."""

from dataclasses import replace

import pytest

from quicsat.model.clock import Clock
from quicsat.model.expectations import CellPattern, Expectations, GoodputFloor, KnownFailure
from quicsat.model.negotiated import Negotiated
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ImageFacts, Measurement, Provenance, ResultSet, RunResult
from quicsat.statistics.comparison import Conclusion
from quicsat.statistics.differences import differences
from quicsat.statistics.judgement import Finding, JudgedCell, judge
from tests.results_builder import result_set, run_result, runs, virtual

NOTHING = Expectations()
ALL = CellPattern(test_cases=("sat",))


def campaign(*goodputs: float | None) -> ResultSet:
    """One pair in virtual time, a repetition per goodput."""
    return virtual(result_set(runs(*goodputs), repetitions=len(goodputs)))


def only(results: ResultSet, expected: Expectations = NOTHING, baseline: ResultSet | None = None) -> JudgedCell:
    """The judgement of the only cell."""
    [cell] = judge(results, expected, baseline).cells
    return cell


@pytest.mark.parametrize(
    ("before", "after", "finding", "unexpected"),
    [
        ((8e6,), (7.93e6,), Finding.PASSED, False),
        ((8e6,), (7.9e6,), Finding.SLOWER, True),
        ((8e6,), (8.1e6,), Finding.FASTER, False),
        ((8e6,), (None,), Finding.BROKEN, True),
        ((8e6, 8e6), (8e6, None), Finding.BROKEN, True),
        ((None,), (8e6,), Finding.FIXED, False),
        ((None,), (None,), Finding.FAILS_AS_BEFORE, False),
        ((8e6, None), (8e6, None), Finding.FAILS_AS_BEFORE, False),
        ((), (None,), Finding.FAILURE, True),
        ((), (8e6,), Finding.PASSED, False),
    ],
)
def test_a_cell_against_the_baseline(
    before: tuple[float | None, ...], after: tuple[float | None, ...], finding: Finding, unexpected: bool
) -> None:
    """Each of these ten times."""
    cell = only(campaign(*after * 10), baseline=campaign(*before * 10) if before else None)
    assert (cell.finding, cell.unexpected) == (finding, unexpected)
    assert bool(cell.details) is (finding is not Finding.PASSED)


def test_a_smaller_loss_than_expected_passes() -> None:
    before, after = (campaign(*[rate] * 10) for rate in (8e6, 7.6e6))
    losses = [only(after, Expectations(regression=share), before) for share in (0.04, 0.06)]
    assert [(cell.finding, cell.unexpected) for cell in losses] == [
        (Finding.SLOWER, True),
        (Finding.SLIGHTLY_SLOWER, False),
    ]
    assert losses[0].details == losses[1].details
    told = "-5.0 % (10/10 members), from 8.00 Mbit/s to 7.60 Mbit/s"
    assert losses[0].details == (f"The goodput changed by {told}.",)


@pytest.mark.parametrize(
    ("after", "regression", "finding"),
    [
        ((7e6,) * 10, None, Finding.SLOWER),
        ((*(7e6,) * 9, 8.1e6), None, Finding.SLOWER),
        ((*(5e6,) * 5, *(12e6,) * 5), None, Finding.UNDECIDED),
        ((*(7e6,) * 5, *(8.5e6,) * 5), 0.12, Finding.PASSED),
        ((9e6,) * 10, None, Finding.FASTER),
        ((7e6,) * 3, None, Finding.PERHAPS_SLOWER),
        ((7e6,) * 3, 0.15, Finding.UNDECIDED),
        ((7.95e6,) * 3, None, Finding.UNDECIDED),
        ((9e6,) * 3, None, Finding.UNDECIDED),
        ((8e6,) * 3, None, Finding.PASSED),
    ],
)
def test_what_members_show_of_a_cell(after: tuple[float, ...], regression: float | None, finding: Finding) -> None:
    cell = only(campaign(*after), Expectations(regression=regression), campaign(*[8e6] * len(after)))
    assert (cell.finding, cell.unexpected) == (finding, finding is Finding.SLOWER)


def test_a_change_that_is_not_significant_is_told_once() -> None:
    cell = only(campaign(7.5e6), NOTHING, campaign(8e6))
    assert cell.finding is Finding.PERHAPS_SLOWER
    assert " ".join(cell.details).count("The goodput changed by") == 1
    assert "not even a total loss would have been found" in " ".join(cell.details)


def test_known_failures() -> None:
    expected = Expectations((KnownFailure(ALL, "issue 7"),))
    assert only(campaign(None), expected).finding is Finding.KNOWN_FAILURE
    assert only(campaign(8e6, None), expected).finding is Finding.KNOWN_FAILURE
    assert only(campaign(None), expected, campaign(8e6)).finding is Finding.KNOWN_FAILURE
    success = only(campaign(8e6), expected)
    assert (success.finding, success.unexpected) == (Finding.UNEXPECTED_SUCCESS, False)
    assert "issue 7" in success.details[0]


def test_the_reason_of_a_known_failure_is_printable() -> None:
    found = only(campaign(None), Expectations((KnownFailure(ALL, "issue\u202e\x1b[31m 7"),)))
    assert found.details == ("It is expected to fail: issue 7.",)


@pytest.mark.parametrize("now", [campaign(5e6), campaign(5e6, None)], ids=["stale", "partly failing"])
def test_a_known_failure_hides_no_violated_floor(now: ResultSet) -> None:
    known = (KnownFailure(ALL, "issue 7"),)
    below = only(now, Expectations(known, (GoodputFloor(ALL, 6e6),)))
    assert (below.finding, below.unexpected) == (Finding.BELOW_FLOOR, True)
    assert "below the floor of 6.00 Mbit/s" in below.details[0]
    assert "issue 7" in below.details[1]


def test_a_known_failure_hides_no_loss_of_goodput() -> None:
    slower = only(campaign(*[5e6] * 10), Expectations((KnownFailure(ALL, "issue 7"),)), campaign(*[8e6] * 10))
    assert (slower.finding, slower.unexpected) == (Finding.SLOWER, True)
    assert "Remove the known failure." in slower.details[1]


@pytest.mark.parametrize(
    ("before", "after", "expected", "finding"),
    [
        ((None, *[8e6] * 9), (8e6, *[4e6] * 9), Expectations(regression=0.05), Finding.SLOWER),
        ((8e6,) * 10, (None, *[4e6] * 9), Expectations((KnownFailure(ALL, "issue 7"),)), Finding.SLOWER),
        ((8e6,) * 10, (7.6e6,) * 10, Expectations(regression=0.05), Finding.SLOWER),
        ((None, 8e6), (None, 8e6, None), NOTHING, Finding.UNDECIDED),
        ((None, 8e6), (None, 8e6), NOTHING, Finding.FAILS_AS_BEFORE),
    ],
    ids=["fixed seed", "known failure", "exactly the limit", "failure with another seed", "same failure"],
)
def test_no_gain_and_no_excuse_hides_a_loss(
    before: tuple[float | None, ...], after: tuple[float | None, ...], expected: Expectations, finding: Finding
) -> None:
    assert only(campaign(*after), expected, campaign(*before)).finding is finding


def advice(expected: KnownFailure, *failing: tuple[str, str], unsupported: bool = False) -> str:
    """The sentence about server a with client x in a campaign of three servers and clients; the pairs fail."""
    results = [
        run_result(None if pair in failing else 8e6, server=pair[0], client=pair[1])
        for server in "abc"
        for client in "xyz"
        if (pair := (server, client)) != ("c", "z")
    ]
    results.append(
        run_result(None, server="c", client="z", outcome=Outcome.UNSUPPORTED if unsupported else Outcome.SKIPPED)
    )
    now = virtual(result_set(results, servers=tuple("abc"), clients=tuple("xyz"), repetitions=1))
    cells = {(each.sample.server, each.sample.client): each for each in judge(now, Expectations((expected,))).cells}
    assert cells["a", "x"].finding is Finding.UNEXPECTED_SUCCESS
    return cells["a", "x"].details[0].removeprefix("It succeeded, and is expected to fail. ")


NARROW = "Narrow the known failure to the cells that did not succeed: "


@pytest.mark.parametrize(
    ("cells", "failing", "told"),
    [
        (ALL, (), "Remove the known failure."),
        (CellPattern(("a",)), (("b", "x"),), "Remove the known failure."),
        (CellPattern(("a",)), (("a", "z"),), f"{NARROW}{{server: a, client: z, test: sat}}."),
        (ALL, (("b", "x"), ("b", "z")), f"{NARROW}{{server: b, client: [x, z], test: sat}}."),
        (
            ALL,
            (("a", "y"), ("b", "x"), ("b", "y"), ("c", "x"), ("c", "y")),
            f"{NARROW}{{server: [b, c], client: [x, y], test: sat}}, {{server: a, client: y, test: sat}}.",
        ),
    ],
)
def test_a_known_failure_is_only_removed_if_none_of_its_cells_fails(
    cells: CellPattern, failing: tuple[tuple[str, str], ...], told: str
) -> None:
    assert advice(KnownFailure(cells), *failing) == told


def test_an_unsupported_cell_needs_no_known_failure() -> None:
    assert advice(KnownFailure(ALL), unsupported=True) == "Remove the known failure."


def test_cells_that_need_a_known_failure_to_be_excused() -> None:
    skipped = run_result(None, server="b", outcome=Outcome.SKIPPED)
    results = result_set([*runs(8e6, server="a"), skipped], servers=("a", "b"), repetitions=1)
    cut = replace(results, results=results.results[:1], finished=None)
    before = result_set([*runs(8e6, server="a"), *runs(8e6, server="b")], servers=("a", "b"), repetitions=1)
    expected = Expectations((KnownFailure(ALL),))
    lost, unfinished, unknown = (
        judge(virtual(now), expected, baseline)
        for now, baseline in ((results, virtual(before)), (cut, None), (results, None))
    )
    for judged, told in ((lost, "{server: b, "), (unfinished, "{server: b, "), (unknown, "Remove the known failure.")):
        [success] = [each for each in judged.cells if each.finding is Finding.UNEXPECTED_SUCCESS]
        assert told in success.details[-1]


def test_the_advice_names_only_some_entries() -> None:
    names = [chr(ord("a") + number) for number in range(6)]
    pairs = [(server, client) for server in names for client in names]
    results = [run_result(None if server == client else 8e6, server=server, client=client) for server, client in pairs]
    now = virtual(result_set(results, servers=tuple(names), clients=tuple(names), repetitions=1))
    told = {
        each.details[0]
        for each in judge(now, Expectations((KnownFailure(ALL),))).cells
        if each.finding is Finding.UNEXPECTED_SUCCESS
    }
    assert len(told) == 1
    assert told.pop().endswith("{server: c, client: c, test: sat} and 3 more.")


@pytest.mark.parametrize(
    ("floor", "finding"), [(5e6, Finding.PASSED), (5.1e6, Finding.BELOW_FLOOR), (6e6, Finding.BELOW_FLOOR)]
)
def test_the_highest_of_several_floors_counts(floor: float, finding: Finding) -> None:
    floors = (GoodputFloor(ALL, floor), GoodputFloor(CellPattern(("picoquic",)), 2e6))
    for found in (floors, floors[:1]):
        assert only(campaign(5e6), Expectations(floors=found)).finding is finding


@pytest.mark.parametrize(
    ("outcome", "finding", "lost"),
    [
        (Outcome.UNSUPPORTED, Finding.UNSUPPORTED, Finding.LOST),
        (Outcome.SKIPPED, Finding.NOT_RUN, Finding.NO_RESULT),
    ],
)
def test_a_cell_without_a_result_is_lost_if_something_is_expected_of_it(
    outcome: Outcome, finding: Finding, lost: Finding
) -> None:
    now = virtual(result_set([run_result(None, outcome=outcome)], repetitions=1))
    assert only(now).finding is finding
    assert only(now, baseline=campaign(8e6)).finding is lost
    assert only(now, Expectations(floors=(GoodputFloor(ALL, 1e6),))).finding is lost
    assert not only(now, Expectations((KnownFailure(ALL),)), campaign(8e6)).unexpected


@pytest.mark.parametrize(
    ("goodputs", "finding"),
    [
        ((), Finding.UNFINISHED),
        ((8e6,) * 5, Finding.UNFINISHED),
        ((2e6,) * 9, Finding.SLOWER),
        ((8e6,) * 10, Finding.PASSED),
    ],
)
def test_cells_of_which_runs_are_left(goodputs: tuple[float, ...], finding: Finding) -> None:
    cut = virtual(result_set(runs(*goodputs), repetitions=10, finished=None))
    judged = judge(cut, NOTHING, campaign(*[8e6] * 10))
    assert [cell.finding for cell in judged.cells] == [finding]
    left = 10 - len(goodputs)
    assert judged.unfinished == (f"{len(goodputs)} of 10 runs measured; unfinished." if left else "")
    assert (f"Remaining runs of this cell: {left}." in judged.cells[0].details) is (left > 0)


def test_entries_for_no_cell_and_cells_of_one_side_are_told() -> None:
    expected = Expectations((KnownFailure(CellPattern(("quicgo",))),), (GoodputFloor(CellPattern((), ("x",)), 1.0),))
    before = virtual(result_set([*runs(8e6), *runs(8e6, server="other")], servers=("picoquic", "other"), repetitions=1))
    assert judge(campaign(8e6), expected, before).notes == (
        "The known failure for server quicgo is for no cell of this campaign.",
    )
    assert judge(campaign(8e6), expected, before).open == (
        "The goodput floor for client x is for no cell of this campaign.",
        "Cells of the baseline that are not part of this campaign: 1.",
    )


def test_only_planned_pairs_are_cells() -> None:
    whole = result_set(runs(8e6), servers=("picoquic", "other"), clients=("quiche", "more"), repetitions=1)
    manifest = replace(whole.manifest, must_include=("quiche",), planned_runs=2)
    cells = judge(replace(whole, manifest=manifest), NOTHING).cells
    assert [(cell.sample.server, cell.sample.client) for cell in cells] == [("other", "quiche"), ("picoquic", "quiche")]


def test_the_worst_comes_first() -> None:
    results = [*runs(8e6, server="a"), *runs(None, server="b"), *runs(4e6, server="c")]
    now = virtual(result_set(results, servers=("a", "b", "c"), repetitions=1))
    judged = judge(now, Expectations(floors=(GoodputFloor(ALL, 5e6),)))
    assert [cell.finding for cell in judged.cells] == [Finding.FAILURE, Finding.BELOW_FLOOR, Finding.PASSED]
    assert judged.counts == "1 unexpected failure, 1 below the goodput floor, 1 passed"
    assert judged.conclusion is Conclusion.WORSE


# ---- where the results cannot show whether something is worse --------------------------------

SERVERS = tuple("abcde")


def matrix(rate: float, repetitions: int, processor: str = "A", servers: tuple[str, ...] = SERVERS) -> ResultSet:
    """A cell per server, in virtual time; goodput differs by 2 % between seeds and by server."""
    results = [
        each
        for number, server in enumerate(servers, 1)
        for each in runs(*(rate * number * (1 + 0.02 * seed) for seed in range(repetitions)), server=server)
    ]
    found = virtual(result_set(results, servers=servers, repetitions=repetitions))
    return replace(found, manifest=replace(found.manifest, processor=processor))


@pytest.mark.parametrize("virtual_time", [True, False])
@pytest.mark.parametrize("repetitions", [2, 3, 5])
def test_halved_goodput_everywhere_is_found_whatever_the_cells_can_show(repetitions: int, virtual_time: bool) -> None:
    before, after = matrix(8e6, repetitions), matrix(4e6, repetitions, "B")
    if not virtual_time:
        before, after = (virtual(each, clock=Clock.REAL, cpu_cost=None) for each in (before, after))
    judged = judge(after, Expectations(regression=0.05), before)
    assert judged.conclusion is Conclusion.WORSE
    [group] = judged.groups
    assert group.text.startswith("All pairs together: the goodput changed by -50.0 %")
    assert judged.counts.startswith("1 worse over several cells")


def test_counts_say_that_the_campaign_as_a_whole_is_undecided() -> None:
    judged = judge(matrix(8e6, 3), NOTHING, matrix(8e6, 3, servers=SERVERS[:4]))
    assert judged.conclusion is Conclusion.UNDECIDED
    assert judged.counts == "5 passed, undecided as a whole"
    assert "undecided" not in judge(matrix(8e6, 3), NOTHING, matrix(8e6, 3)).counts


@pytest.mark.parametrize(
    ("before", "after", "conclusion"),
    [
        # One cell of five has lost half, on another processor: too few seeds for a test of it.
        (matrix(8e6, 3), (matrix(8e6, 3, "B"), "a", 4e6), Conclusion.UNDECIDED),
        # The same with as many seeds as the test needs.
        (matrix(8e6, 8), (matrix(8e6, 8, "B"), "a", 4e6), Conclusion.WORSE),
        # All runs are as in the baseline, on another processor.
        (matrix(8e6, 1), (matrix(8e6, 1, "B"), "", 0), Conclusion.FINE),
        # Cells of the baseline are gone, or new.
        (matrix(8e6, 3), (matrix(8e6, 3, servers=SERVERS[:4]), "", 0), Conclusion.UNDECIDED),
        (matrix(8e6, 3, servers=SERVERS[:4]), (matrix(8e6, 3), "", 0), Conclusion.UNDECIDED),
    ],
    ids=["one of few seeds", "one of many seeds", "unchanged", "gone", "new"],
)
def test_what_the_results_cannot_show_is_no_success(
    before: ResultSet, after: tuple[ResultSet, str, float], conclusion: Conclusion
) -> None:
    now, server, rate = after
    results = tuple(
        replace(each, measurement=Measurement({"goodput": rate})) if each.server == server else each
        for each in now.results
    )
    assert judge(replace(now, results=results), NOTHING, before).conclusion is conclusion


def real(*goodputs: float | None) -> ResultSet:
    """One pair in real time."""
    return result_set(runs(*goodputs), repetitions=len(goodputs))


@pytest.mark.parametrize(
    ("before", "after", "loss", "finding"),
    [
        ((8e6,) * 3, (4e6,) * 3, None, Finding.PERHAPS_SLOWER),
        ((8e6, 8.1e6, 8.2e6, 8.3e6) * 2, (8.05e6, 8.15e6, 8.2e6, 8.3e6) * 2, None, Finding.PASSED),
        ((8e6, 8.1e6, 8.2e6, 8.3e6) * 2, (8.05e6, 8.15e6, 8.2e6, 8.3e6) * 2, 0.05, Finding.PASSED),
        ((8e6, 8.1e6, 8.2e6, 8.3e6) * 2, (8.3e6, 8.2e6, 8.15e6, 8.05e6) * 2, 0.01, Finding.PASSED),
        ((6e6, 8.1e6, 10e6, 12e6) * 2, (12e6, 9e6, 8e6, 6.1e6) * 2, 0.05, Finding.UNDECIDED),
        ((8e6, 8e6, None), (None, None, None), None, Finding.UNDECIDED),
        ((8e6, 8.1e6) * 4 + (None,) * 2, (8e6, 8.1e6) * 4 + (None,), None, Finding.FAILS_AS_BEFORE),
        ((None,), (8e6,), None, Finding.FIXED),
    ],
)
def test_a_cell_whose_loss_chance_could_hide_has_not_passed(
    before: tuple[float | None, ...], after: tuple[float | None, ...], loss: float | None, finding: Finding
) -> None:
    cell = only(real(*after), Expectations(regression=loss), real(*before))
    assert cell.finding is finding
    assert not cell.unexpected


@pytest.mark.parametrize(
    ("results", "finding", "conclusion"),
    [
        ([replace(run_result(8e6), measurement=None)], Finding.UNDECIDED, Conclusion.UNDECIDED),
        ([run_result(None, outcome=Outcome.SKIPPED)], Finding.NOT_RUN, Conclusion.UNDECIDED),
        ([run_result(None, outcome=Outcome.UNSUPPORTED)], Finding.UNSUPPORTED, Conclusion.UNDECIDED),
        ([run_result(None, outcome=Outcome.ERROR)], Finding.ERROR, Conclusion.ERRORS),
        ([], Finding.UNFINISHED, Conclusion.UNFINISHED),
    ],
    ids=["no number", "skipped", "unsupported", "fault of ours", "none"],
)
def test_a_campaign_without_any_number_is_no_success(
    results: list[RunResult], finding: Finding, conclusion: Conclusion
) -> None:
    judged = judge(virtual(result_set(results, repetitions=1)), NOTHING)
    assert ([cell.finding for cell in judged.cells], judged.conclusion) == ([finding], conclusion)


def test_a_cell_whose_runs_were_skipped_is_no_success_unless_it_is_expected_to_fail() -> None:
    results = [*runs(8e6), run_result(None, server="other", outcome=Outcome.SKIPPED)]
    now = virtual(result_set(results, servers=("picoquic", "other"), repetitions=1))
    assert judge(now, NOTHING).conclusion is Conclusion.UNDECIDED
    assert judge(now, Expectations((KnownFailure(CellPattern(("other",))),))).conclusion is Conclusion.FINE


def with_images(results: ResultSet, **images: ImageFacts) -> ResultSet:
    """The same campaign with these images, of which quiche is under test."""
    named = {name.replace("_", "-"): image for name, image in images.items()}
    return replace(results, manifest=replace(results.manifest, images=named, must_include=("quiche",)))


def image(number: int, reference: str = "me/x:1") -> ImageFacts:
    return ImageFacts(reference, f"sha256:{number}", version=f"v{number}")


def test_the_builds_that_are_compared_are_named() -> None:
    labelled = replace(image(2), provenance=Provenance(revision="0123456789abcdef0123456789"))
    one = with_images(campaign(8e6), picoquic=image(1), quiche=image(1))
    other = with_images(campaign(8e6), picoquic=image(1), quiche=labelled)
    assert judge(other, NOTHING, one).builds == (
        "quiche: v1, image sha256:1 in the baseline of 2026-11-21; v2, commit 0123456789abcdef012 now.",
    )
    assert judge(other, NOTHING).builds == ()


# ---- what differs -----------------------------------------------------------------------------


def run_with(initial_max_data: int = 1000, **values: float) -> RunResult:
    """A successful run with these metrics."""
    facts = Negotiated(1, 0x1301, "hq-interop", client={}, server={"initial_max_data": initial_max_data})
    measurement = Measurement({"goodput": 8e6, **values}, negotiated=facts)
    return replace(run_result(8e6), measurement=measurement)


def test_differences_say_where_the_time_was_lost_and_what_changed() -> None:
    before = run_with(initial_window=40960.0, time_to_first_byte=1.2, time_to_2_mb=4.0, completion_time=9.0)
    after = run_with(500, initial_window=10240.0, time_to_first_byte=1.2, time_to_2_mb=5.5, completion_time=10.4)
    assert differences([before], [after]) == (
        ("The transfer takes 1.4 s longer (10.4 s): +1.50 s until 2 MB, then −0.10 s until the last byte."),
        "Negotiated server: initial max data [B]: 1000 → 500.",
        "Bytes that the server sends in the first round trip: 40 KiB → 10 KiB.",
    )


def test_small_differences_are_not_told() -> None:
    before = run_with(initial_window=40000.0, queueing_delay_95=0.001, in_flight_max=0.0)
    after = run_with(initial_window=39000.0, queueing_delay_95=0.003, in_flight_max=0.0)
    assert differences([before], [after]) == ()


def test_failed_runs_have_no_numbers_to_compare() -> None:
    assert differences([run_with()], [run_result(None)]) == ()


def test_what_the_transfer_waited_longer_for() -> None:
    def with_shares(**spent: float) -> list[RunResult]:
        values = {"goodput": 8e6, "completion_time": sum(spent.values())}
        values |= {f"time_in_{name}": taken for name, taken in spent.items()}
        return [replace(run_result(8e6), measurement=Measurement(values))]

    found = differences(
        with_shares(recovery=1.0, tail=0.3, pacing=2.0), with_shares(recovery=2.9, tail=0.31, pacing=1.7)
    )
    assert found[:2] == (
        "The transfer takes 1.6 s longer (4.9 s): +1.61 s until the last byte.",
        "By what it waited for: +1.90 s recovery, −0.30 s pacing.",
    )
    assert "By what it waited for" not in " ".join(differences(with_shares(tail=1.0), with_shares(tail=1.0)))
