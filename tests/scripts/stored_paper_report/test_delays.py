"""The stored report docs/paper: similar delays."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean, median, stdev

import numpy as np
import pytest

from tests.scripts.stored_paper_report.stored import cases_of, metric, rows, runs_of, section_of, stored_part


@pytest.mark.skipif(not stored_part["delays"], reason="the campaign of similar delays is not stored")
def test_numbers_of_similar_delays() -> None:
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for run in runs_of("delays"):
        if (value := metric(run, "goodput")) is not None:
            found[run["server"], run["client"]].append(value)
    count = len(cases_of("delays"))
    spread = {pair: stdev(values) / fmean(values) for pair, values in found.items() if len(values) == count}
    for server, pairs, middle, largest, client in rows("Spread of the goodput over similar delays"):
        mine = {pair: value for pair, value in spread.items() if pair[0] == server}
        assert int(pairs) == len(mine)
        assert float(middle) == pytest.approx(100 * median(mine.values()), abs=0.051)
        assert float(largest) == pytest.approx(100 * max(mine.values()), abs=0.051)
        assert mine[server, client] == max(mine.values())
    worst = max(spread, key=lambda pair: spread[pair])
    ninety = float(np.quantile(list(spread.values()), 0.9))
    assert (
        f"Over all pairs, the median of this spread is {100 * median(spread.values()):.1f} %, the 90th percentile is "
        f"{100 * ninety:.1f} %, and the maximum is {100 * spread[worst]:.1f} % ({' with '.join(worst)})."
    ) in section_of("Spread of the goodput over similar delays")
