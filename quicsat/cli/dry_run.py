"""What ``./run.py plan`` estimates: duration, disk space and images of a campaign; it changes nothing."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean

from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.docker.processors import foreign, is_native
from quicsat.docker.ssh_tunnel import connected
from quicsat.execution.remaining_work import pinned_images
from quicsat.images.build_recipes import own_images
from quicsat.images.lock_file import LockedImages
from quicsat.images.pull_or_build import Policy
from quicsat.images.status import ImageState, Stocked, stock_of_own, used_by
from quicsat.model.clock import Clock
from quicsat.model.errors import MachineError
from quicsat.model.implementation import Implementation
from quicsat.model.real_link import Host
from quicsat.model.results import Manifest, ResultSet
from quicsat.model.run import Run
from quicsat.model.stored_files import entries, resolved, status, walk
from quicsat.model.text import counted
from quicsat.model.units import byte_size
from quicsat.plan.duration_estimate import Durations, Span
from quicsat.plan.limits import CampaignLimits
from quicsat.report.terminal_tables import draw
from quicsat.results.store import JOURNAL, campaigns_in

SAMPLED = 60
"""Run directories per test case whose size is read."""


@dataclass(frozen=True)
class DryRunRequest:
    """Where a plan would run, and with which limits."""

    daemon: Host
    """That has the images, and makes the runs if no other one does."""
    root: Path
    """The folder with the results, and perhaps files of the user's own."""
    place: Path
    """Directory for the results, or the one that will contain it."""
    limits: CampaignLimits
    past: tuple[ResultSet, ...]
    """Campaigns from whose runs durations are estimated."""
    testbeds: int | None
    """Runs at a time; None for as many as the CPUs allow."""
    clock: Clock = Clock.REAL
    measures_here: bool = True
    """Whether this machine's daemon makes runs."""
    policy: Policy = Policy.AUTO
    lock: Path | None = None
    """Lock file of the images that the campaign has to use; None if it may use any."""
    begun: Manifest | None = None
    """Of a campaign that is resumed, which uses the images with which it began."""
    markdown: bool = False


@dataclass(frozen=True)
class Timeline:
    """A campaign in which each run takes as long as estimated."""

    end: datetime
    made: int
    """Runs that start before time is up."""


@dataclass(frozen=True)
class Forecast:
    """What a campaign would use and need."""

    text: str
    """For a terminal."""
    lacks_images: bool = False
    """Whether the campaign would end in an error because it finds no image, or some of its runs would."""


def describe(request: DryRunRequest, runs: Sequence[Run]) -> Forecast:
    """Images, duration and disk space."""
    if not runs:
        return Forecast("All runs are finished.")
    now, durations = datetime.now(UTC), Durations(request.past)
    estimates = [
        *time_needed(runs, durations, request.limits, now, _testbeds(request)),
        disk_needed(runs, request.root / "results", request.place),
    ]
    found = images(request, runs)
    return replace(found, text="\n".join(["", found.text, "", *estimates]))


def _testbeds(request: DryRunRequest) -> int | None:
    """Runs at a time; None if the campaign finds out."""
    if request.testbeds is None and request.clock is Clock.VIRTUAL:
        with suppress(MachineError), connected(request.daemon, "plan") as daemon:
            return int(daemon.info["NCPU"])
    return request.testbeds


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


def disk_needed(runs: Sequence[Run], results: Path, place: Path) -> str:
    """Disk space at ``place``, estimated from runs of the same test cases there and in campaigns below ``results``."""
    free = shutil.disk_usage(next(filter(Path.is_dir, (place, *place.absolute().parents)))).free
    counts = Counter(run.test_case.name for run in runs)
    known = {name: fmean(sizes) for name in counts if (sizes := list(islice(_sizes(results, place, name), SAMPLED)))}
    if not known:
        return f"Disk space needed: unknown, no earlier campaign; {byte_size(free)} are free."
    unlike = fmean(known.values())
    needed = sum(count * known.get(name, unlike) for name, count in counts.items())
    estimate = f"Disk space needed: about {byte_size(needed)}, {byte_size(needed / len(runs))} per run"
    if strange := counts.keys() - known.keys():
        estimate += f" (without earlier runs of {', '.join(sorted(strange))})"
    room = (
        ""
        if needed < free
        else " That is too little: free space with `./run.py prune`, or choose another disk with -l."
    )
    return f"{estimate}; {byte_size(free)} are free.{room}"


def _sizes(results: Path, campaign: Path, test_case: str) -> Iterator[int]:
    """Sizes in bytes of run directories of a test case, those of the newest campaign first."""
    places = {resolved(campaign), *campaigns_in(results)}
    times = {place: state.st_mtime for place in places if (state := status(place / JOURNAL)) is not None}
    for place in sorted(times, key=times.__getitem__, reverse=True):
        for run in (run for pair in entries(place) for run in entries(pair / test_case)):
            if run.name.isdecimal():
                yield sum(state.st_size for _, state in walk(run))


def images(request: DryRunRequest, runs: Sequence[Run]) -> Forecast:
    """A table of the images that the campaign would use, with the digests of those on this machine.

    Raises :class:`MachineError` if the daemon answers, and could not carry the campaign out with its images.
    """
    with ExitStack() as stack:
        try:
            daemon = stack.enter_context(connected(request.daemon, "plan"))
        except MachineError as error:
            return Forecast(f"Images: unknown. {str(error).splitlines()[0]}")
        return _images_at(daemon, request, runs)


def _images_at(daemon: Daemon, request: DryRunRequest, runs: Sequence[Run]) -> Forecast:
    """The same, with the daemon's answers."""
    if request.clock is Clock.REAL and request.measures_here:
        daemon.check_rights()
    store = DaemonImages(daemon)
    ends = dict.fromkeys(end for run in runs for end, _ in run.ends)
    own = own_images([run.test_case for run in runs], request.clock)
    if request.begun is not None:
        pinned_images(request.begun, runs, store.find)
    elif request.lock is not None:
        _check_locked(
            LockedImages(store, request.root, request.lock, request.policy, lambda _line: None, changes_nothing=True),
            ends,
            own,
        )
    stocked: list[Stocked] = [stock_of_own(store, name) for name in own]
    stocked += [used_by(store, request.root, end) for end in ends]
    states = {} if request.policy is Policy.LOCAL else {ImageState.OUTDATED: "outdated, will be rebuilt"}
    rows = [
        [
            each.name,
            each.source,
            states.get(each.state, each.state),
            each.image.short_id if each.image else "",
            each.reference,
        ]
        for each in stocked
    ]
    table = draw(["image of", "source", "state", "digest", "reference"], rows, markdown=request.markdown)
    lacking = list(_lacking(request, stocked))
    other = _for_other_processors(stocked, daemon) if request.measures_here else ()
    return Forecast("\n".join([table, *lacking, *_to_pull(request, stocked), *other]), bool(lacking))


def _check_locked(images: LockedImages, ends: Iterable[Implementation], own: Iterable[str]) -> None:
    """Raise :class:`MachineError` with each image that differs from the lock file."""
    problems = list[str]()
    ways = [partial(images.ensure_own, name) for name in own] + [partial(images.ensure, end) for end in ends]
    for way in ways:
        try:
            way()
        except MachineError as error:
            problems.append(str(error))
    if problems:
        raise MachineError("\n".join(problems))


def _lacking(request: DryRunRequest, stocked: Iterable[Stocked]) -> Iterator[str]:
    """Sentences on images that the campaign would not find."""
    if request.begun is not None or request.lock is not None or request.policy is not Policy.LOCAL:
        return
    for each in stocked:
        if each.state in (ImageState.MISSING, ImageState.OUTDATED):
            yield (
                f"{each.name}: its image {each.reference} is {each.state}, and --images local neither pulls nor builds "
                "images: the campaign would fail."
            )


def _for_other_processors(stocked: Iterable[Stocked], daemon: Daemon) -> Iterator[str]:
    """Sentences on images that the daemon can run only if it emulates their processor."""
    for each in stocked:
        if each.image is not None and not is_native(each.image, daemon):
            yield f"{each.name}: {foreign(each.image, daemon)}."


def _to_pull(request: DryRunRequest, stocked: Iterable[Stocked]) -> Iterator[str]:
    """Sentences on images that the campaign would have to pull because the user named them."""
    if request.begun is not None or request.lock is not None or request.policy is Policy.LOCAL:
        return
    for each in stocked:
        if each.source == "given" and each.state is ImageState.MISSING:
            yield (
                f"{each.reference}, which replaces the image of {each.name}, is not on this machine: the campaign has "
                "to pull it."
            )
