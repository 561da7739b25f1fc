"""Runs a new campaign, or continues an interrupted one: images, lock, reaper, journal, workers, result.json."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from quicsat.config.tool_version import tool_version
from quicsat.docker.daemon_images import DaemonImages
from quicsat.execution.campaign_config import CampaignOutcome, Conditions, ImageSource, NewCampaign, schedule_of
from quicsat.execution.campaign_setup import Engines, open_engines
from quicsat.execution.dispatcher import WAKE, Dispatcher
from quicsat.execution.host_facts import processor
from quicsat.execution.observer import Observer
from quicsat.execution.remaining_work import RemainingWork, changed_parameters, pinned_images, remaining_work
from quicsat.execution.retries import restore
from quicsat.execution.run_config import environment_parameters, stored_run_config
from quicsat.execution.worker import result_of
from quicsat.execution.worker_pool import WorkerPool
from quicsat.images.build_recipes import own_images
from quicsat.images.lock_file import LockedImages
from quicsat.images.pinned_images import PinnedImages
from quicsat.images.pull_or_build import Images
from quicsat.images.status import ImageState, used_by
from quicsat.model.errors import HarnessFault, InputError, Interrupted, MachineError
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import ImageFacts, Manifest, Versions
from quicsat.model.run import Run
from quicsat.plan.duration_estimate import Durations
from quicsat.results.store import (
    LATEST,
    Journal,
    is_campaign,
    load,
    make_campaign_directory,
    make_dated_directory,
    point_latest,
    write_result_json,
)

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NOT_MADE = (
    "Runs that need this image are not made; all others are. To make these runs, build, pull or load the image, and "
    "resume the campaign."
)
ANOTHER = "The campaign of the other build could not continue."


def run_campaign(new: NewCampaign, conditions: Conditions, observer: Observer) -> CampaignOutcome:
    """Run a new campaign.

    Raises :class:`UserError` if the campaign cannot start; the returned value tells what stopped it later.
    """
    observer.planned(new.runs)
    with open_engines(conditions, observer) as engines:
        engines.check_rights(new.run.clock)
        engines.warn_of_other_programs(new.run.clock)
        images = _images(engines, new)
        with _signals(engines), _begun(engines, new, images) as campaign:
            return campaign.make(RemainingWork(new.runs, {}))


def run_builds(campaigns: Sequence[NewCampaign], conditions: Conditions, observer: Observer) -> list[CampaignOutcome]:
    """Run campaigns of several builds of an implementation at the same time, in virtual time; their runs take turns.

    A campaign that is in its directory already is continued. What ends one of them ends all. Raises as
    :func:`run_campaign`.
    """
    with open_engines(conditions, observer) as engines:
        images = [_images(engines, new) for new in campaigns]
        builds = {
            implementation: own[implementation.name]
            for new, own in zip(campaigns, images, strict=True)
            for implementation in new.selection.implementations
            if implementation.name in own
        }
        with _signals(engines), ExitStack() as journals:
            begun = [
                journals.enter_context(_begun_or_continued(engines, new, own))
                for new, own in zip(campaigns, images, strict=True)
            ]
            left = [run for _, work in begun for run in work.runs]
            observer.planned(left)
            config = replace(stored_run_config(begun[0][0].manifest), builds=builds)
            with engines.workers(left, config) as workers, ThreadPoolExecutor(len(begun)) as threads:
                made = [threads.submit(campaign.make, work, workers) for campaign, work in begun]
                while wait(made, WAKE).not_done:
                    pass  # Python handles signals in this thread only, which must be awake for that
            return [each.result() for each in made]


@contextmanager
def _begun_or_continued(
    engines: Engines, new: NewCampaign, images: dict[str, ImageFacts]
) -> Iterator[tuple[Campaign, RemainingWork]]:
    """A new campaign, or the one that is in its directory; and what is left of it."""
    if new.directory is None or not is_campaign(new.directory):
        with _begun(engines, new, images) as campaign:
            yield campaign, RemainingWork(new.runs, {})
        return
    with Journal.open(new.directory) as journal:
        record = journal.record()
        manifest = record.result_set.manifest
        new.check(replace(manifest, images=images))
        work = remaining_work(record, (), new.runs)
        restore(journal.place, work.tried)
        if found := {name: images[name] for name in images.keys() - manifest.images.keys()}:
            journal.append_images(found)
        yield Campaign(engines, replace(manifest, images=images), journal), work.possible(images)


@contextmanager
def _begun(engines: Engines, new: NewCampaign, images: Mapping[str, ImageFacts]) -> Iterator[Campaign]:
    """The campaign with its directory and an open journal."""
    conditions = engines.conditions
    manifest = new.manifest(engines.campaign, images, schedule_of(conditions))
    manifest = replace(manifest, versions=_versions(engines.daemon.info, images))
    if not (engines.daemon.host or conditions.hosts or conditions.cluster):
        manifest = replace(manifest, processor=processor())
    new.check(manifest)
    directory = _make_directory(new, engines.observer)
    engines.observer.say(f"results: {_relative(directory)}")
    with Journal.create(directory, manifest) as journal:
        yield Campaign(engines, manifest, journal)


def _make_directory(new: NewCampaign, observer: Observer) -> Path:
    """The directory of the campaign, to which ``results/latest`` points, if it can where the user named one."""
    if new.directory is None:
        return make_dated_directory(new.results)
    directory = make_campaign_directory(new.directory)
    try:
        point_latest(new.results, directory)
    except (InputError, OSError) as error:
        observer.say(f"{new.results / LATEST} does not point to this campaign: {error}")
    return directory


def resume_campaign(
    directory: Path,
    retry: Collection[Outcome],
    conditions: Conditions,
    observer: Observer,
    plan: Sequence[Run] | None = None,
) -> CampaignOutcome:
    """Continue the campaign in ``directory`` with its own plan, seeds, images and options.

    ``plan``: that of a campaign of chosen runs, which its manifest does not tell.
    Runs without a result, with the outcome ``error``, or with an outcome in ``retry`` are made. Raises
    :class:`UserError` if the campaign cannot continue, :class:`MachineError` if an image is gone.
    """
    with open_engines(conditions, observer) as engines, Journal.open(directory) as journal:
        record = journal.record()
        for warning in record.warnings:
            observer.say(warning)
        work = remaining_work(record, retry, plan)
        restore(journal.place, work.tried)
        manifest, environment = record.result_set.manifest, environment_parameters()
        found = _found_since(engines, manifest, work)
        manifest = replace(manifest, images={**manifest.images, **found})
        work = work.possible(manifest.images)
        if not work.runs:
            return CampaignOutcome(directory, record, None)
        engines.check_rights(manifest.clock)
        engines.warn_of_other_programs(manifest.clock)
        images = pinned_images(manifest, work.runs, DaemonImages(engines.daemon).find)
        engines.check_processors({name: images[name] for name in images.keys() - found}, manifest.clock)
        engines.distribute(images, manifest.clock)
        if found:
            journal.append_images({name: images[name] for name in found})
        if changed := changed_parameters(manifest, environment):
            observer.say(changed)
        parameters = environment if manifest.parameters is None else manifest.parameters
        manifest = replace(manifest, images=images, parameters=parameters)
        observer.planned(work.runs)
        with _signals(engines):
            return Campaign(engines, manifest, journal).make(work)


@dataclass(frozen=True)
class Campaign:
    """A campaign under way: what it measures, its engines, and its journal."""

    engines: Engines
    manifest: Manifest
    """With the images and the endpoint parameters that are used."""
    journal: Journal

    def make(self, work: RemainingWork, workers: WorkerPool | None = None) -> CampaignOutcome:
        """Make the runs that are left, if any, and write result.json however they end.

        ``workers``: those that several campaigns share; by default, the campaign has its own.
        """
        if not work.runs and (record := self.journal.record()).result_set.finished is not None:
            return CampaignOutcome(self.journal.directory, record, None)
        caught = self.engines.caught
        fault = out_of_time = None
        try:
            out_of_time = self._make_runs(work, workers)
        except Interrupted:
            fault = None if caught else ANOTHER
        except (MachineError, HarnessFault) as error:
            fault = str(error)
        if not fault and not out_of_time and not caught:
            self.journal.finish()
        directory = self.journal.directory
        write_result_json(directory, self.journal.record().result_set)
        return CampaignOutcome(directory, load(directory), caught[0] if caught else None, fault, out_of_time)

    def _make_runs(self, work: RemainingWork, shared: WorkerPool | None) -> str | None:
        """Check compliance, then make all runs; returns why runs are left, if the limits allow no more of them."""
        conditions = self.engines.conditions
        work = self._with_images(work)
        own = self.engines.workers
        with nullcontext(shared) if shared else own(work.runs, stored_run_config(self.manifest)) as workers:
            dispatcher = Dispatcher(workers, self.journal, self.engines.observer)
            checked = self.journal.record().result_set.compliance
            known = {(each.implementation, each.role): each.compliant for each in checked}
            not_compliant = {end for end, compliant in known.items() if not compliant}
            if self.manifest.options.get("check_compliance", True):
                not_compliant |= dispatcher.check_compliance(_unchecked_roles(work.runs, known))
            if conditions.try_not_compliant:
                not_compliant = set()
            return dispatcher.run_all(
                work, not_compliant, limits=conditions.limits, durations=Durations(conditions.past)
            )

    def _with_images(self, work: RemainingWork) -> RemainingWork:
        """The runs whose images are available; all others get an error result at once."""
        able = list[Run]()
        for run in work.runs:
            lacking = dict.fromkeys(end.name for end, _ in run.ends if end.name not in self.manifest.images)
            if not lacking:
                able.append(run)
                continue
            reason = f"there was no image of {' and '.join(lacking)} when the campaign began"
            verdict = Verdict(Outcome.ERROR, ErrorCode.IMAGE_MISSING, reason)
            result = result_of(run, work.tried.get(run, 0) + 1, verdict)
            self.journal.append_result(result)
            self.engines.observer.done(result)
        return replace(work, runs=tuple(able))


def _unchecked_roles(
    plan: Sequence[Run], known: Collection[tuple[str, Role]]
) -> dict[str, tuple[Implementation, set[Role]]]:
    """The roles in which implementations have to be checked, without those that were checked before."""
    wanted: dict[str, tuple[Implementation, set[Role]]] = {}
    for run in plan:
        for implementation, role in run.ends:
            if (implementation.name, role) not in known:
                wanted.setdefault(implementation.name, (implementation, set()))[1].add(role)
    return wanted


def _source(engines: Engines, images: ImageSource) -> Images | LockedImages | PinnedImages:
    store, say = DaemonImages(engines.daemon), engines.observer.say
    if images.lock is not None:
        return LockedImages(store, images.root, images.lock, images.policy, say)
    found = Images(store, images.root, images.policy, say)
    return PinnedImages(store, images.pinned, found) if images.pinned else found


def _images(engines: Engines, new: NewCampaign) -> dict[str, ImageFacts]:
    """The images of the implementations and of the links of a campaign, on all hosts.

    Raises :class:`MachineError` if no run can be made. A missing image affects only the runs that need it; one that
    differs from the lock file, or a pinned one that is gone, ends the campaign.
    """
    source = _source(engines, new.images)
    images = dict[str, ImageFacts]()
    lacking = list[str]()
    own = own_images([run.test_case for run in new.runs], new.run.clock)

    def take(name: str, image: ImageFacts) -> None:
        if image.id not in {each.id for each in images.values()}:
            engines.check_processors({name: image}, new.run.clock)
        images[name] = image

    if "simulator" in own:
        take("simulator", source.ensure_own("simulator"))
    for implementation in new.selection.implementations:
        try:
            take(implementation.name, source.ensure(implementation))
        except MachineError as error:
            lacking.append(str(error))
    if (lacking and (new.images.lock is not None or new.images.pinned)) or not any(
        all(end.name in images for end, _ in run.ends) for run in new.runs
    ):
        raise MachineError("\n".join(dict.fromkeys(lacking)))
    for problem in lacking:
        engines.observer.say(f"{problem}\n{NOT_MADE}")
    for name in own:
        if name not in images:
            take(name, source.ensure_own(name))
    engines.distribute(images, new.run.clock)
    return images


def _found_since(engines: Engines, manifest: Manifest, work: RemainingWork) -> dict[str, ImageFacts]:
    """The images that were missing when the campaign began, and are here now; nothing is pulled or built."""
    found = dict[str, ImageFacts]()
    for implementation in work.lacking(manifest.images):
        try:
            stocked = used_by(DaemonImages(engines.daemon), engines.conditions.root, implementation)
            if stocked.image is None or stocked.state is ImageState.OUTDATED:
                raise MachineError(f"{implementation.name}: its image {stocked.reference} is {stocked.state}.")
            engines.check_processors({implementation.name: stocked.image}, manifest.clock)
        except MachineError as error:
            engines.observer.say(f"{error}\n{NOT_MADE}")
        else:
            found[implementation.name] = stocked.image
    return found


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _versions(info: Mapping[str, Any], images: Mapping[str, ImageFacts]) -> Versions:
    """``info``: what the Docker daemon reports about itself."""
    simulator = images.get("simulator")
    return Versions(
        quicsat=tool_version(),
        engine=str(info.get("ServerVersion", "")),
        simulator=simulator.version if simulator else "",
        ns3=simulator.provenance.source if simulator else "",
    )


@contextmanager
def _signals(engines: Engines) -> Iterator[None]:
    """The first signal ends the campaign in order; a second one kills it at once, and the reaper cleans up."""

    def handle(number: int, _frame: object) -> None:
        engines.caught.append(number)
        engines.stop.set()
        if len(engines.caught) > 1:
            os._exit(128 + number)

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
