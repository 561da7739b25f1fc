"""Tables of campaigns: the definitions of goodput stand side by side."""

from __future__ import annotations

from dataclasses import replace

from interop.model.results import Measurement
from interop.report import campaign_tables
from interop.report.table import render
from tests.results_builder import SAT, result_set, runs


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
    [note] = table.notes
    assert "Goodput (mean" in note
    assert "from the first to the last 1-RTT packet" in note
    assert "stream goodput: over the time from the first to the last new byte of the streams" in note


def test_without_a_readable_stream_there_is_no_stream_goodput() -> None:
    [one] = runs(8e6)
    table = campaign_tables.pairs(result_set([replace(one, measurement=Measurement({"goodput": 8e6}))]), [SAT])
    [row] = table.rows
    assert row[4:6] == (8e6, None)
