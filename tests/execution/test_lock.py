"""The lock: one campaign per daemon, and whoever comes second learns who was first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interop.errors import LockedError, MachineError
from interop.execution.lock import exclusive, lock_path

ROOT = Path(__file__).resolve().parents[2]
HOLDER = """
import sys
from interop.execution import lock
lock.FOLDERS = (sys.argv[1],)
from interop.execution.lock import exclusive
with exclusive("A:B", "campaign 1"):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("interop.execution.lock.FOLDERS", (str(tmp_path),))
    return tmp_path


def test_the_second_is_told_who_is_first(folder: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(LockedError, match=f"process {holder.pid} on .*, campaign 1"), exclusive("A:B", "mine"):
            pass
        with exclusive("other daemon", "mine"):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with exclusive("A:B", "mine"):  # the kernel let go of it
            pass


def test_the_lock_can_be_taken_again() -> None:
    for purpose in ("a much longer purpose than the next one", "short"):
        told = pytest.raises(LockedError, match=f"process {os.getpid()} .*, {purpose}\\.")
        with exclusive("d", purpose), told, exclusive("d", "x"):
            pass


def test_a_holder_that_wrote_nonsense_is_still_a_holder() -> None:
    with exclusive("d", "x"):
        lock_path("d").write_text("[]")
        with pytest.raises(LockedError, match="an unknown process"), exclusive("d", "x"):
            pass


def test_an_odd_identity_stays_in_its_folder(folder: Path) -> None:
    assert lock_path("../../etc/passwd").parent == folder


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_lock_that_is_not_a_file_of_ours(kind: str, folder: Path) -> None:
    path = lock_path("d")
    if kind == "link":
        path.symlink_to(folder / "elsewhere")
    else:
        path.mkdir()
    with pytest.raises(MachineError, match="cannot be opened"), exclusive("d", "x"):
        pass
    assert not (folder / "elsewhere").exists()
