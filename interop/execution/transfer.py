"""One run, from the creation of its containers to their removal; it records what happened and judges nothing."""

from __future__ import annotations

import contextlib
import datetime
import errno
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue

from interop.errors import HarnessFault
from interop.execution.archive import list_files, pack, unpack
from interop.execution.artefacts import download_limits, log_limits
from interop.execution.daemon import WEIGHT, Container, ContainerSpec, Daemon, Event, StartFailure
from interop.execution.inputs import Inputs, make_inputs
from interop.links import RunningLink, Testbed
from interop.model import (
    Deadline,
    ErrorCode,
    Evidence,
    Exit,
    File,
    Implementation,
    RealLink,
    RealLinkReport,
    Role,
    Run,
    SimulatorReport,
)
from interop.store import OUTPUT
from interop.units import MIB

READY_TIMEOUT = 30.0
"""Seconds from the start of the server until the link carries packets."""
START_PATIENCE = 5.0
"""Seconds within which the daemon starts server and link; else the server had less time than it should."""
STOP_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL of a server whose client has finished."""
LINGER_ROUND_TRIPS = 4
"""Round trips for which the server lives on after its client, to close its connection and write its qlog."""
HEARTBEAT = 2.0
"""Seconds between two looks at containers that say nothing: a broken connection must not go unnoticed."""
DIRECTORIES = ("www", "downloads", "certs", "logs")
"""Directories of both endpoints (docs/contract.md); the server's ``www`` and the client's ``downloads`` hold files."""
KEPT = ("www", "downloads")
"""Directories of a run that hold its files, if they are kept."""
CANNOT_EXECUTE = 126
"""Exit status of a program that could not be started, as a shell has it."""
TERMINAL_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Interrupted(Exception):  # noqa: N818 - a request of the user, not an error
    """The campaign is to end; the run under way is given up."""


@dataclass(frozen=True)
class Surroundings:
    """What a run finds when it begins."""

    daemon: Daemon
    testbed: Testbed
    images: Mapping[str, str]
    """Image id by implementation name, and ``simulator``."""
    stop: threading.Event
    """Set when the campaign is to end."""
    qlog: bool = True
    keep_files: bool = False
    """Keep what the server offered and what the client got, beside the logs."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """CLIENT_PARAMS, SERVER_PARAMS, PROTOCOLS_CLIENT, PROTOCOLS_SERVER and CRON of whoever started the campaign."""
    begun: Callable[[], object] = lambda: None
    """Called when the client has been started."""
    ended: Callable[[], object] = lambda: None
    """Called when the transfer is over."""


@dataclass
class _Record:
    """What is known so far about a run under way."""

    phases: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    timed_out: Deadline | None = None
    exits: dict[Role, Exit] = field(default_factory=dict)
    cpu_peak: float | None = None
    cpu_before: tuple[float, float] | None = None
    """When CPU time was looked at before, on the monotonic clock, and how much it was."""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begin = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.monotonic() - begin

    def look_at_cpu(self, used: float) -> None:
        """Note how many CPUs were in use since the last look, given the CPU time used so far."""
        now = time.monotonic()
        if self.cpu_before is not None:
            begin, before = self.cpu_before
            self.cpu_peak = max(self.cpu_peak or 0.0, round((used - before) / (now - begin), 3))
        self.cpu_before = now, used


def transfer(run: Run, surroundings: Surroundings, directory: Path) -> Evidence:
    """Carry out ``run`` and leave its logs and traces in ``directory``.

    Every end is evidence, our own faults included; only :class:`Interrupted` is raised.
    """
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    record = _Record()
    images = {part: surroundings.images[name] for part, name in _parts(run).items()}
    evidence = Evidence(started=started, seed=run.seed, images=images)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with ExitStack() as stack:
            with record.phase("prepare"):
                inputs = stack.enter_context(make_inputs(run.test_case, directory))
            evidence = replace(evidence, offered=inputs.files)
            evidence = _carry_out(run, surroundings, inputs, directory, record, evidence)
    except HarnessFault as fault:
        evidence = replace(evidence, fault_code=fault.code, fault=fault.reason)
    except OSError as error:
        code = ErrorCode.DISK_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else ErrorCode.HARNESS_FAULT
        evidence = replace(evidence, fault_code=code, fault=f"the run could not be kept: {error}")
    exits = record.exits
    return replace(
        evidence,
        phases={name: round(duration, 6) for name, duration in record.phases.items()},
        timed_out=record.timed_out,
        client=exits.get(Role.CLIENT),
        server=exits.get(Role.SERVER),
        cpu_peak=record.cpu_peak,
        notes=tuple(record.notes),
    )


def _parts(run: Run) -> dict[str, str]:
    tools = "link-tools" if isinstance(run.test_case.link, RealLink) else "simulator"
    return {"client": run.client.name, "server": run.server.name, tools: tools}


def _carry_out(
    run: Run, around: Surroundings, inputs: Inputs, directory: Path, record: _Record, evidence: Evidence
) -> Evidence:
    with ExitStack() as stack:
        with record.phase("create"), ThreadPoolExecutor(1) as pool:
            clean = pool.submit(around.testbed.reset)
            link = stack.enter_context(around.testbed.link(run))
            endpoints = _create(run, around, inputs, stack)
            clean.result()
        events: SimpleQueue[Event] = SimpleQueue()
        try:
            if _start(run, around, link, endpoints, events, record):
                around.begun()
                _await_end(run, around, link, endpoints, events, record)
        finally:
            around.ended()
            with record.phase("stop"):
                _stop(run, link, endpoints, record)
        with record.phase("collect"), ThreadPoolExecutor() as pool:
            downloaded = pool.submit(_downloaded, endpoints[Role.CLIENT], run)
            client = record.exits.get(Role.CLIENT)
            report = pool.submit(link.collect, directory, client.life if client else None)
            _collect_logs(endpoints, run, directory, record)
            if around.keep_files:
                _keep_files(endpoints[Role.CLIENT], run, inputs, directory, record)
            evidence = _with_report(replace(evidence, downloaded=downloaded.result()), report.result())
        removal = stack.pop_all()
        with record.phase("remove"):
            removal.close()
    return evidence


def _with_report(evidence: Evidence, report: SimulatorReport | RealLinkReport | None) -> Evidence:
    if isinstance(report, RealLinkReport):
        return replace(evidence, real_link=report)
    return replace(evidence, simulator=report)


# ---- create and start -----------------------------------------------------------------------


def _create(run: Run, around: Surroundings, inputs: Inputs, stack: ExitStack) -> dict[Role, Container]:
    endpoints = {
        role: stack.enter_context(
            around.testbed.daemon(role).container(endpoint_spec(role, run, around, inputs.requests))
        )
        for role in Role
    }
    with ThreadPoolExecutor() as pool:
        puts = [
            pool.submit(endpoints[Role.SERVER].put, pack({**inputs.www, **inputs.certs}, DIRECTORIES)),
            pool.submit(endpoints[Role.CLIENT].put, pack(dict(inputs.certs), DIRECTORIES)),
        ]
        for put in puts:
            put.result()
    return endpoints


def endpoint_spec(role: Role, run: Run, around: Surroundings, names: tuple[str, ...]) -> ContainerSpec:
    """The container of an endpoint, as the contract of the QUIC Interop Runner has it."""
    implementation: Implementation = run.server if role is Role.SERVER else run.client
    case = run.as_told
    environment = {
        "ROLE": str(role),
        "TESTCASE": case.server_test if role is Role.SERVER else case.client_test,
        "SSLKEYLOGFILE": "/logs/keys.log",
        "QLOGDIR": "/logs/qlog/" if around.qlog else "",
        "REQUESTS": "",
        "TESTCASE_CONTEXT": case.name,
    }
    if role is Role.CLIENT:
        environment["REQUESTS"] = " ".join(f"https://{case.server_name}:443/{name}" for name in names)
    parameters = f"{role.upper()}_PARAMS"
    own = implementation.server_parameters if role is Role.SERVER else implementation.client_parameters
    environment[parameters] = " ".join(filter(None, (around.parameters.get(parameters), own)))
    environment["CRON"] = around.parameters.get("CRON", "")
    told = implementation.contract
    environment["PROTOCOLS"] = " ".join(told.protocols) or around.parameters.get(f"PROTOCOLS_{role.upper()}", "")
    if told.version:
        environment["VERSION"] = told.version
    rights = around.testbed.rights(role)
    return ContainerSpec(
        name=f"quicsat-{around.daemon.campaign}-{'-'.join(run.path.parts)}-{role}".replace("+", "."),  # of a variant
        image=around.images[implementation.name],
        environment=environment,
        network=around.testbed.network(role),
        capabilities=rights.added,
        without=rights.taken,
        tty=True,
        memory=4096 * MIB,
        pids=1024,
        weight=WEIGHT,
        memlock=around.testbed.memlock(role),
    )


def _start(
    run: Run,
    around: Surroundings,
    link: RunningLink,
    endpoints: dict[Role, Container],
    events: SimpleQueue[Event],
    record: _Record,
) -> bool:
    """Server and link first, then the client; False if the run is over before its client has started."""
    server, client = endpoints[Role.SERVER], endpoints[Role.CLIENT]
    with record.phase("start"):
        begin = time.monotonic()
        with ThreadPoolExecutor() as pool:
            begun = pool.submit(link.start, events)
            alive = _start_endpoint(server, Role.SERVER, events, record)
            begun.result()
        took = time.monotonic() - begin
        deadline = time.monotonic() + READY_TIMEOUT
        while alive:
            event = next_event(events, deadline, around.stop)
            if event is None and time.monotonic() >= deadline:
                break
            if event is not None and link.ready(event):
                return _start_endpoint(client, Role.CLIENT, events, record)
            alive = server.running() and link.running()
        if outage := link.outage():
            raise HarnessFault(ErrorCode.HOST_LOST, outage)
        if took > START_PATIENCE and server.running():
            raise HarnessFault(ErrorCode.DAEMON_FAULT, f"the Docker daemon took {took:.1f} s to start two containers")
        record.timed_out = Deadline.READY  # a server that has ended is never going to be ready
        return False


def _start_endpoint(container: Container, role: Role, events: SimpleQueue[Event], record: _Record) -> bool:
    try:
        container.start()
    except StartFailure as failure:
        record.exits[role] = Exit(CANNOT_EXECUTE)
        record.notes.append(f"{role}: cannot be started: {failure}")
        return False
    container.watch(events)
    return True


# ---- wait, stop, collect --------------------------------------------------------------------


def next_event(events: SimpleQueue[Event], deadline: float, stop: threading.Event) -> Event | None:
    """The next event; None after a heartbeat or at the deadline. Raises :class:`Interrupted`."""
    begin = time.monotonic()
    while True:
        if stop.is_set():
            raise Interrupted
        now = time.monotonic()
        patience = min(deadline - now, HEARTBEAT - (now - begin))
        if patience <= 0:
            return None
        with contextlib.suppress(Empty):
            return events.get(timeout=min(patience, 0.25))


def _await_end(
    run: Run,
    around: Surroundings,
    link: RunningLink,
    endpoints: dict[Role, Container],
    events: SimpleQueue[Event],
    record: _Record,
) -> None:
    """Wait until the client, the server or the link has ended, or the transfer's deadline has come."""
    client, server = endpoints[Role.CLIENT], endpoints[Role.SERVER]
    with record.phase("transfer"):
        deadline = time.monotonic() + run.test_case.timeout
        while True:
            event = next_event(events, deadline, around.stop)
            if event is not None and event.line is not None:
                continue
            if not (client.running() and server.running() and link.running()):
                return
            if time.monotonic() >= deadline:
                record.timed_out = Deadline.TRANSFER
                return
            if event is None:
                record.look_at_cpu(client.cpu_seconds() + server.cpu_seconds() + link.cpu_seconds())


def _stop(run: Run, link: RunningLink, endpoints: dict[Role, Container], record: _Record) -> None:
    client, server = endpoints[Role.CLIENT], endpoints[Role.SERVER]
    linger = LINGER_ROUND_TRIPS * run.test_case.link.round_trip_delay
    if not record.timed_out and not server.running():
        client.wait(linger)  # a server may end as soon as it has served
    record.exits.setdefault(Role.CLIENT, client.exit())
    if client.running():
        client.stop(grace=0)
        record.exits[Role.CLIENT] = client.exit()
    elif server.running():
        server.wait(linger)
    server.stop(grace=STOP_GRACE)
    record.exits.setdefault(Role.SERVER, server.exit())
    link.stop()


def _downloaded(client: Container, run: Run) -> tuple[File, ...]:
    with client.fetch("/downloads") as archive:
        return list_files(archive, download_limits(run.test_case))


def _collect_logs(endpoints: dict[Role, Container], run: Run, directory: Path, record: _Record) -> None:
    text = []
    for role, container in endpoints.items():
        target = directory / role
        target.mkdir(exist_ok=True)
        try:
            with container.fetch("/logs") as archive:
                notes = unpack(archive, target, log_limits(run.test_case))
        except HarnessFault as fault:
            if fault.code != ErrorCode.ARTEFACT_LIMIT:
                raise
            notes = (f"logs cut: {fault.reason}",)
        record.notes += [f"{role}: {note}" for note in notes]
        text += [f"{role:6} | {line}" for line in plain(container.output()).splitlines()]
    (directory / OUTPUT).write_text("\n".join(text) + "\n", encoding="utf-8")


def _keep_files(client: Container, run: Run, inputs: Inputs, directory: Path, record: _Record) -> None:
    for name in KEPT:
        (directory / name).mkdir(exist_ok=True)
    for path in inputs.www.values():
        shutil.copyfile(path, directory / "www" / path.name)
    with client.fetch("/downloads") as archive:
        record.notes += unpack(archive, directory / "downloads", download_limits(run.test_case))


def plain(output: bytes) -> str:
    """What a container printed, as text that does nothing to a terminal or a page."""
    text = output.decode(errors="replace").replace("\r\n", "\n")
    return CONTROL.sub("�", TERMINAL_ESCAPE.sub("", text))
