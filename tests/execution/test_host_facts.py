"""Facts about the machine, and how busy it was while a run took place."""

import os
import re
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from quicsat.execution import host_facts
from quicsat.execution.cpu_monitor import CpuMonitor

INFO = {"KernelVersion": "6.1", "Architecture": "x86_64", "NCPU": 2, "MemTotal": 1024, "ServerVersion": "20.10"}


def test_facts_are_those_of_the_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the daemon says of its host; no pressure where the kernel does not tell it."""
    monkeypatch.setattr(host_facts, "PRESSURE", tmp_path / "missing")
    facts = host_facts.watch(INFO, CpuMonitor())()
    assert (facts.kernel, facts.architecture, facts.cpus, facts.memory, facts.engine) == tuple(INFO.values())
    assert facts.cpu_pressure is None


def test_pressure_is_the_share_of_time_in_which_a_task_waited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The difference of the kernel's counter over the time between, never more than all of it."""
    pressure = tmp_path / "cpu"
    monkeypatch.setattr(host_facts, "PRESSURE", pressure)
    clock = iter([100.0, 104.0])
    monkeypatch.setattr(host_facts, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    pressure.write_text("some avg10=1.00 avg60=1.00 avg300=1.00 total=5000000\nfull avg10=0.00 total=0\n")
    facts = host_facts.watch(INFO, CpuMonitor())
    pressure.write_text("some avg10=1.00 avg60=1.00 avg300=1.00 total=6000000\nfull avg10=0.00 total=0\n")
    assert facts().cpu_pressure == pytest.approx(0.25)


def test_the_processor_has_a_name_or_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    monkeypatch.setattr(host_facts, "PROCESSORS", file)
    assert host_facts.processor.__wrapped__() == ""
    file.write_text("processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz \n\nprocessor\t: 1\nmodel name\t: another\n")
    assert host_facts.processor.__wrapped__() == "Some CPU @ 2.00GHz"


def test_the_processor_is_told_by_its_model_and_instruction_sets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "cpuinfo"
    monkeypatch.setattr(host_facts, "PROCESSORS", file)

    def with_flags(flags: str) -> str:
        numbers = "cpu family\t: 25\nmodel\t\t: 1\nmodel name\t: Some CPU\nstepping\t: 3\n"
        file.write_text(f"processor\t: 0\n{numbers}flags\t\t: {flags}\nbugs\t\t:\n\nprocessor\t: 1\n")
        return host_facts.processor.__wrapped__()

    assert re.fullmatch(
        r"Some CPU \(family 25, model 1, stepping 3, instruction sets [0-9a-f]{8}\)", with_flags("fpu sse avx2")
    )
    assert with_flags("fpu sse avx2") == with_flags("avx2 fpu sse") != with_flags("fpu sse avx2 avx512f")
    file.write_text("processor\t: 0\nFeatures\t: fp asimd\nCPU part\t: 0xd0c\n\n")
    assert re.fullmatch(r"\(instruction sets [0-9a-f]{8}\)", host_facts.processor.__wrapped__())


def test_work_that_can_wait_yields_and_the_thread_is_as_before() -> None:
    thread = threading.get_native_id()
    before = os.getpriority(os.PRIO_PROCESS, thread)
    with host_facts.yielding():
        assert os.getpriority(os.PRIO_PROCESS, thread) == (host_facts.LOWEST if os.geteuid() == 0 else before)
    assert os.getpriority(os.PRIO_PROCESS, thread) == before
