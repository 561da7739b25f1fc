"""Measures how long figures take: all of 144 pairs × 10 repetitions, one time-offset figure of 10 × 10 MiB, and what a
night draws of 224 pairs × 3 repetitions of 10 MiB.

    make bench-plots

Wall clock and CPU time; the CPU time is what an idle machine would need.
"""

# ruff: noqa: T201 - a script

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from quicsat.model.outcomes import Check
from quicsat.model.units import MIB
from quicsat.plots.discovery import draw, plots
from quicsat.report.plot_request import CampaignResults, PlotRequest
from tests.campaign_builder import LOSSES, SMALL, TERRESTRIAL, Shape, campaign
from tests.results_builder import SAT, SATLOSS
from tests.runs_builder import campaign as runs

ALL_LIMIT, ONE_LIMIT, NIGHT_LIMIT = 60.0, 1.5, 300.0
TESTS = tuple(
    replace(SAT, name=name, abbreviation=name.upper(), check=Check.HANDSHAKE)
    for name in ("handshake", "transfer", "ipv6")
)


def over_results(place: Path, form: str) -> tuple[float, float, int]:
    """Wall clock and CPU seconds for all figures over results, and how many figures there are."""
    first, second = (
        campaign(Shape(test_cases=(TERRESTRIAL, SAT, SATLOSS, SMALL, *LOSSES, *TESTS), noise_seed=seed))
        for seed in (1, 2)
    )
    names = tuple(name for name, plot in plots().items() if plot.of != "runs")
    one = CampaignResults("one", first)
    both = tuple(name for name, plot in plots().items() if plot.of == "campaigns")
    wall, cpu = time.monotonic(), time.process_time()
    made = draw(
        PlotRequest((one,), place, tuple(name for name in names if name not in ("comparison", "history")), (form,))
    )
    more = draw(PlotRequest((one, CampaignResults("two", second)), place / "both", both, (form,)))
    return time.monotonic() - wall, time.process_time() - cpu, len(made.files) + len(more.files)


def one_offset(place: Path, form: str) -> tuple[float, float]:
    """Wall clock and CPU seconds for one time-offset figure, from its stored series; the second one of two."""
    subject = runs(place / f"runs-{form}", repetitions=10, size=10 * MIB)
    request = PlotRequest((subject,), place / "offset", ("offset",), (form,), pairs=(("quic-go", "aioquic"),))
    for _ in range(2):
        wall, cpu = time.monotonic(), time.process_time()
        draw(request)
        spent = time.monotonic() - wall, time.process_time() - cpu
    return spent


def a_night(place: Path) -> tuple[float, float, int, float]:
    """Wall clock and CPU seconds for the figures that `plot` draws by itself, and how many; wall clock once more."""
    pairs = [(f"server-{one}", f"client-{two}") for one in range(16) for two in range(14)]
    request = PlotRequest((runs(place / "night", pairs, repetitions=3, size=10 * MIB),), place / "figures")
    wall, cpu = time.monotonic(), time.process_time()
    made = draw(request)
    spent = time.monotonic() - wall, time.process_time() - cpu
    wall = time.monotonic()
    draw(request)
    return *spent, len(made.files), time.monotonic() - wall


def main() -> int:
    """Print a table; 1 if a bar is missed in CPU time."""
    missed = False
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n")
    print(f"{'figures':48} {'wall':>8} {'CPU':>8} {'bar':>8}")
    with TemporaryDirectory() as directory:
        for form in ("svg", "png"):
            wall, cpu, count = over_results(Path(directory), form)
            name = f"all {count} over 144 pairs × 10 repetitions, {form}"
            print(f"{name:48} {wall:6.1f} s {cpu:6.1f} s {ALL_LIMIT:6.1f} s", flush=True)
            missed |= cpu > ALL_LIMIT
        for form in ("svg", "png", "pdf"):
            wall, cpu = one_offset(Path(directory), form)
            name = f"one time-offset, 10 × 10 MiB, {form}"
            print(f"{name:48} {wall:6.2f} s {cpu:6.2f} s {ONE_LIMIT:6.1f} s", flush=True)
            missed |= cpu > ONE_LIMIT
        wall, cpu, count, again = a_night(Path(directory))
        name = f"{count} of 224 pairs × 3 × 10 MiB, svg; again {again:.0f} s"
        print(f"{name:48} {wall:6.1f} s {cpu:6.1f} s {NIGHT_LIMIT:6.1f} s", flush=True)
        missed |= cpu > NIGHT_LIMIT
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
