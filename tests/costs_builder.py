"""Runs in real time whose endpoints used as much CPU time as a known cost model says."""

import random
from collections.abc import Iterator
from dataclasses import astuple, replace

from quicsat.model.cpu_cost import CostModel
from quicsat.model.emulated_link import DirectionReport, SimulatorReport
from quicsat.model.evidence import HostFacts, ResourceUse
from quicsat.model.results import Measurement, ResultSet, RunResult
from quicsat.model.test_case import MULTICONNECT, TestCase
from quicsat.statistics.cost_fit import CostSample
from tests.results_builder import SAT, SATLOSS, result_set, run_result

TRUE = CostModel(7e-6, 3e-6, 4e-6, 15e-6, 9e-6, 2e-3)
START = 0.05
MANY = replace(
    SAT,
    name="sat+connections",
    abbreviation="SAT-CON",
    file_sizes=30 * (1000,),
    client_test=MULTICONNECT,
    server_test=MULTICONNECT,
)
CASES = (SAT, SATLOSS, MANY)
PARTNERS = ("a", "b", "c")
PROCESSOR = "A Processor (family 1)"


def samples(model: CostModel = TRUE, noise: float = 0.0) -> list[CostSample]:
    """Runs that differ in all that they do, with relative errors of a normal distribution."""
    numbers, found = random.Random(1), []
    for repetition in range(6):
        for partner in PARTNERS:
            for case in CASES:
                many = case is MANY
                packets = 200 if many else 2000 * (repetition + 1)
                counts = [round(packets * numbers.uniform(0.1, 2)) for _ in range(6)]
                sample = CostSample(partner, case.name, 1.0, len(MANY.file_sizes) if many else 1, *counts)
                cpu = sample.fixed + START + sum(
                    cost * cause for cost, cause in zip(astuple(model)[:-1], sample.causes[1:], strict=True)
                )  # fmt: skip
                found.append(replace(sample, cpu=cpu * numbers.gauss(1, noise)))
    return found


def campaign(model: CostModel = TRUE) -> ResultSet:
    """The same as a campaign of the server ``mine``."""
    found = [
        _run(sample, number)
        for partner in PARTNERS
        for case in CASES
        for number, sample in enumerate(_of(samples(model), partner, case), start=1)
    ]
    return result_set(found, servers=("mine",), clients=PARTNERS, test_cases=CASES, repetitions=6)


def _of(runs: list[CostSample], partner: str, case: TestCase) -> Iterator[CostSample]:
    return (sample for sample in runs if (sample.partner, sample.link) == (partner, case.name))


def _run(sample: CostSample, repetition: int) -> RunResult:
    run = run_result(server="mine", client=sample.partner, test_case=sample.link, repetition=repetition)
    use = ResourceUse(
        0.75 * sample.cpu, 0.25 * sample.cpu, 1, sample.calls, sample.sends, sample.receives, sample.waits
    )
    forward = DirectionReport(sample.sent, sample.sent, 0, 0)
    report = SimulatorReport(0, True, 0, 0, 0, forward, DirectionReport(sample.received + 5, sample.received, 5, 0))
    link = next(case for case in CASES if case.name == sample.link).emulated
    waiting = 2 * TRUE.handshake + link.round_trip_delay + 8 * 1200 * (1 / link.forward.rate + 1 / link.back.rate)
    measurement = Measurement({**run.measurement.values, "handshake_time": waiting})
    host = HostFacts("6.1", "x86_64", 2, 2**33, "20.10", 0.5, processor=PROCESSOR)
    evidence = replace(run.evidence, use={"server": use}, simulator=report, host=host)
    return replace(run, evidence=evidence, measurement=measurement)
