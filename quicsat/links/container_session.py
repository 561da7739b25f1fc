"""A run in real time: endpoints and link are containers, which are created, watched and stopped through Docker."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Protocol

from quicsat.docker.archive import pack
from quicsat.docker.client import Daemon
from quicsat.docker.containers import (
    WEIGHT,
    Capabilities,
    Container,
    ContainerEvent,
    ContainerSpec,
    StartFailure,
    create_container,
)
from quicsat.docker.disk_monitor import DiskMonitor
from quicsat.docker.first_process import ReceivedBytes
from quicsat.docker.resource_use import ResourceMonitor
from quicsat.links.artefact_limits import disk_limit
from quicsat.links.session import (
    CANNOT_EXECUTE,
    DIRECTORIES,
    LOG_GRACE,
    READY_TIMEOUT,
    STOP_GRACE,
    EarlyEnd,
    Endpoint,
    SessionRecord,
    SessionRequest,
)
from quicsat.model.emulated_link import Interval, SimulatorReport
from quicsat.model.errors import HarnessFault, Interrupted
from quicsat.model.evidence import Deadline, Exit
from quicsat.model.flow import part_name
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode
from quicsat.model.real_link import RealLinkReport
from quicsat.model.run import Run
from quicsat.model.run_limits import MEMORY

START_PATIENCE = 5.0
"""Seconds within which the daemon must start server and link, so that the server has its full time to be ready."""
PROCESSES = 1024
"""Of an endpoint, unless its test case has limits of its own."""
HEARTBEAT = 2.0
"""Seconds between two checks of containers without events: events are lost if the daemon's connection breaks."""


class RunningLink(Protocol):
    """The link of one run."""

    def start(self, events: SimpleQueue[ContainerEvent]) -> None:
        """Start: wait for the server, then carry packets. Progress is reported through ``events``."""

    def ready(self, event: ContainerEvent) -> bool:
        """Whether ``event`` reports that the link carries packets."""

    def running(self) -> bool:
        """Whether the link waits for the server or carries packets; False after the wait for the server has timed out.

        Raises :class:`HarnessFault` (simulator-failed) if it ended for any other reason.
        """

    def cpu_seconds(self) -> float:
        """CPU time that the link itself has used so far."""

    def outage(self) -> HarnessFault | None:
        """The harness error that invalidates a missed deadline; None if there is none."""

    def stop(self) -> None:
        """Stop carrying packets and complete the traces."""

    def collect(self, directory: Path, client: Interval | None = None, /) -> SimulatorReport | RealLinkReport | None:
        """As :meth:`quicsat.links.session.Session.collect`."""


class ContainerTestbed(Protocol):
    """Where the containers of endpoints run, and the link between them."""

    def memlock(self, role: Role) -> int | None:
        """RLIMIT_MEMLOCK of the endpoint, bytes; None: the default of its daemon, which refuses a higher limit."""

    def daemon(self, role: Role) -> Daemon:
        """The daemon that creates the endpoint's container."""

    def network(self, role: Role, flow: int = 1, /) -> str:
        """Network mode of the endpoint's container."""

    def capabilities(self, role: Role) -> Capabilities:
        """Linux capabilities of the endpoint in that network."""

    def reset(self) -> None:
        """Undo the changes that the endpoints of the previous run made to their networks."""

    def link(self, run: Run, *, wait_for_server: bool = True) -> AbstractContextManager[RunningLink]:
        """The link of one run, created and not yet started."""


@contextmanager
def container_session(
    testbed: ContainerTestbed, request: SessionRequest, record: SessionRecord
) -> Iterator[ContainerSession]:
    """Containers of a run on ``testbed``, created and not yet started; removed when the block is left."""
    with ExitStack() as stack:
        with ThreadPoolExecutor(1) as pool:
            reset = pool.submit(testbed.reset)
            link = stack.enter_context(testbed.link(request.run))
            endpoints = {
                (number, role): endpoint
                for number, flow in request.flows.items()
                for role, endpoint in flow.endpoints.items()
            }
            containers = {
                (flow, role): stack.enter_context(_endpoint_container(testbed, role, request, endpoint, flow))
                for (flow, role), endpoint in endpoints.items()
            }
            with ThreadPoolExecutor() as puts:
                list(puts.map(lambda place: _put(containers[place], endpoints[place]), containers))
            reset.result()
        yield ContainerSession(request, record, link, containers)


def container_exits(testbed: ContainerTestbed, request: SessionRequest, patience: float) -> Mapping[Role, EarlyEnd]:
    """See :meth:`quicsat.links.backend.Testbed.exits`."""
    events: SimpleQueue[ContainerEvent] = SimpleQueue()
    testbed.reset()
    ends: dict[Role, EarlyEnd] = {}
    with ExitStack() as stack:
        link = stack.enter_context(testbed.link(request.run, wait_for_server=False))
        containers = {
            role: stack.enter_context(_endpoint_container(testbed, role, request, endpoint))
            for role, endpoint in request.endpoints.items()
        }
        link.start(events)
        for role, container in containers.items():
            try:
                container.start()
                container.watch(events)
            except StartFailure as failure:
                ends[role] = EarlyEnd(str(failure))
        started = {role: container for role, container in containers.items() if role not in ends}
        deadline = time.monotonic() + patience
        while any(container.running() for container in started.values()) and time.monotonic() < deadline:
            next_event(events, deadline, request.control.stop)
        for role, container in started.items():
            container.stop(grace=0)
            ends[role] = EarlyEnd(container.exit(), container.output())
        link.running()  # raises if it is not: a restarted daemon has ended the endpoints as well
    return ends


def _endpoint_container(
    testbed: ContainerTestbed, role: Role, request: SessionRequest, endpoint: Endpoint, flow: int = 1
) -> AbstractContextManager[Container]:
    daemon, capabilities = testbed.daemon(role), testbed.capabilities(role)
    name = f"quicsat-{daemon.campaign}-{'-'.join(request.run.path.parts)}-{part_name(role, flow)}"
    limits = request.run.test_case.own_limits
    spec = ContainerSpec(
        name=re.sub("[^a-zA-Z0-9_.-]", ".", name),  # Docker's grammar has no signs of variants, families and flows
        image=endpoint.image,
        environment=endpoint.environment,
        network=testbed.network(role, flow),
        capabilities=capabilities.added,
        dropped_capabilities=capabilities.dropped,
        tty=True,
        memory=limits.memory or MEMORY,
        pids=limits.processes or PROCESSES,
        cpus=limits.cpus,
        weight=WEIGHT,
        memlock=testbed.memlock(role),
    )
    return create_container(daemon, spec)


def _put(container: Container, endpoint: Endpoint) -> None:
    container.put(pack(endpoint.files, (*DIRECTORIES, *endpoint.directories)))


def next_event(events: SimpleQueue[ContainerEvent], deadline: float, stop: threading.Event) -> ContainerEvent | None:
    """The next event; None after a heartbeat or at the deadline. Raises :class:`Interrupted`.

    One that has come is returned after the deadline as well: a busy machine may have held up this process meanwhile.
    """
    begin = time.monotonic()
    while True:
        if stop.is_set():
            raise Interrupted
        now = time.monotonic()
        patience = min(deadline - now, HEARTBEAT - (now - begin))
        with contextlib.suppress(Empty):
            return events.get(timeout=max(min(patience, 0.25), 0))
        if patience <= 0:
            return None


class ContainerSession:
    """See :class:`quicsat.links.session.Session`."""

    def __init__(
        self,
        request: SessionRequest,
        record: SessionRecord,
        link: RunningLink,
        containers: Mapping[tuple[int, Role], Container],
    ) -> None:
        """``containers``: by flow, counted from 1, and role."""
        self._request = request
        self._record = record
        self._link = link
        self._server = containers[1, Role.SERVER]
        self._containers = containers
        self._monitor = ResourceMonitor()
        self._disks = DiskMonitor(disk_limit(request.run.test_case))
        self._received: ReceivedBytes | None = None
        """Of the first client, if somebody wants to know."""
        self._waiting: dict[int, float] = {}
        """When the clients that are not yet started are due, by flow, on the monotonic clock."""
        self._events: SimpleQueue[ContainerEvent] = SimpleQueue()

    def run(self) -> None:
        """See :meth:`quicsat.links.session.Session.run`."""
        with self._disks.watching(), self._monitor.watching():
            try:
                if self._start():
                    self._request.control.on_client_start()
                    self._await_end()
            finally:
                self._request.control.on_client_end()
                with self._record.phase("stop"):
                    self._stop()
        self._record.add(use=dict(self._monitor.use))
        if self._monitor.starved:
            named = " and the ".join(self._monitor.starved)
            reason = f"the machine ran out of memory, and its kernel ended the {named}, within the limit of its own"
            raise HarnessFault(ErrorCode.HOST_STARVED, reason)

    def fetch(self, role: Role, path: str, flow: int = 1) -> AbstractContextManager[Iterator[bytes]]:
        """See :meth:`quicsat.links.session.Session.fetch`."""
        return self._containers[flow, role].fetch(path)

    def output(self, role: Role, flow: int = 1) -> bytes:
        """See :meth:`quicsat.links.session.Session.output`."""
        return self._containers[flow, role].output()

    def collect(self, directory: Path, client: Interval | None, /) -> SimulatorReport | RealLinkReport | None:
        """See :meth:`quicsat.links.session.Session.collect`."""
        return self._link.collect(directory, client)

    def _start(self) -> bool:
        """Start servers and link, then the first client; False if the run is over before this has started."""
        record, link = self._record, self._link
        servers = [self._containers[flow, Role.SERVER] for flow in self._request.flows]
        with record.phase("start"):
            begin = time.monotonic()
            with ThreadPoolExecutor() as pool:
                link_started = pool.submit(link.start, self._events)
                alive = all(self._start_endpoint(flow, Role.SERVER) for flow in self._request.flows)
                link_started.result()
            took = time.monotonic() - begin
            deadline = time.monotonic() + READY_TIMEOUT
            while alive:
                event = next_event(self._events, deadline, self._request.control.stop)
                if event is None and time.monotonic() >= deadline:
                    break
                if event is not None and link.ready(event):
                    return self._start_endpoint(1, Role.CLIENT)
                alive = all(each.running() for each in servers) and link.running()
            if (fault := link.outage()) is not None:
                raise fault
            if took > START_PATIENCE and all(each.running() for each in servers):
                reason = f"the Docker daemon took {took:.1f} s to start the servers and the link"
                raise HarnessFault(ErrorCode.DAEMON_FAULT, reason)
            record.add(timed_out=Deadline.READY)  # also if the server has ended, since it can never be ready
            return False

    def _start_endpoint(self, flow: int, role: Role) -> bool:
        container = self._containers[flow, role]
        try:
            container.start()
        except StartFailure as failure:
            self._record.end(role, Exit(CANNOT_EXECUTE), flow)
            self._record.note(f"{part_name(role, flow)}: cannot be started: {failure}")
            return False
        self._monitor.add(part_name(role, flow), container.pid, container.id)
        self._disks.add(part_name(role, flow), container)
        if (flow, role) == (1, Role.CLIENT) and self._request.control.on_received is not None:
            self._received = ReceivedBytes(container.pid, container.id)
        container.watch(self._events)
        return True

    def _await_end(self) -> None:
        """Wait until each flow or the link has ended, or the deadline of the transfer has passed.

        A flow has ended when its client or its server has. Further clients are started when they are due.
        """
        record, link = self._record, self._link
        with record.phase("transfer"):
            begin = time.monotonic()
            deadline = begin + self._request.run.test_case.timeout
            self._waiting = {number: begin + flow.start for number, flow in self._request.flows.items() if number > 1}
            while True:
                self._start_due_clients()
                self._tell_received()
                patience = min([deadline, *self._waiting.values()])
                event = next_event(self._events, patience, self._request.control.stop)
                if (event is not None and event.line is not None) or self._due():
                    continue
                if not link.running() or not (self._waiting or any(map(self._transfers, self._request.flows))):
                    return
                if time.monotonic() >= deadline:
                    record.add(timed_out=Deadline.TRANSFER)
                    return
                if event is None and not self._waiting:  # a daemon takes up to a second to answer
                    with ThreadPoolExecutor() as pool:
                        used = sum(pool.map(Container.cpu_seconds, self._containers.values()))
                    record.sample_cpu(used + link.cpu_seconds())

    def _tell_received(self) -> None:
        told = self._request.control.on_received
        if told is not None and (count := self._received.read() if self._received else None) is not None:
            told(count)

    def _due(self) -> list[int]:
        """The flows whose clients are to start now."""
        return [flow for flow, due in self._waiting.items() if due <= time.monotonic()]

    def _start_due_clients(self) -> None:
        for flow in self._due():
            del self._waiting[flow]
            self._start_endpoint(flow, Role.CLIENT)

    def _transfers(self, flow: int) -> bool:
        return self._containers[flow, Role.CLIENT].running() and self._containers[flow, Role.SERVER].running()

    def _stop(self) -> None:
        for flow in self._request.flows:
            self._stop_flow(flow)
        self._link.stop()
        for flow in self._request.flows:
            server = self._containers[flow, Role.SERVER]
            server.finish(0 if server.deaf or self._request.control.stop.is_set() else LOG_GRACE)
            self._record.end(Role.SERVER, server.exit(), flow)

    def _stop_flow(self, flow: int) -> None:
        client, server = self._containers[flow, Role.CLIENT], self._containers[flow, Role.SERVER]
        linger = self._request.linger
        if not self._record.timed_out and not server.running():
            client.wait(linger)  # a server may end as soon as it has served
        late = client.running()
        if late:
            client.stop(grace=0)
        self._record.end(Role.CLIENT, client.exit(), flow)
        if not late and server.running():
            server.wait(linger)
        server.terminate()
        server.wait(STOP_GRACE)
