"""The transfer of one run, from its inputs to the files that it leaves; it only records what happens."""

import datetime
import errno
import shutil
from collections.abc import Mapping
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
from quicsat.links.session import Endpoint, FurtherFlow, RunControl, Session, SessionRecord, SessionRequest
from quicsat.model.clock import Clock
from quicsat.model.cpu_cost import DEFAULT, CostModel
from quicsat.model.errors import HarnessFault
from quicsat.model.evidence import Evidence, FlowEvidence
from quicsat.model.flow import flow_directory, part_name
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode
from quicsat.model.perturbation import Perturbation, perturbation_of
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
class Transfer:
    """The transfer of one run; it is made once."""

    run: Run
    testbed: Testbed
    config: RunConfig
    control: RunControl
    directory: Path
    """Where its logs and traces go."""
    record: SessionRecord = field(default_factory=SessionRecord)

    def make(self) -> Evidence:
        """Make it; the evidence, to which faults of this program belong. Only ``Interrupted`` is raised."""
        run = self.run
        self.record.evidence = Evidence(
            started=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            seed=run.seed,
            images=_images(run, self.config),
            clock=self.config.clock,
            flows=(FlowEvidence(),) * len(run.others),
            perturbation=self._perturbation,
        )
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            with ExitStack() as stack:
                with self.record.phase("prepare"):
                    origin = self.testbed.input_origin(run)
                    inputs = stack.enter_context(make_inputs(run.test_case, self.directory, origin))
                self.record.add(offered=inputs.files)
                self._run_session(inputs)
        except HarnessFault as fault:
            self.record.add(fault_code=fault.code, fault=fault.reason)
        except OSError as error:
            code = ErrorCode.DISK_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else ErrorCode.HARNESS_FAULT
            self.record.add(fault_code=code, fault=f"the run could not be kept: {error}")
        return self.record.evidence

    @property
    def _perturbation(self) -> Perturbation:
        return perturbation_of(self.run.repetition, self.config.amplitudes, placebo=self.config.placebo)

    def _run_session(self, inputs: Inputs) -> None:
        """Create, run, collect and remove endpoints and link."""
        with ExitStack() as stack:
            with self.record.phase("create"):
                session = stack.enter_context(self.testbed.session(self._request(inputs), self.record))
            session.run()
            with self.record.phase("collect"), ThreadPoolExecutor() as pool:
                downloads = [
                    pool.submit(self._downloaded, session, flow) for flow in range(1, 2 + len(self.run.others))
                ]
                client = self.record.evidence.client
                report = pool.submit(session.collect, self.directory, client.life if client else None)
                self._collect_logs(session)
                if self.config.keep_files:
                    self._keep_files(session, inputs)
                first, *others = (each.result() for each in downloads)
                flows = zip(self.record.evidence.flows, others, strict=True)
                self.record.add(downloaded=first, flows=tuple(replace(flow, downloaded=files) for flow, files in flows))
                kind = "real_link" if isinstance(report.result(), RealLinkReport) else "simulator"
                self.record.add(**{kind: report.result()})
            removal = stack.pop_all()
            with self.record.phase("remove"):
                removal.close()

    def _request(self, inputs: Inputs) -> SessionRequest:
        """What the testbed has to make of the run; here, its link becomes that of its perturbation."""
        run, by = self.run, self._perturbation
        offering = Role.CLIENT if run.test_case.webtransport is WebTransport.SEND else Role.SERVER
        files: Mapping[Role, Mapping[str, bytes | Path]] = {
            role: {**(inputs.www if role is offering else {}), **inputs.certs} for role in Role
        }
        directories = (f"www/{inputs.session.path}",) if inputs.session else ()
        first, *others = (
            {
                role: replace(endpoint(role, flow, self.config, inputs), files=files[role], directories=directories)
                for role in Role
            }
            for flow in (run, *run.others)
        )
        starts = (flow.start for flow in run.test_case.flows)
        further = tuple(FurtherFlow(endpoints, start) for endpoints, start in zip(others, starts, strict=True))
        return SessionRequest(run.under(by), first, self.control, further, by)

    def _downloaded(self, session: Session, flow: int) -> tuple[File, ...]:
        """The files that the storing side has at the end; in a WebTransport handshake, what both sides wrote."""
        case = self.run.test_case
        if case.webtransport is WebTransport.HANDSHAKE:
            found = {role: _protocol_of(session, case, role) for role in case.storing}
            return tuple(protocol_file(role, text) for role, text in found.items() if text is not None)
        (role,) = case.storing
        with session.fetch(role, "/downloads", flow) as archive:
            files = list_files(archive, download_limits(case))
        return files if case.webtransport is None else tuple(file for file in files if file.name != NEGOTIATED)

    def _collect_logs(self, session: Session) -> None:
        text = []
        for flow, role in product(range(1, 2 + len(self.run.others)), Role):
            part, target = part_name(role, flow), flow_directory(self.directory, flow) / role
            target.mkdir(parents=True, exist_ok=True)
            try:
                with session.fetch(role, "/logs", flow) as archive:
                    notes = unpack(archive, target, log_limits(self.run.test_case))
            except HarnessFault as fault:
                if fault.code != ErrorCode.ARTEFACT_LIMIT:
                    raise
                notes = (f"logs cut: {fault.reason}",)
            self.record.note(*(f"{part}: {note}" for note in notes))
            output = printable_lines(session.output(role, flow).decode(errors="replace"))
            text += [f"{part:6} | {line}" for line in output.splitlines()]
        (self.directory / OUTPUT).write_text("\n".join(text) + "\n", encoding="utf-8")

    def _keep_files(self, session: Session, inputs: Inputs) -> None:
        for name in KEPT:
            (self.directory / name).mkdir(exist_ok=True)
        for path in inputs.www.values():
            shutil.copyfile(path, self.directory / "www" / path.name)
        limits = download_limits(self.run.test_case)
        for role in self.run.test_case.storing:
            with session.fetch(role, "/downloads") as archive:
                self.record.note(*unpack(archive, self.directory / "downloads", limits))


def _images(run: Run, config: RunConfig) -> dict[str, str]:
    """Ids of images by what they are in ``run``."""
    link = ["link-tools"] if isinstance(run.test_case.link, RealLink) else ["simulator"]
    link += ["virtual-time"] if config.clock is Clock.VIRTUAL else []
    link += ["link-gateways"] if run.test_case.has_gateways else []
    ends = {
        part_name(role, number): config.image_of(end).id
        for number, flow in enumerate((run, *run.others), start=1)
        for role, end in ((Role.CLIENT, flow.client), (Role.SERVER, flow.server))
    }
    return {**ends, **{name: config.images[name].id for name in link}}


def endpoint(role: Role, run: Run, config: RunConfig, inputs: Inputs) -> Endpoint:
    """The program of a role, according to the endpoint contract of the QUIC Interop Runner; without its files."""
    implementation: Implementation = run.server if role is Role.SERVER else run.client
    case = run.endpoint_test_case
    environment = {
        "ROLE": str(role),
        "TESTCASE": case.server_test if role is Role.SERVER else case.client_test,
        "SSLKEYLOGFILE": "/logs/keys.log",
        "QLOGDIR": "/logs/qlog/" if config.qlog else "",
        "REQUESTS": " ".join(_requests(role, case, inputs)),
        "TESTCASE_CONTEXT": case.name,
    }
    if role is Role.CLIENT and case.workload is not None and case.workload.after:
        environment["REQUESTS_AFTER"] = " ".join(map(str, case.workload.after))
    parameters = f"{role.upper()}_PARAMS"
    own = implementation.server_parameters if role is Role.SERVER else implementation.client_parameters
    environment[parameters] = " ".join(filter(None, (config.parameters.get(parameters), own)))
    environment["CRON"] = config.parameters.get("CRON", "")
    contract = implementation.contract
    environment["PROTOCOLS"] = " ".join(contract.protocols) or config.parameters.get(f"PROTOCOLS_{role.upper()}", "")
    if inputs.session is not None:
        environment["PROTOCOLS"] = " ".join(inputs.session.protocols[role])
    if contract.version:
        environment["VERSION"] = contract.version
    cost = implementation.cpu_cost.of(role)
    costs = cost if isinstance(cost, CostModel) else DEFAULT
    return Endpoint(config.image_of(implementation).id, environment, costs=costs)


def _requests(role: Role, case: TestCase, inputs: Inputs) -> tuple[str, ...]:
    """What a role requests: the client URLs, the server paths, which only tests of WebTransport have."""
    if inputs.session is None or case.webtransport is None:
        names = inputs.requests
    elif role is Role.SERVER:
        return inputs.requests if case.webtransport.requester is role else ()
    else:
        names = inputs.requests if case.webtransport.requester is role else (inputs.session.path,)
    return tuple(f"https://{case.server_name}:443/{name}" for name in names) if role is Role.CLIENT else ()


def _protocol_of(session: Session, case: TestCase, role: Role) -> str | None:
    """What a side wrote as the application protocol of the session; None if it wrote nothing."""
    with scratch_directory() as folder, session.fetch(role, "/downloads") as archive:
        unpack(archive, folder, download_limits(case))
        with suppress(FileNotFoundError), open_file(folder / NEGOTIATED) as file:
            return file.read(LONGEST_PROTOCOL).decode(errors="replace")
    return None
