"""Connections to Docker daemons; to those over ssh, one tunnel per host to a local socket, restarted when it breaks.

The library's own ssh transport is not used: it logs in for every request, has no keep-alive, and never
reconnects (docker/docker-py#2248, #2966, #3218).
"""

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from quicsat.docker.client import Daemon
from quicsat.model.errors import MachineError
from quicsat.model.real_link import Host
from quicsat.model.text import printable
from quicsat.model.whole_file import scratch_directory

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
    if not host.daemon.startswith("ssh://"):
        yield Daemon(host.daemon, campaign, host.tls, host=host.name, named_by=host.named_by)
        return
    with scratch_directory() as folder, closing(_Tunnel(host, folder / "docker.sock", folder / "stderr")) as tunnel:
        tunnel.open()
        try:
            daemon = Daemon(f"unix://{tunnel.socket}", campaign, host=host.name, named_by=host.named_by)
        except MachineError as error:  # over a tunnel, only ssh knows why
            said = tunnel.last_message()
            hint = f"The address leads to {_remote_socket(host)} there; another path can be added to it."
            raise MachineError(f"{error}\n{f'ssh reports: {said}. ' if said else ''}{hint}") from error
        yield daemon


# ---- the tunnel -----------------------------------------------------------------------------


class _Tunnel:
    """An ssh process that forwards a local socket to the host's daemon, started again whenever it ends."""

    def __init__(self, host: Host, socket: Path, errors: Path) -> None:
        self.socket = socket
        self._host = host
        self._errors = errors
        self._closed = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper = threading.Thread(target=self._keep, daemon=True, name=f"ssh {host.name}")

    def open(self) -> None:
        """Connect for the first time; raises :class:`MachineError` with the last message of ssh if that fails."""
        if shutil.which("ssh") is None:
            message = f"The host {self._host.name} is reached over ssh, which is missing here: install openssh-client."
            raise MachineError(message)
        self._process = self._start()
        deadline = time.monotonic() + FIRST_CONNECTION
        while not self.socket.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                message = (
                    f"The host {self._host.name} cannot be reached over ssh: {self.last_message() or 'no message'}\n"
                    f"Log in there by hand once, with the same user and keys, fix what ssh reports, and look at "
                    f"{self._host.named_by} ({self._host.daemon})."
                )
                raise MachineError(message)
            time.sleep(0.02)
        self._keeper.start()

    def last_message(self) -> str:
        """The last line that ssh has printed; empty if there is none."""
        lines = self._errors.read_text(errors="replace").strip().splitlines()
        return printable(lines[-1]) if lines else ""

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
        "ForwardAgent": "no",
        "ForwardX11": "no",
        "PermitLocalCommand": "no",
        "RemoteCommand": "none",
        "Tunnel": "no",
    }
    return [
        "ssh",
        "-T",
        *(("-F", str(host.ssh_config)) if host.ssh_config else ()),
        *(word for name, value in options.items() for word in ("-o", f"{name}={value}")),
        *(("-p", str(parts.port)) if parts.port else ()),
        *(("-l", parts.username) if parts.username else ()),
        "-L",
        f"{socket}:{_remote_socket(host)}",
        parts.hostname,
        "cat",
    ]


def _remote_socket(host: Host) -> str:
    path = urlsplit(host.daemon).path
    return path if len(path) > 1 else REMOTE_SOCKET


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    process.terminate()
    process.wait()
