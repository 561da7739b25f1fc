"""Commands that work on runs of QIR and QIR-SE: log directories, and captures with a key log."""

import csv
import json
import struct
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from quicsat.analysis.foreign_runs import examine
from quicsat.analysis.link_qlog import LinkRun
from quicsat.analysis.qlog_export import write_qlogs
from quicsat.cli import foreign_inputs
from quicsat.cli.program import Program
from quicsat.cli.tables import TABLES
from quicsat.model.emulated_link import unknown_link
from quicsat.model.implementation import Protocol, Role
from quicsat.model.time_shares import TimeShare
from quicsat.plots.discovery import draw
from quicsat.traces.capture_contents import TRACES
from quicsat.traces.key_log import key_lines
from quicsat.traces.pcapng_writer import CapturedEnd, write_pcapng
from quicsat.traces.records import records
from quicsat.traces.run_traces import KEY_LOGS, check_traces, read_run
from tests.cli.conftest import ROOT, CommandLine, Draws
from tests.foreign_builder import LEFT, MICROSECONDS, RIGHT, foreign_run, pieces, qir_output
from tests.simulated import Link, transfer


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two repetitions of a measurement; the current directory is another one."""
    for number in (1, 2):
        foreign_run(tmp_path / f"logs/quic-go_aioquic/goodput/{number}", output=qir_output())
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "logs"


def triple(run: Path) -> str:
    return ":".join(str(run / name) for name in (LEFT, RIGHT, "client/keys.log"))


def result_file(logs: Path) -> None:
    """A result.json of QIR with a mean that is not that of the traces."""
    content = {
        "start_time": 1795228738.5, "end_time": 1795228739.0, "log_dir": "logs", "servers": ["quic-go"],
        "clients": ["aioquic"], "urls": {}, "results": [[]],
        "tests": {"G": {"name": "goodput", "desc": "Measures connection goodput over a 10Mbps link."}},
        "measurements": [[{"name": "goodput", "abbr": "G", "result": "succeeded", "details": "9501 (± 23) kbps"}]],
    }  # fmt: skip
    (logs / "result.json").write_text(json.dumps(content))


def test_figures_are_drawn_in_the_current_directory(logs: Path, quicsat: CommandLine) -> None:
    """Of a whole tree, of one test case, and of one run alike; the logs stay as they are."""
    before = sorted(logs.rglob("*"))
    for place in (logs, logs / "quic-go_aioquic/goodput", logs / "quic-go_aioquic/goodput/2"):
        assert quicsat.out("plot", place, "-p", "offset", draw=draw) == "plots/offset-quic-go_aioquic-goodput.svg\n"
    assert sorted(logs.rglob("*")) == before


def test_a_figure_needs_no_rate_of_the_link(logs: Path, quicsat: CommandLine) -> None:
    run = triple(logs / "quic-go_aioquic/goodput/1")
    assert quicsat.out("plot", run, "-p", "offset", "-o", "out", draw=draw).startswith("out/offset-")


@pytest.mark.parametrize("keys", [True, False])
def test_captures_with_a_key_log_are_repetitions(logs: Path, keys: bool, quicsat: CommandLine) -> None:
    runs = [triple(logs / f"quic-go_aioquic/goodput/{number}") for number in (1, 2)]
    words = [run if keys else run.rpartition(":")[0] for run in runs]
    draws = Draws()
    err = quicsat.err("plot", *words, "-p", "offset", "--link-rate", "20Mbit/s", "-o", "out", draw=draws, status=0)
    [campaign] = draws.requests[0].campaigns
    assert [result.repetition for result in campaign.results.results] == [1, 2]
    assert campaign.results.manifest.test_cases[0].link.forward.rate == 20e6
    goodputs = [result.measurement and result.measurement.values.get("goodput") for result in campaign.results.results]
    assert all(goodput is not None for goodput in goodputs) is keys
    assert ("No response could be decrypted" in err) is not keys


def test_the_capture_at_the_server_may_be_missing(logs: Path, quicsat: CommandLine) -> None:
    left, _, keys = triple(logs / "quic-go_aioquic/goodput/1").split(":")
    (row,) = quicsat.out("analyse", f"{left}:{keys}", "--format", "csv").splitlines()[1:]
    assert row.split(",")[4:9] == ["streams complete", "0.01182", "30000", "streams", "15409309.791332265"]
    assert "The last new byte arrives at the client" in quicsat.out("explain", f"{left}:{keys}")


def test_a_capture_may_be_given_alone(logs: Path, quicsat: CommandLine) -> None:
    left = str(logs / "quic-go_aioquic/goodput/1" / LEFT)
    status, out, err = quicsat("analyse", left, "--format", "csv")
    assert status == 0
    assert out.splitlines()[1].startswith("unknown,unknown,captures,1,unknown,0.01182,")
    assert "No response could be decrypted: key logs are missing" in err
    assert "The client sends its first packet" in quicsat.out("explain", left)


def test_no_event_shows_a_loss_that_is_not_known(logs: Path, quicsat: CommandLine) -> None:
    """Cut records look like other packets than those of the other end."""
    run = logs / "quic-go_aioquic/goodput/1"
    whole = (run / LEFT).read_bytes()
    data = whole[:24]
    for time, length, packet in pieces(whole):
        kept = packet[:600]
        data += struct.pack("<IIII", *divmod(time, MICROSECONDS), len(kept), length) + kept
    (run / LEFT).write_bytes(data)
    out = quicsat.out("explain", run)
    assert "so that the loss could not be measured" in out
    assert "The server sends its last of 29 packets" in out
    assert "lost" not in out


@pytest.mark.parametrize(("content", "reason"), [(b"no capture", "is no trace"), (b"", "has no bytes.")])
def test_packets_of_what_is_no_capture(logs: Path, content: bytes, reason: str, quicsat: CommandLine) -> None:
    run = logs / "quic-go_aioquic/goodput/1"
    (run / LEFT).write_bytes(content)
    fault = f"{run}: The client's trace cannot be used: trace_node_left.pcap {reason}"
    assert fault in quicsat.refusal("packets", run, "6")


def test_a_file_of_captures_that_is_missing(logs: Path, quicsat: CommandLine) -> None:
    for command in (["plot"], ["analyse"], ["explain"], ["packets"]):
        words = [*command, f"{logs}/a.pcap:{logs}/b.pcap", *(["1"] if command == ["packets"] else [])]
        assert f"{logs}/a.pcap, {logs}/b.pcap is no file" in quicsat.refusal(*words, draw=draw)


def test_a_result_file_gives_the_results_and_the_traces_the_runs(logs: Path, quicsat: CommandLine) -> None:
    result_file(logs)
    draws = Draws()
    assert quicsat("plot", logs, draw=draws)[0] == 0
    [campaign] = draws.requests[0].campaigns
    [result] = campaign.results.results
    assert result.measurement is not None
    assert result.measurement.values["goodput"] == 9_501_000
    assert quicsat("plot", logs, "-p", "offset", "-t", "G", draw=draw)[0] == 0
    assert [path.name for path in Path("plots").glob("*.svg")] == ["offset-quic-go_aioquic-G.svg"]


def test_only_selected_runs_are_read(logs: Path, quicsat: CommandLine) -> None:
    foreign_run(logs / "picoquic_quic-go/handshake", output=qir_output(status=1, checked=False))
    draws = Draws()
    assert quicsat("plot", logs, "-p", "offset", "-t", "GOODPUT", "--pair", "quic-go_aioquic", draw=draws)[0] == 0
    assert {result.test_case for result in draws.requests[0].campaigns[0].results.results} == {"goodput"}
    assert "Did you mean goodput?" in quicsat.refusal("plot", logs, "-p", "offset", "-t", "goodputt", draw=draws)


def test_tables_of_the_same_runs(logs: Path, quicsat: CommandLine) -> None:
    assert "goodput,quic-go,aioquic,succeeded,154" in quicsat.out("tables", logs, "--table", "pairs", "--format", "csv")


@pytest.mark.parametrize("table", [name for name in TABLES if name not in ("clusters", "groups")])
def test_every_table_accepts_what_is_not_known(logs: Path, table: str, quicsat: CommandLine) -> None:
    """Results with a rate alone, as those of a result file."""
    result_file(logs)
    assert quicsat("tables", logs / "result.json", "--table", table)[0] == 0


@pytest.mark.parametrize("form", ["directory", "result file above", "triple"])
def test_a_run_is_explained_and_its_packets_are_shown(logs: Path, form: str, quicsat: CommandLine) -> None:
    run = logs / "quic-go_aioquic/goodput/1"
    given = triple(run) if form == "triple" else str(run)
    if form == "result file above":
        result_file(logs)
    first, *events, last = quicsat.out("explain", given).splitlines()
    shown = "unknown_unknown/captures/1: streams complete" if form == "triple" else "quic-go_aioquic/goodput/1: files"
    assert first.startswith(shown)
    assert "no shares of the time" in events[0]
    assert "The client sends its first packet" in events[1]
    assert any("is lost for the first time" in event for event in events)
    assert last.endswith(f"./run.py packets {given} 1 6 37 38")
    assert quicsat("packets", given, "6")[0] in (0, 3)  # 3: tshark is not installed


@pytest.fixture
def qlogs(tmp_path: Path) -> Path:
    """The directory with the exported qlogs of a run."""
    transfer([200_000], Link(loss=0.01)).write(tmp_path / "run")
    traces = read_run(tmp_path / "run", Protocol.HQ, unknown_link(), check_traces(tmp_path / "run", Protocol.HQ))
    place = tmp_path / "qlogs"
    place.mkdir()
    write_qlogs(place, "a_b/sat/1", traces, LinkRun(unknown_link(20e6), None, 1, traces.start))
    return place


def test_the_shares_of_exported_qlogs_are_explained_and_are_a_row(qlogs: Path, quicsat: CommandLine) -> None:
    files = [qlogs / f"{name}.sqlog" for name in ("client", "server", "link")]
    for given in (qlogs, ":".join(map(str, files))):
        assert any(line.startswith("The transfer's ") for line in quicsat.out("explain", given).splitlines())
    header, row = csv.reader(quicsat.out("tables", qlogs, "--table", "time-shares", "--format", "csv").splitlines())
    named = dict(zip(header, row, strict=True))
    assert sum(float(named[f"{share.label} [1]"]) for share in TimeShare) == pytest.approx(1.0)


def test_a_note_tells_why_there_are_no_shares(qlogs: Path, quicsat: CommandLine) -> None:
    """A table without rows has a reason, also with CSV, which has no place for notes."""
    without_link = f"{qlogs / 'client.sqlog'}:{qlogs / 'server.sqlog'}"
    assert "no shares of the time" in quicsat.out("explain", without_link)
    content = (qlogs / "client.sqlog").read_text()  # it no longer shows what was sent on a stream
    (qlogs / "client.sqlog").write_text(content.replace('"frame_type":"stream"', '"frame_type":"ping"'))
    assert "no shares of the time" in quicsat.out("explain", qlogs)
    status, out, err = quicsat("tables", qlogs, "--table", "time-shares", "--format", "csv")
    assert (status, len(out.splitlines())) == (0, 1)
    assert "1 run has no shares" in err


def exported_capture(path: Path) -> bytes:
    """The content of a capture of both ends, written to ``path``."""
    run = path.with_name("run")
    transfer([200_000], Link(loss=0.01)).write(run)
    secrets = "\n".join(key_lines(*(run / log for log in KEY_LOGS))).encode()
    ends = [CapturedEnd(role, partial(records, run / TRACES[role])) for role in Role]
    with path.open("wb") as file:
        write_pcapng(file, secrets, ends)
    return path.read_bytes()


def test_an_exported_capture_has_one_clock(tmp_path: Path) -> None:
    """As the qlogs of the run; of a capture that others merged, the offset of the clocks is estimated."""
    content = exported_capture(tmp_path / "run.pcapng")
    (tmp_path / "merged.pcapng").write_bytes(content[:16] + b"\xff" * 8 + content[24:])  # a section of unknown length
    found = list[float]()
    for name in ("run.pcapng", "merged.pcapng"):
        with ExitStack() as closing:
            run = foreign_inputs.one_run(Program(ROOT, closing=closing), tmp_path / name)
            assert run is not None
            found.append(examine(run, None, tmp_path / "series" / name).values["clock_uncertainty"])
    exact, estimated = found
    assert exact == 0 < estimated


def test_a_qlog_that_is_named_twice_is_refused(qlogs: Path, quicsat: CommandLine) -> None:
    client = qlogs / "client.sqlog"
    assert "names a file twice" in quicsat.refusal("explain", f"{client}:{client}")


def test_the_loss_in_the_queue_is_unknown_only_without_a_qlog_of_the_link(qlogs: Path, quicsat: CommandLine) -> None:
    unknown = "the loss in its queue is unknown"
    assert unknown not in quicsat.out("analyse", qlogs)
    assert unknown in quicsat.out("analyse", f"{qlogs / 'client.sqlog'}:{qlogs / 'server.sqlog'}")


def test_a_condition_that_no_run_fulfils_is_named(qlogs: Path, quicsat: CommandLine) -> None:
    select = "tables", qlogs, "--table", "time-shares", "--fact"
    assert "no run matches" in quicsat(*select, "share.recovery>=101")[2]
    assert "no run matches" not in quicsat(*select, "share.recovery>=0")[2]


def test_a_cut_capture_of_both_ends_is_read_as_cut(tmp_path: Path, quicsat: CommandLine) -> None:
    """Also within the type of a block: what is missing is not taken for a failure of the transfer."""
    content = exported_capture(tmp_path / "whole.pcapng")
    assert "missing" not in quicsat.out("analyse", tmp_path / "whole.pcapng")
    assert "cut off" not in quicsat.out("explain", tmp_path / "whole.pcapng")
    for size in (len(content) // 2 | 1, content.rindex(b"\x06\0\0\0") + 2):
        (tmp_path / "cut.pcapng").write_bytes(content[:size])
        told = quicsat.out("explain", tmp_path / "cut.pcapng")
        assert told.count("cut off") == 2
        assert "trace_node" not in told
        assert told.count(" of cut.pcapng is cut off") == 2
        assert "streams incomplete" not in told


def test_of_several_runs_one_must_be_named(logs: Path, quicsat: CommandLine) -> None:
    err = quicsat.refusal("explain", logs)
    assert f"holds 2 runs. Name one of them, such as {logs}/quic-go_aioquic/goodput/1" in err


@pytest.mark.parametrize(
    "content", ["{", '{"servers": 5, "clients": []}', '{"servers": ["a"], "clients": ["b"]}', "[]"]
)
@pytest.mark.parametrize("command", [["plot", "-p", "offset"], ["tables", "--table", "runs"]])
def test_a_bad_result_file_does_not_hide_the_traces(
    logs: Path, command: list[str], content: str, quicsat: CommandLine
) -> None:
    (logs / "result.json").write_text(content)
    status, out, err = quicsat(command[0], logs, *command[1:], draw=draw)
    assert status == 0
    assert "goodput" in out
    assert f"{logs}/result.json" in err


@pytest.mark.parametrize("command", [["show"], ["site", "-o", "built"], ["resume"], ["analyse"]])
def test_a_result_file_of_another_runner_names_the_command_that_reads_it(
    logs: Path, command: list[str], quicsat: CommandLine
) -> None:
    result_file(logs)
    assert f"./run.py tables {logs}/result.json" in quicsat.refusal(command[0], logs / "result.json", *command[1:])


@pytest.mark.parametrize("command", [["show"], ["site", "-o", "built"]])
def test_logs_of_another_runner_name_the_command_that_reads_them(
    logs: Path, command: list[str], quicsat: CommandLine
) -> None:
    assert f"./run.py analyse {logs}" in quicsat.refusal(command[0], logs, *command[1:])


def test_the_trace_of_the_client_alone_is_explained_and_drawn(logs: Path, quicsat: CommandLine) -> None:
    run = logs / "quic-go_aioquic/goodput/1"
    (run / RIGHT).unlink()
    out = quicsat.out("explain", run)
    assert "The last new byte arrives at the client" in out
    assert "lost" not in out
    assert quicsat("plot", run, "-p", "offset", draw=draw)[0] == 0
    assert "that of the server is missing" in quicsat.refusal("plot", run, "-p", "rtt", draw=draw)


def test_a_frame_behind_the_cut_of_a_capture_costs_no_other_frame(logs: Path, quicsat: CommandLine) -> None:
    run = logs / "quic-go_aioquic/goodput/1"
    (run / LEFT).write_bytes((run / LEFT).read_bytes()[:-20])
    for given in (str(run), triple(run)):
        status, out, err = quicsat("packets", given, "6", "38")
        assert status == 2
        assert out.startswith("frame 6\n")
        assert "no QUIC packets in these frames: 38." in err


def test_nights_are_told_apart(logs: Path, quicsat: CommandLine) -> None:
    """In the table, in its notes, and where they become repetitions."""
    for night in ("monday", "tuesday"):
        foreign_run(logs.parent / f"nights/{night}/a_b/goodput", output=qir_output())
        (logs.parent / f"nights/{night}/a_b/goodput" / RIGHT).unlink()
    rows = quicsat.out("analyse", logs.parent / "nights", "--format", "csv").splitlines()
    assert [row.split(",")[0] for row in rows] == ["directory", "monday", "tuesday"]
    assert "monday/a_b/goodput: The server's trace cannot be used" in quicsat.out("analyse", logs.parent / "nights")
    err = quicsat.err("tables", logs.parent / "nights", "--table", "runs", status=0)
    assert "tuesday/a_b/goodput: The server's trace cannot be used" in err


def test_captures_are_shown_by_the_names_that_were_given(logs: Path, quicsat: CommandLine) -> None:
    given = triple(logs / "quic-go_aioquic/goodput/1")
    out = quicsat.out("analyse", given)
    assert out.startswith(f"{given}: 1 run\n")
    assert "quicsat-" not in out
