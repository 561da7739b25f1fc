#!/usr/bin/env python3
"""Lets an endpoint crash at five moments, in both roles, in five manners and with both clocks, and shows whom the
verdicts name.

Run it with `bench/crashes.py`, or with `make bench-crashes`. It needs the images simulator, virtual-time and aioquic.
"""
# ruff: noqa: E402, T201 - a script

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from interop.docker.client import Daemon
from interop.docker.daemon_images import DaemonImages
from interop.images import build_recipes
from interop.images.build_recipes import OWN_FOLDERS
from interop.links.backend import Testbed
from interop.links.ns3_testbed import Ns3Backend
from interop.links.virtual_machine import VirtualBackend
from interop.model.clock import Clock
from interop.model.implementation import Role
from tests.engine.crashes import MANNERS, MOMENTS, Crash, image, play

CPU_COST = 3e-6
"""Simulated seconds of a system call."""


def main() -> int:
    """Exit status: 0 every verdict names the endpoint that crashed, 1 one does not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clock", choices=[*Clock], nargs="+", default=[*Clock])
    parser.add_argument("--moment", choices=MOMENTS, nargs="+", default=MOMENTS)
    parser.add_argument("--manner", choices=MANNERS, nargs="+", default=MANNERS)
    parser.add_argument("--role", choices=[*Role], nargs="+", default=[*Role])
    options = parser.parse_args()
    daemon = Daemon(os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock", f"crashes-{os.getpid()}")
    references = build_recipes.expected(ROOT)
    references |= {name: build_recipes.find_recipe(ROOT, name, folder).tag for name, folder in OWN_FOLDERS.items()}
    found = {name: DaemonImages(daemon).find(references[name]) for name in ("simulator", "virtual-time", "aioquic")}
    if missing := [name for name, facts in found.items() if facts is None and name != "virtual-time"]:
        sys.exit(f"Images are missing; `./run.py images build {' '.join(missing)}`")
    images = {name: facts.id for name, facts in found.items() if facts is not None}
    images["crashing"] = image(daemon, images["aioquic"])
    codes: dict[Clock, Counter[str]] = {}
    wrong, slowest = 0, 0.0
    for clock in map(Clock, options.clock):
        codes[clock] = Counter()
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="quicsat-crashes-")))
            testbed: Testbed
            if clock is Clock.REAL:
                testbed = stack.enter_context(Ns3Backend(daemon, images["simulator"]).open())
            else:
                testbed = stack.enter_context(VirtualBackend(daemon, images, CPU_COST).open())
            for number, (moment, manner, role) in enumerate(product(options.moment, options.manner, options.role)):
                crash = Crash(Role(role), moment, manner)
                verdict, _, seconds = play(crash, testbed, images, clock, folder / str(number))
                right = crash.told_by(verdict)
                wrong += not right
                slowest = max(slowest, seconds)
                codes[clock][verdict.code or verdict.outcome] += 1
                mark = "" if right else "WRONG: "
                print(
                    f"{clock} {moment}, {manner}, {role}: {mark}{verdict.code or verdict.outcome}: {verdict.reason}"
                    f" ({seconds:.0f} s)",
                    flush=True,
                )
    for clock, counts in codes.items():
        print(f"{clock}: " + ", ".join(f"{count} {code}" for code, count in counts.most_common()))
    print(
        f"{sum(map(Counter.total, codes.values()))} runs, {wrong} wrong verdicts, the longest run took {slowest:.0f} s"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
