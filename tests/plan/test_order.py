"""The order of a plan, and its parts."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from quicsat.model.run import Run
from quicsat.plan.make_plan import make_plan
from quicsat.plan.order import in_blocks, involving, part_of, shard, shuffled
from tests.fakes import CASE, implementation

NAMES = "abcde"
OTHER = replace(CASE, name="other", abbreviation="OT")
ENDS = tuple(map(implementation, NAMES))
PLAN = make_plan(ENDS, ENDS, (CASE, OTHER), repetitions=4, seed=1)


def cell(run: Run) -> tuple[str, str, str]:
    return run.test_case.name, run.server.name, run.client.name


def test_a_shuffled_plan_has_the_same_runs() -> None:
    assert Counter(shuffled(PLAN, 1)) == Counter(PLAN)
    assert shuffled(PLAN, 1) == shuffled(list(reversed(PLAN)), 1)
    assert shuffled(PLAN, 1) != shuffled(PLAN, 2)


def test_repetitions_are_interleaved() -> None:
    order = shuffled(PLAN, 1)
    assert [run.repetition for run in order] == sorted(run.repetition for run in PLAN)
    rounds = [[cell(run) for run in order if run.repetition == each] for each in (1, 2, 3, 4)]
    assert all(len(set(each)) == 50 for each in rounds)
    assert all(one != another for one, another in pairwise(rounds))
    assert {case for case, _, _ in rounds[0][:20]} == {"short", "other"}


def test_pairs_of_runs_stay_together_in_random_order() -> None:
    both = [(run, replace(run, server=replace(run.server, name=f"{run.server.name}2"))) for run in PLAN]
    order = in_blocks(both, 1)
    assert Counter(order) == Counter(run for pair in both for run in pair)
    assert all({*pair} in [{*each} for each in both] for pair in zip(order[::2], order[1::2], strict=True))
    assert [run.repetition for run in order] == sorted(run.repetition for run in order)
    first = sum(run.server.name in NAMES for run in order[::2])
    assert 70 < first < 130  # of 200, three and more standard deviations
    assert order == in_blocks(list(reversed(both)), 1) != in_blocks(both, 2)


def test_the_order_is_the_same_for_ever() -> None:
    assert [cell(run) for run in shuffled(PLAN, 1)[:3]] == [
        ("short", "d", "c"),
        ("short", "d", "b"),
        ("short", "b", "d"),
    ]


@pytest.mark.parametrize("of", [1, 2, 3, 7, 50])
def test_parts_make_up_the_whole(of: int) -> None:
    parts = [part_of(PLAN, f"{number}/{of}") for number in range(1, of + 1)]
    assert Counter(run for part in parts for run in part) == Counter(PLAN)
    assert max(map(len, parts)) - min(map(len, parts)) <= 4
    for part in parts:
        assert all(len({run.repetition for run in part if cell(run) == each}) == 4 for each in map(cell, part))
        assert list(part) == [run for run in PLAN if run in set(part)]


@pytest.mark.parametrize("text", ["", "2", "0/4", "5/4", "1/0", "1/1001", "-1/4", "1/4/2", "٣/٤"])
def test_parts_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no part of a plan"):
        shard(text)


def test_pairs_with_an_implementation_as_server_or_client() -> None:
    pairs = {(run.server.name, run.client.name) for run in involving(PLAN, ["a", "b"])}
    assert pairs == {(server, client) for server in NAMES for client in NAMES if {server, client} & {"a", "b"}}
    assert list(involving(PLAN, ["A"])) == [run for run in PLAN if "a" in (run.server.name, run.client.name)]
    assert involving(PLAN, ()) == PLAN


def test_an_implementation_includes_its_variants_and_not_the_reverse() -> None:
    ends = tuple(map(implementation, ("a", "a:bbr", "ab")))
    plan = make_plan(ends[1:], ends, (CASE,), repetitions=1, seed=1)
    assert [(run.server.name, run.client.name) for run in involving(plan, ["a"])] == [
        ("a:bbr", "a"), ("a:bbr", "a:bbr"), ("a:bbr", "ab"), ("ab", "a"), ("ab", "a:bbr"),
    ]  # fmt: skip
    assert [run.client.name for run in involving(plan[3:], ["a:bbr"])] == ["a:bbr"]
