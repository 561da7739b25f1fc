"""Why a judged cell is as it is: reasons and causes of runs that failed, and what differs from the baseline."""

from __future__ import annotations

from interop.model.outcomes import Outcome
from interop.model.text import printable
from interop.statistics.comparison import Change
from interop.statistics.differences import differences
from interop.statistics.judgement import JudgedCell

MOST_REASONS = 3
"""Different reasons of failed runs that are told."""
_SPEED = (Change.SLOWER, Change.FASTER)


def reasons(cell: JudgedCell) -> tuple[str, ...]:
    """Sentences, the most important one first. They contain text of images, so escape them for where they go."""
    return (*_failures(cell), *_changes(cell))


def _failures(cell: JudgedCell) -> tuple[str, ...]:
    groups: dict[str, list[int]] = {}
    for result in cell.results:
        verdict = result.verdict
        if verdict.outcome is Outcome.SUCCEEDED:
            continue
        kind = ", ".join(filter(None, (verdict.code, verdict.cause)))
        reason = printable(verdict.reason or result.evidence.fault)
        groups.setdefault(f"{verdict.outcome}{f' ({kind})' if kind else ''}: {reason}", []).append(result.repetition)
    several = len(cell.results) > 1
    told = [
        f"Repetition {', '.join(map(str, numbers))}: {reason}" if several else f"{reason[0].upper()}{reason[1:]}"
        for reason, numbers in groups.items()
    ]
    rest = len(told) - MOST_REASONS
    return (*told[:MOST_REASONS], *([f"And {rest} more reasons."] if rest > 0 else []))


def _changes(cell: JudgedCell) -> tuple[str, ...]:
    if cell.change is None or cell.change.change not in _SPEED:
        return ()
    return differences(cell.before, cell.results)
