"""What repetitions with one seed have in common, from their traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.reproducibility import TRACES, Equality, Repetition, deviation, equality, reproducibility, table
from quicsat.report.table import render
from tests.quic_builder import Packet, pcap

PACKETS = [Packet(0.0, False, b"hello"), Packet(0.3, True, b"hi there"), Packet(2.0, False, b"bye")]


def traces(folder: Path, packets: Sequence[Packet], **more: bool) -> Path:
    folder.mkdir()
    for name in TRACES:
        (folder / name).write_bytes(pcap(packets, **more))  # type: ignore[arg-type]
    return folder


@pytest.mark.parametrize(
    ("packets", "expected"),
    [
        (PACKETS, Equality.BYTES),
        ([Packet(0.0, False, b"HELLO"), *PACKETS[1:]], Equality.TIMES),
        ([Packet(0.0, False, b"hello!"), *PACKETS[1:]], Equality.DURATION),
        ([PACKETS[0], Packet(0.3000001, True, b"hi there"), PACKETS[2]], Equality.DURATION),
        ([PACKETS[0], PACKETS[2]], Equality.DURATION),
        ([*PACKETS[:2], Packet(2.0009, False, b"bye")], Equality.DURATION),
        ([*PACKETS[:2], Packet(2.0011, False, b"bye")], Equality.NONE),
        ([PACKETS[0], Packet(0.3, False, b"hi there"), PACKETS[2]], Equality.DURATION),
    ],
)
def test_equality_of_traces(packets: list[Packet], expected: Equality, tmp_path: Path) -> None:
    first, second = traces(tmp_path / "1", PACKETS), traces(tmp_path / "2", packets)
    assert equality(first, second) is expected


def test_both_traces_count(tmp_path: Path) -> None:
    first, second = traces(tmp_path / "1", PACKETS), traces(tmp_path / "2", PACKETS)
    (second / TRACES[1]).write_bytes(pcap([*PACKETS[:2], Packet(9.0, False, b"bye")]))
    assert equality(first, second) is Equality.NONE
    (second / TRACES[1]).unlink()
    assert equality(first, second) is Equality.NONE


def test_the_worst_repetition_decides(tmp_path: Path) -> None:
    other = [Packet(0.0, False, b"HELLO"), *PACKETS[1:]]
    same, alike = traces(tmp_path / "1", PACKETS), traces(tmp_path / "2", other)
    found = reproducibility("a", [Repetition(8e6, same)] * 2, [Repetition(8.4e6, alike), Repetition(None, same)])
    assert (found.equality, found.failed, found.idle, found.busy) == (Equality.TIMES, 1, (8e6, 8e6), (8.4e6,))
    assert found.difference == pytest.approx(0.05)
    shown = render(table([found]), "markdown")
    assert "same packet times" in shown
    assert "5.000" in shown


def test_deviation_is_a_share_of_the_mean() -> None:
    assert deviation([9.0, 11.0]) == pytest.approx(2**0.5 / 10)
    assert deviation([9.0]) is None
