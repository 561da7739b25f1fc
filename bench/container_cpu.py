"""CPU time of the containers of campaigns at a daemon on this machine; shared by the benchmarks, no script."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from quicsat.docker.client import Daemon
from quicsat.docker.containers import LABEL

GROUPS = Path("/sys/fs/cgroup")
SAMPLE, LIST = 0.02, 5
"""Seconds between two samples, and samples between two looks for new containers: what a container uses after its last
sample is not counted."""


class ContainerCpu:
    """CPU seconds that containers have used, with their kernels: a virtual machine is a process of its container."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._files = dict[str, Path]()
        self._used = dict[str, float]()
        self._stop = threading.Event()

    @property
    def seconds(self) -> float:
        """Of all containers together."""
        return sum(self._used.values())

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count what containers use while the block runs."""
        thread = threading.Thread(target=self._watch, name="container-cpu")
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _watch(self) -> None:
        count = 0
        while not self._stop.wait(SAMPLE):
            if count % LIST == 0:
                self._look()
            count += 1
            for identity, path in self._files.items():
                with suppress(OSError, ValueError):
                    self._used[identity] = used(path)

    def _look(self) -> None:
        """Find new containers; one that ends meanwhile is gone."""
        for container in self._daemon.quick.containers(filters={"label": LABEL}):
            identity = container["Id"]
            if identity not in self._files:
                with suppress(OSError, LookupError):
                    pid = self._daemon.quick.inspect_container(identity)["State"]["Pid"]
                    self._files[identity] = usage_file(Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii"))


def usage_file(text: str, groups: Path = GROUPS) -> Path:
    """The file with the CPU time of a control group, of version 1 or 2, from the ``/proc/PID/cgroup`` of a process.

    Raises LookupError if the process is in no group of its own.
    """
    paths = {names: path for _, names, path in (line.split(":", 2) for line in text.splitlines())}
    for names, path in paths.items():
        if "cpuacct" in names.split(",") and path != "/":
            return groups / "cpuacct" / path.lstrip("/") / "cpuacct.usage"
    if paths.get("", "/") != "/":
        return groups / paths[""].lstrip("/") / "cpu.stat"
    raise LookupError("no control group counts the CPU time of this process")


def used(path: Path) -> float:
    """CPU seconds, from the file of :func:`usage_file`."""
    words = path.read_text(encoding="ascii").split()
    return int(words[0]) / 1e9 if len(words) == 1 else int(words[words.index("usage_usec") + 1]) / 1e6
