"""The search for the build with which something changed, over simulated measurements."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest

from quicsat.model.errors import InputError
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ImageFacts, ResultSet
from quicsat.statistics.bisection import Bisected, Bisection, BisectionAnswer, Side, candidate, level, middles
from quicsat.statistics.confirmation import OUTCOME
from quicsat.statistics.samples import GOODPUT
from tests.results_builder import result_set, run_result, virtual

TESTED = "quiche"
PAIRS = (("quiche", "quiche"), ("quiche", "picoquic"), ("picoquic", "quiche"))
MEMBERS = (range(1, 7), range(7, 21))
"""Of the first and of the second look."""

Behaviour = Callable[[int, str, str, int], float | Outcome]
"""Goodput in Mbit/s, or outcome, of a member of a pair with the build at a place."""


def noise(*words: object, size: float = 0.001) -> float:
    return float(random.Random(str(words)).lognormvariate(0, size))


def server_loses(share: float, at: int, size: float = 0.001) -> Behaviour:
    """The server under test loses a share of its goodput from a place on; each run has noise of its own."""

    def behaviour(place: int, server: str, client: str, member: int) -> float:
        factor = 1 - share if server == TESTED and place >= at else 1.0
        return 8 * factor * noise(member, size=0.05) * noise(place, server, client, member, size=size)

    return behaviour


class Builds:
    """Simulates the measurement of builds; remembers which were measured."""

    def __init__(self, count: int, behaviour: Behaviour, broken: Sequence[int] = ()) -> None:
        self.count, self.behaviour, self.broken = count, behaviour, broken
        self.measured = list[tuple[int, int]]()
        self.images = dict[str, str]()
        """Of other implementations, where a build is measured with another one."""

    def __call__(self, place: int, look: int) -> ResultSet | None:
        if place in self.broken:
            return None
        if (place, look) not in self.measured:
            self.measured.append((place, look))
        results = []
        for server, client in PAIRS:
            for member in MEMBERS[look]:
                what = self.behaviour(place, server, client, member)
                made = partial(run_result, server=server, client=client, repetition=member)
                results.append(made(None, outcome=what) if isinstance(what, Outcome) else made(what * 1e6))
        images = {"quiche": f"{place}", "picoquic": self.images.get(str(place), "one")}
        names = ("quiche", "picoquic")
        found = virtual(result_set(results, servers=names, clients=names, repetitions=len(MEMBERS[look])))
        facts = {name: ImageFacts(name, identity) for name, identity in images.items()}
        return replace(found, manifest=replace(found.manifest, images=facts, must_include=(TESTED,)))

    def search(self, looks: int = 2) -> Bisected:
        return Bisection(self.count, self, TESTED, looks).search()

    @property
    def builds(self) -> int:
        """How many were measured."""
        return len({place for place, _ in self.measured})


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 16])
def test_a_step_is_found_in_the_promised_number_of_measurements(count: int) -> None:
    for at in range(1, count + 1):
        builds = Builds(count, server_loses(0.3, at))
        found = builds.search()
        assert (found.answer, found.before, found.after) == (BisectionAnswer.STEP, at - 1, at)
        assert builds.builds <= math.ceil(math.log2(count)) + 2  # both ends are the first measurement
        assert {look for _, look in builds.measured} == {0}
        assert (found.claim.server, found.claim.metric) == (TESTED, GOODPUT)
        assert found.claim.ratio == pytest.approx(-0.3, abs=0.01)
    assert middles(count) == math.ceil(math.log2(count))


@pytest.mark.parametrize("skipped", [[], [8], [7, 8, 9], [*range(5, 12)]])
def test_every_build_that_can_be_measured_is_tried(skipped: list[int]) -> None:
    seen = set[int]()
    while (place := candidate(0, 16, [*skipped, *seen])) is not None:
        assert 0 < place < 16
        assert place not in {*skipped, *seen}
        seen.add(place)
    assert seen == {*range(1, 16)} - {*skipped}


def test_broken_builds_are_left_behind_in_growing_steps() -> None:
    assert [candidate(0, 64, [*range(32, 32 + broken)]) for broken in range(4)] == [32, 31, 29, 25]


def test_a_range_of_builds_that_cannot_be_judged_is_named() -> None:
    builds = Builds(16, server_loses(0.3, 7), broken=(6, 7, 8))
    found = builds.search()
    assert (found.answer, found.before, found.after) == (BisectionAnswer.STEP, 5, 9)
    assert [each.place for each in found.judged if each.side is Side.UNTESTABLE] == [6, 7, 8]


def test_broken_builds_beside_the_step_do_not_hide_it() -> None:
    found = Builds(16, server_loses(0.3, 12), broken=(8, 9)).search()
    assert (found.answer, found.before, found.after) == (BisectionAnswer.STEP, 11, 12)


def test_two_equal_steps_are_not_taken_for_one() -> None:
    def behaviour(place: int, server: str, client: str, member: int) -> float:
        factor = 0.8 ** ((place >= 4) + (place >= 12)) if server == TESTED else 1.0
        return 8 * factor * noise(place, server, client, member)

    builds = Builds(16, behaviour)
    found = builds.search()
    assert found.answer is BisectionAnswer.SEVERAL
    [middle] = [each for each in found.judged if each.side is Side.BETWEEN]
    assert middle.place == 8
    assert middle.reached == pytest.approx(0.5, abs=0.02)
    assert (8, 1) in builds.measured  # members of its own decide


def test_small_changes_on_the_way_do_not_hide_the_step() -> None:
    def behaviour(place: int, server: str, client: str, member: int) -> float:
        step = 0.7 if server == TESTED and place >= 11 else 1.0
        return 8 * step * 0.998**place * noise(place, server, client, member)

    found = Builds(16, behaviour).search()
    assert (found.answer, found.before, found.after) == (BisectionAnswer.STEP, 10, 11)
    [before, after] = [each.reached for each in found.judged if each.place in (10, 11)]
    assert 0.85 < after - before < 1.0


def test_the_largest_change_is_looked_for_and_the_others_are_told() -> None:
    def behaviour(place: int, server: str, client: str, member: int) -> float:
        lost = 0.7 if server == TESTED and place >= 5 else 1.0
        gained = 1.1 if (server, client) == ("picoquic", TESTED) and place >= 13 else 1.0
        return 8 * lost * gained * noise(place, server, client, member)

    found = Builds(16, behaviour).search()
    assert (found.answer, found.after) == (BisectionAnswer.STEP, 5)
    assert [(each.server, each.client) for each in found.elsewhere] == [("picoquic", TESTED)]


def test_what_the_same_step_did_to_other_pairs_is_explained() -> None:
    """The pair with itself is one of the client under test, which therefore changed, too."""

    def behaviour(place: int, server: str, client: str, member: int) -> float:
        return 8 * (0.8 if server == TESTED and place >= 11 else 1.0) * noise(server, client, member, size=0.01)

    found = Builds(16, behaviour).search()
    assert (found.answer, found.after) == (BisectionAnswer.STEP, 11)
    assert found.elsewhere == ()


def test_equal_ends_are_told_with_what_would_have_been_found() -> None:
    builds = Builds(16, server_loses(0.0, 1, size=0.01))
    found = builds.search()
    assert (found.answer, found.claim) == (BisectionAnswer.SAME, None)
    assert builds.measured == [(0, 0), (16, 0), (0, 1), (16, 1)]
    everything = found.ends.detectable[0]
    assert 0 < everything < 0.05


def test_ends_without_noise_are_the_same() -> None:
    found = Builds(4, lambda *_: 8.0).search()
    assert found.answer is BisectionAnswer.SAME
    assert found.ends.identical == len(PAIRS)


def test_noise_needs_further_members_of_both_ends_and_of_the_build() -> None:
    found = (builds := Builds(4, server_loses(0.06, 3, size=0.025))).search()
    assert (found.answer, found.after) == (BisectionAnswer.STEP, 3)
    assert any(look for _, look in builds.measured)


def test_a_change_that_only_the_first_members_have_is_not_reproducible() -> None:
    def behaviour(place: int, server: str, client: str, member: int) -> float:
        lost = server == TESTED and member <= 6 and place >= 8
        half = server == TESTED and member <= 6 and 0 < place < 8
        return 8 * (0.7 if lost else 0.84 if half else 1.0) * noise(place, server, client, member)

    assert Builds(8, behaviour).search().answer is BisectionAnswer.NOT_REPRODUCIBLE


@pytest.mark.parametrize(("before", "after"), [
    (8.0, Outcome.FAILED), (Outcome.TIMEOUT, 8.0), (Outcome.UNSUPPORTED, 8.0), (8.0, Outcome.UNSUPPORTED),
    (Outcome.UNSUPPORTED, Outcome.FAILED),
])  # fmt: skip
def test_outcomes_are_decided_by_outcomes(before: float | Outcome, after: float | Outcome) -> None:
    builds = Builds(8, lambda place, server, *_: after if server == TESTED and place >= 6 else before)
    found = builds.search()
    assert (found.answer, found.before, found.after) == (BisectionAnswer.STEP, 5, 6)
    assert found.claim.metric == OUTCOME
    assert {cell[0] for cell in found.claim.cells} == {TESTED}
    assert builds.builds == 5


def test_a_build_with_a_third_outcome_is_skipped() -> None:
    def behaviour(place: int, _server: str, _client: str, _member: int) -> float | Outcome:
        return Outcome.UNSUPPORTED if place == 4 else Outcome.FAILED if place >= 6 else 8.0

    found = Builds(8, behaviour).search()
    assert (found.answer, found.after) == (BisectionAnswer.STEP, 6)
    assert Side.UNTESTABLE in {each.side for each in found.judged if each.place == 4}


@pytest.mark.parametrize(
    ("behaviour", "after"),
    [
        (lambda place, *cell: Outcome.FAILED if place == 4 else server_loses(0.3, 6)(place, *cell), 6),
        (lambda place, *cell: Outcome.FAILED if place >= 6 or (place >= 3 and cell[-1] % 2) else 8.0, None),
        (lambda place, *cell: Outcome.FAILED if place >= (3 if cell[0] == cell[1] else 6) else 8.0, None),
    ],
    ids=["one build fails", "flaky builds", "cells that break at different builds"],
)
def test_builds_that_fail(behaviour: Callable[..., float | Outcome], after: int | None) -> None:
    found = Builds(8, behaviour).search()
    assert found.answer is (BisectionAnswer.STEP if after else BisectionAnswer.SEVERAL)
    assert after in (None, found.after)


def test_a_partner_that_changed_meanwhile_ends_the_search() -> None:
    builds = Builds(8, server_loses(0.3, 6))
    builds.images["4"] = "another"
    with pytest.raises(InputError, match="picoquic"):
        builds.search()


def test_ends_without_results_are_refused() -> None:
    with pytest.raises(InputError, match="nothing to compare"):
        Builds(2, lambda *_: Outcome.UNSUPPORTED).search()


def test_levels() -> None:
    builds = Builds(2, server_loses(0.5, 1, size=0.0))
    claim = builds.search().claim
    assert claim is not None
    first, last = (builds(place, 0) for place in (0, 2))
    assert first is not None
    assert last is not None
    before, after = level(claim, first), level(claim, last)
    assert after == pytest.approx(before / 2)
    failing = replace(claim, metric=OUTCOME)
    assert level(failing, first) == 1.0
    none = Builds(1, lambda *_: Outcome.FAILED)(0, 0)
    assert none is not None
    assert (level(claim, none), level(failing, none)) == (None, 0.0)
