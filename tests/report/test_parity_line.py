"""The sentence about a run over QUIC beside TCP: which run it names, and which differences."""

from dataclasses import replace

from quicsat.model.results import RunResult
from quicsat.model.time_shares import TimeShare
from quicsat.report.parity_line import parity_line
from tests.parity_builder import campaign, over, over_tcp
from tests.results_builder import SAT


def sharing(run: RunResult, **spent: float) -> RunResult:
    shares = {share.metric: spent.get(share, 0.0) for share in TimeShare}
    return replace(run, measurement=replace(run.measurement, values=run.measurement.values | shares))


def test_the_largest_differences_come_first() -> None:
    [tcp] = [sharing(run, handshake=1.5, slow_start=2.0, recovery=4.5) for run in over_tcp(8.0)]
    [quic] = [sharing(run, handshake=0.9, slow_start=2.1, pacing=3.0) for run in over("quic-go", "x", 6.0)]
    line = parity_line(campaign([tcp, quic]), quic, SAT)
    assert "nginx-tcp with curl" in line
    assert "8.0 s" in line
    assert "2.0 s faster" in line
    places = [line.index(part) for part in ("recovery -4.50 s", "pacing +3.00 s", "handshake -0.60 s")]
    assert places == sorted(places)
    assert "slow start" not in line


def test_it_needs_the_same_member_and_success() -> None:
    quic, timeout = over("quic-go", "x", 9.0, None)
    results = campaign([*over_tcp(8.0, 8.0), quic, timeout])
    assert "1.0 s slower" in parity_line(results, quic, SAT)
    assert parity_line(results, timeout, SAT) == ""
    assert parity_line(results, replace(quic, repetition=3), SAT) == ""
    assert parity_line(results, results.results[0], SAT) == ""
