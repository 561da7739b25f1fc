"""Who carries runs out: this machine's Docker daemon, daemons of other hosts, or the workers of a cluster."""

from __future__ import annotations

import importlib.util
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType

from interop.analysis.analyse import analyse
from interop.errors import InputError, MachineError
from interop.execution.admission import SERVED_RATE
from interop.execution.background import background
from interop.execution.crew import Crew
from interop.execution.daemon import Daemon
from interop.execution.distribution import distribute
from interop.execution.load import Meter
from interop.execution.lock import exclusive
from interop.execution.place import Conditions, DaemonStation, Judge
from interop.execution.reaper import watched_over
from interop.execution.remote import connected
from interop.execution.service import Terms
from interop.links.ns3 import Ns3Backend
from interop.links.real import HostLocks, RealBackend
from interop.model import Host, ImageFacts, RealLink, Run, Scheduler
from interop.settings import Settings

AUTO_TESTBEDS = 9
"""Most that share a machine which is to find out itself how many fit, half of them with files that are looked at."""


@dataclass(frozen=True)
class Ours:
    """Daemons that nobody else uses, and what ends a campaign early."""

    daemon: Daemon
    hosts: Mapping[str, Daemon]
    """Of other machines, by the name of the host."""
    stop: threading.Event
    caught: list[int]
    """Signals."""


@contextmanager
def held(settings: Settings, say: Callable[[str], None]) -> Iterator[Ours]:
    """Daemons without leftovers, locked and watched over by a reaper; those of a cluster are its workers' affair."""
    if settings.cluster and settings.hosts:
        raise InputError(
            "--hosts and --cluster exclude each other: a cluster has neither real links nor hosts driven directly."
        )
    campaign_id = secrets.token_hex(4)
    daemon = Daemon(settings.url, campaign_id)
    if settings.cluster:
        check_dask()
        yield Ours(daemon, {}, threading.Event(), [])
        return
    with ExitStack() as stack:
        hosts = {
            name: stack.enter_context(connected(host, campaign_id)) for name, host in sorted(settings.hosts.items())
        }
        _check_identities({"of this machine": daemon, **hosts} if _testbeds_elsewhere(settings) else hosts)
        for identity in sorted({each.id for each in (daemon, *hosts.values())}):
            stack.enter_context(exclusive(identity, f"campaign {campaign_id}"))
        stack.enter_context(watched_over((Host("", settings.url), *settings.hosts.values()), campaign_id))
        for each in (daemon, *hosts.values()):
            if removed := each.sweep():
                at = f" at {each.host}" if each.host else ""
                say(f"removed {removed} containers{at} that an earlier campaign had left")
        yield Ours(daemon, hosts, threading.Event(), [])


def check_dask() -> None:
    """Raise :class:`MachineError` if what a cluster needs is not installed."""
    if importlib.util.find_spec("distributed") is None:
        raise MachineError(
            "Dask is not installed here: `scripts/setup --cluster` brings it, on every machine of a cluster; "
            "docs/cluster.md tells how."
        )


def _check_identities(hosts: Mapping[str, Daemon]) -> None:
    """Raise :class:`MachineError` if two hosts are one daemon: ends of a link, or testbeds, at different machines."""
    owners: dict[str, str] = {}
    for name, daemon in hosts.items():
        owner = owners.setdefault(daemon.id, name)
        if owner != name:
            message = (
                f"The hosts {owner} and {name} are one Docker daemon, or clones of one ({daemon.id}). If they are two "
                "machines, remove /etc/docker/key.json, or engine-id in the data root, of one, and start it again."
            )
            raise MachineError(message)


def bring(facts: Mapping[str, ImageFacts], ours: Ours, settings: Settings, say: Callable[[str], None]) -> None:
    """Let every host have the images that it needs; raises :class:`MachineError`."""
    wanted = {name: image for name, image in facts.items() if "link-tools" not in facts or name != "simulator"}
    distribute(wanted, ours.daemon, tuple(ours.hosts.values()), say)


@contextmanager
def crew_of(
    runs: Sequence[Run], ours: Ours, settings: Settings, facts: Mapping[str, ImageFacts], say: Callable[[str], None]
) -> Iterator[Crew]:
    """The places where ``runs`` are made; raises :class:`UserError` if there are none."""
    if settings.cluster is not None:
        with _workers(runs, ours, settings.cluster, settings, facts, say) as crew:
            yield crew
        return
    links = _real_links(runs, ours, settings, facts)
    for link in links.values():
        link.examine(settings.bare_link, say)
    with Meter().watching() as meter, background(analyse) as judge:
        first = _station(runs, ours, settings, facts, judge, say, meter=meter, links=links)
        others = [
            _station(runs, replace(ours, daemon=ours.hosts[name]), settings, facts, judge, say, testbeds=host.testbeds)
            for name, host in settings.hosts.items()
            if host.testbeds and not links
        ]
        yield Crew(ours.stop, first, *others)


def _testbeds_elsewhere(settings: Settings) -> bool:
    return any(host.testbeds for host in settings.hosts.values())


def _station(
    runs: Sequence[Run],
    ours: Ours,
    settings: Settings,
    facts: Mapping[str, ImageFacts],
    judge: Judge,
    say: Callable[[str], None],
    *,
    meter: Meter | None = None,
    links: Mapping[tuple[str, str], RealBackend] = MappingProxyType({}),
    testbeds: int | None = None,
) -> DaemonStation:
    """Testbeds at the daemon of ``ours``; without a ``meter`` nobody knows how busy its CPUs are."""
    testbeds = testbeds or settings.testbeds or fitting_testbeds(runs)
    simulator = facts.get("simulator")
    emulated = Ns3Backend(ours.daemon, simulator.id) if simulator else None
    conditions = Conditions(
        daemon=ours.daemon,
        backend=emulated or next(iter(links.values())),
        links=links,
        hosts=tuple(ours.hosts.values()) if links else (),
        images={name: image.id for name, image in facts.items()},
        stop=ours.stop,
        parameters=settings.parameters,
        meter=meter or Meter(),
        qlog=settings.qlog,
        keep_files=settings.keep_files,
    )
    measured = meter is not None and settings.testbeds is None
    return DaemonStation(conditions, judge, say, testbeds=testbeds, measured=measured)


@contextmanager
def _workers(
    runs: Sequence[Run],
    ours: Ours,
    scheduler: Scheduler,
    settings: Settings,
    facts: Mapping[str, ImageFacts],
    say: Callable[[str], None],
) -> Iterator[Crew]:
    from interop.execution.remote_station import mustered  # Dask takes a second, which nothing else should

    terms = Terms(
        campaign=ours.daemon.campaign,
        images=facts,
        parameters=settings.parameters,
        qlog=settings.qlog,
        keep_files=settings.keep_files,
        testbeds=fitting_testbeds(runs),
    )
    with mustered(scheduler, terms, ours.daemon, ours.stop, say) as crew:
        yield crew


def fitting_testbeds(runs: Sequence[Run]) -> int:
    """How many testbeds may stand side by side: one if a link of ``runs`` is so fast that no two of it fit.

    More stand there than runs are under way, which admission sees to: what runs have left takes time, too.
    """
    fastest = max((run.test_case.link.forward_rate for run in runs), default=SERVED_RATE)
    return AUTO_TESTBEDS if 2 * fastest <= SERVED_RATE else 1


def _real_links(
    runs: Sequence[Run], ours: Ours, settings: Settings, facts: Mapping[str, ImageFacts]
) -> dict[tuple[str, str], RealBackend]:
    """A backend for each pair of hosts that runs need."""
    locks = HostLocks()
    links = dict.fromkeys(run.test_case.link for run in runs if isinstance(run.test_case.link, RealLink))
    return {
        (link.client_host, link.server_host): RealBackend(
            link, settings.hosts, ours.hosts, facts["link-tools"].id, locks
        )
        for link in links
    }
