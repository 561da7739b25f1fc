"""The stored report docs/paper: similar delays."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean, median, stdev

import numpy as np
import pytest

from tests.scripts.stored_paper_report.stored import (
    cases_of,
    listed,
    manifest,
    matching,
    matrix,
    metric,
    rows,
    runs_of,
    section_of,
    so_far,
    stored_part,
)


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


@pytest.mark.skipif(not stored_part["delays"], reason="the campaign of similar delays is not stored")
def test_runs_whose_option_selects_the_default() -> None:
    """Of the same seed, over sat."""
    inverse = [1 / float(name.partition("=")[2].removesuffix("ms")) for name in cases_of("delays")]
    section = section_of("Spread of the goodput over similar delays")
    assert f"its spread would be {100 * stdev(inverse) / fmean(inverse):.1f} %.\n" in section
    defaults = {each["name"]: each["congestion_control"]["default"] for each in manifest()["implementations"]}
    own = {
        (run["server"], run["client"], run["evidence"]["seed"]): so_far(run)
        for run in matching(matrix(), test_case="sat")
    }
    changes = {}
    for run in matching(runs_of("variants"), test_case="sat"):
        server, _, variant = run["server"].partition(":")
        before = own.get((server, run["client"], run["evidence"]["seed"]))
        after = so_far(run)
        if before and after and defaults[server] == variant:
            changes[f"{server} with {run['client']} ({before:.2f} and {after:.2f} Mbit/s)"] = abs(after / before - 1)
    most = sorted(changes, key=lambda pair: -changes[pair])[:4]
    same = sum(change == 0 for change in changes.values())
    assert (
        f"Over `sat`, goodput is exactly the same for {same} of {len(changes)} pairs. It differs most for "
        f"{listed(most)}."
    ) in section


def test_servers_whose_option_makes_the_difference() -> None:
    """Without it, with the image of the variants, goodput is that of the matrix."""
    for server in ("picoquic", "lsquic"):
        for run in matching(runs_of("windows"), server=server):
            for same in matching(matrix(), server=server, client=run["client"], test_case="sat"):
                assert so_far(run) == so_far(same)
    told = (
        "For picoquic and lsquic, the image is not the cause: without the option, goodput is the same with both images."
    )
    assert told in section_of("Spread of the goodput over similar delays")
