#!/usr/bin/env python3
"""Measures a campaign over one and two workers of a Dask cluster, and counts lost runs while workers are killed.

Run it with `make bench-cluster`. All parts run on this machine: the scheduler and the campaign in one network
namespace, each Docker daemon with its worker in another. In real time with one testbed per worker, the link limits
the rate, not the CPU. In virtual time the CPU does: `--cpu-each` gives each worker and its containers one CPU, as on a
machine of its own (root; cgroup v1).
"""
# ruff: noqa: E402, T201 - a script

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from quicsat.docker.client import Daemon
from quicsat.docker.containers import list_containers
from quicsat.images import build_recipes
from quicsat.images.build_recipes import OWN_FOLDERS
from quicsat.model.clock import Clock
from quicsat.model.outcomes import Outcome
from quicsat.results.document import StoredResults
from quicsat.results.store import load
from tests.dockerds import LaboratoryError, bring, call, dockerd, group_at, inside, running, wait_for

PORT = 8786
CPUSETS = Path("/sys/fs/cgroup/cpuset")
COMING_BACK = (0.5, 3.0)
"""Seconds for which a killed worker is away."""
LEFT_AFTER = 15.0
"""Seconds after which nothing may be left of a campaign."""


@dataclass
class Machine:
    """A namespace with a Docker daemon, and a worker that comes and goes."""

    name: str
    namespace: str
    url: str
    scheduler: str
    testbeds: int
    log: Path
    cpu: int | None = None
    """The only CPU of the worker; None: all."""
    stack: ExitStack = field(default_factory=ExitStack)
    process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Start the worker, as its user would."""
        words = [sys.executable, str(ROOT / "run.py"), "worker", self.scheduler, "--parallel", str(self.testbeds)]
        pinned = [] if self.cpu is None else ["taskset", "--cpu-list", str(self.cpu)]
        command = [*inside(self.namespace), *pinned, *words, "--name", self.name]
        environment = {**os.environ, "DOCKER_HOST": self.url}
        self.process = self.stack.enter_context(running(command, self.log, env=environment, cwd=ROOT))
        wait_for(lambda: b"offers" in self.log.read_bytes(), f"the worker {self.name}", self.process, self.log)

    def kill(self) -> None:
        """SIGKILL, to the worker and nobody else."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def left(self) -> int:
        """Containers of ours at its daemon."""
        return len(list_containers(Daemon(self.url, "bench")))


@dataclass(frozen=True)
class Campaign:
    """What came of one."""

    record: StoredResults
    duration: float
    """Seconds, images and compliance check included."""

    def tell(self, name: str) -> None:
        """A line."""
        results = self.record.result_set
        outcomes = Counter(result.verdict.outcome.value for result in results.results)
        repeated = len(self.record.history) - len(results.results)
        told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
        print(f"{name}: {self.duration:.0f} s; {told}; {repeated} attempts that did not count", flush=True)


# ---- what it runs on ------------------------------------------------------------------------


def namespaces(stack: ExitStack, count: int) -> tuple[str, list[str]]:
    """A namespace in the middle, and ``count`` that reach it and nothing else, at 10.251.<number>.1."""
    middle, *others = (f"qsc{os.getpid()}-{part}" for part in ("control", *(f"w{each}" for each in range(count))))
    for name in (middle, *others):
        call("ip", "netns", "add", name)
        stack.callback(call, "ip", "netns", "del", name, check=False)
        call("ip", "-n", name, "link", "set", "lo", "up")
    for number, other in enumerate(others):
        call("ip", "link", "add", f"w{number}", "netns", middle, "type", "veth", "peer", "up0", "netns", other)
        for name, device, last in ((middle, f"w{number}", 1), (other, "up0", 2)):
            call("ip", "-n", name, "addr", "add", f"10.251.{number}.{last}/30", "dev", device)
            call("ip", "-n", name, "link", "set", device, "up")
    return middle, others


@contextmanager
def machines(options: argparse.Namespace, source: Daemon) -> Iterator[tuple[list[str], list[Machine]]]:
    """What stands before a command in the middle, and two machines whose workers have not been started."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="quicsat-cluster-")))
        middle, others = namespaces(stack, 2)
        command = [*inside(middle), str(Path(sys.executable).with_name("dask")), "scheduler"]
        command += ["--port", str(PORT), "--no-dashboard", "--dashboard-address", ":0"]
        process = stack.enter_context(running(command, folder / "scheduler.log"))
        log = folder / "scheduler.log"
        wait_for(lambda: b"Scheduler at" in log.read_bytes(), "the scheduler", process, log)
        made, expected = [], build_recipes.expected(ROOT)
        expected["virtual-time"] = build_recipes.find_recipe(ROOT, "virtual-time", OWN_FOLDERS["virtual-time"]).tag
        names = ["simulator", *dict.fromkeys([*options.server, *options.client])]
        names += ["virtual-time"] * (options.clock is Clock.VIRTUAL)
        group = group_at(source, expected["simulator"])
        for number, other in enumerate(others):
            name, cpu = f"w{number}", number if options.cpu_each else None
            own = group if cpu is None else stack.enter_context(cpu_group(group, f"quicsat-{os.getpid()}-{name}", cpu))
            url = stack.enter_context(dockerd(name, other, folder, own))
            bring(source, Daemon(url, "bench"), [expected[each] for each in names])
            scheduler = f"tcp://10.251.{number}.1:{PORT}"
            machine = Machine(name, other, url, scheduler, options.testbeds, options.output / f"worker-{name}.log", cpu)
            stack.enter_context(machine.stack)
            made.append(machine)
        yield inside(middle), made


@contextmanager
def cpu_group(parent: str, name: str, cpu: int) -> Iterator[str]:
    """A cgroup below ``parent`` whose containers run on one CPU, in the words of ``dockerd --cgroup-parent``."""
    folder = CPUSETS / parent.strip("/") / name
    try:
        folder.mkdir()
        (folder / "cpuset.cpus").write_text(str(cpu))
        (folder / "cpuset.mems").write_text((folder.parent / "cpuset.mems").read_text())
    except OSError as error:
        raise LaboratoryError(f"--cpu-each needs root and the cpuset controller of cgroup v1: {error}") from None
    try:
        yield f"{parent}/{name}"
    finally:
        folder.rmdir()


# ---- what is done with it -------------------------------------------------------------------


def campaign(options: argparse.Namespace, middle: list[str], name: str) -> Campaign:
    """Carry the plan out over the workers that are there; pairs may fail, a campaign must not."""
    directory = options.output / name
    words = ["-s", *options.server, "-c", *options.client, "-t", *options.test, "--seed", "1"]
    words += ["--repetitions", str(options.repetitions), "--cluster", f"tcp://127.0.0.1:{PORT}", "-l", str(directory)]
    words += ["--clock", options.clock.value]
    begin = time.monotonic()
    with (options.output / f"{name}.log").open("wb") as said:
        command = [*middle, sys.executable, str(ROOT / "run.py"), *words]
        status = subprocess.run(command, cwd=ROOT, stdout=said, stderr=said, check=False).returncode
    duration = time.monotonic() - begin
    if status not in (0, 1, 3):
        sys.exit(f"bench-cluster: the campaign ended with exit status {status}; see {options.output / name}.log")
    return Campaign(load(directory), duration)


def kill(workers: Sequence[Machine], count: int, duration: float, ended: threading.Event, seed: int) -> list[str]:
    """Kill a worker ``count`` times within ``duration`` seconds, at random; who, and when."""
    dice, begin = random.Random(seed), time.monotonic()
    moments = sorted(dice.uniform(0, duration) for _ in range(count))
    told = []
    for moment in moments:
        if ended.wait(max(0.0, begin + moment - time.monotonic())):
            break
        victim = dice.choice(list(workers))
        victim.kill()
        told.append(f"{victim.name} at {time.monotonic() - begin:.1f} s")
        time.sleep(dice.uniform(*COMING_BACK))
        victim.begin()
    return told


def with_kills(options: argparse.Namespace, middle: list[str], workers: list[Machine], expected: float) -> bool:
    """A campaign during which workers are killed; whether nothing was lost, told twice, or left."""
    ended, killed = threading.Event(), list[str]()
    thread = threading.Thread(
        target=lambda: killed.extend(kill(workers, options.kills, expected, ended, options.seed)), name="killer"
    )
    thread.start()
    made = campaign(options, middle, "killed")
    ended.set()
    thread.join()
    made.tell(f"{len(killed)} kills ({', '.join(killed)})")
    results, history = made.record.result_set.results, made.record.history
    lost = made.record.result_set.manifest.planned_runs - len(results)
    errors = sum(result.verdict.outcome is Outcome.ERROR for result in results)
    attempts = Counter((each.key, each.attempt) for each in history)
    twice = sum(count > 1 for count in attempts.values())
    time.sleep(LEFT_AFTER)
    left = sum(worker.left() for worker in workers)
    print(f"runs without a result: {lost}; ended by a fault of ours: {errors}; results told twice: {twice}; "
          f"containers left after {LEFT_AFTER:.0f} s: {left}")  # fmt: skip
    return not (lost or errors or twice or left)


def main() -> int:
    """Everything is printed; exit status 1 if a kill cost anything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-s", "--server", nargs="+", default=["quic-go", "picoquic", "quinn", "ngtcp2"])
    parser.add_argument("-c", "--client", nargs="+", default=["quic-go", "picoquic", "quinn", "ngtcp2"])
    parser.add_argument("-t", "--test", nargs="+", default=["sat"])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--clock", type=Clock, choices=Clock, default=Clock.REAL)
    parser.add_argument("--testbeds", type=int, default=1, help="per worker")
    parser.add_argument("--cpu-each", action="store_true", help="one CPU for each worker and its containers")
    parser.add_argument("--kills", type=int, default=0, metavar="N", help="a third campaign, with N kills of a worker")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--only-kills", action="store_true", help="without the comparison of one worker and two")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="for results directories, logs")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    source = Daemon(os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock", "bench")
    with machines(options, source) as (middle, workers):
        workers[0].begin()
        if not options.only_kills:
            one = campaign(options, middle, "one")
            one.tell("one worker")
        workers[1].begin()
        if not options.only_kills:
            two = campaign(options, middle, "two")
            two.tell("two workers")
            print(f"ratio of wall times: {two.duration / one.duration:.2f}", flush=True)
        expected = about(options) if options.only_kills else two.duration
        good = with_kills(options, middle, workers, expected) if options.kills else True
    return 0 if good else 1


def about(options: argparse.Namespace) -> float:
    """Seconds that two workers need for the plan, about: 10 MiB take 12 s of a satellite link."""
    runs: int = len(options.server) * len(options.client) * len(options.test) * options.repetitions
    testbeds: int = options.testbeds
    return 12.0 * runs / 2 / testbeds


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LaboratoryError as error:
        sys.exit(f"bench-cluster: {error}")
