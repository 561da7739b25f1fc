"""Docker daemons of other machines: one ssh tunnel per host to a local socket, restarted when it breaks.

The library's own ssh transport is not used: it logs in for every request, has no keep-alive, and never
reconnects (docker/docker-py#2248, #2966, #3218).
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from urllib.parse import urlsplit

from interop.docker.client import Daemon
from interop.model.errors import MachineError
from interop.model.real_link import Host, Tls

REMOTE_SOCKET = "/var/run/docker.sock"
KEEPALIVE = 5
"""Seconds between two keep-alive messages; after three without an answer the connection counts as broken."""
FIRST_CONNECTION = 30.0
"""Seconds within which the first login must succeed."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds between two attempts to connect again."""


@contextmanager
def connected(host: Host, campaign: str) -> Iterator[Daemon]:
    """The daemon of a host; raises :class:`MachineError` if it cannot be reached."""
    with ExitStack() as stack:
        url = host.daemon
        if url.startswith("ssh://"):
            url = f"unix://{stack.enter_context(_tunnel(host))}"
        yield Daemon(url, campaign, host.tls, host=host.name)


# ---- the tunnel -----------------------------------------------------------------------------


@contextmanager
def _tunnel(host: Host) -> Iterator[Path]:
    """A local socket that ssh forwards to the host's daemon."""
    with tempfile.TemporaryDirectory(prefix="quicsat-ssh-") as folder:
        tunnel = _Tunnel(host, Path(folder, "docker.sock"), Path(folder, "stderr"))
        try:
            tunnel.open()
            yield tunnel.socket
        finally:
            tunnel.close()


class _Tunnel:
    """An ssh process that is started again whenever it ends."""

    def __init__(self, host: Host, socket: Path, errors: Path) -> None:
        self.socket = socket
        self._host = host
        self._errors = errors
        self._closed = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper = threading.Thread(target=self._keep, daemon=True, name=f"ssh {host.name}")

    def open(self) -> None:
        """Connect for the first time; raises :class:`MachineError` with the last message of ssh if that fails."""
        self._process = self._start()
        deadline = time.monotonic() + FIRST_CONNECTION
        while not self.socket.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                message_lines = self._errors.read_text(errors="replace").strip().splitlines()[-1:] or ["no message"]
                message = (
                    f"The host {self._host.name} cannot be reached over ssh: {message_lines[0]}\n"
                    "Log in there by hand once, with the same user and keys, and fix what ssh reports."
                )
                raise MachineError(message)
            time.sleep(0.02)
        self._keeper.start()

    def close(self) -> None:
        """Close the tunnel."""
        self._closed.set()
        if self._process is not None:
            _end(self._process)
        if self._keeper.is_alive():
            self._keeper.join()

    def _keep(self) -> None:
        pause = SHORTEST_PAUSE
        assert self._process is not None
        while True:
            begin = time.monotonic()
            self._process.wait()
            if self._closed.wait(pause):
                return
            pause = SHORTEST_PAUSE if time.monotonic() - begin > LONGEST_PAUSE else min(2 * pause, LONGEST_PAUSE)
            self._process = self._start()
            if self._closed.is_set():
                _end(self._process)
                return

    def _start(self) -> subprocess.Popen[bytes]:
        with self._errors.open("wb") as errors:
            return subprocess.Popen(
                _command(self._host, self.socket),
                stdin=subprocess.PIPE,  # held open: the remote cat ends with this process, and so does ssh
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )


def _command(host: Host, socket: Path) -> list[str]:
    parts = urlsplit(host.daemon)
    assert parts.hostname is not None
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": "15",
        "ExitOnForwardFailure": "yes",
        "ServerAliveInterval": str(KEEPALIVE),
        "ServerAliveCountMax": "3",
        "StreamLocalBindUnlink": "yes",
        "ControlPath": "none",
    }
    return [
        "ssh",
        "-T",
        *(("-F", str(host.ssh_config)) if host.ssh_config else ()),
        *(word for name, value in options.items() for word in ("-o", f"{name}={value}")),
        *(("-p", str(parts.port)) if parts.port else ()),
        *(("-l", parts.username) if parts.username else ()),
        "-L",
        f"{socket}:{parts.path if len(parts.path) > 1 else REMOTE_SOCKET}",
        parts.hostname,
        "cat",
    ]


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    process.terminate()
    process.wait()


# ---- for other processes --------------------------------------------------------------------


def hosts_to_json(hosts: Sequence[Host]) -> str:
    """How ``hosts`` are reached, as one line of JSON."""
    return json.dumps([asdict(host) for host in hosts], default=str)


def hosts_from_json(text: str) -> tuple[Host, ...]:
    """The hosts that :func:`hosts_to_json` has written."""
    return tuple(_host(Host(**entry)) for entry in json.loads(text))


def _host(host: Host) -> Host:
    tls = Tls(**{name: Path(path) for name, path in host.tls.items()}) if isinstance(host.tls, dict) else None
    return replace(host, tls=tls, ssh_config=Path(host.ssh_config) if host.ssh_config else None)
