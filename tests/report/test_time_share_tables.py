"""What held pairs up, and the bound of what would be gained without it."""

from dataclasses import replace

import pytest

from quicsat.model.outcomes import Outcome
from quicsat.model.results import Measurement
from quicsat.model.time_shares import TimeShare
from quicsat.model.units import byte_size
from quicsat.report.run_story import help_line
from quicsat.report.time_share_tables import enough_window, shares_of, time_shares, values_of
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
    assert "1 run has no shares" in table.notes[1]
    assert longer[2:8] == ("aioquic", 10.0, "pacing", 0.3, 7.0, "without pacing at least 7.0 s")
    assert shorter[4] == "silence until a PTO"
    assert [shorter[place] for place in (3, 5, 6)] == pytest.approx([9.0, 5 / 18, 6.5])
    names = [column.name for column in table.columns]
    assert names[8:] == [*(share.label for share in TimeShare), "n", "timed out"]
    of_shorter = dict(zip(names, shorter, strict=True))
    expected = {"link at its full rate": 4 / 9, "unknown": 1 / 9, "pacing": 0.0, "n": 2, "timed out": 0}
    assert {name: of_shorter[name] for name in expected} == pytest.approx(expected)


def test_columns_do_not_depend_on_the_runs() -> None:
    """So that a script reads the table of every campaign, also of one without shares, which a note tells."""
    some = time_shares(result_set([replace(run_result(5e6), measurement=values(pto=1.0))]), (SAT,))
    none = time_shares(result_set([run_result(5e6)]), (SAT,))
    assert some.columns == none.columns
    assert not none.rows
    assert "1 run has no shares" in none.notes[0]
    assert time_shares(result_set([run_result(None, outcome=Outcome.FAILED)]), (SAT,)).notes == ()


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
    assert "1 run has no shares" in table.notes[2]


def test_all_large_shares_that_the_endpoints_decide_are_bounds() -> None:
    spent = values(slow_start=2.0, stream_flow_control=1.6, recovery=0.1, full_rate=4.0, handshake=2.0, pacing=0.3)
    run = replace(run_result(5e6), measurement=Measurement({**spent.values, "rtt_min": 0.6}))
    [row] = time_shares(result_set([run]), (SAT,)).rows
    bounds = (
        "without slow start at least 8.0 s; without stream flow control (a window of 1.431 MiB or more) at least 8.4 s"
    )
    assert row[7] == bounds
    assert help_line(shares_of(run), enough_window(values_of(run), SAT.link)) == f"What would help: {bounds}."
    busy = replace(run, measurement=values(full_rate=9.0, recovery=0.2))
    assert help_line(shares_of(busy), 0.0) == ""
    assert time_shares(result_set([busy]), (SAT,)).rows[0][7] == "–"
    assert help_line({}, 0.0) == ""


def test_a_run_without_round_trips_has_the_window_of_the_links_delay() -> None:
    late = replace(run_result(None, outcome=Outcome.TIMEOUT), measurement=values(connection_flow_control=9.0))
    window = byte_size(SAT.link.forward.rate * SAT.link.round_trip_delay / 8)
    [row] = time_shares(result_set([late]), (SAT,)).rows
    assert f"(a window of {window} or more)" in str(row[7])
