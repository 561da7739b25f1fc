"""Real links: one endpoint on each of two hosts, in a network namespace in which its packets are captured.

Both hosts get containers of the same images and nothing else. Files are copied as archives. The client reaches the
server by the names of the endpoint contract; its wait for the simulator is answered in its own namespace.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from quicsat.docker.archive import ArchiveLimits, unpack
from quicsat.docker.client import Daemon
from quicsat.docker.containers import (
    CONTRACT_CAPABILITIES,
    HOST_NETWORK_CAPABILITIES,
    WEIGHT,
    Capabilities,
    Container,
    ContainerEvent,
    ContainerSpec,
    create_container,
)
from quicsat.links import real_link_baseline, tcp_samples
from quicsat.links.artefact_limits import LARGEST_REPORT, trace_limits
from quicsat.links.container_session import ContainerSession, container_exits, container_session
from quicsat.links.host_pair import HostPair
from quicsat.links.link_containers import container_name, event_name, last_words, start_until
from quicsat.links.memlock import REFUSED, memlock
from quicsat.links.session import EarlyEnd, SessionRecord, SessionRequest
from quicsat.model.emulated_link import Interval
from quicsat.model.errors import HarnessFault, MachineError
from quicsat.model.implementation import Protocol, Role
from quicsat.model.link_format import format_baseline
from quicsat.model.outcomes import ErrorCode
from quicsat.model.real_link import Baseline, CaptureReport, Host, RealLink, RealLinkReport
from quicsat.model.run import Run
from quicsat.model.stored_files import read_file
from quicsat.model.text import counted
from quicsat.model.units import MIB

SERVER_PATIENCE = 10
"""Seconds to wait for a server, as in the QUIC Interop Runner."""
SERVER_SILENT = 3
"""Exit status of a capture if the server never answered."""
HOLD_PATIENCE = 20.0
"""Seconds within which a namespace is ready."""
SETTLE = 0.3
"""Seconds beyond a round trip for which captures continue after both endpoints have ended."""
BASELINE_AGE = 300.0
"""Seconds after which the baseline is measured again, before the next run."""
FLUSH = 10.0
"""Seconds within which a capture writes its packets."""
TRACES = {Role.CLIENT: "trace_node_left.pcap", Role.SERVER: "trace_node_right.pcap"}


def captured(ends: HostPair, role: Role, protocol: Protocol) -> dict[str, str]:
    """Capture filter of one end, as variables of its container: in a host's own network, only packets of the run."""
    transport = "tcp" if protocol is Protocol.TCP else "udp"
    if not ends.hosts[role].host_network:
        return {}
    if role is Role.SERVER:
        return {"SERVED": transport}
    hosts = " or ".join(f"host {address}" for address in ends.addresses)
    return {"FILTER": f"{transport} port 443 and ({hosts})", "TOWARDS": ends.address}


def names(server: Host) -> tuple[tuple[str, str], ...]:
    """Names of the endpoint contract: the server's plain and with 4, 6 and 46; the simulator is the client itself."""
    entries = [("sim", "127.0.0.1")]
    for version, address in (("4", server.address4), ("6", server.address6)):
        if address:
            entries += [("server", address), (f"server{version}", address), ("server46", address)]
    return tuple(entries)


# ---- the link of one run --------------------------------------------------------------------


class CapturedLink:
    """The captures at both ends during one run."""

    def __init__(
        self, ends: HostPair, captures: Mapping[Role, Container], baseline: Baseline, limits: ArchiveLimits
    ) -> None:
        """``limits``: of the traces."""
        self._limits = limits
        self._ends = ends
        self._baseline = baseline
        self._captures = captures
        self._missing = {(container.id, "capturing") for container in captures.values()}
        self._missing.add((captures[Role.SERVER].id, "server-ready"))
        self._carries = False
        self._begin = time.monotonic()

    def start(self, events: SimpleQueue[ContainerEvent]) -> None:
        """Start the captures at both ends; the one at the server waits for the server."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(Container.start, self._captures.values()))
        for capture in self._captures.values():
            capture.watch(events, lines=True)

    def ready(self, event: ContainerEvent) -> bool:
        """Whether both ends capture and the server answers."""
        self._missing.discard((event.container.id, event_name(event.line)))
        self._carries = not self._missing
        return self._carries

    def running(self) -> bool:
        """Whether both captures run; False if the server never answered; every other end is a harness error."""
        for role, capture in self._captures.items():
            if not capture.running():
                if role is Role.SERVER and capture.exit().status == SERVER_SILENT:
                    return False
                raise HarnessFault(ErrorCode.CAPTURE_FAILED, f"the capture at the {role} ended: {last_words(capture)}")
        return True

    def cpu_seconds(self) -> float:
        """CPU time that the captures have used so far."""
        return sum(capture.cpu_seconds() for capture in self._captures.values())

    def outage(self) -> HarnessFault | None:
        """A fault (host-lost) if a host was unreachable during the run; None if none was."""
        lost = [
            self._ends.hosts[role].name
            for role, daemon in self._ends.daemons.items()
            if daemon.unreachable_at is not None and daemon.unreachable_at >= self._begin
        ]
        reason = f"{' and '.join(lost)} could not be reached for part of the run"
        return HarnessFault(ErrorCode.HOST_LOST, reason) if lost else None

    def stop(self) -> None:
        """Wait for packets in flight, then complete the traces."""
        if self._carries:
            time.sleep(self._ends.link.round_trip_delay + SETTLE)
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda capture: capture.stop(FLUSH if self._carries else 0), self._captures.values()))

    def collect(self, directory: Path, _client: Interval | None = None, /) -> RealLinkReport | None:
        """Write both traces below ``directory/sim``; None if the client could not start.

        Raises :class:`HarnessFault` if a capture lost packets.
        """
        if not self._carries:
            return None
        (directory / "sim").mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor() as pool:
            reports = dict(
                zip(self._captures, pool.map(lambda role: self._fetch(role, directory), self._captures), strict=True)
            )
        client, server = self._ends.hosts[Role.CLIENT], self._ends.hosts[Role.SERVER]
        skew = server.clock_skew - client.clock_skew
        captured = reports[Role.CLIENT], reports[Role.SERVER]
        return RealLinkReport(client.name, server.name, skew, *captured, self._baseline, self.outage() is not None)

    def _fetch(self, role: Role, directory: Path) -> CaptureReport:
        target = directory / f".{role}-capture"
        target.mkdir()
        with self._captures[role].fetch("/logs") as archive:
            unpack(archive, target, self._limits)
        try:
            (target / "trace.pcap").replace(directory / "sim" / TRACES[role])
            counts = json.loads(read_file(target / "capture.json", LARGEST_REPORT))
            report = CaptureReport(**{name: int(counts[name]) for name in CaptureReport.__dataclass_fields__})
            with suppress(FileNotFoundError):  # only the server's end has samples, and only of runs over TCP
                (target / tcp_samples.FILE).replace(directory / "sim" / tcp_samples.FILE)
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = f"the capture at the {role} left no complete trace ({error})"
            raise HarnessFault(ErrorCode.CAPTURE_FAILED, reason) from error
        (target / "capture.json").unlink()
        target.rmdir()
        if report.dropped or report.captured < report.received:
            lost = max(report.dropped, report.received - report.captured)
            reason = (
                f"the capture at the {role} lost {lost} of {counted(report.received, 'packet')}: its host is too busy"
            )
            raise HarnessFault(ErrorCode.CAPTURE_FAILED, reason)
        return report


# ---- the testbed ----------------------------------------------------------------------------


class BareLink:
    """The baseline of a link, measured again when it is too old."""

    def __init__(self, ends: HostPair) -> None:
        self._ends = ends
        self._taken = 0.0
        self._baseline: Baseline | None = None

    def take(self, fill: float = 0.0) -> Baseline:
        """Measure it now, with ``fill`` seconds of TCP."""
        self._baseline = real_link_baseline.take(self._ends, fill)
        self._taken = time.monotonic()
        return self._baseline

    def current(self) -> Baseline:
        """A baseline not older than ``BASELINE_AGE`` and not older than the last outage of a host."""
        lost = max((daemon.unreachable_at or 0.0 for daemon in self._ends.daemons.values()), default=0.0)
        if self._baseline is None or self._taken < max(time.monotonic() - BASELINE_AGE, lost):
            return self.take()
        return self._baseline


class RealTestbed:
    """Two hosts with a link between them; all containers are created for each run."""

    def __init__(self, ends: HostPair, bare: BareLink, memlock: Mapping[Role, int | None]) -> None:
        self._ends = ends
        self._bare = bare
        self._memlock = memlock
        self._holders: dict[Role, Container] = {}

    def input_origin(self, _run: Run) -> None:
        """Inputs are random and made now."""

    def session(self, request: SessionRequest, record: SessionRecord) -> AbstractContextManager[ContainerSession]:
        """See :meth:`quicsat.links.backend.Testbed.session`."""
        return container_session(self, request, record)

    def exits(self, request: SessionRequest, patience: float) -> Mapping[Role, EarlyEnd]:
        """See :meth:`quicsat.links.backend.Testbed.exits`."""
        return container_exits(self, request, patience)

    def memlock(self, role: Role) -> int | None:
        """RLIMIT_MEMLOCK that the endpoint gets at its host, bytes."""
        return self._memlock[role]

    def daemon(self, role: Role) -> Daemon:
        """The daemon at which the endpoint in ``role`` runs."""
        return self._ends.daemons[role]

    def network(self, role: Role, _flow: int = 1) -> str:
        """Network mode of an endpoint's container: the namespace that is held for it; a real link has one flow."""
        return f"container:{self._holders[role].id}"

    def capabilities(self, role: Role) -> Capabilities:
        """Those of the endpoint contract, but in a host's own network."""
        return HOST_NETWORK_CAPABILITIES if self._ends.hosts[role].host_network else CONTRACT_CAPABILITIES

    def reset(self) -> None:
        """Nothing to do: no container outlives its run."""

    @contextmanager
    def link(self, run: Run, *, wait_for_server: bool = True) -> Iterator[CapturedLink]:
        """Namespaces at both ends, and captures in them, created and not yet started."""
        with ExitStack() as stack:
            for lock in self._ends.busy:
                stack.enter_context(lock)
            bare = self._bare.current()
            self._holders = {role: stack.enter_context(self._holder(role)) for role in Role}
            with ThreadPoolExecutor() as pool:
                list(pool.map(_hold, self._holders.values()))
            captures = {
                role: stack.enter_context(self._capture(role, run.protocol, wait_for_server and role is Role.SERVER))
                for role in Role
            }
            yield CapturedLink(self._ends, captures, bare, trace_limits(run.test_case))

    def _holder(self, role: Role) -> AbstractContextManager[Container]:
        shared = self._ends.hosts[role].host_network
        spec = ContainerSpec(
            name=container_name(self._ends.daemons[role], f"{role}-hold"),
            image=self._ends.image,
            command=("hold",),
            environment={"SHARED": role} if shared else {},
            network=self._ends.network(role),
            published=self._ends.published if role is Role.SERVER else None,
            hostname=role,
            hosts=names(self._ends.hosts[Role.SERVER]),
            capabilities=() if shared else ("NET_ADMIN",),
            dropped_capabilities=("ALL",),
            pids=32,
        )
        return create_container(self._ends.daemons[role], spec)

    def _capture(self, role: Role, protocol: Protocol, wait: bool) -> AbstractContextManager[Container]:
        awaited = "tcp" if protocol is Protocol.TCP else "quic"
        sampled = protocol is Protocol.TCP and role is Role.SERVER
        spec = ContainerSpec(
            name=container_name(self._ends.daemons[role], f"{role}-capture"),
            image=self._ends.image,
            command=("capture",),
            environment={
                "AWAIT": awaited if wait else "",
                "PATIENCE": str(SERVER_PATIENCE),
                "INTERFACE": self._ends.interface(role),
                "SAMPLE": " ".join(tcp_samples.options(tcp_samples.LOGS)) if sampled else "",
                **captured(self._ends, role, protocol),
            },
            network=self.network(role),
            capabilities=("NET_RAW",),
            dropped_capabilities=("ALL",),
            memory=512 * MIB,
            pids=64,
            weight=WEIGHT,
        )
        return create_container(self._ends.daemons[role], spec)


def _hold(container: Container) -> None:
    """Start the holder of a namespace and wait until it is ready."""
    start_until(container, "holding", HOLD_PATIENCE)


# ---- the backend ----------------------------------------------------------------------------


@dataclass(frozen=True)
class HostLocks:
    """A lock per machine, by its daemon's identity, the same for all links that share it."""

    locks: dict[str, threading.Lock] = field(default_factory=dict)

    def of(self, *daemons: Daemon) -> tuple[threading.Lock, ...]:
        """The locks of some machines, always in the same order, so that no deadlock occurs."""
        return tuple(self.locks.setdefault(name, threading.Lock()) for name in sorted({each.id for each in daemons}))


class RealBackend:
    """The back end of a link between two hosts whose daemons are connected."""

    def __init__(
        self, link: RealLink, hosts: Mapping[str, Host], daemons: Mapping[str, Daemon], image: str, locks: HostLocks
    ) -> None:
        """``hosts`` and ``daemons`` by the name of the host; ``image`` is the id of the link tools' image."""
        ends = {Role.CLIENT: link.client_host, Role.SERVER: link.server_host}
        self._ends = HostPair(
            link=link,
            hosts={role: hosts[name] for role, name in ends.items()},
            daemons={role: daemons[name] for role, name in ends.items()},
            image=image,
            busy=locks.of(*(daemons[name] for name in ends.values())),
        )
        self._bare = BareLink(self._ends)
        self._memlock: dict[Role, int | None] = {}
        self._probing = threading.Lock()

    def examine(self, fill: float, say: Callable[[str], None]) -> None:
        """Measure the baseline before a campaign, with ``fill`` seconds of TCP; raises :class:`MachineError`."""
        try:
            say(f"{self._ends.name}: {format_baseline(self._bare.take(fill))}")
        except HarnessFault as fault:
            raise MachineError(f"{self._ends.name}: {fault.reason}") from fault

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the results should know."""
        shared = [host.name for host in self._ends.hosts.values() if host.host_network]
        own = (f"endpoints use the own network of {' and '.join(shared)}",) if shared else ()
        refusing = [self._ends.hosts[role].name for role, given in self._memlock.items() if given is None]
        return (*((REFUSED.format(f"the daemon of {' and '.join(refusing)}"),) if refusing else ()), *own)

    @contextmanager
    def open(self) -> Iterator[RealTestbed]:
        """A testbed; the first one tests what both daemons allow. Nothing else is created before a run."""
        with self._probing:
            if not self._memlock:
                self._memlock = {role: self._allowed(role) for role in Role}
        yield RealTestbed(self._ends, self._bare, self._memlock)

    def _allowed(self, role: Role) -> int | None:
        daemon = self._ends.daemons[role]
        return memlock(daemon, container_name(daemon, f"{role}-memlock"), self._ends.image)
