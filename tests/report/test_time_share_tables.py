"""What held pairs up, and the bound of what would be gained without it."""

from dataclasses import replace

import pytest

from quicsat.model.outcomes import Outcome
from quicsat.model.results import Measurement
from quicsat.model.time_shares import TimeShare
from quicsat.report.run_story import help_line, time_line
from quicsat.report.time_share_tables import time_shares
from tests.results_builder import SAT, result_set, run_result


def values(**spent: float) -> Measurement:
    return Measurement({share.metric: spent.get(share, 0.0) for share in TimeShare})


def test_the_largest_reason_of_each_pair() -> None:
    first = replace(run_result(5e6, repetition=1), measurement=values(full_rate=4.0, pto=1.0, recovery=3.0))
    second = replace(run_result(5e6, repetition=2), measurement=values(full_rate=4.0, pto=4.0, unknown=2.0))
    other = replace(run_result(5e6, client="aioquic"), measurement=values(handshake=6.0, full_rate=1.0, pacing=3.0))
    unknown = run_result(5e6, client="ngtcp2")
    table = time_shares(result_set([other, first, second, unknown]), (SAT,))
    [longer, shorter] = table.rows
    assert "In 2 of 3 runs" in table.notes[0]
    assert list(longer[2:]) == [
        "aioquic",
        10.0,
        "pacing",
        0.3,
        7.0,
        "without pacing at least 7.0 s",
        0.6,
        0.1,
        0.3,
        0.0,
        0.0,
        0.0,
        1,
    ]
    assert shorter[4] == "silence until a PTO"
    numbers = [shorter[place] for place in (3, 5, 6, 9, 13, 14)]
    assert numbers == pytest.approx([9.0, 5 / 18, 6.5, 4 / 9, 1 / 9, 2])
    assert [column.name for column in table.columns[8:]] == [
        "handshake", "link at its full rate", "pacing", "recovery", "silence until a PTO", "unknown", "n",
    ]  # fmt: skip


def test_transfers_that_timed_out() -> None:
    late = replace(
        run_result(None, outcome=Outcome.TIMEOUT), measurement=values(congestion_window=270.0, full_rate=30.0)
    )
    in_time = replace(run_result(5e6, repetition=2), measurement=values(congestion_window=90.0, full_rate=10.0))
    unknown = replace(
        run_result(None, outcome=Outcome.TIMEOUT, repetition=3), measurement=Measurement({"loss_forward": 0.1})
    )
    table = time_shares(result_set([late, in_time, unknown]), (SAT,))
    [row] = table.rows
    assert (row[3], row[4], row[-2:]) == (200.0, "congestion window", (2, 1))
    assert table.columns[-1].name == "timed out"
    assert "1 run timed out" in table.notes[1]
    assert "5 min 0 s until" in time_line(late)
    assert "until" not in time_line(in_time)


def test_all_large_shares_that_the_endpoints_decide_are_bounds() -> None:
    spent = values(slow_start=2.0, stream_flow_control=1.6, recovery=0.1, full_rate=4.0, handshake=2.0, pacing=0.3)
    run = replace(run_result(5e6), measurement=Measurement({**spent.values, "rtt_min": 0.6}))
    [row] = time_shares(result_set([run]), (SAT,)).rows
    bounds = (
        "without slow start at least 8.0 s; without stream flow control (a window of 1.431 MiB or more) at least 8.4 s"
    )
    assert row[7] == bounds
    assert help_line(run, SAT) == f"What would help: {bounds}."
    busy = replace(run, measurement=values(full_rate=9.0, recovery=0.2))
    assert help_line(busy, SAT) == ""
    assert time_shares(result_set([busy]), (SAT,)).rows[0][7] == "–"
    assert help_line(run_result(5e6), SAT) == ""
