"""Packets of single runs: which series the data set holds, and the figures that the paper made of the same pairs."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from interop.model.arrays import Floats
from interop.model.names import pair_folder
from interop.model.results import ResultSet, RunResult
from interop.statistics.samples import find, value_of
from interop.traces.series import FILE_NAME, Series, load
from scripts.paper.data_set import Part
from scripts.paper.lines import Line
from scripts.paper.published import TIME_OF_FIGURE_7
from scripts.paper.real_time import NEAR, both_clocks
from scripts.paper.words import listed

SERIES, WITH_QLOG = "series", "series-with-qlog"
"""Directories below the data set, laid out like a campaign; the second one has congestion windows of qlogs."""
CAMPAIGN = f"{Part.MATRIX}-1"


@dataclass(frozen=True)
class Pair:
    """A pair over a link, of the first seed."""

    server: str
    client: str
    test_case: str

    @property
    def path(self) -> Path:
        """Of its run below a campaign."""
        return Path(pair_folder(self.server, self.client), self.test_case, "1")


OF_THE_PAPER = {Pair("picoquic", "picoquic", "satloss"): "Figure 7", Pair("kwik", "msquic", "sat"): "Figure 8"}
"""Pairs that we measure and for which the paper shows a time-offset figure."""
EXPLAINED, BESIDE = Pair("picoquic", "quic-go", "sat"), Pair("picoquic", "ngtcp2", "sat")
KEPT = (*OF_THE_PAPER, EXPLAINED, BESIDE)
STARTS = tuple(Pair("quic-go", client, "sat") for client in ("kwik", "lsquic", "picoquic"))
KEPT_WITH_QLOG = {EXPLAINED: Part.QLOG, **dict.fromkeys(STARTS, Part.START)}
"""Campaign of each pair whose series has congestion windows."""


def collect_series(results: Path, data: Path) -> list[Path]:
    """Copy the series of the pairs in ``KEPT``; the files. Those that are stored stay where there are no new ones."""
    kept = [(CAMPAIGN, SERIES, pair) for pair in KEPT] + [
        (campaign, WITH_QLOG, pair) for pair, campaign in KEPT_WITH_QLOG.items()
    ]
    for campaign, folder, pair in kept:
        source, target = results / campaign / pair.path / FILE_NAME, data / folder / pair.path / FILE_NAME
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    return sorted(data.rglob(FILE_NAME))


def series_of(data: Path, pair: Pair, folder: str = SERIES) -> Series | None:
    """The stored series of a run; None if there is none."""
    return load(data / folder / pair.path)


def stored_series(data: Path) -> list[str]:
    """The runs whose series the data set holds."""
    kept = [(SERIES, pair, "") for pair in KEPT] + [(WITH_QLOG, pair, ", with qlogs") for pair in KEPT_WITH_QLOG]
    return [
        f"{pair.server} with {pair.client} over `{pair.test_case}`{also}"
        for folder, pair, also in kept
        if (data / folder / pair.path / FILE_NAME).is_file()
    ]


def packets(
    results: ResultSet, figures: Sequence[Line], data: Path | None = None, real: ResultSet | None = None
) -> Iterator[Line]:
    """Figures 7 and 8 of the paper, and what it says of them.

    ``data``: directory of the data set. ``real``: runs in real time.
    """
    yield "## Packets of single runs"
    yield ""
    yield from figures
    for pair in OF_THE_PAPER:
        if text := _beside_the_paper(results, pair, series_of(data, pair) if data else None):
            yield f"{text}{_in_real_time(results, real, pair)}"


def _in_real_time(results: ResultSet, real: ResultSet | None, pair: Pair) -> str:
    """That the server differs much in real time, as a sentence; or nothing."""
    case = find(results, pair.test_case)
    mine = [each for each in both_clocks(results, real, case) if each.server == pair.server] if real and case else []
    if not mine:
        return ""
    ratio = statistics.geometric_mean(each.ratio for each in mine)
    clients = listed(each.client for each in mine)
    if abs(ratio - 1) <= NEAR[-1]:
        return ""
    return (
        f" In real time, {pair.server} is {1 / ratio:.1f} times as fast over `{pair.test_case}` (with {clients}), so "
        "this figure shows virtual time only."
    )


def _beside_the_paper(results: ResultSet, pair: Pair, series: Series | None) -> str:
    run = run_of(results, pair)
    goodput, completion = (value_of(run, name) if run else None for name in ("goodput", "completion_time"))
    startup, burst = (value_of(run, name) if run else None for name in ("startup_time", "longest_burst"))
    sent, steady = (value_of(run, name) if run else None for name in ("sent_per_useful_byte", "steady_rate"))
    if goodput is None or completion is None or startup is None or burst is None or sent is None:
        return ""
    ours = (
        f"In our measurement, the transfer from {pair.server} to {pair.client} over `{pair.test_case}` takes "
        f"{completion:.1f} s, with a goodput of {goodput / 1e6:.1f} Mbit/s. The server "
        f"{_start(series, startup, steady or 0.0)}. The server sends {sent:.2f} bytes per byte of the file, and at "
        f"most {burst:.0f} packets back to back"
    )
    return f"- {ours}. {PAPER_SAYS[OF_THE_PAPER[pair]]}"


LOW, REACHED = 0.5, 0.8
"""Shares of the steady rate: a later rate below the first one contradicts a start that ended at the second one."""
WINDOW = 3
"""Seconds over which a later rate is taken: several round trips."""


def _start(series: Series | None, startup: float, steady: float) -> str:
    """``reaches 80 % of its steady rate after 2.5 s``, and that it falls after that, if it does."""
    told = f"reaches {100 * REACHED:.0f} % of its steady rate after {startup:.1f} s"
    rates = rates_of(series) if series is not None else np.zeros(0)
    later = rates[int(startup) // WINDOW + 1 :]
    if not len(later) or later.min() >= LOW * steady:
        return told
    begin = WINDOW * (int(startup) // WINDOW + 1 + int(later.argmin()))
    kept = WINDOW * (1 + int(np.flatnonzero(rates < REACHED * steady)[-1]))
    return (
        f"{told}, but does not keep this rate ({steady / 1e6:.1f} Mbit/s): only {later.min() / 1e6:.1f} Mbit/s arrive "
        f"from {begin} to {begin + WINDOW} s. Averaged over {WINDOW} s, the rate stays above "
        f"{100 * REACHED:.0f} % only after {kept} s"
    )


def rates_of(series: Series) -> Floats:
    """New bytes of the file that arrived in each full window from the client's first packet on, as bit/s."""
    arrived = series.arrived
    windows = (arrived.time // WINDOW).astype(int)
    rates = 8 / WINDOW * np.bincount(windows, arrived.new)[: int(arrived.time.max() // WINDOW)]
    return rates.astype(np.float64)


PAPER_SAYS = {
    "Figure 7": (
        f"In the paper, the transfer takes slightly more than {TIME_OF_FIGURE_7} s, at slightly more than 11 Mbit/s."
    ),
    "Figure 8": "In the paper, slow start takes about 11 s, and jagged curves indicate poor pacing.",
}


def run_of(results: ResultSet, pair: Pair) -> RunResult | None:
    """The run of a pair with the first seed."""
    wanted = pair.server, pair.client, pair.test_case, 1
    return next((run for run in results.results if tuple(run.key) == wanted), None)
