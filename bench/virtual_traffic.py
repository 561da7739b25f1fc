"""Sends the streams and pings of the link's benchmark in virtual time, which the machine's load does not disturb."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.testbed_traffic import (
    ECHO_PORT,
    PATIENCE,
    PORT,
    Flow,
    Seen,
    collected,
    flow_seen,
    ping_words,
    run_over,
    send_words,
)
from quicsat.docker.archive import ArchiveLimits, pack, unpack
from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.links.addresses import GATEWAYS
from quicsat.links.session import Endpoint, RunControl, Session, SessionRecord, SessionRequest
from quicsat.links.virtual_machine import VirtualBackend, VirtualTestbed
from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.errors import HarnessFault
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode
from quicsat.traces.records import NANOSECONDS

IMAGE = "quicsat/bench-traffic:latest"
DOCKERFILE = 'FROM {}\nCMD ["bash", "-c", "eval \\"$PROGRAM\\""]\n'
BEFORE, BEHIND = 2.0, 10.0
"""Seconds from the start of an endpoint until it sends, and from the client's last program until it ends."""


def traffic_image(daemon: Daemon, simulator: str) -> str:
    """Id of an image that has the programs of the simulator's image, and runs what the variable PROGRAM says."""
    context = pack({"Dockerfile": DOCKERFILE.format(simulator).encode()})
    return DaemonImages(daemon).build(context, IMAGE, {}, lambda _line: None).id


class VirtualBench:
    """Makes a virtual machine for each stream or ping; see :class:`bench.testbed_traffic.Traffic`."""

    def __init__(self, testbed: VirtualTestbed, image: str, directory: Path) -> None:
        """``image``: as of :func:`traffic_image`."""
        self._testbed = testbed
        self._image = image
        self._directory = directory

    @classmethod
    @contextmanager
    def open(cls, daemon: Daemon, images: Mapping[str, str]) -> Iterator[VirtualBench]:
        """A bench; its traces are gone when the block is left. ``images``: ids of simulator and virtual-time."""
        image = traffic_image(daemon, images["simulator"])
        with (
            VirtualBackend(daemon, images).open() as testbed,
            tempfile.TemporaryDirectory(prefix="quicsat-bench-") as directory,
        ):
            yield cls(testbed, image, Path(directory))

    def stream(self, link: EmulatedLink, flows: list[Flow], seed: int = 1) -> Seen:
        """Send all flows at once."""
        with self._session(link, _stream_programs(flows), seed) as session:
            return self._seen(session, flows)

    def ping(self, link: EmulatedLink, version: int, n: int, beside: Flow | None = None) -> Seen:
        """Ask ``n`` times, 20 ms apart, while ``beside`` flows if there is one."""
        flows = [beside] if beside else []
        programs = _stream_programs(flows)
        programs[Role.SERVER].append(f"udp-stream echo --port={ECHO_PORT} --report=/dev/null")
        words = " ".join(ping_words(link, version, n))
        programs[Role.CLIENT].append(f"sleep {BEFORE}; {words} --report=/logs/ping.json")
        with self._session(link, programs, 1) as session:
            found = _reports(session, Role.CLIENT)["ping"]["round_trip_ns"]
            return self._seen(session, flows, tuple(value / NANOSECONDS for value in found))

    @contextmanager
    def _session(self, link: EmulatedLink, programs: Mapping[Role, list[str]], seed: int) -> Iterator[Session]:
        """A session in which all programs, as shell commands, have run."""
        endpoints = {role: Endpoint(self._image, {"PROGRAM": _script(role, programs[role])}) for role in Role}
        record = SessionRecord()
        run = run_over(link, self._image, 5 * PATIENCE, seed)
        request = SessionRequest(run, endpoints, RunControl(threading.Event()))
        with self._testbed.session(request, record) as session:
            session.run()
            if record.timed_out or record.exits_of(1)[Role.CLIENT].status != 0:
                words = session.output(Role.CLIENT) + session.output(Role.SERVER)
                raise HarnessFault(ErrorCode.HARNESS_FAULT, f"the traffic failed: {words.decode(errors='replace')}")
            yield session

    def _seen(self, session: Session, flows: list[Flow], round_trips: tuple[float, ...] = ()) -> Seen:
        reports = {role: _reports(session, role) for role in Role}
        found = {
            flow.way: flow_seen(flow, reports[flow.sender][f"{flow.way}-sent"], reports[flow.receiver][flow.way])
            for flow in flows
        }
        return collected(
            lambda place: session.collect(place, None), self._directory, flows=found, round_trips=round_trips
        )


def _stream_programs(flows: list[Flow]) -> dict[Role, list[str]]:
    """Shell commands of each role."""
    programs: dict[Role, list[str]] = {role: [] for role in Role}
    for flow in flows:
        programs[flow.receiver].append(f"udp-stream receive --port={PORT} --report=/logs/{flow.way}.json")
        words = " ".join(send_words(flow))
        programs[flow.sender].append(f"sleep {BEFORE}; {words} --report=/logs/{flow.way}-sent.json")
    return programs


def _script(role: Role, programs: list[str]) -> str:
    """Shell commands that run all programs at once; those of the server answer the simulator, too, until it ends."""
    ipv4, ipv6 = GATEWAYS[role]
    jobs = [f"({program}) &" for program in programs]
    if role is Role.SERVER:
        jobs.append("udp-stream answer --port=443 &")
    end = "wait" if role is Role.SERVER else f'for job in $(jobs -p); do wait "$job" || exit 1; done; sleep {BEHIND}'
    routes = f"ip route replace default via {ipv4}; ip -6 route replace default via {ipv6};"
    return " ".join([routes, *jobs, end])


def _reports(session: Session, role: Role) -> dict[str, Any]:
    """What the programs of a role wrote, by the file's name."""
    with tempfile.TemporaryDirectory() as directory:
        with session.fetch(role, "/logs") as archive:
            unpack(archive, Path(directory), ArchiveLimits())
        return {path.stem: json.loads(path.read_text()) for path in Path(directory).glob("*.json")}
