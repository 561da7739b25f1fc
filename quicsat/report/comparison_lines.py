"""A comparison of two campaigns as lines of text, and as a document of JSON: for feeds, mails and web hooks; pure."""

from collections.abc import Iterable
from typing import Any

from quicsat.model.results import ResultSet
from quicsat.model.text import counted, printable
from quicsat.model.units import mbit_per_s, percent
from quicsat.statistics.comparison import (
    BETTER,
    CHANGED,
    TIMES,
    WORSE,
    Change,
    Comparison,
    Doubt,
    PairChange,
    change_in_words,
    detectable_in_words,
    in_words,
    time_in_words,
)
from quicsat.statistics.samples import GOODPUT

_SPEEDS = (Change.SLOWER, Change.PERHAPS_SLOWER, Change.FASTER)


def line(change: PairChange) -> str:
    """``sat, server a, client b: slower, 8.00 Mbit/s → 7.60 Mbit/s (-5.0 %)``."""
    kind = change_in_words(change.change, change.metric)
    if change.metric in TIMES:
        return time_in_words(change)
    if change.change in _SPEEDS and change.ratio is not None:
        before, after = change.first.mean, change.second.mean
        shown = mbit_per_s if change.metric == GOODPUT else percent
        means = f", {shown(before)} → {shown(after)}" if before is not None and after is not None else ""
        return f"{in_words(change)}: {kind}{means} ({change.ratio * 100:+.1f} %)"
    if change.change in (Change.UNSUPPORTED, Change.LOST):
        return f"{in_words(change)}: {kind}"
    if change.perhaps_worse and change.change not in CHANGED:
        kind = "some runs have no result"
    counts = (f"{each.succeeded}/{each.conclusive}" for each in (change.first, change.second))
    return f"{in_words(change)}: {kind}, {' → '.join(counts)} runs succeeded"


def incomplete(results: ResultSet) -> str:
    """``2026-11-21T06:00:00Z (2 of 8 runs)``: a campaign that did not end."""
    started = printable(results.manifest.started)
    return f"{started} ({len(results.done)} of {counted(results.manifest.planned_runs, 'run')})"


KEYS = frozenset({"before", "after", "passed over", "changes"})
"""Of each document."""


def document(
    found: Comparison | None, before: ResultSet | None, after: ResultSet, place: str, passed_over: Iterable[str]
) -> dict[str, Any]:
    """What changed; ``place``: directory of ``before``; ``passed_over``: see :func:`incomplete`."""
    told: dict[str, Any] = {
        "before": None if before is None else {"directory": place, "started": before.manifest.started},
        "after": {"started": after.manifest.started},
        "passed over": list(passed_over),
        "undecided": found is None or found.undecided,
        "open": _reasons(found) if found is not None else [],
        "images": list(found.changed_images) if found is not None else [],
        "power": detectable_in_words(found) if found is not None else "",
        "changes": [],
    }
    for each in (*found.groups, *found.times, *found.pairs) if found is not None else ():
        if each.change in CHANGED or each.perhaps_worse or each.change is Change.FAILING:
            told["changes"].append(
                {
                    "server": each.first.server,
                    "client": each.first.client,
                    "test_case": each.first.test_case,
                    "metric": each.metric,
                    "change": each.change.value,
                    "worse": each.change in WORSE,
                    "better": each.change in BETTER,
                    "ratio": each.ratio,
                    "interval": each.effect and each.effect.interval,
                    "members": each.members,
                    "p": each.p,
                    "words": line(each),
                }
            )
    return told


def _reasons(found: Comparison) -> list[str]:
    """Why a comparison is undecided beyond the changes that it lists."""
    doubts = sum(bool(each.doubts - {Doubt.PROTOCOL}) and not each.perhaps_worse for each in found.pairs)
    other = len(found.with_doubt(Doubt.PROTOCOL))
    return [
        *found.unlike,
        *([found.unfinished] if found.unfinished else []),
        *(["No cell has a valid result in both campaigns."] if found.nothing else []),
        *(["Some runs ended with a fault of quicsat or of the machine."] if found.errors else []),
        *found.gaps,
        *([f"In {counted(doubts, 'cell')}, a loss could not have been shown."] if doubts else []),
        *([f"In {counted(other, 'cell')}, runs used another application protocol."] if other else []),
    ]
