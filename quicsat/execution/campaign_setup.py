"""Sets up a campaign: locks its daemons, distributes images, and makes a pool of local or cluster workers."""

from __future__ import annotations

import importlib.util
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from quicsat.analysis.analyse import analyse_once
from quicsat.config.hosts import measures_here
from quicsat.docker import processors
from quicsat.docker.client import Daemon
from quicsat.docker.containers import remove_containers
from quicsat.docker.image_transfer import distribute
from quicsat.docker.ssh_tunnel import connected
from quicsat.execution.admission import fitting_testbeds
from quicsat.execution.analysis_pool import analysis_pool
from quicsat.execution.backend_for_clock import emulated_backend
from quicsat.execution.campaign_config import CampaignConfig
from quicsat.execution.cpu_monitor import CpuMonitor
from quicsat.execution.local_worker import LocalWorker, WorkerConfig
from quicsat.execution.lock import exclusive
from quicsat.execution.reaper import start_reaper
from quicsat.execution.worker import Analyse
from quicsat.execution.worker_pool import WorkerPool
from quicsat.execution.worker_service import RemoteConfig
from quicsat.images.lock_file import LockedImages
from quicsat.images.pull_or_build import Images
from quicsat.links.real import HostLocks, RealBackend
from quicsat.model.clock import Clock
from quicsat.model.errors import MachineError
from quicsat.model.implementation import Implementation
from quicsat.model.real_link import Host, RealLink, Scheduler
from quicsat.model.results import ImageFacts
from quicsat.model.run import Run
from quicsat.model.text import counted


@dataclass(frozen=True)
class CampaignResources:
    """Daemons that this campaign has to itself, and what ends it early."""

    daemon: Daemon
    hosts: Mapping[str, Daemon]
    """Daemons of other machines, by the name of the host."""
    stop: threading.Event
    caught: list[int]
    """Numbers of the signals received."""


@contextmanager
def open_resources(config: CampaignConfig, say: Callable[[str], None]) -> Iterator[CampaignResources]:
    """Daemons that are locked, without leftovers and watched by a reaper; cluster workers do so themselves."""
    campaign_id = secrets.token_hex(4)
    with ExitStack() as stack:
        daemon = stack.enter_context(connected(config.daemon, campaign_id))
        if config.cluster:
            check_dask()
            yield CampaignResources(daemon, {}, threading.Event(), [])
            return
        hosts = {name: stack.enter_context(connected(host, campaign_id)) for name, host in sorted(config.hosts.items())}
        default = f"of {config.daemon.named_by}" if daemon.host else "of this machine"
        _check_identities({default: daemon, **hosts} if _testbeds_elsewhere(config) else hosts, config.hosts)
        for identity in sorted({each.id for each in (daemon, *hosts.values())}):
            stack.enter_context(exclusive(identity, f"campaign {campaign_id}"))
        stack.enter_context(start_reaper((config.daemon, *config.hosts.values()), campaign_id))
        for each in (daemon, *hosts.values()):
            if removed := remove_containers(each):
                at = f" at {each.host}" if each.host else ""
                say(f"removed {counted(removed, 'container')}{at} that an earlier campaign had left")
        yield CampaignResources(daemon, hosts, threading.Event(), [])


def check_rights(resources: CampaignResources, config: CampaignConfig) -> None:
    """Raise :class:`MachineError` if an engine of the campaign has no root access, which real time needs."""
    if config.run.clock is Clock.VIRTUAL or config.cluster:
        return
    for daemon in (*((resources.daemon,) if measures_here(config.hosts) else ()), *resources.hosts.values()):
        daemon.check_rights()


def check_dask() -> None:
    """Raise :class:`MachineError` if Dask is not installed."""
    if importlib.util.find_spec("distributed") is None:
        raise MachineError(
            "Dask is not installed here: `scripts/setup --cluster` brings it, on every machine of a cluster; "
            "see docs/guide/cluster.md."
        )


def _check_identities(hosts: Mapping[str, Daemon], entries: Mapping[str, Host]) -> None:
    """Raise :class:`MachineError` if two hosts have the same daemon without saying so in their ``entries``.

    Entries with the same ``daemon`` are addresses of one machine, for real links alone.
    """
    owners: dict[str, str] = {}
    for name, daemon in hosts.items():
        owner = owners.setdefault(daemon.id, name)
        if owner != name and not _is_one_machine(entries.get(owner), entries.get(name)):
            message = (
                f"The hosts {owner} and {name} are one Docker daemon, or clones of one ({daemon.id}). If they are two "
                "machines, remove /etc/docker/key.json, or engine-id in the data root, of one, and start it again."
            )
            raise MachineError(message)


def _is_one_machine(one: Host | None, other: Host | None) -> bool:
    return bool(one and other and one.daemon == other.daemon and not one.testbeds + other.testbeds)


def check_processors(
    facts: Mapping[str, ImageFacts], resources: CampaignResources, config: CampaignConfig, say: Callable[[str], None]
) -> None:
    """Raise :class:`MachineError` if the processor of the campaign's own daemon can run one of the images in no way."""
    if not config.cluster and measures_here(config.hosts):
        processors.check_all(facts, resources.daemon, config.run.clock, say)


class CheckedImages:
    """Images of a campaign that the processor of its daemon can run; raises :class:`MachineError` for all others."""

    def __init__(
        self,
        source: Images | LockedImages,
        resources: CampaignResources,
        config: CampaignConfig,
        say: Callable[[str], None],
    ) -> None:
        self._source = source
        self._check = partial(check_processors, resources=resources, config=config, say=say)
        self._passed = set[str]()

    def ensure(self, implementation: Implementation) -> ImageFacts:
        """The image of an implementation."""
        return self._checked(implementation.name, self._source.ensure(implementation))

    def ensure_own(self, name: str) -> ImageFacts:
        """An image of ``OWN_IMAGES``."""
        return self._checked(name, self._source.ensure_own(name))

    def _checked(self, name: str, image: ImageFacts) -> ImageFacts:
        if image.id not in self._passed:
            self._check({name: image})
            self._passed.add(image.id)
        return image


def distribute_images(
    facts: Mapping[str, ImageFacts], resources: CampaignResources, config: CampaignConfig, say: Callable[[str], None]
) -> None:
    """Copy the images of the campaign to every host that lacks them.

    Raises :class:`MachineError` if that fails, or the processor of a host can run one of them in no way.
    """
    wanted = {name: image for name, image in facts.items() if "link-tools" not in facts or name != "simulator"}
    distribute(wanted, resources.daemon, tuple(resources.hosts.values()), say)
    for host in resources.hosts.values():
        processors.check_all(wanted, host, config.run.clock, say)


@contextmanager
def make_worker_pool(
    runs: Sequence[Run],
    resources: CampaignResources,
    config: CampaignConfig,
    facts: Mapping[str, ImageFacts],
    say: Callable[[str], None],
) -> Iterator[WorkerPool]:
    """The workers that make ``runs``; raises :class:`UserError` if there are none."""
    if config.cluster is not None:
        with _cluster_workers(runs, resources, config.cluster, config, facts, say) as workers:
            yield workers
        return
    links = _real_links(runs, resources, config, facts)
    for link in links.values():
        link.examine(config.bare_link, say)
    low_priority = analysis_disturbs(config)
    with CpuMonitor().watching() as monitor, analysis_pool(analyse_once, low_priority=low_priority) as analyse_run:
        known = None if resources.daemon.host else monitor  # the CPUs of another machine are not those that it watches
        first = _local_worker(runs, resources, config, facts, analyse_run, say, monitor=known, links=links)
        others = [
            _local_worker(
                runs,
                replace(resources, daemon=resources.hosts[name]),
                config,
                facts,
                analyse_run,
                say,
                testbeds=host.testbeds,
            )
            for name, host in config.hosts.items()
            if host.testbeds and not links
        ]
        yield WorkerPool(resources.stop, first, *others)


def analysis_disturbs(config: CampaignConfig) -> bool:
    """Whether analysis may take CPU time from a run under way whose result depends on it."""
    return config.run.clock is Clock.REAL and (config.testbeds != 1 or _testbeds_elsewhere(config))


def _testbeds_elsewhere(config: CampaignConfig) -> bool:
    return any(host.testbeds for host in config.hosts.values())


def _local_worker(
    runs: Sequence[Run],
    resources: CampaignResources,
    config: CampaignConfig,
    facts: Mapping[str, ImageFacts],
    analyse_run: Analyse,
    say: Callable[[str], None],
    *,
    monitor: CpuMonitor | None = None,
    links: Mapping[tuple[str, str], RealBackend] = MappingProxyType({}),
    testbeds: int | None = None,
) -> LocalWorker:
    """A worker at the daemon of ``resources``; without a ``monitor`` the load of its CPUs is unknown."""
    cpus = int(resources.daemon.info["NCPU"])
    testbeds = testbeds or config.testbeds or fitting_testbeds(runs, config.run.clock, cpus)
    images = {name: image.id for name, image in facts.items()}
    emulated = emulated_backend(resources.daemon, images, config.run) if "simulator" in images else None
    worker_config = WorkerConfig(
        daemon=resources.daemon,
        backend=emulated or next(iter(links.values())),
        links=links,
        link_daemons=tuple(resources.hosts.values()) if links else (),
        images=images,
        stop=resources.stop,
        monitor=monitor or CpuMonitor(),
        run=config.run,
        watcher=config.watcher,
    )
    measured = monitor is not None and config.testbeds is None
    return LocalWorker(worker_config, analyse_run, say, testbeds=testbeds, measured=measured)


@contextmanager
def _cluster_workers(
    runs: Sequence[Run],
    resources: CampaignResources,
    scheduler: Scheduler,
    config: CampaignConfig,
    facts: Mapping[str, ImageFacts],
    say: Callable[[str], None],
) -> Iterator[WorkerPool]:
    from quicsat.execution.worker_proxy import discover_workers  # importing Dask takes a second

    remote_config = RemoteConfig(
        campaign=resources.daemon.campaign,
        images=facts,
        run=config.run,
        real_time_testbeds=fitting_testbeds(runs, Clock.REAL, 0),
    )
    with discover_workers(scheduler, remote_config, resources.daemon, resources.stop, say) as workers:
        yield workers


def _real_links(
    runs: Sequence[Run], resources: CampaignResources, config: CampaignConfig, facts: Mapping[str, ImageFacts]
) -> dict[tuple[str, str], RealBackend]:
    """A back end for each pair of hosts that ``runs`` need."""
    locks = HostLocks()
    links = dict.fromkeys(run.test_case.link for run in runs if isinstance(run.test_case.link, RealLink))
    return {
        (link.client_host, link.server_host): RealBackend(
            link, config.hosts, resources.hosts, facts["link-tools"].id, locks
        )
        for link in links
    }
