"""Proxies for the workers of a cluster: discovered as they come and go, given images, and called for attempts."""

from __future__ import annotations

import errno
import io
import math
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from quicsat.docker.archive import ArchiveLimits, ChunkStream, unpack
from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.execution.cluster import Cluster, Offer, RefusedError, session_key
from quicsat.execution.worker import Outage, result_of
from quicsat.execution.worker_messages import CHUNK, AttemptReport, Registration, RemoteConfig
from quicsat.execution.worker_pool import WorkerPool
from quicsat.links.artefact_limits import run_limits
from quicsat.model.errors import HarnessFault, Interrupted, MachineError
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.real_link import Scheduler
from quicsat.model.results import Compliance, ImageFacts, RunResult
from quicsat.model.run import Run
from quicsat.model.text import command_line, counted, printable
from quicsat.model.units import byte_size

Say = Callable[[str], None]

POLL = 1.0
"""Seconds between two queries for workers."""
PATIENCE = 120.0
"""Seconds for which a campaign waits while there is no worker."""
QUESTION, FAREWELL = 20.0, 60.0
"""Seconds to wait for the answer to a query, and to the end of a campaign."""
MAX_SLOTS = 64
"""Maximum number of parallel runs."""
REFUSAL = 15.0
"""Seconds after which a worker that refused is asked again, since it may have been busy."""
REJOIN = 15.0
"""Seconds after which a worker that was lost is asked again, if it is still there: it may be about to end."""


class WorkerProxy:
    """A worker of the cluster; its service serves this campaign."""

    def __init__(self, cluster: Cluster, offer: Offer, config: RemoteConfig, stop: threading.Event, say: Say) -> None:
        self.name = f"worker {offer.name}"
        self.slots: tuple[SlotProxy, ...] = ()
        self.stop = stop
        self.say = say
        self.lost = False
        """Whether an attempt found that it is lost; it must register again."""
        self._cluster = cluster
        self._offer = offer
        self._config = config
        self._release: Callable[[], None] = lambda: None

    def register(self, source: Daemon) -> None:
        """Open its service and upload the images that it lacks.

        Raises :class:`HarnessFault` if the worker is lost, :class:`RefusedError` with a reason if it cannot take part.
        """
        key, address = session_key(self._config.campaign), self._offer.address
        registration, self._release = self._cluster.hold(address, "open", key, self._config)
        try:
            if not isinstance(registration, Registration):
                raise RefusedError("its answer is invalid")
            for name in registration.missing_images:
                self._upload(name, self._config.run.images[name], source)
            self.ask("begin")
        except BaseException:
            self._release()
            raise
        testbeds = max(1, min(registration.testbeds, self._offer.testbeds))
        self.slots = tuple(SlotProxy(self, number) for number in range(testbeds))
        self.say(f"{self.name} on {printable(registration.host)} takes part with {counted(testbeds, 'testbed')}")

    def ask(self, verb: str, *words: Any, testbed: bool = False, patience: float | None = None) -> Any:
        """Call its service; see :meth:`Cluster.ask`. An attempt is aborted at once if the campaign is to end."""
        stop = self.stop if testbed else None
        try:
            return self._cluster.ask(self._offer.address, verb, *words, stop=stop, patience=patience)
        except HarnessFault as fault:
            self.lost = self.lost or (testbed and fault.code is ErrorCode.WORKER_LOST)
            raise

    def outage(self) -> Outage | None:
        """That it does not answer, or the outage that it reports; None if it can be used."""
        return self.ask_for_outage("outage", patience=QUESTION)

    def ask_for_outage(self, verb: str, *words: Any, patience: float) -> Outage | None:
        """The outage that a call of its service returns; also one if it does not answer, or is lost."""
        if self.lost:
            return Outage(f"{self.name} was lost")
        try:
            found = self.ask(verb, *words, patience=patience)
        except (HarnessFault, RefusedError):
            return Outage(f"{self.name} does not answer")
        if found is None:
            return None
        reason = printable(found.reason) if isinstance(found, Outage) else "invalid answer"
        return Outage(f"{self.name}: {reason}")

    def close(self) -> None:
        """Make it stop everything for this campaign, and wait until it has."""
        try:
            self.ask("close", self._config.campaign, patience=FAREWELL)
        except (HarnessFault, RefusedError, MachineError):
            self.say(f"{self.name} could not be told that the campaign has ended; it notices that by itself")
        finally:
            self._release()

    def _upload(self, name: str, image: ImageFacts, source: Daemon) -> None:
        self.say(f"{name}: uploading {byte_size(image.size)} to {self.name}")
        archive = io.BufferedReader(ChunkStream(DaemonImages(source).export(image.id), ArchiveLimits(sys.maxsize)))
        for chunk in iter(partial(archive.read, CHUNK), b""):
            self.ask("upload", name, chunk)
        self.ask("upload", name, b"")


class SlotProxy:
    """One slot of a cluster worker; used by one thread at a time."""

    def __init__(self, worker: WorkerProxy, number: int) -> None:
        self.worker = worker
        """The worker that has this slot."""
        self._number = number

    def attempt(self, run: Run, number: int, directory: Path) -> RunResult:
        """Have the worker make and analyse ``run``, and fetch its files; see :class:`quicsat.execution.worker.Slot`."""
        worker = self.worker
        directory.mkdir(parents=True, exist_ok=True)
        try:
            answer = worker.ask("attempt", self._number, run, number, testbed=True)
            if not _matches(answer, run, number):
                raise HarnessFault(ErrorCode.HARNESS_FAULT, f"{worker.name} gave an invalid answer")
            for line in answer.messages:
                worker.say(f"{worker.name}: {printable(line)}")
            unpack(self._archive(answer.size), directory, run_limits(run.test_case))
            worker.ask("drop", self._number)
        except Interrupted:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        except RefusedError as refusal:
            return _error(run, number, ErrorCode.HARNESS_FAULT, f"{worker.name} refused the run: {refusal}")
        except HarnessFault as fault:
            return _error(run, number, ErrorCode(fault.code), fault.reason)
        except OSError as error:
            code = ErrorCode.DISK_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else ErrorCode.HARNESS_FAULT
            return _error(run, number, code, f"the files from {worker.name} could not be stored: {error}")
        return _as_stored(answer.result, worker.name)

    def _archive(self, size: int) -> Iterator[bytes]:
        """The archive of the files of the attempt, in chunks."""
        got = 0
        while got < size:
            chunk = self.worker.ask("fetch", self._number, got)
            if not isinstance(chunk, bytes) or not chunk:
                raise HarnessFault(ErrorCode.WORKER_LOST, f"{self.worker.name} has lost the files of the run")
            got += len(chunk)
            yield chunk

    def check_compliance(self, implementation: Implementation, roles: tuple[Role, ...]) -> tuple[Compliance, ...]:
        """See :class:`quicsat.execution.worker.Slot`."""
        try:
            found = self.worker.ask("check_compliance", self._number, implementation, roles, testbed=True)
        except RefusedError as refusal:
            raise HarnessFault(ErrorCode.HARNESS_FAULT, f"{self.worker.name} refused: {refusal}") from refusal
        if {(each.implementation, each.role) for each in found} != {(implementation.name, role) for role in roles}:
            raise HarnessFault(ErrorCode.HARNESS_FAULT, f"{self.worker.name} gave an invalid answer")
        return tuple(found)

    def reset(self, *, alone: bool) -> Outage | None:
        """See :class:`quicsat.execution.worker.Slot`."""
        return self.worker.ask_for_outage("reset", self._number, alone, patience=FAREWELL)


def _matches(answer: object, run: Run, number: int) -> bool:
    """Whether ``answer`` is the report of attempt ``number`` at ``run``."""
    if not isinstance(answer, AttemptReport) or not isinstance(answer.result, RunResult):
        return False
    result = answer.result
    answered = (result.key, result.attempt, result.protocol)
    asked = (run.key, number, run.protocol)
    return answered == asked and result.evidence.seed == run.seed


def _as_stored(result: RunResult, name: str) -> RunResult:
    """A result with a note on its worker; a full disk there must not end the campaign here."""
    verdict = result.verdict
    if verdict.code is ErrorCode.DISK_FULL:
        verdict = Verdict(Outcome.ERROR, ErrorCode.HARNESS_FAULT, f"The disk of {name} is full.")
    notes = (*result.evidence.notes, f"measured by {name}")
    return replace(result, verdict=verdict, evidence=replace(result.evidence, notes=notes))


def _error(run: Run, number: int, code: ErrorCode, reason: str) -> RunResult:
    evidence = Evidence(started="", seed=run.seed, fault_code=code, fault=reason)
    return result_of(run, number, Verdict(Outcome.ERROR, code, f"{reason[:1].upper()}{reason[1:]}."), evidence)


# ---- discovery ------------------------------------------------------------------------------


@contextmanager
def discover_workers(
    scheduler: Scheduler, config: RemoteConfig, source: Daemon, stop: threading.Event, say: Say
) -> Iterator[WorkerPool]:
    """A pool of the workers of the scheduler, which may come and go while the block runs.

    Raises :class:`MachineError` if no scheduler answers.
    """
    address = scheduler.address
    with closing(Cluster(scheduler)) as cluster:
        no_worker = (
            f"No worker of the cluster {address} has offered testbeds for {PATIENCE:.0f} s: "
            f"start some with `{command_line('worker', address)}`."
        )
        workers = WorkerPool(stop, max_slots=MAX_SLOTS, no_worker=no_worker, patience=PATIENCE)
        discovery = _WorkerDiscovery(cluster, workers, config, source, say)
        thread = threading.Thread(target=discovery.watch, daemon=True, name="discovery")
        thread.start()
        try:
            with closing(workers):
                yield workers
        finally:
            discovery.ended.set()
            thread.join()


@dataclass
class _WorkerDiscovery:
    """Finds workers and lets them take part."""

    cluster: Cluster
    workers: WorkerPool
    config: RemoteConfig
    source: Daemon
    say: Say
    ended: threading.Event = field(default_factory=threading.Event)
    taking_part: dict[str, WorkerProxy] = field(default_factory=dict)
    """Workers in use, by address."""
    ask_from: dict[str, float] = field(default_factory=dict)
    """From when on a worker may be asked again, on the monotonic clock; infinite while it is being asked."""
    said: set[str] = field(default_factory=set)

    def watch(self) -> None:
        """Add and remove workers until ``ended`` is set; the next call to a lost scheduler raises its error."""
        while not self.ended.wait(POLL):
            try:
                offers = self.cluster.offers()
            except MachineError as error:
                self.workers.no_worker = str(error)
                offers = {}
            for address, worker in [*self.taking_part.items()]:
                if worker.lost or address not in offers:
                    del self.taking_part[address]
                    self.ask_from[address] = time.monotonic() + REJOIN
                    self.say(f"{worker.name} is gone")
                    self.workers.remove(worker)
            for address, offer in offers.items():
                if address not in self.taking_part and time.monotonic() > self.ask_from.get(address, -math.inf):
                    self.ask_from[address] = math.inf
                    threading.Thread(target=self._register, args=(offer,), daemon=True, name=offer.name).start()

    def _register(self, offer: Offer) -> None:
        worker = WorkerProxy(self.cluster, offer, self.config, self.workers.stop, self.say)
        try:
            worker.register(self.source)
        except (HarnessFault, RefusedError, MachineError) as refusal:
            message = f"{worker.name} does not take part: {refusal}"
            if message not in self.said and not self.ended.is_set():  # then its connection was closed by us
                self.said.add(message)
                self.say(message)
        else:
            if self.ended.is_set():
                worker.close()
            else:
                self.taking_part[offer.address] = worker
                self.workers.add(worker)
        self.ask_from[offer.address] = time.monotonic() + REFUSAL
