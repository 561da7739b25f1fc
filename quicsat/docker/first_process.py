"""The first process of a container of this machine: whether a signal reaches it, and what its network received."""

import time
from signal import Signals

from quicsat.docker import resource_use

_RUNTIME = "runc:["
"""Begin of the name of a container's first process until it executes the container's program.

The engine says that a container has started a moment before that.
"""
PATIENCE = 10.0
"""Seconds for the program to follow; a program with such a name is not waited for any longer."""


def takes_signal(pid: int, identity: str, signal: Signals) -> bool:
    """Whether the first process of a container, by its process id and the container's, gets a signal sent to it.

    The kernel drops a signal for the first process of a PID namespace if the process neither handles nor blocks it
    (pid_namespaces(7)), such as SIGTERM for a shell. True if the process is not on this machine, or has ended.
    """
    if resource_use.control_group(pid, identity) is None:
        return True
    end = time.monotonic() + PATIENCE
    try:
        while (status := _status(pid))["Name"].startswith(_RUNTIME) and time.monotonic() < end:
            time.sleep(0.001)
        return bool((int(status["SigBlk"], 16) | int(status["SigCgt"], 16)) >> (signal - 1) & 1)
    except (OSError, LookupError, ValueError):
        return True


def _status(pid: int) -> dict[str, str]:
    text = (resource_use.PROCESSES / str(pid) / "status").read_text(encoding="ascii", errors="replace")
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


class ReceivedBytes:
    """Counts from its creation on, by the kernel's counters of a container's network namespace."""

    def __init__(self, pid: int, identity: str) -> None:
        """``pid``: first process of the container ``identity`` on its daemon's host."""
        # without a control group here, this process has nothing to do with the container
        here = resource_use.control_group(pid, identity) is not None
        self._counters = resource_use.PROCESSES / str(pid) / "net" / "dev" if here else None
        self._before = self._sum() or 0

    def read(self) -> int | None:
        """Bytes of frames on all interfaces but the loopback; None if the container has ended or is elsewhere."""
        total = self._sum()
        return None if total is None else max(total - self._before, 0)

    def _sum(self) -> int | None:
        if self._counters is None:
            return None
        try:
            lines = self._counters.read_text(encoding="ascii").splitlines()[2:]
            return sum(int(line.partition(":")[2].split()[0]) for line in lines if line.split(":")[0].strip() != "lo")
        except (OSError, LookupError, ValueError):
            return None
