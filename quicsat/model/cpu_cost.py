"""What computing costs in virtual time: CPU time per system call."""

from __future__ import annotations

from dataclasses import dataclass

CPU_COST = 3e-6
"""Default of --cpu-cost, seconds, for programs without a cost of their own; docs/guide/virtual-time.md shows what it
changes."""


@dataclass(frozen=True)
class CpuCost:
    """CPU time that an implementation needs per system call, in seconds; None where it is not known.

    Virtual time charges it for each system call, for the computing of the program as well as of the kernel.
    """

    server: float | None = None
    client: float | None = None

    def of(self, role: str) -> float | None:
        """The cost in a role, ``server`` or ``client``."""
        return self.server if role == "server" else self.client


NOT_MEASURED = CpuCost()
