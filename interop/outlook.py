"""What a plan asks of a machine before it is carried out: time, disk, images; it only looks, and touches nothing."""

from __future__ import annotations

import glob
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from pathlib import Path
from statistics import fmean

from interop.errors import MachineError
from interop.estimate import Durations, Span
from interop.execution.daemon import Daemon
from interop.limits import Limits
from interop.model import ResultSet, Run
from interop.stock import State, Stocked, stock_of, stock_of_simulator
from interop.store import JOURNAL
from interop.tables import draw
from interop.units import byte_size

SAMPLED = 60
"""Directories of runs whose size is looked at."""


@dataclass(frozen=True)
class Request:
    """Where a plan would be carried out, and how."""

    url: str
    """Of the Docker daemon."""
    root: Path
    """The checkout."""
    limits: Limits
    past: tuple[ResultSet, ...]
    """Campaigns that tell how long runs take."""
    testbeds: int | None
    """None for as many as the machine has time for."""


@dataclass(frozen=True)
class Course:
    """How a campaign goes if every run takes as long as is thought."""

    end: datetime
    made: int
    """Runs that begin before time is up."""


def tell(request: Request, runs: Sequence[Run]) -> str:
    """All of it, as text for a terminal."""
    if not runs:
        return "Nothing is left to do."
    now, durations = datetime.now(UTC), Durations(request.past)
    told = [
        *in_time(runs, durations, request.limits, now, request.testbeds),
        on_disk(runs, request.root / "results"),
    ]
    return "\n".join(["", images(request, runs), "", *told])


def course(
    runs: Sequence[Run], durations: Sequence[float], limits: Limits, begin: datetime, testbeds: int = 1
) -> Course:
    """Go through a plan: closed hours are waited for, and no run begins that would not end in time; pure.

    ``durations``: seconds, one for each run. What side by side costs is not taken into account.
    """
    ends = [begin for _ in range(testbeds)]
    made = 0
    for _run, duration in zip(runs, durations, strict=True):
        free = ends.index(min(ends))
        start = ends[free] if limits.hours is None else limits.hours.opening(ends[free]) or ends[free]
        end = start + timedelta(seconds=duration)
        too_late = limits.deadline is not None and end > limits.deadline
        if too_late or (limits.most_seconds is not None and (end - begin).total_seconds() > limits.most_seconds):
            continue
        ends[free] = end
        made += 1
    return Course(max(ends), made)


def in_time(
    runs: Sequence[Run], durations: Durations, limits: Limits, now: datetime, testbeds: int | None
) -> Iterator[str]:
    """When it may begin, how long it takes, when it ends, and what would be left; sentences."""
    spans = [durations.of(run) for run in runs]
    known = sum(durations.known(run) for run in runs)
    told = "from earlier campaigns" if known == len(runs) else f"{known} of {len(runs)} runs are known"
    side_by_side = testbeds or 1
    total = Span(sum(span.low for span in spans) / side_by_side, sum(span.high for span in spans) / side_by_side)
    note = f"; if {side_by_side} of them are under way all the time" if side_by_side > 1 else ""
    note = "; one after another, for nobody knows yet how many fit" if testbeds is None else note
    yield f"It takes {total} ({told}{note})."
    soon, late = (
        course(runs, [getattr(span, bound) for span in spans], limits, now, side_by_side) for bound in Span._fields
    )
    zone = limits.hours.zone if limits.hours is not None else now.tzinfo
    first, last = (shown(each.end, zone) for each in (soon, late))
    if limits.hours is not None:
        yield f"No run begins during {', '.join(map(str, limits.hours.closed))} ({limits.hours.zone.key})."
    if limits.deadline is not None:
        yield f"No run begins that is not likely to end before {shown(limits.deadline, zone)} ({zone})."
    if limits.breaker is not None or limits.budget is not None:
        yield "Runs of an implementation that stalls, or takes more than its budget, may be skipped."
    fewest, most = sorted((soon.made, late.made))
    if fewest < len(runs):
        range_of = str(most) if fewest == most else f"{fewest} to {most}"
        yield f"Time is up after {range_of} of {len(runs)} runs; `./run.py resume` makes the others."
    yield f"If it began now, it would end between {first} and {last} ({zone})."


def shown(moment: datetime, zone: tzinfo | None) -> str:
    """``"Sun 2026-11-22 06:00"``, as a clock of that zone shows it."""
    return f"{moment.astimezone(zone):%a %Y-%m-%d %H:%M}"


def on_disk(runs: Sequence[Run], results: Path) -> str:
    """How much room it takes, told by runs of the same test cases in the newest campaigns below ``results``."""
    place = results if results.is_dir() else results.parent
    free = shutil.disk_usage(place).free
    counts = Counter(run.test_case.name for run in runs)
    known = {name: fmean(sizes) for name in counts if (sizes := list(islice(_sizes(results, name), SAMPLED)))}
    if not known:
        return f"How much disk it needs is not known yet; {byte_size(free)} are free."
    unlike = fmean(known.values())
    needed = sum(count * known.get(name, unlike) for name, count in counts.items())
    told = f"It needs about {byte_size(needed)} of disk, {byte_size(needed / len(runs))} per run"
    if strange := counts.keys() - known.keys():
        told += f" (nothing is known of {', '.join(sorted(strange))})"
    room = "" if needed < free else " That is too little: `./run.py prune` makes room, -l names another place."
    return f"{told}; {byte_size(free)} are free.{room}"


def _sizes(results: Path, test_case: str) -> Iterator[int]:
    """Bytes of the directories of runs of a test case, those of the newest campaign first."""
    journals = [place / JOURNAL for place in results.glob("*") if not place.is_symlink()]
    for journal in sorted(filter(Path.is_file, journals), key=lambda path: path.stat().st_mtime, reverse=True):
        for run in journal.parent.glob(f"*/{glob.escape(test_case)}/*"):
            if run.name.isdecimal():
                with suppress(OSError):  # of a run that is under way
                    yield sum(path.stat().st_size for path in run.rglob("*") if path.is_file())


def images(request: Request, runs: Sequence[Run]) -> str:
    """What would be used, with digests where it is here already; nothing is made at the daemon."""
    try:
        daemon = Daemon(request.url, "plan")
    except MachineError as error:
        return f"Which images are here is not known: {str(error).splitlines()[0]}"
    ends = dict.fromkeys(end for run in runs for end in (run.server, run.client))
    stocked: list[Stocked] = [stock_of_simulator(daemon, request.root)]
    stocked += [each for end in ends for each in stock_of(daemon, request.root, end)]
    states = {State.OUTDATED: "outdated, is built again"}
    rows = [
        [
            each.name,
            each.source,
            states.get(each.state, each.state),
            each.image.id.removeprefix("sha256:")[:12] if each.image else "",
            each.reference,
        ]
        for each in stocked
    ]
    return draw(["image of", "source", "state", "digest", "reference"], rows)
