"""Links: what carries the packets between two endpoints, behind one protocol."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from interop.execution.daemon import Daemon, Event
from interop.execution.spec import Rights
from interop.model import Interval, RealLinkReport, Role, Run, SimulatorReport


class RunningLink(Protocol):
    """A link made for one run."""

    def start(self, events: SimpleQueue[Event]) -> None:
        """Begin to wait for the server and then to carry packets; tell it through ``events``."""

    def ready(self, event: Event) -> bool:
        """Whether ``event`` says that packets are carried from now on."""

    def running(self) -> bool:
        """Whether it still waits or carries packets; False once it has given up waiting for the server.

        Raises :class:`HarnessFault` (simulator-failed) if it ended for any other reason.
        """

    def cpu_seconds(self) -> float:
        """CPU time that the link itself has used so far."""

    def outage(self) -> str:
        """Why a deadline that has passed says nothing about the pair; empty if it does."""

    def stop(self) -> None:
        """Carry nothing more and complete the traces."""

    def collect(self, directory: Path, client: Interval | None = None, /) -> SimulatorReport | RealLinkReport | None:
        """Write the traces below ``directory`` and read what the link says of itself; None if it carried nothing.

        ``client``: the client's life, if it is known, to which a report of lateness is restricted.
        """


class Testbed(Protocol):
    """Where endpoints run, and the link between them; serves one run after another."""

    def memlock(self, role: Role) -> int | None:
        """RLIMIT_MEMLOCK that the endpoint gets, bytes; None for the default of its daemon, which refuses more."""

    def daemon(self, role: Role) -> Daemon:
        """Where the endpoint's container is to be made."""

    def network(self, role: Role) -> str:
        """Network mode of the endpoint's container."""

    def rights(self, role: Role) -> Rights:
        """What the endpoint may do in that network."""

    def reset(self) -> None:
        """Undo what the endpoints of the run before did to their networks."""

    def link(self, run: Run, *, wait_for_server: bool = True) -> AbstractContextManager[RunningLink]:
        """The link of one run, created and not yet started."""


class LinkBackend(Protocol):
    """A way to make testbeds."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the results should know; complete once a testbed has been opened."""

    def open(self) -> AbstractContextManager[Testbed]:
        """A testbed that is gone when the block is left; raises :class:`HarnessFault` if it cannot be made."""
