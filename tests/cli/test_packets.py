"""Packets that a reason names are shown field by field."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from quicsat.cli import main as cli

ROOT = Path(__file__).parents[2]
RUN = ROOT / "tests" / "data" / "many"


def packets(*words: object) -> int:
    return cli.main(ROOT, ["packets", *map(str, words)])


def test_a_frame_has_all_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert packets(RUN, 2, 1) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith("  ")] == ["frame 2", "frame 1"]
    assert "  quic.packet_number  0, 1" in lines
    assert "  tls.handshake.extensions_alpn_str  hq-interop" in lines
    assert packets(RUN, 2, "--server") == 0
    assert capsys.readouterr().out.startswith("frame 2\n  quic.")


def test_what_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert packets(tmp_path, 1) == 2
    assert "no such trace. Pass the directory of a run" in capsys.readouterr().err
    assert packets(RUN, 1, 4000, 3000) == 2
    err = capsys.readouterr().err
    assert "no QUIC packets in these frames: 3000, 4000" in err
    assert err.endswith(f"./run.py explain {RUN}\n")


def test_a_frame_that_is_not_quic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sim").mkdir()
    shutil.copy(RUN.parent / "real/go-x-net_neqo/trace.pcap", tmp_path / "sim/trace_node_left.pcap")
    assert packets(tmp_path, 2, 1) == 2
    out, err = capsys.readouterr()
    assert out.startswith("frame 2\n  quic.")
    assert "no QUIC packets in these frames: 1.\n" in err
    assert packets(tmp_path, 2) == 0


def test_without_tshark_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(RUN, tmp_path / "run")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert packets(tmp_path / "run", 1) == 3
    assert "apt-get install tshark" in capsys.readouterr().err


@pytest.mark.parametrize("garbage", [b"", b"\xff" * 64])
def test_frames_before_the_fault_of_a_trace_are_shown(
    tmp_path: Path, garbage: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(RUN, tmp_path / "run")
    trace = tmp_path / "run/sim/trace_node_left.pcap"
    trace.write_bytes(trace.read_bytes()[:-10] + garbage)
    assert packets(tmp_path / "run", 2, 5000) == 2
    out, err = capsys.readouterr()
    assert out.startswith("frame 2\n  quic.")
    assert "no QUIC packets in these frames: 5000" in err
