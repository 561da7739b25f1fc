"""Requests for plots, and the files drawn: the interface between the core and ``plots/``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from quicsat.model.emulated_link import loss_share
from quicsat.model.objective import Objective
from quicsat.model.results import Pair, ResultSet
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted

FORMATS = ("svg", "png", "pdf", "pgf")
MOST_NAMED = 5
"""Unreadable files that are named one by one."""


@dataclass(frozen=True)
class CampaignResults:
    """The results of a campaign and the directory of its runs."""

    label: str
    """For captions and file names."""
    results: ResultSet
    directory: Path | None = None
    """None if only the results are available; then figures over runs cannot be drawn."""
    foreign: bool = False
    """Whether it is one of another runner."""
    read_runs: Callable[[], CampaignResults] | None = None
    """Of another runner: reads the traces of its runs, for figures over runs; None if that is done or impossible."""

    def of_pairs(self, pairs: Collection[Pair]) -> CampaignResults:
        """The campaign with the results of these pairs; with all if there are none."""
        return replace(self, results=self.results.of_pairs(pairs)) if pairs else self

    @cached_property
    def of_runs(self) -> CampaignResults:
        """The campaign with its single runs and their directory, for figures over runs."""
        return self if self.read_runs is None else self.read_runs()


@dataclass(frozen=True)
class PlotRequest:
    """What to draw."""

    campaigns: tuple[CampaignResults, ...]
    target: Path
    """Directory for the files; created if missing."""
    plots: tuple[str, ...] = ()
    """Names of plots; if empty, all that have numbers to draw."""
    formats: tuple[str, ...] = ("svg",)
    """Of ``FORMATS``."""
    test_cases: tuple[str, ...] = ()
    """Names or abbreviations, of test cases or families; all if empty."""
    pairs: tuple[Pair, ...] = ()
    """(server, client); all if empty."""
    without_failed: bool = False
    """Leave failed repetitions out of distributions instead of counting them as 0."""
    own_scale: bool = False
    """Scale each figure by its own numbers instead of one scale for all test cases."""
    own_colours: bool = False
    """Colour each heatmap from its lowest to its highest value, whatever the scale of its areas."""
    overlaid: bool = False
    """Draw several pairs and test cases into one figure over runs."""
    title: bool = True
    caption: bool = True
    """Write both into the figure."""
    ideal: bool = True
    """Show what the link itself would allow."""
    metric: str = ""
    """Metric of figures that show one, a name in ``quicsat.analysis.metrics.METRICS``; each figure's own if empty."""
    over: str = ""
    """Negotiated fact of the horizontal axis of the figure ``negotiated``; the client's initial_max_data if empty."""
    baseline: ResultSet | None = None
    """Campaign whose transfers the figure ``offset`` also shows, as ``Measurement.sending_times`` describes them."""
    objectives: tuple[Objective, ...] = ()
    """Replace the objectives of all test cases; those of each test case if empty."""
    unreadable: dict[str, None] = field(default_factory=dict, compare=False)
    """A sentence on each file of series that could not be read, from those who read it; copies share it."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on the files that could not be read."""
        found = list(self.unreadable)
        more = f"{counted(len(found) - MOST_NAMED, 'more file')} of series cannot be read."
        return (*found[:MOST_NAMED], *([more] if len(found) > MOST_NAMED else ()))

    def of_runs(self) -> PlotRequest:
        """The request for figures over runs."""
        campaigns = (campaign.of_runs.of_pairs(self.pairs) for campaign in self.campaigns)
        return replace(self, campaigns=tuple(campaigns))

    def cases(self, results: ResultSet) -> tuple[TestCase, ...]:
        """The requested test cases of a campaign, in its order."""
        return tuple(
            case
            for case in results.manifest.test_cases
            if not self.test_cases or any(case.has_label(name) for name in self.test_cases)
        )

    def measured(self, results: ResultSet) -> tuple[TestCase, ...]:
        """The requested measurements, ordered by forward loss, then by round-trip delay.

        Functional tests are among them only if the requested metric was measured in them, as the times of visits are.
        """
        found = {
            result.test_case
            for result in results.results
            if result.measurement is not None and self.metric in result.measurement.values
        }
        cases = (case for case in self.cases(results) if not case.functional or case.name in found)
        return tuple(sorted(cases, key=lambda case: (loss_share(case.link.forward.loss), case.link.round_trip_delay)))


@dataclass(frozen=True)
class Gallery:
    """The files that were drawn."""

    files: tuple[Path, ...]
    captions: tuple[tuple[str, str, str], ...] = ()
    """(stem of the file, title, caption), one per figure."""
    skipped: tuple[str, ...] = ()
    """One sentence per plot that is incomplete."""
    warnings: tuple[str, ...] = ()
    """Sentences for stderr: files of series that cannot be read."""
    unchanged: int = 0
    """Those of the files that were there already, and were not drawn again."""
    refused: tuple[str, ...] = ()
    """A sentence for each file that quicsat has not drawn, and therefore has not replaced by a figure."""


Draw = Callable[[PlotRequest], Gallery]
