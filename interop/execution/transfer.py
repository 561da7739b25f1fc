"""The transfer of one run, from its inputs to the files that it leaves; it only records what happens."""

from __future__ import annotations

import datetime
import errno
import shutil
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from interop.docker.archive import list_files, unpack
from interop.execution.run_config import RunConfig
from interop.execution.run_inputs import Inputs, make_inputs
from interop.links.artefact_limits import download_limits, log_limits
from interop.links.backend import Testbed
from interop.links.session import Endpoint, Session, SessionRecord, SessionRequest
from interop.model.clock import Clock
from interop.model.emulated_link import SimulatorReport
from interop.model.errors import HarnessFault
from interop.model.evidence import Evidence
from interop.model.implementation import Implementation, Role
from interop.model.outcomes import ErrorCode
from interop.model.real_link import RealLink, RealLinkReport
from interop.model.run import File, Run
from interop.model.text import printable_lines
from interop.results.store import OUTPUT

KEPT = ("www", "downloads")
"""Directories that hold the files of a run, if they are kept."""


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
        cpu_peak=record.cpu_peak,
        notes=tuple(record.notes),
    )


def _parts(run: Run, clock: Clock) -> dict[str, str]:
    """Names of images by what they are in ``run``."""
    link = ["link-tools"] if isinstance(run.test_case.link, RealLink) else ["simulator"]
    link += ["virtual-time"] if clock is Clock.VIRTUAL else []
    return {"client": run.client.name, "server": run.server.name, **{name: name for name in link}}


def _run_session(
    run: Run, context: RunContext, inputs: Inputs, directory: Path, record: SessionRecord, evidence: Evidence
) -> Evidence:
    """Create, run, collect and remove endpoints and link; ``evidence`` with their files and report."""
    files: Mapping[Role, Mapping[str, bytes | Path]] = {
        Role.CLIENT: inputs.certs,
        Role.SERVER: {**inputs.www, **inputs.certs},
    }
    endpoints = {role: replace(endpoint(role, run, context, inputs.requests), files=files[role]) for role in Role}
    request = SessionRequest(run, endpoints, context.stop, context.on_client_start, context.on_client_end)
    with ExitStack() as stack:
        with record.phase("create"):
            session = stack.enter_context(context.testbed.session(request, record))
        session.run()
        with record.phase("collect"), ThreadPoolExecutor() as pool:
            downloaded = pool.submit(_downloaded, session, run)
            client = record.exits.get(Role.CLIENT)
            report = pool.submit(session.collect, directory, client.life if client else None)
            _collect_logs(session, run, directory, record)
            if context.config.keep_files:
                _keep_files(session, run, inputs, directory, record)
            evidence = _with_report(replace(evidence, downloaded=downloaded.result()), report.result())
        removal = stack.pop_all()
        with record.phase("remove"):
            removal.close()
    return evidence


def _with_report(evidence: Evidence, report: SimulatorReport | RealLinkReport | None) -> Evidence:
    if isinstance(report, RealLinkReport):
        return replace(evidence, real_link=report)
    return replace(evidence, simulator=report)


def endpoint(role: Role, run: Run, context: RunContext, names: tuple[str, ...]) -> Endpoint:
    """The program of a role, according to the endpoint contract of the QUIC Interop Runner; without its files.

    ``names``: of the files that the client requests.
    """
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
    return Endpoint(context.images[implementation.name], environment)


def _downloaded(session: Session, run: Run) -> tuple[File, ...]:
    with session.fetch(Role.CLIENT, "/downloads") as archive:
        return list_files(archive, download_limits(run.test_case))


def _collect_logs(session: Session, run: Run, directory: Path, record: SessionRecord) -> None:
    text = []
    for role in Role:
        target = directory / role
        target.mkdir(exist_ok=True)
        try:
            with session.fetch(role, "/logs") as archive:
                notes = unpack(archive, target, log_limits(run.test_case))
        except HarnessFault as fault:
            if fault.code != ErrorCode.ARTEFACT_LIMIT:
                raise
            notes = (f"logs cut: {fault.reason}",)
        record.notes += [f"{role}: {note}" for note in notes]
        output = printable_lines(session.output(role).decode(errors="replace"))
        text += [f"{role:6} | {line}" for line in output.splitlines()]
    (directory / OUTPUT).write_text("\n".join(text) + "\n", encoding="utf-8")


def _keep_files(session: Session, run: Run, inputs: Inputs, directory: Path, record: SessionRecord) -> None:
    for name in KEPT:
        (directory / name).mkdir(exist_ok=True)
    for path in inputs.www.values():
        shutil.copyfile(path, directory / "www" / path.name)
    with session.fetch(Role.CLIENT, "/downloads") as archive:
        record.notes += unpack(archive, directory / "downloads", download_limits(run.test_case))
