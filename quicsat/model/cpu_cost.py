"""What computing costs in virtual time: CPU time of what a program does with its sockets."""

from dataclasses import dataclass

CALL, CLOCK = 0.2e-6, 50e-9
"""Seconds that a system call of no kind in a cost model takes, and a reading of the clock; of all programs. Medians of
cheap calls (docs/measurements/virtual-time.md); readings cost something so that the clock of a program that polls it
goes on."""


@dataclass(frozen=True)
class CostModel:
    """CPU time that a program needs for each of these, in its own code and in the kernel; seconds.

    Any other system call takes ``CALL``, and a reading of the clock ``CLOCK``.
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
    file_read: float = 0.0
    """1 KiB read from a file: the call, and the memory that receives it."""

    @property
    def in_order(self) -> tuple[float, ...]:
        """With the costs of all programs, in the order in which the virtual machine reads them (virtual-time/init)."""
        datagrams = self.datagram_sent, self.datagram_received
        return CALL, CLOCK, self.send, self.receive, self.wait, *datagrams, self.handshake, self.file_read


DEFAULT = CostModel(9e-6, 3.3e-6, 12e-6, 15e-6, 18e-6, 1.4e-3, 0.36e-6)
"""Of programs without a model of their own: about the medians of the measured ones, in both roles."""


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
    version: str = ""
    """Of the implementation when it was measured; empty if unknown."""

    def of(self, role: str) -> CostModel | float | None:
        """The cost in a role, ``server`` or ``client``."""
        return self.server if role == "server" else self.client

    @property
    def is_own(self) -> bool:
        """Whether it is not that of all implementations without one."""
        return not {self.server, self.client} <= {None, DEFAULT}


NOT_MEASURED = CpuCost()


def costs_in_words(factor: float | None, call: float | None, *, own: bool) -> str:
    """``CPU costs of cost models``, and their ``factor`` if it is not 1.

    ``call``, ``own``: ``cpu_cost`` and ``own_cpu_costs`` of campaigns without a factor (see ``Manifest``).
    """
    if factor is None and own:
        return "measured or default CPU costs"
    if factor:
        return "CPU costs of cost models" if factor == 1 else f"CPU costs of cost models × {factor:g}"
    return f"{call * 1e6:g} µs per system call" if call else "computing takes no time"
