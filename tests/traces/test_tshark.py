"""tshark's answer is complete and right, or it is a fault of ours; it never hangs."""

import os
from pathlib import Path

import pytest

from quicsat.model.errors import HarnessFault, MachineError
from quicsat.model.outcomes import ErrorCode
from quicsat.traces import tshark as program
from tests.traces.test_trace import DATA, LEFT, keys_of
from tests.waiting import has_ended, until


def test_deep_look() -> None:
    found = program.tshark_fields(DATA / "many" / LEFT, keys_of("many"), (2,))
    assert list(found) == [2]
    assert found[2]["tls.handshake.extensions_alpn_str"] == ("hq-interop",)
    assert found[2]["quic.packet_number"] == ("0", "1")
    assert program.tshark_fields(DATA / "many" / LEFT, (), ()) == {}
    with pytest.raises(HarnessFault):
        program.tshark_fields(DATA / "none.pcap", (), (1,))


def test_frames_that_are_not_quic_packets_are_left_out() -> None:
    """The first frame is one of ARP."""
    assert list(program.tshark_fields(DATA / "real/go-x-net_neqo/trace.pcap", (), (1, 2))) == [2]


# ---- tshark that fails ----------------------------------------------------------------------


@pytest.fixture
def tshark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of tshark."""
    fake = tmp_path / "bin" / "tshark"
    fake.parent.mkdir()
    fake.touch(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    return fake


def fails(script: str, tshark: Path, timeout: float = 30.0) -> str:
    tshark.write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(HarnessFault) as caught:
        program.tshark_fields(DATA / "many" / LEFT, (), (1,), timeout)
    assert caught.value.code == ErrorCode.ANALYSIS_FAILED
    return caught.value.reason


def test_tshark_that_fails_is_our_fault(tshark: Path) -> None:
    assert "status 3: tshark: bad" in fails("echo Running as root >&2; echo 'tshark: bad' >&2; exit 3", tshark)
    assert "signal 9: it said nothing" in fails("kill -9 $$", tshark)
    assert "makes no sense" in fails("echo '<packet><proto</packet>'", tshark)


def test_tshark_that_hangs_is_killed_with_its_children(tshark: Path, tmp_path: Path) -> None:
    told = tmp_path / "child"
    for timeout in (0.3, 3.0, 30.0):  # on a busy machine the first may be over before there is a child
        reason = fails(f"sleep 600 & echo $! > {told}.new; mv {told}.new {told}; wait", tshark, timeout)
        assert f"not finished after {timeout:g} s" in reason
        if told.exists():
            break
    child = int(told.read_text())
    assert until(lambda: has_ended(child))


def test_tshark_has_a_memory_limit(tshark: Path) -> None:
    limited = f"grep -q 'address space.* {program.MEMORY_LIMIT} ' /proc/self/limits"
    wait = f"until {limited}; do sleep 0.1; done"  # it comes after the start
    reason = fails(f"{wait}; grep 'address space' /proc/self/limits >&2; exit 1", tshark)
    assert reason.split().count(str(program.MEMORY_LIMIT)) == 2


def test_tshark_sees_no_personal_settings(tshark: Path) -> None:
    reason = fails('[ "$HOME" = "$WIRESHARK_CONFIG_DIR" ] && ls -A $HOME >&2; exit 1', tshark)
    assert reason.endswith("status 1: keys.log.")


def test_no_tshark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="apt-get install tshark"):
        program.tshark_fields(DATA / "many" / LEFT, (), (1,))
    with pytest.raises(MachineError, match="not installed"):
        program.tshark_version()


def test_tshark_version(tshark: Path) -> None:
    tshark.write_text("#!/bin/sh\necho 'TShark (Wireshark) 4.4.18.'\n")
    assert program.tshark_version() == "4.4.18"
    tshark.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(MachineError, match="status 1"):
        program.tshark_version()
