"""Runs of another runner as a campaign: figures and tables are made of the same numbers as those of our own runs."""

from pathlib import Path

import pytest

from quicsat.analysis.foreign_campaign import UNKNOWN_END, Given, read_campaign
from quicsat.model.outcomes import Outcome
from quicsat.model.run import RunKey
from quicsat.report.pair_series import load_pairs
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.results.document import StoredResults
from quicsat.results.qir_logs import find_runs
from quicsat.traces.series import load
from tests.foreign_builder import DATA, foreign_run, qir_output

SIZE = 30_000
NOTHING = Given()


def logs(place: Path) -> Path:
    """Three repetitions of a measurement, and a functional test whose client failed."""
    for number in (1, 2, 3):
        foreign_run(place / f"quic-go_aioquic/goodput/{number}", start=number * 1_000_000, output=qir_output())
    foreign_run(place / "picoquic_quic-go/handshake", output=qir_output(status=1, checked=False))
    return place


def campaign(place: Path, target: Path, given: Given = NOTHING) -> StoredResults:
    return read_campaign("logs", find_runs(place).runs, target, given, {}, lambda key: True)


def test_figures_over_runs_show_what_the_traces_hold(tmp_path: Path) -> None:
    """The series are those of the recorded traces; nothing is written to the logs."""
    place = logs(tmp_path / "logs")
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    results = campaign(place, tmp_path / "series").result_set
    request = PlotRequest((CampaignResults("logs", results, tmp_path / "series", foreign=True),), tmp_path)
    pairs = {(pair.server, pair.client): pair for pair in load_pairs(request)}
    good, bad = pairs["quic-go", "aioquic"], pairs["picoquic", "quic-go"]
    assert [run.repetition for run in good.runs] == [1, 2, 3]
    recorded = load(DATA / "lossy")
    for run in (*good.runs, *bad.runs):
        assert run.series.sent.offset.tolist() == recorded.sent.offset.tolist()
        assert run.series.sent.time == pytest.approx(recorded.sent.time, abs=5e-6)
    assert [run.succeeded for run in (*good.runs, *bad.runs)] == [True, True, True, False]
    assert good.forward_rates(good.runs[0], 0.0, 1.0) == [(0.0, 100e6)]
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before


def test_numbers_of_runs(tmp_path: Path) -> None:
    results = campaign(logs(tmp_path / "logs"), tmp_path / "series").result_set.results
    values = [result.measurement.values for result in results if result.measurement is not None]
    assert [result.verdict.outcome for result in results] == [Outcome.FAILED, *[Outcome.SUCCEEDED] * 3]
    for each in values[1:]:
        assert each["goodput"] == pytest.approx(values[1]["goodput"], rel=1e-3)
        assert each["efficiency"] == pytest.approx(each["goodput"] / 100e6)
        assert each["completion_time"] > each["time_to_first_byte"] > each["handshake_time"] > 0


def test_what_a_run_does_not_state_can_be_given(tmp_path: Path) -> None:
    """Without a rate there is no efficiency, and no line of the link."""
    foreign_run(tmp_path / "logs/a_b/sat/1")
    for given, rate in ((NOTHING, 0.0), (Given(SIZE, 20e6), 20e6)):
        results = campaign(tmp_path / "logs", tmp_path / f"series-{rate}", given).result_set
        assert results.manifest.test_cases[0].link.forward.rate == rate
        [result] = results.results
        assert ("efficiency" in result.measurement.values) is bool(rate)


def test_runs_of_the_same_name_are_repetitions_and_names_that_are_none_cost_only_themselves(tmp_path: Path) -> None:
    for tree in ("first", "second"):
        foreign_run(tmp_path / "logs" / tree / "quic-go_aioquic/goodput/1", output=qir_output())
    foreign_run(tmp_path / "logs/\x1b[31m_a/goodput/1")
    foreign_run(tmp_path / "logs/a_b_c/goodput/1")
    found = campaign(tmp_path / "logs", tmp_path / "series")
    assert {result.key for result in found.result_set.results} == {
        RunKey("quic-go", "aioquic", "goodput", 1),
        RunKey("quic-go", "aioquic", "goodput", 2),
        RunKey("a_b_c", UNKNOWN_END, "goodput", 1),
    }
    assert found.warnings[0] == "logs: runs that are left out because their names cannot be shown: 1."
