"""The kernel's samples of TCP's congestion window become a series."""

from pathlib import Path

import pytest

from quicsat.traces.tcp_info import kernel_window

EPOCH = 1_767_225_607
HEAD = "time,port,congestion_window,segment,smoothed_rtt,threshold,unacknowledged,retransmitted\n"


def test_times_count_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "tcp_info.csv"
    path.write_text(
        HEAD
        + f"{EPOCH}750000000,5000,14480,1448,600000,,0,0\n"
        + f"{EPOCH}500000123,5001,28960,1448,600000,7000,1448,1\n"
    )
    found = kernel_window(path, EPOCH, 0.25)
    assert found.time.tolist() == pytest.approx([0.250000123, 0.5], abs=1e-12)
    assert found.value.tolist() == [28960.0, 14480.0]


@pytest.mark.parametrize(
    ("rest", "rows"), [("x,1,2,3,4,5,6,7\n", 1), ("1,2\n", 1), ("\xff\n", 0), (f"{EPOCH},1,1e3,,,,,\n", 1)]
)
def test_what_cannot_be_read_ends_the_series(tmp_path: Path, rest: str, rows: int) -> None:
    path = tmp_path / "tcp_info.csv"
    path.write_text(HEAD + f"{EPOCH}000000000,5000,14480,1448,1,,0,0\n" + rest, encoding="latin-1")
    assert kernel_window(path, EPOCH, 0.0).value.tolist() == [14480.0] * rows


def test_no_file_no_window(tmp_path: Path) -> None:
    assert len(kernel_window(tmp_path / "none.csv", EPOCH, 0.0)) == 0
