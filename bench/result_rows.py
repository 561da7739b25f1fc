"""Rows of measured values with their limits, printed as tables; shared by the benchmarks of the link, no script."""
# ruff: noqa: T201 - a script's part

from dataclasses import dataclass, replace
from statistics import median

from bench.testbed_traffic import Seen
from quicsat.model.units import MS, PERCENT

NAN = float("nan")
LAG_BAR = 10 * MS
"""As in ``quicsat.analysis.run_outcome``: a frame that leaves the simulator later than that is late."""
MEDIAN_BAR, TAIL_BAR = 1.0, 2.0
"""ms: of the median and of the 95th percentile of errors of times."""


@dataclass(frozen=True)
class Figure:
    """One measured figure; ``bar`` says what is asked of it, ``passed`` is None where nothing is."""

    case: str
    name: str
    n: int
    """Values; 0 if the simulator's own mean stands in for the median."""
    median: float
    p95: float
    max: float
    unit: str
    bar: str = ""
    passed: bool | None = None


def figure(case: str, name: str, values: list[float], unit: str, bar: str = "", passed: bool | None = None) -> Figure:
    """A figure of several values, or of one."""
    ordered = sorted(values) or [NAN]
    p95 = ordered[round(0.95 * (len(ordered) - 1))]
    return Figure(case, name, len(values), median(ordered), p95, ordered[-1], unit, bar, passed)


def exactly(case: str, name: str, value: int, expected: int = 0, unit: str = "packets") -> Figure:
    """A number that has to be the one expected."""
    return figure(case, name, [value], unit, f"{expected}", value == expected)


def errors_of(case: str, name: str, errors: list[float], least: int = 1) -> Figure:
    """Errors of at least ``least`` times, ms."""
    result = figure(case, name, errors, "ms")
    passed = abs(result.median) <= MEDIAN_BAR and abs(result.p95) <= TAIL_BAR and len(errors) >= least
    return replace(result, bar=f"median +-{MEDIAN_BAR:g}, p95 +-{TAIL_BAR:g}, >= {least}", passed=passed)


def share_of(case: str, name: str, share: float, expected: float, n: int) -> Figure:
    """A share of ``n`` packets, which may be four standard deviations from the one expected."""
    margin = 4 * (expected * (1 - expected) / max(n, 1)) ** 0.5
    bar = f"{expected / PERCENT:.2f} +-{margin / PERCENT:.2f}"
    return figure(case, name, [share / PERCENT], "%", bar, abs(share - expected) <= margin)


def lag(case: str, seen: Seen, *, judged: bool = True) -> list[Figure]:
    """How late frames left the simulator, what the kernel dropped in front of it, how many packets were overtaken."""
    report = seen.report
    scheduling = "" if report.realtime_priority else ", not real-time"
    if lateness := report.lateness:
        middle, frames = max(lateness.forward.p50, lateness.back.p50), lateness.forward.frames + lateness.back.frames
        behind = Figure(case, f"lag of frames{scheduling}", frames, middle / MS, NAN, lateness.maximum / MS, "ms")
    else:
        behind = Figure(case, f"lag{scheduling}", 0, report.lag_mean / MS, NAN, report.lag_max / MS, "ms")
    dropped = figure(case, "receive overflows", [report.receive_overflows], "frames")
    overtaken = sum(flow.out_of_order for flow in seen.flows.values())
    ordered = [exactly(case, "out of order", overtaken)] if seen.flows else []
    if not judged:
        return [behind, dropped, *ordered]
    return [
        replace(behind, bar=f"max <= {LAG_BAR / MS:.0f}", passed=behind.max <= LAG_BAR / MS),
        replace(dropped, bar="0", passed=report.receive_overflows == 0),
        *ordered,
    ]


def show(figures: list[Figure]) -> None:
    """One line per figure."""
    for one in figures:
        verdict = {True: "PASS", False: "MISS", None: ""}[one.passed]
        shown = (one.median, one.p95, one.max) if one.n != 1 else (one.median, NAN, NAN)
        values = " ".join(f"{value:10.3f}" if value == value else " " * 10 for value in shown)
        print(f"{one.case:28} {one.name:44} {one.n:7d} {values} {one.unit:8} {one.bar:27} {verdict}", flush=True)
