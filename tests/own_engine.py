"""A Docker daemon of one's own: it stands in for the machine's.

It lives in namespaces of its own (mounts, processes and, if no other is given, network), so that it does not touch the
machine's daemon, and nothing of it is left when its first process ends.

``python -m tests.own_engine quic-go simulator`` raises one with images of the engine at DOCKER_HOST; with
``--run COMMAND`` it lasts as long as the command, to which it is the engine at DOCKER_HOST.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.model.errors import MachineError
from tests.dockerds import PATIENCE, LaboratoryError, bring, dockerd_command, group_at, wait_for
from tests.engine_lock import URL
from tests.laboratory import images_of

ROOT = Path(__file__).resolve().parents[1]
GRACE = 20.0
"""Seconds that what is asked to end has for it."""
TRIES = 3
"""Starts of a daemon until it is given up."""
SELDOM = {"GOGC": "400"}
"""Go's garbage collector works only when memory has grown fivefold: a daemon starts a program for each archive and each
network, and at its start that program spends a quarter of its CPU time on memory that it is about to give back."""
IDLE = ("dockerd", "containerd")
"""What runs in the namespaces of an engine that has nothing to do, beside their first process."""
SET_UP = (
    "ip link set lo up && mkdir -p /etc/docker && mount --bind {etc} /etc/docker && touch {ready} && "
    "exec {python} -c '{init}'"
)
INIT = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); [signal.pause() for _ in iter(int, 1)]"
"""The first process of the namespaces: who ignores SIGCHLD leaves no zombies of those that it adopts."""


class OwnEngine:
    """A Docker daemon with its own identity, data root, exec root and socket, all below ``folder``."""

    def __init__(self, folder: Path, group: str) -> None:
        """Raise it; its containers lie in a cgroup, ``group``."""
        self.folder = folder
        self.url = f"unix://{folder}/docker.sock"
        self._group = group
        (folder / "etc").mkdir(parents=True)
        own = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child=KILL", "--mount-proc"]
        log, ready = folder / "log", folder / "ready"
        script = SET_UP.format(etc=folder / "etc", ready=ready, python=sys.executable, init=INIT)
        words = [*own, "sh", "-c", script]
        with log.open("wb") as said:
            self._holder = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )
        wait_for(ready.exists, "the namespaces of an engine", self._holder, log)
        self._first = _child(self._holder)
        """Id of the first process of the namespaces, as the machine has it."""
        self._inherited = self._namespaces()
        self._entry: subprocess.Popen[bytes] | None = None
        self._daemon = 0
        try:
            self._start()
        except LaboratoryError:
            self.close()
            raise

    def _start(self) -> None:
        """Start the daemon, and wait until it answers.

        Tried ``TRIES`` times: on a busy machine it may give up because its containerd is not there in time.
        """
        for left in reversed(range(TRIES)):
            try:
                self._start_once()
                return
            except LaboratoryError:
                self._end_daemon()
                if not left:
                    raise

    def _start_once(self) -> None:
        for stale in ("docker.sock", "pid"):
            (self.folder / stale).unlink(missing_ok=True)
        log = self.folder / "log"
        with log.open("ab") as said:
            inside = ["nsenter", "--target", str(self._first), *(f"--{space}" for space in ("mount", "pid", "net"))]
            self._entry = subprocess.Popen(
                [*inside, *dockerd_command(self.folder, self._group)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
                env={**os.environ, **SELDOM},
            )
        self._daemon = _child(self._entry)
        wait_for(self._answers, "dockerd", self._entry, log)

    def _answers(self) -> bool:
        if not (self.folder / "docker.sock").exists():
            return False
        try:
            Daemon(self.url, "own-engine")
        except MachineError:
            return False
        return True

    def close(self) -> None:
        """End the daemon, and with its namespaces all that it has started."""
        self._end_daemon()
        os.kill(self._first, signal.SIGKILL)
        self._holder.wait()

    def _end_daemon(self) -> None:
        if self._entry and self._entry.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self._daemon, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._entry.wait(GRACE)

    def processes(self) -> dict[int, str]:
        """Name of all that runs there but what runs in idleness, by its id inside."""
        found = {}
        for path in self._proc().glob("[0-9]*"):
            with suppress(OSError):
                found[int(path.name)] = (path / "comm").read_text().strip()
        return {number: name for number, name in found.items() if number != 1 and name not in IDLE}

    def networks(self) -> set[str]:
        """Network namespaces made since: those in which something runs, and those that are kept by a mount."""
        return self._namespaces() - self._inherited

    def _namespaces(self) -> set[str]:
        found = set()
        for path in self._proc().glob("[0-9]*"):
            with suppress(OSError):
                found.add(str((path / "ns/net").readlink()))
        mounts = (line.split() for line in (self._proc() / "1/mountinfo").read_text().splitlines())
        return found | {words[3] for words in mounts if words[3].startswith("net:")}

    def _proc(self) -> Path:
        """/proc, as it is inside."""
        return Path(f"/proc/{self._first}/root/proc")


def _child(process: subprocess.Popen[bytes]) -> int:
    """Id of the one child of a process that has just been started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if words := children.read_text().split():
            return int(words[0])
        time.sleep(0.01)
    raise LaboratoryError(f"{process.args!r} could not be started")


@contextmanager
def own_engine(source: str, *names: str, prefix: str = "quicsat-own-") -> Iterator[OwnEngine]:
    """An engine with the images of ``names``, from the engine at ``source``; gone when the block is left."""
    if os.geteuid():
        raise LaboratoryError("needs root")
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        there = Daemon(source, "own-engine")
        references = images_of(ROOT, *names)
        engine = OwnEngine(Path(folder), group_at(there, references[0]))
        try:
            bring(there, Daemon(engine.url, "own-engine"), references)
            yield engine
        finally:
            engine.close()


def main(words: Sequence[str]) -> int:
    """Raise an engine and run a command that finds it at DOCKER_HOST, if there is one; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.own_engine", description="A Docker daemon of one's own.")
    parser.add_argument("images", nargs="+", help="names of images to bring from the engine at DOCKER_HOST")
    parser.add_argument("--also", nargs="+", default=[], metavar="IMAGE", help="images to bring if they are there")
    parser.add_argument("--run", nargs=argparse.REMAINDER, metavar="COMMAND", help="what to run (default: wait)")
    options = parser.parse_args(words)
    there = DaemonImages(Daemon(URL, "own-engine"))
    also = [name for name in options.also if there.find(images_of(ROOT, name)[0])]
    with own_engine(URL, *options.images, *also) as raised:
        if options.run:
            return subprocess.run(options.run, env={**os.environ, "DOCKER_HOST": raised.url}, check=False).returncode
        sys.stdout.write(f"{raised.url}\n")
        sys.stdout.flush()
        signal.pause()
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.exit(main(sys.argv[1:]))
