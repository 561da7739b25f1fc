"""What programs in the guest see of its CPU and memory: number of CPUs, costs, the counter of RDTSC, the layout."""

import base64
import itertools
import struct
from collections.abc import Sequence
from typing import Any

import pytest

from tests.virtual_time.machine import COSTS, Machines

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
    free, dear = (milliseconds(machines, [script], costs=costs)[0] for costs in ({}, {"call": 100_000}))
    assert free < 5 < dear < 500


RECEIVE = (
    "perl -MSocket=:all -e 'sub now { syscall(228, $_[0], $time = pack q(qq)); ($s, $ns) = unpack q(qq), $time; "
    "$s * 1e9 + $ns } sub other { socket(C, $_[0] ? PF_INET : PF_INET6, SOCK_DGRAM, 0); "
    "$_[0] ? sockaddr_in(4433, INADDR_LOOPBACK) : pack_sockaddr_in6(4433, IN6ADDR_LOOPBACK) } "
    "($role, $then, @datagrams) = @ARGV; now(1); socket(S, PF_INET6, SOCK_DGRAM, 0); $read = q(x) x 9000; "
    "bind(S, pack_sockaddr_in6(4433, IN6ADDR_ANY)); setsockopt(S, 17, 104, pack(q(l), 1)); $to = other(0); "
    "if ($role eq q(client)) { send(C, pack(q(H*), q(c000000001)) . q(x) x 1195, 0, $to); recv(S, $read, 9000, 0) } "
    "for (@datagrams) { ($begin, $more, $version) = split /:/; $begun = now(1); "
    "if (!fork) { $to = other($version); setsockopt(C, 17, 103, pack(q(l), 1200)); "
    "send(C, pack(q(H*), $begin) . q(x) x $more, 0, $to); exit } wait; recv(S, $read, 9000, 0); "
    "getppid if $then eq q(calls); now(0) if $then eq q(reads); $first = now(1); $waited += $first - $begun; "
    "$computed += now(1) - $first } print 10 * int($waited / 5e7) + int($computed / 5e7), qq(\\n)' "
)
"""Receives datagrams that begin with BEGIN and have MORE further bytes: BEGIN:MORE for IPv6, BEGIN:MORE:4 for IPv4.

Its arguments are its role, what it does then ("calls" the kernel, "reads" another clock, or "nothing") before it
reads the clock twice, and the datagrams, which a child sends in segments of 1,200 bytes. It prints how often it pays
50 ms, half of a handshake: ten times the number of payments before the first readings, plus that of payments between
both.
"""
NEVER, BETWEEN, BEFORE = 0, 1, 20
INITIAL = "c000000001:1195"
HANDSHAKE = "e000000001"
BEHIND = f"c00000000108{'01' * 8}02030305{'04' * 5}4014{'05' * 20}"
"""An Initial packet with connection IDs, a token and 20 further bytes, for something to follow it."""


def payments(machines: Machines, programs: Sequence[str], **costs: int) -> list[int]:
    """What each program prints for its arguments."""
    return numbers(machines, [RECEIVE + each for each in programs], costs={"handshake": 100_000_000} | costs)


def milliseconds(machines: Machines, programs: Sequence[str], **options: Any) -> list[float]:
    """Simulated time that each program prints in nanoseconds."""
    return [number / 1e6 for number in numbers(machines, programs, **options)]


def numbers(machines: Machines, programs: Sequence[str], **options: Any) -> list[int]:
    """What each program prints, beside lines ``x``."""
    said = [
        word for word in machines.boot("; ".join(programs), patience=PATIENCE, **options).said.split() if word != "x"
    ]
    assert len(said) == len(programs), said
    return list(map(int, said))


def test_a_server_computes_after_its_first_initial_packet(machines: Machines) -> None:
    version_2, smallest, no_bit = "d06b3343cf:1195", "c000000001:195", "8000000001:1195"
    handshakes = [INITIAL, f"{INITIAL}:4", f"{INITIAL} {INITIAL}", version_2, smallest, no_bit]
    unknown_version, retry_of_version_2, acknowledgement = "c01a2a3a4a:1195", "c06b3343cf:1195", "c000000001:194"
    zero_rtt, one_rtt, no_quic = "d000000001:1195", "40:999", "0000000001:1195"
    others = [unknown_version, retry_of_version_2, acknowledgement, zero_rtt, f"{HANDSHAKE}:1195", one_rtt, no_quic]
    found = payments(machines, [f"server nothing {datagrams}" for datagrams in (*handshakes, *others)])
    assert found == [BETWEEN] * len(handshakes) + [NEVER] * len(others)


def test_a_client_computes_after_its_first_handshake_packet(machines: Machines) -> None:
    version_2, zero_rtt = f"d06b3343cf00000014{'05' * 20}f06b3343cf", f"d000000001000014{'05' * 20}{HANDSHAKE}"
    two_segments = f"c000000001{'78' * 1195}{HANDSHAKE}"
    handshakes = [HANDSHAKE, BEHIND + HANDSHAKE, BEHIND + BEHIND + HANDSHAKE, version_2, zero_rtt, two_segments]
    within, beyond, long_token, cut = (
        f"c0000000010000004480{HANDSHAKE}", "c000000001000000bfffffff", "c0000000010000ffffffffffffffff", BEHIND[:30],
    )  # fmt: skip
    others = [within, beyond, long_token, f"{BEHIND}40", f"{BEHIND}f000000001{HANDSHAKE}", "40", "f000000001"]
    programs = [f"client nothing {begin}:1000" for begin in (*handshakes, *others)]
    programs += [f"client nothing {cut}:0", f"client nothing {INITIAL} {INITIAL}"]
    found = payments(machines, programs)
    assert found == [BETWEEN] * len(handshakes) + [NEVER] * (len(others) + 2)
    once = f"client nothing {INITIAL} {BEHIND}{HANDSHAKE}:1000 {HANDSHAKE}:1000 {INITIAL}:4 40:999"
    assert payments(machines, [once]) == [BETWEEN]


def test_a_program_computes_when_it_calls_the_kernel_or_reads_a_clock_again(machines: Machines) -> None:
    """It can read each clock once before that."""
    programs = [f"server {then} {INITIAL}" for then in ("nothing", "reads", "calls")]
    assert payments(machines, programs) == payments(machines, programs, clock=500) == [BETWEEN, BETWEEN, BEFORE]


TAKE = bytes.fromhex(
    "4881ec00100000"  # room for a datagram and three readings
    "31c0" "31ff" "4889e6" "ba00080000" "0f05"  # read(0, datagram, 2048)
    "488d9c2400080000" "49bc5555555555555555"  # rbx = readings; r12 = the function
    "41bd03000000"  # three times
    "bf01000000" "4889de" "41ffd4" "4883c310" "41ffcd" "75ec"  # clock_gettime(1, rbx); the next place
    "b801000000" "bf01000000" "488db42400080000" "ba30000000" "0f05"  # write(1, readings, 48)
    "b83c000000" "31ff" "0f05"  # exit(0)
)  # fmt: skip
START = (
    "perl -MSocket=:all -e 'open A, q(</proc/self/auxv); read A, $auxv, 4096; %auxv = unpack q(Q*), $auxv; "
    "$image = unpack q(P4096), pack q(Q), $base = $auxv{33}; ($at, $n) = (unpack(q(Q), substr $image, 32), "
    "unpack q(S), substr $image, 56); for (0..$n - 1) { $header = substr $image, $at + 56 * $_, 56; "
    "$dynamic = unpack q(x16Q), $header if unpack(q(L), $header) == 2 } "
    "%tags = unpack q(Q*), substr $image, $dynamic & 4095, 256; ($names, $symbols) = map $_ & 4095, @tags{5, 6}; "
    "for (1..20) { ($name, $value) = unpack q(Lx4Q), substr $image, $symbols + 24 * $_, 24; "
    "$function = $base + ($value & 4095), last if unpack(q(Z*), substr $image, $names + $name) "
    "eq q(__vdso_clock_gettime) } open P, q(<program); read P, $program, 4096; open P, q(>takes); "
    "$program =~ s/U{8}/pack q(Q), $function/e; print P $program; close P; chmod 0755, q(takes); "
    "socket(S, PF_INET, SOCK_DGRAM, 0); bind(S, $to = sockaddr_in(4433, INADDR_LOOPBACK)); "
    "if (!fork) { socket(C, PF_INET, SOCK_DGRAM, 0); send(C, pack(q(H*), shift) . q(x) x 1195, 0, $to); exit } wait; "
    "open STDIN, q(<&S); exec q(./takes)' "
)
"""Runs a program that receives a datagram, which begins with the argument, and reads the clock three times.

It looks for the function in the vDSO, and puts its address in the place of eight U.
"""


def test_a_program_computes_before_its_second_reading_by_the_vdso(machines: Machines) -> None:
    """Half of what is left, before each reading."""
    binary = base64.b64encode(program(TAKE)).decode()
    script = f"cd /logs; echo {binary} | base64 -d >program; for i in c000000001 40; do {START}$i >$i; done"
    costs = {"clock": 500, "handshake": 50_000_000, "received": 40_000}
    files = machines.boot(script, patience=PATIENCE, costs=costs).files
    steps = []
    for name in ("c000000001", "40"):
        words = struct.unpack("<6Q", files[f"client/logs/{name}"])
        times = [seconds * 10**9 + rest for seconds, rest in zip(words[::2], words[1::2], strict=True)]
        steps.append([after - before for before, after in itertools.pairwise(times)])
    assert steps == [pytest.approx([25_020_500, 12_510_500], abs=1000), [20_500, 10_500]]


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
        [taken[directory]] = milliseconds(machines, [script.replace("DIR", directory)], costs={"call": 20_000})
    assert taken["glibc"] > 10 + max(taken["glibc-hwcaps/x86-64-v4"], taken["tls/haswell/avx512_1"])


def test_disks_have_no_statistics(machines: Machines) -> None:
    """They read the clock for each request, and there are more requests if a processor needs other pages."""
    said = machines.boot("cat /proc/diskstats", patience=PATIENCE).said
    disks = [line.split() for line in said.splitlines() if "ubd" in line]
    assert disks
    assert {number for words in disks for number in words[3:]} == {"0"}


def test_costs_hold_for_children_and_cannot_be_changed(machines: Machines) -> None:
    change = "perl -e '$all = pack q(Q136), 1..136; print syscall(158, 0x7001, $all), qq(\\n)'"
    for costs in ({}, {"call": 20_000}):
        said = machines.boot(f"{WAIT('{}', 'getppid')}; {change}", patience=PATIENCE, costs=costs).said.split()
        assert said[1] == "-1"
        assert int(said[0]) == pytest.approx(100 * costs.get("call", 0), abs=100_000)


UDP = (
    "perl -MSocket=:all -e 'sub now { syscall(228, 1, $t = pack q(qq), 0, 0); "
    "($s, $n) = unpack q(qq), $t; $s * 1e9 + $n } socket($_, PF_INET, SOCK_DGRAM, 0) for (*A, *B); "
    "bind(A, $to = sockaddr_in(4433, INADDR_LOOPBACK)); bind(B, sockaddr_in(4434, INADDR_LOOPBACK)); connect(B, $to); "
    "setsockopt(B, 17, 103, pack q(l), 100); open F, q(<), q(/bin/bash); "
    "$begin = now(); for (1..100) { DO } print now() - $begin, qq(\\n)'"
)
"""Prints the nanoseconds that something takes a hundred times, with a socket B that sends to A in segments of 100
bytes (UDP_SEGMENT), and a file F."""


SOCKETS = UDP[: UDP.index("open F")]


def doing(each: str) -> str:
    """A program for ``milliseconds``."""
    return UDP.replace("DO", each)


SETTLE = "sleep 2; "
"""Before a program: what the kernel does after its start is over then."""
KINDS = {
    "getppid": {"call": 1},
    "send(B, q(x), 0)": {"send": 1, "sent": 1},
    "send(B, q(x) x 250, 0)": {"send": 1, "sent": 3},
    "syswrite(B, q(x))": {"send": 1, "sent": 1},
    "syswrite(STDERR, qq(x\\n))": {"call": 1},
    "send(B, q(x), 0); recv(A, $r, 9, 0)": {"send": 1, "sent": 1, "receive": 1, "received": 1},
    "send(B, q(x), 0); sysread(A, $r, 9)": {"send": 1, "sent": 1, "receive": 1, "received": 1},
    "send(B, q(x), 0); recv(A, $r, 9, 2)": {"send": 1, "sent": 1, "receive": 1},
    "syscall(7, 0, 0, 1)": {"wait": 1},
    "select undef, undef, undef, 0.001": {"wait": 1},
    "syscall(202, $t, 1, 1)": {"call": 1},
    "syscall(17, fileno(F), $r = q(x) x 3072, 3072, 512)": {"call": 1, "file": 3},
    "syscall(295, fileno(F), pack(q(PQ), $r = q(x) x 2048, 2048), 1, 0, 0)": {"call": 1, "file": 2},
    "syscall(228, 1, $t)": {"clock": 1},
}
"""Statements of Perl -> how often they pay for what; the last ones are poll, a wake-up by futex, pread, preadv and
clock_gettime."""


@pytest.mark.parametrize("kind", [each for each in COSTS if each != "handshake"])
def test_each_kind_of_call_and_each_datagram_has_its_cost(kind: str, machines: Machines) -> None:
    """Each thing that a program does takes as much longer as it pays for."""
    cost = 50_000
    programs = [f"{SETTLE}{doing(each)}" for each in KINDS]
    free, paid = (milliseconds(machines, programs, costs=costs) for costs in ({}, {kind: cost}))
    found = {
        each: round((late - early) / (100 * cost / 1e6), 2) for each, late, early in zip(KINDS, paid, free, strict=True)
    }
    wanted = {each: times.get(kind, 0) + (kind == "clock") / 100 for each, times in KINDS.items()}
    assert found == pytest.approx(wanted, abs=0.05)


def test_a_datagram_leaves_when_the_program_has_paid_for_it(machines: Machines) -> None:
    """The datagrams of a call arrive together, after the costs of all of them."""
    sends = "$begin = now(); if (!fork) { send(B, q(x) x 250, 0); exit } recv(A, $r, 999, 0); "
    script = SOCKETS + sends + "print now() - $begin, qq(\n)'"
    free, paid = (milliseconds(machines, [script], costs=costs)[0] for costs in ({}, {"sent": 20_000_000}))
    assert paid - free == pytest.approx(60, abs=5)


def test_a_program_takes_all_that_has_arrived_before_it_computes(machines: Machines) -> None:
    """It pays for two after it has asked for a third one in vain, but for one before it can wait for another."""
    script = SOCKETS + "send(B, q(x), 0) for 1..2; TAKES; $begin = now(); getppid; print now() - $begin, qq(\n)'"
    takes = "recv(A, $r, 9, 64) for 1..3", "recv(A, $r, 9, 0) for 1..2"
    programs = [script.replace("TAKES", each) for each in takes]
    assert milliseconds(machines, programs, costs={"received": 30_000_000}) == pytest.approx([60, 30], abs=5)


def test_a_program_that_polls_in_vain_makes_few_calls(machines: Machines) -> None:
    """Each takes at least a sixteenth of the time polled so far, and at most 10 µs, or as long as such a call takes."""
    polls = "$calls = 0; $begin = now(); do { POLL; $calls++ } while now() - $begin < LIMIT; print $calls, qq(\\n)"
    script = SOCKETS + polls + "'"
    poll, receive = "syscall(7, 0, 0, 0)", "syscall(45, fileno(A), $r = q(x), 1, 64, 0, 0)"
    cases = [(poll, 10_000), (poll, 1_000_000), (receive, 1_000_000), (poll, 10_000_000), ("getppid", 1_000_000)]
    programs = [script.replace("POLL", each).replace("LIMIT", str(limit)) for each, limit in cases]
    costs = {"call": 1000, "clock": 50, "wait": 1000, "receive": 1000}
    brief, polled, received, long, called = numbers(machines, programs, costs=costs)
    assert 4 <= brief <= 11
    assert 100 <= polled <= 160
    assert 100 <= received <= 160
    assert 900 <= long <= 1050
    assert called >= 600


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
    late, busy = milliseconds(machines, programs, latencies=(7, [LATE] * 127))
    assert late - slept == pytest.approx(100 * LATE / 1e6, abs=1)
    assert busy == pytest.approx(called, abs=0.1)
    first, again, other = (
        milliseconds(machines, [programs[0]] * 2, latencies=(seed, range(1000, 128_000, 1000))) for seed in (7, 7, 8)
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
    said = machines.boot(script, patience=PATIENCE, costs={"clock": 3000}).said
    steps = [after - before for before, after in itertools.pairwise(map(int, said.split()))]
    assert len(steps) == 199
    assert min(steps) >= 3
