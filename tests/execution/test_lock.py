"""The lock: one campaign per daemon, and whoever comes second learns who was first."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quicsat.execution.lock import early, exclusive, lock_path
from quicsat.model.errors import LockedError, MachineError

ROOT = Path(__file__).resolve().parents[2]
HOLDER = """
import sys
import threading
from quicsat.execution import lock
lock.FOLDERS = (sys.argv[1],)
from quicsat.execution.lock import exclusive
with exclusive("A:B", "campaign 1"):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("quicsat.execution.lock.FOLDERS", (str(tmp_path),))
    tmp_path.chmod(0o1777)
    return tmp_path


def assert_held(holder: str, daemon: str = "d") -> None:
    """The lock of ``daemon`` cannot be had, and its holder is told."""
    with pytest.raises(LockedError, match=holder), exclusive(daemon, "x"):
        pass


def test_the_second_is_told_who_is_first(folder: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "locked\n"
        assert_held(f"process {holder.pid} on .*, campaign 1", "A:B")
        with exclusive("other daemon", "mine"):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with exclusive("A:B", "mine"):  # the kernel let go of it
            pass


def test_the_lock_can_be_taken_again() -> None:
    for purpose in ("a much longer purpose than the next one", "short"):
        with exclusive("d", purpose):
            assert_held(f"process {os.getpid()} .*, {purpose}\\.")


def test_an_odd_identity_stays_in_its_folder(folder: Path) -> None:
    assert lock_path("../../etc/passwd").parent == folder


@pytest.mark.parametrize("kind", ["link", "hard link", "folder", "pipe"])
def test_a_lock_that_is_not_a_file_of_ours(kind: str, folder: Path) -> None:
    path, elsewhere = lock_path("d"), folder / "elsewhere"
    elsewhere.write_text("kept")
    match kind:
        case "link":
            path.symlink_to(elsewhere)
        case "hard link":
            path.hardlink_to(elsewhere)
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
    with pytest.raises(MachineError, match="cannot be opened"), exclusive("d", "x"):
        pass
    assert elsewhere.read_text() == "kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs several users")
@pytest.mark.parametrize("mode", [0o666, 0o644])
@pytest.mark.parametrize(("first", "second"), [(0, 65534), (65534, 0), (65534, 65533)])
def test_users_share_a_lock(folder: Path, first: int, second: int, mode: int) -> None:
    """Also one that an earlier version made with the mode 0644."""
    for parent in (folder, *folder.parents):  # pytest makes them for one user
        parent.chmod(parent.stat().st_mode | stat.S_IXGRP | stat.S_IXOTH)
    with _as_user(first), exclusive("d", "the first"):
        lock_path("d").chmod(mode)
        with _as_user(second):
            assert_held(f"process {os.getpid()} ")
    with _as_user(second), exclusive("d", "the second"):
        pass


@contextmanager
def _as_user(number: int) -> Iterator[None]:
    before = os.geteuid()
    os.seteuid(0)
    os.seteuid(number)
    try:
        yield
    finally:
        os.seteuid(0)
        os.seteuid(before)


def test_only_a_folder_for_all_users_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = folder / "private"
    private.mkdir(mode=0o755)
    monkeypatch.setattr("quicsat.execution.lock.FOLDERS", (str(private), str(folder / "missing"), str(folder)))
    assert lock_path("d").parent == folder


def test_a_holder_that_wrote_nonsense_or_the_name_of_a_dead_one_is_still_a_holder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quicsat.execution.lock.INTRODUCTION", 0.1)
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    with exclusive("d", "x"):
        for content in ("[]", json.dumps({"pid": dead.pid, "host": socket.gethostname(), "purpose": "old"})):
            lock_path("d").write_text(content)
            assert_held("an unknown process")


def test_a_holder_is_given_time_to_write_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quicsat.execution.lock.INTRODUCTION", 60.0)
    with exclusive("d", "x"):
        content = lock_path("d").read_text()
        lock_path("d").write_text("")
        writer = threading.Timer(0.2, lock_path("d").write_text, (content,))
        writer.start()
        assert_held(f"process {os.getpid()} on")
        writer.join()


def test_an_address_of_the_daemon_is_locked_under_the_words_of_the_command() -> None:
    with early(["-t", "sat"], {"DOCKER_HOST": "unix:///x"}), early([], {"DOCKER_HOST": "unix:///y"}):
        with pytest.raises(LockedError, match=r", -t sat\."), early([], {"DOCKER_HOST": "unix:///x"}):
            pass
        with pytest.raises(LockedError, match=r", run\."), early([], {"DOCKER_HOST": "unix:///y"}):
            pass
    long, daemon = ["-s", *(f"server-{number}" for number in range(100))], {"DOCKER_HOST": "unix:///x"}
    with early(long, daemon), pytest.raises(LockedError, match=r", -s server-0 .* server-\d+ …\."), early([], daemon):
        pass


def test_who_comes_second_is_told_so_before_anything_large_is_loaded(folder: Path) -> None:
    script = (
        "import sys; from quicsat.execution import lock; lock.FOLDERS = (sys.argv.pop(),)\n"
        "import run; status = run.start()\n"
        "assert not {'docker', 'numpy', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(status)"
    )
    with exclusive("unix:///x", "the first"):
        command = [sys.executable, "-c", script, "-t", "sat", str(folder)]
        done = subprocess.run(
            command, cwd=ROOT, env={"DOCKER_HOST": "unix:///x"}, capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stdout) == (75, "")
    assert f"process {os.getpid()} on" in done.stderr
