"""The stored report docs/paper: packets of single runs."""

from __future__ import annotations

import re
from statistics import fmean

from interop.traces.series import load
from tests.scripts.stored_paper_report.stored import PAPER, all_goodputs, matching, matrix, metric, runs_of, the_page


def test_a_rate_that_a_server_does_not_keep() -> None:
    """kwik with msquic over sat: the slowest 3 s after the one in which it seems to have started."""
    [run] = matching(matrix(), server="kwik", client="msquic", test_case="sat")
    steady, startup = metric(run, "steady_rate"), metric(run, "startup_time")
    series = load(PAPER / "data" / "series" / "kwik_msquic" / "sat" / "1")
    assert steady is not None
    assert startup is not None
    assert series is not None
    time, new = series.arrived.time, series.arrived.new
    rates = {
        begin: 8 * float(new[(time >= begin) & (time < begin + 3)].sum()) / 3
        for begin in range(0, 3 * int(time.max() / 3), 3)
    }
    later = {begin: rate for begin, rate in rates.items() if begin > startup}
    least = min(later, key=lambda begin: later[begin])
    [line] = [
        line for line in the_page().splitlines() if line.startswith("- In our measurement, the transfer from kwik")
    ]
    assert later[least] < steady / 2
    kept = 3 + max(begin for begin, rate in rates.items() if rate < 0.8 * steady)
    assert (
        f"reaches 80 % of its steady rate after {startup:.1f} s, but does not keep this rate ({steady / 1e6:.1f} "
        f"Mbit/s): only {later[least] / 1e6:.1f} Mbit/s arrive from {least} to {least + 3} s. Averaged over 3 s, the "
        f"rate stays above 80 % only after {kept} s. The server sends"
    ) in line
    assert len(re.findall("does not keep this rate", the_page())) == 1


def test_kwik_is_much_faster_in_real_time() -> None:
    """Over sat, with ngtcp2."""
    virtual, real = (
        fmean(all_goodputs(matching(runs, server="kwik", client="ngtcp2", test_case="sat")))
        for runs in (matrix(), runs_of("real"))
    )
    told = f"In real time, kwik is {real / virtual:.1f} times as fast over `sat` (with ngtcp2), so this figure shows"
    assert told in the_page()
    assert the_page().count("times as fast over `") == 1
