"""The address of this machine's Docker daemon. It needs only the standard library, so that it is found at once."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

SYSTEM = "/var/run/docker.sock"
"""Socket of Docker's daemon with root."""


def daemon_url(environment: Mapping[str, str]) -> str:
    """``DOCKER_HOST``, else the first local socket at which a daemon listens for this user, else ``SYSTEM``."""
    if environment.get("DOCKER_HOST"):
        return environment["DOCKER_HOST"]
    runtime = environment.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    return f"unix://{_first((SYSTEM, *_sockets(runtime, os.getuid())))}"


def _sockets(runtime: str, user: int) -> tuple[str, ...]:
    """Of rootless Docker, then of podman: without a login session, its files are in /tmp."""
    own = (f"{runtime}/docker.sock", f"{runtime}/podman/podman.sock", f"/tmp/podman-run-{user}/podman/podman.sock")
    return ("/run/podman/podman.sock",) if user == 0 else own


def _first(paths: Sequence[str]) -> str:
    return next((path for path in paths if _is_trusted(path) and _listens(path)), SYSTEM)


def _is_trusted(path: str) -> bool:
    """Whether it belongs to root or to this user: anybody may make files in /tmp."""
    try:
        return Path(path).stat().st_uid in (0, os.getuid())
    except OSError:
        return False


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        try:
            connection.connect(path)
        except BlockingIOError:  # a daemon is there, but busy: its queue is full
            return True
        except OSError:
            return False
    return True
