"""Order of a plan's runs, shards for several machines, and plans for some pairs; pure, determined by the seed alone."""

import hashlib
import re
from collections.abc import Collection, Sequence

from quicsat.model.names import is_named
from quicsat.model.run import Run

MOST_SHARDS = 1000
_SHARD = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})")


def shuffled(plan: Sequence[Run], seed: int) -> tuple[Run, ...]:
    """First repetitions of all pairs in all test cases in random order, then the second ones, and so on.

    Changes on the machine over time then affect all pairs and test cases alike.
    """
    return tuple(sorted(plan, key=lambda run: (run.repetition, _lot(run, seed))))


def in_blocks(plan: Sequence[tuple[Run, Run]], seed: int) -> tuple[Run, ...]:
    """Both runs of each pair one after the other, the first one by lot; pairs by repetition, and in random order.

    What a machine does over time then affects both alike, and by chance alone one more than the other.
    """
    ordered = sorted(plan, key=lambda pair: (pair[1].repetition, _lot(pair[1], seed)))
    return tuple(run for pair in ordered for run in sorted(pair, key=lambda run: _lot(run, -1 - seed)))


def _lot(run: Run, seed: int) -> bytes:
    words = f"{seed} {run.server.name} {run.client.name} {run.test_case.name} {run.repetition}"
    return hashlib.sha256(words.encode()).digest()


def shard(text: str) -> tuple[int, int]:
    """``"2/4"`` -> (2, 4): the second part of four; ValueError, worded to stand behind the text."""
    match = _SHARD.fullmatch(text)
    if match is None:
        raise ValueError('is no part of a plan; write for example "2/4" for the second part of four.')
    number, of = map(int, match.groups())
    if number > of or of > MOST_SHARDS:
        raise ValueError(f"is no part of a plan; there are parts 1/{of} to {of}/{of}, and {MOST_SHARDS} at most.")
    return number, of


def part_of(plan: Sequence[Run], which: str) -> tuple[Run, ...]:
    """The runs of one shard, ``"2/4"``; the whole plan if ``which`` is empty.

    All repetitions of a pair in a test case are in the same part, so that none of its numbers mix machines.
    """
    if not which:
        return tuple(plan)
    number, of = shard(which)
    cells = list(dict.fromkeys((run.test_case.name, run.server.name, run.client.name) for run in plan))
    mine = set(cells[number - 1 :: of])
    return tuple(run for run in plan if (run.test_case.name, run.server.name, run.client.name) in mine)


def involving(plan: Sequence[Run], names: Collection[str]) -> tuple[Run, ...]:
    """The runs in whose pair at least one of the implementations takes part; the whole plan if ``names`` is empty."""
    return tuple(run for run in plan if not names or any(is_named(end.name, names) for end in (run.server, run.client)))


def of_pairs(plan: Sequence[Run], pairs: Collection[str]) -> tuple[Run, ...]:
    """The runs of the pairs ``SERVER/CLIENT``; the whole plan if there are none."""
    return tuple(run for run in plan if not pairs or _pair(run) in pairs)


def without_runs(plan: Sequence[Run], pairs: Sequence[str]) -> list[str]:
    """Those of the pairs ``SERVER/CLIENT`` that have no run in the plan."""
    found = {_pair(run) for run in plan}
    return [pair for pair in pairs if pair not in found]


def _pair(run: Run) -> str:
    return f"{run.server.name}/{run.client.name}".casefold()
