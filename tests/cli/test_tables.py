"""``./run.py tables``: every table of stored campaigns, in every format."""

from pathlib import Path

import pytest

from quicsat.results.store import write_result_json
from tests.cli.conftest import CommandLine
from tests.results_builder import result_set, runs


def test_summary_is_the_default_table(places: list[str], quicsat: CommandLine) -> None:
    assert "10.45" in quicsat.out("tables", places[0])


def test_tables_in_csv(places: list[str], quicsat: CommandLine) -> None:
    lines = quicsat.out("tables", places[0], "--table", "pairs", "--format", "csv", "-t", "SATL").splitlines()
    assert lines[1].startswith("SATL,picoquic,quiche,succeeded,2612500.0,")
    assert len(lines) == 2


def test_several_campaigns_are_shown_over_time(places: list[str], quicsat: CommandLine) -> None:
    assert "2 campaigns" in quicsat.out("tables", *places)


def test_the_last_table_tells_virtual_time(places: list[str], other_clock: str, quicsat: CommandLine) -> None:
    words = ("--table", "pairs", "summary", "--format", "markdown")
    assert "virtual time" not in quicsat.out("tables", places[0], *words)
    lines = quicsat.out("tables", other_clock, *words).splitlines()
    assert [line for line in lines if "virtual time" in line] == [lines[-1]]


@pytest.mark.parametrize("table", ["congestion", "implementations", "variance", "clusters", "attempts", "negotiated"])
def test_every_table_can_be_had(table: str, places: list[str], quicsat: CommandLine) -> None:
    assert quicsat.out("tables", places[0], "--table", table, "-t", "SAT", "SATL")


def test_pairs_without_a_number_are_counted_even_if_their_server_has_none(tmp_path: Path, quicsat: CommandLine) -> None:
    names = ("a", "b", "c")
    rates = {"a": 1e6, "b": 2e6, "c": None}
    results = [
        run
        for server, rate in rates.items()
        for number, client in enumerate(names)
        for run in runs(rate and rate + number**2 * 1e5, server=server, client=client)
    ]
    write_result_json(tmp_path, result_set(results, servers=names, clients=names))
    told = " ".join(quicsat.out("tables", tmp_path, "--table", "variance", "implementations").split())
    assert "Pairs without a successful repetition are not included: 3 in SAT." in told
    assert "With only one repetition, the interval generalises only to other partners, for the same seed." in told
