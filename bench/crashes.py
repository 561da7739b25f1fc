"""Lets an endpoint crash at five moments, in both roles, in five manners and with both clocks, then the machine, and
shows whom the verdicts blame.

Run it with `python -m bench.crashes`, or with `make bench-crashes`, if the images simulator, virtual-time and aioquic
are there.
"""
# ruff: noqa: T201 - a script

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import product
from pathlib import Path

from bench.script import DAEMON, run
from quicsat.docker.client import Daemon
from quicsat.docker.containers import CAMPAIGN_LABEL
from quicsat.docker.daemon_images import DaemonImages
from quicsat.execution.lock import exclusive
from quicsat.execution.reaper import start_reaper
from quicsat.links.backend import LinkBackend
from quicsat.links.ns3_testbed import Ns3Backend
from quicsat.links.virtual_machine import VirtualBackend
from quicsat.model.clock import Clock
from quicsat.model.implementation import Role
from quicsat.model.outcomes import Verdict
from quicsat.model.real_link import Host
from tests.engine.crashes import MANNERS, MOMENTS, Crash, image, play
from tests.laboratory import ROOT, images_of

FAULTS = {
    Clock.REAL: ("the simulator is killed", "the client's container is killed", "the server's container is stopped"),
    Clock.VIRTUAL: ("the virtual machine is killed",),
}
"""Faults of the machine, by the clock in which they can happen."""
PARTS = {"simulator": "-sim", "client": "-client", "server": "-server", "virtual machine": "-machine"}
"""What the name of the container contains that a fault is about."""
PREFIX = "quicsat-crashes-"
"""Of temporary folders."""
WHILE = 0.5
"""Seconds after which a container has the fault."""


def main() -> int:
    """Exit status: 0 every verdict names who is to blame, 1 one does not, 75 a campaign is under way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clock", choices=[*Clock], nargs="+", default=[*Clock])
    parser.add_argument("--moment", choices=MOMENTS, nargs="*", default=MOMENTS)
    parser.add_argument("--manner", choices=MANNERS, nargs="+", default=MANNERS)
    parser.add_argument("--role", choices=[*Role], nargs="+", default=[*Role])
    options = parser.parse_args()
    daemon = Daemon(DAEMON, f"crashes-{os.getpid()}")
    with exclusive(daemon.id, "bench/crashes.py"), start_reaper([Host("", daemon.url)], daemon.campaign):
        return measure(daemon, options)


def measure(daemon: Daemon, options: argparse.Namespace) -> int:
    """Play and print all runs; 1 if one of their verdicts is wrong."""
    images = found_images(daemon, options.clock)
    codes: dict[Clock, Counter[str]] = {}
    wrong, slowest = 0, 0.0
    for clock in map(Clock, options.clock):
        codes[clock] = Counter()
        for name, right, verdict, seconds in carry_out(daemon, images, clock, options):
            wrong += not right
            slowest = max(slowest, seconds)
            codes[clock][verdict.code or verdict.outcome] += 1
            mark = "" if right else "WRONG: "
            code = verdict.code or verdict.outcome
            print(f"{clock}, {name}: {mark}{code}: {verdict.reason} ({seconds:.0f} s)", flush=True)
    for clock, counts in codes.items():
        print(f"{clock}: " + ", ".join(f"{count} {code}" for code, count in counts.most_common()))
    print(
        f"{sum(map(Counter.total, codes.values()))} runs, {wrong} wrong verdicts, the longest run took {slowest:.0f} s"
    )
    return int(wrong > 0)


def found_images(daemon: Daemon, clocks: Collection[str]) -> dict[str, str]:
    """Ids of the images by name, with that of the endpoint that crashes."""
    needed = ["simulator", "aioquic", *(["virtual-time"] if Clock.VIRTUAL in clocks else [])]
    references = zip(needed, images_of(ROOT, *needed), strict=True)
    found = {name: DaemonImages(daemon).find(reference) for name, reference in references}
    if missing := [name for name, facts in found.items() if facts is None]:
        sys.exit(f"Images are missing; `./run.py images build {' '.join(missing)}`")
    images = {name: facts.id for name, facts in found.items() if facts is not None}
    return {**images, "crashing": image(daemon, images["aioquic"])}


def carry_out(
    daemon: Daemon, images: Mapping[str, str], clock: Clock, options: argparse.Namespace
) -> Iterator[tuple[str, bool, Verdict, float]]:
    """Name, whether the verdict is right, verdict and seconds of each run."""
    backend: LinkBackend
    backend = Ns3Backend(daemon, images["simulator"]) if clock is Clock.REAL else VirtualBackend(daemon, images)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder, backend.open() as testbed:
        for number, (moment, manner, role) in enumerate(product(options.moment, options.manner, options.role)):
            crash = Crash(Role(role), moment, manner)
            verdict, _, seconds = play(crash, testbed, images, clock, Path(folder, str(number)))
            yield f"{role}, {moment}, {manner}", crash.told_by(verdict), verdict, seconds
    for fault in FAULTS[clock]:
        with tempfile.TemporaryDirectory(prefix=PREFIX) as folder, backend.open() as testbed:
            threading.Thread(target=cause, args=(daemon, fault), daemon=True).start()
            verdict, _, seconds = play(None, testbed, images, clock, Path(folder))
            yield fault, verdict.excluded, verdict, seconds


def cause(daemon: Daemon, fault: str) -> None:
    """Wait for the container that ``fault`` is about to run for a while, and send it a signal."""
    part = next(name for words, name in PARTS.items() if words in fault)
    while True:
        for each in daemon.quick.containers(filters={"label": f"{CAMPAIGN_LABEL}={daemon.campaign}"}):
            if part in each["Names"][0] and not each["Names"][0].endswith("-holder"):
                time.sleep(WHILE)
                daemon.quick.kill(each["Id"], "SIGTERM" if "stopped" in fault else "SIGKILL")
                return
        time.sleep(0.05)


if __name__ == "__main__":
    run(main)
