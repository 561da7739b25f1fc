"""A worker at a Docker daemon that this process reaches itself, on this machine or on another one."""

import logging
import shutil
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from quicsat.docker.client import Daemon
from quicsat.docker.containers import remove_containers
from quicsat.execution import host_facts
from quicsat.execution.admission import Admission, AdmissionTicket
from quicsat.execution.compliance import check_compliance
from quicsat.execution.cpu_monitor import CpuMonitor
from quicsat.execution.observer import Observer
from quicsat.execution.run_config import RunConfig
from quicsat.execution.transfer import KEPT, Transfer
from quicsat.execution.worker import DISTURBED, Analyse, Outage, result_of
from quicsat.links.backend import LinkBackend, Testbed
from quicsat.links.session import RunControl
from quicsat.model.clock import Clock
from quicsat.model.errors import HarnessFault, Interrupted, UserError
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.real_link import RealLink
from quicsat.model.results import Compliance, RunResult
from quicsat.model.run import Run
from quicsat.model.test_case import Link

log = logging.getLogger(__name__)


@dataclass(eq=False)
class LocalWorker:
    """Slots at one daemon; an attempt waits until it is admitted beside those under way."""

    daemon: Daemon
    backend: LinkBackend
    """That of emulated links, and of compliance checks."""
    config: RunConfig
    analyse: Analyse
    stop: threading.Event
    """Set when the campaign is to end."""
    monitor: CpuMonitor = field(default_factory=CpuMonitor)
    observer: Observer = field(default_factory=Observer)
    links: Mapping[tuple[str, str], LinkBackend] = field(default_factory=dict)
    """Back ends of real links, by the names of client host and server host."""
    link_daemons: tuple[Daemon, ...] = ()
    """Daemons of the hosts of real links."""
    testbeds: int = 1
    measured: bool = False
    """Admit an attempt beside others only if the CPUs have enough idle time."""

    def __post_init__(self) -> None:
        self.admission = Admission(
            int(self.daemon.info["NCPU"]),
            self.monitor,
            self.stop,
            measured=self.measured,
            independent=self.config.clock is Clock.VIRTUAL,
        )
        self.daemon.throttle = self.admission.throttle
        self.slots = tuple(LocalSlot(self) for _ in range(self.testbeds))
        """One per testbed; a testbed is opened when it is first needed."""

    @property
    def name(self) -> str:
        """The host of its daemon."""
        return self.daemon.where

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """All daemons at which this worker creates containers."""
        return (self.daemon, *self.link_daemons)

    def backend_of(self, link: Link) -> LinkBackend:
        """The back end that opens testbeds with ``link``."""
        return self.links[link.client_host, link.server_host] if isinstance(link, RealLink) else self.backend

    def outage(self) -> Outage | None:
        """The first daemon that does not answer; None if all do."""
        return next((_unreachable(each) for each in self.daemons if not each.answers()), None)

    def close(self) -> None:
        """Remove all testbeds, and every other container of the campaign."""
        for slot in self.slots:
            slot.close()
        for daemon in self.daemons:
            with suppress(HarnessFault):  # the reaper or the next campaign removes them
                remove_containers(daemon, daemon.campaign)


class LocalSlot:
    """One testbed of a :class:`LocalWorker`; used by one thread at a time."""

    def __init__(self, worker: LocalWorker) -> None:
        self.worker = worker
        """The worker that has this slot."""
        self._open: dict[LinkBackend, Testbed] = {}
        self._testbeds = ExitStack()

    def attempt(self, run: Run, number: int, directory: Path) -> RunResult:
        """Make one attempt once it is admitted, and analyse it; see :class:`quicsat.execution.worker.Slot`."""
        admission = self.worker.admission
        with admission.admit(run) as ticket:
            if self.worker.stop.is_set():
                raise Interrupted
            directory.mkdir(parents=True, exist_ok=True)
            try:
                evidence = self._transfer(run, directory, ticket)
            except Interrupted:
                shutil.rmtree(directory, ignore_errors=True)  # half a run is no evidence
                raise
            except Exception as error:  # noqa: BLE001 - no testbed could be opened
                fault = _fault_of(run, error)
                evidence = Evidence(started="", seed=run.seed, fault_code=fault.code, fault=fault.reason)
        result = self._analysed(run, number, evidence, directory)  # outside the ticket: the next run may begin
        if _lacked_cpu(result) and ticket.most_neighbours:
            admission.disturbed()
        if result.verdict.outcome is not Outcome.ERROR:
            admission.record(result)
        return result

    def check_compliance(self, implementation: Implementation, roles: tuple[Role, ...]) -> tuple[Compliance, ...]:
        """See :class:`quicsat.execution.worker.Slot`."""
        worker = self.worker
        testbed = self._testbed(worker.backend)
        return check_compliance(implementation, roles, testbed, worker.config, RunControl(worker.stop))

    def reset(self, *, alone: bool) -> Outage | None:
        """See :class:`quicsat.execution.worker.Slot`; the only slot of a worker is always alone."""
        self.close()
        for daemon in self.worker.daemons:
            try:
                if alone or len(self.worker.slots) == 1:
                    remove_containers(daemon, daemon.campaign)
            except HarnessFault:
                return _unreachable(daemon)
            if not daemon.answers():
                return _unreachable(daemon)
        return None

    def close(self) -> None:
        """Remove the testbed; the next attempt opens another."""
        self._open.clear()
        stack, self._testbeds = self._testbeds, ExitStack()
        try:
            stack.close()
        except HarnessFault as fault:
            self.worker.observer.say(f"the testbed could not be removed yet: {fault.reason}")

    def _transfer(self, run: Run, directory: Path, ticket: AdmissionTicket) -> Evidence:
        """Make the transfer, and add what is known of the machine meanwhile; raises if no testbed can be opened."""
        worker, observer = self.worker, self.worker.observer
        testbed = self._testbed(worker.backend_of(run.test_case.link))
        facts = host_facts.watch(worker.daemon.info, worker.monitor)
        received = partial(observer.received, run) if observer.received is not None else None
        control = RunControl(worker.stop, ticket.client_started, ticket.client_ended, received)
        observer.began(run)
        try:
            evidence = Transfer(run, testbed, worker.config, control, directory).make()
        finally:
            observer.ended(run)
        host = replace(facts(), neighbours=ticket.most_neighbours)
        if worker.daemon.host:  # another machine: only its daemon describes it
            host = replace(host, cpu_pressure=None, processor="")
        return replace(evidence, host=host)

    def _analysed(self, run: Run, attempt: int, evidence: Evidence, directory: Path) -> RunResult:
        begin = time.monotonic()
        try:
            verdict, measurement = self.worker.analyse(run, evidence, directory)
        except Exception as error:  # noqa: BLE001 - see _fault_of
            fault = _fault_of(run, error)
            verdict, measurement = Verdict(Outcome.ERROR, ErrorCode(fault.code), fault.reason), None
        if verdict.outcome is Outcome.SUCCEEDED:
            for name in KEPT:
                shutil.rmtree(directory / name, ignore_errors=True)
        phases = {**evidence.phases, "analyse": round(time.monotonic() - begin, 6)}
        return result_of(run, attempt, verdict, replace(evidence, phases=phases), measurement)

    def _testbed(self, backend: LinkBackend) -> Testbed:
        """The testbed of ``backend``, which is opened if there is none."""
        if backend not in self._open:
            self._open[backend] = self._testbeds.enter_context(backend.open())
        return self._open[backend]


def _fault_of(run: Run, error: Exception) -> HarnessFault:
    """The fault of this program that an ``error`` while it made ``run`` is; raises what ends the campaign."""
    if isinstance(error, Interrupted | UserError):
        raise error
    if isinstance(error, HarnessFault):
        return error
    log.debug("%s", run.path, exc_info=error)  # a bug that one run triggers must not end the campaign
    return HarnessFault(ErrorCode.HARNESS_FAULT, f"This program has a fault: {type(error).__name__}: {error}.")


def _unreachable(daemon: Daemon) -> Outage:
    return Outage(f"the Docker daemon at {daemon.where} does not answer")


def _lacked_cpu(result: RunResult) -> bool:
    """Whether an attempt lacked CPU time. A simulator with reserved time falls behind only if the machine does."""
    link = result.evidence.simulator
    reserved = link is not None and link.realtime_priority
    return result.verdict.code in DISTURBED and not (result.verdict.code is ErrorCode.SIMULATOR_LAG and reserved)
