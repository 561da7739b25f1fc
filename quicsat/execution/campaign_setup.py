"""Sets up a campaign: locks its daemons, distributes images, and makes a pool of local or cluster workers."""

import importlib.util
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field

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
from quicsat.execution.campaign_config import Conditions
from quicsat.execution.cpu_monitor import CpuMonitor, lasting_share
from quicsat.execution.local_worker import LocalWorker
from quicsat.execution.lock import Patience, exclusive
from quicsat.execution.observer import Observer
from quicsat.execution.reaper import start_reaper
from quicsat.execution.run_config import RunConfig
from quicsat.execution.worker_messages import RemoteConfig
from quicsat.execution.worker_pool import WorkerPool
from quicsat.links.real import HostLocks, RealBackend
from quicsat.model.clock import Clock
from quicsat.model.errors import MachineError
from quicsat.model.real_link import Host, RealLink
from quicsat.model.results import ImageFacts
from quicsat.model.run import Run
from quicsat.model.text import counted
from quicsat.model.units import percent


@dataclass(frozen=True)
class Engines:
    """The Docker daemons that a campaign has to itself, what ends it early, and who follows it."""

    conditions: Conditions
    observer: Observer
    daemon: Daemon
    hosts: Mapping[str, Daemon] = field(default_factory=dict)
    """Daemons of the hosts of real links, by name."""
    stop: threading.Event = field(default_factory=threading.Event)
    caught: list[int] = field(default_factory=list)
    """Numbers of the signals received."""

    @property
    def campaign(self) -> str:
        """The identifier of the campaign on its daemons; a new one is stored under it."""
        return self.daemon.campaign

    @property
    def here(self) -> tuple[Daemon, ...]:
        """The campaign's own daemon, if it makes runs itself."""
        makes_runs = not self.conditions.cluster and measures_here(self.conditions.hosts)
        return (self.daemon,) if makes_runs else ()

    def check_rights(self, clock: Clock) -> None:
        """Raise :class:`MachineError` if an engine has no root access, which real time needs."""
        if clock is Clock.REAL:
            for daemon in (*self.here, *self.hosts.values()):
                daemon.check_rights()

    def warn_of_other_programs(self, clock: Clock) -> None:
        """Say so if programs use the CPUs on which runs in real time are about to be made."""
        if clock is Clock.REAL and self.here and not self.daemon.host and (share := lasting_share()) is not None:
            self.observer.say(
                f"Other programs use {percent(share)} of the CPU time of this machine. They distort results in real "
                "time, even at the lowest priority. Stop them; `top` shows them."
            )

    def check_processors(self, images: Mapping[str, ImageFacts], clock: Clock) -> None:
        """Raise :class:`MachineError` if the processor of the own daemon can run one of the images in no way."""
        for daemon in self.here:
            processors.check_all(images, daemon, clock, self.observer.say)

    def distribute(self, images: Mapping[str, ImageFacts], clock: Clock) -> None:
        """Copy the images to every host that lacks them.

        Raises :class:`MachineError` if that fails, or the processor of a host can run one of them in no way.
        """
        wanted = {name: image for name, image in images.items() if "link-tools" not in images or name != "simulator"}
        distribute(wanted, self.daemon, tuple(self.hosts.values()), self.observer.say)
        for host in self.hosts.values():
            processors.check_all(wanted, host, clock, self.observer.say)

    @contextmanager
    def workers(self, runs: Sequence[Run], config: RunConfig) -> Iterator[WorkerPool]:
        """The workers that make ``runs``, closed in the end; raises :class:`UserError` if there are none."""
        if self.conditions.cluster is not None:
            from quicsat.execution.worker_proxy import discover_workers  # importing Dask takes a second

            remote = RemoteConfig(self.campaign, config, fitting_testbeds(runs, Clock.REAL, 0))
            scheduler = self.conditions.cluster
            with discover_workers(scheduler, remote, self.daemon, self.stop, self.observer.say) as pool:
                yield pool
            return
        links = self._real_links(runs, config)
        for link in links.values():
            link.examine(self.conditions.bare_link, self.observer.say)
        low_priority = analysis_disturbs(self.conditions, config.clock)
        with CpuMonitor().watching() as monitor, analysis_pool(analyse_once, low_priority=low_priority) as analyse:
            emulated = [emulated_backend(self.daemon, config)] if "simulator" in config.images else []
            on_this_machine = not self.daemon.host  # the CPUs of another one are not those that are watched
            worker = LocalWorker(
                self.daemon,
                [*emulated, *links.values()][0],
                config,
                analyse,
                self.stop,
                monitor if on_this_machine else CpuMonitor(),
                self.observer,
                links=links,
                link_daemons=tuple(self.hosts.values()),
                testbeds=self._testbeds(self.daemon, runs, config.clock),
                measured=on_this_machine and self.conditions.testbeds is None,
            )
            with closing(WorkerPool(self.stop, worker)) as pool:
                yield pool

    def _testbeds(self, daemon: Daemon, runs: Sequence[Run], clock: Clock) -> int:
        return self.conditions.testbeds or fitting_testbeds(runs, clock, int(daemon.info["NCPU"]))

    def _real_links(self, runs: Sequence[Run], config: RunConfig) -> dict[tuple[str, str], RealBackend]:
        """A back end for each pair of hosts that ``runs`` need."""
        locks, entries = HostLocks(), self.conditions.hosts
        links = dict.fromkeys(run.test_case.link for run in runs if isinstance(run.test_case.link, RealLink))
        return {
            (link.client_host, link.server_host): RealBackend(
                link, entries, self.hosts, config.images["link-tools"].id, locks
            )
            for link in links
        }


@contextmanager
def open_engines(conditions: Conditions, observer: Observer) -> Iterator[Engines]:
    """Daemons that are locked, without leftovers and watched by a reaper; cluster workers do so themselves."""
    campaign = secrets.token_hex(4)
    with ExitStack() as stack:
        daemon = stack.enter_context(connected(conditions.daemon, campaign))
        if conditions.cluster:
            check_dask()
            yield Engines(conditions, observer, daemon)
            return
        entries = conditions.hosts
        hosts = {name: stack.enter_context(connected(host, campaign)) for name, host in sorted(entries.items())}
        _check_identities(hosts, entries)
        patience = Patience(conditions.wait, observer.say)
        for identity in sorted({each.id for each in (daemon, *hosts.values())}):
            stack.enter_context(exclusive(identity, f"campaign {campaign}", patience))
        stack.enter_context(start_reaper((conditions.daemon, *entries.values()), campaign))
        for each in (daemon, *hosts.values()):
            if removed := remove_containers(each):
                at = f" at {each.host}" if each.host else ""
                observer.say(f"removed {counted(removed, 'container')}{at} that an earlier campaign had left")
        yield Engines(conditions, observer, daemon, hosts)


def check_dask() -> None:
    """Raise :class:`MachineError` if Dask is not installed."""
    if importlib.util.find_spec("distributed") is None:
        raise MachineError(
            "Dask is not installed here: on every machine of a cluster, run `scripts/setup --cluster` in a checkout, "
            "or install `quicsat[cluster]`; see docs/guide/cluster.md."
        )


def analysis_disturbs(conditions: Conditions, clock: Clock) -> bool:
    """Whether analysis may take CPU time from a run under way whose result depends on it."""
    return clock is Clock.REAL and conditions.testbeds != 1


def _check_identities(hosts: Mapping[str, Daemon], entries: Mapping[str, Host]) -> None:
    """Raise :class:`MachineError` if two hosts have the same daemon without saying so in their ``entries``.

    Entries with the same ``daemon`` are addresses of one machine.
    """
    owners: dict[str, str] = {}
    for name, daemon in hosts.items():
        owner = owners.setdefault(daemon.id, name)
        if entries[owner].daemon != entries[name].daemon:
            message = (
                f"The hosts {owner} and {name} are one Docker daemon, or clones of one ({daemon.id}). If they are two "
                "machines, remove /etc/docker/key.json, or engine-id in the data root, of one, and start it again."
            )
            raise MachineError(message)
