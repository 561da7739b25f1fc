"""Locked memory of endpoints, on emulated and real links alike."""

from __future__ import annotations

from interop.errors import HarnessFault
from interop.execution.daemon import ContainerSpec, Daemon
from interop.units import MIB

MEMLOCK = 64 * MIB
"""RLIMIT_MEMLOCK of endpoints, soft and hard, bytes; ``ulimits`` in the QUIC Interop Runner's docker-compose.yml."""
REFUSED = "endpoints get no larger RLIMIT_MEMLOCK: {} lacks CAP_SYS_RESOURCE (few images need it)"
"""What a reader of the results should know; the gap names the daemon."""


def memlock(daemon: Daemon, name: str, image: str) -> int | None:
    """``MEMLOCK`` if containers of ``daemon`` may have it, else None for the daemon's default.

    ``image`` must hold the program ``true``; ``name`` is of the container that tries it. Raises
    :class:`HarnessFault` if the daemon is away.
    """
    return MEMLOCK if works(daemon, ContainerSpec(name, image, ("true",), without=("ALL",), memlock=MEMLOCK)) else None


def works(daemon: Daemon, spec: ContainerSpec) -> bool:
    """Whether a container of ``spec`` starts and ends with status 0.

    Raises :class:`HarnessFault` if the daemon is away.
    """
    with daemon.container(spec) as container:
        try:
            container.start()
        except HarnessFault:
            if not daemon.answers():
                raise  # it did not refuse: it is away, and all runs would suffer from what is taken for its answer
            return False
        return container.wait(10) and container.exit().status == 0
