"""The first process of a container of this machine: whether a signal reaches it, and what its network received."""

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
