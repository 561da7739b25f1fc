"""Page load times beside those that the browser measured, in a recorded run over the terrestrial link."""

import json
from pathlib import Path

import numpy as np
import pytest

from bench.page_load import BAR, TIMES, browser_times
from quicsat.analysis.objects import object_times
from quicsat.config.workloads import load_workloads
from quicsat.traces.series import load
from tests.engine.conftest import ROOT

RUN = ROOT / "tests/data/chromium-page"
PAGE = load_workloads(ROOT / "testcases/workloads")["page-p25"]


def test_times_of_the_browser(tmp_path: Path) -> None:
    entries = [
        {"entryType": "navigation", "connectStart": 100.0, "loadEventStart": 350.0},
        {"entryType": "resource"},
        {"entryType": "paint"},
    ]
    (tmp_path / "page.json").write_text(json.dumps(entries))
    found = browser_times(tmp_path / "page.json")
    assert (found.objects, found.before, found.page_load) == (2, 0.1, 0.25)


def test_a_recorded_page_load_is_that_of_the_browser() -> None:
    stored, theirs = load(RUN), browser_times(RUN / TIMES)
    assert stored is not None
    ours = object_times(stored, PAGE.file_sizes, PAGE.workload)
    assert theirs.objects == len(ours) == 28
    assert max(each.finished for each in ours) == pytest.approx(theirs.page_load, rel=BAR)


def test_recorded_objects_end_when_the_browser_says() -> None:
    stored, theirs = load(RUN), browser_times(RUN / TIMES)
    assert stored is not None
    ours = object_times(stored, PAGE.file_sizes, PAGE.workload)
    entries = json.loads((RUN / TIMES).read_text())
    later: list[float] = []
    for size in set(PAGE.file_sizes):
        mine = sorted(each.finished for each in ours if each.size == size)
        browser = sorted(
            each["responseEnd"] / 1000 - theirs.before for each in entries if each.get("encodedBodySize") == size
        )
        assert len(mine) == len(browser)
        later += np.subtract(browser, mine).tolist()
    # Two of them end a round trip after their last byte, since their streams' ends come later.
    assert 0 < min(later) < np.median(later) < 0.01
    assert max(later) < 0.035
