"""The repetitions of a pair with their stored series: what figures and tables over runs are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from statistics import median

import numpy as np

from interop.errors import InputError
from interop.model import Outcome, TestCase
from interop.pictures import Campaign, Wish
from interop.traces.series import Series, SeriesError, load


@dataclass(frozen=True)
class Run:
    """A repetition with its series."""

    repetition: int
    series: Series
    succeeded: bool
    values: Mapping[str, float]
    """Its numbers; units and labels are in ``interop.analysis.metrics.METRICS``."""

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
class Pair:
    """All repetitions of a pair in a test case that have series."""

    campaign: Campaign
    case: TestCase
    server: str
    client: str
    runs: tuple[Run, ...]
    without: int
    """Repetitions that have none."""

    @property
    def middle(self) -> Run:
        """The run whose time to completion is nearest to the median; of runs that are as near, the first."""
        times = [run.completion for run in self.runs if run.succeeded and isfinite(run.completion)]
        if not times:
            return self.runs[0]
        wanted = median(times)
        return min((run for run in self.runs if run.succeeded), key=lambda run: abs(run.completion - wanted))

    @property
    def others(self) -> tuple[Run, ...]:
        """All but the middle one."""
        chosen = self.middle
        return tuple(run for run in self.runs if run is not chosen)

    @property
    def name(self) -> str:
        """For legends."""
        return f"{self.server}, {self.client}, {self.case.abbreviation}"

    @property
    def folder(self) -> str:
        """For file names: ``quic-go_picoquic+bbr-SAT``."""
        return f"{self.server}_{self.client}-{self.case.abbreviation}".replace(":", "+")


def pairs(wish: Wish) -> Iterator[Pair]:
    """Every wanted pair in every wanted test case that has series; raises InputError for a damaged file."""
    for campaign in wish.campaigns:
        if campaign.directory is None:
            continue
        manifest = campaign.results.manifest
        wanted = wish.pairs or [(server, client) for client in manifest.clients for server in manifest.servers]
        for case in wish.measured(campaign.results):
            for server, client in wanted:
                pair = _pair(campaign, campaign.directory, case, server, client)
                if pair.runs:
                    yield pair


def _pair(campaign: Campaign, directory: Path, case: TestCase, server: str, client: str) -> Pair:
    mine = [each for each in campaign.results.results
            if (each.server, each.client, each.test_case) == (server, client, case.name)]  # fmt: skip
    place = directory / f"{server}_{client}".replace(":", "+") / case.name
    found = [
        Run(
            each.repetition,
            series,
            each.verdict.outcome is Outcome.SUCCEEDED,
            each.measurement.values if each.measurement is not None else {},
        )
        for each in sorted(mine, key=lambda each: each.repetition)
        if each.verdict.outcome is not Outcome.ERROR and (series := _load(place / str(each.repetition))) is not None
    ]
    return Pair(campaign, case, server, client, tuple(found), len(mine) - len(found))


def _load(directory: Path) -> Series | None:
    try:
        return load(directory)
    except SeriesError as error:
        raise InputError(str(error)) from error
