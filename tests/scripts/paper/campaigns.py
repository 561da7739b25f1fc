"""Small campaigns of `make paper`, made by hand."""

from __future__ import annotations

from dataclasses import replace

from interop.model.emulated_link import Interval
from interop.model.evidence import Exit
from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.run import File
from interop.model.units import MBPS, MIB
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs

ARRIVED = 6 * MIB
"""Bytes of the file that arrived in the run of ``variants`` that timed out."""


def late(run: RunResult, size: int) -> RunResult:
    """The run, whose client had written so many bytes of its file at the time limit of satloss."""
    client = Exit(137, killed=True, life=Interval(0.0, SATLOSS.timeout))
    file = File("a", size, "")
    return replace(
        run,
        evidence=replace(run.evidence, client=client, downloaded=(file,), phases={"transfer": SATLOSS.timeout}),
    )


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
    """Two implementations with two congestion control algorithms each; one run times out."""
    found = [
        run
        for server, rate in (("quinn:cubic", 2), ("quinn:bbr", 8), ("picoquic:newreno", 1), ("picoquic:bbr", 6))
        for run in runs(rate * MBPS, rate * MBPS, server=server, test_case="satloss")
    ]
    found[-1] = late(
        run_result(None, server="picoquic:bbr", test_case="satloss", repetition=2, outcome=Outcome.TIMEOUT), ARRIVED
    )
    return result_set(found, servers=("quinn:cubic", "picoquic:bbr"), test_cases=(SATLOSS,), repetitions=2)
