"""Every damaged trace is recognised, none is waited for, and whole ones give their UDP packets in every format."""

import random
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from quicsat.traces.pcap import check
from quicsat.traces.records import Condition
from tests.foreign_builder import shifted
from tests.quic_builder import CLIENT_6, EPOCH, SERVER_6, Packet, block, pcap, pcapng

DATA = Path(__file__).parents[1] / "data"
PACKETS = [
    Packet(0.25, False, b"request"),
    Packet(0.5, True, b"answer", CLIENT_6, SERVER_6),
    Packet(1.75, True, b"answer" * 200),
]
FORMATS: dict[str, Callable[[], bytes]] = {
    "nanoseconds": lambda: pcap(PACKETS),
    "microseconds": lambda: pcap(PACKETS, nano=False),
    "big-endian": lambda: pcap(PACKETS, order=">"),
    "pcapng": lambda: pcapng(PACKETS),
    "pcapng big-endian": lambda: pcapng(PACKETS, ">"),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.pcap"


@pytest.mark.parametrize("name", FORMATS)
def test_whole_file(path: Path, name: str) -> None:
    path.write_bytes(FORMATS[name]())
    state = check(path)
    assert (state.condition, state.packets, state.reason, state.cut) == (Condition.OK, 3, "", 0)
    assert not state.simulated
    assert state.duration == 1.5
    found = check(path).datagrams
    assert found.epoch == EPOCH
    assert found.time.tolist() == [0.25, 0.5, 1.75]
    assert found.from_server.tolist() == [False, True, True]
    assert found.size.tolist() == [7, 6, 1200]
    assert len(set(found.digest.tolist())) == 3


def test_the_digest_is_that_of_the_payload_alone(path: Path) -> None:
    path.write_bytes(
        pcap([Packet(0, True, b"same"), Packet(0, True, b"same", ("10.1.2.3", 777)), Packet(0, True, b"else")])
    )
    first, second, third = check(path).datagrams.digest.tolist()
    assert first == second != third


def test_packets_that_are_none_between_client_and_server(path: Path) -> None:
    probe = Packet(0, True, b"probe of the simulator", client=("193.167.100.2", 5000))
    name_service = Packet(0, True, b"name", server=("193.167.100.100", 53))
    fragment = bytearray(pcap([PACKETS[0]]))
    fragment[24 + 16 + 14 + 6] = 0x20  # "more fragments" of the IP header
    other_protocol = bytearray(pcap([PACKETS[0]]))
    other_protocol[24 + 16 + 14 + 9] = 6  # TCP
    path.write_bytes(pcap([probe, name_service]) + fragment[24:] + other_protocol[24:])
    assert check(path).packets == 4
    assert len(check(path).datagrams) == 0


def microseconds(by: int) -> bytes:
    """PACKETS as a capture whose clock is ``by`` microseconds ahead of theirs."""
    return shifted(pcap(PACKETS, nano=False), by)


@pytest.mark.parametrize("start", [0, 1, 4_750_000, 36_000_000_000])
def test_a_clock_that_counts_from_the_start_of_a_simulation(path: Path, start: int) -> None:
    path.write_bytes(microseconds(start - EPOCH * 1_000_000 - 250_000))
    state = check(path)
    assert (state.condition, state.packets, state.reason, state.simulated) == (Condition.OK, 3, "", True)
    assert state.duration == 1.5
    times = state.datagrams.time + state.datagrams.epoch
    assert times.tolist() == [start / 1e6, start / 1e6 + 0.25, start / 1e6 + 1.5]


@pytest.mark.parametrize(
    ("first", "number"),
    [
        (86_399_000_000, 3),  # within the longest simulation, but it goes on beyond
        (86_400_000_000, 1),  # later than any simulation, earlier than any capture
        (900_000_000_000_000, 1),  # 1998
        (4_102_444_799_000_000, 3),  # 2099, and then 2100
        (4_102_444_800_000_000, 1),  # 2100
    ],
)
def test_times_of_no_clock(path: Path, first: int, number: int) -> None:
    path.write_bytes(microseconds(first - EPOCH * 1_000_000 - 250_000))
    state = check(path)
    assert state.condition is Condition.CORRUPT
    assert state.reason == f"Record {number} of trace.pcap has an impossible time."
    assert state.packets == number - 1


def test_a_simulation_does_not_go_back_or_jump_to_today(path: Path) -> None:
    by = -EPOCH * 1_000_000
    path.write_bytes(shifted(pcap(PACKETS[::-1], nano=False), by))
    assert check(path).reason == "Record 2 of trace.pcap is 1.250 s older than the one before."
    path.write_bytes(microseconds(by) + pcap(PACKETS, nano=False)[24:])
    assert check(path).reason == "Record 4 of trace.pcap has an impossible time."


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_cut_off_anywhere_is_not_whole(path: Path, name: str) -> None:
    whole = FORMATS[name]()
    conditions = set()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        state = check(path)
        conditions.add(state.condition)
        if state.condition is Condition.OK:  # cut between two records, which cannot be seen
            assert state.packets in (1, 2)
        else:
            assert state.condition in (Condition.EMPTY, Condition.TRUNCATED)
            assert "trace.pcap" in state.reason
    assert conditions == {Condition.OK, Condition.EMPTY, Condition.TRUNCATED}


def patched(position: int, value: bytes, data: bytes) -> bytes:
    return data[:position] + value + data[position + len(value) :]


HUGE, RECORD = struct.pack("<I", 0xFFFFFFF0), 24
NG_INTERFACE, NG_PACKET = 28, 28 + 32 + 24
BROKEN = {
    "garbage": (b"no trace at all", "begins with the bytes"),
    "gzip": (b"\x1f\x8b\x08\x00" + bytes(100), "begins with the bytes"),
    "version": (patched(4, b"\x09", pcap(PACKETS)), "version 9"),
    "captured length": (patched(RECORD + 8, HUGE, pcap(PACKETS)), "Record 1 of trace.pcap claims 4294967280 bytes"),
    "longer than the packet": (patched(RECORD + 12, struct.pack("<I", 5), pcap(PACKETS)), "of 5 bytes"),
    "length": (patched(RECORD + 12, HUGE, pcap(PACKETS)), "of 4294967280 bytes"),
    "over the snap length": (patched(16, struct.pack("<I", 40), pcap(PACKETS)), "more than the 40 possible"),
    "fraction of a second": (patched(RECORD + 4, HUGE, pcap(PACKETS)), "impossible time"),
    "year 1970": (patched(RECORD, bytes(4), pcap(PACKETS)), "impossible time"),
    "time goes back": (pcap(PACKETS[::-1]), "is 1.250 s older than the one before"),
    "pcapng byte order": (patched(8, b"????", pcapng(PACKETS)), "no byte order"),
    "pcapng length": (patched(NG_INTERFACE + 4, HUGE, pcapng(PACKETS)), "claims a length"),
    "pcapng odd length": (patched(NG_INTERFACE + 4, b"\x21", pcapng(PACKETS)), "claims a length"),
    "pcapng second length": (patched(NG_INTERFACE + 28, b"\x30", pcapng(PACKETS)), "two different lengths"),
    "pcapng interface": (patched(NG_PACKET + 8, b"\x07", pcapng(PACKETS)), "names an interface"),
    "pcapng captured length": (patched(NG_PACKET + 20, HUGE, pcapng(PACKETS)), "more than the"),
    "pcapng without times": (pcapng(PACKETS) + block(3, bytes(8)), "without a usable time"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_file(path: Path, name: str) -> None:
    content, reason = BROKEN[name]
    path.write_bytes(content)
    state = check(path)
    assert state.condition is Condition.CORRUPT
    assert reason in state.reason


@pytest.mark.parametrize(("content", "reason"), [(b"", "no bytes"), (pcap([]), "no packet"), (pcapng([]), "no packet")])
def test_empty_file(path: Path, content: bytes, reason: str) -> None:
    path.write_bytes(content)
    assert (check(path).condition, reason in check(path).reason) == (Condition.EMPTY, True)


def test_what_is_no_file(path: Path, tmp_path: Path) -> None:
    assert check(path).condition is Condition.EMPTY
    assert check(path).reason == "There is no file trace.pcap."
    (tmp_path / "whole").write_bytes(pcap(PACKETS))
    path.symlink_to(tmp_path / "whole")
    for odd in (path, tmp_path):
        assert (check(odd).condition, "no regular file" in check(odd).reason) == (Condition.CORRUPT, True)


def test_packets_cut_by_the_snap_length_are_counted(path: Path) -> None:
    path.write_bytes(pcap(PACKETS, snap_length=100))
    state = check(path)
    assert (state.condition, state.packets, state.cut) == (Condition.OK, 3, 1)
    assert check(path).datagrams.size.tolist() == [7, 6, 1200]


def test_recorded_traces_are_whole() -> None:
    traces = sorted(DATA.glob("*/sim/*.pcap"))
    assert len(traces) == 6
    assert {check(trace).condition for trace in traces} == {Condition.OK}


def mutate(data: bytes, chance: random.Random) -> bytes:
    """One kind of damage."""
    broken = bytearray(data)
    kind = chance.randrange(4)
    if kind == 0:
        return data[: chance.randrange(len(data))]
    if kind == 1:
        for _ in range(chance.randint(1, 30)):
            broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
    elif kind == 2:
        start = chance.randrange(len(broken))
        broken[start : start + 4] = chance.choice([HUGE, b"\xff" * 4, bytes(4), chance.randbytes(4)])
    else:
        start = chance.randrange(len(broken))
        broken[start : start + chance.randrange(500)] = chance.randbytes(chance.randrange(500))
    return bytes(broken)


def test_mutated_files_never_raise_and_need_little_memory(path: Path) -> None:
    chance = random.Random(20251104)
    whole = [(DATA / "many/sim/trace_node_left.pcap").read_bytes(), pcapng(PACKETS)]
    tracemalloc.start()
    found = set()
    for _ in range(100):
        path.write_bytes(mutate(chance.choice(whole), chance))
        found.add(check(path).condition)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found >= {Condition.OK, Condition.TRUNCATED, Condition.CORRUPT}
    assert peak < 32 * 1024 * 1024
