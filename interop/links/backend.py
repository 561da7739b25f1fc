"""Protocols of the link back ends, which carry the packets between two endpoints."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from interop.docker.client import Daemon
from interop.docker.containers import Capabilities, ContainerEvent
from interop.model.emulated_link import Interval, SimulatorReport
from interop.model.errors import HarnessFault
from interop.model.implementation import Role
from interop.model.real_link import RealLinkReport
from interop.model.run import Run


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
        """Write the traces below ``directory`` and return the link's report; None if it carried nothing.

        ``client``: from the client's start to its end, if known; lateness is reported for this interval only.
        """


class Testbed(Protocol):
    """Where endpoints run, and the link between them; serves one run after another."""

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


class LinkBackend(Protocol):
    """Creates testbeds."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for readers of the results; complete after a testbed has been opened."""

    def open(self) -> AbstractContextManager[Testbed]:
        """A testbed, removed when the block is left; raises :class:`HarnessFault` if it cannot be created."""
