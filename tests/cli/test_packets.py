"""Packets that a reason names are shown field by field."""

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, CommandLine

RUN = ROOT / "tests" / "data" / "many"


def test_a_frame_has_all_its_fields(quicsat: CommandLine) -> None:
    lines = quicsat.out("packets", RUN, 2, 1).splitlines()
    assert [line for line in lines if not line.startswith("  ")] == ["frame 2", "frame 1"]
    assert "  quic.packet_number  0, 1" in lines
    assert "  tls.handshake.extensions_alpn_str  hq-interop" in lines
    assert quicsat.out("packets", RUN, 2, "--server").startswith("frame 2\n  quic.")


def test_what_is_not_there(tmp_path: Path, quicsat: CommandLine) -> None:
    assert "no such trace. Pass the directory of a run" in quicsat.refusal("packets", tmp_path, 1)
    err = quicsat.err("packets", RUN, 1, 4000, 3000, status=2)
    assert "no QUIC packets in these frames: 3000, 4000" in err
    assert err.endswith(f"./run.py explain {RUN}\n")


def test_a_frame_that_is_not_quic(tmp_path: Path, quicsat: CommandLine) -> None:
    (tmp_path / "sim").mkdir()
    shutil.copy(RUN.parent / "real/go-x-net_neqo/trace.pcap", tmp_path / "sim/trace_node_left.pcap")
    status, out, err = quicsat("packets", tmp_path, 2, 1)
    assert status == 2
    assert out.startswith("frame 2\n  quic.")
    assert "no QUIC packets in these frames: 1.\n" in err
    assert quicsat("packets", tmp_path, 2)[0] == 0


def test_without_tshark_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quicsat: CommandLine
) -> None:
    shutil.copytree(RUN, tmp_path / "run")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt-get install tshark" in quicsat.err("packets", tmp_path / "run", 1, status=3)


@pytest.mark.parametrize("garbage", [b"", b"\xff" * 64])
def test_frames_before_the_fault_of_a_trace_are_shown(tmp_path: Path, garbage: bytes, quicsat: CommandLine) -> None:
    shutil.copytree(RUN, tmp_path / "run")
    trace = tmp_path / "run/sim/trace_node_left.pcap"
    trace.write_bytes(trace.read_bytes()[:-10] + garbage)
    status, out, err = quicsat("packets", tmp_path / "run", 2, 5000)
    assert status == 2
    assert out.startswith("frame 2\n  quic.")
    assert "no QUIC packets in these frames: 5000" in err
