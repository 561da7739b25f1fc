"""Emulated links: a testbed of three network namespaces, joined by veth pairs, with ns-3 in the middle.

There is no bridge, no default route and no address pool: endpoints reach only the simulator, and several testbeds can
use the same addresses at the same time. Everything is created through the Docker API, so the daemon can be remote.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

from interop.docker.archive import ArchiveLimits
from interop.docker.client import Daemon
from interop.docker.containers import (
    CONTRACT_CAPABILITIES,
    WEIGHT,
    Capabilities,
    Container,
    ContainerEvent,
    ContainerSpec,
    create_container,
)
from interop.links.addresses import ADDRESSES, CLIENT, GATEWAYS, SERVER, hosts
from interop.links.artefact_limits import trace_limits
from interop.links.container_session import ContainerSession, container_exits, container_session
from interop.links.cross_traffic import CrossFlow, cross_flow, event_name
from interop.links.memlock import REFUSED, memlock, works
from interop.links.session import SessionRecord, SessionRequest
from interop.links.simulator_arguments import SERVER_SILENT, simulator_environment
from interop.links.simulator_report import unpack_report
from interop.model.emulated_link import CrossTraffic, Interval, SimulatorReport
from interop.model.errors import HarnessFault
from interop.model.evidence import Exit
from interop.model.implementation import Role
from interop.model.outcomes import ErrorCode
from interop.model.run import Run
from interop.model.units import MIB

NO_FORWARDING = {
    "net.ipv4.ip_forward": "0",
    "net.ipv6.conf.all.disable_ipv6": "0",
    "net.ipv6.conf.default.disable_ipv6": "0",
}


# ---- the link of one run --------------------------------------------------------------------


class SimulatedLink:
    """The simulator of one run, and the flow that competes with the transfer, if there is one."""

    def __init__(
        self, container: Container, holders: Collection[Container], limits: ArchiveLimits, flow: CrossFlow | None = None
    ) -> None:
        """``holders``: of the testbed's namespaces; ``limits``: of the traces."""
        self._container = container
        self._holders = holders
        self._limits = limits
        self._flow = flow
        self._carries = False
        self._flow_fault: HarnessFault | None = None
        self._events: SimpleQueue[ContainerEvent] = SimpleQueue()

    def start(self, events: SimpleQueue[ContainerEvent]) -> None:
        """Start the simulator: it waits for the server, then carries packets."""
        self._events = events
        if self._flow:
            self._flow.listen()
        self._container.start()
        self._container.watch(events, lines=True)

    def ready(self, event: ContainerEvent) -> bool:
        """Whether the simulator reports that it carries packets, and the competing flow has begun."""
        if not self._carries and event.container is self._container and event_name(event.line) == "running":
            self._carries = True
            if self._flow:
                self._flow.connect(self._events)
        return self._carries and (self._flow is None or self._flow.connected(event))

    def running(self) -> bool:
        """Whether the simulator runs; False if the server never answered; every other end is a harness error."""
        if self._container.running():
            if self._flow:
                self._flow.check()
            return True
        status = self._container.exit().status
        if status != SERVER_SILENT:
            raise HarnessFault(ErrorCode.SIMULATOR_FAILED, f"the simulator ended ({status}): {self._last_words()}")
        return False

    @property
    def pid(self) -> int:
        """Process id of the simulator on the daemon's host."""
        return self._container.pid

    def cpu_seconds(self) -> float:
        """CPU time that the simulator has used so far."""
        return self._container.cpu_seconds()

    def outage(self) -> HarnessFault | None:
        """None: :meth:`running` raises every fault of an emulated link."""
        return None

    def _last_words(self) -> str:
        return self._container.output().decode(errors="replace").strip()[-300:] or "without a word"

    def stop(self) -> None:
        """Stop the simulator; its traces are complete then."""
        if self._flow:
            self._flow_fault = self._flow.fault()  # since it was last checked
        self._container.stop(grace=5 if self._carries else 0)
        if self._flow:
            self._flow.stop()

    def collect(self, directory: Path, client: Interval | None = None, /) -> SimulatorReport | None:
        """Write traces and report below ``directory/sim``; None if it carried nothing because no server answered.

        Raises :class:`HarnessFault` if a report is missing, if a competing flow ended before
        the transfer, or if the testbed has ended: a daemon that restarts during the run ends all its containers.
        """
        report = self._report(directory, client) if self._carries else None
        if any(
            not holder.running() for holder in self._holders
        ):  # checked last: a daemon stops its containers one after another
            reason = "the testbed ended during the run, as when the Docker daemon restarts"
            raise HarnessFault(ErrorCode.DAEMON_FAULT, reason)
        if self._flow_fault is not None:
            raise self._flow_fault
        return report

    def _report(self, directory: Path, client: Interval | None) -> SimulatorReport:
        with self._container.fetch("/logs") as archive:
            return unpack_report(archive, directory, self._limits, client, self._last_words)


# ---- the testbed ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Abilities:
    """Optional abilities of a daemon."""

    realtime_priority: bool
    """The simulator may run with real-time priority."""
    memlock: int | None
    """RLIMIT_MEMLOCK that endpoints get; None for the daemon's default."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for readers of the results."""
        notes = []
        if not self.realtime_priority:
            notes.append("the simulator runs without real-time priority; runs in which it falls behind are repeated")
        if self.memlock is None:
            notes.append(REFUSED.format("the daemon"))
        return tuple(notes)


RESET_PATIENCE = 10.0
"""Seconds within which a testbed resets its networks."""
DEADLINE_SCHEDULING = (
    *("chrt", "--deadline", "--sched-runtime", "1000000", "--sched-deadline", "10000000"),
    *("--sched-period", "10000000", "0", "true"),
)
"""A tenth of one CPU with real-time priority (sched(7)): less than the simulator requests."""


def probe(daemon: Daemon, image: str) -> Abilities:
    """Test once which optional abilities the daemon grants."""

    priority = ContainerSpec(_name(daemon, "probe"), image, DEADLINE_SCHEDULING, capabilities=("SYS_NICE",))
    return Abilities(realtime_priority=works(daemon, priority), memlock=memlock(daemon, _name(daemon, "probe"), image))


class Ns3Testbed:
    """Three containers that hold network namespaces, and the interfaces between them; serves one run after another."""

    def __init__(self, daemon: Daemon, image: str, abilities: Abilities, holders: dict[str, Container]) -> None:
        self._daemon = daemon
        self._image = image
        self._abilities = abilities
        self._holders = holders
        self._events: SimpleQueue[ContainerEvent] = SimpleQueue()
        for holder in holders.values():
            holder.watch(self._events, lines=True)

    def input_origin(self, _run: Run) -> None:
        """Inputs are random and made now."""

    def session(self, request: SessionRequest, record: SessionRecord) -> AbstractContextManager[ContainerSession]:
        """See :meth:`interop.links.backend.Testbed.session`."""
        return container_session(self, request, record)

    def exits(self, request: SessionRequest, patience: float) -> Mapping[Role, Exit | str]:
        """See :meth:`interop.links.backend.Testbed.exits`."""
        return container_exits(self, request, patience)

    def memlock(self, _role: Role) -> int | None:
        """RLIMIT_MEMLOCK that endpoints get here, bytes."""
        return self._abilities.memlock

    def daemon(self, _role: Role) -> Daemon:
        """The daemon of the testbed."""
        return self._daemon

    def network(self, role: Role) -> str:
        """Network mode of an endpoint's container: its namespace."""
        return f"container:{self._holders[role].id}"

    def capabilities(self, _role: Role) -> Capabilities:
        """Capabilities of the endpoint contract: the namespace is reset after each run."""
        return CONTRACT_CAPABILITIES

    def reset(self) -> None:
        """Reset addresses, routes and rules of all namespaces, and wait until they are reset."""
        for holder in self._holders.values():
            holder.signal("SIGHUP")
        missing = {holder.id for holder in self._holders.values()}
        while missing:
            try:
                event = self._events.get(timeout=RESET_PATIENCE)
            except Empty:
                raise HarnessFault(ErrorCode.DAEMON_FAULT, "the testbed's networks could not be reset") from None
            if event.line is None:
                raise HarnessFault(ErrorCode.DAEMON_FAULT, f"{event.container.spec.name} of the testbed has ended")
            if event_name(event.line) == "reset":
                missing.discard(event.container.id)

    @contextmanager
    def link(self, run: Run, *, wait_for_server: bool = True) -> Iterator[SimulatedLink]:
        """The simulator for one run, created and not yet started."""
        spec = ContainerSpec(
            name=_name(self._daemon, "sim"),
            image=self._image,
            environment=simulator_environment(run, wait_for_server=wait_for_server),
            network=f"container:{self._holders['simulator'].id}",
            capabilities=("NET_ADMIN", "NET_RAW", *(("SYS_NICE",) if self._abilities.realtime_priority else ())),
            dropped_capabilities=("ALL",),
            memory=2048 * MIB,
            weight=WEIGHT,
        )
        with ExitStack() as stack:
            container = stack.enter_context(create_container(self._daemon, spec))
            traffic = run.test_case.emulated.cross_traffic
            flow = stack.enter_context(self._cross_flow(traffic)) if traffic else None
            yield SimulatedLink(container, self._holders.values(), trace_limits(run.test_case), flow)

    def _cross_flow(self, traffic: CrossTraffic) -> AbstractContextManager[CrossFlow]:
        networks = {role: self.network(role) for role in Role}
        addresses = {
            Role.CLIENT: (CLIENT[0], GATEWAYS["client"][0]),
            Role.SERVER: (SERVER[0], GATEWAYS["server"][0]),
        }
        return cross_flow(self._daemon, self._image, _name(self._daemon, "cross"), networks, addresses, traffic)


class Ns3Backend:
    """Creates testbeds at one daemon from one simulator image."""

    def __init__(self, daemon: Daemon, image: str, abilities: Abilities | None = None) -> None:
        """``abilities``: None to test them."""
        self._daemon = daemon
        self._image = image
        self._abilities = abilities
        self._probing = threading.Lock()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on this daemon for readers of the results."""
        return self._abilities.notes if self._abilities else ()

    @contextmanager
    def open(self) -> Iterator[Ns3Testbed]:
        """A testbed, removed when the block is left."""
        with self._probing:
            if self._abilities is None:
                self._abilities = probe(self._daemon, self._image)
        with ExitStack() as stack:
            holders = {
                part: stack.enter_context(create_container(self._daemon, _holder(self._daemon, self._image, part)))
                for part in ("client", "simulator", "server")
            }
            with ThreadPoolExecutor() as pool:
                list(pool.map(Container.start, holders.values()))
            _plumb(self._daemon, self._image, [holder.pid for holder in holders.values()])
            yield Ns3Testbed(self._daemon, self._image, self._abilities, holders)


def _holder(daemon: Daemon, image: str, part: str) -> ContainerSpec:
    return ContainerSpec(
        name=_name(daemon, f"{part}-holder"),
        image=image,
        command=("holder",),
        environment={"ADDRESSES": ADDRESSES[part]},
        network="none",
        hostname="sim" if part == "simulator" else part,
        hosts=hosts(GATEWAYS[part]),
        capabilities=("NET_ADMIN",),
        dropped_capabilities=("ALL",),
        sysctls=NO_FORWARDING,
        pids=32,
    )


def _plumb(daemon: Daemon, image: str, pids: list[int]) -> None:
    """Join the namespaces of client, simulator and server by veth pairs that never appear on the host."""
    spec = ContainerSpec(
        name=_name(daemon, "plumb"),
        image=image,
        command=("plumb", *map(str, pids)),
        network="host",
        host_pids=True,
        capabilities=("NET_ADMIN",),
        dropped_capabilities=("ALL",),
    )
    with create_container(daemon, spec) as container:
        container.start()
        if not container.wait(20) or container.exit().status != 0:
            words = container.output().decode(errors="replace").strip()[-300:]
            raise HarnessFault(ErrorCode.DAEMON_FAULT, f"the testbed's networks could not be created: {words}")


_numbers = itertools.count(1)


def _name(daemon: Daemon, what: str) -> str:
    """A container name that no other campaign uses."""
    return f"quicsat-{daemon.campaign}-{next(_numbers)}-{what}"
