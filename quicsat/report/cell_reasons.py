"""Why a judged cell is as it is: reasons and causes of runs that failed, and what differs from the baseline."""

from quicsat.model.outcomes import Outcome
from quicsat.model.text import counted, numbered, printable
from quicsat.statistics.comparison import Change
from quicsat.statistics.differences import differences
from quicsat.statistics.judgement import JudgedCell

REFUSED = "The campaign cannot be compared with the baseline"
ALL_PAIRS = "all pairs of an implementation"

MOST_REASONS = 3
"""Different reasons of failed runs that are told."""


def reasons(cell: JudgedCell) -> tuple[str, ...]:
    """Sentences, the most important one first. They contain text of images, so escape them for where they go."""
    return (*failures(cell), *changes(cell))


def failures(cell: JudgedCell) -> tuple[str, ...]:
    """Reasons of failed runs, with the words of images."""
    groups: dict[str, list[int]] = {}
    for result in cell.results:
        verdict = result.verdict
        if verdict.outcome is Outcome.SUCCEEDED:
            continue
        reason = printable(verdict.reason or result.evidence.fault)
        told = f"{verdict.summary}: {reason}" if reason else f"{verdict.summary}."
        groups.setdefault(told, []).append(result.repetition)
    several = len(cell.results) > 1
    lines = [
        f"{numbered('Repetition', numbers)}: {reason}" if several else f"{reason[0].upper()}{reason[1:]}"
        for reason, numbers in groups.items()
    ]
    rest = len(lines) - MOST_REASONS
    return (*lines[:MOST_REASONS], *([f"And {counted(rest, 'more reason')}."] if rest > 0 else []))


def changes(cell: JudgedCell) -> tuple[str, ...]:
    """What differs between a cell that is slower or faster and its baseline."""
    if cell.change is None or cell.change.speed is Change.NONE:
        return ()
    return differences(cell.before, cell.results)
