"""The first process of a container of this machine: whether a signal reaches it."""

from __future__ import annotations

from signal import Signals

from quicsat.docker import resource_use


def takes_signal(pid: int, identity: str, signal: Signals) -> bool:
    """Whether the first process of a container, by its process id and the container's, gets a signal sent to it.

    The kernel drops a signal for the first process of a PID namespace if the process neither handles nor blocks it
    (pid_namespaces(7)), such as SIGTERM for a shell. True if the process is not on this machine, or has ended.
    """
    if resource_use.control_group(pid, identity) is None:
        return True
    try:
        text = (resource_use.PROCESSES / str(pid) / "status").read_text(encoding="ascii", errors="replace")
        masks = dict(line.split(":\t", 1) for line in text.splitlines() if line.startswith(("SigBlk:", "SigCgt:")))
        return bool((int(masks["SigBlk"], 16) | int(masks["SigCgt"], 16)) >> (signal - 1) & 1)
    except (OSError, LookupError, ValueError):
        return True
