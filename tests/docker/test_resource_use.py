"""CPU time and memory of containers: files of both versions of control groups, and a group that goes away."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, NoReturn

import pytest

from quicsat.docker import resource_use
from quicsat.docker.resource_use import ControlGroup, ResourceMonitor, control_group
from quicsat.model.evidence import ResourceUse
from tests.waiting import until

IDENTITY = "ab12"
FIRST = f"4:memory:/docker/{IDENTITY}\n3:cpuset:/\n2:cpu,cpuacct:/docker/{IDENTITY}\n0::/\n"
SECOND = f"0::/system.slice/docker-{IDENTITY}.scope\n"


def refuse(threads: Callable[[], list[int]]) -> NoReturn:
    raise PermissionError


class Counter:
    """Counts as many system calls as the sum of the threads' ids."""

    made: ClassVar[list[Counter]] = []

    def __init__(self, threads: Callable[[], list[int]]) -> None:
        self.made.append(self)
        self.counts = {"system_calls": sum(threads()), "sends": 4, "receives": 2, "waits": 1}
        self.open = True

    def close(self) -> None:
        self.open = False


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(resource_use, "SystemCallCounter", refuse)
    monkeypatch.setattr(resource_use, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(resource_use, "PROCESSES", tmp_path / "proc")
    (tmp_path / "proc/7").mkdir(parents=True)
    return tmp_path


def first(place: Path, user: int = 2_500_000_000, memory: int = 4096) -> None:
    """Files of version 1."""
    (place / "proc/7/cgroup").write_text(FIRST)
    cpu, group = (place / f"groups/{name}/docker/{IDENTITY}" for name in ("cpuacct", "memory"))
    cpu.mkdir(parents=True, exist_ok=True)
    group.mkdir(parents=True, exist_ok=True)
    (cpu / "cpuacct.usage").write_text(f"{user + 500_000_000}\n")
    (cpu / "cpuacct.usage_user").write_text(f"{user}\n")
    (cpu / "cpuacct.usage_sys").write_text("500000000\n")
    (cpu / "tasks").write_text("7\n9\n")
    (group / "memory.stat").write_text(f"cache 9999\nrss 1\ntotal_cache 9999\ntotal_rss {memory}\n")


def second(place: Path) -> None:
    """Files of version 2."""
    (place / "proc/7/cgroup").write_text(SECOND)
    own = place / f"groups/system.slice/docker-{IDENTITY}.scope"
    own.mkdir(parents=True)
    (own / "cpu.stat").write_text("usage_usec 3000000\nuser_usec 2500000\nsystem_usec 500000\n")
    (own / "cgroup.threads").write_text("7\n")
    (own / "memory.stat").write_text("anon 4096\nfile 9999\n")


@pytest.mark.parametrize(("write", "threads"), [(first, [7, 9]), (second, [7])])
def test_both_versions(place: Path, write: Callable[[Path], None], threads: list[int]) -> None:
    write(place)
    group = control_group(7, IDENTITY)
    assert group.threads() == threads
    assert group.read() == ResourceUse(2.5, 0.5, 4096)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("kills", "limit_reached", "starved"), [(0, 0, False), (1, 3, False), (1, 0, True)])
def test_whose_memory_it_was_that_ran_out(
    place: Path, version: int, kills: int, limit_reached: int, starved: bool
) -> None:
    """The kernel counts for which group it looked for memory, and of which group it ended a process."""
    own = place / "own"
    own.mkdir()
    (own / "memory.events").write_text(f"low 0\nhigh 0\nmax 9\noom {limit_reached}\noom_kill {kills}\n")
    (own / "memory.oom_control").write_text(f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n")
    (own / "memory.limit_in_bytes").write_text("100663296\n")
    (own / "memory.max_usage_in_bytes").write_text("100622336\n" if limit_reached else "90000000\n")
    assert ControlGroup(own if version == 2 else place, own).starved() is starved


@pytest.mark.parametrize(
    ("used", "user", "system", "wanted"),
    [(800, 300, 100, (600, 200)), (800, 0, 400, (0, 800)), (800, 0, 0, (800, 0)), (0, 0, 0, (0, 0))],
)
def test_ticks_only_divide_the_cpu_time_of_version_1(
    place: Path, used: int, user: int, system: int, wanted: tuple[int, int]
) -> None:
    first(place)
    for name, value in zip(resource_use.TIMES, (used, user, system), strict=True):
        (place / f"groups/cpuacct/docker/{IDENTITY}/cpuacct.{name}").write_text(f"{value * 10**6}\n")
    group = control_group(7, IDENTITY)
    use = group.read()
    assert (use.cpu_user, use.cpu_system) == pytest.approx((wanted[0] / 1e3, wanted[1] / 1e3))


def test_a_container_of_another_machine_is_not_watched(place: Path) -> None:
    (place / "proc/7/cgroup").write_text(FIRST)
    assert control_group(7, "cd34") is None
    assert control_group(8, IDENTITY) is None
    monitor = ResourceMonitor()
    monitor.add("client", 7, "cd34")
    with monitor.watching():
        time.sleep(2 * resource_use.PERIOD)
    assert monitor.use == {}


def assert_use(monitor: ResourceMonitor, wanted: ResourceUse) -> None:
    assert until(lambda: monitor.use == {"client": wanted}), monitor.use


def test_the_largest_memory_and_the_last_cpu_time_stay_when_a_container_ends(place: Path) -> None:
    first(place)
    monitor = ResourceMonitor()
    with monitor.watching():
        monitor.add("client", 7, IDENTITY)
        assert_use(monitor, ResourceUse(2.5, 0.5, 4096))
        first(place, 3_000_000_000, 1024)
        assert_use(monitor, ResourceUse(3.0, 0.5, 4096))
        shutil.rmtree(place / "groups")
        time.sleep(3 * resource_use.PERIOD)
    assert monitor.use == {"client": ResourceUse(3.0, 0.5, 4096)}


def test_system_calls_of_the_threads_that_the_container_began_with(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first(place)
    monkeypatch.setattr(resource_use, "SystemCallCounter", Counter)
    monitor = ResourceMonitor()
    with monitor.watching():
        monitor.add("client", 7, IDENTITY)
        assert_use(monitor, ResourceUse(2.5, 0.5, 4096))
    assert monitor.use == {"client": ResourceUse(2.5, 0.5, 4096, 16, 4, 2, 1)}
    assert [counter.open for counter in Counter.made] == [False]


def test_readings_become_rare_and_looks_at_memory_that_ran_out_do_not(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look costs a fifth of a reading, and a group whose process the kernel ended is gone within a moment."""
    first(place)
    memory = place / f"groups/memory/docker/{IDENTITY}"
    for name, value in {"limit": 100663296, "max_usage": 90000000}.items():
        (memory / f"memory.{name}_in_bytes").write_text(f"{value}\n")
    (memory / "memory.oom_control").write_text("oom_kill 0\n")
    monkeypatch.setattr(resource_use, "SHARE", 1000.0)
    monitor = ResourceMonitor()
    with monitor.watching():
        monitor.add("client", 7, IDENTITY)
        assert_use(monitor, ResourceUse(2.5, 0.5, 4096))
        time.sleep(3 * resource_use.PERIOD)  # at the first reading, no time had passed
        first(place, 3_000_000_000, 8192)
        (memory / "memory.oom_control").write_text("oom_kill 1\n")
        assert until(lambda: monitor.starved == ["client"])
    assert monitor.use == {"client": ResourceUse(2.5, 0.5, 4096)}


@pytest.mark.parametrize("write", [first, second])
def test_cpu_time_without_open_files(place: Path, write: Callable[[Path], None]) -> None:
    write(place)
    group = control_group(7, IDENTITY)
    assert group.cpu_seconds() == 3.0
    shutil.rmtree(place / "groups")
    with pytest.raises(OSError, match="No such file"):
        group.cpu_seconds()
