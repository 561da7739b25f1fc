"""Builds endpoints for arm64 and checks them with quic-go of this machine (`make test-arm64`).

The programs run under QEMU's user emulation, which Debian's package qemu-user-static registers with the kernel. Their
images have names of their own, such as quicsat/aioquic-arm64, and the same recipes as on an arm64 machine. Simulator
and partner are those of this machine. The campaign begins with the check of the endpoint contract.

With ``--own-engine``, only the builds use the engine at DOCKER_HOST, and the campaign has an engine of its own.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from quicsat.cli import progress
from quicsat.cli.image_actions import ImageRequest
from quicsat.cli.image_check import PEER, check_cases, outcome_of
from quicsat.cli.image_findings import findings
from quicsat.cli.image_trial import Trial, try_out
from quicsat.config import loader
from quicsat.docker.address import default_daemon
from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.images.build_recipes import BASE, BASE_SUITE, BASES, Recipe, build_context, find_recipe
from quicsat.images.pull_or_build import UNWANTED
from quicsat.model.real_link import Host
from quicsat.model.results import RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.units import MIB
from tests.dockerds import bring
from tests.own_engine import own_engine

ROOT = Path(__file__).resolve().parents[1]
QEMU = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")
MISSING = (
    "The kernel does not run programs for arm64. Install Debian's qemu-user-static and arch-test. Without systemd, "
    "also mount binfmt_misc at /proc/sys/fs/binfmt_misc, and run `update-binfmts --enable qemu-aarch64` (package "
    "binfmt-support)."
)
ARM64_BASE = f"{BASE}-arm64"
ENDPOINTS = ("picoquic", "aioquic")
TESTS = ("handshake", "longrtt", "chacha20", "retry", "resumption", "zerortt", "http3", "keyupdate", "ipv6")
"""Functional tests with little data and few connections, except those that quic-go fails or does not know."""
DEADLINE = 300.0
"""Seconds for each transfer: an emulated program starts and computes about ten times as slowly."""
LARGEST = MIB
"""Bytes of the larger transfer of the check, which has 10 MiB on machines of its own architecture."""


def bootstrap(store: DaemonImages) -> None:
    """Debian for arm64, from its packages."""
    with tempfile.TemporaryDirectory(prefix="quicsat-arm64-") as directory:
        archive = Path(directory, "base.tar")
        command = ["mmdebstrap", "--variant=minbase", "--architectures=arm64", "--include=ca-certificates"]
        command += [f"--dpkgopt=path-exclude={pattern}" for pattern in UNWANTED]
        subprocess.run([*command, "--format=tar", BASE_SUITE, str(archive)], check=True)
        with archive.open("rb") as stream:
            store.import_rootfs(stream, ARM64_BASE)


def for_arm64(recipe: Recipe, bases: Mapping[str, str]) -> Recipe:
    """The same recipe with another name and other bases: build argument -> image."""
    return replace(recipe, name=f"{recipe.name}-arm64", arguments={name: bases[name] for name in recipe.arguments})


def build(store: DaemonImages, names: Sequence[str], say: Callable[[str], None]) -> dict[str, str]:
    """Build endpoints and what they are built on; name -> image."""
    if not store.find(ARM64_BASE):
        say(f"making {ARM64_BASE}")
        bootstrap(store)
    bases, images = {"BASE": ARM64_BASE}, dict[str, str]()
    recipes = [(argument, find_recipe(*BASES[argument])) for argument in BASES]
    recipes += [(name, find_recipe(name, f"endpoints/{name}")) for name in names]
    wanted = {argument for name, recipe in recipes if name in names for argument in recipe.arguments}
    for name, original in recipes:
        if name not in wanted and name not in names:
            continue
        recipe = for_arm64(original, bases)
        if not store.find(recipe.tag):
            say(f"building {recipe.tag}")
            store.build(build_context(recipe.folder), recipe.tag, recipe.arguments, lambda _: None)
        (images if name in names else bases)[name] = recipe.tag
    return images


def cases(tests: Sequence[str]) -> tuple[TestCase, ...]:
    """The transfers of a check with less data, and functional tests, all with more time."""
    known = loader.load_known_test_cases(ROOT / "testcases")
    small, large, ipv6 = check_cases(known["terrestrial"])
    chosen = (small, replace(large, description="Check: 1 MiB", file_sizes=(LARGEST,)), ipv6)
    return tuple(replace(case, timeout=DEADLINE) for case in (*chosen, *(known[name] for name in tests)))


def line_of(result: RunResult) -> str:
    """What a run came to."""
    words = f"{result.server} {result.client} {result.test_case}: {outcome_of(result)}"
    return f"{words} ({result.verdict.reason})" if result.verdict.reason else words


def examine(host: Host, images: Mapping[str, str], tests: Sequence[str]) -> bool:
    """Check images at an engine with the peer, in each role; whether all are sound, and left keys and a qlog."""
    known = loader.load_implementations(ROOT / "implementations.json")
    ready = [replace(known[name], image=image, build=None, replaced=True) for name, image in images.items()]
    request = ImageRequest("check", tuple(images), host, ROOT, ("python", "-m", "tests.arm64"))
    finished = try_out(Trial(request, ready, known[PEER], cases(tests)), progress.lines())
    results = finished.record.result_set
    found = findings(ready, known[PEER], results, finished.directory)
    lines = [line_of(result) for result in results.results]
    lines += [f"{each.name} {each.role}: compliant {each.compliant}, key log {each.key_log}, qlog {each.qlog}"
              for each in found]  # fmt: skip
    sys.stdout.write("\n".join([*lines, f"Logs and traces: {finished.directory}", ""]))
    if finished.fault:
        say(finished.fault)
    return not finished.fault and all(each.sound and each.key_log and each.qlog for each in found)


def say(text: str) -> None:
    """A line of progress."""
    sys.stderr.write(f"{text}\n")


def main(words: Sequence[str]) -> int:
    """Build the images, and check each with quic-go, in both roles; 1 if one does not pass."""
    parser = argparse.ArgumentParser(prog="python -m tests.arm64", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", default=ENDPOINTS, metavar="NAME", help=f"default: {' '.join(ENDPOINTS)}")
    parser.add_argument("--tests", nargs="*", default=TESTS, metavar="TEST", help=f"default: {' '.join(TESTS)}")
    parser.add_argument("--own-engine", action="store_true", help="make the runs at an engine of their own")
    options = parser.parse_args(words)
    if not QEMU.exists():
        sys.exit(MISSING)
    chosen = default_daemon(os.environ)
    url = chosen.daemon
    there = Daemon(url, "arm64")
    images = build(DaemonImages(there), options.names, say)
    if not options.own_engine:
        return int(not examine(chosen, images, options.tests))
    with own_engine(url, "simulator", PEER) as own:
        bring(there, Daemon(own.url, "arm64"), list(images.values()))
        return int(not examine(Host("", own.url), images, options.tests))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
