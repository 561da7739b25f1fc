"""Emulated links: a testbed of three network namespaces, joined by veth pairs, with ns-3 in the middle.

No bridge, no default route, no address pool: the endpoints reach the simulator and nothing else, and testbeds with the
same addresses can stand side by side. All of it is made through the Docker API, so a remote daemon goes the same way.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

from interop.errors import HarnessFault
from interop.execution.archive import Limits, unpack
from interop.execution.artefacts import trace_limits
from interop.execution.daemon import WEIGHT, Container, ContainerSpec, Daemon, Event
from interop.execution.spec import CONTRACT, Rights
from interop.links.cross import CrossFlow, cross_flow, event_name
from interop.links.memlock import REFUSED, memlock, works
from interop.links.simulator import read_report, scenario
from interop.model import CrossTraffic, ErrorCode, Interval, Role, Run, SimulatorReport
from interop.units import MIB

ADDRESSES = {
    "client": "eth0=193.167.0.100/24,fd00:cafe:cafe:0::100/64",
    "simulator": "eth0=193.167.0.2/24,fd00:cafe:cafe:0::2/64;eth1=193.167.100.2/24,fd00:cafe:cafe:100::2/64",
    "server": "eth0=193.167.100.100/24,fd00:cafe:cafe:100::100/64",
}
"""Addresses that the images of the QUIC Interop Runner hard-code."""
CLIENT, SERVER = ("193.167.0.100", "fd00:cafe:cafe::100"), ("193.167.100.100", "fd00:cafe:cafe:100::100")
GATEWAYS = {
    "client": ("193.167.0.2", "fd00:cafe:cafe::2"),
    "simulator": ("193.167.0.2", "fd00:cafe:cafe::2"),
    "server": ("193.167.100.2", "fd00:cafe:cafe:100::2"),
}
SERVER_PATIENCE = 10
"""Seconds that the simulator waits for the server's first answer, as in the QUIC Interop Runner."""
SERVER_SILENT = 3
"""The simulator's exit status when it waited in vain."""
NO_FORWARDING = {
    "net.ipv4.ip_forward": "0",
    "net.ipv6.conf.all.disable_ipv6": "0",
    "net.ipv6.conf.default.disable_ipv6": "0",
}


def hosts(gateways: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Names of the endpoint contract: each role plain and with 4, 6 and 46."""
    entries: list[tuple[str, str]] = []
    for name, (ipv4, ipv6) in (("client", CLIENT), ("server", SERVER), ("sim", gateways)):
        entries += [(name, ipv4), (f"{name}4", ipv4), (f"{name}6", ipv6), (f"{name}46", ipv4), (f"{name}46", ipv6)]
    return tuple(entries)


# ---- the link of one run --------------------------------------------------------------------


class SimulatedLink:
    """The simulator of one run, and the flow that competes with the transfer, if there is one."""

    def __init__(
        self, container: Container, holders: Collection[Container], limits: Limits, flow: CrossFlow | None = None
    ) -> None:
        """``holders``: of the testbed's namespaces; ``limits``: of the traces."""
        self._container = container
        self._holders = holders
        self._limits = limits
        self._flow = flow
        self._carries = False
        self._ended_early = ""
        self._events: SimpleQueue[Event] = SimpleQueue()

    def start(self, events: SimpleQueue[Event]) -> None:
        """Start the simulator: it waits for the server, then carries packets."""
        self._events = events
        if self._flow:
            self._flow.listen()
        self._container.start()
        self._container.watch(events, lines=True)

    def ready(self, event: Event) -> bool:
        """Whether the simulator says that it carries packets, and the competing flow has begun."""
        if not self._carries and event.container is self._container and event_name(event.line) == "running":
            self._carries = True
            if self._flow:
                self._flow.connect(self._events)
        return self._carries and (self._flow is None or self._flow.connected(event))

    def running(self) -> bool:
        """Whether the simulator runs; False if the server never answered; its other ends are faults of ours."""
        if self._container.running():
            if self._flow:
                self._flow.check()
            return True
        status = self._container.exit().status
        if status != SERVER_SILENT:
            raise HarnessFault(ErrorCode.SIMULATOR_FAILED, f"the simulator ended ({status}): {self._last_words()}")
        return False

    @property
    def pid(self) -> int:
        """Process id of the simulator on the daemon's host."""
        return self._container.pid

    def cpu_seconds(self) -> float:
        """CPU time that the simulator has used so far."""
        return self._container.cpu_seconds()

    def outage(self) -> str:
        """Nothing excuses a pair here but what :meth:`running` raises."""
        return ""

    def _last_words(self) -> str:
        return self._container.output().decode(errors="replace").strip()[-300:] or "without a word"

    def stop(self) -> None:
        """Stop the simulator; its traces are complete then."""
        if self._flow:
            self._ended_early = self._flow.ended()  # since the last look at it
        self._container.stop(grace=5 if self._carries else 0)
        if self._flow:
            self._flow.stop()

    def collect(self, directory: Path, client: Interval | None = None, /) -> SimulatorReport | None:
        """Write traces and report below ``directory/sim``; None if it carried nothing, for want of a server.

        Raises :class:`HarnessFault` if there should be a report and there is none, if a competing flow ended before
        the transfer, or if the testbed has ended: a daemon that restarts during the run ends all its containers.
        """
        report = self._report(directory, client) if self._carries else None
        if any(not holder.running() for holder in self._holders):  # looked at last: a daemon ends one after another
            reason = "the testbed has ended during the run, as when the Docker daemon is started anew"
            raise HarnessFault(ErrorCode.DAEMON_FAULT, reason)
        if self._ended_early:
            raise HarnessFault(ErrorCode.SIMULATOR_FAILED, self._ended_early)
        return report

    def _report(self, directory: Path, client: Interval | None) -> SimulatorReport:
        target = directory / "sim"
        target.mkdir(parents=True, exist_ok=True)
        with self._container.fetch("/logs") as archive:
            unpack(archive, target, self._limits)
        try:
            return read_report(json.loads((target / "link.json").read_text()), client)
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = f"the simulator left no report ({error}); its last words: {self._last_words()}"
            raise HarnessFault(ErrorCode.SIMULATOR_FAILED, reason) from error


# ---- the testbed ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Abilities:
    """What the daemon can do beyond what every daemon can."""

    realtime_priority: bool
    """The simulator may run with real-time priority."""
    memlock: int | None
    """RLIMIT_MEMLOCK that endpoints get; None for the daemon's default."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the results should know."""
        notes = []
        if not self.realtime_priority:
            notes.append("the simulator runs without real-time priority; runs in which it falls behind are repeated")
        if self.memlock is None:
            notes.append(REFUSED.format("the daemon"))
        return tuple(notes)


RESET_PATIENCE = 10.0
"""Seconds within which a testbed puts its networks back."""
DEADLINE_SCHEDULING = (
    *("chrt", "--deadline", "--sched-runtime", "1000000", "--sched-deadline", "10000000"),
    *("--sched-period", "10000000", "0", "true"),
)
"""A tenth of one CPU, before all others (sched(7)): less than the simulator asks for."""


def probe(daemon: Daemon, image: str) -> Abilities:
    """Try once what some daemons refuse, so that no run has to."""

    priority = ContainerSpec(_name(daemon, "probe"), image, DEADLINE_SCHEDULING, capabilities=("SYS_NICE",))
    return Abilities(realtime_priority=works(daemon, priority), memlock=memlock(daemon, _name(daemon, "probe"), image))


class Ns3Testbed:
    """Three holders of network namespaces and what joins them; serves one run after another."""

    def __init__(self, daemon: Daemon, image: str, abilities: Abilities, holders: dict[str, Container]) -> None:
        self._daemon = daemon
        self._image = image
        self._abilities = abilities
        self._holders = holders
        self._events: SimpleQueue[Event] = SimpleQueue()
        for holder in holders.values():
            holder.watch(self._events, lines=True)

    def memlock(self, _role: Role) -> int | None:
        """RLIMIT_MEMLOCK that endpoints get here, bytes."""
        return self._abilities.memlock

    def daemon(self, _role: Role) -> Daemon:
        """The one daemon of the testbed."""
        return self._daemon

    def network(self, role: Role) -> str:
        """Network mode that puts an endpoint into its namespace."""
        return f"container:{self._holders[role].id}"

    def rights(self, _role: Role) -> Rights:
        """Those of the endpoint contract: its namespace is put back after each run."""
        return CONTRACT

    def reset(self) -> None:
        """Have each holder put addresses, routes and rules of its namespace back, and wait until it is done."""
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
        spec = ContainerSpec(
            name=_name(self._daemon, "sim"),
            image=self._image,
            environment={
                "SCENARIO": scenario(run.test_case.emulated, run.seed, run.protocol),
                "WAITFORSERVER": "server:443" if wait_for_server else "",
                "WAITTIMEOUT": str(SERVER_PATIENCE),
            },
            network=f"container:{self._holders['simulator'].id}",
            capabilities=("NET_ADMIN", "NET_RAW", *(("SYS_NICE",) if self._abilities.realtime_priority else ())),
            without=("ALL",),
            memory=2048 * MIB,
            weight=WEIGHT,
        )
        with ExitStack() as stack:
            container = stack.enter_context(self._daemon.container(spec))
            traffic = run.test_case.emulated.cross_traffic
            flow = stack.enter_context(self._cross_flow(traffic)) if traffic else None
            yield SimulatedLink(container, self._holders.values(), trace_limits(run.test_case), flow)

    def _cross_flow(self, traffic: CrossTraffic) -> AbstractContextManager[CrossFlow]:
        networks = {role: self.network(role) for role in Role}
        addresses = {
            Role.CLIENT: (CLIENT[0], GATEWAYS["client"][0]),
            Role.SERVER: (SERVER[0], GATEWAYS["server"][0]),
        }
        return cross_flow(self._daemon, self._image, _name(self._daemon, "cross"), networks, addresses, traffic)


class Ns3Backend:
    """Testbeds at one daemon, made from one simulator image."""

    def __init__(self, daemon: Daemon, image: str, abilities: Abilities | None = None) -> None:
        """``abilities``: None to find out."""
        self._daemon = daemon
        self._image = image
        self._abilities = abilities
        self._probing = threading.Lock()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the results should know of this daemon."""
        return self._abilities.notes if self._abilities else ()

    @contextmanager
    def open(self) -> Iterator[Ns3Testbed]:
        """A testbed; gone when the block is left."""
        with self._probing:
            if self._abilities is None:
                self._abilities = probe(self._daemon, self._image)
        with ExitStack() as stack:
            holders = {
                part: stack.enter_context(self._daemon.container(_holder(self._daemon, self._image, part)))
                for part in ("client", "simulator", "server")
            }
            with ThreadPoolExecutor() as pool:
                list(pool.map(Container.start, holders.values()))
            _plumb(self._daemon, self._image, [holder.pid for holder in holders.values()])
            yield Ns3Testbed(self._daemon, self._image, self._abilities, holders)


def _holder(daemon: Daemon, image: str, part: str) -> ContainerSpec:
    return ContainerSpec(
        name=_name(daemon, f"{part}-holder"),
        image=image,
        command=("holder",),
        environment={"ADDRESSES": ADDRESSES[part]},
        network="none",
        hostname="sim" if part == "simulator" else part,
        hosts=hosts(GATEWAYS[part]),
        capabilities=("NET_ADMIN",),
        without=("ALL",),
        sysctls=NO_FORWARDING,
        pids=32,
    )


def _plumb(daemon: Daemon, image: str, pids: list[int]) -> None:
    """Join the namespaces of client, simulator and server by veth pairs that never appear on the host."""
    spec = ContainerSpec(
        name=_name(daemon, "plumb"),
        image=image,
        command=("plumb", *map(str, pids)),
        network="host",
        host_pids=True,
        capabilities=("NET_ADMIN",),
        without=("ALL",),
    )
    with daemon.container(spec) as container:
        container.start()
        if not container.wait(20) or container.exit().status != 0:
            words = container.output().decode(errors="replace").strip()[-300:]
            raise HarnessFault(ErrorCode.DAEMON_FAULT, f"the testbed's networks could not be made: {words}")


_numbers = itertools.count(1)


def _name(daemon: Daemon, what: str) -> str:
    """A container name that no other campaign uses."""
    return f"quicsat-{daemon.campaign}-{next(_numbers)}-{what}"
