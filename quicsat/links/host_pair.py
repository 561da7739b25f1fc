"""The two hosts of a real link."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from quicsat.docker.client import Daemon
from quicsat.model.implementation import Role
from quicsat.model.real_link import Host, RealLink


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
