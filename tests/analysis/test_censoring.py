"""How often runs of different durations are rejected, by simulation of a machine that stalls at random."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from quicsat.analysis import run_outcome
from quicsat.links.simulator_report import read_report
from quicsat.model.emulated_link import Interval, SimulatorReport
from tests.fakes import REPORT

ROUND_TRIP = 0.03
BOUND = run_outcome.LAG_LIMIT
PER_SECOND = (1700, 850)
"""Frames forward and return, as 20 Mbit/s need."""
ATTEMPTS = 3
RUNS = 1500
DURATIONS = (0.2, 1.0, 3.0, 12.0, 60.0, 240.0, 360.0)
BEGIN = 1000.0


@dataclass(frozen=True)
class Machine:
    """A machine that stalls at random times, ``rate`` times per second, for ``least`` to ``most`` seconds."""

    rate: float
    least: float
    most: float

    @property
    def stalled(self) -> float:
        """Share of the time."""
        return self.rate * (self.least + self.most) / 2


RARE = Machine(1 / 200, 0.020, 0.030)
OFTEN = Machine(1 / 20, 0.012, 0.040)
LONG = Machine(1 / 1800, 1.0, 3.0)


def runs(machine: Machine, duration: float, n: int = RUNS) -> Iterator[SimulatorReport]:
    """Reports of ``n`` runs whose client lives ``duration`` seconds, as a simulator would write them."""
    random = np.random.default_rng(19)
    client = Interval(BEGIN, BEGIN + duration)
    interval = 0.1 if duration < 10 else 1.0
    rows = round(duration / interval) + 1
    way = {"p50": 0.0, "p99": 0.0, "p999": 0.0, "max_per_interval": [0.0]}
    ways = [way | {"frames_per_interval": [round(frames * interval)] * rows} for frames in PER_SECOND]
    for _ in range(n):
        count = random.poisson(machine.rate * (duration + machine.most))
        begins = np.sort(random.uniform(BEGIN - machine.most, client.end, count))
        lengths = random.uniform(machine.least, machine.most, count)
        stalls, largest, free = [], 0.0, 0.0
        for begin, length in zip(begins.tolist(), lengths.tolist(), strict=True):
            if begin < free:
                continue
            free = begin + length
            late = [round((length - BOUND) * frames) for frames in PER_SECOND]
            stalls.append([begin, free, *late, length])
            largest = max(largest, length) if free > BEGIN else largest
        lateness = {"bound": BOUND, "interval": interval, "forward": ways[0], "return": ways[1], "stalls": stalls}
        document: dict[str, Any] = REPORT | {"started": BEGIN, "stopped": client.end, "lateness": lateness}
        yield replace(read_report(document, client), lag_max=largest)


@cache
def rejected(machine: Machine, duration: float, *, old: bool = False) -> float:
    """Share of the runs that are not counted."""
    reports = (replace(report, lateness=None) if old else report for report in runs(machine, duration))
    return float(np.mean([run_outcome.simulator(report, ROUND_TRIP) is not None for report in reports]))


def test_the_old_rule_censored_by_length() -> None:
    """By the largest lag 12 s always count within three attempts, 240 s in 66 % and 360 s in 42 % of the cases."""
    counted = [1 - rejected(RARE, duration, old=True) ** ATTEMPTS for duration in (12.0, 240.0, 360.0)]
    assert counted == pytest.approx([1.0, 0.66, 0.42], abs=0.05)


def test_runs_of_every_length_count_on_the_same_machine() -> None:
    counted = [1 - rejected(RARE, duration) ** ATTEMPTS for duration in (12.0, 240.0, 360.0)]
    assert min(counted) > 0.999


@pytest.mark.parametrize("machine", [RARE, OFTEN, LONG], ids=["rare", "often", "long"])
def test_the_rejection_rate_has_a_bound_that_does_not_depend_on_the_duration(machine: Machine) -> None:
    """Markov's inequality: the mean share of the time that passes in stalls is the same for all durations."""
    bound = machine.stalled / run_outcome.LATE_LIMIT
    sampling = 3 * np.sqrt(bound / RUNS)
    assert max(rejected(machine, duration) for duration in DURATIONS) <= bound + sampling


@pytest.mark.parametrize("machine", [RARE, OFTEN], ids=["rare", "often"])
def test_longer_runs_are_rejected_less(machine: Machine) -> None:
    """Beyond a hundred times the longest stall, which is what one stall can take of a run that counts."""
    enough = [duration for duration in DURATIONS if duration >= machine.most / run_outcome.LATE_LIMIT]
    rates = [rejected(machine, duration) for duration in enough]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == 0.0


def test_a_machine_that_stalls_too_much_is_always_found_out() -> None:
    assert rejected(Machine(1.0, 0.020, 0.040), 60.0) > 0.99
