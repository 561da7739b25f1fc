"""How a run over QUIC compares with TCP in the same member of the ensemble, as a sentence."""

from collections.abc import Mapping

from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.time_shares import TimeShare
from quicsat.model.units import seconds
from quicsat.statistics.parity import COMPLETION, reference, times_by_pair

LEAST_SHARE = 0.03
"""Of the longer time, for a share whose difference is named."""
BLOCKED = "head_of_line_blocking"


def parity_line(results: ResultSet, result: RunResult, case: TestCase) -> str:
    """Where QUIC won or lost time against TCP with the same seed; empty if no such run is stored."""
    tcp = _over_tcp(results, result, case)
    if tcp is None or tcp.measurement is None or result.measurement is None:
        return ""
    quic, other = result.measurement.values, tcp.measurement.values
    if COMPLETION not in quic or COMPLETION not in other:
        return ""
    gained = other[COMPLETION] - quic[COMPLETION]
    faster = "faster" if gained >= 0 else "slower"
    parts = ", ".join(_differences(quic, other))
    found = (
        f"Over TCP with the same losses, {tcp.server} with {tcp.client} took {seconds(other[COMPLETION])}: QUIC is "
        f"{seconds(abs(gained))} {faster}{f' ({parts})' if parts else ''}."
    )
    if BLOCKED in quic and BLOCKED in other:
        found += (
            f" Bytes of an object waited {seconds(quic[BLOCKED])} for earlier ones on average, and "
            f"{seconds(other[BLOCKED])} over TCP."
        )
    return found


def _over_tcp(results: ResultSet, result: RunResult, case: TestCase) -> RunResult | None:
    """The run over TCP with which ``tables --table parity`` compares a run over QUIC that succeeded."""
    if result.protocol is Protocol.TCP or result.verdict.outcome is not Outcome.SUCCEEDED:
        return None
    runs = [each for each in results.results if each.test_case == case.name and each.protocol is Protocol.TCP]
    pair = reference(result.client, times_by_pair(runs, case, case.total_size))
    member = result.repetition, result.evidence.seed
    same = (each for each in runs if (each.server, each.client) == pair)
    return next((each for each in same if (each.repetition, each.evidence.seed) == member), None)


def _differences(quic: Mapping[str, float], tcp: Mapping[str, float]) -> list[str]:
    """``recovery -2.30 s``: the shares of the time that differ most, the largest difference first."""
    gaps = {
        share: quic[share.metric] - tcp[share.metric]
        for share in TimeShare
        if share.metric in quic and share.metric in tcp
    }
    least = LEAST_SHARE * max(quic[COMPLETION], tcp[COMPLETION])
    large = sorted((share for share in gaps if abs(gaps[share]) >= least), key=lambda share: -abs(gaps[share]))
    return [f"{share.label} {gaps[share]:+.2f} s" for share in large]
