"""Runs a new campaign, or continues an interrupted one: images, lock, reaper, journal, workers, result.json."""

from __future__ import annotations

import datetime
import os
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from quicsat import __version__
from quicsat.docker.daemon_images import DaemonImages
from quicsat.execution.campaign_config import CampaignConfig
from quicsat.execution.campaign_setup import (
    CampaignResources,
    CheckedImages,
    check_processors,
    check_rights,
    distribute_images,
    make_worker_pool,
    open_resources,
)
from quicsat.execution.dispatcher import Dispatcher
from quicsat.execution.host_facts import processor
from quicsat.execution.remaining_work import RemainingWork, changed_parameters, pinned_images, remaining_work
from quicsat.execution.retries import restore
from quicsat.execution.run_config import RunConfig
from quicsat.execution.tool_version import tool_version
from quicsat.execution.worker import result_of
from quicsat.images import pull_or_build
from quicsat.images.lock_file import LockedImages
from quicsat.model.clock import Clock
from quicsat.model.errors import HarnessFault, Interrupted, MachineError
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import ImageFacts, Manifest, RunResult, Schedule, Versions
from quicsat.model.run import Run
from quicsat.plan.duration_estimate import Durations
from quicsat.plan.selection import Selection
from quicsat.results.document import StoredResults
from quicsat.results.store import Journal, load, make_campaign_directory, make_dated_directory, write_result_json

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class CampaignOutcome:
    """What a campaign came to."""

    directory: Path
    record: StoredResults
    signal: int | None
    """Number of the signal that ended it early, if any."""
    fault: str | None = None
    """Why it could not continue, if so."""
    out_of_time: str | None = None
    """Why the limits left no time for the remaining runs, if so."""


def run_campaign(
    selection: Selection,
    plan: Sequence[Run],
    config: CampaignConfig,
    say: Callable[[str], None],
    done: Callable[[RunResult, int], None],
) -> CampaignOutcome:
    """Run a new campaign; ``done`` gets each result, and how many runs are finished.

    Raises :class:`UserError` if the campaign cannot start; the returned value tells what stopped it later.
    """
    with open_resources(config, say) as resources:
        check_rights(resources, config)
        facts = _images(resources, selection, plan, config, say)
        with _signals(resources):
            versions = _versions(resources.daemon.info, facts)
            manifest = _manifest(resources.daemon.campaign, selection, plan, config, facts, versions)
            if not (resources.daemon.host or config.hosts or config.cluster):
                manifest = replace(manifest, processor=processor())
            config.check(manifest)
            directory = _directory(config)
            say(f"results: {_relative(directory)}")
            with Journal.create(directory, manifest) as journal:
                work = RemainingWork(tuple(plan), {})
                return _run_remaining(work, resources, config, facts, journal, say, done)


def resume_campaign(
    directory: Path,
    retry: Collection[Outcome],
    config: CampaignConfig,
    say: Callable[[str], None],
    begin: Callable[[Sequence[Run]], Callable[[RunResult, int], None]],
) -> CampaignOutcome:
    """Continue the campaign in ``directory`` with its own plan, seeds, images and options.

    Runs without a result, with the outcome ``error``, or with an outcome in ``retry`` are made. ``begin`` gets these
    runs and returns what :func:`run_campaign` calls ``done``. Raises :class:`UserError` if the campaign cannot
    continue, :class:`MachineError` if an image is gone.
    """
    with open_resources(config, say) as resources, Journal.open(directory) as journal:
        record = journal.record()
        for warning in record.warnings:
            say(warning)
        work = remaining_work(record, retry)
        restore(journal.place, work.tried)
        if not work.runs:
            return CampaignOutcome(directory, record, None)
        manifest = record.result_set.manifest
        given = config.run.parameters
        config = _as_begun(config, manifest)
        check_rights(resources, config)
        facts = pinned_images(manifest, work.runs, DaemonImages(resources.daemon).find)
        check_processors(facts, resources, config, say)
        distribute_images(facts, resources, config, say)
        if changed := changed_parameters(manifest, given):
            say(changed)
        with _signals(resources):
            return _run_remaining(work, resources, config, facts, journal, say, begin(work.runs))


def _as_begun(config: CampaignConfig, manifest: Manifest) -> CampaignConfig:
    """``config`` with the options that the manifest stores."""
    stored = manifest.options
    run = RunConfig(
        qlog=stored.get("qlog", config.run.qlog),
        keep_files=stored.get("keep_files", config.run.keep_files),
        parameters=config.run.parameters if manifest.parameters is None else manifest.parameters,
        clock=manifest.clock,
        cpu_cost=manifest.cpu_cost or 0.0,
        own_cpu_costs=manifest.own_cpu_costs,
    )
    return replace(config, run=run, check_compliance=stored.get("check_compliance", config.check_compliance))


def _run_remaining(
    work: RemainingWork,
    resources: CampaignResources,
    config: CampaignConfig,
    facts: Mapping[str, ImageFacts],
    journal: Journal,
    say: Callable[[str], None],
    done: Callable[[RunResult, int], None],
) -> CampaignOutcome:
    """Make the remaining runs, and write result.json however they end."""
    fault = out_of_time = None
    try:
        out_of_time = _dispatch(work, resources, config, facts, journal, say, done)
    except Interrupted:
        pass
    except (MachineError, HarnessFault) as error:
        fault = str(error)
    if not fault and not out_of_time and not resources.caught:
        journal.finish()
    write_result_json(journal.directory, journal.record().result_set)
    caught = resources.caught[0] if resources.caught else None
    return CampaignOutcome(journal.directory, load(journal.directory), caught, fault, out_of_time)


def _dispatch(
    work: RemainingWork,
    resources: CampaignResources,
    config: CampaignConfig,
    facts: Mapping[str, ImageFacts],
    journal: Journal,
    say: Callable[[str], None],
    done: Callable[[RunResult, int], None],
) -> str | None:
    """Check compliance, then make all runs; returns why runs are left, if the limits allow no more of them."""
    finished = 0

    def count(result: RunResult) -> None:
        nonlocal finished
        finished += 1
        done(result, finished)

    work = _with_images(work, facts, journal, count)
    with (
        make_worker_pool(work.runs, resources, config, facts, say) as workers,
        Dispatcher(workers, journal, resources.stop, say, count).open() as dispatcher,
    ):
        known = {(each.implementation, each.role): each.compliant for each in journal.record().result_set.compliance}
        not_compliant = {end for end, compliant in known.items() if not compliant}
        if config.check_compliance:
            not_compliant |= dispatcher.check_compliance(_unchecked_roles(work.runs, known))
        return dispatcher.run_all(work, not_compliant, limits=config.limits, durations=Durations(config.past))


def _with_images(
    work: RemainingWork, facts: Mapping[str, ImageFacts], journal: Journal, count: Callable[[RunResult], None]
) -> RemainingWork:
    """The runs whose images are available; all others get an error result at once."""
    able = list[Run]()
    for run in work.runs:
        lacking = dict.fromkeys(end.name for end, _ in run.ends if end.name not in facts)
        if not lacking:
            able.append(run)
            continue
        reason = f"there was no image of {' and '.join(lacking)} when the campaign began"
        verdict = Verdict(Outcome.ERROR, ErrorCode.IMAGE_MISSING, reason)
        result = result_of(run, work.tried.get(run, 0) + 1, verdict, Evidence(started="", seed=run.seed), None)
        journal.append_result(result)
        count(result)
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


def _images(
    resources: CampaignResources,
    selection: Selection,
    plan: Sequence[Run],
    config: CampaignConfig,
    say: Callable[[str], None],
) -> dict[str, ImageFacts]:
    """The images of the plan's implementations and of its links.

    Raises :class:`MachineError` if no run of the plan can be made. A missing image affects only the runs that need it;
    one that differs from the lock file ends the campaign.
    """
    store = DaemonImages(resources.daemon)
    source: pull_or_build.Images | LockedImages = pull_or_build.Images(store, config.root, config.policy, say)
    if config.lock is not None:
        source = LockedImages(store, config.root, config.lock, config.policy, say)
    checked = CheckedImages(source, resources, config, say)
    facts: dict[str, ImageFacts] = {}
    if not all(run.test_case.real for run in plan):
        facts["simulator"] = checked.ensure_own("simulator")
    lacking = list[str]()
    for implementation in dict.fromkeys((*selection.servers, *selection.clients, *selection.others)):
        try:
            facts[implementation.name] = checked.ensure(implementation)
        except MachineError as error:
            lacking.append(str(error))
    if (lacking and config.lock is not None) or not any(all(end.name in facts for end, _ in run.ends) for run in plan):
        raise MachineError("\n".join(dict.fromkeys(lacking)))
    for problem in lacking:
        say(f"{problem}\nRuns that need this image are not made; all others are.")
    if any(run.test_case.real for run in plan):
        facts["link-tools"] = checked.ensure_own("link-tools")
    if config.run.clock is Clock.VIRTUAL:
        facts["virtual-time"] = checked.ensure_own("virtual-time")
    if any(run.test_case.has_gateways for run in plan):
        facts["link-gateways"] = checked.ensure_own("link-gateways")
    distribute_images(facts, resources, config, say)
    return facts


def _directory(config: CampaignConfig) -> Path:
    if config.directory is not None:
        return make_campaign_directory(config.directory)
    return make_dated_directory(config.results)


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _from_checkout(source: str, root: Path) -> str:
    """A test case's file as a command in ``root`` names it; an absolute path that is not near it stays as it is."""
    path = Path(source)
    near = not path.is_absolute() or path.is_relative_to(root.parent)
    return os.path.relpath(path, root) if source and near else source


def _manifest(
    campaign_id: str,
    selection: Selection,
    plan: Sequence[Run],
    config: CampaignConfig,
    facts: Mapping[str, ImageFacts],
    versions: Versions,
) -> Manifest:
    return Manifest(
        id=campaign_id,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        command=config.command,
        tool_version=__version__,
        seed=config.seed,
        servers=tuple(server.name for server in selection.servers),
        clients=tuple(client.name for client in selection.clients),
        implementations=tuple(dict.fromkeys((*selection.servers, *selection.clients, *selection.others))),
        test_cases=tuple(
            replace(case, source=_from_checkout(case.source, config.root)) for case in selection.test_cases
        ),
        images=dict(facts),
        planned_runs=len(plan),
        options={
            "check_compliance": config.check_compliance,
            "qlog": config.run.qlog,
            "keep_files": config.run.keep_files,
            "shuffle": config.shuffle,
        },
        shard=config.shard,
        must_include=config.must_include,
        schedule=Schedule(
            config.testbeds,
            config.limits.breaker,
            config.limits.budget,
            config.limits.required,
            config.limits.skip_on_failure,
        ),
        parameters=dict(config.run.parameters),
        versions=versions,
        clock=config.run.clock,
        cpu_cost=config.run.cpu_cost if config.run.clock is Clock.VIRTUAL else None,
        own_cpu_costs=config.run.own_cpu_costs,
        note=config.note,
    )


def _versions(info: Mapping[str, Any], facts: Mapping[str, ImageFacts]) -> Versions:
    """``info``: what the Docker daemon reports about itself."""
    simulator = facts.get("simulator")
    return Versions(
        quicsat=tool_version(),
        engine=str(info.get("ServerVersion", "")),
        simulator=simulator.version if simulator else "",
        ns3=simulator.provenance.source if simulator else "",
    )


@contextmanager
def _signals(resources: CampaignResources) -> Iterator[None]:
    """The first signal ends the campaign in order; a second one kills it at once, and the reaper cleans up."""

    def handle(number: int, _frame: object) -> None:
        resources.caught.append(number)
        resources.stop.set()
        if len(resources.caught) > 1:
            os._exit(128 + number)

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
