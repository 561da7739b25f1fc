"""Packets of a run and of a qlog are listed, and those that a reason names are shown field by field."""

import csv
import gzip
import io
import shutil
import struct
from pathlib import Path

import pyarrow as pa
import pytest

from quicsat.analysis.link_qlog import LinkRun
from quicsat.analysis.qlog_export import write_qlogs
from quicsat.model.emulated_link import unknown_link
from quicsat.model.implementation import Protocol
from quicsat.traces.run_traces import check_traces, read_run
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


# ---- lists ----------------------------------------------------------------------------------


@pytest.fixture
def qlogs(tmp_path: Path) -> Path:
    """The directory with the exported qlogs of ``RUN``."""
    traces = read_run(RUN, Protocol.HQ, unknown_link(), check_traces(RUN, Protocol.HQ))
    place = tmp_path / "exported"
    place.mkdir()
    write_qlogs(place, "many", traces, LinkRun(unknown_link(), None, 1, traces.start))
    return place


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_qlog_has_the_list_of_its_trace(qlogs: Path, quicsat: CommandLine) -> None:
    packed = qlogs / "packed"
    packed.mkdir()
    (packed / "a.sqlog.gz").write_bytes(gzip.compress((qlogs / "client.sqlog").read_bytes()))
    (packed / "a.sqlog.zst").write_bytes(
        bytes(pa.compress((qlogs / "client.sqlog").read_bytes(), codec="zstd", asbytes=True))
    )
    of_trace = table(quicsat.out("packets", RUN, "--format", "csv"))
    assert {row["from"] for row in of_trace} == {"client", "server"}
    assert any("stream 0 " in row["frames"] for row in of_trace)
    for place in (qlogs, qlogs / "client.sqlog", packed / "a.sqlog.gz", packed / "a.sqlog.zst"):
        of_qlog = table(quicsat.out("packets", place, "--format", "csv"))
        for mine, theirs in zip(of_qlog, of_trace, strict=True):
            assert float(mine.pop("time [s]")) == pytest.approx(float(theirs["time [s]"]), abs=2e-6)
            assert mine.items() <= theirs.items() | {("frame", mine["frame"])}


def test_a_list_in_a_terminal(qlogs: Path, quicsat: CommandLine) -> None:
    lines = quicsat.out("packets", qlogs, "--server").splitlines()
    assert lines[2].split() == ["frame", "time", "[s]", "from", "type", "number", "bytes", "frames"]
    assert lines[3].split()[:6] == ["1", "0.000000", "client", "initial", "0", "508"]
    assert [line.split() for line in quicsat.out("packets", qlogs, 1).splitlines()[3:]] == [lines[3].split()]
    assert "the server's qlog has no QUIC packets in these frames: 4000" in quicsat.err(
        "packets", qlogs, 4000, "--server", status=2
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"\x1e{}\n", "no qlog: no event of QUIC"),
        (b"\xff" * 100, "does not begin as JSON"),
        (b'{"traces":' + b"[" * 100_000, "cut"),
    ],
)
def test_what_is_no_qlog(content: bytes, reason: str, tmp_path: Path, quicsat: CommandLine) -> None:
    (tmp_path / "\x1b[2Ja.qlog").write_bytes(content)
    err = quicsat.refusal("packets", tmp_path / "\x1b[2Ja.qlog")
    assert reason in err
    assert "\x1b" not in err


@pytest.mark.parametrize("command", ["packets", "explain"])
def test_what_could_not_be_read_of_a_qlog_is_told_once(command: str, qlogs: Path, quicsat: CommandLine) -> None:
    content = (qlogs / "client.sqlog").read_bytes()
    (qlogs / "client.sqlog").write_bytes(content + b"\x1e{\n\x1e" + content.rpartition(b"\x1e")[2])
    _, out, err = quicsat(command, qlogs / "client.sqlog")
    assert (out + err).count("records that are no JSON: 1") == 1


def test_a_trace_without_packets(tmp_path: Path, quicsat: CommandLine) -> None:
    shutil.copytree(RUN, tmp_path / "run")
    trace = tmp_path / "run/sim/trace_node_left.pcap"
    head = trace.read_bytes()[:24]
    trace.write_bytes(head + struct.pack("<IIII", 1_750_000_000, 0, 60, 60) + bytes(60))
    assert "the client's trace has no QUIC packets." in quicsat.refusal("packets", tmp_path / "run")


def test_a_qlog_that_is_missing(qlogs: Path, quicsat: CommandLine) -> None:
    (qlogs / "server.sqlog").unlink()
    assert "has no qlog of the server" in quicsat.refusal("packets", qlogs, "--server")
    assert "no.sqlog: cannot be read" in quicsat.refusal("packets", qlogs / "no.sqlog")
    assert "is the qlog of a link" in quicsat.refusal("packets", qlogs / "link.sqlog")


@pytest.mark.parametrize("command", ["packets", "explain", "analyse", "tables"])
@pytest.mark.parametrize("below", ["", "below"])
def test_a_directory_of_qlogs_with_other_names(command: str, below: str, qlogs: Path, quicsat: CommandLine) -> None:
    """It is refused with the form that names qlogs one by one."""
    place = qlogs / "own"
    (place / below).mkdir(parents=True)
    (qlogs / "client.sqlog").rename(place / below / "mine.sqlog")
    err = quicsat.refusal(command, place)
    assert "No qlog in it has a name of export" in err
    assert "CLIENT.sqlog:SERVER.sqlog:LINK.sqlog" in err
    assert str(place / below / "mine.sqlog") in err


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("server.sqlog", b"garbage", "server.sqlog is no qlog"),
        ("link.sqlog", b"", "link.sqlog is empty"),
        ("server.sqlog", None, "server.sqlog: cannot be read: No such file or directory"),
    ],
)
def test_a_broken_qlog_that_is_not_listed_is_named(
    name: str, content: bytes | None, reason: str, qlogs: Path, quicsat: CommandLine
) -> None:
    expected = quicsat.out("packets", qlogs)
    if content is None:
        (qlogs / name).unlink()
    else:
        (qlogs / name).write_bytes(content)
    status, out, err = quicsat(
        "packets", ":".join(str(qlogs / f"{each}.sqlog") for each in ("client", "server", "link"))
    )
    assert (status, out) == (0, expected)
    assert err.count(reason) == 1


def test_qlogs_beside_those_that_are_read_are_named(qlogs: Path, quicsat: CommandLine) -> None:
    (qlogs / "other.sqlog").write_bytes(b"")
    status, _, err = quicsat("analyse", qlogs)
    assert status == 0
    assert f"{qlogs}: 1 qlog of other names not read: other.sqlog." in err


@pytest.mark.parametrize("name", ["s.json", "s", "a\nb.sqlog", "client.sqlog.json"])
def test_a_qlog_of_any_name(name: str, qlogs: Path, quicsat: CommandLine) -> None:
    expected = quicsat.out("packets", qlogs / "client.sqlog", "--format", "csv")
    (qlogs / "client.sqlog").rename(qlogs / name)
    assert quicsat.out("packets", qlogs / name, "--format", "csv") == expected
    assert "streams" in quicsat.out("analyse", f"{qlogs / name}:{qlogs / 'server.sqlog'}")
