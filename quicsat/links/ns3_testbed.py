"""Emulated links: a testbed of three network namespaces, joined by veth pairs, with ns-3 in the middle.

A link with proxies or a VPN has two more, of gateways between the endpoints and ns-3.

There is no bridge, no default route and no address pool: endpoints reach only the simulator, and several testbeds can
use the same addresses at the same time. Everything is created through the Docker API, so the daemon can be remote.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from queue import Empty, SimpleQueue
from signal import Signals

from quicsat.docker.archive import pack
from quicsat.docker.client import Daemon
from quicsat.docker.containers import (
    CONTRACT_CAPABILITIES,
    WEIGHT,
    Capabilities,
    Container,
    ContainerEvent,
    ContainerSpec,
    create_container,
)
from quicsat.links import gateway_description, tcp_samples
from quicsat.links.addresses import ADDRESSES, CLIENT, GATEWAYS, SERVER, hosts, interfaces
from quicsat.links.artefact_limits import trace_limits
from quicsat.links.client_side_traces import keep_client_trace
from quicsat.links.container_session import ContainerSession, container_exits, container_session
from quicsat.links.cross_traffic import CrossFlow, cross_flow
from quicsat.links.gateway_description import Layout, layout_of
from quicsat.links.link_containers import container_name, event_name, last_words
from quicsat.links.memlock import REFUSED, memlock, works
from quicsat.links.session import EarlyEnd, SessionRecord, SessionRequest
from quicsat.links.simulator_arguments import SERVER_SILENT, STOPPED, simulator_environment, simulator_files
from quicsat.links.simulator_report import unpack_report
from quicsat.links.tunnel_traces import keep_endpoint_traces
from quicsat.model.emulated_link import CrossTraffic, Interval, SimulatorReport
from quicsat.model.errors import HarnessFault
from quicsat.model.flow import part_name
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode
from quicsat.model.run import Run
from quicsat.model.units import MIB

NO_FORWARDING = {
    "net.ipv4.ip_forward": "0",
    "net.ipv6.conf.all.disable_ipv6": "0",
    "net.ipv6.conf.default.disable_ipv6": "0",
}
TESTBED_ENDED = "the testbed ended during the run, as when the Docker daemon restarts"


# ---- the link of one run --------------------------------------------------------------------


class SimulatedLink:
    """The simulator of one run, its gateways, and the flow that competes with the transfer, if there are any."""

    def __init__(
        self,
        container: Container,
        holders: Collection[Container],
        run: Run,
        flow: CrossFlow | None = None,
        gateways: Mapping[str, Container] | None = None,
        sampler: Container | None = None,
    ) -> None:
        """``holders``: of the testbed's namespaces; ``sampler``: of tcp_info."""
        self._container = container
        self._holders = holders
        self._run = run
        self._limits = trace_limits(run.test_case)
        self._flow = flow
        self._gateways = gateways or {}
        self._sampler = sampler
        self._unready = {gateway.id for gateway in self._gateways.values()}
        self._carries = False
        self._flow_fault: HarnessFault | None = None
        self._events: SimpleQueue[ContainerEvent] = SimpleQueue()

    def start(self, events: SimpleQueue[ContainerEvent]) -> None:
        """Start the simulator: it waits for the server, then carries packets."""
        self._events = events
        for gateway in self._gateways.values():
            gateway.start()
            gateway.watch(events, lines=True)
        if self._sampler:
            self._sampler.start()
        if self._flow:
            self._flow.listen()
        self._container.start()
        self._container.watch(events, lines=True)

    def ready(self, event: ContainerEvent) -> bool:
        """Whether the simulator carries packets, all gateways are set up, and the competing flow has begun."""
        if event_name(event.line) == "ready":
            self._unready.discard(event.container.id)
        if not self._carries and event.container is self._container and event_name(event.line) == "running":
            self._carries = True
            if self._flow:
                self._flow.connect(self._events)
        return self._carries and not self._unready and (self._flow is None or self._flow.connected(event))

    def running(self) -> bool:
        """Whether the simulator runs; False if the server never answered; every other end is a harness error."""
        if self._container.running():
            if self._flow:
                self._flow.check()
            self._check_gateways()
            return True
        status = self._container.exit().status
        if status == STOPPED:  # not by us: a daemon stops its containers one after another
            raise HarnessFault(ErrorCode.DAEMON_FAULT, TESTBED_ENDED)
        if status != SERVER_SILENT:
            reason = f"the simulator ended ({status}): {last_words(self._container)}"
            raise HarnessFault(ErrorCode.SIMULATOR_FAILED, reason)
        self._check_gateways()
        return False

    def _check_gateways(self) -> None:
        for gateway in self._gateways.values():
            if not gateway.running():
                reason = f"a gateway ended ({gateway.exit().status}): {last_words(gateway)}"
                raise HarnessFault(ErrorCode.SIMULATOR_FAILED, reason)

    @property
    def pid(self) -> int:
        """Process id of the simulator on the daemon's host."""
        return self._container.pid

    def cpu_seconds(self) -> float:
        """CPU time that the simulator and the gateways have used so far."""
        return sum(container.cpu_seconds() for container in (self._container, *self._gateways.values()))

    def outage(self) -> HarnessFault | None:
        """None: :meth:`running` raises every fault of an emulated link."""
        return None

    def stop(self) -> None:
        """Stop the simulator; its traces are complete then."""
        if self._flow:
            self._flow_fault = self._flow.fault()  # since it was last checked
        self._container.stop(grace=5 if self._carries else 0)
        for gateway in self._gateways.values():
            gateway.stop(grace=gateway_description.STOP_GRACE)
        if self._sampler:
            self._sampler.stop(grace=tcp_samples.STOP_GRACE)
        if self._flow:
            self._flow.stop()

    def collect(self, directory: Path, client: Interval | None = None, /) -> SimulatorReport | None:
        """Write traces and report below ``directory/sim``; None if it carried nothing because no server answered.

        Raises :class:`HarnessFault` if a report is missing, if a competing flow ended before
        the transfer, or if the testbed has ended: a daemon that restarts during the run ends all its containers.
        """
        report = self._report(directory, client) if self._carries else None
        if not all(holder.running() for holder in self._holders):  # checked last: a daemon stops them one by one
            raise HarnessFault(ErrorCode.DAEMON_FAULT, TESTBED_ENDED)
        if self._flow_fault is not None:
            raise self._flow_fault
        return report

    def _report(self, directory: Path, client: Interval | None) -> SimulatorReport:
        with self._container.fetch("/logs") as archive:
            report = unpack_report(archive, directory, self._limits, client, lambda: last_words(self._container))
        if self._sampler:
            with self._sampler.fetch(tcp_samples.LOGS) as archive:
                tcp_samples.keep_samples(directory, archive, self._limits)
        if self._run.test_case.tunnelled:
            with ExitStack() as stack:
                logs = {
                    name: stack.enter_context(gateway.fetch(gateway_description.LOGS))
                    for name, gateway in self._gateways.items()
                }
                keep_endpoint_traces(directory, logs, self._limits)
        keep_client_trace(directory, self._run)
        return report


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

    priority = ContainerSpec(container_name(daemon, "probe"), image, DEADLINE_SCHEDULING, capabilities=("SYS_NICE",))
    return Abilities(
        realtime_priority=works(daemon, priority), memlock=memlock(daemon, container_name(daemon, "probe"), image)
    )


@dataclass(frozen=True)
class TestbedImages:
    """Image ids."""

    simulator: str
    gateways: str | None

    @property
    def for_gateways(self) -> str:
        """Raises :class:`HarnessFault` if there is none."""
        if self.gateways is None:
            raise HarnessFault(ErrorCode.SIMULATOR_FAILED, "the image link-gateways is missing")
        return self.gateways


class Ns3Testbed:
    """Containers that hold network namespaces, and the interfaces between them; serves one run after another.

    Runs whose link needs other networks are served by another one of these, which is kept for the next run.
    """

    def __init__(
        self,
        daemon: Daemon,
        images: TestbedImages,
        abilities: Abilities,
        layout: Layout,
        holders: dict[str, Container],
        lay_out: Callable[[Layout], AbstractContextManager[Ns3Testbed]],
    ) -> None:
        """``lay_out``: makes a testbed with other networks."""
        self.layout = layout
        self._daemon = daemon
        self._images = images
        self._abilities = abilities
        self._holders = holders
        self._lay_out = lay_out
        self._other: Ns3Testbed | None = None
        self._stack = ExitStack()
        """Holds the other testbed."""
        self._events: SimpleQueue[ContainerEvent] = SimpleQueue()
        for holder in holders.values():
            holder.watch(self._events, lines=True)

    def input_origin(self, _run: Run) -> None:
        """Inputs are random and made now."""

    def session(self, request: SessionRequest, record: SessionRecord) -> AbstractContextManager[ContainerSession]:
        """See :meth:`quicsat.links.backend.Testbed.session`."""
        return container_session(self.laid_out(request.run), request, record)

    def exits(self, request: SessionRequest, patience: float) -> Mapping[Role, EarlyEnd]:
        """See :meth:`quicsat.links.backend.Testbed.exits`."""
        return container_exits(self.laid_out(request.run), request, patience)

    def laid_out(self, run: Run) -> Ns3Testbed:
        """The testbed with the networks that ``run`` needs."""
        layout = layout_of(run.test_case.emulated, 1 + len(run.others))
        if layout == self.layout:
            return self
        if self._other is None or self._other.layout != layout:
            self.close()
            self._other = self._stack.enter_context(self._lay_out(layout))
        return self._other

    def close(self) -> None:
        """Remove the other testbed."""
        self._other = None
        self._stack.close()

    def memlock(self, _role: Role) -> int | None:
        """RLIMIT_MEMLOCK that endpoints get here, bytes."""
        return self._abilities.memlock

    def daemon(self, _role: Role) -> Daemon:
        """The daemon of the testbed."""
        return self._daemon

    def network(self, role: Role, flow: int = 1) -> str:
        """Network mode of an endpoint's container: its namespace."""
        return f"container:{self._holders[part_name(role, flow)].id}"

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
        spec = replace(
            self._spec("sim", "simulator"),
            environment=simulator_environment(run, wait_for_server=wait_for_server),
            capabilities=("NET_ADMIN", "NET_RAW", *(("SYS_NICE",) if self._abilities.realtime_priority else ())),
            memory=2048 * MIB,
        )
        with ExitStack() as stack:
            container = stack.enter_context(create_container(self._daemon, spec))
            if files := simulator_files(run.test_case.emulated):
                container.put(pack(files))
            traffic = run.test_case.emulated.cross_traffic
            flow = stack.enter_context(self._cross_flow(traffic)) if traffic else None
            keys = gateway_description.gateway_files(self.layout.vpn)
            between = {name: stack.enter_context(self._gateway(name, keys.get(name))) for name in self.layout.gateways}
            part = tcp_samples.sampled_part(run, self.layout)
            sampler = stack.enter_context(self._sampler(part)) if part else None
            yield SimulatedLink(container, self._holders.values(), run, flow, between, sampler)

    def _spec(self, name: str, part: str) -> ContainerSpec:
        """A container in the namespace of a part, without any rights."""
        return ContainerSpec(
            name=container_name(self._daemon, name),
            image=self._images.simulator,
            network=f"container:{self._holders[part].id}",
            dropped_capabilities=("ALL",),
            weight=WEIGHT,
        )

    def _sampler(self, part: str) -> AbstractContextManager[Container]:
        spec = replace(self._spec(tcp_samples.SAMPLER, part), command=tcp_samples.COMMAND)
        return create_container(self._daemon, spec)

    @contextmanager
    def _gateway(self, name: str, files: Mapping[str, bytes] | None) -> Iterator[Container]:
        spec = replace(
            self._spec(name, name),
            image=self._images.for_gateways,
            command=gateway_description.gateway_command(name, self.layout),
            environment=self.layout.gateway_environment,
            capabilities=gateway_description.CAPABILITIES,
            devices=self.layout.gateway_devices,
        )
        with create_container(self._daemon, spec) as container:
            if files:
                container.put(pack(files))
            yield container

    def _cross_flow(self, traffic: CrossTraffic) -> AbstractContextManager[CrossFlow]:
        networks = {role: self.network(role) for role in Role}
        addresses = {role: (own[0], GATEWAYS[role][0]) for role, own in zip(Role, (CLIENT, SERVER), strict=True)}
        name = container_name(self._daemon, "cross")
        return cross_flow(self._daemon, self._images.simulator, name, networks, addresses, traffic)


class Ns3Backend:
    """Creates testbeds at one daemon from one simulator image."""

    def __init__(
        self, daemon: Daemon, image: str, abilities: Abilities | None = None, *, gateways: str | None = None
    ) -> None:
        """``abilities``: None to test them; ``gateways``: image id, None if no link has gateways."""
        self._daemon = daemon
        self._images = TestbedImages(image, gateways)
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
                self._abilities = probe(self._daemon, self._images.simulator)
        with self._lay_out(self._abilities, Layout()) as testbed:
            yield testbed

    @contextmanager
    def _lay_out(self, abilities: Abilities, layout: Layout) -> Iterator[Ns3Testbed]:
        between = layout.gateways
        parts = ("client", *between[:1], "simulator", *between[1:], "server")
        specs = {part: self._holder(part, layout) for part in parts}
        for flow, role in product(range(2, 1 + layout.flows), (Role.CLIENT, Role.SERVER)):
            specs[part_name(role, flow)] = self._holder(role, layout, flow)
        with ExitStack() as stack:
            holders = {name: stack.enter_context(create_container(self._daemon, spec)) for name, spec in specs.items()}
            with ThreadPoolExecutor() as pool:
                list(pool.map(Container.start, holders.values()))
            image = self._images.for_gateways if between else self._images.simulator
            pids = [holder.pid for holder in holders.values()]
            _plumb(self._daemon, image, pids, client_side=layout.client_side)
            _await_handlers(holders.values())
            lay_out = partial(self._lay_out, abilities)
            testbed = Ns3Testbed(self._daemon, self._images, abilities, layout, holders, lay_out)
            with closing(testbed):
                yield testbed

    def _holder(self, part: str, layout: Layout, flow: int = 1) -> ContainerSpec:
        router = part in layout.gateways
        endpoint = part in tuple(Role)
        own = layout.endpoint_sysctls if endpoint else layout.simulator_sysctls
        addresses = interfaces(part, flow) if endpoint else ADDRESSES[part]
        if part == "simulator":
            addresses = layout.simulator_addresses
        mtu = {"MTU": str(layout.endpoint_mtu)} if endpoint and layout.endpoint_mtu else {}
        return ContainerSpec(
            name=container_name(self._daemon, f"{part}-holder" if flow == 1 else f"{part}-{flow}-holder"),
            image=self._images.simulator,
            command=("holder",),
            environment={"ADDRESSES": addresses, **mtu},
            network="none",
            hostname="sim" if part == "simulator" else part,
            hosts=() if router else hosts(GATEWAYS[part], flow),
            capabilities=("NET_ADMIN",),
            dropped_capabilities=("ALL",),
            sysctls=layout.gateway_sysctls if router else {**NO_FORWARDING, **own},
            pids=32,
        )


def _await_handlers(holders: Collection[Container]) -> None:
    """Wait until the holders have begun to handle SIGHUP, which the kernel drops before.

    The engine says that a container has started before its program runs, and on a busy machine that takes a while.
    """
    deadline = time.monotonic() + RESET_PATIENCE
    while not all(holder.takes(Signals.SIGHUP) for holder in holders) and time.monotonic() < deadline:
        time.sleep(0.02)


def _plumb(daemon: Daemon, image: str, pids: list[int], *, client_side: bool) -> None:
    """Join the namespaces, in the order of their places, by veth pairs that never appear on the host.

    Those of further flows are the last. ``client_side``: the simulator also stands between the client and its gateway.
    """
    spec = ContainerSpec(
        name=container_name(daemon, "plumb"),
        image=image,
        command=("plumb", *map(str, pids)),
        environment={"CLIENT_SIDE": "1"} if client_side else {},
        network="host",
        host_pids=True,
        capabilities=("NET_ADMIN",),
        dropped_capabilities=("ALL",),
    )
    with create_container(daemon, spec) as container:
        container.start()
        if not container.wait(20) or container.exit().status != 0:
            reason = f"the testbed's networks could not be created: {last_words(container)}"
            raise HarnessFault(ErrorCode.DAEMON_FAULT, reason)
