"""The data set of the report docs/paper: from campaigns to files, and back."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from interop.model.evidence import HostFacts
from interop.model.results import ResultSet, Versions
from interop.model.units import MBPS
from interop.results.store import Journal
from scripts.paper.data_set import (
    Part,
    campaigns,
    collect,
    combined,
    data_sheet,
    fewer_seeds,
    joined,
    read,
    write_checksums,
)
from tests.results_builder import result_set, run_result, runs, virtual
from tests.scripts.paper.campaigns import matrix


def test_campaigns_of_several_seeds_are_repetitions_of_one() -> None:
    first = result_set(runs(5 * MBPS), repetitions=1)
    both = combined([first, first])
    assert [each.repetition for each in both.results] == [1, 2]
    assert both.manifest.test_cases[0].repetitions == 2
    assert both.manifest.planned_runs == 2 * first.manifest.planned_runs


def test_different_clocks_are_never_combined() -> None:
    one = result_set(runs(5 * MBPS))
    with pytest.raises(ValueError, match="different clocks"):
        combined([one, virtual(one)])


def test_the_data_set_has_campaigns_with_results_and_checksums(tmp_path: Path) -> None:
    for name, results in (("matrix-1", matrix()), ("matrix-2", matrix()), ("queues-1", result_set())):
        directory = tmp_path / "results" / name
        directory.mkdir(parents=True)
        with Journal.create(directory, results.manifest) as journal:
            for each in results.results:
                journal.append_result(each)
    written = collect(tmp_path / "results", tmp_path / "data")
    assert [path.name for path in written] == ["matrix-1.json.gz", "matrix-2.json.gz"]
    before = [path.read_bytes() for path in written]
    assert collect(tmp_path / "results", tmp_path / "data") == written
    assert [path.read_bytes() for path in written] == before
    write_checksums(tmp_path / "data")
    for line in (tmp_path / "data" / "SHA256SUMS").read_text().splitlines():
        checksum, name = line.split()
        assert hashlib.sha256((tmp_path / "data" / name).read_bytes()).hexdigest() == checksum
    assert len(read(tmp_path / "data")["matrix"].results) == 16


def test_campaigns_of_other_pairs_are_joined() -> None:
    one, other = (
        result_set(runs(5 * MBPS, server=name, client=name), servers=(name,), clients=(name,)) for name in ("a", "b")
    )
    both = joined([one, other])
    assert both.manifest.servers == both.manifest.clients == ("a", "b")
    assert [run.server for run in both.results] == ["a", "b"]
    assert both.manifest.planned_runs == one.manifest.planned_runs + other.manifest.planned_runs


def test_all_sweeps_are_one_part(tmp_path: Path) -> None:
    for name in ("sweeps-quic-go-1", "sweeps-picoquic-1", "sweeps-picoquic-2"):
        directory = tmp_path / "results" / name
        directory.mkdir(parents=True)
        results = matrix()
        with Journal.create(directory, results.manifest) as journal:
            for each in results.results:
                journal.append_result(each)
    collect(tmp_path / "results", tmp_path / "data")
    parts = read(tmp_path / "data")
    assert list(parts) == ["sweeps"]
    assert len(parts["sweeps"].results) == 3 * len(matrix().results)


def test_attempts_and_runs_add_up() -> None:
    """Two of eight runs failed, and one of them was made again."""
    results = replace(matrix(), earlier=(matrix().results[-1],))
    table = campaigns({"matrix": results, "windows": result_set(runs(5 * MBPS))})
    first, second, last = table.rows
    assert first == ("matrix", 2, 8, 9, 1, 8, 7, 0, 1, 0)
    assert second == ("windows", 1, 10, 1, 0, 1, 1, 0, 0, 0)
    assert last[3:] == (10, 1, 9, 8, 0, 1, 0)
    assert table.notes[1] == "All campaigns ran in real time."


def test_campaigns_with_different_clocks_are_told_apart() -> None:
    table = campaigns({"matrix": virtual(result_set()), "real": result_set()})
    assert table.notes[1] == (
        "The campaign `matrix` ran in virtual time (3 µs per system call); the campaign `real` ran in real time."
    )
    table = campaigns({"matrix": virtual(result_set()), "real": result_set(), "windows": virtual(result_set())})
    assert table.notes[1] == (
        "The campaign `real` ran in real time; all others ran in virtual time (3 µs per system call)."
    )


def test_campaigns_without_a_stored_version_are_named() -> None:
    def with_seed(seed: int, quicsat: str | None) -> ResultSet:
        one = result_set(runs(5 * MBPS))
        versions = Versions(quicsat, "20", "3", "3.43") if quicsat else None
        return replace(one, manifest=replace(one.manifest, seed=seed, versions=versions))

    def told(*campaigns: ResultSet) -> str:
        versions = combined(campaigns).manifest.versions
        return versions.quicsat if versions else ""

    first, second, third = with_seed(1, None), with_seed(2, "a"), with_seed(3, None)
    assert told(first, second) == "a (the campaign with seed 1 did not store its version)"
    assert told(first, second, third) == "a (the campaigns with seeds 1 and 3 did not store their version)"
    assert told(second) == "a"
    assert told(first) == ""


def test_the_data_sheet_tells_what_comes_from_stored_series() -> None:
    parts = {"matrix": matrix(), "windows": matrix()}
    told = "\n".join(data_sheet(parts, "1 file", series=["a with b over `sat`"]))
    assert "[Packets of single runs](#packets-of-single-runs) come from the stored series (a with b over" in told
    assert "(#why-picoquic-is-slow-with-quic-go)" in told
    told = "\n".join(data_sheet({"matrix": matrix()}, "1 file", series=["a with b over `sat`"]))
    assert "(#why-picoquic-is-slow-with-quic-go)" not in told
    assert "no traces, logs or qlogs, and only the series of the runs named below. The figures" in told
    told = "\n".join(data_sheet(parts, "1 file"))
    assert "stored series" not in told
    assert "no traces, logs or qlogs. With the same seeds" in told


def on(processor: str, *repetitions: int) -> ResultSet:
    """Runs of some repetitions on a machine with a processor."""
    found = [run_result(5 * MBPS, repetition=number) for number in repetitions]
    host = HostFacts("6.18", "x86_64", 2, 2**34, "20.10", 0.0, processor=processor)
    kept = [replace(run, evidence=replace(run.evidence, host=host)) for run in found]
    return result_set(kept, repetitions=len(repetitions))


def test_campaigns_and_seeds_of_another_machine_are_named() -> None:
    """All of one campaign, and the second seed of another one."""
    here, there = on("EPYC", 1), on("Xeon", 2)
    mixed = replace(here, results=(*here.results, *there.results))
    parts: dict[str, ResultSet] = {Part.MATRIX: here, Part.VARIANTS: mixed, Part.QUEUES: here, Part.REPEAT: there}
    told = "\n".join(data_sheet(parts, "3 files"))
    assert "The campaigns `variants` with seed 2 and `repeat` ran on another virtual machine with two cores." in told
    some = replace(here, results=(*here.results, *on("Xeon", 1).results))
    told = "\n".join(data_sheet({Part.MATRIX: here, Part.REAL: some}, "3 files"))
    assert "The campaign `real` (1 of 2 runs) ran on another virtual machine with two cores." in told
    assert "another virtual machine" not in "\n".join(data_sheet({Part.MATRIX: here, Part.QUEUES: here}, "3 files"))


def test_campaigns_that_lack_planned_seeds_are_named() -> None:
    def with_seed(seed: int) -> ResultSet:
        found = result_set()
        return replace(found, manifest=replace(found.manifest, seed=seed))

    campaigns = [("queues", with_seed(1)), ("delays", with_seed(1)), ("real", with_seed(1))]
    campaigns += [("variants", with_seed(seed)) for seed in (1, 2)] + [
        ("windows", with_seed(seed)) for seed in (1, 2, 3)
    ]
    assert fewer_seeds(campaigns, (1, 2, 3)) == (
        "So far, the campaigns `queues` and `delays` have only seed 1 and the campaign `variants` has only seeds 1 and "
        "2."
    )
    assert fewer_seeds(campaigns[-3:], (1, 2, 3)) == ""
