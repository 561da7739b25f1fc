"""What is to be drawn of which campaigns, and what came of it: the words between the core and whoever draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from interop.emulation import loss_share
from interop.errors import MachineError
from interop.model import ResultSet, TestCase
from interop.statistics.objectives import Objective

FORMATS = ("svg", "png", "pdf", "pgf")


@dataclass(frozen=True)
class Campaign:
    """Results with the place where their runs' files lie."""

    label: str
    """For captions and file names."""
    results: ResultSet
    directory: Path | None = None
    """None where only results are known: then nothing over runs can be drawn."""


@dataclass(frozen=True)
class Wish:
    """What to draw."""

    campaigns: tuple[Campaign, ...]
    target: Path
    """Directory for the files; it is made."""
    plots: tuple[str, ...] = ()
    """Names; all for which there is something to draw if empty."""
    formats: tuple[str, ...] = ("svg",)
    """Of ``FORMATS``."""
    test_cases: tuple[str, ...] = ()
    """Names or abbreviations; all if empty."""
    pairs: tuple[tuple[str, str], ...] = ()
    """(server, client) of figures over runs; all if empty."""
    without_failed: bool = False
    """Leave failed repetitions out of distributions instead of counting them as 0."""
    own_scale: bool = False
    """Scale each figure by its own numbers instead of one scale for all test cases."""
    overlaid: bool = False
    """Draw several pairs and test cases into one figure over runs."""
    ideal: bool = True
    """Show what the link itself would allow."""
    metric: str = ""
    """What figures of single numbers show, of ``interop.analysis.metrics.METRICS``; each has its own if empty."""
    objectives: tuple[Objective, ...] = ()
    """Instead of the SATCOM paper's."""

    def cases(self, results: ResultSet) -> tuple[TestCase, ...]:
        """The wanted test cases of a campaign, in its order."""
        wanted = {name.casefold() for name in self.test_cases}
        return tuple(
            case
            for case in results.manifest.test_cases
            if not wanted or wanted & {case.name.casefold(), case.abbreviation.casefold()}
        )

    def measured(self, results: ResultSet) -> tuple[TestCase, ...]:
        """The wanted test cases that measure something; the kindest link first: least loss, then shortest delay."""
        cases = (case for case in self.cases(results) if not case.functional)
        return tuple(sorted(cases, key=lambda case: (loss_share(case.link.forward_loss), case.link.round_trip_delay)))


@dataclass(frozen=True)
class Gallery:
    """What was drawn."""

    files: tuple[Path, ...]
    captions: tuple[tuple[str, str, str], ...] = ()
    """(stem of the file, title, caption), one per figure."""
    skipped: tuple[str, ...] = ()
    """One sentence per plot for which there was nothing to draw."""


Draw = Callable[[Wish], Gallery]


def cannot_draw(_wish: Wish) -> Gallery:
    """For a command line that was started without plots."""
    raise MachineError("This command line was started without plots; start it with run.py.")
