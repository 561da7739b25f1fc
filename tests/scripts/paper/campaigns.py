"""Small campaigns of `make paper`, made by hand."""

from __future__ import annotations

from interop.model.outcomes import Outcome
from interop.model.results import ResultSet
from interop.model.units import MBPS
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs


def matrix() -> ResultSet:
    """Two servers over two links: over satloss, one is fast, and the other fails once."""
    fast, slow = (
        runs(6 * MBPS, 8 * MBPS, server="picoquic", test_case=name)
        + runs(2 * MBPS, 4 * MBPS, server="quic-go", test_case=name)
        for name in ("sat", "satloss")
    )
    slow[-1] = run_result(
        None, server="quic-go", test_case="satloss", repetition=2, outcome=Outcome.FAILED, reason="File a has 7 bytes."
    )
    return result_set([*fast, *slow], servers=("picoquic", "quic-go"), test_cases=(SAT, SATLOSS), repetitions=2)


def variants() -> ResultSet:
    """Two implementations with two congestion controls each; one run times out."""
    found = [
        run
        for server, rate in (("quinn:cubic", 2), ("quinn:bbr", 8), ("picoquic:newreno", 1), ("picoquic:bbr", 6))
        for run in runs(rate * MBPS, rate * MBPS, server=server, test_case="satloss")
    ]
    found[-1] = run_result(
        None, server="picoquic:bbr", test_case="satloss", repetition=2, outcome=Outcome.TIMEOUT, reason="Late."
    )
    return result_set(found, servers=("quinn:cubic", "picoquic:bbr"), test_cases=(SATLOSS,), repetitions=2)
