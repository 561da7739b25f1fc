"""What programs in the guest see of its CPU and memory: number of CPUs, costs, the counter of RDTSC, the layout."""

from __future__ import annotations

import base64
import itertools
import struct
from collections.abc import Sequence
from typing import Any

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


def test_a_program_takes_the_time_that_it_costs(machines: Machines) -> None:
    """Simulated milliseconds of a small program, which has dozens to hundreds of system calls."""
    script = "begin=$(date +%s%N); true; env true; echo $(($(date +%s%N) - begin))"
    free, dear = (
        int(machines.boot(script, patience=PATIENCE, parameters=parameters).said.split()[0]) / 1e6
        for parameters in ((), ("um_syscall_cost=100000",))
    )
    assert free < 5 < dear < 500


RECEIVE = (
    "perl -MSocket=:all -e 'sub now { syscall(228, 1, $time = pack q(qq)); ($s, $ns) = unpack q(qq), $time; "
    "$s * 1e9 + $ns } socket(S, PF_INET6, SOCK_DGRAM, 0); bind(S, pack_sockaddr_in6(4433, IN6ADDR_ANY)); "
    "$started = now(); "
    "for (@ARGV) { ($begin, $more, $version) = split /:/; socket(C, $version ? PF_INET : PF_INET6, SOCK_DGRAM, 0); "
    "$to = $version ? sockaddr_in(4433, INADDR_LOOPBACK) : pack_sockaddr_in6(4433, IN6ADDR_LOOPBACK); "
    'send(C, pack("H*", $begin) . "x" x $more, 0, $to); recv(S, $read, 2000, 0) } print now() - $started, "\\n"\' '
)
"""Receives datagrams that begin with BEGIN and have MORE further bytes: BEGIN:MORE for IPv6, BEGIN:MORE:4 for IPv4.

Prints the nanoseconds that this takes, without those of the start and the end of the process.
"""
INITIAL = "c000000001:1195"


def milliseconds(machines: Machines, programs: Sequence[str], **options: Any) -> list[float]:
    """Simulated time that each program prints in nanoseconds."""
    said = machines.boot("; ".join(programs), patience=PATIENCE, **options).said.split()
    assert len(said) == len(programs), said
    return [int(time) / 1e6 for time in said]


def test_the_first_initial_packet_of_a_process_takes_longer(machines: Machines) -> None:
    version_2, smallest = "d06b3343cf:1195", "c000000001:195"
    handshakes = [INITIAL, f"{INITIAL}:4", f"{INITIAL} {INITIAL}", version_2, smallest]
    unknown_version, retry_of_version_2, acknowledgement = "c01a2a3a4a:1195", "c06b3343cf:1195", "c000000001:194"
    zero_rtt, handshake, one_rtt, no_quic = "d000000001:1195", "e000000001:1195", "40:999", "8000000001:1195"
    others = [unknown_version, retry_of_version_2, acknowledgement, zero_rtt, handshake, one_rtt, no_quic]
    programs = [RECEIVE + datagrams for datagrams in (*handshakes, *others)]
    times = milliseconds(machines, programs, parameters=("um_handshake_cost=50000000",))
    assert all(50 <= time < 55 for time in times[: len(handshakes)]), times
    assert max(times[len(handshakes) :]) < 5, times


def test_a_handshake_takes_at_least_as_long_as_30_system_calls_of_the_program(machines: Machines) -> None:
    programs = [RECEIVE + datagrams for datagrams in ("40:1199", "40:1199", INITIAL)]
    _, free, paid = milliseconds(machines, programs, parameters=("um_handshake_cost=1000",), system_call=1_000_000)
    assert 30 <= paid - free < 30.1
    _, free, paid = milliseconds(machines, programs)
    assert abs(paid - free) < 0.1


def test_page_faults_take_no_time(machines: Machines) -> None:
    """To the nanosecond. A processor for which libraries select other code has other page faults."""
    touch = "perl -e '$text = \"x\" x (64 << 20); vec($text, $_ * 4096, 8) = 1 for 1..{}; fork || exit; wait'"
    timed = f"begin=$(date +%s%N); {touch}; echo $(($(date +%s%N) - begin))"
    *_, one, many = milliseconds(machines, [timed.replace("{}", str(pages)) for pages in (1, 1, 1, 1, 9000)])
    assert one == many


def test_the_processor_is_not_described(machines: Machines) -> None:
    said = machines.boot("cat /proc/cpuinfo", patience=PATIENCE).said
    assert "User Mode Linux" in said
    assert not [line for line in said.splitlines() if line.startswith(("host", "flags", "bogomips"))]


def test_searches_for_libraries_of_the_processor_take_no_time(machines: Machines) -> None:
    """The dynamic linker makes more of them on newer processors."""
    script = "begin=$(date +%s%N); perl -e 'for (1..500) { open F, q(/lib/DIR/x) }'; echo $(($(date +%s%N) - begin))"
    taken = {}
    for directory in ("glibc-hwcaps/x86-64-v4", "tls/haswell/avx512_1", "glibc"):
        said = machines.boot(
            script.replace("DIR", directory), patience=PATIENCE, parameters=("um_syscall_cost=20000",)
        ).said
        taken[directory] = int(said.split()[0]) / 1e6
    assert taken["glibc"] > 10 + max(taken["glibc-hwcaps/x86-64-v4"], taken["tls/haswell/avx512_1"])


def test_disks_have_no_statistics(machines: Machines) -> None:
    """They read the clock for each request, and there are more requests if a processor needs other pages."""
    said = machines.boot("cat /proc/diskstats", patience=PATIENCE).said
    disks = [line.split() for line in said.splitlines() if "ubd" in line]
    assert disks
    assert {number for words in disks for number in words[3:]} == {"0"}


def test_a_program_and_its_children_have_a_cost_of_their_own(machines: Machines) -> None:
    """Instead of that of the machine, 20 µs, and they cannot change it."""
    script = (
        "begin=$(date +%s%N); perl -e 'getppid for 1..1000'; echo $(($(date +%s%N) - begin)); "
        "perl -e 'print syscall(158, 0x7001, 1), qq(\\n)'"
    )
    times, changed = [], []
    kinds: tuple[dict[str, Any], ...] = ({"system_call": 1000}, {}, {"system_call": 200_000})
    for own in kinds:
        said = machines.boot(script, patience=PATIENCE, parameters=("um_syscall_cost=20000",), **own).said.split()
        times.append(int(said[0]) / 1e6)
        changed.append(said[1])
    assert times[0] < 10 < 20 < times[1] < 100 < 200 < times[2]
    assert changed == ["-1", "-1", "-1"]


def test_all_costs_of_a_program_are_scaled(machines: Machines) -> None:
    """Those of system calls, of readings of the clock and of a handshake; it cannot change the scale."""
    calls, readings = "getppid for 1..1000", "syscall(228, 1, $time) for 1..1000"
    timed = ("begin=$(date +%s%N); perl -e '$time = pack q(qq), 0, 0; {}'; echo $(($(date +%s%N) - begin))").format
    programs = [timed("1"), timed(calls), timed(readings), RECEIVE + "40:1199", RECEIVE + INITIAL]
    parameters = ("um_syscall_cost=20000", "um_clock_cost=30000", "um_handshake_cost=50000000")
    found = []
    for scale in (1_000_000, 1_500_000):
        none, called, read, free, paid = milliseconds(machines, programs, parameters=parameters, cost_scale=scale)
        found.append((called - none, read - none, paid - free))
    assert found[0] == pytest.approx((20, 30, 50), rel=0.05)
    assert found[1] == pytest.approx((30, 45, 75), rel=0.05)
    change = "perl -e '$all = pack q(QQL127), 1, 1; print syscall(158, 0x7002, $all), qq(\\n)'"
    assert machines.boot(change, patience=PATIENCE).said.split() == ["-1"]


LATE = 500_000
"""Nanoseconds."""
WAIT = (
    "perl -e 'sub now { syscall(228, 1, $t = pack q(qq), 0, 0); ($s, $n) = unpack q(qq), $t; $s * 1e9 + $n } "
    "$begin = now(); {} for 1..100; print now() - $begin, qq(\\n)'"
).replace
"""Prints the nanoseconds that something takes a hundred times."""


def test_a_program_that_has_waited_is_late(machines: Machines) -> None:
    """One that has not waited is not; a child has random numbers of its own; the same seed gives the same times."""
    programs = [WAIT("{}", "select undef, undef, undef, 0.001"), WAIT("{}", "getppid")]
    slept, called = milliseconds(machines, programs)
    late, busy = milliseconds(machines, programs, wake_ups=" ".join(["7", *[str(LATE)] * 127]))
    assert late - slept == pytest.approx(100 * LATE / 1e6, abs=1)
    assert busy == pytest.approx(called, abs=0.1)
    first, again, other = (
        milliseconds(machines, [programs[0]] * 2, wake_ups=" ".join([seed, *map(str, range(1000, 128_000, 1000))]))
        for seed in ("7", "7", "8")
    )
    assert first == again != other
    assert first[0] != first[1]
    assert all(100 < time < 100 + 100 * 0.127 + 5 for time in first)


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
