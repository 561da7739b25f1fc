"""An engine that misbehaves as engines do, by a seeded schedule: slow, frozen, restarted, half an answer, or none.

What it does in each case is what docker/docker-py#1966, #2266, #2964, #3284 and moby/moby tell of real ones, and what
was seen at ours: after the death of the daemon log streams end as if all were well, ``wait`` breaks off, and
containers are found "Exited (137)".
"""

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import requests.exceptions
from docker.errors import APIError

from quicsat.docker import client, containers
from quicsat.docker.containers import remove_containers
from quicsat.execution import admission, worker_pool
from quicsat.execution.dispatcher import Dispatcher
from quicsat.execution.local_worker import LocalWorker
from quicsat.execution.observer import Observer
from quicsat.execution.remaining_work import RemainingWork
from quicsat.execution.worker_pool import WorkerPool
from quicsat.links import container_session
from quicsat.links.ns3_testbed import Ns3Backend
from quicsat.model.errors import HarnessFault, MachineError
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.results import Manifest, RunResult
from quicsat.model.run import Run, RunKey
from quicsat.results.store import Journal, load
from tests.fakes import (
    CASE,
    SIMULATOR,
    FakeEngine,
    Life,
    connect,
    end_with,
    endpoint,
    hang,
    implementation,
    judge,
    only_as,
    run_config,
)
from tests.results_builder import result_set

FAULTS = (
    "lost before", "lost after", "timed out after", "refused", "server error", "conflict", "slow",
    "restart", "gentle restart", "freeze", "killed by somebody", "removed by somebody",
)  # fmt: skip
CALLS = 340
"""Calls of a campaign among which faults are drawn."""
TRUTH = {
    "good": {(Outcome.SUCCEEDED, ErrorCode.NONE)},
    "bad": {(Outcome.FAILED, ErrorCode.CLIENT_FAILED)},
    "deaf": {(Outcome.TIMEOUT, ErrorCode.TIMEOUT)},
}
"""What a client's runs come to, if nothing else happens."""
_connecting = threading.Lock()


def quick(patch: Callable[[Any, str, Any], object]) -> None:
    """Let faults be noticed soon, and testbeds overlap; ``patch`` sets an attribute of a module."""
    patch(admission, "SETTLED", 0.0)
    patch(client, "QUICK", 1.0)
    patch(containers, "QUICK", 1.0)
    patch(worker_pool, "OUTAGE_PATIENCE", 20.0)
    patch(container_session, "HEARTBEAT", 0.15)
    patch(container_session, "START_PATIENCE", 0.4)


class FaultyEngine(FakeEngine):
    """Does what the schedule says at the n-th call, and behaves otherwise."""

    def __init__(self, seed: int, faults: int) -> None:
        super().__init__(good=endpoint, bad=only_as(Role.CLIENT, end_with(1)), deaf=only_as(Role.CLIENT, hang))
        dice = random.Random(seed)
        self.schedule = {dice.randrange(8, CALLS): dice.choice(FAULTS) for _ in range(faults)}
        """Kind of fault by the number of the call."""
        self.dice = dice
        self.calls = 0
        self.happened: list[str] = []
        self.away_until = 0.0
        """The daemon answers nothing before, on the monotonic clock."""
        self.frozen_until = 0.0
        self.settled = threading.Event()
        """Not set while the daemon starts: it answers when all containers of the old one have ended."""
        self.settled.set()
        self.generation = 0
        """How often the daemon has been started anew."""

    def calm(self) -> None:
        """No more faults."""
        self.schedule = {}
        self.away_until = self.frozen_until = 0.0

    def _answer(self, verb: str, identity: str = "") -> Life:
        with self.mutex:
            self.calls += 1
            fault = self.schedule.pop(self.calls, None)
        self.settled.wait()
        now = time.monotonic()
        if now < self.frozen_until:
            time.sleep(min(self.frozen_until - now, 0.5))
            if time.monotonic() < self.frozen_until:
                raise requests.exceptions.ReadTimeout("Read timed out.")
        if now < self.away_until:
            raise requests.exceptions.ConnectionError("Connection refused")
        if fault is None:
            return super()._answer(verb, identity)
        self.happened.append(f"{fault} at {verb}")
        return self._misbehave(fault, verb, identity)

    def _misbehave(self, fault: str, verb: str, identity: str) -> Life:
        match fault:
            case "lost before":
                raise requests.exceptions.ConnectionError("Connection aborted.")
            case "refused":
                raise APIError(f"{verb} was refused", explanation=f"{verb} was refused")
            case "server error":
                raise APIError("500 Server Error", explanation="500: i/o timeout")
            case "conflict":
                raise APIError("409 Client Error", explanation="409: removal is already in progress")
            case "slow":
                time.sleep(self.dice.uniform(0.05, 0.4))
            case "restart" | "gentle restart":
                away = self.dice.choice((0.0, self.dice.uniform(0.0, 0.8)))
                delay = self.dice.uniform(0.0, 0.2)  # between two calls, so that none of them need meet with an error
                threading.Timer(delay, self.restart, (away,), {"gently": fault != "restart"}).start()
            case "freeze":
                self.frozen_until = time.monotonic() + self.dice.uniform(0.2, 2.0)
                time.sleep(0.3)
                raise requests.exceptions.ReadTimeout("Read timed out.")
            case "killed by somebody" | "removed by somebody":
                self.somebody(fault)
        answer = super()._answer(verb, identity)
        if fault in ("lost after", "timed out after") and verb in ("inspect", "list", "image", "stats", "logs", "ping"):
            raise requests.exceptions.ReadTimeout("Read timed out.")
        return answer

    def restart(self, away: float, *, gently: bool) -> None:
        """The daemon dies with its containers and is back after ``away`` seconds.

        A new daemon that finds containers of the old one alive asks them to stop, and they may do so in good order.
        """
        with self.mutex:
            self.settled.clear()
            self.away_until = time.monotonic() + away
            self.generation += 1
            lives = [life for life in self.lives.values() if life.status == "running"]
        for life in lives:
            if gently and life.image == SIMULATOR:
                life.terminated.set()
            else:
                life.end(143 if gently else 137)
        for life in lives:
            life.ended.wait(1)
        self.settled.set()

    def somebody(self, fault: str) -> None:
        """Another user of the machine meddles with one of our containers of the link."""
        victims = [life for life in self.lives.values() if life.image == SIMULATOR and life.status == "running"]
        if victims:
            victim = self.dice.choice(victims)
            victim.end(137)
            if fault == "removed by somebody":
                self.lives.pop(victim.id, None)

    # ---- answers that break off ----------------------------------------------------------------

    def _cut(self, verb: str) -> bool:
        """Whether an answer is lost on its way, although what was asked for has been done."""
        with self.mutex:
            self.calls += 1
            fault = self.schedule.pop(self.calls, None)
        if fault in ("lost after", "timed out after"):
            self.happened.append(f"{fault} at {verb}")
            return True
        return False

    def create_container(self, image: str, **options: Any) -> dict[str, str]:
        created = super().create_container(image, **options)
        if self._cut("create"):
            raise requests.exceptions.ReadTimeout("Read timed out.")
        return created

    def start(self, identity: str) -> None:
        mode = self.lives[identity].host_config["network_mode"] if identity in self.lives else ""
        holder = self.lives.get(mode.removeprefix("container:"))
        if mode.startswith("container:") and (holder is None or holder.status != "running"):
            raise APIError("409", explanation="cannot join network of a non running container")
        super().start(identity)
        if self._cut("start"):
            raise requests.exceptions.ReadTimeout("Read timed out.")

    def put_archive(self, identity: str, path: str, archive: IO[bytes]) -> bool:
        done = super().put_archive(identity, path, archive)
        if self._cut("put"):
            raise requests.exceptions.ChunkedEncodingError("Connection broken")
        return done

    def get_archive(self, identity: str, path: str, chunk_size: int) -> tuple[Iterator[bytes], dict[str, str]]:
        chunks, stat = super().get_archive(identity, path, chunk_size)
        return (self._torn(chunks) if self._cut("get") else chunks), stat

    def _torn(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        whole = b"".join(chunks)
        yield whole[: self.dice.randrange(len(whole))]
        if self.dice.random() < 0.5:  # else it ends as if it were whole
            raise requests.exceptions.ChunkedEncodingError("Connection broken: IncompleteRead")

    def remove_container(self, identity: str, *, v: bool, force: bool) -> None:
        super().remove_container(identity, v=v, force=force)
        if self._cut("remove"):
            raise requests.exceptions.ReadTimeout("Read timed out.")

    def wait(self, identity: str, timeout: float | None = None) -> dict[str, int]:
        generation = self.generation
        answer = super().wait(identity, timeout)
        if self.generation != generation:
            raise requests.exceptions.ChunkedEncodingError("Connection broken: InvalidChunkLength")
        return answer


# ---- a campaign at such an engine --------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """What came of a campaign at a faulty engine."""

    happened: tuple[str, ...]
    results: Mapping[str, int]
    """Results that count, by outcome."""
    false: tuple[str, ...]
    """Verdicts that are not true, of runs and of images."""
    uncaught: tuple[str, ...]
    missing: int
    """Runs without a result in the end, after the campaign was resumed."""
    left: int
    """Containers that are left at the engine."""


def plan() -> tuple[Run, ...]:
    """A good, a bad and a deaf client, twice each."""
    case = replace(CASE, repetitions=2)
    short = replace(case, name="brief", abbreviation="BR", timeout=0.6, repetitions=1)
    good = implementation("good")
    runs = [Run(good, implementation(name), case, number, 1) for number in (1, 2) for name in ("good", "bad")]
    return (*runs, Run(good, implementation("deaf"), short, 1, 1))


def carry_out(seed: int, directory: Path, *, testbeds: int = 1, engine: FaultyEngine | None = None) -> Report:
    """One campaign with four faults, its compliance check too, and another without that makes what is left."""
    engine = engine or FaultyEngine(seed, 4)
    with _connecting:
        daemon = connect(engine)
    false, uncaught = list[str](), list[str]()
    runs = plan()
    roles = {"good": set(Role), "bad": {Role.CLIENT}, "deaf": {Role.CLIENT}}
    with Journal.create(directory, manifest(runs)) as journal:
        for attempt in range(2):
            made = {result.key: result for result in load(directory).result_set.results}
            rest = [run for run in runs if _told(made, run) in (None, Outcome.ERROR)]
            tried = {run: made[run.key].attempt for run in rest if run.key in made}
            if attempt:
                engine.calm()
            try:
                stop, backend = threading.Event(), Ns3Backend(daemon, SIMULATOR)
                worker = LocalWorker(daemon, backend, run_config(engine), judge, stop, testbeds=testbeds)
                with closing(WorkerPool(stop, worker)) as workers:
                    campaign = Dispatcher(workers, journal, Observer())
                    if not attempt:
                        wanted = {name: (implementation(name), them) for name, them in roles.items()}
                        false += [f"{who} is called not compliant" for who in campaign.check_compliance(wanted)]
                    campaign.run_all(RemainingWork(tuple(rest), tried), set())
            except (MachineError, HarnessFault):
                pass  # the second campaign makes what is left
            except BaseException as error:  # noqa: BLE001 - this is what is looked for
                uncaught.append(f"{type(error).__name__}: {error}")
    record = load(directory)
    for result in record.history:
        if result.verdict.code is ErrorCode.HARNESS_FAULT:
            uncaught.append(result.verdict.reason)
    engine.calm()
    remove_containers(daemon)
    outcomes = [result.verdict.outcome.value for result in record.result_set.results]
    return Report(
        happened=tuple(engine.happened),
        results={outcome: outcomes.count(outcome) for outcome in dict.fromkeys(outcomes)},
        false=(*false, *(told for result in record.history if (told := _false(result)))),
        uncaught=tuple(uncaught),
        missing=len(runs) - len(record.result_set.results) + outcomes.count("error"),
        left=len(engine.lives),
    )


def _told(made: Mapping[RunKey, RunResult], run: Run) -> Outcome | None:
    return made[run.key].verdict.outcome if run.key in made else None


def _false(result: RunResult) -> str:
    verdict = result.verdict
    if verdict.outcome is Outcome.ERROR or (verdict.outcome, verdict.code) in TRUTH[result.client]:
        return ""
    return f"{result.client} {result.repetition}: {verdict.outcome} {verdict.code}: {verdict.reason}"


def manifest(runs: Sequence[Run]) -> Manifest:
    """Of a campaign of ``runs``."""
    rows = [(run.server.name, run.client.name, run.test_case) for run in runs]
    servers, clients, cases = (tuple(dict.fromkeys(column)) for column in zip(*rows, strict=True))
    made = result_set(servers=servers, clients=clients, test_cases=cases).manifest
    return replace(made, id="test", planned_runs=len(runs))
