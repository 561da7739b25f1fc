"""The machine on which runs take place: what it is, and how busy it was."""

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from quicsat.execution.cpu_monitor import CpuMonitor
from quicsat.model.evidence import CROWDED, HostFacts

LOWEST = 19
"""Nice value of work that can wait (setpriority(2))."""
PRESSURE = Path("/proc/pressure/cpu")
"""Pressure stall information (Linux 4.20 and later, where it is switched on)."""
PROCESSORS = Path("/proc/cpuinfo")
NUMBERS = {"cpu family": "family", "model": "model", "stepping": "stepping"}
"""Lines of ``PROCESSORS``, and their names for a reader."""
DIGITS = 8
"""Of the digest of instruction sets."""


def watch(info: Mapping[str, Any], monitor: CpuMonitor) -> Callable[[], HostFacts]:
    """Start to observe the machine; the returned function gives the facts of the time since then.

    ``info``: what the Docker daemon reports about its host. Load and pressure are those of this machine.
    """
    load, begin, waited = os.getloadavg()[0], time.monotonic(), _cpu_wait()

    def facts() -> HostFacts:
        now, elapsed = _cpu_wait(), time.monotonic() - begin
        pressure = None if now is None or waited is None or elapsed <= 0 else min((now - waited) / elapsed, 1.0)
        return HostFacts(
            kernel=str(info["KernelVersion"]),
            architecture=str(info["Architecture"]),
            cpus=int(info["NCPU"]),
            memory=int(info["MemTotal"]),
            engine=str(info["ServerVersion"]),
            load_before=load,
            cpu_pressure=pressure,
            cpu_busy=monitor.since(begin),
            cpu_crowded=monitor.busy_share(begin, CROWDED),
            processor=processor(),
        )

    return facts


@cache
def processor() -> str:
    """Name of the first CPU and, in brackets, what decides which code libraries choose for it; empty if unknown.

    ``AMD EPYC (family 25, model 1, stepping 1, instruction sets 5f0e2a91)``: the last number is a digest of the names
    of all extensions that the kernel reports.
    """
    try:
        text = PROCESSORS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    first = {name.strip(): value.strip() for name, _, value in lines}
    details = [f"{what} {first[name]}" for name, what in NUMBERS.items() if name in first]
    if extensions := first.get("flags") or first.get("Features"):
        digest = hashlib.sha256(" ".join(sorted(extensions.split())).encode()).hexdigest()
        details.append(f"instruction sets {digest[:DIGITS]}")
    brackets = f"({', '.join(details)})" if details else ""
    return f"{first.get('model name', '')} {brackets}".strip()


@contextmanager
def yielding() -> Iterator[None]:
    """Run this thread at the lowest priority in the block, so that it does not disturb runs under way.

    It does nothing without the right to restore the priority afterwards (which root has).
    """
    thread = threading.get_native_id()
    before = os.getpriority(os.PRIO_PROCESS, thread)
    allowed = os.geteuid() == 0
    try:
        if allowed:
            os.setpriority(os.PRIO_PROCESS, thread, LOWEST)
        yield
    finally:
        if allowed:
            os.setpriority(os.PRIO_PROCESS, thread, before)


def _cpu_wait() -> float | None:
    """Seconds since boot in which at least one task waited for a CPU; None if unknown."""
    try:
        found = re.search(r"^some .*total=(\d+)", PRESSURE.read_text(encoding="ascii"))
    except OSError:
        return None
    return int(found[1]) / 1e6 if found else None
