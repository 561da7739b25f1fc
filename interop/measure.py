"""The main job, from a selection of names to a results directory: images, daemon, lock, reaper, campaign."""

from __future__ import annotations

import datetime
import os
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from interop import __version__, images
from interop.crews import Ours, bring, crew_of, held
from interop.errors import HarnessFault, MachineError
from interop.estimate import Durations
from interop.execution.campaign import Campaign
from interop.execution.place import result_of
from interop.execution.resume import Rest, changed_parameters, pinned_images, rest_of
from interop.execution.runner import restore
from interop.execution.transfer import Interrupted
from interop.model import (
    ErrorCode,
    Evidence,
    ImageFacts,
    Implementation,
    Manifest,
    Outcome,
    Role,
    Run,
    RunResult,
    Schedule,
    Verdict,
)
from interop.plan import Selection
from interop.schema.document import Record
from interop.settings import Settings as Settings
from interop.store import Journal, given_campaign_directory, load, new_campaign_directory, write_result_json

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Finished:
    """What a campaign came to."""

    directory: Path
    record: Record
    signal: int | None
    """The signal that ended it early."""
    fault: str = ""
    """Why it could not go on, if so."""
    early: str = ""
    """Why runs are left although it could, if so: time is up."""


def measure(
    selection: Selection,
    plan: Sequence[Run],
    settings: Settings,
    say: Callable[[str], None],
    done: Callable[[RunResult, int], None],
) -> Finished:
    """Carry out ``plan``; ``done`` hears each result and how many runs are finished.

    Raises :class:`UserError` if nothing could be started; what stops a campaign later is told in the return value.
    """
    with held(settings, say) as ours:
        facts = _images(ours, selection, plan, settings, say)
        with _signals(ours):
            directory = _directory(settings)
            say(f"results: {_shown(directory)}")
            manifest = _manifest(ours.daemon.campaign, selection, plan, settings, facts)
            with Journal.create(directory, manifest) as journal:
                return _carry_out(Rest(tuple(plan), {}), ours, settings, facts, journal, say, done)


def resume(
    directory: Path,
    retry: Collection[Outcome],
    settings: Settings,
    say: Callable[[str], None],
    begin: Callable[[Sequence[Run]], Callable[[RunResult, int], None]],
) -> Finished:
    """Continue the campaign in ``directory`` as it began: the same plan, seeds, images and options.

    Runs that ended by a fault of ours are made again, and those with an outcome in ``retry``. ``begin`` hears what is
    left to do. Raises :class:`UserError` if nothing could be started, :class:`MachineError` if an image is gone.
    """
    with held(settings, say) as ours, Journal.open(directory) as journal:
        record = journal.record()
        for warning in record.warnings:
            say(warning)
        rest = rest_of(record, retry)
        restore(directory, rest.tried)
        if not rest.runs:
            return Finished(directory, record, None)
        manifest = record.result_set.manifest
        facts = pinned_images(manifest, rest.runs, ours.daemon.find)
        bring(facts, ours, settings, say)
        if changed := changed_parameters(manifest, settings.parameters):
            say(changed)
        with _signals(ours):
            return _carry_out(rest, ours, _as_begun(settings, manifest), facts, journal, say, begin(rest.runs))


def _as_begun(settings: Settings, manifest: Manifest) -> Settings:
    """The options with which the campaign began."""
    asked = manifest.options
    return replace(
        settings,
        check_compliance=asked.get("check_compliance", settings.check_compliance),
        qlog=asked.get("qlog", settings.qlog),
        keep_files=asked.get("keep_files", settings.keep_files),
        parameters=settings.parameters if manifest.parameters is None else manifest.parameters,
    )


def _carry_out(
    rest: Rest,
    ours: Ours,
    settings: Settings,
    facts: Mapping[str, ImageFacts],
    journal: Journal,
    say: Callable[[str], None],
    done: Callable[[RunResult, int], None],
) -> Finished:
    """Carry out what is left, and write result.json."""
    fault, early = _left_by(rest, ours, settings, facts, journal, say, done)
    if not fault and not early and not ours.caught:
        journal.finish()
    write_result_json(journal.directory, journal.record().result_set)
    caught = ours.caught[0] if ours.caught else None
    return Finished(journal.directory, load(journal.directory), caught, fault, early)


def _left_by(
    rest: Rest,
    ours: Ours,
    settings: Settings,
    facts: Mapping[str, ImageFacts],
    journal: Journal,
    say: Callable[[str], None],
    done: Callable[[RunResult, int], None],
) -> tuple[str, str]:
    """Why the rest could not be carried out to its end: by a fault, and because time was up; empty if it was not so."""
    finished = 0

    def count(result: RunResult) -> None:
        nonlocal finished
        finished += 1
        done(result, finished)

    rest = _with_images(rest, facts, journal, count)
    try:
        with (
            crew_of(rest.runs, ours, settings, facts, say) as crew,
            Campaign(crew, journal, ours.stop, say, count).open() as campaign,
        ):
            known = {
                (each.implementation, each.role): each.compliant for each in journal.record().result_set.compliance
            }
            offenders = {who for who, compliant in known.items() if not compliant}
            if settings.check_compliance:
                offenders |= campaign.check_compliance(_roles(rest.runs, known))
            durations = Durations(settings.past)
            early = campaign.carry_out(
                rest.runs, offenders, rest.tried, rest.counting,
                alone=rest.alone, limits=settings.limits, durations=durations,
            )  # fmt: skip
    except Interrupted:
        return "", ""
    except (MachineError, HarnessFault) as error:
        return str(error), ""
    return "", early


def _with_images(
    rest: Rest, facts: Mapping[str, ImageFacts], journal: Journal, count: Callable[[RunResult], None]
) -> Rest:
    """The runs whose images are here; of the others it is noted at once that they cannot be made."""
    able = list[Run]()
    for run in rest.runs:
        lacking = dict.fromkeys(end.name for end in (run.server, run.client) if end.name not in facts)
        if not lacking:
            able.append(run)
            continue
        reason = f"there was no image of {' and '.join(lacking)} when the campaign began"
        verdict = Verdict(Outcome.ERROR, ErrorCode.IMAGE_MISSING, reason)
        result = result_of(run, rest.tried.get(run, 0) + 1, verdict, Evidence(started="", seed=run.seed), None)
        journal.append_result(result)
        count(result)
    return replace(rest, runs=tuple(able))


def _roles(plan: Sequence[Run], known: Collection[tuple[str, Role]]) -> dict[str, tuple[Implementation, set[Role]]]:
    """Who has to be checked in which roles, without those that were checked before."""
    wanted: dict[str, tuple[Implementation, set[Role]]] = {}
    for run in plan:
        for implementation, role in ((run.server, Role.SERVER), (run.client, Role.CLIENT)):
            if (implementation.name, role) not in known:
                wanted.setdefault(implementation.name, (implementation, set()))[1].add(role)
    return wanted


def _images(
    ours: Ours, selection: Selection, plan: Sequence[Run], settings: Settings, say: Callable[[str], None]
) -> dict[str, ImageFacts]:
    """The images of the plan's implementations, and what its links need.

    Raises :class:`MachineError` if no run of the plan can be made. An image that cannot be got costs its runs alone.
    """
    source = images.Images(ours.daemon, settings.root, settings.policy, say)
    facts: dict[str, ImageFacts] = {}
    if not all(run.test_case.real for run in plan):
        facts["simulator"] = source.ensure_simulator()
    lacking = list[str]()
    for implementation in dict.fromkeys((*selection.servers, *selection.clients)):
        try:
            facts[implementation.name] = source.ensure(implementation)
        except MachineError as error:
            lacking.append(str(error))
    if not any(run.server.name in facts and run.client.name in facts for run in plan):
        raise MachineError("\n".join(dict.fromkeys(lacking)))
    for problem in lacking:
        say(f"{problem}\nIts runs are not made; the others are.")
    if any(run.test_case.real for run in plan):
        facts["link-tools"] = source.ensure_link_tools()
    bring(facts, ours, settings, say)
    return facts


def _directory(settings: Settings) -> Path:
    if settings.directory is not None:
        return given_campaign_directory(settings.directory)
    return new_campaign_directory(settings.results)


def _shown(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _manifest(
    campaign_id: str,
    selection: Selection,
    plan: Sequence[Run],
    settings: Settings,
    facts: Mapping[str, ImageFacts],
) -> Manifest:
    return Manifest(
        id=campaign_id,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        command=settings.command,
        tool_version=__version__,
        seed=settings.seed,
        servers=tuple(server.name for server in selection.servers),
        clients=tuple(client.name for client in selection.clients),
        implementations=tuple(dict.fromkeys((*selection.servers, *selection.clients))),
        test_cases=selection.test_cases,
        images=dict(facts),
        planned_runs=len(plan),
        options={name: getattr(settings, name) for name in ("check_compliance", "qlog", "keep_files", "shuffle")},
        shard=settings.shard,
        schedule=Schedule(settings.testbeds, settings.limits.breaker, settings.limits.budget),
        parameters=dict(settings.parameters),
    )


@contextmanager
def _signals(ours: Ours) -> Iterator[None]:
    """The first signal ends the campaign in order, the second one at once (the reaper cleans up then)."""

    def handle(number: int, _frame: object) -> None:
        ours.caught.append(number)
        ours.stop.set()
        if len(ours.caught) > 1:
            os._exit(128 + number)

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
