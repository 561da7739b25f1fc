"""The repetitions of a pair with their stored series: what figures and tables over runs are made of."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from math import inf, isfinite
from pathlib import Path
from statistics import fmean, median

import numpy as np

from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.names import pair_folder
from quicsat.model.outcomes import Outcome
from quicsat.model.results import RunResult
from quicsat.model.stored_files import is_file
from quicsat.model.test_case import TestCase, path_rate
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.statistics.samples import GOODPUT
from quicsat.traces.series import FILE_NAME, Series, SeriesError, load


@dataclass(frozen=True)
class RunSeries:
    """A repetition with its series."""

    repetition: int
    series: Series
    succeeded: bool
    values: Mapping[str, float]
    """Its numbers; units and labels are in ``quicsat.analysis.metrics.METRICS``."""
    seed: int = 0

    @property
    def completion(self) -> float:
        """When the last byte of a response arrived, seconds since the client's first packet; infinite if none did."""
        last = self.series.requests.last_byte
        known = last[np.isfinite(last)]
        return float(known.max()) if len(known) else inf

    def reached(self, size: int) -> float:
        """Seconds after the client's first packet at which so many new bytes had arrived; infinite if never."""
        total = np.cumsum(self.series.arrived.new)
        place = int(np.searchsorted(total, size))
        return float(self.series.arrived.time[place]) if place < len(total) else inf


@dataclass(frozen=True)
class PairSeries:
    """All repetitions of a pair in a test case that have series."""

    campaign: CampaignResults
    case: TestCase
    server: str
    client: str
    runs: tuple[RunSeries, ...]
    without: int
    """Repetitions that have none."""

    @property
    def middle(self) -> RunSeries:
        """The run whose time to completion is nearest to the median; of runs that are as near, the first."""
        times = [run.completion for run in self.runs if run.succeeded and isfinite(run.completion)]
        if not times:
            return self.runs[0]
        wanted = median(times)
        return min((run for run in self.runs if run.succeeded), key=lambda run: abs(run.completion - wanted))

    @property
    def others(self) -> tuple[RunSeries, ...]:
        """All but the middle one."""
        chosen = self.middle
        return tuple(run for run in self.runs if run is not chosen)

    @property
    def name(self) -> str:
        """For legends."""
        return f"{self.server}, {self.client}, {self.case.abbreviation}"

    def forward_rates(self, run: RunSeries, begin: float, end: float) -> list[tuple[float, float]]:
        """Rates of the path to the client in one of its runs: since when, seconds since the first packet, and bit/s.

        The first from ``begin`` on, the others by the link's profile until ``end``. Empty if the rate is unknown.
        """
        link = self.case.link
        if not isinstance(link, EmulatedLink) or link.forward.profile is None or not link.forward.profile.rates:
            return [(begin, rate)] if (rate := path_rate(link)) else []
        profile = link.forward.profile
        first = profile.begin(run.seed)
        steps = profile.steps_between(profile.rates, first + max(begin, 0.0), first + end)
        return [(time - first, link.on_path(rate)) for time, rate in steps]

    @property
    def folder(self) -> str:
        """For file names: ``quic-go_picoquic+bbr-SAT``."""
        return f"{pair_folder(self.server, self.client)}-{self.case.abbreviation}"


def load_pairs(request: PlotRequest) -> Iterator[PairSeries]:
    """Every wanted pair in every wanted test case that has series."""
    request = request.of_runs()
    for campaign in request.campaigns:
        if campaign.directory is None:
            continue
        for case in request.measured(campaign.results):
            for server, client in request.pairs or campaign.results.planned:
                pair = _pair(request, campaign, campaign.directory, case, server, client)
                if pair.runs:
                    yield pair


def cells(request: PlotRequest) -> list[tuple[TestCase, tuple[str, str]]]:
    """The wanted test cases and pairs that have stored series.

    The test cases take turns; of each, the pairs with the lowest mean goodput come first.
    """
    request = request.of_runs()
    rows: list[list[tuple[TestCase, tuple[str, str]]]] = []
    cases = {case.name: case for each in request.campaigns for case in request.measured(each.results)}
    for case in cases.values():
        goodputs: dict[tuple[str, str], list[float]] = {}
        for each in _stored(request, case):
            values = each.measurement.values if each.measurement is not None else {}
            goodputs.setdefault((each.server, each.client), []).append(values.get(GOODPUT, 0.0))
        slowest = sorted(goodputs, key=lambda pair: (fmean(goodputs[pair]), pair))
        rows.append([(case, pair) for pair in slowest])
    return [cell for turn in zip_longest(*rows) for cell in turn if cell is not None]


def _stored(request: PlotRequest, case: TestCase) -> Iterator[RunResult]:
    """The results of a test case, of wanted pairs, whose series are there."""
    for campaign in request.campaigns:
        if campaign.directory is None:
            continue
        for each in campaign.results.results:
            valid = each.test_case == case.name and each.verdict.outcome is not Outcome.ERROR
            if valid and is_file(campaign.directory / each.key.path / FILE_NAME):
                yield each


def _pair(
    request: PlotRequest, campaign: CampaignResults, directory: Path, case: TestCase, server: str, client: str
) -> PairSeries:
    mine = [each for each in campaign.results.results
            if (each.server, each.client, each.test_case) == (server, client, case.name)]  # fmt: skip
    found = [
        RunSeries(
            each.repetition,
            series,
            each.verdict.outcome is Outcome.SUCCEEDED,
            each.measurement.values if each.measurement is not None else {},
            each.evidence.seed,
        )
        for each in sorted(mine, key=lambda each: each.repetition)
        if each.verdict.outcome is not Outcome.ERROR
        and (series := read_series(request, directory / each.key.path)) is not None
    ]
    return PairSeries(campaign, case, server, client, tuple(found), len(mine) - len(found))


def read_series(request: PlotRequest, directory: Path) -> Series | None:
    """The series of the run in a directory; None if it has none, or they cannot be read, which the request notes."""
    try:
        return load(directory)
    except SeriesError as error:
        request.unreadable[str(error)] = None
        return None
