"""Files that a visitor may take away."""

import struct
from pathlib import Path

import pytest

from quicsat.site.files import downloads, harmless, opens_in_qvis, taken_as
from quicsat.traces.pcapng_writer import CapturedEnd, write_pcapng
from quicsat.traces.records import INTERFACE, PacketRecord, records

MIXED = [PacketRecord(1_000, 1, 20, b"x" * 20), PacketRecord(2_000, 113, 5, b"y" * 5)]
DATA = Path(__file__).resolve().parent.parent / "data" / "lossy"


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("trace.qlog", "trace.qlog.json"),
        ("a.b.sqlog", "a-b.sqlog.json"),
        ("page.html", "page-html.txt"),
        ("x.svg", "x-svg.txt"),
        ("page.var.txt", "page-var.txt"),
        ("../../etc/passwd", "etc-passwd.txt"),
        ("<img src=x>.log", "img-src-x-log.txt"),
        ("..", "file.txt"),
    ],
)
def test_names_lead_nowhere_and_are_not_run(name: str, safe: str) -> None:
    assert harmless(name) == safe


def test_a_trace_comes_with_its_secrets(tmp_path: Path) -> None:
    found = dict(downloads(DATA))
    (tmp_path / "x.pcapng").write_bytes(found["client-side.pcapng"])
    before = list(records(DATA / "sim" / "trace_node_left.pcap"))
    assert list(records(tmp_path / "x.pcapng")) == before
    kind, length = struct.unpack_from("<II", found["client-side.pcapng"], 28)
    assert kind == 10
    assert (DATA / "client" / "keys.log").read_bytes().splitlines()[0] in found["client-side.pcapng"][28 : 28 + length]


def test_what_was_printed_and_files_of_one_name_are_all_taken(tmp_path: Path) -> None:
    for name in ("output.txt", "client/a.qlog", "client/qlog/a.qlog", "server/a.qlog", "server/log.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    assert {name: content.decode() for name, content in downloads(tmp_path)} == {
        "output.txt": "output.txt",
        "client-a.qlog.json": "client/a.qlog",
        "client-a-2.qlog.json": "client/qlog/a.qlog",
        "server-a.qlog.json": "server/a.qlog",
        taken_as("server/log.txt"): "server/log.txt",
    }


@pytest.mark.parametrize(
    ("name", "start", "opens"),
    [
        ("server-a.qlog.json", b'{"qlog_format": "JSON", "qlog_version": "0.3", "traces": [', True),
        ("server-a.qlog.json", b'{ "qlog_version": "draft-00", "title": "x"', True),
        ("server-a.sqlog.json", b'\x1e{"qlog_version":"0.3","qlog_format":"JSON-SEQ"', True),
        ("server-a.sqlog.json", b'{"qlog_version":"0.3","qlog_format":"NDJSON"', False),
        ("server-a.sqlog.json", b'\x1e{"file_schema":"urn:ietf:params:qlog:file:sequential"', False),
        ("server-a.qlog.json", b'{"qlog_version": "0.4"', False),
        ("server-a.qlog.json", b" " * 1024 + b'{"qlog_version": "0.3"', False),
        ("server-a.txt", b'{"qlog_version": "0.3"', False),
    ],
)
def test_qlogs_that_qvis_opens(name: str, start: bytes, opens: bool) -> None:
    assert opens_in_qvis(name, start) is opens


def test_without_secrets_there_is_no_block_for_them(tmp_path: Path) -> None:
    trace = tmp_path / "sim" / "trace_node_left.pcap"
    trace.parent.mkdir()
    trace.write_bytes((DATA / "sim" / trace.name).read_bytes())
    [(_, found)] = downloads(tmp_path)
    assert struct.unpack_from("<I", found, 28) == (INTERFACE,)


def test_packets_of_two_link_types_keep_them(tmp_path: Path) -> None:
    with (tmp_path / "x.pcapng").open("wb") as file:
        write_pcapng(file, b"", [CapturedEnd("a", lambda: MIXED), CapturedEnd("b", lambda: MIXED[1:])])
    assert list(records(tmp_path / "x.pcapng")) == [MIXED[0], MIXED[1], MIXED[1]]
