"""What ``./run.py plan`` estimates: duration, disk space and images of a campaign; it changes nothing."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from quicsat.cli.campaign_size import disk_needed, time_needed
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
from quicsat.model.units import seconds
from quicsat.plan.duration_estimate import Durations, slow_transfer
from quicsat.plan.limits import CampaignLimits
from quicsat.report.drawing import draw

NO_ROOM = "That is too little: free space with `./run.py prune`, or choose another disk with -l."


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
    width: int | None = None
    """Of the terminal, characters."""


@dataclass(frozen=True)
class Forecast:
    """What a campaign would use and need."""

    lines: tuple[str, ...]
    images: str = ""
    """A table of the images that it would use; empty if none is known."""
    lacks_images: bool = False
    """Whether the campaign would end in an error because it finds no image, or some of its runs would."""


def describe(request: DryRunRequest, runs: Sequence[Run]) -> Forecast:
    """Images, duration and disk space."""
    if not runs:
        return Forecast(("All runs are finished.",))
    now, durations = datetime.now(UTC), Durations(request.past)
    room = disk_needed(runs, request.root / "results", request.place)
    estimates = (
        *time_needed(runs, durations, request.limits, now, _testbeds(request)),
        f"Disk space needed: {room}.",
        *([NO_ROOM] if room.needed > room.free else []),
        *_short_limits(runs, durations),
    )
    found = images(request, runs)
    return replace(found, lines=(*estimates, *found.lines))


def _short_limits(runs: Sequence[Run], durations: Durations) -> Iterator[str]:
    """Sentences on time limits that slow implementations would not keep, of test cases without earlier runs."""
    cases = {run.test_case.name: run.test_case for run in runs if not durations.known(run)}
    for case in cases.values():
        if case.real or case.functional or case.ends_at_deadline or (slow := slow_transfer(case)) <= case.timeout:
            continue
        yield (
            f"{case.name}: its time limit, {seconds(case.timeout)}, may be too short: a slow implementation needs "
            f"about {seconds(slow)}. Set the key timeout, or --timeout."
        )


def _testbeds(request: DryRunRequest) -> int | None:
    """Runs at a time; None if the campaign finds out."""
    if request.testbeds is None and request.clock is Clock.VIRTUAL:
        with suppress(MachineError), connected(request.daemon, "plan") as daemon:
            return int(daemon.info["NCPU"])
    return request.testbeds


def images(request: DryRunRequest, runs: Sequence[Run]) -> Forecast:
    """A table of the images that the campaign would use, with the digests of those on this machine.

    Raises :class:`MachineError` if the daemon answers, and could not carry the campaign out with its images.
    """
    with ExitStack() as stack:
        try:
            daemon = stack.enter_context(connected(request.daemon, "plan"))
        except MachineError as error:
            return Forecast((f"Images: unknown. {str(error).splitlines()[0]}",))
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
    table = draw(
        ["image of", "source", "state", "digest", "reference"], rows, width=request.width, markdown=request.markdown
    )
    lacking = tuple(_lacking(request, stocked))
    other = _for_other_processors(stocked, daemon) if request.measures_here else ()
    lines = (*_to_get(request, stocked), *lacking, *_to_pull(request, stocked), *other)
    return Forecast(lines, table, bool(lacking))


def _to_get(request: DryRunRequest, stocked: Sequence[Stocked]) -> Iterator[str]:
    """Sentences on which images are on this machine, and which the campaign would pull or build first."""
    ready = [each for each in stocked if each.state in (ImageState.HERE, ImageState.CURRENT)]
    yield f"Images: {len(ready)} of {len(stocked)} are on this machine."
    if request.begun is not None or request.policy is Policy.LOCAL:
        return
    for state, what in ((ImageState.OUTDATED, "build again"), (ImageState.MISSING, "pull or build")):
        if names := [each.name for each in stocked if each.state is state and each.source != "given"]:
            yield f"Images to {what}: {', '.join(names)}."


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
    missing = [each for each in stocked if each.state in (ImageState.MISSING, ImageState.OUTDATED)]
    for each in missing:
        if request.begun is not None and each.name not in request.begun.images:
            yield f"{each.name}: its image {each.reference} is {each.state}. Runs that need it would not be made."
        elif request.begun is None and request.lock is None and request.policy is Policy.LOCAL:
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
