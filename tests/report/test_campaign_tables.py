"""Tables of campaigns: the definitions of goodput stand side by side."""

import random
from dataclasses import replace

import pytest

from quicsat.model.family import Family, SweptValue
from quicsat.model.results import Measurement
from quicsat.report import campaign_tables
from quicsat.report.table import render
from tests.results_builder import SAT, result_set, runs, virtual_only


def test_pairs_show_both_goodputs() -> None:
    one, other, failed = runs(8e6, 6e6, None)
    measured = [
        replace(one, measurement=Measurement({"goodput": 8e6, "stream_goodput": 9e6})),
        replace(other, measurement=Measurement({"goodput": 6e6, "stream_goodput": 8e6})),
    ]
    table = campaign_tables.pairs(result_set([*measured, failed]), [SAT])
    names = [column.name for column in table.columns]
    [row] = table.rows
    assert row[names.index("mean")] == 7e6
    assert row[names.index("stream goodput")] == 8.5e6
    assert "stream goodput [Mbit/s]" in render(table, "text")
    assert row[names.index("fragile")] == "yes"
    [_, goodput, stream] = table.notes
    assert "The goodput (mean" in goodput
    assert "from the first to the last 1-RTT packet" in goodput
    assert "time from the first to the last new byte of the streams" in stream


def test_pairs_that_hold_in_virtual_time_only_have_a_column() -> None:
    measured = result_set([*runs(8e6), *runs(8e6, client="quinn")], clients=("quiche", "quinn"))
    table = campaign_tables.pairs(virtual_only(measured, "quinn"), [SAT])
    assert table.columns[-1].name == "virtual only"
    assert [row[-1] for row in table.rows] == ["", "yes"]
    plain = campaign_tables.pairs(virtual_only(measured), [SAT])
    assert (len(plain.columns), len(plain.notes)) == (len(table.columns) - 1, len(table.notes) - 1)


def test_without_a_readable_stream_there_is_no_stream_goodput() -> None:
    [one] = runs(8e6)
    table = campaign_tables.pairs(result_set([replace(one, measurement=Measurement({"goodput": 8e6}))]), [SAT])
    [row] = table.rows
    assert row[4:6] == (8e6, None)


def test_families_show_values_means_and_intervals() -> None:
    family = Family("lossy", "LOS", (SweptValue("loss", "5 %", 0.05, "%", 0.01), SweptValue("delay", "1 s", 1.0, "s")))
    member = replace(SAT, name="lossy@loss=5pct", abbreviation="LOS@5pct", family=family)
    results = result_set(runs(8e6, 2e6, None, test_case=member.name), test_cases=(SAT, member))
    table = campaign_tables.families(results, [SAT, member])
    [row] = table.rows
    assert row[:4] == ("lossy", "loss 5 %, delay 1 s", "picoquic", "quiche")
    assert row[4] == pytest.approx(4e6)
    low, high = row[5:7]
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert low * high == pytest.approx(16e12)
    assert row[-2:] == (2, 3)


@pytest.mark.parametrize("factor", [1.0, 0.2])
def test_shares_of_variance_have_no_intervals_with_an_outlier(factor: float) -> None:
    rng, names = random.Random(1), tuple(f"s{number}" for number in range(6))
    spread = {name: rng.lognormvariate(0, 0.05) * (factor if name == "s3" else 1.0) for name in names}
    results = [
        each
        for server in names
        for client in ("a", "b", "c")
        for each in runs(*(5e6 * spread[server] * rng.lognormvariate(0, 0.02) for _ in range(3)), server=server,
                         client=client)
    ]  # fmt: skip
    table = campaign_tables.variance(result_set(results, servers=names, clients=("a", "b", "c")), (SAT,))
    lows = {row[3] is None for row in table.rows}
    assert lows == {factor < 1}
    assert any("server s3" in note for note in table.notes) is (factor < 1)
