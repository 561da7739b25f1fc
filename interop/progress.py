"""A line per finished run: what became of it, and how long the rest takes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from interop import tables
from interop.model import Outcome, Run, RunResult
from interop.units import mbit_per_s, percent, seconds


class Progress:
    """What is known of the speed of a campaign."""

    def __init__(self, runs: Sequence[Run]) -> None:
        """``runs``: all that are to be made."""
        self._left = Counter(run.test_case.name for run in runs)
        self._total = len(runs)
        self._spent: dict[str, list[float]] = {}
        self._begin = time.monotonic()

    def line(self, result: RunResult, finished: int) -> str:
        """What to say of a result when ``finished`` runs are."""
        self._left[result.test_case] -= 1
        self._spent.setdefault(result.test_case, []).append(sum(result.evidence.phases.values()))
        name = f"{result.server}_{result.client}/{result.test_case}/{result.repetition}"
        return f"[{finished}/{self._total}] {name}: {_in_words(result)}{self._rest()}"

    def _rest(self) -> str:
        """How long the rest takes if it goes on like this, side by side or one after another.

        Test cases not yet met are taken for like the slowest one so far.
        """
        means = {name: sum(spent) / len(spent) for name, spent in self._spent.items()}
        slowest = max(means.values())
        left = sum(count * means.get(name, slowest) for name, count in self._left.items())
        spent = sum(map(sum, self._spent.values()))
        pace = min((time.monotonic() - self._begin) / spent, 1.0) if spent else 1.0
        return f"  about {seconds(left * pace)} left" if left else ""


def _in_words(result: RunResult) -> str:
    verdict, measurement = result.verdict, result.measurement
    if verdict.outcome is Outcome.SUCCEEDED and measurement is not None and "goodput" in measurement.values:
        return f"{mbit_per_s(measurement.values['goodput'])} ({percent(measurement.values['efficiency'])})"
    return tables.printable(f"{verdict.outcome}: {verdict.reason}")
