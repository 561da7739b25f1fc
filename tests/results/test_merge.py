"""Parts of a plan become one campaign."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quicsat.execution.remaining_work import remaining_work
from quicsat.model.clock import Clock
from quicsat.model.errors import InputError
from quicsat.model.evidence import Evidence
from quicsat.model.outcomes import Outcome, Verdict
from quicsat.model.results import ImageFacts, Manifest, Measurement, RunResult
from quicsat.model.run import Run
from quicsat.plan.make_plan import make_plan
from quicsat.plan.order import part_of
from quicsat.plan.stored_plan import plan_of
from quicsat.results.merge import merge
from quicsat.results.store import Journal, load
from tests.fakes import CASE, implementation

ENDS = tuple(map(implementation, ("a", "b", "c")))
OTHER = replace(CASE, name="other", abbreviation="OT")
PLAN = make_plan(ENDS, ENDS, (CASE, OTHER), repetitions=2, seed=7)
Make = Callable[..., Path]


def result(run: Run, attempt: int = 1, outcome: Outcome = Outcome.SUCCEEDED) -> RunResult:
    evidence = Evidence(started="", seed=run.seed)
    names = (run.server.name, run.client.name, run.test_case.name)
    measurement = Measurement({"goodput": 1e6}) if outcome is Outcome.SUCCEEDED else None
    return RunResult(*names, run.repetition, attempt, Verdict(outcome), evidence, measurement)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes a part that has been measured."""

    def make(shard: str, name: str = "", *, unfinished: bool = False, **changed: Any) -> Path:
        runs = part_of(PLAN, shard)
        directory = tmp_path / (name or shard.replace("/", "-") or "whole")
        directory.mkdir()
        manifest = Manifest(
            id=f"id{shard}", started=f"2026-11-2{shard[:1] or 0}T00:00:00Z", command=("run.py",), tool_version="1",
            seed=7, servers=("a", "b", "c"), clients=("a", "b", "c"), implementations=ENDS,
            test_cases=tuple(dict.fromkeys(run.test_case for run in runs)),
            images={"a": ImageFacts("a:1", "sha256:1")}, planned_runs=len(runs), shard=shard,
        )  # fmt: skip
        with Journal.create(directory, replace(manifest, **changed)) as journal:
            journal.append_result(result(runs[0], 1, Outcome.ERROR))
            for run in runs[: -1 if unfinished else None]:
                place = directory / run.path / "sim"
                place.mkdir(parents=True)
                (place / "trace.pcap").write_text(str(run.path))
                journal.append_result(result(run, 2 if run is runs[0] else 1))
            attempt_directory = directory / runs[0].path.with_name("1.attempt-1")
            attempt_directory.mkdir()
            (attempt_directory / "output.txt").write_text("first try")
            (place / "link").symlink_to("/etc/passwd")
            if not unfinished:
                journal.finish()
        return directory

    return make


def test_parts_become_the_whole(make: Make, tmp_path: Path) -> None:
    parts = [make(f"{number}/3") for number in (3, 1, 2)]
    told = merge(parts, tmp_path / "all")
    assert "36 of 36 runs of 3 parts" in told
    record = load(tmp_path / "all")
    results = record.result_set
    assert plan_of(results.manifest) == PLAN
    assert remaining_work(record, ()).runs == ()
    assert (results.manifest.shard, results.manifest.started) == ("", "2026-11-21T00:00:00Z")
    assert results.finished is not None
    assert len(record.history) == 36 + 3
    for run in PLAN:
        assert (tmp_path / "all" / run.path / "sim" / "trace.pcap").read_text() == str(run.path)
    assert len(list((tmp_path / "all").rglob("1.attempt-1"))) == 3
    assert not any(path.is_symlink() for path in (tmp_path / "all").rglob("*"))


@pytest.mark.parametrize(("processors", "expected"), [(("A", "A"), "A"), (("A", "B"), ""), (("A", ""), "")])
def test_the_whole_has_a_processor_if_all_parts_have_it(
    processors: tuple[str, str], expected: str, make: Make, tmp_path: Path
) -> None:
    merge([make(f"{number}/2", processor=each) for number, each in enumerate(processors, 1)], tmp_path / "all")
    assert load(tmp_path / "all").result_set.manifest.processor == expected


def test_files_are_copied_where_they_cannot_be_linked(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    merge([make("1/1")], tmp_path / "all")
    assert (tmp_path / "all" / PLAN[0].path / "sim" / "trace.pcap").read_text() == str(PLAN[0].path)


def test_what_is_left_of_a_part_is_left_of_the_whole(make: Make, tmp_path: Path) -> None:
    merge([make("1/2"), make("2/2", unfinished=True)], tmp_path / "all")
    record = load(tmp_path / "all")
    assert record.result_set.finished is None
    assert remaining_work(record, ()).runs == part_of(PLAN, "2/2")[-1:]


def test_parts_that_do_not_belong_together_are_refused(make: Make, tmp_path: Path) -> None:
    first = make("1/2")
    asked = make("1/2", "bbr", parameters={"SERVER_PARAMS": "--cc bbr"})
    for wrong, words in (
        ([first], "Parts are missing: 2/2"),
        ([first, first, make("2/2")], "Part 1/2 is there more than once"),
        ([first, make("2/3")], "divided differently: 1/2, 2/3"),
        ([first, make("")], "is no part of a plan"),
        ([first, make("2/2", "x", seed=8)], "differs from .*1-2 in: seed"),
        (
            [asked, make("2/2", "cubic", parameters={"SERVER_PARAMS": "--cc cubic"})],
            "differs from .*bbr in: parameters",
        ),
        ([first, make("2/2", "y", options={"shuffle": True})], "in: options"),
        ([first, make("2/2", "virtual", clock=Clock.VIRTUAL, cpu_cost=3e-6)], "in: clock"),
        ([first, make("2/2", "slower", cpu_cost=3e-6)], "in: cpu cost"),
        ([first, make("2/2", "factor", cpu_cost_factor=2.0)], "in: cpu cost factor"),
        ([first, make("2/2", "z", images={"a": ImageFacts("a:1", "sha256:2")})], "in: image of a"),
        (
            [first, make("2/2", "w", test_cases=(replace(CASE, repetitions=9), replace(OTHER, repetitions=9)))],
            "in: test case short",
        ),
    ):
        with pytest.raises(InputError, match=words):
            merge(wrong, tmp_path / "all")
        assert not (tmp_path / "all").exists()
