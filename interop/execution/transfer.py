"""The transfer of one run, from the creation of its containers to their removal; it only records what happens."""

from __future__ import annotations

import contextlib
import datetime
import errno
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue

from interop.docker.archive import list_files, pack, unpack
from interop.docker.client import Daemon
from interop.docker.containers import WEIGHT, Container, ContainerEvent, ContainerSpec, StartFailure, create_container
from interop.execution.run_config import RunConfig
from interop.execution.run_inputs import Inputs, make_inputs
from interop.links.artefact_limits import download_limits, log_limits
from interop.links.backend import RunningLink, Testbed
from interop.model.emulated_link import SimulatorReport
from interop.model.errors import HarnessFault
from interop.model.evidence import Deadline, Evidence, Exit
from interop.model.implementation import Implementation, Role
from interop.model.outcomes import ErrorCode
from interop.model.real_link import RealLink, RealLinkReport
from interop.model.run import File, Run
from interop.model.text import printable_lines
from interop.model.units import MIB
from interop.results.store import OUTPUT

READY_TIMEOUT = 30.0
"""Seconds from the start of the server until the link carries packets."""
START_PATIENCE = 5.0
"""Seconds within which the daemon must start server and link, so that the server has its full time to be ready."""
STOP_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL of a server whose client has finished."""
LINGER_ROUND_TRIPS = 4
"""Round trips for which the server runs on after its client, to close its connection and write its qlog."""
HEARTBEAT = 2.0
"""Seconds between two checks of containers without events: events are lost if the daemon's connection breaks."""
DIRECTORIES = ("www", "downloads", "certs", "logs")
"""Directories of both endpoints (docs/reference/endpoint-contract.md).

The server's ``www`` and the client's ``downloads`` hold files.
"""
KEPT = ("www", "downloads")
"""Directories that hold the files of a run, if they are kept."""
CANNOT_EXECUTE = 126
"""Exit status of a program that cannot be executed, as in a shell."""


class Interrupted(Exception):  # noqa: N818 - a request of the user, not an error
    """The campaign is to end; the run under way is aborted."""


@dataclass(frozen=True)
class RunContext:
    """What a run needs to start."""

    daemon: Daemon
    testbed: Testbed
    images: Mapping[str, str]
    """Image id by implementation name, and of ``simulator`` or ``link-tools``."""
    stop: threading.Event
    """Set when the campaign is to end."""
    config: RunConfig = field(default_factory=RunConfig)
    on_client_start: Callable[[], object] = lambda: None
    """Called when the client has been started."""
    on_client_end: Callable[[], object] = lambda: None
    """Called when the transfer is over."""


@dataclass
class _RunRecord:
    """What is known so far about a run under way."""

    phases: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    timed_out: Deadline | None = None
    exits: dict[Role, Exit] = field(default_factory=dict)
    cpu_peak: float | None = None
    cpu_before: tuple[float, float] | None = None
    """Time of the previous sample on the monotonic clock, and the CPU seconds used until then."""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begin = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.monotonic() - begin

    def sample_cpu(self, used: float) -> None:
        """Record how many CPUs were in use since the last sample, given the CPU seconds used so far."""
        now = time.monotonic()
        if self.cpu_before is not None:
            begin, before = self.cpu_before
            self.cpu_peak = max(self.cpu_peak or 0.0, round((used - before) / (now - begin), 3))
        self.cpu_before = now, used


def transfer(run: Run, context: RunContext, directory: Path) -> Evidence:
    """Make the transfer of ``run``, leave its logs and traces in ``directory`` and return the evidence.

    Faults of this program are evidence as well; only :class:`Interrupted` is raised.
    """
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    record = _RunRecord()
    images = {part: context.images[name] for part, name in _parts(run).items()}
    evidence = Evidence(started=started, seed=run.seed, images=images)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with ExitStack() as stack:
            with record.phase("prepare"):
                inputs = stack.enter_context(make_inputs(run.test_case, directory))
            evidence = replace(evidence, offered=inputs.files)
            evidence = _run_endpoints(run, context, inputs, directory, record, evidence)
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


def _run_endpoints(
    run: Run, context: RunContext, inputs: Inputs, directory: Path, record: _RunRecord, evidence: Evidence
) -> Evidence:
    """Create, start, await, stop, collect and remove endpoints and link; ``evidence`` with their files and report."""
    with ExitStack() as stack:
        with record.phase("create"), ThreadPoolExecutor(1) as pool:
            reset = pool.submit(context.testbed.reset)
            link = stack.enter_context(context.testbed.link(run))
            endpoints = _create(run, context, inputs, stack)
            reset.result()
        events: SimpleQueue[ContainerEvent] = SimpleQueue()
        try:
            if _start(run, context, link, endpoints, events, record):
                context.on_client_start()
                _await_end(run, context, link, endpoints, events, record)
        finally:
            context.on_client_end()
            with record.phase("stop"):
                _stop(run, link, endpoints, record)
        with record.phase("collect"), ThreadPoolExecutor() as pool:
            downloaded = pool.submit(_downloaded, endpoints[Role.CLIENT], run)
            client = record.exits.get(Role.CLIENT)
            report = pool.submit(link.collect, directory, client.life if client else None)
            _collect_logs(endpoints, run, directory, record)
            if context.config.keep_files:
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


def _create(run: Run, context: RunContext, inputs: Inputs, stack: ExitStack) -> dict[Role, Container]:
    endpoints = {
        role: stack.enter_context(
            create_container(context.testbed.daemon(role), endpoint_spec(role, run, context, inputs.requests))
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


def endpoint_spec(role: Role, run: Run, context: RunContext, names: tuple[str, ...]) -> ContainerSpec:
    """The container of an endpoint, according to the endpoint contract of the QUIC Interop Runner."""
    implementation: Implementation = run.server if role is Role.SERVER else run.client
    case = run.endpoint_test_case
    environment = {
        "ROLE": str(role),
        "TESTCASE": case.server_test if role is Role.SERVER else case.client_test,
        "SSLKEYLOGFILE": "/logs/keys.log",
        "QLOGDIR": "/logs/qlog/" if context.config.qlog else "",
        "REQUESTS": "",
        "TESTCASE_CONTEXT": case.name,
    }
    if role is Role.CLIENT:
        environment["REQUESTS"] = " ".join(f"https://{case.server_name}:443/{name}" for name in names)
    parameters = f"{role.upper()}_PARAMS"
    own = implementation.server_parameters if role is Role.SERVER else implementation.client_parameters
    environment[parameters] = " ".join(filter(None, (context.config.parameters.get(parameters), own)))
    environment["CRON"] = context.config.parameters.get("CRON", "")
    contract = implementation.contract
    environment["PROTOCOLS"] = " ".join(contract.protocols) or context.config.parameters.get(
        f"PROTOCOLS_{role.upper()}", ""
    )
    if contract.version:
        environment["VERSION"] = contract.version
    capabilities = context.testbed.capabilities(role)
    return ContainerSpec(
        name=f"quicsat-{context.daemon.campaign}-{'-'.join(run.path.parts)}-{role}".replace("+", "."),  # of a variant
        image=context.images[implementation.name],
        environment=environment,
        network=context.testbed.network(role),
        capabilities=capabilities.added,
        dropped_capabilities=capabilities.dropped,
        tty=True,
        memory=4096 * MIB,
        pids=1024,
        weight=WEIGHT,
        memlock=context.testbed.memlock(role),
    )


def _start(
    run: Run,
    context: RunContext,
    link: RunningLink,
    endpoints: dict[Role, Container],
    events: SimpleQueue[ContainerEvent],
    record: _RunRecord,
) -> bool:
    """Start server and link, then the client; False if the run is over before its client has started."""
    server, client = endpoints[Role.SERVER], endpoints[Role.CLIENT]
    with record.phase("start"):
        begin = time.monotonic()
        with ThreadPoolExecutor() as pool:
            link_started = pool.submit(link.start, events)
            alive = _start_endpoint(server, Role.SERVER, events, record)
            link_started.result()
        took = time.monotonic() - begin
        deadline = time.monotonic() + READY_TIMEOUT
        while alive:
            event = next_event(events, deadline, context.stop)
            if event is None and time.monotonic() >= deadline:
                break
            if event is not None and link.ready(event):
                return _start_endpoint(client, Role.CLIENT, events, record)
            alive = server.running() and link.running()
        if (fault := link.outage()) is not None:
            raise fault
        if took > START_PATIENCE and server.running():
            raise HarnessFault(ErrorCode.DAEMON_FAULT, f"the Docker daemon took {took:.1f} s to start two containers")
        record.timed_out = Deadline.READY  # also if the server has ended, since it can never be ready
        return False


def _start_endpoint(container: Container, role: Role, events: SimpleQueue[ContainerEvent], record: _RunRecord) -> bool:
    try:
        container.start()
    except StartFailure as failure:
        record.exits[role] = Exit(CANNOT_EXECUTE)
        record.notes.append(f"{role}: cannot be started: {failure}")
        return False
    container.watch(events)
    return True


# ---- wait, stop, collect --------------------------------------------------------------------


def next_event(events: SimpleQueue[ContainerEvent], deadline: float, stop: threading.Event) -> ContainerEvent | None:
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
    context: RunContext,
    link: RunningLink,
    endpoints: dict[Role, Container],
    events: SimpleQueue[ContainerEvent],
    record: _RunRecord,
) -> None:
    """Wait until the client, the server or the link has ended, or the deadline of the transfer has passed."""
    client, server = endpoints[Role.CLIENT], endpoints[Role.SERVER]
    with record.phase("transfer"):
        deadline = time.monotonic() + run.test_case.timeout
        while True:
            event = next_event(events, deadline, context.stop)
            if event is not None and event.line is not None:
                continue
            if not (client.running() and server.running() and link.running()):
                return
            if time.monotonic() >= deadline:
                record.timed_out = Deadline.TRANSFER
                return
            if event is None:
                record.sample_cpu(client.cpu_seconds() + server.cpu_seconds() + link.cpu_seconds())


def _stop(run: Run, link: RunningLink, endpoints: dict[Role, Container], record: _RunRecord) -> None:
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


def _collect_logs(endpoints: dict[Role, Container], run: Run, directory: Path, record: _RunRecord) -> None:
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
        output = printable_lines(container.output().decode(errors="replace"))
        text += [f"{role:6} | {line}" for line in output.splitlines()]
    (directory / OUTPUT).write_text("\n".join(text) + "\n", encoding="utf-8")


def _keep_files(client: Container, run: Run, inputs: Inputs, directory: Path, record: _RunRecord) -> None:
    for name in KEPT:
        (directory / name).mkdir(exist_ok=True)
    for path in inputs.www.values():
        shutil.copyfile(path, directory / "www" / path.name)
    with client.fetch("/downloads") as archive:
        record.notes += unpack(archive, directory / "downloads", download_limits(run.test_case))
