"""The sequence diagram and the flow control of a run, from traces and from series."""

import numpy as np
import pytest

from quicsat.analysis.time_shares import Stretches
from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.implementation import Protocol
from quicsat.model.time_shares import TimeShare
from quicsat.site import sequence
from quicsat.site.packets import pack, unpack
from quicsat.site.time_share_band import time_share_columns
from quicsat.traces.congestion import Recovery
from quicsat.traces.run_traces import RunTraces, check_traces, read_run
from quicsat.traces.series import Samples
from tests.series_builder import Transfer, series
from tests.simulated import Link, transfer

DELAY = 0.05
SIZE = 300_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunTraces, Link]:
    """300 kB with losses, between two endpoints of aioquic."""
    link = Link(delay=DELAY, loss=0.03)
    directory = tmp_path_factory.mktemp("run")
    transfer([SIZE], link, seed=5).write(directory)
    known = EmulatedLink.symmetric("simple-p2p", Direction(link.delay, link.rate, link.queue))
    return read_run(directory, Protocol.HQ, known, check_traces(directory, Protocol.HQ)), link


def test_the_diagram_has_every_datagram_and_what_became_of_it(run: tuple[RunTraces, Link]) -> None:
    traces, link = run
    made = sequence.of_traces(traces)
    assert made is not None
    found = unpack(sequence.encode(made))
    for way in (0, 1):
        assert len(found[f"size_{way}"]) == link.sent[way]
        assert (np.diff(found[f"time_{way}"]) >= 0).all()
        fate = np.round(found[f"fate_{way}"] / sequence.PRECISION)
        assert (fate == sequence.LOST).sum() == pytest.approx(link.lost[way], abs=1)
        delay = found[f"arrival_{way}"] - found[f"time_{way}"][fate == 0]
        assert delay.min() == pytest.approx(DELAY, abs=0.001)


def test_the_diagram_has_the_frames(run: tuple[RunTraces, Link]) -> None:
    made = sequence.of_traces(run[0])
    frames = made.frames
    assert (np.diff(frames.row) >= 0).all()
    firsts = np.unique(frames.row, return_index=True)[1]
    assert (frames.kind[firsts] >= sequence.PACKET).all()
    assert frames.kind[0] == sequence.PACKET  # the client's first Initial
    streams = frames.kind & ~sequence.FIN == sequence.STREAM
    last = streams & (made.way[frames.row] == 1) & (frames.a == 0)
    assert (frames.b + frames.c)[last].max() == SIZE
    assert (frames.kind[last] & sequence.FIN).any()
    acks = frames.kind == sequence.ACK
    assert (frames.b[acks] <= frames.a[acks]).all()
    assert frames.c[acks].max() > 1  # losses leave gaps


def test_the_file_has_the_frames_of_each_side_by_kind(run: tuple[RunTraces, Link]) -> None:
    made = sequence.of_traces(run[0])
    frames, found = made.frames, unpack(sequence.encode(made))
    for way in (0, 1):
        ours = np.flatnonzero(made.way[frames.row] == way)
        assert found[f"kind_{way}"].tolist() == frames.kind[ours].tolist()
        assert found[f"frames_{way}"].sum() == len(ours)
        ordered = ours[np.argsort(frames.kind[ours], kind="stable")]
        whole = found[f"a_{way}"] + found[f"a_high_{way}"] * (1 << sequence.BITS)
        assert whole.tolist() == frames.a[ordered].tolist()
        assert found[f"c_{way}"].tolist() == frames.c[ordered].tolist()


def test_the_limit_is_above_what_was_sent(run: tuple[RunTraces, Link]) -> None:
    columns = {each.name: each.values for each in sequence.flow_control(run[0])}
    sent, limit = columns["flow_sent_value"], columns["flow_limit_value"]
    assert sent[-1] == pytest.approx(SIZE, rel=0.01)
    at = np.interp(columns["flow_sent_time"], columns["flow_limit_time"], limit)
    assert (sent <= at + 1).all()
    assert (np.diff(limit) >= 0).all()


def test_the_band_has_the_share_that_took_most_of_each_part_of_the_time() -> None:
    found = Stretches(np.array([0.0, 1.0, 1.0005, 2.0, 3.0]), np.array([0, 5, 3, 2]))
    columns = unpack(pack(time_share_columns(found, found.seconds)))
    assert columns["share"].tolist() == [0, 3, 2, 2]
    assert columns["share_time"] == pytest.approx([0, 1.0, 2.0, 3.0], abs=0.001)
    assert columns["share_seconds"][:6] == pytest.approx([1.0, 0, 1.0, 0.9995, 0, 0.0005], abs=1e-4)


@pytest.mark.parametrize(("differs", "band"), [(0.01, True), (0.05, False)])
def test_the_stored_shares_are_shown_and_a_band_only_if_it_agrees(differs: float, band: bool) -> None:
    found = Stretches(np.array([0.0, 1.0, 3.0]), np.array([0, 2]))
    stored = found.seconds | {TimeShare.HANDSHAKE: 1.0 - differs, TimeShare.SLOW_START: differs}
    columns = unpack(pack(time_share_columns(found, stored)))
    assert columns["share_seconds"][:4] == pytest.approx([1.0 - differs, 0, 2.0, differs], abs=1e-4)
    assert ("share" in columns) is band
    assert [each.name for each in time_share_columns(None, stored)] == ["share_seconds"]
    assert time_share_columns(found, {}) == []


def test_without_traces_the_series_tell_datagrams_and_responses() -> None:
    made = sequence.of_series(series(Transfer(lost=[3, 4])))
    assert np.isclose(made.delay, sequence.LOST * sequence.PRECISION).sum() == 2
    streams = made.frames.kind == sequence.STREAM
    assert streams.sum() == 102
    assert made.way[made.frames.row[streams]].all()
    assert made.frames.b[streams].max() == 99_000


def test_a_long_run_is_shown_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence, "MOST", 50)
    made = sequence.of_series(series())
    assert len(made.time) == 50
    assert made.frames.row.max() < 50


def test_states_of_the_congestion_control_point_to_their_words() -> None:
    nothing = Samples.of()
    columns, texts = sequence.congestion(
        Recovery(nothing, nothing, np.array([0.5]), ((0.1, "a"), (0.2, "b"), (0.3, "a")))
    )
    found = {each.name: each.values.tolist() for each in columns}
    assert [texts[number] for number in found["state_text"]] == ["a", "b", "a"]
    assert found["given_up_time"] == [0.5]
