"""A run in real time: endpoints and link are containers, which are created, watched and stopped through Docker."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Protocol

from interop.docker.archive import pack
from interop.docker.client import Daemon
from interop.docker.containers import (
    WEIGHT,
    Capabilities,
    Container,
    ContainerEvent,
    ContainerSpec,
    StartFailure,
    create_container,
)
from interop.links.session import (
    CANNOT_EXECUTE,
    DIRECTORIES,
    READY_TIMEOUT,
    STOP_GRACE,
    Endpoint,
    SessionRecord,
    SessionRequest,
)
from interop.model.emulated_link import Interval, SimulatorReport
from interop.model.errors import HarnessFault, Interrupted
from interop.model.evidence import Deadline, Exit
from interop.model.implementation import Role
from interop.model.outcomes import ErrorCode
from interop.model.real_link import RealLinkReport
from interop.model.run import Run
from interop.model.units import MIB

START_PATIENCE = 5.0
"""Seconds within which the daemon must start server and link, so that the server has its full time to be ready."""
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
        """As :meth:`interop.links.session.Session.collect`."""


class ContainerTestbed(Protocol):
    """Where the containers of endpoints run, and the link between them."""

    def memlock(self, role: Role) -> int | None:
        """RLIMIT_MEMLOCK of the endpoint, bytes; None: the default of its daemon, which refuses a higher limit."""

    def daemon(self, role: Role) -> Daemon:
        """The daemon that creates the endpoint's container."""

    def network(self, role: Role) -> str:
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
            containers = {
                role: stack.enter_context(_endpoint_container(testbed, role, request, endpoint))
                for role, endpoint in request.endpoints.items()
            }
            with ThreadPoolExecutor() as puts:
                list(puts.map(lambda role: _put(containers[role], request.endpoints[role]), containers))
            reset.result()
        yield ContainerSession(request, record, link, containers)


def container_exits(testbed: ContainerTestbed, request: SessionRequest, patience: float) -> Mapping[Role, Exit | str]:
    """See :meth:`interop.links.backend.Testbed.exits`."""
    events: SimpleQueue[ContainerEvent] = SimpleQueue()
    testbed.reset()
    ends: dict[Role, Exit | str] = {}
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
                ends[role] = str(failure)
        started = {role: container for role, container in containers.items() if role not in ends}
        deadline = time.monotonic() + patience
        while any(container.running() for container in started.values()) and time.monotonic() < deadline:
            next_event(events, deadline, request.stop)
        for role, container in started.items():
            container.stop(grace=0)
            ends[role] = container.exit()
        link.running()  # raises if it is not: a restarted daemon has ended the endpoints as well
    return ends


def _endpoint_container(
    testbed: ContainerTestbed, role: Role, request: SessionRequest, endpoint: Endpoint
) -> AbstractContextManager[Container]:
    daemon, capabilities = testbed.daemon(role), testbed.capabilities(role)
    spec = ContainerSpec(
        name=f"quicsat-{daemon.campaign}-{'-'.join(request.run.path.parts)}-{role}".replace("+", "."),  # of a variant
        image=endpoint.image,
        environment=endpoint.environment,
        network=testbed.network(role),
        capabilities=capabilities.added,
        dropped_capabilities=capabilities.dropped,
        tty=True,
        memory=4096 * MIB,
        pids=1024,
        weight=WEIGHT,
        memlock=testbed.memlock(role),
    )
    return create_container(daemon, spec)


def _put(container: Container, endpoint: Endpoint) -> None:
    container.put(pack(endpoint.files, DIRECTORIES))


def next_event(events: SimpleQueue[ContainerEvent], deadline: float, stop: threading.Event) -> ContainerEvent | None:
    """The next event; None after a heartbeat or at the deadline. Raises :class:`Interrupted`."""
    begin = time.monotonic()
    while True:
        if stop.is_set():
            raise Interrupted
        now = time.monotonic()
        patience = min(deadline - now, HEARTBEAT - (now - begin))
        if patience <= 0:
            return None
        with contextlib.suppress(Empty):
            return events.get(timeout=min(patience, 0.25))


class ContainerSession:
    """See :class:`interop.links.session.Session`."""

    def __init__(
        self, request: SessionRequest, record: SessionRecord, link: RunningLink, containers: Mapping[Role, Container]
    ) -> None:
        self._request = request
        self._record = record
        self._link = link
        self._server = containers[Role.SERVER]
        self._client = containers[Role.CLIENT]
        self._containers = containers
        self._events: SimpleQueue[ContainerEvent] = SimpleQueue()

    def run(self) -> None:
        """See :meth:`interop.links.session.Session.run`."""
        try:
            if self._start():
                self._request.on_client_start()
                self._await_end()
        finally:
            self._request.on_client_end()
            with self._record.phase("stop"):
                self._stop()

    def fetch(self, role: Role, path: str) -> AbstractContextManager[Iterator[bytes]]:
        """See :meth:`interop.links.session.Session.fetch`."""
        return self._containers[role].fetch(path)

    def output(self, role: Role) -> bytes:
        """See :meth:`interop.links.session.Session.output`."""
        return self._containers[role].output()

    def collect(self, directory: Path, client: Interval | None, /) -> SimulatorReport | RealLinkReport | None:
        """See :meth:`interop.links.session.Session.collect`."""
        return self._link.collect(directory, client)

    def _start(self) -> bool:
        """Start server and link, then the client; False if the run is over before its client has started."""
        record, link, server = self._record, self._link, self._server
        with record.phase("start"):
            begin = time.monotonic()
            with ThreadPoolExecutor() as pool:
                link_started = pool.submit(link.start, self._events)
                alive = self._start_endpoint(Role.SERVER)
                link_started.result()
            took = time.monotonic() - begin
            deadline = time.monotonic() + READY_TIMEOUT
            while alive:
                event = next_event(self._events, deadline, self._request.stop)
                if event is None and time.monotonic() >= deadline:
                    break
                if event is not None and link.ready(event):
                    return self._start_endpoint(Role.CLIENT)
                alive = server.running() and link.running()
            if (fault := link.outage()) is not None:
                raise fault
            if took > START_PATIENCE and server.running():
                reason = f"the Docker daemon took {took:.1f} s to start two containers"
                raise HarnessFault(ErrorCode.DAEMON_FAULT, reason)
            record.timed_out = Deadline.READY  # also if the server has ended, since it can never be ready
            return False

    def _start_endpoint(self, role: Role) -> bool:
        container = self._containers[role]
        try:
            container.start()
        except StartFailure as failure:
            self._record.exits[role] = Exit(CANNOT_EXECUTE)
            self._record.notes.append(f"{role}: cannot be started: {failure}")
            return False
        container.watch(self._events)
        return True

    def _await_end(self) -> None:
        """Wait until the client, the server or the link has ended, or the deadline of the transfer has passed."""
        record, client, server, link = self._record, self._client, self._server, self._link
        with record.phase("transfer"):
            deadline = time.monotonic() + self._request.run.test_case.timeout
            while True:
                event = next_event(self._events, deadline, self._request.stop)
                if event is not None and event.line is not None:
                    continue
                if not (client.running() and server.running() and link.running()):
                    return
                if time.monotonic() >= deadline:
                    record.timed_out = Deadline.TRANSFER
                    return
                if event is None:
                    record.sample_cpu(client.cpu_seconds() + server.cpu_seconds() + link.cpu_seconds())

    def _stop(self) -> None:
        record, client, server, linger = self._record, self._client, self._server, self._request.linger
        if not record.timed_out and not server.running():
            client.wait(linger)  # a server may end as soon as it has served
        record.exits.setdefault(Role.CLIENT, client.exit())
        if client.running():
            client.stop(grace=0)
            record.exits[Role.CLIENT] = client.exit()
        elif server.running():
            server.wait(linger)
        server.stop(grace=STOP_GRACE)
        record.exits.setdefault(Role.SERVER, server.exit())
        self._link.stop()
