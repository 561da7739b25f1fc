"""What the benchmark of virtual time runs, and what it makes of results."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bench.virtual import THROUGHPUT, busy_loops, by_repetitions, serial_estimate, stored, wall
from quicsat.config import loader
from quicsat.model.clock import Clock
from quicsat.results.store import write_result_json
from tests.results_builder import result_set, run_result, runs, virtual

ROOT = Path(__file__).resolve().parents[2]
PHASES = {"create": 2.0, "transfer": 10.0, "analyse": 3.0}


def test_only_links_with_losses_need_several_seeds() -> None:
    known = loader.load_known_test_cases(ROOT / "testcases")
    assert by_repetitions(["terrestrial", "satloss", "sat"], known, "5") == {
        "1": ["terrestrial", "sat"],
        "5": ["satloss"],
    }


def test_the_estimate_takes_the_shortest_phases_of_each_pair() -> None:
    pairs = [(server, client) for server in THROUGHPUT for client in THROUGHPUT]
    slow = {name: 2 * duration for name, duration in PHASES.items()} | {"transfer": PHASES["transfer"] - 1}
    results = [run_result(server=server, client=client, phases=PHASES) for server, client in pairs]
    results += [run_result(server=THROUGHPUT[0], client=THROUGHPUT[1], repetition=2, phases=slow)]
    results += [run_result(server="other", client="other", phases=PHASES), run_result(test_case="satloss")]
    assert serial_estimate([results], THROUGHPUT, 3) == pytest.approx(3 * (16 * 15 - 1))
    with pytest.raises(SystemExit, match="no runs of quic-go_quic-go"):
        serial_estimate([results[1:]], THROUGHPUT, 3)


def test_campaigns_of_the_other_clock_are_refused(tmp_path: Path) -> None:
    write_result_json(tmp_path, virtual(result_set(runs(8e6))))
    assert len(stored([tmp_path], Clock.VIRTUAL)) == 1
    with pytest.raises(SystemExit, match=r"ran in virtual time .* not in real time"):
        stored([tmp_path], Clock.REAL)


def test_analysis_is_not_part_of_a_run() -> None:
    assert wall(run_result(phases=PHASES)) == 12.0


def test_busy_loops_end(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[subprocess.Popen[bytes]]()
    popen = subprocess.Popen

    def begin(words: list[str]) -> subprocess.Popen[bytes]:
        begun.append(popen(words))
        return begun[-1]

    monkeypatch.setattr(subprocess, "Popen", begin)
    with pytest.raises(ZeroDivisionError), busy_loops(2):
        assert [process.poll() for process in begun] == [None, None]
        1 / 0  # noqa: B018 - any fault
    for process in begun:
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)
