"""Times of objects: made-up series with numbers of pencil and paper, and recorded runs."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from quicsat.analysis.metrics import METRICS
from quicsat.analysis.objects import blocked, in_its_stream, object_metrics, object_times
from quicsat.config.workloads import load_workloads
from quicsat.model.results import ObjectTimes
from quicsat.model.workload import ObjectType, RequestOrder, Workload, WorkloadFiles
from quicsat.traces.series import Requests, Series, StreamData, load
from tests.engine.conftest import ROOT
from tests.series_builder import series

DATA = Path(__file__).parents[1] / "data"
OURS = load_workloads(ROOT / "testcases/workloads")
CONCURRENT = Workload("", RequestOrder.CONCURRENT)

Frame = tuple[float, int, int, int]
"""Time, stream, offset and length."""


def data(frames: Sequence[Frame], connection: int = 0) -> StreamData:
    times, streams, offsets, lengths = zip(*frames, strict=True)
    count = len(frames)
    return StreamData.of(
        time=times, stream=streams, offset=offsets, length=lengths, number=range(count), new=lengths,
        connection=[connection] * count,
    )  # fmt: skip


def made(sent: Sequence[Frame], arrived: Sequence[Frame], requests: dict[int, tuple[float, float, float]]) -> Series:
    begin, first, last = zip(*requests.values(), strict=True)
    count = len(requests)
    return replace(
        series(), sent=data(sent), arrived=data(arrived),
        requests=Requests.of(
            connection=[0] * count, stream=list(requests), sent=begin, arrived=begin, first_byte=first, last_byte=last
        ),
    )  # fmt: skip


SENT = [(1.0, 0, 0, 100), (1.1, 4, 0, 50), (1.2, 0, 100, 100), (1.3, 4, 50, 50)]
# The first packet is lost and sent again.
ARRIVED = [(2.1, 4, 0, 50), (2.2, 0, 100, 100), (2.3, 4, 50, 50), (3.0, 0, 0, 100)]
TWO = made(SENT, ARRIVED, {0: (0.5, 2.2, 3.0), 4: (0.6, 2.1, 2.3)})


def test_times_of_two_objects_of_which_one_waits_for_a_lost_packet() -> None:
    first, second = object_times(TWO, (100, 200), CONCURRENT)
    assert (first.size, first.requested, first.first_byte, first.finished) == (200, 0.5, 2.2, 3.0)
    assert second.size == 100
    assert second.duration == pytest.approx(1.7)
    assert first.blocked == pytest.approx(0.8)
    assert second.blocked == 0


def test_metrics_of_two_objects() -> None:
    found = object_metrics(TWO, object_times(TWO, (100, 200), CONCURRENT))
    assert found.keys() <= {metric.name for metric in METRICS}
    assert found["object_time_median"] == pytest.approx((2.5 + 1.7) / 2)
    assert found["response_time_median"] == pytest.approx((1.7 + 1.5) / 2)
    assert found["head_of_line_blocking"] == pytest.approx(0.4)
    # In one stream, the second object would wait from 2.1 to 3.0, and the first one from 2.2.
    assert found["head_of_line_blocking_one_stream"] == pytest.approx((0.9 + 0.8) / 2)


def test_without_loss_nothing_waits_in_one_stream_either() -> None:
    arrived = [(time + 1, stream, offset, length) for time, stream, offset, length in SENT]
    one = made(SENT, arrived, {0: (0.5, 2.0, 2.2), 4: (0.6, 2.1, 2.3)})
    found = object_metrics(one, object_times(one, (100, 200), CONCURRENT))
    assert found["head_of_line_blocking"] == found["head_of_line_blocking_one_stream"] == 0


def test_a_packet_that_is_sent_again_may_hold_pieces_of_several() -> None:
    sent = [(1.0, 0, 0, 100), (1.1, 4, 0, 50), (1.2, 0, 100, 100), (1.5, 0, 50, 150)]
    arrived = [(2.0, 0, 0, 100), (2.1, 4, 0, 50), (2.5, 0, 50, 150)]
    one = made(sent, arrived, {0: (0.5, 2.0, 2.5), 4: (0.6, 2.1, 2.1)})
    one = replace(one, sent=replace(one.sent, new=np.array([100, 50, 100, 0])))
    found = object_metrics(one, object_times(one, (50, 200), CONCURRENT))
    assert found["head_of_line_blocking"] == found["head_of_line_blocking_one_stream"] == 0


@pytest.mark.parametrize("name", ["objects", "page-p25", "chromium-page"])
def test_one_stream_never_blocks_for_less(name: str) -> None:
    stored = load(DATA / name if name == "chromium-page" else DATA / "workloads" / name)
    assert stored is not None
    files = OURS["page-p25" if name == "chromium-page" else name]
    found = object_metrics(stored, object_times(stored, files.file_sizes, files.workload))
    assert found["head_of_line_blocking_one_stream"] >= found["head_of_line_blocking"]


def test_what_never_comes_blocks_for_no_known_time() -> None:
    assert blocked(data([(1.0, 0, 10, 10)]), in_its_stream) == {(0, 0): 0.0}


def test_objects_are_told_by_their_sizes_and_further_streams_left_out() -> None:
    frames = [(1.0, 0, 0, 220), (1.1, 4, 0, 110), (1.2, 8, 0, 30)]
    page = Workload("", RequestOrder.ORDERED, (0, 1), (ObjectType.HTML, ObjectType.IMAGE))
    one = made(frames, frames, {0: (0.5, 1.0, 1.0), 4: (1.05, 1.1, 1.1), 8: (1.1, 1.2, 1.2)})
    found = object_times(one, (200, 100), page)
    assert [(each.size, each.type) for each in found] == [(200, ObjectType.HTML), (100, ObjectType.IMAGE)]
    assert object_times(one, (200, 100, 50), replace(page, types=(*page.types, ObjectType.IMAGE))) == ()
    assert object_times(one, (1, 2, 3, 4), CONCURRENT) == ()
    assert object_metrics(one, ()) == {}


def test_a_recorded_transfer_of_many_files() -> None:
    stored = load(DATA / "many")
    lengths = [int(stored.arrived.new[stored.arrived.stream == stream].sum()) for stream in stored.requests.stream]
    sizes = [length for length in lengths if length]  # one stream carries no data
    found = object_times(stored, sizes, CONCURRENT)
    assert len(found) == len(sizes) > 2
    assert [each.size for each in found] == sizes
    assert [each for each in found if not 0 <= each.requested < each.first_byte <= each.finished] == []


# ---- recorded runs of real stacks ------------------------------------------------------------


def recorded(name: str, workload: WorkloadFiles) -> tuple[ObjectTimes, ...]:
    stored = load(DATA / "workloads" / name)
    assert stored is not None
    found = object_times(stored, workload.file_sizes, workload.workload)
    assert sorted(each.size for each in found) == sorted(workload.file_sizes)
    assert all(each.requested < each.first_byte <= each.finished for each in found)
    return found


def test_recorded_requests_and_responses_take_a_round_trip_each() -> None:
    found = recorded("request-response", OURS["request-response"])
    assert [each.duration for each in found] == pytest.approx([0.6] * 20, abs=0.01)
    assert_one_after_another(found)


def test_recorded_objects_one_after_another() -> None:
    assert_one_after_another(recorded("objects-sequential", OURS["objects-sequential"]))


def assert_one_after_another(found: Sequence[ObjectTimes]) -> None:
    for one, two in pairwise(found):
        assert 0 <= two.requested - one.finished < 0.02


def test_recorded_objects_at_once() -> None:
    found = recorded("objects", OURS["objects"])
    asked = [each.requested for each in found]
    assert max(asked) - min(asked) < 0.05


def test_recorded_sizes_over_connections_of_their_own() -> None:
    sizes = replace(OURS["sizes"], file_sizes=(10_000, 100_000, 1_000_000, 10_000_000))
    found = recorded("sizes", sizes)
    assert [each.size for each in found] == list(sizes.file_sizes)
    assert [each.duration for each in found] == sorted(each.duration for each in found)
    for one, two in pairwise(found):
        assert two.requested >= one.finished
    for each in found:  # a handshake and a request take two round trips
        assert 1.2 <= each.first_byte - each.requested < 1.3


def test_a_recorded_page_asks_for_objects_after_those_that_name_them() -> None:
    page = OURS["page-p25"]
    found = recorded("page-p25", page)
    ends: dict[ObjectType, list[float]] = {}
    for each in found:
        assert each.type is not None
        ends.setdefault(each.type, []).append(each.finished)
    [html] = ends[ObjectType.HTML]
    assert all(each.requested >= html for each in found if each.type is not ObjectType.HTML)
    fonts = sorted(each.requested for each in found if each.type is ObjectType.FONT)
    assert fonts[0] >= min(ends[ObjectType.CSS])
    late = sorted((each.requested for each in found if each.type is ObjectType.SCRIPT), reverse=True)[:4]
    assert min(late) >= min(ends[ObjectType.SCRIPT])
