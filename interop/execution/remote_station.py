"""Stations that are workers of a cluster: mustered as they come and go, given their images, and asked for attempts."""

from __future__ import annotations

import errno
import math
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from interop.errors import HarnessFault, MachineError
from interop.execution.archive import unpack
from interop.execution.artefacts import run_limits
from interop.execution.cluster import Cluster, Offer, RefusedError, presence_key
from interop.execution.crew import Crew
from interop.execution.daemon import Daemon
from interop.execution.place import result_of
from interop.execution.service import PIECE, Answer, Terms, Welcome
from interop.execution.transfer import Interrupted
from interop.model import (
    Compliance,
    ErrorCode,
    Evidence,
    ImageFacts,
    Implementation,
    Outcome,
    Role,
    Run,
    RunResult,
    Scheduler,
    Verdict,
)
from interop.names import printable
from interop.units import byte_size

Say = Callable[[str], None]

MUSTER = 1.0
"""Seconds between two looks at who is there."""
PATIENCE = 120.0
"""Seconds for which a campaign waits for a worker if there is none."""
QUESTION, FAREWELL = 20.0, 60.0
"""Seconds for which the answer to a question, and to a farewell, is waited for."""
MOST = 64
"""Runs that are under way at the same time, at most."""
REFUSAL = 15.0
"""Seconds after which a worker that refused is asked again: it may have been busy."""


class WorkerStation:
    """A worker of the cluster that has opened its desk for the campaign."""

    def __init__(self, cluster: Cluster, offer: Offer, terms: Terms, stop: threading.Event, say: Say) -> None:
        self.name = f"worker {offer.name}"
        self.places: tuple[WorkerPlace, ...] = ()
        self.stop = stop
        self.say = say
        self._cluster = cluster
        self._offer = offer
        self._terms = terms
        self._release: Callable[[], None] = lambda: None

    def enlist(self, source: Daemon) -> None:
        """Open its desk and bring it the images that it lacks.

        Raises :class:`HarnessFault` if it is lost, :class:`RefusedError` with its reason if it cannot take part.
        """
        key, address = presence_key(self._terms.campaign), self._offer.address
        welcome, self._release = self._cluster.hold(address, "open", key, self._terms)
        try:
            if not isinstance(welcome, Welcome):
                raise RefusedError("it gave an answer that nobody understands")
            for name in welcome.lacking:
                self._carry(name, self._terms.images[name], source)
            self.ask("begin")
        except BaseException:
            self._release()
            raise
        testbeds = max(1, min(welcome.testbeds, self._offer.testbeds))
        self.places = tuple(WorkerPlace(self, number) for number in range(testbeds))
        self.say(f"{self.name} on {printable(welcome.host)} takes part with {testbeds} testbeds")

    def ask(self, verb: str, *words: Any, testbed: bool = False, patience: float | None = None) -> Any:
        """What its desk answers; see :meth:`Cluster.ask`. An attempt ends at once if the campaign is to end."""
        stop = self.stop if testbed else None
        return self._cluster.ask(self._offer.address, verb, *words, stop=stop, testbed=testbed, patience=patience)

    def silence(self) -> str:
        """That it does not answer, or its Docker daemon; empty if both do."""
        try:
            silent = str(self.ask("silence", patience=QUESTION))
            return f"{self.name}, {printable(silent)}" if silent else ""
        except (HarnessFault, RefusedError):
            return self.name

    def close(self) -> None:
        """Let it end what it still does for us, and wait until that has come to its end."""
        try:
            self.ask("close", self._terms.campaign, patience=FAREWELL)
        except (HarnessFault, RefusedError, MachineError):
            self.say(f"{self.name} could not be told that the campaign has ended; it will notice by itself")
        finally:
            self._release()

    def _carry(self, name: str, image: ImageFacts, source: Daemon) -> None:
        self.say(f"{name}: carrying {byte_size(image.size)} to {self.name}")
        for piece in _pieces(source.export(image.id)):
            self.ask("upload", name, piece)
        self.ask("upload", name, b"")


class WorkerPlace:
    """One testbed of a worker; used by one thread at a time."""

    def __init__(self, station: WorkerStation, number: int) -> None:
        self._station = station
        self._number = number

    @property
    def station(self) -> WorkerStation:
        """Where it is."""
        return self._station

    def attempt(self, run: Run, number: int, directory: Path) -> RunResult:
        """Have ``run`` made and judged there, and bring here what it left; see ``Place``."""
        station = self._station
        directory.mkdir(parents=True, exist_ok=True)
        try:
            answer = station.ask("attempt", self._number, run, number, testbed=True)
            if not _fits(answer, run, number):
                raise HarnessFault(ErrorCode.HARNESS_FAULT, f"{station.name} answered what nobody asked for")
            for line in answer.said:
                station.say(f"{station.name}: {printable(line)}")
            unpack(self._archive(answer.size), directory, run_limits(run.test_case))
            station.ask("drop", self._number)
        except Interrupted:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        except RefusedError as refusal:
            return _error(run, number, ErrorCode.HARNESS_FAULT, f"{station.name} refused the run: {refusal}")
        except HarnessFault as fault:
            return _error(run, number, ErrorCode(fault.code), fault.reason)
        except OSError as error:
            code = ErrorCode.DISK_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else ErrorCode.HARNESS_FAULT
            return _error(run, number, code, f"what {station.name} sent could not be kept: {error}")
        return _of(answer.result, station.name)

    def _archive(self, size: int) -> Iterator[bytes]:
        """The files that the attempt left, in pieces."""
        got = 0
        while got < size:
            piece = self._station.ask("fetch", self._number, got)
            if not isinstance(piece, bytes) or not piece:
                raise HarnessFault(ErrorCode.WORKER_LOST, f"{self._station.name} has lost the files of the run")
            got += len(piece)
            yield piece

    def check_compliance(self, implementation: Implementation, roles: tuple[Role, ...]) -> tuple[Compliance, ...]:
        """See :class:`interop.execution.place.Place`."""
        try:
            found = self._station.ask("check_compliance", self._number, implementation, roles, testbed=True)
        except RefusedError as refusal:
            raise HarnessFault(ErrorCode.HARNESS_FAULT, f"{self._station.name} refused: {refusal}") from refusal
        if {(each.implementation, each.role) for each in found} != {(implementation.name, role) for role in roles}:
            raise HarnessFault(ErrorCode.HARNESS_FAULT, f"{self._station.name} answered what nobody asked for")
        return tuple(found)

    def clear(self, *, alone: bool) -> str:
        """See :class:`interop.execution.place.Place`."""
        try:
            silent = str(self._station.ask("clear", self._number, alone, patience=FAREWELL))
            return f"{self._station.name}, {printable(silent)}" if silent else ""
        except (HarnessFault, RefusedError):
            return self._station.name


def _fits(answer: object, run: Run, number: int) -> bool:
    """Whether an answer is one, of that attempt at that run."""
    if not isinstance(answer, Answer) or not isinstance(answer.result, RunResult):
        return False
    result = answer.result
    told = (result.server, result.client, result.test_case, result.repetition, result.attempt, result.protocol)
    asked = (run.server.name, run.client.name, run.test_case.name, run.repetition, number, run.protocol)
    return told == asked and result.evidence.seed == run.seed


def _of(result: RunResult, name: str) -> RunResult:
    """A result as it is kept: with where it comes from; a full disk there is no reason to end the campaign here."""
    verdict = result.verdict
    if verdict.code is ErrorCode.DISK_FULL:
        verdict = Verdict(Outcome.ERROR, ErrorCode.HARNESS_FAULT, f"The disk of {name} is full.")
    notes = (*result.evidence.notes, f"carried out by {name}")
    return replace(result, verdict=verdict, evidence=replace(result.evidence, notes=notes))


def _error(run: Run, number: int, code: ErrorCode, reason: str) -> RunResult:
    evidence = Evidence(started="", seed=run.seed, fault_code=code, fault=reason)
    return result_of(run, number, Verdict(Outcome.ERROR, code, f"{reason[:1].upper()}{reason[1:]}."), evidence, None)


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, as many at once as may travel."""
    rest = b""
    for chunk in chunks:
        rest += chunk
        while len(rest) >= PIECE:
            yield rest[:PIECE]
            rest = rest[PIECE:]
    if rest:
        yield rest


# ---- who is there ---------------------------------------------------------------------------


@contextmanager
def mustered(scheduler: Scheduler, terms: Terms, source: Daemon, stop: threading.Event, say: Say) -> Iterator[Crew]:
    """A crew of the workers that are at the scheduler, as long as the block runs; all come and go.

    Raises :class:`MachineError` if no scheduler answers.
    """
    address = scheduler.address
    with closing(Cluster(scheduler)) as cluster:
        absence = (
            f"No worker of the cluster {address} has offered testbeds for {PATIENCE:.0f} s: "
            f"start some with `./run.py worker {address}`."
        )
        crew = Crew(stop, most=MOST, absence=absence, patience=PATIENCE)
        muster = _Muster(cluster, crew, terms, source, say)
        thread = threading.Thread(target=muster.watch, daemon=True, name="muster")
        thread.start()
        try:
            yield crew
        finally:
            muster.ended.set()
            thread.join()


class _Muster:
    """Who of the workers takes part."""

    def __init__(self, cluster: Cluster, crew: Crew, terms: Terms, source: Daemon, say: Say) -> None:
        self.ended = threading.Event()
        self._cluster = cluster
        self._crew = crew
        self._terms = terms
        self._source = source
        self._say = say
        self._stations: dict[str, WorkerStation] = {}
        """By address."""
        self._asked: dict[str, float] = {}
        """When a worker was asked the last time, on the monotonic clock; infinite while it is being asked."""
        self._told: set[str] = set()

    def watch(self) -> None:
        """Look who is there until told to end; the scheduler's end is told by whoever asks it next."""
        while not self.ended.wait(MUSTER):
            try:
                offers = self._cluster.offers()
            except MachineError as error:
                self._crew.absence = str(error)
                offers = {}
            for address in self._stations.keys() - offers.keys():
                station = self._stations.pop(address)
                self._say(f"{station.name} is gone")
                self._crew.leave(station)
            for address, offer in offers.items():
                asked = self._asked.get(address, -math.inf)
                if address not in self._stations and time.monotonic() - asked > REFUSAL:
                    self._asked[address] = math.inf
                    threading.Thread(target=self._enlist, args=(offer,), daemon=True, name=offer.name).start()

    def _enlist(self, offer: Offer) -> None:
        station = WorkerStation(self._cluster, offer, self._terms, self._crew.stop, self._say)
        try:
            station.enlist(self._source)
        except (HarnessFault, RefusedError, MachineError) as refusal:
            told = f"{station.name} does not take part: {refusal}"
            if told not in self._told:
                self._told.add(told)
                self._say(told)
        else:
            if self.ended.is_set():
                station.close()
            else:
                self._stations[offer.address] = station
                self._crew.join(station)
        self._asked[offer.address] = time.monotonic()
