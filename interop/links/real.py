"""Real links: an endpoint on each of two hosts, in a namespace that we hold and capture in, and what is between them.

Both hosts get containers of the same images and nothing else: files go in and out as archives, the client reaches the
server by the names of the endpoint contract, and its waiting for the simulator is answered in its own namespace.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from interop.errors import HarnessFault, MachineError
from interop.execution.archive import Limits, unpack
from interop.execution.artefacts import trace_limits
from interop.execution.daemon import WEIGHT, Container, ContainerSpec, Daemon, Event
from interop.execution.spec import CONTRACT, GUEST, Rights
from interop.link_words import bare_link_in_words
from interop.links import baseline
from interop.links.cross import event_name
from interop.links.memlock import REFUSED, memlock
from interop.links.tools import Ends, container_name, start_until
from interop.model import (
    Baseline,
    CaptureReport,
    ErrorCode,
    Host,
    Interval,
    Protocol,
    RealLink,
    RealLinkReport,
    Role,
    Run,
)
from interop.units import MIB

SERVER_PATIENCE = 10
"""Seconds that a server is waited for, as in the QUIC Interop Runner."""
SERVER_SILENT = 3
"""Exit status of a capture that waited for a server in vain."""
HOLD_PATIENCE = 20.0
"""Seconds within which a namespace is ready."""
SETTLE = 0.3
"""Seconds beyond a round trip for which captures go on when both endpoints have ended."""
BASELINE_AGE = 300.0
"""Seconds after which the bare link is looked at again, before the next run."""
FLUSH = 10.0
"""Seconds within which a capture writes what it has."""
TRACES = {Role.CLIENT: "trace_node_left.pcap", Role.SERVER: "trace_node_right.pcap"}


def captured(ends: Ends, role: Role, protocol: Protocol) -> dict[str, str]:
    """Which packets an end captures, in the words of its container: in a host's own network the run's alone."""
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

    def __init__(self, ends: Ends, captures: Mapping[Role, Container], baseline: Baseline, limits: Limits) -> None:
        """``limits``: of the traces."""
        self._limits = limits
        self._ends = ends
        self._baseline = baseline
        self._captures = captures
        self._missing = {(container.id, "capturing") for container in captures.values()}
        self._missing.add((captures[Role.SERVER].id, "server-ready"))
        self._carries = False
        self._begin = time.monotonic()

    def start(self, events: SimpleQueue[Event]) -> None:
        """Start to capture at both ends, and to wait for the server at its own."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(Container.start, self._captures.values()))
        for capture in self._captures.values():
            capture.watch(events, lines=True)

    def ready(self, event: Event) -> bool:
        """Whether both ends capture and the server answers."""
        self._missing.discard((event.container.id, event_name(event.line)))
        self._carries = not self._missing
        return self._carries

    def running(self) -> bool:
        """Whether both captures run; False if the server never answered; other ends are faults of ours."""
        for role, capture in self._captures.items():
            if not capture.running():
                if role is Role.SERVER and capture.exit().status == SERVER_SILENT:
                    return False
                words = capture.output().decode(errors="replace").strip()[-300:] or "without a word"
                raise HarnessFault(ErrorCode.CAPTURE_FAILED, f"the capture at the {role} ended: {words}")
        return True

    def cpu_seconds(self) -> float:
        """CPU time that the captures have used so far."""
        return sum(capture.cpu_seconds() for capture in self._captures.values())

    def outage(self) -> str:
        """Which host was out of reach during the run; empty if none was."""
        lost = [
            self._ends.hosts[role].name
            for role, daemon in self._ends.daemons.items()
            if daemon.out_of_reach is not None and daemon.out_of_reach >= self._begin
        ]
        return f"{' and '.join(lost)} could not be reached for a time during the run" if lost else ""

    def stop(self) -> None:
        """Let packets that are still on their way arrive, then complete the traces."""
        if self._carries:
            time.sleep(self._ends.link.round_trip_delay + SETTLE)
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda capture: capture.stop(FLUSH if self._carries else 0), self._captures.values()))

    def collect(self, directory: Path, _client: Interval | None = None, /) -> RealLinkReport | None:
        """Write both traces below ``directory/sim``; None if no client could start.

        Raises :class:`HarnessFault` if a capture has not kept every packet that it was offered.
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
        return RealLinkReport(client.name, server.name, skew, *captured, self._baseline, bool(self.outage()))

    def _fetch(self, role: Role, directory: Path) -> CaptureReport:
        target = directory / f".{role}-capture"
        target.mkdir()
        with self._captures[role].fetch("/logs") as archive:
            unpack(archive, target, self._limits)
        try:
            (target / "trace.pcap").replace(directory / "sim" / TRACES[role])
            counts = json.loads((target / "capture.json").read_text())
            report = CaptureReport(**{name: int(counts[name]) for name in CaptureReport.__dataclass_fields__})
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = f"the capture at the {role} left no whole trace ({error})"
            raise HarnessFault(ErrorCode.CAPTURE_FAILED, reason) from error
        (target / "capture.json").unlink()
        target.rmdir()
        if report.dropped or report.captured < report.received:
            lost = max(report.dropped, report.received - report.captured)
            reason = f"the capture at the {role} lost {lost} of {report.received} packets: its host is too busy"
            raise HarnessFault(ErrorCode.CAPTURE_FAILED, reason)
        return report


# ---- the testbed ----------------------------------------------------------------------------


class BareLink:
    """What is known of a link without endpoints; looked at again when that is old."""

    def __init__(self, ends: Ends) -> None:
        self._ends = ends
        self._taken = 0.0
        self._baseline: Baseline | None = None

    def take(self, fill: float = 0.0) -> Baseline:
        """Look at it now, with ``fill`` seconds of TCP."""
        self._baseline = baseline.take(self._ends, fill)
        self._taken = time.monotonic()
        return self._baseline

    def current(self) -> Baseline:
        """Not older than ``BASELINE_AGE``, nor than the last time that a host was out of reach."""
        lost = max((daemon.out_of_reach or 0.0 for daemon in self._ends.daemons.values()), default=0.0)
        if self._baseline is None or self._taken < max(time.monotonic() - BASELINE_AGE, lost):
            return self.take()
        return self._baseline


class RealTestbed:
    """Two hosts with a link between them; everything on them is made anew for each run."""

    def __init__(self, ends: Ends, bare: BareLink, memlock: Mapping[Role, int | None]) -> None:
        self._ends = ends
        self._bare = bare
        self._memlock = memlock
        self._holders: dict[Role, Container] = {}

    def memlock(self, role: Role) -> int | None:
        """RLIMIT_MEMLOCK that the endpoint gets at its host, bytes."""
        return self._memlock[role]

    def daemon(self, role: Role) -> Daemon:
        """Where the endpoint in ``role`` runs."""
        return self._ends.daemons[role]

    def network(self, role: Role) -> str:
        """Network mode that puts an endpoint into the namespace that is held for it."""
        return f"container:{self._holders[role].id}"

    def rights(self, role: Role) -> Rights:
        """Those of the endpoint contract, but in a host's own network."""
        return GUEST if self._ends.hosts[role].host_network else CONTRACT

    def reset(self) -> None:
        """Nothing is left of the run before."""

    @contextmanager
    def link(self, run: Run, *, wait_for_server: bool = True) -> Iterator[CapturedLink]:
        """Namespaces at both ends, held; and captures in them, created and not yet started."""
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
            without=("ALL",),
            pids=32,
        )
        return self._ends.daemons[role].container(spec)

    def _capture(self, role: Role, protocol: Protocol, wait: bool) -> AbstractContextManager[Container]:
        awaited = "tcp" if protocol is Protocol.TCP else "quic"
        spec = ContainerSpec(
            name=container_name(self._ends.daemons[role], f"{role}-capture"),
            image=self._ends.image,
            command=("capture",),
            environment={
                "AWAIT": awaited if wait else "",
                "PATIENCE": str(SERVER_PATIENCE),
                "INTERFACE": self._ends.interface(role),
                **captured(self._ends, role, protocol),
            },
            network=self.network(role),
            capabilities=("NET_RAW",),
            without=("ALL",),
            memory=512 * MIB,
            pids=64,
            weight=WEIGHT,
        )
        return self._ends.daemons[role].container(spec)


def _hold(container: Container) -> None:
    """Start the holder of a namespace and wait until that is ready."""
    start_until(container, "holding", HOLD_PATIENCE)


# ---- the backend ----------------------------------------------------------------------------


@dataclass(frozen=True)
class HostLocks:
    """A lock per host, the same for all links that share it."""

    locks: dict[str, threading.Lock] = field(default_factory=dict)

    def of(self, *hosts: str) -> tuple[threading.Lock, ...]:
        """Those of some hosts, in an order that is the same for everybody."""
        return tuple(self.locks.setdefault(host, threading.Lock()) for host in sorted(set(hosts)))


class RealBackend:
    """A link between two hosts that are connected already."""

    def __init__(
        self, link: RealLink, hosts: Mapping[str, Host], daemons: Mapping[str, Daemon], image: str, locks: HostLocks
    ) -> None:
        """``hosts`` and ``daemons`` by the name of the host; ``image`` is the id of the link tools' image."""
        ends = {Role.CLIENT: link.client_host, Role.SERVER: link.server_host}
        self._ends = Ends(
            link=link,
            hosts={role: hosts[name] for role, name in ends.items()},
            daemons={role: daemons[name] for role, name in ends.items()},
            image=image,
            busy=locks.of(*ends.values()),
        )
        self._bare = BareLink(self._ends)
        self._memlock: dict[Role, int | None] = {}
        self._probing = threading.Lock()

    def examine(self, fill: float, say: Callable[[str], None]) -> None:
        """Look at the bare link before a campaign, with ``fill`` seconds of TCP; raises :class:`MachineError`."""
        try:
            say(f"{self._ends.name}: {bare_link_in_words(self._bare.take(fill))}")
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
        """A testbed; the first one finds out what both daemons allow, and nothing else is made before a run."""
        with self._probing:
            if not self._memlock:
                self._memlock = {role: self._allowed(role) for role in Role}
        yield RealTestbed(self._ends, self._bare, self._memlock)

    def _allowed(self, role: Role) -> int | None:
        daemon = self._ends.daemons[role]
        return memlock(daemon, container_name(daemon, f"{role}-memlock"), self._ends.image)
