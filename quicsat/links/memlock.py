"""Locked memory of endpoints, on emulated and real links alike."""

from quicsat.docker.client import Daemon
from quicsat.docker.containers import ContainerSpec, create_container
from quicsat.model.errors import HarnessFault
from quicsat.model.units import MIB

MEMLOCK = 64 * MIB
"""RLIMIT_MEMLOCK of endpoints, soft and hard, bytes; ``ulimits`` in the QUIC Interop Runner's docker-compose.yml."""
REFUSED = "endpoints get no larger RLIMIT_MEMLOCK: {} lacks CAP_SYS_RESOURCE (few images need it)"
"""Note for readers of the results; the placeholder names the daemon."""


def memlock(daemon: Daemon, name: str, image: str) -> int | None:
    """``MEMLOCK`` if ``daemon`` grants it to containers, else None for the daemon's default.

    ``image`` must hold the program ``true``; ``name`` is that of the test container. Raises
    :class:`HarnessFault` if the daemon does not answer.
    """
    return (
        MEMLOCK
        if works(daemon, ContainerSpec(name, image, ("true",), dropped_capabilities=("ALL",), memlock=MEMLOCK))
        else None
    )


def works(daemon: Daemon, spec: ContainerSpec) -> bool:
    """Whether a container of ``spec`` starts and ends with status 0.

    Raises :class:`HarnessFault` if the daemon does not answer.
    """
    with create_container(daemon, spec) as container:
        try:
            container.start()
        except HarnessFault:
            if not daemon.answers():
                raise  # not a refusal: the daemon does not answer, and a wrong result would affect all runs
            return False
        return container.wait(10) and container.exit().status == 0
