"""Bytes that a container has received, from the counters of its network namespace."""

from pathlib import Path

import pytest

from quicsat.docker import resource_use
from quicsat.docker.received_bytes import ReceivedBytes

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


def test_a_container_that_has_ended(process: Path) -> None:
    put(process, 1, 2, 3)
    received = ReceivedBytes(7, "ab12")
    (process / "net/dev").unlink()
    assert received.read() is None


def test_a_container_of_another_machine(process: Path) -> None:
    put(process, 1, 2, 3)
    assert ReceivedBytes(7, "cd34").read() is None
