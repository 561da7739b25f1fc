"""The data set has series of single runs, and the report describes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from interop.model.results import Measurement
from interop.traces.series import FILE_NAME
from scripts.paper.packets import EXPLAINED, KEPT, collect_series, packets
from tests.results_builder import SATLOSS, result_set, run_result


def test_series_of_the_first_seed_are_kept(tmp_path: Path) -> None:
    for campaign in ("matrix-1", "matrix-2"):
        place = tmp_path / "results" / campaign / EXPLAINED.path
        place.mkdir(parents=True)
        (place / FILE_NAME).write_text(campaign)
    other = tmp_path / "data" / "series" / KEPT[0].path / FILE_NAME
    other.parent.mkdir(parents=True)
    other.write_text("before")
    found = collect_series(tmp_path / "results", tmp_path / "data")
    assert {path.read_text() for path in found} == {"matrix-1", "before"}


def test_a_run_is_named_beside_what_the_paper_says_of_it() -> None:
    values = {
        "goodput": 8e6, "completion_time": 10.5, "startup_time": 3.0, "longest_burst": 12.0,
        "sent_per_useful_byte": 1.25,
    }  # fmt: skip
    run = replace(run_result(8e6, client="picoquic", test_case="satloss"), measurement=Measurement(values))
    results = result_set([run], clients=("picoquic",), test_cases=(SATLOSS,))
    [sentence] = [str(line) for line in packets(results, ()) if str(line).startswith("-")]
    assert "from picoquic to picoquic over `satloss` takes 10.5 s, with a goodput of 8.0 Mbit/s" in sentence
    assert "slightly more than 7 s" in sentence
    assert "The server reaches 80 % of its steady rate after 3.0 s. The server sends 1.25 bytes" in sentence
    assert "In real time" not in sentence
    real = result_set([run_result(16e6, client="picoquic", test_case="satloss")], clients=("picoquic",),
                      test_cases=(SATLOSS,))  # fmt: skip
    [sentence] = [str(line) for line in packets(results, (), None, real) if str(line).startswith("-")]
    assert sentence.endswith(
        " In real time, picoquic is 2.0 times as fast over `satloss` (with picoquic), so this figure shows virtual "
        "time only."
    )
