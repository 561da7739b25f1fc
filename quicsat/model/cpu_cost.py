"""What computing costs in virtual time: CPU time of what a program does with its sockets."""

from __future__ import annotations

from dataclasses import dataclass

CPU_COST = 3e-6
"""Default of --cpu-cost, seconds, for programs without a cost of their own; docs/guide/virtual-time.md shows what it
changes."""


@dataclass(frozen=True)
class CostModel:
    """CPU time that a program needs for each of these, in its own code and in the kernel; seconds.

    Everything else that it does counts as nothing, and so does the time that passes.
    """

    send: float
    """A call of sendto, sendmsg or sendmmsg, and of write or writev if it sends a datagram."""
    receive: float
    """A call of recvfrom, recvmsg or recvmmsg, and of read or readv if it receives a datagram."""
    wait: float
    """A call of a function of the families poll, select, epoll_wait and nanosleep, or of futex if it waits."""
    datagram_sent: float
    """A UDP datagram sent: each segment counts if the kernel splits a message (GSO)."""
    datagram_received: float
    """A UDP datagram received: each segment counts if the kernel has joined several (GRO)."""
    handshake: float
    """All handshakes of a process together."""


@dataclass(frozen=True)
class CpuCost:
    """The cost models of an implementation; None where there is none."""

    server: CostModel | float | None = None
    """A number in campaigns of versions before cost models: seconds for each system call of any kind."""
    client: CostModel | float | None = None
    measured: str = ""
    """Date of the measurement; empty for an estimate."""
    processor: str = ""
    """On which it was measured."""

    def of(self, role: str) -> CostModel | float | None:
        """The cost in a role, ``server`` or ``client``."""
        return self.server if role == "server" else self.client


NOT_MEASURED = CpuCost()
