"""What a container is created from, and from when to when it ran; nouns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from interop.model import Interval
from interop.units import MIB


@dataclass(frozen=True)
class Rights:
    """Capabilities beside and without Docker's own."""

    added: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()


CONTRACT = Rights(("NET_ADMIN",), ("MKNOD", "AUDIT_WRITE", "SETFCAP"))
"""Of an endpoint in a network of its own: the endpoint contract lets it set routes and offloads."""
GUEST = Rights((), (*CONTRACT.taken, "NET_RAW"))
"""Of an endpoint in the network of its host, of which it may change and overhear nothing."""


WEIGHT = 32768
"""CPU shares of what packets pass through: it goes before what engine and program do for other runs meanwhile."""


@dataclass(frozen=True)
class ContainerSpec:
    """All that a container is created from; nothing of the host is mounted into it."""

    name: str
    image: str
    command: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    network: str = "none"
    published: str | None = None
    """Address of the host at which port 443 of UDP and TCP is reached; empty for all that it has, None for nowhere."""
    hostname: str | None = None
    hosts: tuple[tuple[str, str], ...] = ()
    """(name, address); a name may stand several times."""
    capabilities: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Capabilities taken away; ``("ALL",)`` for none but ``capabilities``."""
    sysctls: Mapping[str, str] = field(default_factory=dict)
    tty: bool = False
    host_pids: bool = False
    memory: int = 1024 * MIB
    pids: int = 512
    log_bytes: int = 2 * MIB
    memlock: int | None = None
    """RLIMIT_MEMLOCK in bytes; fails where the daemon lacks CAP_SYS_RESOURCE."""
    weight: int | None = None
    """CPU time beside others who want it, in shares of which a session or service of the machine has 1024."""


DISORDER = timedelta(seconds=1)
"""By how much the end of a container may be noted before its start."""


def life(state: Mapping[str, Any]) -> Interval | None:
    """From the start to the end of a container by its ``State`` in ``inspect``; None if one of them is not told.

    The engine writes the year 1 for what has not happened. Of a program that ends at once it may note the end a few
    milliseconds before the start.
    """
    try:
        begin, end = (datetime.fromisoformat(str(state[name])) for name in ("StartedAt", "FinishedAt"))
    except (KeyError, ValueError):
        return None
    if begin.tzinfo is None or end.tzinfo is None or begin.year <= 1970 or begin - end > DISORDER:
        return None
    return Interval(min(begin, end).timestamp(), max(begin, end).timestamp())
