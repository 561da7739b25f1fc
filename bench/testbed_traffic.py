"""Sends streams and pings through a testbed, with udp-stream and tcp-stream of the simulator image; no script."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from typing import Protocol as Interface

import numpy as np

from quicsat.docker.archive import ArchiveLimits, unpack
from quicsat.docker.client import Daemon
from quicsat.docker.containers import Container, ContainerEvent, ContainerSpec, create_container
from quicsat.links.addresses import CLIENT, GATEWAYS, SERVER
from quicsat.links.ns3_testbed import Ns3Backend, Ns3Testbed
from quicsat.model.emulated_link import EmulatedLink, Interval, SimulatorReport
from quicsat.model.errors import HarnessFault
from quicsat.model.implementation import Implementation, Protocol, Role
from quicsat.model.outcomes import ErrorCode
from quicsat.model.run import Run
from quicsat.model.test_case import TestCase
from quicsat.model.units import MS
from quicsat.traces.records import NANOSECONDS, records

UDP_IPV4, UDP_IPV6, PPP = 28, 48, 2
"""Bytes that the link carries beside a payload."""
ETHERNET_HEADER = 14
PING_SIZE, STREAM_SIZE = 100, 1200
"""Bytes of payload."""
SMALL, PER_SECOND = 100, 5_000
"""Bytes of payload and packets per second of the streams that fill no queue."""
SMALL_BITS = (SMALL + UDP_IPV4 + PPP) * 8
WAYS = ("forward", "return")
PORT, ECHO_PORT = 4433, 4442
STEADY = (0.3, 0.95)
"""Beginning and end of the steady state, as shares of a trace's packets."""
PATIENCE = 120.0
PREPARE = 'mkdir -p /logs; ip route replace default via "$0"; ip -6 route replace default via "$1"; shift'
"""Shell words with which an endpoint sends its packets to the simulator."""
REPORT = "--report=/logs/report.json"


@dataclass(frozen=True)
class Flow:
    """A stream to be sent."""

    way: str
    """``forward`` or ``return``."""
    rate: float
    """Of the packets as the link carries them, bit/s."""
    duration: float
    size: int = STREAM_SIZE
    version: int = 4
    catch_up: float = 1 * MS
    """Delay of the sender, in seconds, that it makes up for by a burst."""
    burst: int = 0
    """Packets that are sent at once at the beginning, in addition to those of the rate."""
    ecn: int = 0
    """ECN codepoint of all packets: 0 none, 1 ECT(1), 2 ECT(0)."""

    @property
    def sender(self) -> Role:
        """Who sends it."""
        return Role.SERVER if self.way == "forward" else Role.CLIENT

    @property
    def receiver(self) -> Role:
        """Who receives it."""
        return Role.CLIENT if self.way == "forward" else Role.SERVER

    @property
    def wire_bits(self) -> int:
        """Bits of a packet as the link carries it."""
        return (self.size + (UDP_IPV4 if self.version == 4 else UDP_IPV6) + PPP) * 8


@dataclass(frozen=True)
class FlowSeen:
    """What became of a stream."""

    sent: int
    received: int
    missing: tuple[int, ...]
    out_of_order: int
    corrupted: int
    """Those of the received ones that were not as they had been sent."""
    duration: float
    steady_rate: float
    """bit/s on the link, by the receiver's clock."""
    delays: tuple[float, float, float, float]
    """One-way delay, seconds: min, median, p95, max."""
    wire_bits: int


@dataclass(frozen=True)
class Seen:
    """What one run of the simulator left."""

    report: SimulatorReport
    left: Path
    """Trace at the client's side."""
    right: Path
    """Trace at the server's side."""
    flows: Mapping[str, FlowSeen] = field(default_factory=dict)
    round_trips: tuple[float, ...] = ()
    """Seconds, without the echo's own time."""

    def traces(self, way: str) -> tuple[Path, Path]:
        """Those before and behind the link in a direction."""
        return (self.right, self.left) if way == "forward" else (self.left, self.right)


class Traffic(Interface):
    """What can be measured with either clock."""

    def stream(self, link: EmulatedLink, flows: list[Flow], seed: int = 1) -> Seen:
        """Send all flows at once."""

    def ping(self, link: EmulatedLink, version: int, n: int, beside: Flow | None = None) -> Seen:
        """Ask ``n`` times, 20 ms apart, while ``beside`` flows if there is one."""


def stream_both_ways(
    bench: Traffic, link: EmulatedLink, n: int, seed: int = 7, per_second: float = PER_SECOND, version: int = 4
) -> Seen:
    """``n`` small packets in each direction."""
    bits = Flow("forward", 0, 0, SMALL, version).wire_bits
    return bench.stream(link, [Flow(way, per_second * bits, n / per_second, SMALL, version) for way in WAYS], seed=seed)


def run_over(link: EmulatedLink, image: str, timeout: float, seed: int, protocol: Protocol = Protocol.HQ) -> Run:
    """What a testbed is to have for the traffic of programs of ``image``."""
    test_case = TestCase("bench", "B", "traffic of our own", link, (1,), 1, timeout)
    nobody = Implementation("udp-stream", image, "", frozenset(Role))
    return Run(nobody, nobody, test_case, 1, seed, protocol)


def collected(collect: Callable[[Path], object], directory: Path, **seen: Any) -> Seen:
    """What the simulator left, as ``collect`` brings it into a folder."""
    shutil.rmtree(directory / "sim", ignore_errors=True)
    report = collect(directory)
    if not isinstance(report, SimulatorReport):
        raise HarnessFault(ErrorCode.SIMULATOR_FAILED, "the simulator left no report")
    left, right = (directory / "sim" / f"trace_node_{side}.pcap" for side in ("left", "right"))
    return Seen(report, left, right, **seen)


class Bench:
    """A testbed in real time and what is started in it."""

    def __init__(
        self, daemon: Daemon, image: str, testbed: Ns3Testbed, numbers: Iterator[int], directory: Path
    ) -> None:
        self._daemon = daemon
        self._image = image
        self._plain = testbed
        self._testbed = testbed
        """The one with the networks of the last link."""
        self._numbers = numbers
        self._directory = directory
        self._link_pid = 0

    @classmethod
    @contextmanager
    def open(cls, daemon: Daemon, image: str, backend: Ns3Backend, numbers: Iterator[int]) -> Iterator[Bench]:
        """A bench; its testbed and traces are gone when the block is left."""
        with backend.open() as testbed, tempfile.TemporaryDirectory(prefix="quicsat-bench-") as directory:
            yield cls(daemon, image, testbed, numbers, Path(directory))

    # ---- what can be measured ----------------------------------------------------------------

    def stream(self, link: EmulatedLink, flows: list[Flow], seed: int = 1) -> Seen:
        """Send all flows at once."""
        with ExitStack() as stack:
            simulator = stack.enter_context(self._simulator(link, seed))
            results = self._finish(self._begin(stack, flows))
            return simulator(flows=results)

    def ping(self, link: EmulatedLink, version: int, n: int, beside: Flow | None = None) -> Seen:
        """Ask ``n`` times, 20 ms apart, while ``beside`` flows if there is one."""
        with ExitStack() as stack:
            simulator = stack.enter_context(self._simulator(link, 1))
            self._program(stack, Role.SERVER, "udp-stream", "echo", f"--port={ECHO_PORT}", REPORT, ready="ready")
            streams = self._begin(stack, [beside] if beside else [])
            report = _report(self._program(stack, Role.CLIENT, *ping_words(link, version, n), REPORT))
            flows = self._finish(streams)
            return simulator(flows=flows, round_trips=tuple(value / NANOSECONDS for value in report["round_trip_ns"]))

    @contextmanager
    def busy(self, loops: int) -> Iterator[None]:
        """That many processes that want a CPU each."""
        with ExitStack() as stack:
            for _ in range(loops):
                spec = ContainerSpec(self._name("busy"), self._image, ("bash", "-c", "while :; do :; done"))
                stack.enter_context(create_container(self._daemon, spec)).start()
            yield

    def tcp(self, link: EmulatedLink, duration: float, protocol: Protocol) -> Seen:
        """Send as much as TCP allows from server to client, for some seconds, in a run over ``protocol``."""
        with ExitStack() as stack:
            simulator = stack.enter_context(self._simulator(link, 1, protocol))
            self._program(stack, Role.CLIENT, "tcp-stream", "receive", f"--port={PORT}", ready="listening")
            host = f"--host={CLIENT[0]}"
            sender = self._program(stack, Role.SERVER, "tcp-stream", "send", f"--port={PORT}", host, ready="connected")
            time.sleep(duration)
            sender.stop(grace=0)
            return simulator()

    def stalled(
        self, link: EmulatedLink, flow: Flow, stalls: Iterable[tuple[float, float]]
    ) -> tuple[Seen, list[Interval]]:
        """Stop the simulator while ``flow`` is being sent, which must last long enough, at a daemon of this machine.

        ``stalls``: seconds to wait and seconds to stop. What is returned beside is when it was really stopped.
        """
        stopped: list[Interval] = []
        with ExitStack() as stack:
            simulator = stack.enter_context(self._simulator(link, 1))
            pid = self._link_pid
            started = self._begin(stack, [flow])
            for wait, length in stalls:
                time.sleep(wait)
                os.kill(pid, signal.SIGSTOP)
                try:
                    begin = time.time()
                    time.sleep(length)
                    end = time.time()
                finally:
                    os.kill(pid, signal.SIGCONT)
                stopped.append(Interval(begin, end))
            return simulator(flows=self._finish(started)), stopped

    # ---- how ---------------------------------------------------------------------------------

    def _name(self, what: str) -> str:
        return f"quicsat-{self._daemon.campaign}-bench{next(self._numbers)}-{what}"

    @contextmanager
    def _simulator(
        self, link: EmulatedLink, seed: int, protocol: Protocol = Protocol.HQ
    ) -> Iterator[Callable[..., Seen]]:
        run = run_over(link, self._image, PATIENCE, seed, protocol)
        self._testbed = self._plain.laid_out(run)
        self._testbed.reset()
        events: SimpleQueue[ContainerEvent] = SimpleQueue()
        with self._testbed.link(run, wait_for_server=False) as simulator:
            simulator.start(events)
            while not simulator.ready(_next(events)):
                simulator.running()
            self._link_pid = simulator.pid

            def finish(**seen: Any) -> Seen:
                simulator.running()  # raises if it or a competing flow has ended
                simulator.stop()
                return collected(simulator.collect, self._directory, **seen)

            yield finish

    def _program(self, stack: ExitStack, role: Role, *words: str, ready: str = "") -> Container:
        """Start a program, and wait until it says that it is ``ready``."""
        ipv4, ipv6 = GATEWAYS[role]
        spec = ContainerSpec(
            self._name("-".join(words[:2])),
            self._image,
            ("sh", "-c", f'{PREPARE}; exec "$@"', ipv4, ipv6, *words),
            network=self._testbed.network(role),
            capabilities=("NET_ADMIN",),
        )
        container = stack.enter_context(create_container(self._daemon, spec))
        container.start()
        deadline = time.monotonic() + PATIENCE
        while ready.encode() not in container.output() and time.monotonic() < deadline:
            time.sleep(0.02)
        return container

    def _begin(self, stack: ExitStack, flows: list[Flow]) -> list[tuple[Flow, Container, Container]]:
        words = ("udp-stream", "receive", f"--port={PORT}", REPORT)
        receivers = [self._program(stack, flow.receiver, *words, ready="ready") for flow in flows]
        return [
            (flow, receiver, self._program(stack, flow.sender, *send_words(flow), REPORT))
            for flow, receiver in zip(flows, receivers, strict=True)
        ]

    def _finish(self, started: list[tuple[Flow, Container, Container]]) -> dict[str, FlowSeen]:
        return {flow.way: flow_seen(flow, _report(sender), _report(receiver)) for flow, receiver, sender in started}


def send_words(flow: Flow) -> tuple[str, ...]:
    """The program that sends a flow, without its report."""
    packets = round(flow.duration * flow.rate / flow.wire_bits)
    addresses = CLIENT if flow.receiver is Role.CLIENT else SERVER
    return (
        "udp-stream",
        "send",
        f"--host={addresses[flow.version == 6]}",
        f"--port={PORT}",
        f"--rate={flow.rate}",
        f"--size={flow.size}",
        f"--count={packets}",
        f"--catch-up={flow.catch_up:.6f}",
        f"--burst={flow.burst}",
        f"--ecn={flow.ecn}",
    )


def ping_words(link: EmulatedLink, version: int, n: int) -> tuple[str, ...]:
    """The program that asks the echo at the server, without its report."""
    return (
        "udp-stream",
        "ping",
        f"--host={SERVER[version == 6]}",
        f"--port={ECHO_PORT}",
        f"--size={PING_SIZE}",
        f"--count={n}",
        f"--idle={3 * link.round_trip_delay}",
    )


def _next(events: SimpleQueue[ContainerEvent]) -> ContainerEvent:
    try:
        return events.get(timeout=PATIENCE)
    except Empty:
        raise HarnessFault(ErrorCode.SIMULATOR_FAILED, "the simulator does not start") from None


def _report(container: Container) -> dict[str, Any]:
    """What a program of ours wrote at its end."""
    if not container.wait(PATIENCE) or container.exit().status != 0:
        words = container.output().decode(errors="replace").strip()[-300:]
        raise HarnessFault(ErrorCode.HARNESS_FAULT, f"{container.spec.name} failed: {words}")
    with tempfile.TemporaryDirectory() as directory:
        with container.fetch("/logs") as archive:
            unpack(archive, Path(directory), ArchiveLimits())
        document: dict[str, Any] = json.loads(Path(directory, "report.json").read_text())
        return document


def flow_seen(flow: Flow, sender: dict[str, Any], receiver: dict[str, Any]) -> FlowSeen:
    """What the programs at both ends reported."""
    least, middle, p95, most = (value / NANOSECONDS for value in receiver["delay_ns"])
    return FlowSeen(
        sent=sender["sent"],
        received=receiver["received"],
        missing=tuple(receiver["missing"]),
        out_of_order=receiver["out_of_order"],
        corrupted=receiver["corrupted"],
        duration=sender["duration_ns"] / NANOSECONDS,
        steady_rate=receiver["steady_rate"],
        delays=(least, middle, p95, most),
        wire_bits=flow.wire_bits,
    )


def rate_in_trace(path: Path) -> float:
    """Rate of the large packets in a trace in their steady state, as the link carries them, bit/s."""
    packets = [(record.time, record.length) for record in records(path) if record.length >= STREAM_SIZE]
    first, last = (round(share * (len(packets) - 1)) for share in STEADY)
    times, lengths = np.array(packets, dtype=np.int64)[first : last + 1].T
    bits = (lengths[1:] - ETHERNET_HEADER + PPP).sum() * 8
    return float(bits * NANOSECONDS / (times[-1] - times[0]))
