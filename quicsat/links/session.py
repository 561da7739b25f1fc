"""One run on a testbed: what is asked for, what is recorded, and the protocol of a session that makes it."""

import datetime
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from quicsat.model.cpu_cost import DEFAULT, CostModel
from quicsat.model.emulated_link import Interval, SimulatorReport
from quicsat.model.evidence import Deadline, Evidence, Exit, FlowEvidence
from quicsat.model.implementation import Role
from quicsat.model.perturbation import NOMINAL, Perturbation
from quicsat.model.real_link import RealLinkReport
from quicsat.model.run import Run

READY_TIMEOUT = 30.0
"""Seconds from the start of the server until the link carries packets."""
STOP_GRACE, LOG_GRACE = 2.0, 8.0
"""Seconds between SIGTERM and SIGKILL of a server whose client has finished: first with the link, then without it.

Together they are those of the QUIC Interop Runner, in which a server may write its logs. What it still sends to a
client that has gone is not captured any more.
"""
LINGER_ROUND_TRIPS = 4
"""Round trips for which the server runs on after its client, to close its connection and write its qlog."""
CANNOT_EXECUTE = 126
"""Exit status of a program that cannot be executed, as in a shell."""
DIRECTORIES = ("www", "downloads", "certs", "logs")
"""Directories of both endpoints (docs/reference/endpoint-contract.md).

The server's ``www`` and the client's ``downloads`` hold files; over WebTransport, each side can have both.
"""


@dataclass(frozen=True)
class InputOrigin:
    """Where reproducible inputs come from: all that is random from a seed, validity of certificates from a moment."""

    seed: int
    moment: datetime.datetime


@dataclass(frozen=True)
class Endpoint:
    """The program of one role, according to the endpoint contract."""

    image: str
    """Image id."""
    environment: Mapping[str, str]
    files: Mapping[str, bytes | Path] = field(default_factory=dict)
    """Content by path, without the leading slash."""
    directories: tuple[str, ...] = ()
    """Further directories beside ``DIRECTORIES``."""
    costs: CostModel = DEFAULT
    """CPU time that it takes in virtual time."""


@dataclass(frozen=True)
class EarlyEnd:
    """How an endpoint ended that was started without a transfer."""

    end: Exit | str
    """Why it could not be started, if it could not."""
    output: bytes = b""
    """What it wrote to its standard output and error, each line with its time."""


@dataclass(frozen=True)
class FurtherFlow:
    """The endpoints of a flow beside the first one."""

    endpoints: Mapping[Role, Endpoint]
    start: float
    """Seconds from the start of the first client to that of this one; of the first, see ``SessionRequest``."""


@dataclass(frozen=True)
class RunControl:
    """What ends a run early, and what is called while it is under way."""

    stop: threading.Event
    """Set when the campaign is to end."""
    on_client_start: Callable[[], object] = lambda: None
    """Called when the client has been started."""
    on_client_end: Callable[[], object] = lambda: None
    """Called when the transfer is over."""
    on_received: Callable[[int], object] | None = None
    """Called every few seconds with the bytes that the client has received so far, where they can be read."""


@dataclass(frozen=True)
class SessionRequest:
    """What a session makes."""

    run: Run
    endpoints: Mapping[Role, Endpoint]
    """Of the first flow."""
    control: RunControl
    further: tuple[FurtherFlow, ...] = ()
    perturbation: Perturbation = NOMINAL
    """What differs from the nominal run; the link of ``run`` is that of the perturbation."""

    @property
    def flows(self) -> dict[int, FurtherFlow]:
        """All flows, counted from 1."""
        return dict(enumerate((FurtherFlow(self.endpoints, self.perturbation.start), *self.further), start=1))

    @property
    def linger(self) -> float:
        """Seconds for which the other endpoint runs on after the first one has ended."""
        return LINGER_ROUND_TRIPS * self.run.test_case.link.round_trip_delay


class SessionRecord:
    """The evidence of a run under way; several threads may add to it."""

    def __init__(self, evidence: Evidence = Evidence(started="", seed=0)) -> None:  # noqa: B008 - a frozen value
        self.evidence = evidence
        self._lock = threading.Lock()
        self._cpu_before: tuple[float, float] | None = None
        """Time of the previous sample on the monotonic clock, and the CPU seconds used until then."""

    @property
    def timed_out(self) -> Deadline | None:
        """The deadline that has passed, if one has."""
        return self.evidence.timed_out

    def add(self, **facts: Any) -> None:
        """Set fields of the evidence."""
        with self._lock:
            self.evidence = replace(self.evidence, **facts)

    def note(self, *notes: str) -> None:
        """Add remarks for the reader."""
        with self._lock:
            self.evidence = replace(self.evidence, notes=(*self.evidence.notes, *notes))

    def exits_of(self, flow: int) -> dict[Role, Exit]:
        """How the endpoints of a flow, counted from 1, have ended; none of those that have not."""
        ends: Evidence | FlowEvidence = self.evidence
        if flow > 1:
            ends = self.evidence.flows[flow - 2] if flow - 2 < len(self.evidence.flows) else FlowEvidence()
        exits = {Role.CLIENT: ends.client, Role.SERVER: ends.server}
        return {role: end for role, end in exits.items() if end is not None}

    def end(self, role: Role, exit_: Exit, flow: int = 1) -> None:
        """Record how an endpoint of a flow has ended, unless that is known."""
        with self._lock:
            if role in self.exits_of(flow):
                return
            found: dict[str, Any] = {str(role): exit_}
            if flow > 1:
                flows = [*self.evidence.flows, *(FlowEvidence(),) * (flow - 1 - len(self.evidence.flows))]
                flows[flow - 2] = replace(flows[flow - 2], **found)
                found = {"flows": tuple(flows)}
            self.evidence = replace(self.evidence, **found)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time that the block takes, on a monotonic clock, to the phase ``name``."""
        begin = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                spent = self.evidence.phases.get(name, 0.0) + time.monotonic() - begin
                self.evidence = replace(self.evidence, phases={**self.evidence.phases, name: round(spent, 6)})

    def sample_cpu(self, used: float) -> None:
        """Record how many CPUs were in use since the last sample, given the CPU seconds used so far."""
        now = time.monotonic()
        if self._cpu_before is not None:
            begin, before = self._cpu_before
            peak = max(self.evidence.cpu_peak or 0.0, round((used - before) / (now - begin), 3))
            self.add(cpu_peak=peak)
        self._cpu_before = now, used


class Session(Protocol):
    """Endpoints and link of one run; its methods raise :class:`HarnessFault`."""

    def run(self) -> None:
        """Start server, link and client, wait for the end, and stop all. Raises ``Interrupted`` if it is asked to."""

    def fetch(self, role: Role, path: str, flow: int = 1) -> AbstractContextManager[Iterator[bytes]]:
        """The archive of a path of an endpoint, in chunks; empty if there is no such path. Only after :meth:`run`."""

    def output(self, role: Role, flow: int = 1) -> bytes:
        """What an endpoint wrote to its standard output and error: bounded, each line with its time (RFC 3339)."""

    def collect(self, directory: Path, client: Interval | None, /) -> SimulatorReport | RealLinkReport | None:
        """Write the traces below ``directory`` and return the link's report; None if it carried nothing.

        ``client``: from the client's start to its end, if known; lateness is reported for this interval only.
        """
