"""``./run.py explain`` tells what happened in a run."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from interop.cli.main import main
from interop.model.outcomes import ErrorCode, Outcome
from interop.results.store import write_result_json
from tests.cli.conftest import ROOT
from tests.results_builder import result_set, run_result

REASON = "The client ended with exit status 1 instead of 0."
DATA = ROOT / "tests" / "data"


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """Three runs: one with traces, one with a damaged file of series, one without files."""
    bad = {"outcome": Outcome.FAILED, "code": ErrorCode.CLIENT_FAILED, "reason": REASON}
    results = [run_result(None, repetition=number, **bad) for number in (1, 2, 3)]  # type: ignore[arg-type]
    place = tmp_path / "my campaign"
    shutil.copytree(DATA / "lossy", place / "picoquic_quiche/sat/1")
    (place / "picoquic_quiche/sat/2").mkdir()
    (place / "picoquic_quiche/sat/2/series.parquet").write_bytes(b"PAR1")
    write_result_json(place, result_set(results))
    return place


def test_a_run_with_traces(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = campaign / "picoquic_quiche/sat/1"
    assert main(ROOT, ["explain", str(run)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["picoquic_quiche/sat/1: failed (client-failed)", REASON]
    assert "    0.000 s  The client sends its first packet; it arrives after" in lines[2]
    assert any("The first byte of a response arrives at the client, in packet" in line for line in lines)
    assert lines[-2] == "The transfer took 20.0 s, the client ended with exit status 1."
    assert lines[-1].startswith("To see these packets: ")
    program, *words = shlex.split(lines[-1].removeprefix("To see these packets: "))
    assert (program, *words[:2]) == ("./run.py", "packets", str(run))
    assert 8 <= len(lines) <= 14
    assert len(words) >= 5
    assert main(ROOT, words) in (0, 3)  # 3: tshark is not installed


@pytest.mark.parametrize("number", [2, 3])
def test_a_run_without_series(campaign: Path, number: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, ["explain", str(campaign / f"picoquic_quiche/sat/{number}")]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        f"picoquic_quiche/sat/{number}: failed (client-failed)",
        REASON,
        "quicsat has stored no packets of this run; its logs are in output.txt.",
        "The transfer took 20.0 s, the client ended with exit status 1.",
    ]
    assert bool(err) is (number == 2)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("picoquic_quiche/sat/9", "no such run"),
        ("picoquic_quiche", "is in no campaign"),
        ("", "is a campaign. Pass the directory of a run. Runs that did not succeed:"),
    ],
)
def test_what_is_no_run(campaign: Path, place: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, ["explain", str(campaign / place)]) == 2
    assert message in capsys.readouterr().err
