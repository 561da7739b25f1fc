"""Whether a signal reaches the first process of a container, and the bytes that its network namespace received."""

import subprocess
import sys
from pathlib import Path
from signal import SIGTERM

import pytest

from quicsat.docker import first_process, resource_use
from quicsat.docker.first_process import ReceivedBytes, takes_signal


@pytest.mark.parametrize(
    ("preparation", "takes"),
    [
        ("pass", False),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", False),
        ("signal.signal(signal.SIGTERM, lambda *_: None)", True),
        ("signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])", True),
    ],
)
def test_a_signal_needs_a_handler(preparation: str, takes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_use, "control_group", lambda _pid, _identity: Path())
    script = f"import signal, sys; {preparation}; print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert takes_signal(process.pid, "container", SIGTERM) is takes
        process.communicate(b"")
    assert takes_signal(process.pid, "container", SIGTERM)  # it has ended


@pytest.mark.parametrize("seconds", [0.3, 60])
def test_what_starts_the_program_is_not_asked(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_use, "control_group", lambda _pid, _identity: Path())
    if seconds > 1:  # a program may have the same name
        monkeypatch.setattr(first_process, "PATIENCE", 0.5)
    script = f"""
import os, signal, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, lambda *_: None)
Path("/proc/self/comm").write_text("runc:[2:INIT]")
print(flush=True)
time.sleep({seconds})
os.execvp("cat", ["cat"])
"""
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert takes_signal(process.pid, "container", SIGTERM) is (seconds > 1)
        process.kill()


def test_a_process_elsewhere_may_take_it() -> None:
    assert takes_signal(1, "a container of another machine", SIGTERM)


HEAD = "Inter-|   Receive                            |  Transmit\n face |bytes    packets errs\n"


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of process 7 in the container ab12."""
    monkeypatch.setattr(resource_use, "PROCESSES", tmp_path)
    (tmp_path / "7/net").mkdir(parents=True)
    (tmp_path / "7/cgroup").write_text("0::/docker/ab12\n")
    return tmp_path / "7"


def put(process: Path, loopback: int, first: int, second: int) -> None:
    rows = (("lo", loopback), ("eth0", first), ("eth1", second))
    text = HEAD + "".join(f"{name:>6}: {count:7} 10 0 0 0 0 0 0 5555 10 0\n" for name, count in rows)
    (process / "net/dev").write_text(text)


def test_what_has_come_since_the_start(process: Path) -> None:
    put(process, 1000, 200, 30)
    received = ReceivedBytes(7, "ab12")
    assert received.read() == 0
    put(process, 9000, 700, 31)
    assert received.read() == 501
    (process / "net/dev").unlink()
    assert received.read() is None  # it has ended


def test_a_container_of_another_machine(process: Path) -> None:
    put(process, 1, 2, 3)
    assert ReceivedBytes(7, "cd34").read() is None
