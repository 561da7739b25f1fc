"""The sequential test of changes in real time."""

import math
import random

import pytest

from quicsat.model.outcomes import Outcome
from quicsat.statistics.comparison import Change, compare
from quicsat.statistics.confirmation import (
    LOOKS,
    OUTCOME,
    Answer,
    Claim,
    Confirmation,
    Pairs,
    answers,
    claims,
    claims_about,
)
from quicsat.statistics.samples import GOODPUT, Sample

CLAIM = Claim("a", "b", "t", GOODPUT, math.log(0.9), (("a", "b", "t"),))


def sample(values: list[float], server: str = "a", client: str = "b") -> Sample:
    return Sample.of(server, client, "t", values, (Outcome.SUCCEEDED,) * len(values), seeds=range(1, len(values) + 1))


def check(claim: Claim, ratios: list[float], looks: int = len(LOOKS)) -> Confirmation:
    """The answer if the builds have these ratios in one block after the other."""
    noise = [random.Random(number).lognormvariate(0, 0.5) for number in range(len(ratios))]

    def pairs_of(_: Claim, blocks: int) -> Pairs:
        base = noise[:blocks]
        return [(sample(base), sample([each * ratio for each, ratio in zip(base, ratios[:blocks], strict=True)]))]

    [found] = answers([claim], pairs_of, looks)
    return found


def about(ratio: float, spread: float = 0.002) -> list[float]:
    return [ratio * random.Random(number).lognormvariate(0, spread) for number in range(100, 100 + LOOKS[-1])]


@pytest.mark.parametrize(
    ("ratio", "answer"), [(0.9, Answer.CONFIRMED), (0.94, Answer.CONFIRMED), (1.0, Answer.DENIED), (1.1, Answer.DENIED)]
)
def test_a_clear_case_of_one_pair_takes_ten_blocks(ratio: float, answer: Answer) -> None:
    assert check(CLAIM, about(ratio), looks=1).answer is Answer.OPEN
    found = check(CLAIM, about(ratio))
    assert (found.answer, found.blocks) == (answer, 10)
    assert found.interval[0] < ratio - 1 < found.interval[1]
    assert found.ratio == pytest.approx(ratio - 1, abs=0.003)
    assert found.detectable < 0.02


def test_a_claim_of_a_gain_is_about_gains() -> None:
    gain = Claim("a", "b", "t", GOODPUT, math.log(1.1), CLAIM.cells)
    assert check(gain, about(1.1)).answer is Answer.CONFIRMED
    assert check(gain, about(0.9)).answer is Answer.DENIED


def test_a_real_change_that_does_not_matter_is_no_confirmation() -> None:
    found = check(Claim("a", "b", "t", GOODPUT, math.log(0.985), CLAIM.cells), about(0.995, 0.0001))
    assert found.answer is Answer.DENIED


def test_noise_leaves_a_claim_open_and_tells_what_would_have_been_found() -> None:
    found = check(CLAIM, about(0.97, 0.3))
    assert (found.answer, found.blocks) == (Answer.OPEN, LOOKS[-1])
    assert found.detectable > 0.1


def test_equal_builds_are_confirmed_in_few_checks() -> None:
    rng = random.Random(3)
    found = [check(CLAIM, [rng.lognormvariate(0, 0.02) for _ in range(LOOKS[-1])]).answer for _ in range(60)]
    assert found.count(Answer.CONFIRMED) <= 4  # of 60, at 2.5 %: exceeded in 2 of 100


def test_four_blocks_are_enough_for_several_cells() -> None:
    wide = Claim("a", "all", "all", GOODPUT, math.log(0.9), tuple(("a", f"b{n}", "t") for n in range(4)))

    def pairs_of(_: Claim, blocks: int) -> Pairs:
        return [(sample([1.0] * blocks), sample(about(0.9)[cell : cell + blocks])) for cell in range(4)]

    [found] = answers([wide], pairs_of, len(LOOKS))
    assert (found.answer, found.blocks, found.agreeing) == (Answer.CONFIRMED, 4, "4/4")


def outcomes(fates: str) -> Sample:
    """``+-``: the first repetition succeeded, the second failed."""
    return Sample.of("a", "b", "t", (), [Outcome.SUCCEEDED if fate == "+" else Outcome.FAILED for fate in fates])


@pytest.mark.parametrize(("change", "answer"), [("-", Answer.CONFIRMED), ("+", Answer.DENIED)])
def test_failures_are_checked_by_their_number(change: str, answer: Answer) -> None:
    broken = Claim("a", "b", "t", OUTCOME, -1.0, CLAIM.cells)
    [found] = answers([broken], lambda _, blocks: [(outcomes("+" * blocks), outcomes(change * blocks))], len(LOOKS))
    assert (found.answer, found.blocks) == (answer, 10)


def test_claims_are_the_findings_that_no_other_contains() -> None:
    """Server a is slower with all clients; server c with one of them is faster."""
    factors = {("a", "x"): 0.8, ("a", "y"): 0.8, ("a", "z"): 0.8, ("c", "x"): 1.3, ("c", "y"): 1.0, ("c", "z"): 1.0}

    def measured(late: int) -> list[Sample]:
        return [
            sample(
                [random.Random(f"{pair} {n} {late}").lognormvariate(0, 0.003) * factor**late for n in range(10)], *pair
            )
            for pair, factor in factors.items()
        ]

    found = compare(measured(0), measured(1), virtual=True)
    assert {each.first.server for each in found.groups} >= {"a"}
    made = claims(found, {"a"})
    assert [(each.server, each.client, each.worse) for each in made] == [("a", "all", True), ("c", "x", False)]
    assert {*made[0].cells} == {("a", client, "t") for client in "xyz"}
    [about_one] = claims_about(found, [("c", "y", "t")])
    assert (about_one.metric, about_one.cells) == (GOODPUT, (("c", "y", "t"),))
    assert next(each for each in found.pairs if each.first.client == "x" and each.first.server == "c").change is (
        Change.FASTER
    )
