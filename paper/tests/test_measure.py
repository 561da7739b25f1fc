"""The campaigns of `make paper`: which runs they have, what is left of them, and when a series of them stops."""

import subprocess
import sys
from pathlib import Path

import pytest

from paper import measure
from quicsat.cli.exit_status import ExitStatus
from quicsat.model.clock import Clock
from quicsat.model.emulated_link import QueueMode
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ImageFacts
from quicsat.results.store import Journal
from tests.results_builder import result_set, run_result


def pairs(campaign: measure.Campaign) -> set[tuple[str, str]]:
    return {(run.server.name, run.client.name) for run in measure.planned(campaign, "")}


@pytest.mark.parametrize("part", measure.PARTS)
def test_all_campaigns_of_a_part_have_runs(part: str) -> None:
    many = measure.campaigns(part, measure.SEEDS)
    assert len({each.name for each in many}) == len(many)
    assert all(len(measure.planned(each, "")) > 0 for each in many)


def test_queues_differ_only_in_the_mode_of_the_queue() -> None:
    [campaign], [matrix] = (measure.campaigns(part, [1]) for part in ("queues", "matrix"))
    assert pairs(campaign) == pairs(matrix)
    seeds = [
        {run.test_case.name.removesuffix("-paper-queue"): run.seed for run in measure.planned(each, "")}
        for each in (campaign, matrix)
    ]
    assert seeds[0] == {name: seeds[1][name] for name in ("sat", "satloss")}
    links = {run.test_case.name: run.test_case.emulated for run in measure.planned(campaign, "")}
    assert {name: link.queue_mode for name, link in links.items()} == {
        "sat-paper-queue": QueueMode.PAPER,
        "satloss-paper-queue": QueueMode.PAPER,
    }


def test_servers_that_reach_the_limit_have_more_time_and_the_same_losses() -> None:
    [campaign], [matrix] = (measure.campaigns(part, [1]) for part in ("limits", "matrix"))
    assert not measure.campaigns("limits", [2])
    seeds = {run.seed for run in measure.planned(matrix, "") if run.test_case.name == "satloss"}
    assert {run.seed for run in measure.planned(campaign, "")} == seeds
    assert pairs(campaign) == {(server, client) for server in measure.SLOW for client in measure.CLIENTS_OF_VARIANTS}


@pytest.mark.parametrize("seed", measure.SEEDS)
def test_a_twentieth_of_the_matrix_is_repeated_with_the_same_seed(seed: int) -> None:
    again, *_ = measure.campaigns("repeat", [seed])
    [matrix] = measure.campaigns("matrix", [seed])
    runs, all_runs = (measure.planned(campaign, "") for campaign in (again, matrix))
    assert {run.key for run in runs} < {run.key for run in all_runs}
    assert len(runs) == pytest.approx(len(all_runs) / 20, abs=1)
    assert {run.test_case for run in runs} == {run.test_case for run in all_runs}
    assert [run.key for run in runs] != [run.key for run in all_runs if run in runs]
    assert again.words[again.words.index("--seed") + 1] == matrix.words[matrix.words.index("--seed") + 1]
    assert again.clock is Clock.VIRTUAL


def test_what_is_repeated_has_no_shards(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["measure.py", "--part", "matrix", "repeat", "--shard", "1/2"])
    with pytest.raises(SystemExit):
        measure.main()
    assert "name the other parts with --part" in capsys.readouterr().err


def test_shards_have_all_runs_once() -> None:
    [campaign] = measure.campaigns("queues", [1])
    shards = [measure.planned(campaign, f"{number}/3") for number in (1, 2, 3)]
    assert sorted(run.key for shard in shards for run in shard) == sorted(
        run.key for run in measure.planned(campaign, "")
    )


def test_results_are_left_as_they_are_and_errors_are_repeated(tmp_path: Path) -> None:
    [campaign] = measure.campaigns("matrix", [1])
    assert not measure.has_begun(campaign, tmp_path)
    image = ImageFacts("x:latest", f"sha256:{'0' * 64}")
    manifest = result_set(repetitions=3, images={"picoquic": image, "quiche": image}).manifest
    (tmp_path / campaign.name).mkdir()
    with Journal.create(tmp_path / campaign.name, manifest) as journal:
        journal.append_result(run_result(5e6, repetition=1))
        journal.append_result(run_result(None, outcome=Outcome.ERROR, repetition=2))
    assert measure.has_begun(campaign, tmp_path)
    assert [run.repetition for run in measure.left_of(campaign, tmp_path, "")] == [2, 3]


class Calls:
    """Stands in for the command line: remembers what it is told, and ends with one status after another."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.commands: list[list[str]] = []

    def __call__(self, *words: str) -> int:
        self.commands.append(list(words))
        return self.statuses.pop(0) if words[0] != "prune" else 0


@pytest.mark.parametrize(("statuses", "measured", "ended"), [
    ((0, 0), 2, 0), ((1, 0), 2, 1), ((3, 0), 2, 3), ((ExitStatus.TIME_UP,), 1, 4), ((ExitStatus.LOCKED,), 1, 75),
    ((130,), 1, 130),
])  # fmt: skip
def test_failed_runs_do_not_stop_the_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statuses: tuple[int, ...], measured: int, ended: int
) -> None:
    calls = Calls(*statuses)
    monkeypatch.setattr(measure, "call", calls)
    words = ["--part", "queues", "--seeds", "1", "2", "--results", str(tmp_path), "--", "--max-runtime", "2 h"]
    monkeypatch.setattr(sys, "argv", ["measure.py", *words])
    assert measure.main() == ended
    runs = [command for command in calls.commands if command[0] == "run"]
    assert [command[command.index("-l") + 1] for command in runs] == [
        str(tmp_path / f"queues-{seed}") for seed in range(1, measured + 1)
    ]
    assert all(command[-2:] == ["--max-runtime", "2 h"] for command in runs)


def test_the_estimate_measures_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "paper.measure", "--estimate", "--part", "real"]
    done = subprocess.run([*command, "--results", str(tmp_path)], capture_output=True, text=True, check=True)
    runs = sum(len(measure.planned(each, "")) for each in measure.campaigns("real", measure.SEEDS))
    assert f" {runs} " in done.stdout
    assert not list(tmp_path.iterdir())
