"""The main job, from a selection of names to a results directory: images, daemon, lock, reaper, campaign."""

from __future__ import annotations

import datetime
import os
import secrets
import signal
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from interop import __version__, images
from interop.analysis.analyse import analyse
from interop.errors import HarnessFault, MachineError
from interop.estimate import Durations
from interop.execution.campaign import Campaign
from interop.execution.daemon import Daemon
from interop.execution.distribution import distribute
from interop.execution.load import Meter
from interop.execution.lock import exclusive
from interop.execution.reaper import watched_over
from interop.execution.remote import connected
from interop.execution.resume import Rest, pinned_images, rest_of
from interop.execution.runner import Conditions
from interop.execution.transfer import Interrupted
from interop.limits import Limits
from interop.links import LinkBackend
from interop.links.ns3 import Ns3Backend
from interop.links.real import HostLocks, RealBackend
from interop.model import (
    Host,
    ImageFacts,
    Implementation,
    Manifest,
    Outcome,
    RealLink,
    ResultSet,
    Role,
    Run,
    RunResult,
)
from interop.plan import Selection
from interop.schema.document import Record
from interop.store import Journal, given_campaign_directory, load, new_campaign_directory, write_result_json

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AUTO_TESTBEDS = 6
"""Most that share a machine which is to find out itself how many fit."""
SERVED_RATE = 80e6
"""Bit/s of links side by side that the real-time budget of one CPU serves."""


@dataclass(frozen=True)
class Settings:
    """How a campaign is to be carried out."""

    url: str
    """Of the Docker daemon."""
    root: Path
    """The checkout."""
    results: Path
    """Where dated campaign directories are made."""
    directory: Path | None
    """The campaign directory, if the user named one."""
    policy: images.Policy
    seed: int
    command: tuple[str, ...]
    check_compliance: bool = True
    qlog: bool = True
    keep_files: bool = False
    hosts: Mapping[str, Host] = field(default_factory=dict)
    """Those that the real links of the plan need, by name."""
    bare_link: float = 0.0
    """Seconds for which TCP has each real link for itself before the campaign."""
    testbeds: int | None = 1
    """Most runs at the same time; None for as many as the machine has time for."""
    shuffle: bool = False
    """The plan is in random order."""
    shard: str = ""
    """Which part of a plan it is, ``2/4``; empty if it is the whole."""
    limits: Limits = field(default_factory=Limits)
    past: tuple[ResultSet, ...] = ()
    """Campaigns that tell how long runs take."""


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
    with _ours(settings, say) as ours:
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
    with _ours(settings, say) as ours, Journal.open(directory) as journal:
        record = journal.record()
        for warning in record.warnings:
            say(warning)
        rest = rest_of(record, retry)
        if not rest.runs:
            return Finished(directory, record, None)
        manifest = record.result_set.manifest
        facts = pinned_images(manifest, rest.runs, ours.daemon.find)
        distribute(facts, ours.daemon, tuple(ours.hosts.values()), say)
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
    )


@dataclass(frozen=True)
class _Ours:
    """Daemons that nobody else uses, and what ends a campaign early."""

    daemon: Daemon
    hosts: Mapping[str, Daemon]
    """Of real links, by the name of the host."""
    stop: threading.Event
    caught: list[int]
    """Signals."""


@contextmanager
def _ours(settings: Settings, say: Callable[[str], None]) -> Iterator[_Ours]:
    """Daemons without leftovers, locked and watched over by a reaper."""
    campaign_id = secrets.token_hex(4)
    daemon = Daemon(settings.url, campaign_id)
    with ExitStack() as stack:
        hosts = {
            name: stack.enter_context(connected(host, campaign_id)) for name, host in sorted(settings.hosts.items())
        }
        _check_identities(hosts)
        for identity in sorted({each.id for each in (daemon, *hosts.values())}):
            stack.enter_context(exclusive(identity, f"campaign {campaign_id}"))
        stack.enter_context(watched_over((Host("", settings.url), *settings.hosts.values()), campaign_id))
        for each in (daemon, *hosts.values()):
            if removed := each.sweep():
                at = f" at {each.host}" if each.host else ""
                say(f"removed {removed} containers{at} that an earlier campaign had left")
        yield _Ours(daemon, hosts, threading.Event(), [])


def _check_identities(hosts: Mapping[str, Daemon]) -> None:
    """Raise :class:`MachineError` if two hosts are one daemon: the ends of a real link are two machines."""
    owners: dict[str, str] = {}
    for name, daemon in hosts.items():
        owner = owners.setdefault(daemon.id, name)
        if owner != name:
            message = (
                f"The hosts {owner} and {name} are one Docker daemon, or clones of one ({daemon.id}). If they are two "
                "machines, remove /etc/docker/key.json, or engine-id in the data root, of one, and start it again."
            )
            raise MachineError(message)


def _carry_out(
    rest: Rest,
    ours: _Ours,
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
    ours: _Ours,
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

    testbeds = settings.testbeds or fitting_testbeds(rest.runs)
    meter = Meter()
    links = _real_links(rest, ours, settings, facts)
    simulator = facts.get("simulator")
    backend: LinkBackend = (
        Ns3Backend(ours.daemon, simulator.id, testbeds=testbeds) if simulator else next(iter(links.values()))
    )
    conditions = Conditions(
        daemon=ours.daemon,
        backend=backend,
        links=links,
        hosts=tuple(ours.hosts.values()),
        images={name: image.id for name, image in facts.items()},
        stop=ours.stop,
        parameters={name: os.environ.get(name, "") for name in ("CLIENT_PARAMS", "SERVER_PARAMS", "CRON")},
        meter=meter,
        qlog=settings.qlog,
        keep_files=settings.keep_files,
    )
    try:
        way = Campaign(conditions, journal, analyse, say, count, testbeds=testbeds, measured=settings.testbeds is None)
        for link in links.values():
            link.examine(settings.bare_link, say)
        with meter.watching(), way.open() as campaign:
            known = {
                (each.implementation, each.role): each.compliant for each in journal.record().result_set.compliance
            }
            offenders = {who for who, compliant in known.items() if not compliant}
            if settings.check_compliance:
                offenders |= campaign.check_compliance(_roles(rest.runs, known))
            durations = Durations(settings.past)
            early = campaign.carry_out(rest.runs, offenders, rest.tried, limits=settings.limits, durations=durations)
    except Interrupted:
        return "", ""
    except (MachineError, HarnessFault) as error:
        return str(error), ""
    return "", early


def fitting_testbeds(runs: Sequence[Run]) -> int:
    """How many testbeds may stand side by side so that the simulator of each has the time for its link.

    Simulators share the real-time budget of one CPU (where the kernel has real-time groups), of which a link of
    20 Mbit/s was measured to need a fifth.
    """
    fastest = max((run.test_case.link.forward_rate for run in runs), default=SERVED_RATE)
    return max(1, min(AUTO_TESTBEDS, int(SERVED_RATE / fastest)))


def _real_links(
    rest: Rest, ours: _Ours, settings: Settings, facts: Mapping[str, ImageFacts]
) -> dict[tuple[str, str], RealBackend]:
    """A backend for each pair of hosts that the rest of the plan needs."""
    locks = HostLocks()
    links = dict.fromkeys(run.test_case.link for run in rest.runs if isinstance(run.test_case.link, RealLink))
    return {
        (link.client_host, link.server_host): RealBackend(
            link, settings.hosts, ours.hosts, facts["link-tools"].id, locks
        )
        for link in links
    }


def _roles(plan: Sequence[Run], known: Collection[tuple[str, Role]]) -> dict[str, tuple[Implementation, set[Role]]]:
    """Who has to be checked in which roles, without those that were checked before."""
    wanted: dict[str, tuple[Implementation, set[Role]]] = {}
    for run in plan:
        for implementation, role in ((run.server, Role.SERVER), (run.client, Role.CLIENT)):
            if (implementation.name, role) not in known:
                wanted.setdefault(implementation.name, (implementation, set()))[1].add(role)
    return wanted


def _images(
    ours: _Ours, selection: Selection, plan: Sequence[Run], settings: Settings, say: Callable[[str], None]
) -> dict[str, ImageFacts]:
    """The image of every implementation of the plan, and what its links need; raises :class:`MachineError`."""
    source = images.Images(ours.daemon, settings.root, settings.policy, say)
    facts: dict[str, ImageFacts] = {}
    if not all(run.test_case.real for run in plan):
        facts["simulator"] = source.ensure_simulator()
    for implementation in dict.fromkeys((*selection.servers, *selection.clients)):
        facts[implementation.name] = source.ensure(implementation)
    if any(run.test_case.real for run in plan):
        facts["link-tools"] = source.ensure_link_tools()
        wanted = {name: image for name, image in facts.items() if name != "simulator"}
        distribute(wanted, ours.daemon, tuple(ours.hosts.values()), say)
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
        test_cases=tuple(dict.fromkeys(run.test_case for run in plan)),
        images=dict(facts),
        planned_runs=len(plan),
        options={name: getattr(settings, name) for name in ("check_compliance", "qlog", "keep_files", "shuffle")},
        shard=settings.shard,
    )


@contextmanager
def _signals(ours: _Ours) -> Iterator[None]:
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
