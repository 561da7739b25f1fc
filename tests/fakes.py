"""A Docker engine without Docker: it answers the calls of the library, and its containers are threads.

All of the core is real, the engine's client, the testbed and the analysis too; only what stands behind
``docker.APIClient`` is made up. tests/engine/test_contract.py holds the same expectations against a real engine.
"""

from __future__ import annotations

import io
import itertools
import json
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

import docker
import docker.errors
import pytest
import requests.exceptions
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

from quicsat.analysis import run_outcome
from quicsat.cli import machine_check
from quicsat.docker.archive import pack
from quicsat.docker.client import Daemon
from quicsat.execution import campaign_setup
from quicsat.execution.campaign_config import CampaignOutcome, Conditions, ImageSource, NewCampaign
from quicsat.execution.observer import Observer
from quicsat.execution.run_campaign import run_campaign
from quicsat.execution.run_config import RunConfig
from quicsat.execution.transfer import Transfer
from quicsat.images.pull_or_build import Policy
from quicsat.links.backend import Testbed
from quicsat.links.gateway_description import SIDES
from quicsat.links.guest_roots import MOUNT, VOLUME
from quicsat.links.session import RunControl
from quicsat.links.virtual_machine import DIRECTORY
from quicsat.model.emulated_link import Direction, DirectionReport, EmulatedLink
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import Outcome, Verdict
from quicsat.model.real_link import Host
from quicsat.model.results import ImageFacts, Measurement
from quicsat.model.run import Run
from quicsat.model.test_case import TestCase
from quicsat.model.units import MBPS, MS
from quicsat.plan.make_plan import make_plan
from quicsat.plan.selection import Selection
from tests.quic_builder import Connection, Packet, pcap, stream_frame

DELAY = 0.015
PIECE = 1000
"""Bytes of a file in one packet."""
LINK = EmulatedLink.symmetric("simple-p2p", Direction(DELAY, 20 * MBPS, 25))
PATIENCE = 60.0
"""Seconds for what takes no time unless the machine is busy."""
CASE = TestCase("short", "SH", "", LINK, (2500, 700), 1, PATIENCE)
SIMULATOR = "simulator"
LINK_TOOLS = "link-tools"
VIRTUAL_TIME = "virtual-time"
LINK_GATEWAYS = "link-gateways"
_numbers = itertools.count(1)


# ---- the inside of a container --------------------------------------------------------------


@dataclass(eq=False)
class Life:
    """A container, as the program in it sees it."""

    engine: FakeEngine
    name: str
    image: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    host_config: Mapping[str, Any]
    hostname: str | None
    labels: Mapping[str, str]
    id: str = field(default_factory=lambda: f"id{next(_numbers)}")
    created: float = field(default_factory=time.time)
    files: dict[str, bytes] = field(default_factory=dict)
    """By path without the leading slash."""
    directories: set[str] = field(default_factory=set)
    """Those that were put into it."""
    lines: list[str] = field(default_factory=list)
    terminated: threading.Event = field(default_factory=threading.Event)
    """SIGTERM has come."""
    listening: threading.Event = field(default_factory=threading.Event)
    """It is a server that answers."""
    ended: threading.Event = field(default_factory=threading.Event)
    news: threading.Condition = field(default_factory=threading.Condition)
    """Told of each line, and of the end: a thousand followers that poll keep a machine busy."""
    written: int = 0
    """Bytes in its own layer."""
    status: str = "created"
    exit_code: int = 0
    out_of_memory: bool = False
    signalled: bool = False
    """The engine was asked to send it a signal."""
    signalled_at: float = 0.0
    """When the engine records that, seconds since 1970."""
    error: str = ""
    times: Mapping[str, str] = field(default_factory=dict)
    """``StartedAt`` and ``FinishedAt`` of its state, if the engine tells them."""
    readers: int = 0
    """Archives of it that somebody has begun to read, and neither read to their end nor closed."""

    def say(self, line: str) -> None:
        """A line of standard output."""
        with self.news:
            self.lines.append(line)
            self.news.notify_all()

    def end(self, exit_code: int) -> None:
        """The first end counts."""
        with self.engine.mutex:
            if not self.ended.is_set():
                self.status, self.exit_code = "exited", exit_code
                self.ended.set()
                self.terminated.set()
                self.listening.set()  # who waits for it need not wait any longer
        with self.news:
            self.news.notify_all()

    def run(self, program: Program) -> None:
        self.end(program(self))

    def answers(self) -> bool:
        """Whether it is a server that begins to listen while the engine's simulators wait for it."""
        return self.listening.wait(self.engine.server_patience) and not self.ended.is_set()

    @property
    def pid(self) -> int:
        """Of the container's first process."""
        return 4000 + int(self.id.removeprefix("id"))

    def opposite(self, role: str) -> Life | None:
        """The endpoint in ``role`` of the same testbed, if it is there."""
        return next((end for end in self.engine.all(role) if end._joined() & self._joined()), None)

    def _joined(self) -> frozenset[int]:
        """Process ids of the namespaces that a cable joins with the one that it lives in."""
        wanted = self.host_config["network_mode"].removeprefix("container:")
        holders = {life.pid for life in [*self.engine.all_lives] if life.id == wanted}  # outlived by its namespace
        return next((pids for pids in self.engine.cables if holders & pids), frozenset())


Program = Callable[[Life], int]
"""What an image does, in a thread; returns the exit status."""


def serve(life: Life) -> int:
    """A server as it should be."""
    if life.environment["TESTCASE"] != "transfer":
        return 127
    life.say("listening")
    life.files["logs/server.log"] = b"all is well\n"
    life.listening.set()
    life.terminated.wait()
    return 143


def fetch(life: Life) -> int:
    """A client as it should be."""
    if life.environment["TESTCASE"] != "transfer":
        return 127
    server = life.opposite("server")
    if server is None:
        life.ended.wait(PATIENCE)
        return 1
    for url in life.environment["REQUESTS"].split():
        name = url.rpartition("/")[2]
        life.files[f"downloads/{name}"] = server.files[f"www/{name}"]
    life.files["logs/keys.log"] = Connection().key_log.encode()
    return 0


def endpoint(life: Life) -> int:
    """An implementation as it should be, in both roles."""
    return serve(life) if life.environment["ROLE"] == "server" else fetch(life)


def only_as(role: Role, program: Program) -> Program:
    """``program`` in one role, and what should be in the other; compliant in both."""

    def run(life: Life) -> int:
        special = life.environment["ROLE"] == role and life.environment["TESTCASE"] == "transfer"
        return program(life) if special else endpoint(life)

    return run


def hang(life: Life) -> int:
    """Ignores all but SIGKILL."""
    life.listening.set()
    life.ended.wait(PATIENCE)
    return 0


def end_with(status: int) -> Program:
    """Ends at once."""
    return lambda _life: status


def after(act: Callable[[], object], program: Program) -> Program:
    """``program``, which begins when ``act`` has returned."""

    def run(life: Life) -> int:
        act()
        return program(life)

    return run


TCP_INFO = b"time,port,congestion_window\n1767225607000000000,5000,14480\n"
"""Samples of a TCP connection."""


def simulate(life: Life) -> int:
    """All commands of the simulator's image."""
    match life.command[:1]:
        case ("holder",):
            life.terminated.wait()
            return 0
        case ("plumb",):
            life.engine.cables.append(frozenset(map(int, life.command[1:])))
            return 0
        case ("chrt",) | ("true",):
            return 0
        case ("tcp-info",):
            life.files["logs/tcp_info.csv"] = TCP_INFO
            life.terminated.wait()
            return 0
        case ("sh",):
            return compete(life)
    return carry_packets(life)


def link_tools(life: Life) -> int:
    """All commands of the link tools' image."""
    word = life.command[0]
    if word == "hold":
        return hold(life)
    if word == "true":
        return 1 if life.host_config["ulimits"] and life.engine.memlock_refused else 0
    return capture(life) if word == "capture" else answer(life)


def hold(life: Life) -> int:
    """The namespace of an endpoint; with the other end's it is as if a cable joined them."""
    held = [other.pid for other in life.engine.lives.values() if other.command == ("hold",)]
    life.engine.cables.append(frozenset(held))
    life.say(json.dumps({"event": "holding"}))
    life.terminated.wait()
    return 0


def capture(life: Life) -> int:
    """A capture; at the server's end it waits for the server."""
    life.say(json.dumps({"event": "capturing"}))
    if life.environment["AWAIT"]:
        server = life.opposite("server")
        if server is None or not server.answers():
            return 3
        life.say(json.dumps({"event": "server-ready"}))
    life.terminated.wait()
    servers = [other for other in life.engine.all_lives if other.environment.get("ROLE") == "server"]
    files = [data for name, data in servers[-1].files.items() if name.startswith("www/")]
    life.files["logs/trace.pcap"] = traces(files)["server-capture" in life.name]
    if life.environment["SAMPLE"]:
        life.files["logs/tcp_info.csv"] = TCP_INFO
    counts = {"captured": 9, "received": 9, "dropped": 0} | life.engine.counts
    life.files["logs/capture.json"] = json.dumps(counts).encode()
    return 0


def answer(life: Life) -> int:
    """A probe."""
    match life.command[1:]:
        case ("answer",):
            life.say(json.dumps({"event": "answering"}))
            life.terminated.wait()
            return 0
        case ("route", *_):
            found: Any = [{"dev": "wwan0", "prefsrc": "10.0.0.2"}]
        case ("offloads", *_):
            found = {"interface": "eth0", "joining": life.engine.joining}
        case ("ask", *_):
            trips = [{"lost": "false", "delay": {"rtt": 600_000_000 + n * 1_000_000}} for n in range(19)]
            found = {"round_trips": [*trips, {"lost": "true", "delay": {}}]}
        case (*_, direction):
            found = {"end": {"sum_received": {"bits_per_second": {"forward": 12.5e6, "return": 1.5e6}[direction]}}}
        case _:
            found = {}
    if life.engine.link_down and life.command[1] == "ask":
        life.say("Error: no reply from server")
        return 1
    life.files["logs/probe.json"] = json.dumps(found).encode()
    return 0


def link_gateways(life: Life) -> int:
    """All commands of the gateways' image; with the simulator, it has both of them."""
    if "CLIENT_GATEWAY" in life.environment:
        for side in ("client", "server"):
            leave_endpoint_trace(life, folder=f"{side}-gateway", side=side)
        return simulate(life)
    if life.command[0] == "plumb":
        return simulate(life)
    if "VPN" in life.environment:
        leave_endpoint_trace(life)
    life.say(json.dumps({"event": "ready"}))
    life.terminated.wait()
    return 143


def leave_endpoint_trace(life: Life, dropped: int = 0, folder: str = "logs", side: str = "") -> None:
    """What a gateway leaves that is an end of a tunnel; the client's has one packet more than the simulator's trace."""
    left, right = traces([b"a" * 2500])
    life.files[f"{folder}/trace.pcap"] = left + left[24:] if (side or life.command[1]) == "client" else right
    life.files[f"{folder}/capture.json"] = json.dumps({"captured": 9, "dropped": dropped}).encode()


def compete(life: Life) -> int:
    """An end of the competing flow, whose command is a shell's."""
    life.say(json.dumps({"event": "connected" if "send" in life.command else "listening"}))
    life.terminated.wait()
    return 1


COUNTERS = dict.fromkeys(DirectionReport.__dataclass_fields__, 0)
REPORT: dict[str, Any] = {
    "started": 1795247389.8,
    "realtime_priority": True,
    "lag": {"mean": 0.00003, "max": 0.0005, "samples": 482},
    "receive_overflows": 0,
    "forward": COUNTERS | {"received": 7802, "delivered": 7749, "queue_drops": 53, "in_flight": 0},
    "return": COUNTERS | {"received": 3986, "delivered": 3986},
    "blackholes": [],
    "rebinds": [],
    "cross_traffic": None,
}
"""A link.json."""


def carry_packets(life: Life) -> int:
    """The simulator of a run."""
    if not life.environment["WAITFORSERVER"]:
        life.terminated.wait()
        return 0
    server = life.opposite("server")
    if server is None or not server.answers():
        return 3
    life.say(json.dumps({"event": "running"}))
    life.terminated.wait()
    files = {name: data for name, data in server.files.items() if name.startswith("www/")}
    left, right = traces([*files.values()])
    life.files["logs/trace_node_left.pcap"], life.files["logs/trace_node_right.pcap"] = left, right
    if report := life.engine.report():
        life.files["logs/link.json"] = json.dumps(report).encode()
    return 0


def traces(files: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Client's and server's pcap of a transfer of ``files``, each on a stream of its own."""
    made, number, now = Connection(), itertools.count(1), 3 * DELAY
    forth = [(DELAY, made.server_hello())]
    back = [(0.0, made.client_hello())]
    for index, data in enumerate(files):
        request = stream_frame(4 * index, b"GET /f\r\n", fin=True)
        back.append((2 * DELAY, made.one_rtt(index, request, from_server=False)))
        for start in range(0, len(data), PIECE):
            now += 1 * MS
            last = start + PIECE >= len(data)
            frame = stream_frame(4 * index, data[start : start + PIECE], start, fin=last)
            forth.append((now, made.one_rtt(next(number), frame, from_server=True)))
    client = [Packet(time, False, data) for time, data in back] + [Packet(t + DELAY, True, data) for t, data in forth]
    server = [Packet(t + DELAY, False, data) for t, data in back] + [Packet(time, True, data) for time, data in forth]
    left, right = (pcap(sorted(packets, key=lambda packet: packet.time)) for packets in (client, server))
    return left, right


# ---- the machine of virtual time ------------------------------------------------------------


def virtual_time(life: Life) -> int:
    """All commands of the image of virtual time; what it keeps of a root file system is the archive itself."""
    assert life.host_config["binds"] == [f"{VOLUME}:{MOUNT}{':ro' if life.command[0] == 'run' else ''}"]
    match life.command:
        case ("roots",):
            for name in life.engine.roots:
                life.say(name)
            return 0
        case ("root", name, archive):
            life.engine.roots[name] = life.files[archive.strip("/")]
            life.say(json.dumps({"event": "root", "bytes": len(life.engine.roots[name])}))
            return 0
    return Machine(life).run()


def described(disk: bytes) -> tuple[dict[str, list[str]], dict[str, bytes], set[str]]:
    """Values of the description by key, files, and directories of a machine's input disk."""
    with tarfile.open(fileobj=io.BytesIO(disk)) as tar:
        members = [(member, tar.extractfile(member)) for member in tar]
        files = {member.name: content.read() for member, content in members if content is not None}
    values: dict[str, list[str]] = {}
    for line in files.pop("run").decode().split("\0")[:-1]:
        key, _, value = line.partition("=")
        values.setdefault(key, []).append(value)
    return values, files, {member.name for member, _ in members if member.isdir()}


def output_disk(result: Mapping[str, object], files: Mapping[str, bytes]) -> bytes:
    """A machine's output disk: an archive of ``files``, the report last, and zeros behind it."""
    report = "".join(f"{key}={value}\n" for key, value in result.items()).encode()
    return pack({**files, "result": report}).read() + bytes(65536)


def leaves(disk: bytes | None, *console: str) -> Program:
    """A machine that prints ``console``, leaves ``disk`` and powers off, whatever its run is."""

    def run(life: Life) -> int:
        if life.command[0] != "run":
            return virtual_time(life)
        for line in console:
            life.say(line)
        if disk is not None:
            life.files[f"{DIRECTORY}/output"] = disk
        return 0

    return run


@dataclass(eq=False)
class GuestPart(Life):
    """A program in a machine, with those beside it."""

    beside: dict[str, GuestPart] = field(default_factory=dict)
    begin: int = 0
    killed: bool = False

    def opposite(self, role: str) -> Life | None:
        return self.beside.get(role)


class Machine:
    """The guest of one run: its programs are threads; deadlines are real, and the times that it reports simulated."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._engine = life.engine
        self._values, self._files, _ = described(life.files[f"{DIRECTORY}/input"])
        [start] = [word for word in life.command if word.startswith("time-travel-start=")]
        self._clock = itertools.count(int(start.partition("=")[2]) + 1_000_000_000, 1_000_000_000)
        """Each look at it is a second later."""
        self._parts: dict[str, GuestPart] = {}
        self._result: dict[str, object] = {}
        self._images = {
            part: word.partition("=")[2].removeprefix(f"{MOUNT}/").removesuffix(".erofs")
            for number, part in enumerate(("client", SIMULATOR, "server", LINK_GATEWAYS), start=2)
            for word in life.command
            if word.startswith(f"ubd{number}rc=")
        }
        self._gateways = [name for name in SIDES if f"{name}.argument" in self._values]
        self._images |= dict.fromkeys(self._gateways, self._images.pop(LINK_GATEWAYS, ""))
        assert set(self._images.values()) <= set(self._engine.roots)

    def run(self) -> int:
        """Exit status of its container."""
        exits = self._values["mode"] == ["exits"]
        for name in self._gateways:
            self._begin(name)
        for name in ("server", "client", SIMULATOR):  # a simulator looks for its server once
            if name in self._images and (exits or name != "client"):
                self._begin(name)
        if exits:
            self._until(lambda: all(part.ended.is_set() for part in self._ends()), "transfer timeout")
        else:
            self._transfer()
        for name in ("client", "server", SIMULATOR, *self._gateways):
            self._stop(name)
        if self._life.ended.is_set():
            return 137
        self._life.files[f"{DIRECTORY}/output"] = self._output()
        return 0

    def _transfer(self) -> None:
        simulator, server = self._parts[SIMULATOR], self._parts["server"]
        between = [self._parts[name] for name in self._gateways]
        self._until(
            lambda: (
                (simulator.lines and all(each.lines for each in between))
                or any(part.ended.is_set() for part in (simulator, server, *between))
            ),
            "ready timeout",
        )
        if not simulator.lines or any(part.ended.is_set() for part in (server, *between)):
            self._result["timed_out"] = "ready"
            return
        self._result["carried"] = 1
        self._begin("client")
        if not self._until(lambda: any(part.ended.is_set() for part in self._parts.values()), "transfer timeout"):
            self._result["timed_out"] = "transfer"

    def _ends(self) -> list[GuestPart]:
        return [part for name, part in self._parts.items() if name not in (SIMULATOR, *self._gateways)]

    def _begin(self, name: str) -> None:
        image = self._images[name]
        words = (entry.partition("=") for entry in self._values[f"{name}.environment"])
        environment = {key: value for key, _, value in words}
        command = tuple(self._values[f"{name}.argument"]) if name in self._gateways else ()
        part = GuestPart(self._engine, name, image, command, environment, {}, None, {}, beside=self._parts)
        part.files = {
            path.removeprefix(f"{name}/"): data for path, data in self._files.items() if path.startswith(f"{name}/")
        }
        part.begin = next(self._clock)
        self._parts[name] = part
        if image in self._engine.unstartable:
            part.say("guest: /run_endpoint.sh: No such file or directory")
            part.end(126)
            return
        threading.Thread(target=part.run, args=(self._engine.programs[image],), daemon=True).start()

    def _until(self, true: Callable[[], object], deadline: str) -> bool:
        """Whether it becomes true in time; the end of the container ends the wait as well."""
        over = time.monotonic() + int(self._values[deadline][0]) / 1e9
        while not true():
            if time.monotonic() > over or self._life.ended.wait(0.002):
                return False
        return True

    def _stop(self, name: str) -> None:
        part = self._parts.get(name)
        if part is None or part.ended.is_set():
            return
        part.killed = True
        part.terminated.set()
        patience = {SIMULATOR: PATIENCE, "server": self._engine.stop_grace}.get(name, 0.0)
        if not part.ended.wait(patience):
            part.end(137)

    def _output(self) -> bytes:
        files = {}
        for name, part in self._parts.items():
            self._result |= {f"{name}.killed": 1} if part.killed else {}
            self._result |= {f"{name}.begin": part.begin, f"{name}.end": next(self._clock)}
            self._result[f"{name}.status"] = part.exit_code
            stamp = "2026-01-01T00:00:06.000000000Z"
            files[f"{name}.output"] = "".join(f"{stamp} {line}\r\n" for line in part.lines).encode()
            collected = tuple(f"{path.strip('/')}/" for path in self._values.get(f"{name}.collect", ()))
            files |= {f"{name}/{path}": data for path, data in part.files.items() if path.startswith(collected)}
        return output_disk(self._result, files)


# ---- the engine -----------------------------------------------------------------------------


PROGRAM = {"Entrypoint": ["/run_endpoint.sh"], "Env": ["PATH=/bin", "GREETING=a=b"], "WorkingDir": "/opt", "User": "7"}
"""The program in the configuration of each image."""


class FakeEngine:
    """Stands in for ``docker.APIClient``; ``images`` says what the containers of an image do."""

    api_version = "1.41"

    def __init__(self, **programs: Program) -> None:
        self.programs: dict[str, Program] = {
            SIMULATOR: simulate, LINK_TOOLS: link_tools, VIRTUAL_TIME: virtual_time, LINK_GATEWAYS: link_gateways,
            **programs,
        }  # fmt: skip
        self.lives: dict[str, Life] = {}
        self.all_lives: list[Life] = []
        """Those too that have been removed."""
        self.log: list[tuple[str, str]] = []
        """What was done to which container, by the last word of its name."""
        self.cables: list[frozenset[int]] = []
        """Process ids of the three namespaces of each testbed."""
        self.unstartable: set[str] = set()
        self.refused: set[str] = set()
        """Verbs that fail."""
        self.gone = False
        self.labels: dict[str, Mapping[str, str]] = {}
        """Of images, by program; the version alone where nothing is said."""
        self.architectures: dict[str, str] = {}
        """Of images, by program; amd64 where nothing is said."""
        self.server_patience = PATIENCE
        self.stop_grace = PATIENCE
        """Seconds that a machine of virtual time gives a server to end."""
        self.counts: dict[str, int] = {}
        """What a capture says of itself, where it is not as it should be."""
        self.report: Callable[[], Mapping[str, Any]] = lambda: REPORT
        """What a simulator says of itself at its end; nothing if it is empty."""
        self.link_down = False
        self.joining: list[str] = []
        """Offloads that are on at a host's own interface."""
        self.memlock_refused = False
        """Containers of the link tools with a larger RLIMIT_MEMLOCK fail."""
        self.roots: dict[str, bytes] = {}
        """Content of the volume with root file systems for machines of virtual time."""
        self.unmounting = 0
        """So many more archives are refused, as podman does while it unmounts the root of a container."""
        self.mutex = threading.RLock()

    # ---- for tests and programs

    def all(self, role: str) -> list[Life]:
        """Containers of the endpoints in ``role`` that are there."""
        return [life for life in [*self.lives.values()] if life.environment.get("ROLE") == role]

    def started(self) -> list[str]:
        """What was started, in order."""
        return [name for verb, name in self.log if verb == "start"]

    def client(self, **_options: Any) -> FakeEngine:
        """What ``docker.APIClient(...)`` gives."""
        self._answer("connect")
        return self

    def _answer(self, verb: str, identity: str = "") -> Life:
        if self.gone:
            raise DockerException("Connection refused")
        if verb in self.refused:
            raise APIError(f"{verb} was refused", explanation=f"{verb} was refused")
        life = self.lives.get(identity) or next((x for x in [*self.lives.values()] if x.name == identity), None)
        if identity and life is None:
            raise NotFound(f"No such container: {identity}", explanation=f"No such container: {identity}")
        if life is not None:
            self.log.append((verb, life.name.rpartition("-")[2]))
            return life
        return Life(self, "", "", (), {}, {}, None, {})

    def _image(self, reference: str) -> str:
        name = reference.rpartition("/")[2].partition(":")[0]
        if name not in self.programs:
            raise ImageNotFound(f"No such image: {reference}", explanation=f"No such image: {reference}")
        return name

    # ---- as docker.APIClient has it

    def info(self) -> dict[str, Any]:
        self._answer("info")
        return {
            "ID": "fake",
            "ServerVersion": "99.0",
            "KernelVersion": "6.1",
            "Architecture": "x86_64",
            "NCPU": 2,
            "MemTotal": 8 * 1024**3,
            "DockerRootDir": "/",
            "SystemTime": datetime.now(UTC).isoformat(),
        }

    def version(self) -> dict[str, Any]:
        self._answer("version")
        return {"Components": [{"Name": "Engine"}]}

    def ping(self) -> bool:
        self._answer("ping")
        return True

    def networks(self) -> list[dict[str, Any]]:
        self._answer("networks")
        return [
            {"Name": "bridge", "IPAM": {"Config": [{"Subnet": "172.17.0.0/16"}]}},
            {"Name": "none", "IPAM": {"Config": None}},
        ]

    def inspect_image(self, reference: str) -> dict[str, Any]:
        self._answer("image")
        name = self._image(reference)
        labels = self.labels.get(name, {"org.opencontainers.image.version": "1.0"})
        facts = {"Created": "2026-01-01T00:00:00Z", "Size": 1, "Architecture": self.architectures.get(name, "amd64")}
        return {"Id": name, "Config": {"Labels": labels, **PROGRAM}, **facts}

    def pull(self, reference: str, **_options: Any) -> Iterator[dict[str, str]]:
        yield {"error": f"pull access denied for {reference}"}

    def close(self) -> None:
        """All clients are this one."""

    def create_host_config(self, **options: Any) -> dict[str, Any]:
        return options

    def create_container(self, image: str, **options: Any) -> dict[str, str]:
        self._answer("create")
        image = self._image(image)
        with self.mutex:
            if any(life.name == options["name"] for life in self.lives.values()):
                raise APIError("Conflict", explanation=f"Conflict: {options['name']} is already in use")
            life = Life(
                self, options["name"], image, tuple(options["command"] or ()), options["environment"],
                options["host_config"], options["hostname"], options["labels"],
            )  # fmt: skip
            self.lives[life.id] = life
            self.all_lives.append(life)
        self.log.append(("create", life.name.rpartition("-")[2]))
        return {"Id": life.id}

    def start(self, identity: str) -> None:
        life = self._answer("start", identity)
        if life.image in self.unstartable:
            life.exit_code, life.error = 127, 'exec: "/run_endpoint.sh": no such file or directory'
            raise APIError(life.error, explanation=life.error)
        life.status = "running"
        threading.Thread(target=life.run, args=(self.programs[life.image],), daemon=True).start()

    def put_archive(self, identity: str, path: str, archive: IO[bytes]) -> bool:
        life = self._answer("put", identity)
        with tarfile.open(fileobj=archive) as tar:
            for member in tar:
                if member.isdir():
                    life.directories.add(member.name)
                content = tar.extractfile(member)
                if content is not None:
                    life.files[f"{path.strip('/')}/{member.name}".strip("/")] = content.read()
        return True

    def get_archive(self, identity: str, path: str, chunk_size: int) -> tuple[Iterator[bytes], dict[str, str]]:
        life = self._answer("get", identity)
        folder = path.strip("/")
        found = {name: data for name, data in life.files.items() if name == folder or name.startswith(f"{folder}/")}
        self.unmounting -= 1
        if not found or self.unmounting >= 0:
            raise NotFound(f"No such file: {path}", explanation=f"Could not find the file {path} in {life.name}")
        return self._read(life, pack(found).read(), chunk_size), {}

    def export(self, identity: str, chunk_size: int) -> Iterator[bytes]:
        life = self._answer("export", identity)
        return self._read(life, f"root of {life.image}".encode(), chunk_size)

    def _read(self, life: Life, data: bytes, chunk_size: int) -> Iterator[bytes]:
        life.readers += 1
        try:
            for start in range(0, len(data), chunk_size):
                yield data[start : start + chunk_size]
        finally:
            life.readers -= 1

    def inspect_container(self, identity: str) -> dict[str, Any]:
        life = self._answer("inspect", identity)
        return {
            "State": {
                "Status": life.status,
                "Running": life.status == "running",
                "ExitCode": life.exit_code,
                "OOMKilled": life.out_of_memory,
                "Pid": life.pid,
                "Error": life.error,
                **life.times,
            }
        }

    def stats(self, identity: str, *, stream: bool, one_shot: bool) -> dict[str, Any]:
        assert (stream, one_shot) == (False, True)
        self._answer("stats", identity)
        return {"cpu_stats": {"cpu_usage": {"total_usage": time.monotonic_ns() // 10}}}

    def kill(self, identity: str, signal: str) -> None:
        life = self._answer(signal, identity)
        life.signalled = True
        if life.ended.is_set():
            raise APIError("is not running", explanation="is not running")
        match signal:
            case "SIGKILL":
                life.end(137)
            case "SIGTERM":
                life.terminated.set()
            case "SIGHUP":
                life.say(json.dumps({"event": "reset"}))

    def events(self, *, since: str, until: str, filters: Mapping[str, str]) -> Iterator[bytes]:
        assert float(since) <= float(until)
        life = self._answer("events", filters["container"])
        shown = float(until) >= life.signalled_at
        return iter([b"{}"] if life.signalled and shown and filters["event"] == "kill" else [])

    def wait(self, identity: str, timeout: float | None = None) -> dict[str, int]:
        life = self._answer("wait", identity)
        life.ended.wait(timeout)
        return {"StatusCode": life.exit_code}

    def logs(self, identity: str, *, stream: bool = False, timestamps: bool = False, **_options: Any) -> Any:
        life = self._answer("logs", identity)
        if stream:
            return self._follow(life)
        stamp = "2026-01-01T00:00:00.000000000Z " if timestamps else ""
        return "".join(f"{stamp}{line}\r\n" for line in life.lines).encode()

    def _follow(self, life: Life) -> Iterator[bytes]:
        told = 0
        while True:
            with life.news:
                while not (life.ended.is_set() or life.lines[told:]):
                    life.news.wait()
                over, fresh = life.ended.is_set(), life.lines[told:]
            told += len(fresh)
            for line in fresh:
                yield f"{line}\n".encode()
            if over:
                return

    def remove_container(self, identity: str, *, v: bool, force: bool) -> None:
        life = self._answer("remove", identity)
        assert v
        assert force
        if life.readers:
            raise requests.exceptions.ReadTimeout("Read timed out.")
        life.end(137)
        del self.lives[life.id]

    def containers(self, *, filters: Mapping[str, str], **_options: Any) -> list[dict[str, Any]]:
        if identity := filters.get("id"):
            found = self.lives.get(identity)
            return [] if found is None or self.gone else [{"Id": identity, "SizeRw": found.written, "Mounts": []}]
        self._answer("list")
        label, _, value = filters["label"].partition("=")
        all_ = [life for life in [*self.lives.values()] if label in life.labels]
        return [
            {"Id": life.id, "ImageID": life.image, "Labels": life.labels, "Created": life.created}
            for life in all_
            if not value or life.labels[label] == value
        ]


class Loader(FakeEngine):
    """An engine of its own identity, whose images can be carried from and to."""

    def __init__(self, identity: str, **programs: Any) -> None:
        super().__init__(**programs)
        self.identity = identity
        self.loaded: list[str] = []
        self.stock = dict(self.programs)
        """What a load may bring, by the name of the image."""

    def info(self) -> dict[str, Any]:
        return super().info() | {"ID": self.identity}

    def get_image(self, reference: str, chunk_size: int) -> Iterator[bytes]:
        yield from (f"image {reference}".encode(), b"x" * 100)

    def load_image(self, archive: Iterator[bytes], quiet: bool) -> list[dict[str, str]]:
        assert quiet
        name = b"".join(archive).removesuffix(b"x" * 100).decode().removeprefix("image ")
        self.loaded.append(name)
        self.programs[name] = self.stock[name]
        return []

    def tag(self, image: str, repository: str, name: str) -> None:
        self._image(image)


# ---- put to use -----------------------------------------------------------------------------


def connect(engine: FakeEngine, campaign: str = "test") -> Daemon:
    """The real :class:`Daemon`, connected to a fake engine."""
    with patch.object(docker, "APIClient", engine.client):
        return Daemon("fake://engine", campaign)


def install(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let the whole command use ``engine``; its lock lies in ``folder``, and no process is started beside it."""
    monkeypatch.setattr(docker, "APIClient", engine.client)
    monkeypatch.setattr(campaign_setup, "start_reaper", lambda *_: nullcontext())
    monkeypatch.setattr(campaign_setup, "analysis_pool", lambda act, **_: nullcontext(act))
    monkeypatch.setattr("quicsat.execution.lock.FOLDERS", (str(folder),))
    monkeypatch.setattr(machine_check, "LOCAL_SOCKET", "")
    monkeypatch.setattr(campaign_setup, "lasting_share", lambda: None)


def implementation(name: str) -> Implementation:
    """An implementation in both roles whose image has its name."""
    return Implementation(name, name, f"https://{name}.example", frozenset(Role))


def run_of(server: str = "good", client: str = "good", case: TestCase = CASE, repetition: int = 1) -> Run:
    """A run of two images."""
    return Run(implementation(server), implementation(client), case, repetition, 1)


def run_config(engine: FakeEngine, **options: Any) -> RunConfig:
    """What runs at a fake engine share: its images have their names as digests."""
    return RunConfig({name: ImageFacts(name, name) for name in engine.programs}, **options)


def transfer(run: Run, testbed: Testbed, engine: FakeEngine, directory: Path, **options: Any) -> Evidence:
    """The evidence of a transfer at a fake engine; ``options`` are those of ``RunConfig``, and ``stop``."""
    control = RunControl(options.pop("stop", None) or threading.Event())
    return Transfer(run, testbed, run_config(engine, **options), control, directory).make()


def select(*clients: str, cases: tuple[TestCase, ...] = (CASE,)) -> Selection:
    """The server ``good`` with all ``clients``."""
    return Selection((implementation("good"),), tuple(map(implementation, clients)), cases)


def plan_of(selection: Selection) -> tuple[Run, ...]:
    """All runs of a selection."""
    return make_plan(selection.servers, selection.clients, selection.test_cases, seed=3)


def measure(
    selection: Selection, directory: Path, observer: Observer | None = None, *, plan: Sequence[Run] = (), **options: Any
) -> CampaignOutcome:
    """A new campaign at a fake engine; ``options`` are those of ``NewCampaign`` and of ``Conditions``.

    ``plan``: if it is not that of the whole selection.
    """
    conditions = conditions_of(options)
    images = ImageSource(Path(__file__).resolve().parents[1], Policy.LOCAL)
    runs = tuple(plan) or plan_of(selection)
    return run_campaign(
        NewCampaign(selection, runs, 3, ("run.py",), images, directory, **options), conditions, observer or Observer()
    )


def conditions_of(options: dict[str, Any]) -> Conditions:
    """The conditions among ``options``, which are taken out."""
    names = [field.name for field in fields(Conditions) if field.name in options]
    return Conditions(**{"daemon": Host("", "fake"), **{name: options.pop(name) for name in names}})


def judge(run: Run, evidence: Evidence, _directory: Path) -> tuple[Verdict, Measurement | None]:
    """The verdict over evidence and files alone: traces take half a second each."""
    verdict = (
        run_outcome.harness(evidence, run.test_case)
        or run_outcome.endpoint_ends(evidence, run.test_case)
        or run_outcome.simulator(evidence.simulator, run.test_case.link.round_trip_delay)
        or run_outcome.transfer(evidence, run.test_case)
        or run_outcome.files(evidence.offered, evidence.downloaded)
    )
    return (verdict, None) if verdict else (Verdict(Outcome.SUCCEEDED), Measurement({"goodput": 1e6}))
