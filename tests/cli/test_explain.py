"""``./run.py explain`` tells what happened in a run."""

import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.analysis.endpoint_log_tail import quote
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import Measurement
from quicsat.results.store import load, write_result_json
from quicsat.traces.key_log import key_lines
from quicsat.traces.run_traces import CLIENT_TRACE, KEY_LOGS
from quicsat.traces.trace import read
from tests.cli.conftest import ROOT, CommandLine
from tests.results_builder import SAT, result_set, run_result, virtual_only

REASON = "The client ended with exit status 1 instead of 0."
DATA = ROOT / "tests" / "data"
SEE = "To see these frames of the client's trace: "


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """Three runs: one with traces, one with a damaged file of series, one without files."""
    bad = {"outcome": Outcome.FAILED, "code": ErrorCode.CLIENT_FAILED, "reason": REASON}
    results = [run_result(None, repetition=number, **bad) for number in (1, 2, 3)]  # type: ignore[arg-type]
    place = tmp_path / "my campaign"
    shutil.copytree(DATA / "lossy", place / "picoquic_quiche/sat/1")
    (place / "picoquic_quiche/sat/2").mkdir()
    (place / "picoquic_quiche/sat/2/series.parquet").write_bytes(b"PAR1")
    write_result_json(place, result_set(results, repetitions=3))
    return place


@pytest.mark.parametrize("place", ["picoquic_quiche/sat/1", "picoquic_quiche", "picoquic_quiche/sat/1/sim"])
def test_a_part_of_a_campaign_is_not_analysed_as_logs_of_another_runner(
    place: str, campaign: Path, quicsat: CommandLine
) -> None:
    """What the campaign knows, such as the link, would be left out."""
    err = quicsat.refusal("analyse", campaign / place)
    assert f"is a part of the campaign {campaign}" in err


def test_a_run_with_traces(campaign: Path, quicsat: CommandLine) -> None:
    run = campaign / "picoquic_quiche/sat/1"
    lines = quicsat.out("explain", run).splitlines()
    assert lines[:2] == ["picoquic_quiche/sat/1: failed (client-failed)", REASON]
    assert "    0.000 s  The client sends its first packet; it arrives after" in lines[2]
    assert any("The first byte of a response arrives at the client, in packet number" in line for line in lines)
    assert lines[-2] == "The transfer took 20.0 s, the client ended with exit status 1."
    assert lines[-1].startswith(SEE)
    program, *words = shlex.split(lines[-1].removeprefix(SEE))
    assert (program, *words[:2]) == ("./run.py", "packets", str(run))
    assert 8 <= len(lines) <= 14
    assert len(words) >= 5
    assert quicsat(*words)[0] in (0, 3)  # 3: tshark is not installed


def test_the_notes_of_a_run(campaign: Path, quicsat: CommandLine) -> None:
    found = run_result(1e6)
    evidence = replace(found.evidence, notes=("A log was cut.",))
    measurement = Measurement({"goodput": 1e6}, ("Server's qlog: zz.qlog is no qlog.",))
    write_result_json(campaign, result_set([replace(found, evidence=evidence, measurement=measurement)]))
    lines = quicsat.out("explain", campaign / "picoquic_quiche/sat/1").splitlines()
    assert {"A log was cut.", "Server's qlog: zz.qlog is no qlog."} <= {*lines}


def test_a_pair_that_holds_in_virtual_time_only(campaign: Path, quicsat: CommandLine) -> None:
    run = campaign / "picoquic_quiche/sat/1"
    assert "in virtual time only" not in quicsat.out("explain", run)
    write_result_json(campaign, virtual_only(load(campaign).result_set, "quiche"))
    assert "This pair holds in virtual time only: " in quicsat.out("explain", run)


@pytest.mark.parametrize(
    ("goodputs", "fragile"), [((5e6, 5e6, 4e6), True), ((5e6, 5e6, 4.9e6), False), ((5e6,), False)]
)
def test_a_fragile_pair_is_named_with_its_range(
    goodputs: tuple[float, ...], fragile: bool, tmp_path: Path, quicsat: CommandLine
) -> None:
    results = [run_result(goodput, repetition=number) for number, goodput in enumerate(goodputs, start=1)]
    (tmp_path / "picoquic_quiche/sat/1").mkdir(parents=True)
    write_result_json(tmp_path, result_set(results))
    out = quicsat.out("explain", tmp_path / "picoquic_quiche/sat/1")
    assert ("fragile" in out) is fragile
    assert ("4.00 Mbit/s to 5.00 Mbit/s" in out) is fragile


def test_a_long_reason_is_whole_and_a_cut_line_of_an_endpoint_has_its_file(
    tmp_path: Path, quicsat: CommandLine
) -> None:
    run = tmp_path / "picoquic_quiche/sat/1"
    run.mkdir(parents=True)
    (run / "output.txt").write_text(f"server | 2026-11-21T06:00:00Z {'x' * 400}\n")
    quoted = quote(Verdict(Outcome.FAILED, ErrorCode.SERVER_EXITED), run_result().evidence, SAT, run)
    reason = f"{REASON}{quoted} {'The path lost packets. ' * 30}This is the cause."
    result = run_result(None, outcome=Outcome.FAILED, code=ErrorCode.CLIENT_FAILED, reason=reason)
    write_result_json(tmp_path, result_set([result]))
    lines = quicsat.out("explain", run).splitlines()
    assert lines[1:3] == [reason, f"The endpoint's line is cut here; all of it is in {run / 'output.txt'}."]
    (run / "output.txt").unlink()
    out = quicsat.out("explain", run)
    assert "The endpoint's line is cut here; the log with all of it is not stored." in out
    assert "output.txt" not in out


def test_a_packet_number_has_its_frame_in_the_clients_trace(campaign: Path, quicsat: CommandLine) -> None:
    run = campaign / "picoquic_quiche/sat/1"
    trace = read(run / CLIENT_TRACE, key_lines(*(run / log for log in KEY_LOGS)))
    out = quicsat.out("explain", run)
    told = re.findall(r"packet number (\d+)\b.*; frame (\d+)\.", out)
    assert len(told) >= 3
    for number, frame in told:
        assert int(number) in trace.number[trace.frame == int(frame)]
    assert {frame for _, frame in told} <= {*out.splitlines()[-1].split()}


@pytest.mark.parametrize(
    ("code", "reason", "last"),
    [
        (ErrorCode.RETRY_TOKEN, "No Initial has the token of the Retry (frames 3, 5).", " 1 3 5 "),
        (ErrorCode.CLIENT_FAILED, 'The client\'s last line: "bad frame 99999".', " 1 "),
        (ErrorCode.AMPLIFICATION, "The server had sent 4000 bytes for 1200 received (frame 6).", " 6 --server "),
        (
            ErrorCode.PATH_RESPONSE_MISSING,
            "The client did not answer it (frames 7, 9, 8 and 4 more).",
            " 7 8 9 --server ",
        ),
        (ErrorCode.ECN, "The client reported 3 packets with CE (frame 4).", " 1 4 "),
    ],
)
def test_frames_that_a_reason_names_are_suggested(
    campaign: Path, quicsat: CommandLine, code: ErrorCode, reason: str, last: str
) -> None:
    run = campaign / "picoquic_quiche/sat/1"
    (run / "series.parquet").unlink()
    result = run_result(None, outcome=Outcome.FAILED, code=code, reason=reason)
    write_result_json(campaign, result_set([result]))
    line = quicsat.out("explain", run).splitlines()[-1]
    assert line.startswith("To see the frames of the server's trace that" if "--server" in last else SEE)
    assert f"{line} ".endswith(f"'{last}")


@pytest.mark.parametrize("number", [2, 3])
def test_a_run_without_series(campaign: Path, number: int, quicsat: CommandLine) -> None:
    logs = campaign / "picoquic_quiche/sat/2/output.txt"
    logs.touch()
    kept = f"no packets of this run; its logs are in {logs}" if number == 2 else "neither packets nor logs of this run"
    status, out, err = quicsat("explain", campaign / f"picoquic_quiche/sat/{number}")
    assert status == 0
    assert out.splitlines() == [
        f"picoquic_quiche/sat/{number}: failed (client-failed)",
        REASON,
        f"quicsat has stored {kept}.",
        "The transfer took 20.0 s, the client ended with exit status 1.",
    ]
    assert bool(err) is (number == 2)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("picoquic_quiche/sat/9", "no such run"),
        ("picoquic_quiche/sat/1.attempt-1", "no such run"),
        ("..", "is in no campaign"),
        ("../gone/sat/1", "gone/sat/1: does not exist. Pass a directory like results/latest/"),
        ("", "is a campaign. Pass the directory of a run. Runs that did not succeed: {0}picoquic_quiche/sat/1, "),
        ("picoquic_quiche", "is no run. Name one of its runs: {0}picoquic_quiche/sat/1, {0}picoquic_quiche/sat/2, "),
        ("picoquic_quiche/sat", "is no run. Name one of its runs: {0}picoquic_quiche/sat/1, "),
    ],
)
def test_what_is_no_run(campaign: Path, place: str, message: str, quicsat: CommandLine) -> None:
    assert message.format(f"{campaign}/") in quicsat.refusal("explain", campaign / place)


def test_a_message_names_only_some_runs(tmp_path: Path, quicsat: CommandLine) -> None:
    write_result_json(tmp_path, result_set([run_result(repetition=number) for number in range(1, 9)], repetitions=8))
    assert quicsat.refusal("explain", tmp_path / "picoquic_quiche").endswith("/sat/5 and 3 more\n")


@pytest.mark.parametrize(
    ("count", "told"),
    [(7, "Its runs: {0}/picoquic_quiche/sat/1, {0}/picoquic_quiche/sat/2, "), (0, "It has no runs yet.")],
)
def test_a_campaign_without_failures_names_some_runs(
    tmp_path: Path, quicsat: CommandLine, count: int, told: str
) -> None:
    write_result_json(tmp_path, result_set([run_result(repetition=number + 1) for number in range(count)]))
    err = quicsat.refusal("explain", tmp_path)
    assert f"is a campaign. Pass the directory of a run. {told.format(tmp_path)}" in err
    assert err.endswith(" and 2 more\n") is (count == 7)


@pytest.mark.parametrize("place", ["server", "output.txt", "client/deep/down"])
def test_what_is_in_a_run(campaign: Path, place: str, quicsat: CommandLine) -> None:
    run = campaign / "picoquic_quiche/sat/1"
    told = quicsat.out("explain", run)
    assert quicsat.out("explain", run / place) == told


def test_an_attempt_that_was_repeated(tmp_path: Path, quicsat: CommandLine) -> None:
    bad, good = run_result(None, attempt=1), run_result(attempt=2)
    write_result_json(tmp_path, replace(result_set([good]), earlier=(bad,)))
    for name, told in (("1.attempt-1", "sat/1, attempt 1: timeout"), ("1", "sat/1: succeeded")):
        assert quicsat.out("explain", tmp_path / "picoquic_quiche/sat" / name).startswith(f"picoquic_quiche/{told}")
