"""Docker daemons of other machines: by a socket of our own that ssh forwards, and mends when the connection breaks.

A tunnel per host and not the library's own ssh: that one logs in for every request, knows no keep-alive, and never
connects again once its transport is dead (docker/docker-py#2248, #2966, #3218).
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

from interop.errors import MachineError
from interop.execution.daemon import Daemon
from interop.model import Host, Tls

REMOTE_SOCKET = "/var/run/docker.sock"
KEEPALIVE = 5
"""Seconds between two signs of life; after three without an answer the connection counts as broken."""
FIRST_CONNECTION = 30.0
"""Seconds for the first log-in."""
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
    """A local socket behind which the host's daemon answers as long as ssh gets through."""
    with tempfile.TemporaryDirectory(prefix="quicsat-ssh-") as folder:
        tunnel = _Tunnel(host, Path(folder, "docker.sock"), Path(folder, "said"))
        try:
            tunnel.open()
            yield tunnel.socket
        finally:
            tunnel.close()


class _Tunnel:
    """An ssh process that is started again whenever it ends."""

    def __init__(self, host: Host, socket: Path, said: Path) -> None:
        self.socket = socket
        self._host = host
        self._said = said
        self._closed = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper = threading.Thread(target=self._keep, daemon=True, name=f"ssh {host.name}")

    def open(self) -> None:
        """Connect for the first time; raises :class:`MachineError` with ssh's last words if that fails."""
        self._process = self._start()
        deadline = time.monotonic() + FIRST_CONNECTION
        while not self.socket.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                words = self._said.read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
                message = (
                    f"The host {self._host.name} cannot be reached over ssh: {words[0]}\n"
                    "Log in there by hand once, with the same user and keys, and mend what ssh complains about."
                )
                raise MachineError(message)
            time.sleep(0.02)
        self._keeper.start()

    def close(self) -> None:
        """End it."""
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
        with self._said.open("wb") as said:
            return subprocess.Popen(
                _command(self._host, self.socket),
                stdin=subprocess.PIPE,  # held open: when we die, however that is, the other end's cat ends, and so ssh
                stdout=subprocess.DEVNULL,
                stderr=said,
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


# ---- to another process of ours -------------------------------------------------------------


def in_words(hosts: Sequence[Host]) -> str:
    """How hosts are reached, as one line of text."""
    return json.dumps([asdict(host) for host in hosts], default=str)


def from_words(text: str) -> tuple[Host, ...]:
    """What :func:`in_words` has written."""
    return tuple(_host(Host(**entry)) for entry in json.loads(text))


def _host(host: Host) -> Host:
    tls = Tls(**{name: Path(path) for name, path in host.tls.items()}) if isinstance(host.tls, dict) else None
    return replace(host, tls=tls, ssh_config=Path(host.ssh_config) if host.ssh_config else None)
