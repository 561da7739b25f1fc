"""How long a campaign takes and how much disk space it needs, and the question before one that is larger than usual."""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from pathlib import Path
from statistics import fmean

from quicsat.cli import console
from quicsat.cli import options as shared
from quicsat.cli.campaign_options import NewCampaignOptions
from quicsat.cli.program import Program
from quicsat.cli.progress import earlier_campaigns
from quicsat.model.errors import InputError
from quicsat.model.results import Schedule
from quicsat.model.run import Run
from quicsat.model.stored_files import entries, resolved, status, walk
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.model.units import MIB, byte_size
from quicsat.plan.duration_estimate import MOST_OVERHEAD, Durations, Span
from quicsat.plan.limits import CampaignLimits
from quicsat.results.store import JOURNAL, campaigns_in

SAMPLED = 60
"""Run directories per test case whose size is read."""
NEWEST = 10
"""Campaigns that are searched for such runs."""
BYTES_PER_BYTE = 2.5
"""Disk space of a run by the size of its files, without earlier runs: captures at both ends, and the qlogs."""
SMALLEST = MIB
"""Disk space of a run of small files, bytes."""
NAMED = 3
"""Test cases that are named; more are counted."""
USUAL_SECONDS = 24 * 3600.0
USUAL_SHARE = 0.5
"""Of the free disk space; a campaign that takes longer or needs more starts only with consent."""
CONSENT = "The campaign is larger than usual: it starts only with the answer of a terminal, or with --yes."
NOT_STARTED = "It was not started: select less with -s, -c and -t, set a limit with --max-runtime, or add --yes."


@dataclass(frozen=True)
class Timeline:
    """A campaign in which each run takes as long as estimated."""

    end: datetime
    made: int
    """Runs that start before time is up."""


@dataclass(frozen=True)
class DiskSpace:
    """The disk space that runs need and have, bytes."""

    needed: float
    free: int
    guessed: tuple[str, ...] = ()
    """Test cases without earlier runs, of which the sizes of the files tell how much they need."""

    def __str__(self) -> str:
        guessed = f" (by file size, without earlier runs, {_some(self.guessed)})" if self.guessed else ""
        return f"about {byte_size(self.needed)}{guessed}; {byte_size(self.free)} are free"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= NAMED else counted(len(names), "test case")


def timeline(
    runs: Sequence[Run], durations: Sequence[float], limits: CampaignLimits, begin: datetime, testbeds: int = 1
) -> Timeline:
    """Schedule ``runs``: none starts in closed hours, and none that would not end in time.

    ``durations``: seconds, one per run. Parallel runs are assumed not to slow each other down.
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
    return Timeline(max(ends), made)


def time_needed(
    runs: Sequence[Run], durations: Durations, limits: CampaignLimits, now: datetime, testbeds: int | None
) -> Iterator[str]:
    """Sentences on when runs may start, how long all take, when the last ends, and how many would be left."""
    spans = [durations.of(run) for run in runs]
    known = sum(durations.known(run) for run in runs)
    source = "from earlier runs" if known == len(runs) else f"{known} of {len(runs)} from earlier runs"
    side_by_side = testbeds or 1
    total = Span(sum(span.low for span in spans) / side_by_side, sum(span.high for span in spans) / side_by_side)
    note = f"; {side_by_side} at a time" if side_by_side > 1 else ""
    note = "; one at a time, since --parallel auto decides during the campaign" if testbeds is None else note
    yield f"Estimated duration: {total} ({source}{note})."
    soon, late = (
        timeline(runs, [getattr(span, bound) for span in spans], limits, now, side_by_side) for bound in Span._fields
    )
    zone = limits.hours.zone if limits.hours is not None else now.tzinfo
    first, last = (shown(each.end, zone) for each in (soon, late))
    if limits.hours is not None:
        yield f"No run starts during {', '.join(map(str, limits.hours.closed))} ({limits.hours.zone.key})."
    if limits.deadline is not None:
        yield f"No run starts that is unlikely to end before {shown(limits.deadline, zone)} ({zone})."
    if limits.required is not None:
        yield f"{limits.required} is first; runs of pairs that do not succeed in it are skipped."
    if limits.breaker is not None or limits.budget is not None:
        yield "Runs of implementations that stall or exceed --budget may be skipped."
    if limits.skip_on_failure:
        yield "Repetitions of a pair in a test case are skipped after one that does not succeed."
    fewest, most = sorted((soon.made, late.made))
    if fewest < len(runs):
        range_of = str(most) if fewest == most else f"{fewest} to {most}"
        yield f"Time is up after {range_of} of {counted(len(runs), 'run')}; `./run.py resume` runs the others."
    yield f"Started now, the campaign ends between {first} and {last} ({zone})."


def shown(moment: datetime, zone: tzinfo | None) -> str:
    """``"Sun 2026-11-22 06:00"``, in that time zone."""
    return f"{moment.astimezone(zone):%a %Y-%m-%d %H:%M}"


def disk_needed(runs: Sequence[Run], results: Path, place: Path) -> DiskSpace:
    """Disk space at ``place``, estimated from runs of the same test cases there and in campaigns below ``results``."""
    free = shutil.disk_usage(next(filter(Path.is_dir, (place, *place.absolute().parents)))).free
    cases = {run.test_case.name: run.test_case for run in runs}
    sizes = {name: list(islice(_sizes(results, place, name), SAMPLED)) for name in cases}
    usual = {name: fmean(found) if found else _guess(cases[name]) for name, found in sizes.items()}
    needed = sum(usual[run.test_case.name] for run in runs)
    return DiskSpace(needed, free, tuple(sorted(name for name, found in sizes.items() if not found)))


def _guess(case: TestCase) -> float:
    return max(BYTES_PER_BYTE * case.total_size * case.flow_count, SMALLEST)


def _sizes(results: Path, campaign: Path, test_case: str) -> Iterator[int]:
    """Sizes in bytes of run directories of a test case, those of the newest campaign first."""
    places = {resolved(campaign), *campaigns_in(results)}
    times = {place: state.st_mtime for place in places if (state := status(place / JOURNAL)) is not None}
    for place in sorted(times, key=times.__getitem__, reverse=True)[:NEWEST]:
        for run in (run for pair in entries(place) for run in entries(pair / test_case)):
            if run.name.isdecimal():
                yield sum(state.st_size for _, state in walk(run))


# ---- consent --------------------------------------------------------------------------------


def confirm(options: NewCampaignOptions, program: Program, runs: Sequence[Run]) -> None:
    """Ask whether a campaign of unusual size shall start; raises InputError without a terminal, or if it shall not."""
    size = unusual_size(options, program, runs)
    if not size:
        return
    question = "\n".join([f"This campaign of {counted(len(runs), 'run')} is larger than usual.", *size])
    if console.ask(f"{question}\nStart it? [y/N] "):
        return
    raise InputError(question, NOT_STARTED)


def unusual_size(options: NewCampaignOptions, program: Program, runs: Sequence[Run]) -> list[str]:
    """Sentences on what makes a campaign larger than usual."""
    place, testbeds = options.log_dir or program.results, _testbeds(options)
    room = disk_needed(runs, program.results, place)
    found = [f"Disk space needed: {room}."] if room.needed > USUAL_SHARE * room.free else []
    longest = sum(run.test_case.timeout + MOST_OVERHEAD for run in runs) / testbeds
    if longest > USUAL_SECONDS and not options.cluster:
        durations = Durations(earlier_campaigns(program.root, options.clock))
        spans = [durations.of(run) for run in runs]
        limits = shared.limits(
            options, os.environ, Schedule(), tuple({run.test_case.name: run.test_case for run in runs}.values())
        )
        now = datetime.now(UTC)
        first, last = (
            (timeline(runs, [getattr(span, bound) for span in spans], limits, now, testbeds).end - now).total_seconds()
            for bound in Span._fields
        )
        found += [f"Estimated duration: {Span(first, last)}."] if first > USUAL_SECONDS else []
    return found


def _testbeds(options: NewCampaignOptions) -> int:
    """Runs at a time, the most that --parallel auto may start."""
    return shared.most_testbeds(options, shared.usual_schedule(options.clock)) or os.cpu_count() or 1
