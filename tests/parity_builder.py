"""Campaigns with runs over QUIC and over TCP, whose times are given."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from quicsat.model.implementation import Protocol
from quicsat.model.results import Measurement, ResultSet, RunResult
from quicsat.model.test_case import TestCase
from tests.results_builder import SAT, result_set, run_result

TCP = ("nginx-tcp", "curl")


def over(
    server: str, client: str, *times: float | None, case: TestCase = SAT, protocol: Protocol = Protocol.HQ
) -> list[RunResult]:
    """Repetitions 1, 2, … of a pair with these completion times, seconds; None is a timeout."""
    found = []
    for repetition, time in enumerate(times, start=1):
        run = run_result(
            None if time is None else 1e6,
            server=server, client=client, test_case=case.name, repetition=repetition,
        )  # fmt: skip
        run = replace(run, protocol=protocol, evidence=replace(run.evidence, seed=repetition))
        values = {"goodput": 1e6, "completion_time": time or 0.0, "time_to_2_mb": (time or 0.0) / 4}
        found.append(run if time is None else replace(run, measurement=Measurement(values)))
    return found


def over_tcp(*times: float | None, pair: tuple[str, str] = TCP, case: TestCase = SAT) -> list[RunResult]:
    return over(*pair, *times, case=case, protocol=Protocol.TCP)


def campaign(runs: Sequence[RunResult], cases: Mapping[str, TestCase] | None = None) -> ResultSet:
    """A campaign of all servers and clients of these runs."""
    servers, clients = (tuple(dict.fromkeys(getattr(run, end) for run in runs)) for end in ("server", "client"))
    return result_set(runs, servers=servers, clients=clients, test_cases=tuple((cases or {"sat": SAT}).values()))
