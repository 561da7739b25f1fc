"""Two users and root share one Docker daemon and one checkout: each can measure, and none can harm the others.

    make bench-users

It needs root. The users have no accounts: only their numbers, and the group of the daemon's socket.
"""
# ruff: noqa: T201 - a script

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from prettytable import PrettyTable

from bench.script import DAEMON, ROOT, options_parser
from bench.site_builds import copy_program
from bench.soak import GRACE
from quicsat.docker.archive import pack
from quicsat.docker.client import Daemon
from quicsat.docker.containers import LABEL, list_containers
from quicsat.docker.daemon_images import DaemonImages
from quicsat.execution.lock import exclusive
from quicsat.images.lock_file import read_lock
from quicsat.model.errors import LockedError, MachineError
from quicsat.results.store import load
from tests.laboratory import images_of
from tests.own_engine import own_engine

USERS = {"root": 0, "ana": 54321, "ben": 54322}
TEST_CASE = """\
name: shared
abbreviation: SH
description: a file that takes some seconds
link: {scenario: simple-p2p, delay: 20 ms, rate: 20 Mbit/s, queue: 25}
file size: 1 MiB
repetitions: 1
timeout: 60 s
"""
NAMES = ("quic-go", "aioquic")
LONG = 16
"""Repetitions of a campaign during which others do all that there is."""
LOCKS = 5
"""Rounds in which two users lock images at the same moment."""
BUSY, MACHINE = LockedError.exit_status, MachineError.exit_status


@dataclass(frozen=True)
class Call:
    """A command of run.py that has ended."""

    status: int
    text: str

    def told(self, status: int, *words: str) -> bool:
        """Whether it ended with a status and a message without a traceback that has all ``words``."""
        return self.status == status and "Traceback" not in self.text and all(word in self.text for word in words)


@dataclass
class Machine:
    """A daemon, a checkout of root's, and a directory of each user."""

    folder: Path
    daemon: Daemon
    rows: list[tuple[str, bool]] = field(default_factory=list)

    @property
    def program(self) -> Path:
        """The checkout."""
        return self.folder / "quicsat"

    def home(self, user: str) -> Path:
        """The directory of a user."""
        return self.folder / user

    def start(self, user: str, *words: str, url: str = DAEMON) -> subprocess.Popen[str]:
        """A command of a user in the checkout."""
        number, group = USERS[user], group_of_socket()
        rights = ["setpriv", f"--reuid={number}", f"--regid={number}", f"--groups={group}"] if number else []
        return subprocess.Popen(
            [*rights, sys.executable, "run.py", *words], cwd=self.program, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home(user)), "DOCKER_HOST": url},
        )  # fmt: skip

    def call(self, user: str, *words: str, url: str = DAEMON) -> Call:
        """The same, when it has ended."""
        return ended(self.start(user, *words, url=url))

    def measure(self, user: str, *words: str) -> subprocess.Popen[str]:
        """A campaign of a user that is under way."""
        test_case = str(self.folder / "shared.yaml")
        return self.start(
            user, "run", "-s", "quic-go", "-c", "quic-go", "-t", test_case, "--clock", "virtual", "--no-qlog", *words
        )

    def bar(self, what: str, *holds: bool) -> None:
        """Note whether all of ``holds`` do."""
        self.rows.append((what, all(holds)))
        print(f"{'ok' if all(holds) else 'NOT REACHED'}: {what}", flush=True)


def group_of_socket() -> int:
    """The group whose members may use the daemon."""
    return Path(DAEMON.removeprefix("unix://")).stat().st_gid


def ended(process: subprocess.Popen[str]) -> Call:
    """What a command says until it ends."""
    text, _ = process.communicate()
    if process.returncode:
        print(text[-1000:])
    return Call(process.returncode, text)


def wait_for(what: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until something holds, or a process has ended."""
    while not what() and process.poll() is None:
        time.sleep(0.05)


# ---- what users do --------------------------------------------------------------------------


def take_turns(machine: Machine) -> None:
    """Each measures when the one before has ended: root first, as with ``sudo make demo``."""
    first = ended(machine.measure("root"))
    machine.bar("root measures in the checkout", first.status == 0)
    refused = ended(machine.measure("ana"))
    machine.bar("a message tells the user where else to put results", refused.told(MACHINE, "results", "-l"))
    for user in ("ana", "ben", "root", "ana"):
        done = ended(machine.measure(user, "-l", str(machine.home(user) / f"results/{time.time_ns()}")))
        machine.bar(f"{user} measures after another user", done.status == 0)


def meet(machine: Machine, other: str) -> None:
    """The others do all that there is while one measures; ``other``: address of a daemon with the same id."""
    results = machine.home("ana") / "results"
    old = {each: load(each).result_set for each in results.iterdir()}
    campaign = results / "long"
    process = machine.measure("ana", "--repetitions", str(LONG), "-l", str(campaign))
    wait_for((campaign / "journal.jsonl").exists, process)
    ben = machine.call("ben", "prune", str(results), "--traces", "0", "--keep", "1", "--yes")
    machine.bar("ben prunes nothing of ana's", "Traceback" not in ben.text, len([*results.iterdir()]) == len(old) + 1)
    for user in ("ana", "root"):
        pruned = machine.call(user, "prune", str(results), "--traces", "0", "--yes")
        machine.bar(f"{user} prunes old campaigns meanwhile", pruned.status == 0)
    for user in ("ben", "root"):
        elsewhere = str(machine.home(user) / "results/busy")
        busy = ended(machine.measure(user, "-l", elsewhere))
        machine.bar(f"a message tells {user} who measures", busy.told(BUSY, f"process {process.pid}"))
        machine.bar(f"{user} cannot clean meanwhile", machine.call(user, "clean").told(BUSY, f"process {process.pid}"))
    machine.bar("two daemons with one id do not wait", machine.call("ben", "clean", url=other).status == 0)
    machine.bar("the campaign was under way all the time", process.poll() is None)
    machine.bar("the campaign succeeds", ended(process).status == 0, len(load(campaign).result_set.results) == LONG)
    machine.bar("prune leaves its traces", len([*campaign.glob("*/*/*/sim/trace_node_left.pcap")]) == LONG)
    machine.bar("prune leaves all results", all(load(each).result_set == found for each, found in old.items()))


def kill(machine: Machine) -> None:
    """One is killed while measuring, and another cleans up and measures."""
    process = machine.measure("ana", "-l", str(machine.home("ana") / "results/killed"))
    wait_for(lambda: bool(list_containers(machine.daemon)), process)
    process.kill()
    process.wait()
    deadline = time.monotonic() + GRACE
    while (left := list_containers(machine.daemon)) and time.monotonic() < deadline:
        time.sleep(0.2)
    machine.bar("nothing is left of a killed campaign", not left, machine.call("ben", "clean").status == 0)


def clean(machine: Machine) -> None:
    """A user has a container of an image with quicsat's label; all users clean."""
    base = images_of(ROOT, "endpoint-base")[0]
    context = pack({"Dockerfile": f'FROM {base}\nLABEL {LABEL}=1\nENTRYPOINT ["sleep", "3600"]\n'.encode()})
    image = DaemonImages(machine.daemon).build(context, "quicsat/test-labelled:latest", {}, lambda _: None)
    own = machine.daemon.quick.create_container(image.id)["Id"]
    try:
        machine.daemon.quick.start(own)
        statuses = [machine.call(user, "clean").status for user in USERS]
        machine.bar("clean leaves a user's own container", statuses == [0] * len(USERS), is_running(machine, own))
    finally:
        machine.daemon.quick.remove_container(own, force=True)
        machine.daemon.quick.remove_image(image.id, force=True)


def is_running(machine: Machine, container: str) -> bool:
    """Whether a container is there, and runs."""
    return bool(machine.daemon.quick.inspect_container(container)["State"]["Running"])


def lock_images(machine: Machine) -> None:
    """Two users lock different images in one file at the same moment."""
    shared = machine.folder / "shared"
    shared.mkdir(mode=0o777)
    shared.chmod(0o777)
    whole = 0
    for number in range(LOCKS):
        file = shared / f"{number}.json"
        both = [machine.start(user, "images", "lock", name, "--lock-file", str(file))
                for user, name in zip(("ana", "ben"), NAMES, strict=True)]  # fmt: skip
        whole += [ended(each).status for each in both] == [0, 0] and {*NAMES} <= {*read_lock(file)}
    machine.bar("two locks of images have both entries", whole == LOCKS)
    shared.chmod(0o1777)
    before = file.read_bytes()
    own = machine.call("ana", "images", "lock", NAMES[0], "--lock-file", str(file))
    other = machine.call("ben", "images", "lock", NAMES[0], "--lock-file", str(file))
    machine.bar("in a sticky directory, only the owner replaces the file",
                sorted((own.status, other.status)) == [0, MACHINE], file.read_bytes() == before)  # fmt: skip


@contextmanager
def daemon_with_the_same_id(machine: Machine) -> Iterator[str]:
    """Address of an engine of its own with the key of the machine's daemon, from which older daemons make their id."""
    with own_engine(DAEMON, "endpoint-base") as engine:
        key = Path("/etc/docker/key.json")
        if key.exists():
            engine.kill()
            shutil.copy(key, engine.folder / "etc/key.json")
            engine.start()
        engine.folder.chmod(0o755)
        os.chown(engine.folder / "docker.sock", 0, group_of_socket())
        other = Daemon(engine.url, "users")
        same = other.info["ID"] == machine.daemon.info["ID"]
        machine.bar(f"two daemons have {'one id' if same else 'two ids, since this version makes them so'}", True)
        with exclusive(machine.daemon.id, "bench"), exclusive(other.id, "bench"):
            machine.bar("both daemons can be locked", True)
        yield engine.url


def main() -> int:
    """Exit status: 0 all bars are kept, 1 one is not."""
    options_parser(__doc__, {}).parse_args()
    if os.geteuid():
        raise SystemExit("needs root")
    with tempfile.TemporaryDirectory(prefix="quicsat-users-") as folder:
        machine = Machine(Path(folder), Daemon(DAEMON, "users"))
        machine.folder.chmod(0o755)
        (machine.folder / "shared.yaml").write_text(TEST_CASE, encoding="utf-8")
        machine.program.mkdir()
        copy_program(machine.program)
        for user, number in USERS.items():
            (machine.home(user) / "results").mkdir(parents=True)
            for place in (machine.home(user), machine.home(user) / "results"):
                os.chown(place, number, number)
        take_turns(machine)
        with daemon_with_the_same_id(machine) as other:
            meet(machine, other)
        kill(machine)
        clean(machine)
        lock_images(machine)
    table = PrettyTable(["", "holds"], align="l")
    table.add_rows([[what, "yes" if holds else "NO"] for what, holds in machine.rows])
    print(table)
    return int(not all(holds for _, holds in machine.rows))


if __name__ == "__main__":
    sys.exit(main())
