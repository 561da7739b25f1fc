"""Containers of the link tools at both ends of a real link: names, start and output."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from quicsat.docker.client import Daemon
from quicsat.docker.containers import Container, ContainerEvent
from quicsat.links.cross_traffic import event_name
from quicsat.model.errors import HarnessFault
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode
from quicsat.model.real_link import Host, RealLink

_numbers = itertools.count(1)


@dataclass(frozen=True)
class HostPair:
    """The two hosts of a real link, with their daemons and the image of the link tools."""

    link: RealLink
    hosts: Mapping[Role, Host]
    daemons: Mapping[Role, Daemon]
    image: str
    """Id of the link tools' image, the same at both daemons."""
    busy: tuple[threading.Lock, ...]
    """Locks of both hosts, held while a container uses the link: one user at a time per host."""

    @property
    def name(self) -> str:
        """``astra_client - remote_server``."""
        return f"{self.link.client_host} - {self.link.server_host}"

    def network(self, role: Role) -> str:
        """Network mode of the containers at an end."""
        return "host" if self.hosts[role].host_network else "bridge"

    @property
    def published(self) -> str | None:
        """Address at which the server's port is published; None if it is not published."""
        server = self.hosts[Role.SERVER]
        return None if server.host_network else server.source_address

    def interface(self, role: Role) -> str:
        """Interface of an end's packets; empty if the container finds it."""
        host = self.hosts[role]
        return host.interface if host.host_network else ""

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses of the server."""
        server = self.hosts[Role.SERVER]
        return tuple(filter(None, (server.address4, server.address6)))

    @property
    def address(self) -> str:
        """Address at which the client's host reaches the server."""
        return self.addresses[0]


def container_name(daemon: Daemon, what: str) -> str:
    """A container name that no other campaign uses."""
    return f"quicsat-{daemon.campaign}-{next(_numbers)}-{what}"


def start_until(container: Container, event: str, patience: float) -> None:
    """Start a container and wait until it reports that it is ready; raises :class:`HarnessFault` if it never does."""
    events: SimpleQueue[ContainerEvent] = SimpleQueue()
    container.start()
    container.watch(events, lines=True)
    deadline = time.monotonic() + patience
    while True:
        try:
            seen = events.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            seen = None
        if seen is not None and event_name(seen.line) == event:
            return
        if seen is None or (seen.line is None and not container.running()):
            raise HarnessFault(ErrorCode.DAEMON_FAULT, f"{container.spec.name} is not {event}: {last_words(container)}")


def last_words(container: Container) -> str:
    """The end of what a container printed."""
    return container.output().decode(errors="replace").strip()[-300:] or "it said nothing"
