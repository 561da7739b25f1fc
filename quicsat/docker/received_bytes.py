"""How many bytes a container of this machine has received, from the kernel's counters of its network namespace."""

from __future__ import annotations

from quicsat.docker import resource_use


class ReceivedBytes:
    """Counts from its creation on."""

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
