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
    assert "All 8 planned runs of the campaign `matrix` have a result. " in written({Part.MATRIX: matrix()})
    part = written({Part.MATRIX: replace(matrix(), results=matrix().results[:6])})
    assert (
        "Of 8 planned runs of the campaign `matrix`, 6 have a result; the other runs have not been measured yet."
        in part
    )


def test_the_introduction_has_the_clock_and_the_seeds() -> None:
    told = written({Part.MATRIX: matrix()})
    assert "used real time. We used 2 seeds; the seed of a run determines all of its random numbers." in told
    cases = tuple(replace(case, repetitions=n) for case, n in zip(matrix().manifest.test_cases, (1, 4), strict=True))
    manifest = replace(matrix().manifest, test_cases=cases, clock=Clock.VIRTUAL)
    told = written({Part.MATRIX: replace(matrix(), manifest=manifest)})
    assert "used virtual time: a simulated clock on which each system call takes a fixed time. " in told
    assert "We used one seed over `sat`, and 4 seeds over `satloss`; the seed" in told


def test_servers_above_the_threshold_are_counted_in_the_findings() -> None:
    def told(control: str) -> str:
        first, second, client = matrix().manifest.implementations
        known = replace(first, congestion_control=CongestionControl(control))
        other = replace(second, congestion_control=CongestionControl("reno"))
        manifest = replace(matrix().manifest, implementations=(known, other, client))
        return written({Part.MATRIX: replace(matrix(), manifest=manifest)})

    default = "as their default congestion control"
    start = "- **Congestion control:** Over `satloss` with queues of 25 packets, the mean efficiency exceeds 10 % for"
    assert f"{start} 1 of 1 servers with BBR and 0 of 1 with Reno {default}. See" in told("bbr")
    assert f"{start} 1 of 2 servers with Reno {default}. See" in told("reno")


def test_only_stored_parts_have_a_section() -> None:
    assert "## Algorithm or implementation" not in written({Part.MATRIX: matrix()})
    assert "## Algorithm or implementation" in written({Part.MATRIX: matrix(), Part.VARIANTS: variants()})


def test_runs_at_a_time_are_those_that_were_recorded() -> None:
    def told(neighbours: int) -> str:
        host = HostFacts("6.1", "x86_64", 4, 2**30, "20.10", 1.5, neighbours=neighbours)
        runs = tuple(replace(each, evidence=replace(each.evidence, host=host)) for each in matrix().results)
        return written({Part.MATRIX: replace(matrix(), results=runs)})

    assert "Up to 3 runs took place at a time on 4 CPUs. The median load average was 1.5, because" in told(2)
    assert "One run took place at a time on 4 CPUs." in told(0)
    assert "took place at a time" not in written({Part.MATRIX: matrix()})


def test_pairs_with_further_seeds_and_campaigns_of_run_py_are_told() -> None:
    """The part spread has a seed over one link that the matrix does not have."""
    more = matrix()
    kept = (replace(run, evidence=replace(run.evidence, seed=9)) for run in more.results if run.test_case == "sat")
    told = written({Part.MATRIX: matrix(), Part.SPREAD: replace(more, results=tuple(kept))})
    assert (
        "random numbers. For 2 pairs of a server and a client, we used a further seed over `sat` (see [Seeds](#seeds))."
        " All"
    ) in told
    assert "`make paper` performed all runs on this page. `make paper-report`" in told
    told = written({Part.MATRIX: matrix(), Part.LARGE_WINDOWS: matrix()})
    assert (
        "all runs on this page except those of the campaign `quic-go-windows`, which we started with `./run.py run`."
    ) in told
    assert "further seed" not in told
