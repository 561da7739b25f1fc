"""Limits of runs in YAML, inherited or not, and what follows from them."""

from dataclasses import replace
from typing import Any

import pytest

from quicsat.links.artefact_limits import download_limits, log_limits, run_limits, trace_limits
from quicsat.model.outcomes import ErrorCode
from quicsat.model.run_limits import RunLimits
from quicsat.model.test_case import TestCase
from quicsat.model.units import MIB
from tests.config.my_yaml import faults, read
from tests.fakes import CASE

BASE = "name: one\nabbreviation: ONE\nextends: sat\n"
OWN = BASE + "limits: {memory: 8 GiB, cpus: 0.5, processes: 64, logs: 3 GiB, downloads: 20 MiB, traces: 4 GiB}\n"
NEXT = "---\nname: two\nabbreviation: TWO\nextends: one\n"
GIB = 1024 * MIB
READ = RunLimits(8 * GIB, 0.5, 64, 3 * GIB, 20 * MIB, 4 * GIB)


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("", READ),
        ("limits: {memory: 64 MiB}\n", replace(READ, memory=64 * MIB)),
        ("limits: {}\n", READ),
        ("limits: none\n", None),
    ],
)
def test_they_are_inherited_one_by_one(more: str, found: RunLimits | None) -> None:
    assert read(OWN + NEXT + more)[1].limits == found


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("{memory: 8}", '"8" has no unit'),
        ("{memory: 1 MiB}", "is out of range: 64 MiB to 1024 GiB."),
        ("{cpus: 0}", "is out of range: 0.01 to 1024."),
        ("{cpus: half}", "is no number; allowed: 0.01 to 1024."),
        ("{processes: 1.5}", "is no whole number"),
        ("{ram: 1 GiB}", "ram"),
        ("8 GiB", "must be a mapping such as {memory: 8 GiB}, or none."),
    ],
)
def test_faults(value: str, fault: str) -> None:
    assert fault in faults(f"{BASE}limits: {value}\n")[0]


def limited(**limits: Any) -> TestCase:
    return replace(CASE, limits=RunLimits(**limits))


def test_a_run_may_leave_as_much_as_they_say() -> None:
    assert (log_limits(limited(logs=5)).total, log_limits(limited(logs=5)).fault) == (5, ErrorCode.ARTEFACT_LIMIT)
    assert (trace_limits(limited(traces=6)).total, trace_limits(limited(traces=6)).fault) == (6, ErrorCode.TRACE_LIMIT)
    assert download_limits(limited(downloads=7)) == replace(download_limits(CASE), total=7)
    assert run_limits(limited(logs=5, traces=6, downloads=7)).total == 2 * 5 + 6 + 7 + CASE.total_size
    for of in (log_limits, trace_limits, download_limits, run_limits):
        assert of(limited(memory=1)) == of(CASE)
