"""The compact file of a run's packets."""

import re
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest

from quicsat.site.packets import TICK, PackedColumn, encode, pack, script, unpack
from quicsat.traces.series import Requests
from tests.series_builder import Transfer, series


def test_a_script_has_nothing_but_the_packed_file() -> None:
    packed = pack([PackedColumn("a", np.arange(300.0), 1.0)])
    found = re.fullmatch(rb'packetFile\.take\("([A-Za-z0-9+/]+=*)"\);\n', script(packed))
    assert b64decode(found[1]) == packed


def test_what_is_packed_is_unpacked() -> None:
    values = np.array([0, 1, -5, 2**31 - 1, -(2**31) + 1, 7])
    steps = np.array([3, 3, 2_000_000_000, 0, 1])
    found = unpack(
        pack([PackedColumn("a", steps, 1.0), PackedColumn("b", np.array([]), 1.0), PackedColumn("c", values[:3], 0.5)])
    )
    assert found["a"].tolist() == steps.tolist()
    assert found["b"].tolist() == []
    assert found["c"].tolist() == [0, 1, -5]


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no numbers"):
        pack([PackedColumn("a", np.array([1.0, np.nan]), 1.0)])


def test_a_run_is_told_to_a_tick() -> None:
    run = series(Transfer(lost=[3, 4]))
    found = unpack(encode(run))
    assert np.abs(found["sent_time"] - run.sent.time).max() <= TICK
    assert found["sent_offset"].tolist() == run.sent.offset.tolist()
    assert found["sent_again"].astype(bool).tolist() == run.sent.retransmission.tolist()
    assert found["forward_lost"].sum() == 2
    assert found["request_sent"].tolist() == pytest.approx([0.6])
    assert found["rate_goodput_value"].max() == pytest.approx(0.8e6, rel=0.05)


def test_packet_numbers_begin_with_the_request_and_the_response() -> None:
    run = series(Transfer())
    found = unpack(encode(run))
    assert found["back_time"][0] == pytest.approx(run.requests.sent[0])
    assert len(found["back_time"]) == len(run.back) - 1
    silent = replace(run, requests=Requests.of(stream=[], sent=[], arrived=[], first_byte=[], last_byte=[]))
    assert len(unpack(encode(silent))["back_time"]) == len(run.back)


def test_thinned_runs_keep_their_extremes_and_are_smaller() -> None:
    run = series(Transfer(size=10_000_000, piece=1000, rate=5e6))
    full, thin = encode(run), encode(run, most=500)
    assert len(thin) < len(full)
    assert len(unpack(thin)["sent_time"]) <= 501
    assert unpack(thin)["in_flight_value"].max() == run.in_flight.value.max()


def test_ten_thousand_packets_take_little_space() -> None:
    assert len(encode(series(Transfer(size=10_000_000, piece=1000, rate=5e6)))) < 100_000


def test_columns_that_resemble_each_other_cost_little_more_than_one() -> None:
    times = np.cumsum(np.random.default_rng(1).exponential(0.001, 8000))
    one = len(pack([PackedColumn("a", times, TICK)]))
    assert len(pack([PackedColumn(name, times, TICK) for name in "ab"])) < 1.1 * one
