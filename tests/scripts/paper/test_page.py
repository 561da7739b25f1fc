"""The page of the report docs/paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from interop.model.clock import Clock
from interop.model.evidence import HostFacts
from interop.model.implementation import CongestionControl
from interop.model.results import ResultSet
from scripts.paper.data_set import Part
from scripts.paper.page import page
from tests.scripts.paper.campaigns import matrix, variants


def written(parts: Mapping[str, ResultSet]) -> str:
    return page(parts, {}, Path("no/data"))


def test_the_page_says_what_has_not_been_measured_yet() -> None:
    assert "Of 8 planned runs, 8 have a result. " in written({Part.MATRIX: matrix()})
    part = written({Part.MATRIX: replace(matrix(), results=matrix().results[:6])})
    assert "Of 8 planned runs, 6 have a result; the other runs have not been measured yet." in part


def test_the_introduction_has_the_clock_and_the_seeds() -> None:
    told = written({Part.MATRIX: matrix()})
    assert "They ran in real time. There are 2 seeds; a seed decides all random numbers of a run." in told
    cases = tuple(replace(case, repetitions=n) for case, n in zip(matrix().manifest.test_cases, (1, 4), strict=True))
    manifest = replace(matrix().manifest, test_cases=cases, clock=Clock.VIRTUAL)
    told = written({Part.MATRIX: replace(matrix(), manifest=manifest)})
    assert "They ran in virtual time: a simulated clock on which each system call takes a fixed time. " in told
    assert "There is one seed over `sat`, and there are 4 over `satloss`; a seed" in told


def test_servers_above_the_threshold_are_counted_in_the_findings() -> None:
    def told(control: str) -> str:
        first, second, client = matrix().manifest.implementations
        known = replace(first, congestion_control=CongestionControl(control))
        other = replace(second, congestion_control=CongestionControl("reno"))
        manifest = replace(matrix().manifest, implementations=(known, other, client))
        return written({Part.MATRIX: replace(matrix(), manifest=manifest)})

    assert "Over `satloss`, 1 of 1 servers with BBR, and 0 of 1 with Reno exceed" in told("bbr")
    assert "Over `satloss`, 1 of 2 servers with Reno exceed an efficiency of 10 %" in told("reno")


def test_only_stored_parts_have_a_section() -> None:
    assert "## Algorithm or implementation" not in written({Part.MATRIX: matrix()})
    assert "## Algorithm or implementation" in written({Part.MATRIX: matrix(), Part.VARIANTS: variants()})


def test_runs_at_a_time_are_those_that_were_recorded() -> None:
    host = HostFacts("6.1", "x86_64", 4, 2**30, "20.10", 1.5, neighbours=2)
    runs = tuple(replace(each, evidence=replace(each.evidence, host=host)) for each in matrix().results)
    told = written({Part.MATRIX: replace(matrix(), results=runs)})
    assert "Up to 3 runs were made at a time on 4 CPUs, with a load average of 1.5" in told
    assert "runs were made at a time" not in written({Part.MATRIX: matrix()})
