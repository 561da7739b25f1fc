"""Results of runs with two flows that share 10 Mbit/s as a test says."""

from dataclasses import replace

import numpy as np

from quicsat.analysis.flows import jain_index
from quicsat.model.flow import Flow
from quicsat.model.implementation import Protocol
from quicsat.model.results import FlowResult, Measurement, RunResult
from quicsat.model.test_case import with_flows
from tests.results_builder import SAT, runs

BESIDE = with_flows(SAT, (Flow("nginx-tcp", "curl"),))


def flow_result(server: str, client: str, share: float, protocol: Protocol = Protocol.HQ) -> FlowResult:
    """A flow that receives this share of 10 Mbit/s from 1 s to 11 s."""
    rate = 1e7 * share
    return FlowResult(
        server, client, protocol, 0.0, 1.0, 11.0, round(10 * rate / 8), rate, rate, share, 0.01, 0.02, 0.03
    )


def competing(*shares: tuple[float, ...]) -> list[RunResult]:
    """Repetitions of the servers a, b, … with these shares, each beside nginx-tcp."""
    found = []
    for server, many in zip("abcdef", shares, strict=False):
        for share, run in zip(many, runs(*[1e6] * len(many), server=server, test_case=BESIDE.name), strict=True):
            flows = (flow_result(server, "quiche", share), flow_result("nginx-tcp", "curl", 1 - share, Protocol.TCP))
            jain = jain_index(np.array([share, 1 - share])) or 0.0
            values = {"goodput": 1e7 * share, "jain_index": jain, "convergence_time": 2.0, "flow_share": share}
            found.append(replace(run, measurement=Measurement(values, flows=flows)))
    return found
