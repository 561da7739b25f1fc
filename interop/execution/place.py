"""Where runs happen: testbeds at a Docker daemon, in each of which one attempt is made after another."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar

from interop.errors import HarnessFault, UserError
from interop.execution import host
from interop.execution.admission import Admission, Turn
from interop.execution.compliance import check_compliance
from interop.execution.daemon import Daemon
from interop.execution.load import Meter
from interop.execution.transfer import KEPT, Interrupted, Surroundings, transfer
from interop.links import LinkBackend
from interop.model import (
    Compliance,
    ErrorCode,
    Evidence,
    Implementation,
    Link,
    Measurement,
    Outcome,
    RealLink,
    Role,
    Run,
    RunResult,
    Verdict,
)

DISTURBED = (ErrorCode.SIMULATOR_LAG, ErrorCode.HOST_STARVED)
"""What neighbours can do to a run."""

log = logging.getLogger(__name__)
T = TypeVar("T")

Judge = Callable[[Run, Evidence, Path], tuple[Verdict, Measurement | None]]
"""From evidence and traces to a verdict and numbers."""


class Place(Protocol):
    """A testbed somewhere, for one run at a time."""

    @property
    def station(self) -> Station:
        """Where it is."""

    def attempt(self, run: Run, number: int, directory: Path) -> RunResult:
        """What one attempt at ``run`` came to; its logs and traces lie in ``directory`` then.

        Raises ``Interrupted`` if told to stop, :class:`UserError` if the campaign cannot go on.
        """

    def check_compliance(self, implementation: Implementation, roles: tuple[Role, ...]) -> tuple[Compliance, ...]:
        """Whether an image is compliant in ``roles``; raises :class:`HarnessFault` if that cannot be found out."""

    def clear(self, *, alone: bool) -> str:
        """Remove the testbed, and if it is ``alone`` all that is left of the campaign there; who kept that from us."""


class Station(Protocol):
    """A machine with places."""

    @property
    def name(self) -> str:
        """How a person knows it."""

    @property
    def places(self) -> Sequence[Place]:
        """All that it offers."""

    def silence(self) -> str:
        """Who does not answer there; empty if it can be used."""

    def close(self) -> None:
        """Leave nothing there."""


@dataclass(frozen=True)
class Conditions:
    """What holds for every run that a station carries out for a campaign."""

    daemon: Daemon
    backend: LinkBackend
    images: Mapping[str, str]
    """Image id by implementation name, and ``simulator``."""
    stop: threading.Event
    parameters: Mapping[str, str]
    meter: Meter
    qlog: bool = True
    keep_files: bool = False
    """Keep the files of runs that do not succeed."""
    links: Mapping[tuple[str, str], LinkBackend] = field(default_factory=dict)
    """Backends of real links, by the names of their client's and server's host; all other links are ``backend``'s."""
    hosts: tuple[Daemon, ...] = ()
    """Daemons of real links."""

    def backend_of(self, link: Link) -> LinkBackend:
        """What makes testbeds with that link."""
        return self.links[link.client_host, link.server_host] if isinstance(link, RealLink) else self.backend

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """All at which the campaign makes something."""
        return (self.daemon, *self.hosts)


class DaemonStation:
    """Testbeds side by side at a daemon that this process reaches; each attempt waits until it may begin."""

    def __init__(
        self,
        conditions: Conditions,
        judge: Judge,
        say: Callable[[str], None],
        *,
        testbeds: int = 1,
        measured: bool = False,
    ) -> None:
        """``measured``: an attempt begins beside others only if the CPUs have time for it."""
        self.conditions = conditions
        self.judge = judge
        self.say = say
        cpus = int(conditions.daemon.info["NCPU"])
        self.admission = Admission(cpus, conditions.meter, conditions.stop, measured=measured)
        conditions.daemon.give_way = self.admission.give_way
        self._places = tuple(Bed(self) for _ in range(testbeds))

    @property
    def name(self) -> str:
        """The host of its daemon."""
        return self.conditions.daemon.host or self.conditions.daemon.url

    @property
    def places(self) -> tuple[Bed, ...]:
        """A testbed each, opened when it is needed."""
        return self._places

    def silence(self) -> str:
        """Which of its daemons does not answer; empty if all do."""
        silent = (each for each in self.conditions.daemons if not each.answers())
        return next((each.host or each.url for each in silent), "")

    def close(self) -> None:
        """Remove all testbeds, and all else that the campaign has left."""
        for place in self._places:
            place.close()
        for daemon in self.conditions.daemons:
            with suppress(HarnessFault):  # the reaper or the next start will
                daemon.sweep(daemon.campaign)


class Bed:
    """One testbed of a :class:`DaemonStation`; used by one thread at a time."""

    def __init__(self, station: DaemonStation) -> None:
        self._station = station
        self._conditions = station.conditions
        self._around: dict[LinkBackend, Surroundings] = {}
        self._testbed = ExitStack()

    @property
    def station(self) -> DaemonStation:
        """Where it is."""
        return self._station

    def attempt(self, run: Run, number: int, directory: Path) -> RunResult:
        """Carry ``run`` out once it may begin beside others, and judge it; see :class:`Place`."""
        admission = self._station.admission
        with admission.turn(run) as turn:
            if self._conditions.stop.is_set():
                raise Interrupted
            directory.mkdir(parents=True, exist_ok=True)
            evidence = self._evidence(run, directory, turn)
        result = self._judged(run, number, evidence, directory)  # which gives way to the run that begins now
        if _crowded(result) and turn.most_neighbours:
            admission.disturbed()
        if result.verdict.outcome is not Outcome.ERROR:
            admission.learn(result)
        return result

    def check_compliance(self, implementation: Implementation, roles: tuple[Role, ...]) -> tuple[Compliance, ...]:
        """See :class:`Place`."""
        return check_compliance(implementation, roles, self._surroundings(self._conditions.backend))

    def clear(self, *, alone: bool) -> str:
        """See :class:`Place`; in the only testbed of its station it is always alone."""
        self.close()
        for daemon in self._conditions.daemons:
            try:
                if alone or len(self._station.places) == 1:
                    daemon.sweep(daemon.campaign)
            except HarnessFault:
                return daemon.host or daemon.url
            if not daemon.answers():
                return daemon.host or daemon.url
        return ""

    def close(self) -> None:
        """Remove the testbed; the next run gets another."""
        self._around.clear()
        stack, self._testbed = self._testbed, ExitStack()
        try:
            stack.close()
        except HarnessFault as fault:
            self._station.say(f"the testbed could not be removed yet: {fault.reason}")

    def _judged(self, run: Run, attempt: int, evidence: Evidence, directory: Path) -> RunResult:
        begin = time.monotonic()
        said = _or_fault(run, lambda: self._station.judge(run, evidence, directory))
        if isinstance(said, HarnessFault):
            said = Verdict(Outcome.ERROR, ErrorCode(said.code), said.reason), None
        verdict, measurement = said
        if verdict.outcome is Outcome.SUCCEEDED:
            for name in KEPT:
                shutil.rmtree(directory / name, ignore_errors=True)
        phases = {**evidence.phases, "analyse": round(time.monotonic() - begin, 6)}
        return result_of(run, attempt, verdict, replace(evidence, phases=phases), measurement)

    def _evidence(self, run: Run, directory: Path, turn: Turn) -> Evidence:
        try:
            found = _or_fault(run, lambda: self._carried_out(run, directory, turn))
        except Interrupted:
            shutil.rmtree(directory, ignore_errors=True)  # half a run is no evidence
            raise
        if isinstance(found, HarnessFault):  # no testbed
            return Evidence(started="", seed=run.seed, fault_code=found.code, fault=found.reason)
        return found

    def _carried_out(self, run: Run, directory: Path, turn: Turn) -> Evidence:
        around = self._surroundings(self._conditions.backend_of(run.test_case.link))
        facts = host.watch(self._conditions.daemon.info, self._conditions.meter)
        evidence = transfer(run, replace(around, begun=turn.begun, ended=turn.ended), directory)
        found = replace(facts(), neighbours=turn.most_neighbours)
        if self._conditions.daemon.host:  # another machine, of which nobody knows more than its daemon tells
            found = replace(found, cpu_pressure=None, processor="")
        return replace(evidence, host=found)

    def _surroundings(self, backend: LinkBackend) -> Surroundings:
        if backend not in self._around:
            conditions = self._conditions
            testbed = self._testbed.enter_context(backend.open())
            self._around[backend] = Surroundings(
                daemon=conditions.daemon,
                testbed=testbed,
                images=conditions.images,
                stop=conditions.stop,
                qlog=conditions.qlog,
                keep_files=conditions.keep_files,
                parameters=conditions.parameters,
            )
        return self._around[backend]


def disturbed(result: RunResult) -> bool:
    """Whether neighbours may have disturbed a run that counts for nothing."""
    host = result.evidence.host
    return result.verdict.code in DISTURBED and host is not None and bool(host.neighbours)


def _crowded(result: RunResult) -> bool:
    """Whether a run lacked CPU time. A simulator that has some reserved falls behind when the whole machine does."""
    link = result.evidence.simulator
    reserved = link is not None and link.realtime_priority
    return result.verdict.code in DISTURBED and not (result.verdict.code is ErrorCode.SIMULATOR_LAG and reserved)


def _or_fault(run: Run, act: Callable[[], T]) -> T | HarnessFault:
    """What ``act`` returns, or the fault of ours that kept it from that; what ends the campaign is raised."""
    try:
        return act()
    except (Interrupted, UserError):
        raise
    except HarnessFault as fault:
        return fault
    except Exception as error:  # a bug that one run meets must not cost the campaign
        log.debug("%s", run.path, exc_info=True)
        return HarnessFault(ErrorCode.HARNESS_FAULT, f"This program has a fault: {type(error).__name__}: {error}.")


def result_of(
    run: Run, attempt: int, verdict: Verdict, evidence: Evidence, measurement: Measurement | None
) -> RunResult:
    """A line of the journal."""
    names = (run.server.name, run.client.name, run.test_case.name)
    return RunResult(*names, run.repetition, attempt, verdict, evidence, measurement, run.protocol)
