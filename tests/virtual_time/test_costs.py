"""What programs in the guest see of its CPU and memory: number of CPUs, costs, the counter of RDTSC, the layout."""

from __future__ import annotations

import base64
import itertools
import struct

import pytest

from tests.virtual_time.machine import Machines

PATIENCE = 60
READINGS = 64
CODE = bytes.fromhex(
    "4881ec00020000" "bb40000000"  # room for 64 readings; ebx = 64
    "0f31" "48c1e220" "4809d0" "488944dcf8" "ffcb" "75ee"  # rdtsc; store it; 64 times, from the last place on
    "b801000000" "bf01000000" "4889e6" "ba00020000" "0f05"  # write(1, readings, 512)
    "b83c000000" "31ff" "0f05"  # exit(0)
)  # fmt: skip


def program(code: bytes) -> bytes:
    """A static x86-64 executable of nothing but ``code``."""
    address, headers = 0x400000, 64 + 56
    size = headers + len(code)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    file = struct.pack("<16sHHIQQQIHHHHHH", ident, 2, 62, 1, address + headers, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, address, address, size, size, 4096)
    return file + segment + code


def test_programs_see_as_many_cpus_as_asked_for(machines: Machines) -> None:
    script = "nproc; cat /sys/devices/system/cpu/online; taskset -c 1 echo chosen; taskset -c 2 echo wrong"
    ended = machines.boot(script, patience=PATIENCE, parameters=("um_cpus=2",))
    said = [line.strip() for line in ended.said.splitlines()]
    assert said[:3] == ["2", "0-1", "chosen"]
    assert "wrong" not in said


def test_rdtsc_goes_on_in_unequal_steps(machines: Machines) -> None:
    """aws-lc takes random numbers from the steps, and aborts if they are alike."""
    binary = base64.b64encode(program(CODE)).decode()
    script = f"cd /logs; echo {binary} | base64 -d >program; chmod +x program; ./program >readings"
    ended = machines.boot(script, patience=PATIENCE)
    readings = struct.unpack(f"<{READINGS}Q", ended.files["client/logs/readings"])[::-1]
    steps = [after - before for before, after in itertools.pairwise(readings)]
    assert min(steps) > 0
    assert len(set(steps)) > READINGS / 4


@pytest.mark.parametrize(("name", "low", "high"), [("um_file_fault_cost", 5, 500), ("um_syscall_cost", 5, 500)])
def test_a_program_takes_the_time_that_it_costs(machines: Machines, name: str, low: int, high: int) -> None:
    """Simulated milliseconds of a small program; it has dozens to hundreds of page faults, and of system calls."""
    script = "begin=$(date +%s%N); true; env true; echo $(($(date +%s%N) - begin))"
    free, dear = (
        int(machines.boot(script, patience=PATIENCE, parameters=parameters).said.split()[0]) / 1e6
        for parameters in ((), (f"{name}=100000",))
    )
    assert free < low < dear < high


def test_a_program_and_its_children_have_a_cost_of_their_own(machines: Machines) -> None:
    """Instead of that of the machine, 20 µs, and they cannot change it."""
    script = (
        "begin=$(date +%s%N); perl -e 'getppid for 1..1000'; echo $(($(date +%s%N) - begin)); "
        "perl -e 'print syscall(158, 0x7001, 1), qq(\\n)'"
    )
    times, changed = [], []
    for cost in (1000, None, 200_000):
        said = machines.boot(script, patience=PATIENCE, parameters=("um_syscall_cost=20000",), cost=cost).said.split()
        times.append(int(said[0]) / 1e6)
        changed.append(said[1])
    assert times[0] < 10 < 20 < times[1] < 100 < 200 < times[2]
    assert changed == ["-1", "0", "-1"]


def test_the_layout_of_memory_is_the_same_each_time(machines: Machines) -> None:
    """The host puts the kernel's own heap at random; what depends on addresses must not change with it."""
    script = "grep -E 'start_pfn|spanned|present|managed' /proc/zoneinfo"
    said = [machines.boot(script, patience=PATIENCE).said for _ in range(3)]
    assert "spanned" in said[0]
    assert said[0] == said[1] == said[2]


def test_a_reading_of_the_clock_includes_its_cost(machines: Machines) -> None:
    """Without a system call in between; and the clock never runs back."""
    script = "for i in {1..200}; do times+=(${EPOCHREALTIME/./}); done; echo ${times[*]}"
    said = machines.boot(script, patience=PATIENCE, parameters=("um_clock_cost=3000",)).said
    steps = [after - before for before, after in itertools.pairwise(map(int, said.split()))]
    assert len(steps) == 199
    assert min(steps) >= 3
