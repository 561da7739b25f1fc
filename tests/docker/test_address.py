"""The address of a daemon that nobody has chosen: the first socket at which one listens."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from quicsat.docker import address
from quicsat.docker.address import default_daemon


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for /var/run and for the runtime directory of an ordinary user."""
    monkeypatch.setattr(address, "SYSTEM", str(tmp_path / "system.sock"))
    user = os.getuid() or 54321
    monkeypatch.setattr(os, "getuid", lambda: user)
    return tmp_path


@pytest.fixture
def listen(folder: Path) -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def raise_daemon(stack: ExitStack, path: Path) -> socket.socket:
    path.parent.mkdir(parents=True, exist_ok=True)
    daemon = stack.enter_context(socket.socket(socket.AF_UNIX))
    daemon.bind(str(path))
    daemon.listen(0)
    return daemon


def found(folder: Path) -> str:
    host = default_daemon({"XDG_RUNTIME_DIR": str(folder / "run"), "DOCKER_CONFIG": str(folder)})
    return host.daemon.removeprefix(f"unix://{folder}/")


def test_daemons_in_their_order(folder: Path, listen: ExitStack) -> None:
    assert found(folder) == "system.sock"
    for name in ("run/podman/podman.sock", "run/docker.sock", "system.sock"):
        raise_daemon(listen, folder / name)
        assert found(folder) == name


def test_a_socket_at_which_nobody_listens_any_more(folder: Path, listen: ExitStack) -> None:
    raise_daemon(listen, folder / "run/podman/podman.sock")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder / "system.sock"))
    assert found(folder) == "run/podman/podman.sock"


def test_a_busy_daemon_is_not_passed_over(folder: Path, listen: ExitStack) -> None:
    raise_daemon(listen, folder / "run/podman/podman.sock")
    raise_daemon(listen, folder / "system.sock")
    waiting = []
    for _ in range(8):  # until its queue is full
        client = listen.enter_context(socket.socket(socket.AF_UNIX))
        client.setblocking(False)
        waiting.append(client.connect_ex(str(folder / "system.sock")))
    assert any(waiting)
    assert found(folder) == "system.sock"


def test_a_socket_of_somebody_else(folder: Path, listen: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    raise_daemon(listen, folder / "run/docker.sock")
    assert found(folder) == "run/docker.sock"
    stranger = os.stat_result((0o140600, 1, 1, 1, 4242, 0, 0, 0, 0, 0))
    monkeypatch.setattr(Path, "stat", lambda _path: stranger)
    assert found(folder) == "system.sock"


def test_where_podman_listens() -> None:
    assert address._sockets("/run/user/7", 0) == ("/run/podman/podman.sock",)
    assert address._sockets("/run/user/7", 7)[1:] == (
        "/run/user/7/podman/podman.sock", "/tmp/podman-run-7/podman/podman.sock",
    )  # fmt: skip
