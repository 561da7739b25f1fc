"""``./run.py tables``: every table of stored campaigns, in every format."""

from __future__ import annotations

from pathlib import Path

import pytest

from quicsat.cli.main import main
from quicsat.results.store import write_result_json
from tests.cli.conftest import ROOT
from tests.results_builder import result_set, runs


def test_summary_is_the_default_table(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, ["tables", places[0]]) == 0
    assert "10.45" in capsys.readouterr().out


def test_tables_in_csv(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, ["tables", places[0], "--table", "pairs", "--format", "csv", "-t", "SATL"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("SATL,picoquic,quiche,succeeded,2612500.0,")
    assert len(lines) == 2


def test_several_campaigns_are_shown_over_time(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, ["tables", *places]) == 0
    assert "2 campaigns" in capsys.readouterr().out


@pytest.mark.parametrize("table", ["congestion", "implementations", "variance", "clusters"])
def test_every_table_can_be_had(table: str, places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, ["tables", places[0], "--table", table, "-t", "SAT", "SATL"]) == 0
    assert capsys.readouterr().out


def test_pairs_without_a_number_are_counted_even_if_their_server_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("a", "b", "c")
    rates = {"a": 1e6, "b": 2e6, "c": None}
    results = [
        run
        for server, rate in rates.items()
        for number, client in enumerate(names)
        for run in runs(rate and rate + number**2 * 1e5, server=server, client=client)
    ]
    write_result_json(tmp_path, result_set(results, servers=names, clients=names))
    assert main(ROOT, ["tables", str(tmp_path), "--table", "variance", "implementations"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Pairs without a successful repetition are not included: 3 in SAT." in told
    assert "With only one repetition, the interval generalises only to other partners, for the same seed." in told
