"""A worker at a Docker daemon that this process reaches itself, on this machine or on another one."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from quicsat.docker.client import Daemon
from quicsat.docker.containers import remove_containers
from quicsat.execution import host_facts
from quicsat.execution.admission import Admission, AdmissionTicket
from quicsat.execution.compliance import check_compliance
from quicsat.execution.cpu_monitor import CpuMonitor
from quicsat.execution.run_config import RunConfig
from quicsat.execution.run_watcher import RunWatcher
from quicsat.execution.transfer import KEPT, RunContext, transfer
from quicsat.execution.worker import DISTURBED, Analyse, Outage, result_of
from quicsat.links.backend import LinkBackend
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
T = TypeVar("T")


@dataclass(frozen=True)
class WorkerConfig:
    """What all runs of a campaign on one worker share."""

    daemon: Daemon
    backend: LinkBackend
    images: Mapping[str, str]
    """Image id by implementation name, and of ``simulator``."""
    stop: threading.Event
    """Set when the campaign is to end."""
    monitor: CpuMonitor
    run: RunConfig = field(default_factory=RunConfig)
    links: Mapping[tuple[str, str], LinkBackend] = field(default_factory=dict)
    """Back ends of real links, by the names of client host and server host; ``backend`` serves all other links."""
    link_daemons: tuple[Daemon, ...] = ()
    """Daemons of the hosts of real links."""
    watcher: RunWatcher | None = None
    """Who wants to know what happens to runs under way."""

    def backend_of(self, link: Link) -> LinkBackend:
        """The back end that opens testbeds with ``link``."""
        return self.links[link.client_host, link.server_host] if isinstance(link, RealLink) else self.backend

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """All daemons at which this worker creates containers."""
        return (self.daemon, *self.link_daemons)


class LocalWorker:
    """Slots at one daemon; an attempt waits until it is admitted beside those under way."""

    def __init__(
        self,
        config: WorkerConfig,
        analyse: Analyse,
        say: Callable[[str], None],
        *,
        testbeds: int = 1,
        measured: bool = False,
    ) -> None:
        """``measured``: admit an attempt beside others only if the CPUs have enough idle time."""
        self.config = config
        self.analyse = analyse
        self.say = say
        self.admission = Admission(
            int(config.daemon.info["NCPU"]),
            config.monitor,
            config.stop,
            measured=measured,
            independent=config.run.clock is Clock.VIRTUAL,
        )
        config.daemon.throttle = self.admission.throttle
        self._slots = tuple(LocalSlot(self) for _ in range(testbeds))

    @property
    def name(self) -> str:
        """The host of its daemon."""
        return self.config.daemon.where

    @property
    def slots(self) -> tuple[LocalSlot, ...]:
        """One per testbed; a testbed is opened when it is first needed."""
        return self._slots

    def outage(self) -> Outage | None:
        """The first daemon that does not answer; None if all do."""
        return next((_unreachable(each) for each in self.config.daemons if not each.answers()), None)

    def close(self) -> None:
        """Remove all testbeds, and every other container of the campaign."""
        for slot in self._slots:
            slot.close()
        for daemon in self.config.daemons:
            with suppress(HarnessFault):  # the reaper or the next campaign removes them
                remove_containers(daemon, daemon.campaign)


class LocalSlot:
    """One testbed of a :class:`LocalWorker`; used by one thread at a time."""

    def __init__(self, worker: LocalWorker) -> None:
        self._worker = worker
        self._config = worker.config
        self._contexts: dict[LinkBackend, RunContext] = {}
        self._testbeds = ExitStack()

    @property
    def worker(self) -> LocalWorker:
        """The worker that has this slot."""
        return self._worker

    def attempt(self, run: Run, number: int, directory: Path) -> RunResult:
        """Make one attempt once it is admitted, and analyse it; see :class:`quicsat.execution.worker.Slot`."""
        admission = self._worker.admission
        with admission.admit(run) as ticket:
            if self._config.stop.is_set():
                raise Interrupted
            directory.mkdir(parents=True, exist_ok=True)
            evidence = self._evidence(run, directory, ticket)
        result = self._analysed(run, number, evidence, directory)  # outside the ticket: the next run may begin
        if _lacked_cpu(result) and ticket.most_neighbours:
            admission.disturbed()
        if result.verdict.outcome is not Outcome.ERROR:
            admission.record(result)
        return result

    def check_compliance(self, implementation: Implementation, roles: tuple[Role, ...]) -> tuple[Compliance, ...]:
        """See :class:`quicsat.execution.worker.Slot`."""
        return check_compliance(implementation, roles, self._context(self._config.backend))

    def reset(self, *, alone: bool) -> Outage | None:
        """See :class:`quicsat.execution.worker.Slot`; the only slot of a worker is always alone."""
        self.close()
        for daemon in self._config.daemons:
            try:
                if alone or len(self._worker.slots) == 1:
                    remove_containers(daemon, daemon.campaign)
            except HarnessFault:
                return _unreachable(daemon)
            if not daemon.answers():
                return _unreachable(daemon)
        return None

    def close(self) -> None:
        """Remove the testbed; the next attempt opens another."""
        self._contexts.clear()
        stack, self._testbeds = self._testbeds, ExitStack()
        try:
            stack.close()
        except HarnessFault as fault:
            self._worker.say(f"the testbed could not be removed yet: {fault.reason}")

    def _evidence(self, run: Run, directory: Path, ticket: AdmissionTicket) -> Evidence:
        """What one transfer left, also if no testbed could be opened; raises as :meth:`attempt`."""
        try:
            found = _or_fault(run, lambda: self._transfer(run, directory, ticket))
        except Interrupted:
            shutil.rmtree(directory, ignore_errors=True)  # half a run is no evidence
            raise
        if isinstance(found, HarnessFault):
            return Evidence(started="", seed=run.seed, fault_code=found.code, fault=found.reason)
        return found

    def _transfer(self, run: Run, directory: Path, ticket: AdmissionTicket) -> Evidence:
        """Make the transfer, and add what is known of the machine meanwhile."""
        context = self._context(self._config.backend_of(run.test_case.link))
        facts = host_facts.watch(self._config.daemon.info, self._config.monitor)
        context = replace(context, on_client_start=ticket.client_started, on_client_end=ticket.client_ended)
        with _watched(run, self._config.watcher) as on_received:
            evidence = transfer(run, replace(context, on_received=on_received), directory)
        host = replace(facts(), neighbours=ticket.most_neighbours)
        if self._config.daemon.host:  # another machine: only its daemon describes it
            host = replace(host, cpu_pressure=None, processor="")
        return replace(evidence, host=host)

    def _analysed(self, run: Run, attempt: int, evidence: Evidence, directory: Path) -> RunResult:
        begin = time.monotonic()
        found = _or_fault(run, lambda: self._worker.analyse(run, evidence, directory))
        if isinstance(found, HarnessFault):
            found = Verdict(Outcome.ERROR, ErrorCode(found.code), found.reason), None
        verdict, measurement = found
        if verdict.outcome is Outcome.SUCCEEDED:
            for name in KEPT:
                shutil.rmtree(directory / name, ignore_errors=True)
        phases = {**evidence.phases, "analyse": round(time.monotonic() - begin, 6)}
        return result_of(run, attempt, verdict, replace(evidence, phases=phases), measurement)

    def _context(self, backend: LinkBackend) -> RunContext:
        """The context of runs over ``backend``, whose testbed is opened if there is none."""
        if backend not in self._contexts:
            testbed = self._testbeds.enter_context(backend.open())
            config = self._config
            self._contexts[backend] = RunContext(testbed, config.images, config.stop, config.run)
        return self._contexts[backend]


@contextmanager
def _watched(run: Run, watcher: RunWatcher | None) -> Iterator[Callable[[int], object] | None]:
    """Tell ``watcher`` when an attempt begins and ends; what its session calls with the bytes received."""
    if watcher is None:
        yield None
        return
    watcher.began(run)
    try:
        yield partial(watcher.received, run)
    finally:
        watcher.ended(run)


def _unreachable(daemon: Daemon) -> Outage:
    return Outage(f"the Docker daemon at {daemon.where} does not answer")


def _lacked_cpu(result: RunResult) -> bool:
    """Whether an attempt lacked CPU time. A simulator with reserved time falls behind only if the machine does."""
    link = result.evidence.simulator
    reserved = link is not None and link.realtime_priority
    return result.verdict.code in DISTURBED and not (result.verdict.code is ErrorCode.SIMULATOR_LAG and reserved)


def _or_fault(run: Run, act: Callable[[], T]) -> T | HarnessFault:
    """The result of ``act``, or the fault of this program that prevented it; raises what ends the campaign."""
    try:
        return act()
    except (Interrupted, UserError):
        raise
    except HarnessFault as fault:
        return fault
    except Exception as error:  # a bug that one run triggers must not end the campaign
        log.debug("%s", run.path, exc_info=True)
        return HarnessFault(ErrorCode.HARNESS_FAULT, f"This program has a fault: {type(error).__name__}: {error}.")
