"""The live view of a campaign on a terminal: estimate, runs under way, last failures, and a matrix that fills up."""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from textwrap import indent

from rich.console import Console
from rich.live import Live
from rich.text import Text

from quicsat.cli import console
from quicsat.cli.progress import Progress, in_words
from quicsat.execution.observer import Observer
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.run import Run, RunKey
from quicsat.model.text import printable
from quicsat.model.units import MBPS, byte_size, percent, seconds
from quicsat.plan.duration_estimate import Span
from quicsat.report.drawing import draw, fill

PERIOD = 1.0
"""Seconds between two pictures; drawing one costs CPU time that runs may need."""
FAILURES = 3
"""Failures that are shown."""
LONGEST = 160
"""Characters of a failure that are shown."""


@dataclass
class RunUnderWay:
    """A run that has begun."""

    run: Run
    begin: float
    """On the monotonic clock."""
    received: int | None = None
    """Bytes that the client has received; None if unknown."""

    def __str__(self) -> str:
        size = self.run.test_case.total_size
        words = [str(self.run.key), seconds(time.monotonic() - self.begin)]
        if self.received is not None:
            share = f" of {byte_size(size)}, {percent(min(self.received / size, 1.0))}" if size else ""
            words.append(f"{byte_size(self.received)}{share}")
        return "  ".join(words)


@dataclass
class MatrixCell:
    """A pair in a test case."""

    planned: int = 0
    results: list[RunResult] = field(default_factory=list)

    def __str__(self) -> str:
        goodputs = [
            result.measurement.values["goodput"]
            for result in self.results
            if result.measurement is not None and "goodput" in result.measurement.values
        ]
        passed = sum(result.verdict.outcome is Outcome.SUCCEEDED for result in self.results)
        unsupported = bool(self.results) and all(each.verdict.outcome is Outcome.UNSUPPORTED for each in self.results)
        shown = (
            f"{statistics.median(goodputs) / MBPS:.2f}" if goodputs else "✓" if passed else "–" if unsupported else ""
        )
        failed = 0 if unsupported else len(self.results) - passed
        words = [shown, f"×{failed}" if failed else ""]
        if len(self.results) < self.planned:
            words.append(f"{len(self.results)}/{self.planned}")
        return " ".join(filter(None, words))


class LiveView:
    """What is known of a campaign while it runs; drawn once per ``PERIOD``."""

    def __init__(self, past: Sequence[ResultSet]) -> None:
        """``past``: earlier campaigns, from which durations are estimated."""
        self._lock = threading.Lock()
        self._progress = Progress(past)
        self._left: Span | None = None
        self._told = time.monotonic()
        self._under_way: dict[RunKey, RunUnderWay] = {}
        self._failures: deque[str] = deque(maxlen=FAILURES)
        self._cells: dict[str, dict[tuple[str, str], MatrixCell]] = {}
        """By test case, then by server and client."""
        self._case = ""
        """The test case of which the matrix is shown."""
        self.observer = Observer(
            console.message, self._finished, self._planned, self._began, self._received, self._ended
        )

    @contextmanager
    def shown(self) -> Iterator[LiveView]:
        """Draw the view below all other messages until the block is left; then it is gone."""
        terminal = Console(stderr=True, highlight=False, markup=False)
        with Live(
            console=terminal, get_renderable=self.picture, refresh_per_second=1 / PERIOD, transient=True,
            redirect_stdout=False,
        ):  # fmt: skip
            terminal.show_cursor(True)  # a second signal ends the program at once
            yield self

    def _planned(self, runs: Sequence[Run]) -> None:
        with self._lock:
            self._progress.begin(runs)
            for run in runs:
                cells = self._cells.setdefault(run.test_case.name, {})
                cells.setdefault((run.server.name, run.client.name), MatrixCell()).planned += 1
            self._case = next(iter(self._cells), "")
            self._estimate()

    def _estimate(self) -> None:
        self._left, self._told = self._progress.left(), time.monotonic()

    def _finished(self, result: RunResult) -> None:
        with self._lock:
            self._progress.learn(result)
            self._estimate()
            self._under_way.pop(result.key, None)
            cell = self._cells.get(result.test_case, {}).get((result.server, result.client))
            if cell is not None:
                cell.results.append(result)
            if result.verdict.outcome not in (Outcome.SUCCEEDED, Outcome.UNSUPPORTED):
                self._failures.append(printable(f"{result.key}: {in_words(result)}", LONGEST))
        if warning := self._progress.warning(result):
            console.message(warning)

    def _began(self, run: Run) -> None:
        with self._lock:
            self._under_way[run.key] = RunUnderWay(run, time.monotonic())
            self._case = run.test_case.name

    def _received(self, run: Run, count: int) -> None:
        with self._lock:
            if run.key in self._under_way:
                self._under_way[run.key].received = count

    def _ended(self, run: Run) -> None:
        with self._lock:
            self._under_way.pop(run.key, None)

    def picture(self) -> Text:
        """The view as it is now: what matters most comes first, for a small terminal shows only the beginning."""
        with self._lock:
            parts = [self._summary(), *(_indented(str(each)) for each in self._under_way.values())]
            if self._failures:
                parts += ["last failures:", *map(_indented, self._failures)]
            if self._case in self._cells:
                parts += [f"{self._case}:", self._matrix(self._cells[self._case])]
        return Text("\n".join(parts), no_wrap=True, overflow="ellipsis")

    def _summary(self) -> str:
        count = f"[{self._progress.finished}/{self._progress.planned}]"
        if self._left is None or self._progress.finished == self._progress.planned:
            return count
        passed = time.monotonic() - self._told
        left = Span(max(self._left.low - passed, 0.0), max(self._left.high - passed, 0.0))
        return f"{count}  about {left} left"

    def _matrix(self, cells: dict[tuple[str, str], MatrixCell]) -> str:
        servers = list(dict.fromkeys(server for server, _ in cells))
        clients = list(dict.fromkeys(client for _, client in cells))
        rows = [[client, *(str(cells.get((server, client), "")) for server in servers)] for client in clients]
        return draw(["client \\ server", *servers], rows, width=console.message_width(), wrap=False)


def _indented(text: str) -> str:
    width = console.message_width()
    return indent(fill(text, width and width - 2), "  ")
