"""The table of objects: groups by size and type, of each pair and of all."""

import pytest

from quicsat.report.object_tables import label_of, objects
from tests.campaign_builder import PAGE, Shape, campaign
from tests.results_builder import SAT, result_set, runs

CAMPAIGN = campaign(Shape(("quic-go", "picoquic"), ("aioquic",), (PAGE,), repetitions=3, failing=0))


def test_rows_of_pairs_and_of_all() -> None:
    table = objects(CAMPAIGN, (PAGE,))
    assert [row[1:3] for row in table.rows] == [
        *[("quic-go", "aioquic")] * 3, *[("picoquic", "aioquic")] * 3, *[("all", "all")] * 3,
    ]  # fmt: skip
    assert [row[-1] for row in table.rows] == [6, 3, 9, 6, 3, 9, 12, 6, 18]
    assert [row[9] for row in table.rows] == pytest.approx([0.6] * 9)
    for row in table.rows:
        assert list(row[4:9]) == sorted(row[4:9], key=lambda value: float(value or 0))


def test_runs_without_objects_have_no_rows() -> None:
    assert objects(result_set(runs(5e6, None)), (SAT,)).rows == ()


def test_labels() -> None:
    assert label_of((10_000, "")) != label_of((10_000, "css"))
    assert label_of((10_240, "css")) == "css, 10 KiB"
