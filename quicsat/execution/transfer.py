"""The transfer of one run, from its inputs to the files that it leaves; it only records what happens."""

from __future__ import annotations

import datetime
import errno
import shutil
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from quicsat.docker.archive import list_files, unpack
from quicsat.execution.run_config import RunConfig
from quicsat.execution.run_inputs import Inputs, make_inputs, protocol_file
from quicsat.links.artefact_limits import download_limits, log_limits
from quicsat.links.backend import Testbed
from quicsat.links.session import Endpoint, FurtherFlow, Session, SessionRecord, SessionRequest
from quicsat.model.clock import Clock
from quicsat.model.emulated_link import SimulatorReport
from quicsat.model.errors import HarnessFault
from quicsat.model.evidence import Evidence, FlowEvidence
from quicsat.model.flow import flow_directory, part_name
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode
from quicsat.model.real_link import RealLink, RealLinkReport
from quicsat.model.run import OUTPUT, File, Run
from quicsat.model.stored_files import open_file
from quicsat.model.test_case import TestCase
from quicsat.model.text import printable_lines
from quicsat.model.webtransport import NEGOTIATED, WebTransport
from quicsat.model.whole_file import scratch_directory

KEPT = ("www", "downloads")
"""Directories that hold the files of a run, if they are kept."""
LONGEST_PROTOCOL = 4096
"""Bytes of the name of an application protocol that are read."""


@dataclass(frozen=True)
class RunContext:
    """What a run needs to start."""

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
    on_received: Callable[[int], object] | None = None
    """See :attr:`quicsat.links.session.SessionRequest.on_received`."""


def transfer(run: Run, context: RunContext, directory: Path) -> Evidence:
    """Make the transfer of ``run``, leave its logs and traces in ``directory`` and return the evidence.

    Faults of this program are evidence as well; only ``Interrupted`` is raised.
    """
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    record = SessionRecord()
    images = {part: context.images[name] for part, name in _parts(run, context.config.clock).items()}
    evidence = Evidence(started=started, seed=run.seed, images=images, clock=context.config.clock)
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with ExitStack() as stack:
            with record.phase("prepare"):
                inputs = stack.enter_context(make_inputs(run.test_case, directory, context.testbed.input_origin(run)))
            evidence = replace(evidence, offered=inputs.files)
            evidence = _run_session(run, context, inputs, directory, record, evidence)
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
        flows=_further(run, record, evidence),
        cpu_peak=record.cpu_peak,
        use=dict(record.use),
        notes=tuple(record.notes),
    )


def _further(run: Run, record: SessionRecord, evidence: Evidence) -> tuple[FlowEvidence, ...]:
    """The further flows with their exits; ``evidence`` has their downloads, if the run came so far."""
    known = evidence.flows or (FlowEvidence(),) * len(run.others)
    exits = [record.exits_of(number) for number, _ in enumerate(known, start=2)]
    return tuple(
        replace(flow, client=ends.get(Role.CLIENT), server=ends.get(Role.SERVER))
        for flow, ends in zip(known, exits, strict=True)
    )


def _parts(run: Run, clock: Clock) -> dict[str, str]:
    """Names of images by what they are in ``run``."""
    link = ["link-tools"] if isinstance(run.test_case.link, RealLink) else ["simulator"]
    link += ["virtual-time"] if clock is Clock.VIRTUAL else []
    link += ["link-gateways"] if run.test_case.has_gateways else []
    further = {
        part_name(role, number): end.name
        for number, other in enumerate(run.others, start=2)
        for role, end in ((Role.CLIENT, other.client), (Role.SERVER, other.server))
    }
    return {"client": run.client.name, "server": run.server.name, **further, **{name: name for name in link}}


def _run_session(
    run: Run, context: RunContext, inputs: Inputs, directory: Path, record: SessionRecord, evidence: Evidence
) -> Evidence:
    """Create, run, collect and remove endpoints and link; ``evidence`` with their files and report."""
    kind, session_inputs = run.test_case.webtransport, inputs.session
    offering = Role.CLIENT if kind is WebTransport.SEND else Role.SERVER
    files: Mapping[Role, Mapping[str, bytes | Path]] = {
        role: {**(inputs.www if role is offering else {}), **inputs.certs} for role in Role
    }
    directories = (f"www/{session_inputs.path}",) if session_inputs else ()
    first, *others = (
        {
            role: replace(endpoint(role, flow, context, inputs), files=files[role], directories=directories)
            for role in Role
        }
        for flow in (run, *run.others)
    )
    starts = (flow.start for flow in run.test_case.flows)
    further = tuple(FurtherFlow(endpoints, start) for endpoints, start in zip(others, starts, strict=True))
    request = SessionRequest(
        run, first, context.stop, context.on_client_start, context.on_client_end, context.on_received, further
    )
    with ExitStack() as stack:
        with record.phase("create"):
            session = stack.enter_context(context.testbed.session(request, record))
        session.run()
        with record.phase("collect"), ThreadPoolExecutor() as pool:
            downloaded = {flow: pool.submit(_downloaded, session, run, flow) for flow in request.flows}
            client = record.exits.get(Role.CLIENT)
            report = pool.submit(session.collect, directory, client.life if client else None)
            _collect_logs(session, run, directory, record)
            if context.config.keep_files:
                _keep_files(session, run, inputs, directory, record)
            files_of = {flow: found.result() for flow, found in downloaded.items()}
            flows = tuple(FlowEvidence(downloaded=found) for flow, found in files_of.items() if flow > 1)
            evidence = _with_report(replace(evidence, downloaded=files_of[1], flows=flows), report.result())
        removal = stack.pop_all()
        with record.phase("remove"):
            removal.close()
    return evidence


def _with_report(evidence: Evidence, report: SimulatorReport | RealLinkReport | None) -> Evidence:
    if isinstance(report, RealLinkReport):
        return replace(evidence, real_link=report)
    return replace(evidence, simulator=report)


def endpoint(role: Role, run: Run, context: RunContext, inputs: Inputs) -> Endpoint:
    """The program of a role, according to the endpoint contract of the QUIC Interop Runner; without its files."""
    implementation: Implementation = run.server if role is Role.SERVER else run.client
    case = run.endpoint_test_case
    environment = {
        "ROLE": str(role),
        "TESTCASE": case.server_test if role is Role.SERVER else case.client_test,
        "SSLKEYLOGFILE": "/logs/keys.log",
        "QLOGDIR": "/logs/qlog/" if context.config.qlog else "",
        "REQUESTS": " ".join(_requests(role, case, inputs)),
        "TESTCASE_CONTEXT": case.name,
    }
    if role is Role.CLIENT and case.workload is not None and case.workload.after:
        environment["REQUESTS_AFTER"] = " ".join(map(str, case.workload.after))
    parameters = f"{role.upper()}_PARAMS"
    own = implementation.server_parameters if role is Role.SERVER else implementation.client_parameters
    environment[parameters] = " ".join(filter(None, (context.config.parameters.get(parameters), own)))
    environment["CRON"] = context.config.parameters.get("CRON", "")
    contract = implementation.contract
    environment["PROTOCOLS"] = " ".join(contract.protocols) or context.config.parameters.get(
        f"PROTOCOLS_{role.upper()}", ""
    )
    if inputs.session is not None:
        environment["PROTOCOLS"] = " ".join(inputs.session.protocols[role])
    if contract.version:
        environment["VERSION"] = contract.version
    cost = implementation.cpu_cost.of(role) if context.config.own_cpu_costs else None
    return Endpoint(context.images[implementation.name], environment, cpu_cost=cost)


def _requests(role: Role, case: TestCase, inputs: Inputs) -> tuple[str, ...]:
    """What a role requests: the client URLs, the server paths, which only tests of WebTransport have."""
    if inputs.session is None or case.webtransport is None:
        names = inputs.requests
    elif role is Role.SERVER:
        return inputs.requests if case.webtransport.requester is role else ()
    else:
        names = inputs.requests if case.webtransport.requester is role else (inputs.session.path,)
    return tuple(f"https://{case.server_name}:443/{name}" for name in names) if role is Role.CLIENT else ()


def _downloaded(session: Session, run: Run, flow: int) -> tuple[File, ...]:
    """The files that the storing side has at the end; in a WebTransport handshake, what both sides wrote."""
    case = run.test_case
    if case.webtransport is WebTransport.HANDSHAKE:
        found = {role: _protocol_of(session, run, role) for role in case.storing}
        return tuple(protocol_file(role, text) for role, text in found.items() if text is not None)
    (role,) = case.storing
    with session.fetch(role, "/downloads", flow) as archive:
        files = list_files(archive, download_limits(case))
    return files if case.webtransport is None else tuple(file for file in files if file.name != NEGOTIATED)


def _protocol_of(session: Session, run: Run, role: Role) -> str | None:
    """What a side wrote as the application protocol of the session; None if it wrote nothing."""
    with scratch_directory() as folder, session.fetch(role, "/downloads") as archive:
        unpack(archive, folder, download_limits(run.test_case))
        with suppress(FileNotFoundError), open_file(folder / NEGOTIATED) as file:
            return file.read(LONGEST_PROTOCOL).decode(errors="replace")
    return None


def _collect_logs(session: Session, run: Run, directory: Path, record: SessionRecord) -> None:
    text = []
    for flow, role in product(range(1, 2 + len(run.others)), Role):
        part, target = part_name(role, flow), flow_directory(directory, flow) / role
        target.mkdir(parents=True, exist_ok=True)
        try:
            with session.fetch(role, "/logs", flow) as archive:
                notes = unpack(archive, target, log_limits(run.test_case))
        except HarnessFault as fault:
            if fault.code != ErrorCode.ARTEFACT_LIMIT:
                raise
            notes = (f"logs cut: {fault.reason}",)
        record.notes += [f"{part}: {note}" for note in notes]
        output = printable_lines(session.output(role, flow).decode(errors="replace"))
        text += [f"{part:6} | {line}" for line in output.splitlines()]
    (directory / OUTPUT).write_text("\n".join(text) + "\n", encoding="utf-8")


def _keep_files(session: Session, run: Run, inputs: Inputs, directory: Path, record: SessionRecord) -> None:
    for name in KEPT:
        (directory / name).mkdir(exist_ok=True)
    for path in inputs.www.values():
        shutil.copyfile(path, directory / "www" / path.name)
    for role in run.test_case.storing:
        with session.fetch(role, "/downloads") as archive:
            record.notes += unpack(archive, directory / "downloads", download_limits(run.test_case))
