"""CPU time, memory and system calls of containers of this machine.

CPU time and memory come from the files of their control groups (versions 1 and 2), system calls from the kernel's
performance events.

The kernel removes the control group of a container with its last process, so the files are read over and over. What a
container uses after the last reading is missing: at most ``SHARE`` of the time, or ``PERIOD`` seconds, of each of its
CPUs.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from quicsat.docker.system_calls import SystemCallCounter
from quicsat.model.evidence import ResourceUse
from quicsat.model.units import MIB

GROUPS = Path("/sys/fs/cgroup")
PROCESSES = Path("/proc")
TIMES = ("usage", "usage_user", "usage_sys")
"""Files with the CPU time of a control group of version 1. The last two count the ticks of the kernel's timer, which
are coarse samples: they only divide the first, as the kernel itself does in version 2 (``cputime_adjust``)."""
KEPT = ("shmem", "kernel", "sock")
"""Memory of a control group of version 2 that the kernel cannot drop, besides that of programs: files in memory, what
the kernel itself has, and packets in sockets; older kernels do not report all of them."""
CHARGE = 2 * MIB
"""Bytes by which the use of a group may be below its limit when the kernel ends a process for that limit: a huge page.
"""
LARGEST = 16384
"""Bytes of a file of a control group that are read."""
PERIOD = 0.02
"""Seconds between two looks at whether the kernel ended a process of a group."""
SHARE = 1 / 500
"""Of the time since the first reading: the time between two readings, which cost several times as much as such a look.
"""


class ControlGroup:
    """The control group of a container. Files that :meth:`read` and :meth:`starved` need stay open."""

    def __init__(self, cpu: Path, memory: Path) -> None:
        """Directories of the group; both are the same in version 2."""
        self._cpu, self._memory, self._unified = cpu, memory, cpu == memory
        self._files: dict[Path, int] = {}

    def cpu_seconds(self) -> float:
        """CPU time that the group has used so far; raises as :meth:`read`. It keeps no file open."""
        text = (self._cpu / ("cpu.stat" if self._unified else f"cpuacct.{TIMES[0]}")).read_text(encoding="ascii")
        return _table(text)["usage_usec"] / 1e6 if self._unified else int(text) / 1e9

    def threads(self) -> list[int]:
        """Ids of the threads in the group; raises OSError if it is gone."""
        name = "cgroup.threads" if self._unified else "tasks"
        return [int(line) for line in (self._cpu / name).read_text(encoding="ascii").splitlines()]

    def read(self) -> ResourceUse:
        """What the group has used so far; raises OSError, LookupError or ValueError if it is gone or of another kind.

        Memory is that of the moment, without the page cache, as far as the kernel can drop that.
        """
        memory = _table(self._text(self._memory, "memory.stat"))
        if self._unified:
            cpu = _table(self._text(self._cpu, "cpu.stat"))
            used = memory["anon"] + sum(memory.get(kind, 0) for kind in KEPT)
            return ResourceUse(cpu["user_usec"] / 1e6, cpu["system_usec"] / 1e6, used)
        used, user, system = (int(self._text(self._cpu, f"cpuacct.{name}")) for name in TIMES)
        own = used * user / (user + system) if user + system else used
        return ResourceUse(own / 1e9, (used - own) / 1e9, memory["total_rss"] + memory.get("total_shmem", 0))

    def starved(self) -> bool:
        """Whether the kernel ended a process of the group although the group had not reached its own limit, so that the
        machine, or a group around this one, had no memory left; raises as :meth:`read`.

        In version 2, ``oom`` is about the group's limit, ``oom_kill`` about its processes, whatever they were ended for
        (Documentation/admin-guide/cgroup-v2.rst of Linux). Version 1 does not count the former (the failure counts stay
        0 in Linux 6.18), but has the highest use ever, page cache included.
        """
        if self._unified:
            events = _table(self._text(self._memory, "memory.events"))
            return events["oom_kill"] > 0 and not events["oom"]
        control = _table(self._text(self._memory, "memory.oom_control"))
        if not control.get("oom_kill"):  # not reported before Linux 4.13
            return False
        highest, limit = (int(self._text(self._memory, f"memory.{name}_in_bytes")) for name in ("max_usage", "limit"))
        return highest < limit - CHARGE

    def close(self) -> None:
        """Close the files."""
        while self._files:
            os.close(self._files.popitem()[1])

    def _text(self, directory: Path, name: str) -> str:
        path = directory / name
        if path not in self._files:
            self._files[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._files[path], LARGEST, 0).decode("ascii")


def control_group(pid: int, identity: str) -> ControlGroup | None:
    """The control group of a container by its id and that of its first process; None if it is not on this machine."""
    try:
        lines = (PROCESSES / str(pid) / "cgroup").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    paths = {name: path.lstrip("/") for _, names, path in (line.split(":", 2) for line in lines)
             for name in names.split(",") if identity in path}  # fmt: skip
    if "cpuacct" in paths and "memory" in paths:
        return ControlGroup(GROUPS / "cpuacct" / paths["cpuacct"], GROUPS / "memory" / paths["memory"])
    return ControlGroup(GROUPS / paths[""], GROUPS / paths[""]) if "" in paths else None


def _table(text: str) -> dict[str, int]:
    rows = (line.split() for line in text.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2}


class ResourceMonitor:
    """Reads the control groups of containers while a block runs, see :meth:`watching`."""

    def __init__(self) -> None:
        self._groups: dict[str, ControlGroup] = {}
        self._counters: dict[str, SystemCallCounter] = {}
        self._use: dict[str, ResourceUse] = {}
        self._starved: dict[str, bool] = {}
        self._ended = threading.Event()

    @property
    def use(self) -> dict[str, ResourceUse]:
        """CPU time, the largest memory and system calls so far, by name."""
        return dict(self._use)

    @property
    def starved(self) -> list[str]:
        """Names of the containers in which the kernel killed a process because the machine ran out of memory."""
        return [name for name, starved in self._starved.items() if starved]

    def add(self, name: str, pid: int, identity: str) -> None:
        """Watch a container from now on, as long as it is there; nothing happens if it is on another machine."""
        if (group := control_group(pid, identity)) is None:
            return
        with suppress(OSError, ValueError):  # the container has ended, or the kernel does not count
            self._counters[name] = SystemCallCounter(group.threads)
        self._groups = self._groups | {name: group}

    @contextmanager
    def watching(self) -> Iterator[ResourceMonitor]:
        """Read from a background thread until the block is left."""
        thread = threading.Thread(target=self._watch, daemon=True, name="resource-use")
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            thread.join()
            for name, counter in self._counters.items():
                if name in self._use:
                    self._use[name] = replace(self._use[name], **counter.counts)
                counter.close()
            for group in self._groups.values():
                group.close()

    def _watch(self) -> None:
        begin = due = time.monotonic()
        while not self._ended.wait(PERIOD):
            now = time.monotonic()
            for name, group in self._groups.items():
                with suppress(OSError, LookupError, ValueError):  # the container has ended
                    if now >= due or name not in self._use:
                        self._read(name, group)
                    self._starved[name] = group.starved()
            if now >= due:
                due = now + SHARE * (now - begin)

    def _read(self, name: str, group: ControlGroup) -> None:
        use = group.read()
        peak = max(use.memory_peak, self._use[name].memory_peak if name in self._use else 0)
        self._use[name] = ResourceUse(use.cpu_user, use.cpu_system, peak)
