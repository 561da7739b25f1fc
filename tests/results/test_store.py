"""The results directory: nothing that was acknowledged is ever lost, and nothing odd is ever believed."""

import errno
import hashlib
import json
import os
import random
import re
import resource
import signal
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quicsat.model.emulated_link import Demand, DirectionReport, Profile, SimulatorReport
from quicsat.model.errors import HarnessFault, InputError, LockedError, MachineError, UserError
from quicsat.model.evidence import Evidence, Exit, HostFacts
from quicsat.model.family import Family, SweptValue
from quicsat.model.flow import Flow
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import Compliance, ImageFacts, Measurement, ResultSet, RunResult
from quicsat.model.run import File
from quicsat.model.test_case import TestCase
from quicsat.model.whole_file import write_atomically
from quicsat.results import document, ranges, store
from quicsat.results.store import (
    DOCUMENT,
    JOURNAL,
    LARGEST,
    Journal,
    check_campaign_directory,
    find_campaign,
    load,
    make_campaign_directory,
    make_dated_directory,
    write_result_json,
)
from tests.fakes import PATIENCE
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs

MANIFEST = result_set(repetitions=100_000).manifest


def written(directory: Path, results: list[RunResult]) -> Path:
    """A journal with these results; its path."""
    with Journal.create(directory, MANIFEST) as journal:
        for result in results:
            journal.append_result(result)
    return directory / "journal.jsonl"


# ---- round trip -----------------------------------------------------------------------------

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBER = st.floats(*ranges.NUMBERS).filter(lambda value: value == 0 or abs(value) >= ranges.SMALLEST)
for kind, strategy in ((int, st.integers(*ranges.INTEGERS)), (float, NUMBER), (str, TEXT)):
    st.register_type_strategy(kind, strategy)
NUMBERS = st.dictionaries(TEXT, NUMBER.map(abs), max_size=3)
TEXTS = st.lists(TEXT, max_size=2).map(tuple)
FILES = st.lists(st.builds(File), max_size=2).map(tuple)
EVIDENCE = st.builds(
    Evidence,
    started=st.sampled_from(["", "2026-11-21T06:00:00Z", "1999-12-31T23:59:59.123+05:30"]),
    seed=st.just(0),
    phases=st.dictionaries(TEXT, st.floats(1e-9, 1e9), max_size=3),
    client=...,
    server=...,
    timed_out=...,
    offered=FILES,
    downloaded=FILES,
    images=st.dictionaries(TEXT, TEXT, max_size=2),
    simulator=st.none() | st.builds(SimulatorReport, lateness=...),
    host=st.none() | st.builds(HostFacts, cpu_pressure=...),
    notes=TEXTS,
)
RESULT = st.builds(
    RunResult,
    server=st.just("picoquic"),
    client=st.just("quiche"),
    test_case=st.just("sat"),
    repetition=st.integers(1, 10),
    attempt=st.integers(1, 10_000),
    verdict=st.builds(Verdict, st.sampled_from(Outcome), st.sampled_from(ErrorCode), TEXT),
    evidence=EVIDENCE,
    measurement=st.none() | st.builds(Measurement, NUMBERS, TEXTS),
).filter(lambda result: not document.result_fault(MANIFEST, result))
SOMEWHERE = Path("campaign/journal.jsonl")


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(results=st.lists(RESULT, max_size=3, unique_by=lambda result: result.repetition))
def test_any_results_survive_the_journal_and_the_document(results: list[RunResult]) -> None:
    text = document.seal(document.ManifestLine(at="", data=MANIFEST))
    text += b"".join(document.seal(document.ResultLine(at="", data=result)) for result in results)
    scan = document.scan(SOMEWHERE, text)
    record = document.fold(SOMEWHERE, scan.lines, scan.warnings)
    assert record.result_set == ResultSet(MANIFEST, (), tuple(results), None)
    assert record.history == tuple(results)
    assert record.warnings == ()
    assert document.parse_document(SOMEWHERE, document.document(record.result_set)).result_set == record.result_set


def test_results_survive_the_directory(tmp_path: Path) -> None:
    results = runs(5e6, 6e6, None)
    written(tmp_path, results)
    record = load(tmp_path)
    assert record == document.StoredResults(ResultSet(MANIFEST, (), tuple(results), None), tuple(results), ())
    path = write_result_json(tmp_path, record.result_set)
    (tmp_path / "journal.jsonl").unlink()
    assert load(tmp_path) == load(path) == record


def test_profiles_of_links_are_stored(tmp_path: Path) -> None:
    """A campaign does not need their files again."""
    profile = Profile("leo.csv", 3.0, (0.0, 1.5), (10e6, 0.0), (0.02, 0.0301), (0.0, 0.015), start=None)
    case = MANIFEST.test_cases[0]
    link = replace(case.emulated.with_forward(profile=profile), demand=Demand(0.0265, 0.56, 100, 64e3))
    manifest = replace(MANIFEST, test_cases=(replace(case, link=link),))
    with Journal.create(tmp_path, manifest) as journal:
        journal.finish()
    [stored] = load(tmp_path).result_set.manifest.test_cases
    assert stored.emulated == link
    assert stored.emulated.forward.profile
    assert stored.emulated.forward.profile.digest == profile.digest


def test_compliance_and_the_end_are_kept(tmp_path: Path) -> None:
    answers = (
        Compliance("quiche", Role.CLIENT, compliant=False, reason="exit status 1", image="sha256:1"),
        Compliance("quiche", Role.SERVER, compliant=True, reason="", image="sha256:1"),
    )
    again = replace(answers[0], compliant=True, reason="")
    with Journal.create(tmp_path, MANIFEST) as journal:
        for answer in (*answers, again):
            journal.append_compliance(answer)
        assert journal.directory == tmp_path
        assert journal.record().result_set.finished is None
        journal.finish()
        assert journal.record() == load(tmp_path)
    found = load(tmp_path).result_set
    assert found.compliance == (again, answers[1])
    assert found.finished is not None and datetime.fromisoformat(found.finished).tzinfo is UTC
    with Journal.open(tmp_path) as journal:
        journal.append_result(run_result())
    assert load(tmp_path).result_set.finished is None, "more was done after the end"


def test_a_later_attempt_supersedes_and_the_history_keeps_all(tmp_path: Path) -> None:
    first = run_result(None, outcome=Outcome.ERROR)
    other = run_result(6e6, repetition=2)
    second = run_result(5e6, attempt=2)
    late = run_result(None, attempt=1, outcome=Outcome.FAILED)
    analysed_again = run_result(5.5e6, attempt=2)
    written(tmp_path, [first, other, second, late, analysed_again])
    record = load(tmp_path)
    assert record.result_set.results == (analysed_again, other)
    assert record.history == (first, other, second, late, analysed_again)


def test_numbers_that_are_none_never_get_in(tmp_path: Path) -> None:
    with Journal.create(tmp_path, MANIFEST) as journal:
        for number in (float("nan"), float("inf")):
            with pytest.raises(HarnessFault, match=r"measurement\.values\.goodput.*finite"):
                journal.append_result(replace(run_result(), measurement=Measurement({"goodput": number})))
        journal.append_result(run_result())
    assert load(tmp_path).result_set.results == (run_result(),)
    with pytest.raises(HarnessFault, match="finite"):
        bad = replace(run_result(), measurement=Measurement({"lag": float("nan")}))
        write_result_json(tmp_path, result_set([bad]))


def test_text_that_is_no_unicode_gets_in_as_question_marks(tmp_path: Path) -> None:
    written(tmp_path, [run_result(None, reason="file \udcff is missing")])
    assert load(tmp_path).result_set.results[0].verdict.reason == "file ? is missing"


def test_absolute_paths_stay_at_home(tmp_path: Path) -> None:
    case = replace(SAT, source="/home/me/leo.yaml")
    here = str(Path.cwd() / "own" / "x.yaml")
    command = ("./run.py", "-t", "/home/me/leo.yaml", "--log=/home/me/x", here, "a=b")
    manifest = replace(MANIFEST, test_cases=(case,), command=command)
    with Journal.create(tmp_path, manifest) as journal:
        found = journal.record().result_set.manifest
    assert found.test_cases[0].source == "leo.yaml"
    assert found.command == ("./run.py", "-t", "leo.yaml", "--log=x", "own/x.yaml", "a=b")
    assert b"/home/me" not in (tmp_path / "journal.jsonl").read_bytes()


# ---- crashes --------------------------------------------------------------------------------


def test_a_last_line_torn_at_any_byte_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "WRITING", 0.0)
    results = runs(5e6, 6e6, None)
    content = written(tmp_path, results).read_bytes()
    last = content.rindex(b"\n", 0, -1) + 1
    for end in range(last, len(content)):
        (tmp_path / "journal.jsonl").write_bytes(content[:end])
        record = load(tmp_path)
        assert record.result_set.results == tuple(results[:2]), end
        assert len(record.warnings) == (end > last), end
        with Journal.open(tmp_path) as journal:
            journal.append_result(results[2])
        record = load(tmp_path)
        assert record.result_set.results == tuple(results), end
        assert record.warnings == (), "the torn line was cut off before the next was written"


@pytest.mark.parametrize("taken_back", [False, True])
def test_a_reader_does_not_see_half_of_a_line_that_a_campaign_is_writing(
    taken_back: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The campaign writes on while the reader looks; a write that fails is taken back."""
    content = written(tmp_path, runs(5e6, 6e6)).read_bytes()
    path, last = tmp_path / "journal.jsonl", content.rindex(b"\n", 0, -1) + 1
    path.write_bytes(content[: last + 10])
    monkeypatch.setattr(store, "WRITING", PATIENCE)
    later = threading.Timer(0.02, path.write_bytes, (content[:last] if taken_back else content,))
    later.start()
    record = load(tmp_path)
    later.join()
    assert len(record.result_set.results) in ((1,) if taken_back else (1, 2))
    assert record.warnings == ()


def test_readers_do_not_delay_a_campaign(tmp_path: Path) -> None:
    """Nor does a reader hold a lock that could keep a campaign from being continued."""
    with Journal.create(tmp_path, MANIFEST) as journal:
        over, found = threading.Event(), list[document.StoredResults]()

        def read() -> None:
            while not over.is_set():
                found.append(load(tmp_path))

        reader = threading.Thread(target=read)
        reader.start()
        for number in range(1, 51):
            journal.append_result(replace(run_result(), attempt=number))
        over.set()
        reader.join()
    assert all(record.warnings == () for record in found)
    counts = [len(record.history) for record in found]
    assert counts == sorted(counts)


def test_a_last_line_of_garbage_is_cut_off_too(tmp_path: Path) -> None:
    path = written(tmp_path, runs(5e6))
    good = path.read_bytes()
    path.write_bytes(good + b"\0" * 100 + b"\n")
    assert load(tmp_path).warnings == (f"{path}:3: is damaged (its checksum does not match); the line was skipped.",)
    Journal.open(tmp_path).close()
    assert path.read_bytes() == good


def test_a_damaged_line_in_the_middle_costs_only_itself(tmp_path: Path) -> None:
    path = written(tmp_path, runs(5e6, 6e6, 7e6))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"6000000.0", b"9000000.0")
    path.write_bytes(b"".join(lines))
    record = load(tmp_path)
    assert [result.repetition for result in record.result_set.results] == [1, 3]
    assert record.warnings == (f"{path}:3: is damaged (its checksum does not match); the line was skipped.",)
    Journal.open(tmp_path).close()
    assert path.read_bytes() == b"".join(lines), "nothing but a torn end is ever cut off"


NEW = '"of_tomorrow": {"a": [1]}, '
FIRST_MEMBERS = (
    '"id": "',
    '"name": "satloss"',
    '"scenario": ',
    '"reference": ',
    '"outcome": ',
    '"started": ',
    '"values": ',
)
"""Of the manifest, a test case, its link, an image, and the verdict, evidence and measurement of a result."""


@pytest.mark.parametrize("first", FIRST_MEMBERS)
def test_what_a_newer_version_adds_is_left_out_and_said(tmp_path: Path, first: str) -> None:
    """In the journal and in result.json; all that is known is read."""
    ours = result_set(runs(5e6), test_cases=(SAT, SATLOSS))
    ours = replace(ours, manifest=replace(ours.manifest, images={"a": ImageFacts("a:1", "1")}, tool_version="9.9"))
    with Journal.create(tmp_path, ours.manifest) as journal:
        journal.append_result(ours.results[0])
    known = load(tmp_path).result_set
    written_by = tmp_path / "journal.jsonl", write_result_json(tmp_path, known)
    for path in written_by:
        text = path.read_text()
        assert first in text, path
        path.write_text("\n".join(map(sealed_again, text.replace(first, NEW + first).split("\n"))))
        record = load(path)
        assert record.result_set == known
        [warning] = record.warnings
        assert warning.startswith(f"{path}: a newer version of quicsat (9.9) wrote it.")
        assert '"of_tomorrow"' in warning


def sealed_again(line: str) -> str:
    """A line of a journal with the checksum of its content."""
    body, sign, _ = line.rpartition(', "sum": "')
    return f'{body}{sign}{hashlib.sha256(body.encode()).hexdigest()[:16]}"}}' if sign else line


def test_many_damaged_lines_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, runs(*[5e6] * 9))
    path.write_bytes(path.read_bytes().replace(b"5000000.0", b"9000000.0"))
    record = load(tmp_path)
    assert record.result_set.results == ()
    assert [warning.partition(": ")[0] for warning in record.warnings[:5]] == [f"{path}:{n}" for n in range(2, 7)]
    assert record.warnings[5:] == (f"{path}: further skipped lines: 4.",)


def test_a_lost_manifest_is_taken_from_result_json(tmp_path: Path) -> None:
    path = written(tmp_path, runs(5e6))
    write_result_json(tmp_path, load(tmp_path).result_set)
    path.write_bytes(path.read_bytes().replace(b'"seed"', b'"sead"', 1))
    record = load(tmp_path)
    assert record.result_set == ResultSet(MANIFEST, (), tuple(runs(5e6)), None)
    assert len(record.warnings) == 1
    (tmp_path / "result.json").unlink()
    with pytest.raises(InputError, match="holds no manifest"):
        load(tmp_path)


def test_what_an_emptied_journal_has_lost_is_taken_from_result_json(tmp_path: Path) -> None:
    path = written(tmp_path, runs(5e6, 6e6))
    whole = load(tmp_path).result_set
    write_result_json(tmp_path, whole)
    path.write_bytes(b"")
    assert load(tmp_path).result_set == replace(whole, finished=None)
    with Journal.open(tmp_path) as journal:
        journal.append_result(runs(5e6, 6e6, 7e6)[2])
    assert [result.repetition for result in load(tmp_path).result_set.results] == [1, 2, 3]


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    generator = random.Random(1)
    for number in range(10):
        directory = tmp_path / str(number)
        directory.mkdir()
        acknowledged = _append_until_killed(directory, generator.randrange(30), generator.random() * 2e-3)
        found = load(directory).result_set.results
        assert [result.repetition for result in found] == list(range(1, len(found) + 1))
        assert acknowledged <= len(found) <= acknowledged + 1
        with Journal.open(directory) as journal:
            journal.append_result(run_result(repetition=len(found) + 1))
        assert len(load(directory).result_set.results) == len(found) + 1


def _append_until_killed(directory: Path, after: int, delay: float) -> int:
    """Kill -9 a process that appends, some time after ``after`` results; how many it had acknowledged."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            journal = Journal.create(directory, MANIFEST)
            os.write(writing, b".")
            for repetition in range(1, 10_000):
                journal.append_result(run_result(repetition=repetition))
                os.write(writing, b".")
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading, "rb", buffering=0) as acknowledgements:  # noqa: PTH123 - a descriptor, no path
        received = 0
        while received <= after:
            received += len(acknowledgements.read(after + 1 - received))
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while rest := acknowledgements.read(4096):
            received += len(rest)
    return received - 1


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may grow beyond ``size`` bytes: writes come out short and then fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_all_that_was_written(tmp_path: Path) -> None:
    size = len(written(tmp_path, runs(5e6, 6e6)).read_bytes())
    for room in range(size, size + 700, 14):
        with Journal.open(tmp_path) as journal:
            with (
                room_for(room),
                pytest.raises(MachineError, match=r"cannot be written: .+\. All lines before are safe\."),
            ):
                journal.append_result(run_result(repetition=3))
            assert load(tmp_path).warnings == ()
            assert load(tmp_path).result_set.results == tuple(runs(5e6, 6e6))
    with Journal.open(tmp_path) as journal:
        journal.append_result(run_result(repetition=3))
    assert len(load(tmp_path).result_set.results) == 3


def test_a_full_disk_that_cannot_even_be_cut_back_heals_with_the_next_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(written(tmp_path, runs(5e6)).read_bytes())

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "input/output error")

    with Journal.open(tmp_path) as journal:
        with monkeypatch.context() as patch, room_for(size + 50), pytest.raises(MachineError):
            patch.setattr(os, "ftruncate", refuse)
            journal.append_result(run_result(repetition=2))
        assert len(load(tmp_path).warnings) == 1
        journal.append_result(run_result(repetition=2))
    assert load(tmp_path).warnings == ()
    assert len(load(tmp_path).result_set.results) == 2


def test_a_line_that_does_not_reach_the_disk_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    with Journal.create(tmp_path, MANIFEST) as journal:
        with monkeypatch.context() as patch, pytest.raises(MachineError, match="cannot be written: input/output error"):
            patch.setattr(os, "fsync", refuse)
            journal.append_result(run_result())
        assert journal.record().result_set.results == load(tmp_path).result_set.results == ()


@pytest.mark.parametrize(
    ("change", "told"), [(lambda path: path.write_bytes(b""), "cut"), (Path.unlink, "removed")], ids=["cut", "removed"]
)
def test_a_change_of_the_journal_meanwhile_is_told(tmp_path: Path, change: Callable[[Path], object], told: str) -> None:
    path = written(tmp_path, runs(5e6))
    with Journal.open(tmp_path) as journal:
        change(path)
        with pytest.raises(MachineError, match=f"was {told} while the campaign ran"):
            journal.append_result(run_result(repetition=2))


def test_an_atomic_write_that_fails_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_atomically(path, b"old")
    with room_for(2), pytest.raises(MachineError, match=r"result\.json: cannot be written"):
        write_atomically(path, b"newer")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("result.json", b"old")]


def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    link, target = tmp_path / "link", tmp_path / "b/target"
    link.symlink_to("b/target")
    for content in (b"new", b"newer"):
        write_atomically(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content


def test_a_pipe_takes_the_content_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, b"text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert pipe.is_fifo()


def test_result_json_is_never_written_through_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "result.json").symlink_to("mine")
    write_result_json(tmp_path, result_set())
    assert (tmp_path / "mine").read_text() == "mine"
    assert not (tmp_path / "result.json").is_symlink()


# ---- one writer, right place ----------------------------------------------------------------


def test_a_second_writer_is_kept_out(tmp_path: Path) -> None:
    with Journal.create(tmp_path, MANIFEST):
        with pytest.raises(LockedError, match="another campaign is writing"):
            Journal.open(tmp_path)
        with pytest.raises(InputError, match="holds a campaign already"):
            Journal.create(tmp_path, MANIFEST)
    Journal.open(tmp_path).close()


def test_campaign_directories_and_latest(tmp_path: Path) -> None:
    root = tmp_path / "results"
    moment = datetime(2026, 11, 21, 6, 49, 24, tzinfo=UTC)
    first = make_dated_directory(root, moment)
    assert first == root / "2026-11-21T06-49-24Z"
    assert (root / "latest").readlink() == Path("2026-11-21T06-49-24Z")
    second = make_dated_directory(root, moment)
    assert second == root / "2026-11-21T06-49-24Z-2"
    assert (root / "latest").resolve() == second.resolve()
    assert {path.name for path in root.iterdir()} == {first.name, second.name, "latest"}


def test_latest_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    with pytest.raises(InputError, match="latest: is no symbolic link"):
        make_dated_directory(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["latest"]


def test_a_directory_of_the_user_that_cannot_be_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refuse)
    with pytest.raises(InputError, match="mine: cannot be prepared for results: Permission denied"):
        check_campaign_directory(tmp_path / "mine")


def test_the_directory_of_the_user(tmp_path: Path) -> None:
    assert make_campaign_directory(tmp_path / "a" / "b").is_dir()
    assert make_campaign_directory(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    with pytest.raises(InputError, match="is not empty"):
        make_campaign_directory(tmp_path / "a")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        make_campaign_directory(tmp_path / "file")
    with pytest.raises(MachineError, match="file/below: cannot be prepared"):
        make_campaign_directory(tmp_path / "file" / "below")
    with pytest.raises(MachineError, match="cannot be prepared"):
        make_dated_directory(tmp_path / "file")


def test_no_results_there(tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere", tmp_path / "no.json", tmp_path / "no.jsonl"):
        with pytest.raises(InputError, match=f"{place.name}: no such file or directory"):
            load(place)
    with pytest.raises(InputError, match="holds no results"):
        load(tmp_path)
    with pytest.raises(InputError, match="holds no results"):
        Journal.open(tmp_path)


# ---- documents from elsewhere ---------------------------------------------------------------


def full_result_set() -> ResultSet:
    """Two of each kind, in two test cases."""
    results = [*runs(5e6, 6e6, None), *runs(None, 1e6, test_case="satloss")]
    return result_set(results, test_cases=(SAT, SATLOSS), repetitions=3)


def test_the_summary_of_result_json(tmp_path: Path) -> None:
    path = write_result_json(tmp_path, full_result_set())
    plain = json.loads(path.read_bytes())
    summary = plain["summary"]
    sat, satloss = summary
    assert {tuple(each["roles"]) for each in plain["manifest"]["implementations"]} == {("client", "server")}, "sorted"
    assert [sat[key] for key in ("planned", "n", "succeeded", "timeout", "error")] == [3, 3, 2, 1, 0]
    spread = pytest.approx(707106.78118)
    assert sat["goodput"] == {"mean": 5.5e6, "standard_deviation": spread, "median": 5.5e6, "min": 5e6, "max": 6e6}
    assert satloss["efficiency"] == {
        **dict.fromkeys(("mean", "median", "min", "max"), 0.05),
        "standard_deviation": None,
    }


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(document.SCHEMA_FILE.read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def _set(*place: str | int, value: Any) -> Callable[[Any], None]:
    def change(text: Any) -> None:
        for step in place[:-1]:
            text = text[step]
        text[place[-1]] = value

    return change


BAD = {
    "unknown outcome": _set("results", 0, "verdict", "outcome", value="perhaps"),
    "unknown error code": _set("results", 0, "verdict", "code", value="bad-luck"),
    "number as text": _set("results", 0, "measurement", "values", "goodput", value="5"),
    "text as number": _set("manifest", "id", value=5),
    "fraction of a repetition": _set("results", 0, "repetition", value=1.5),
    "no manifest": _set("manifest", value=None),
    "truth as number": _set("manifest", "seed", value=True),
    "unknown loss": _set("manifest", "test_cases", 1, "link", "forward", "loss", value={"chance": 0.1}),
}


def test_documents_obey_the_schema(tmp_path: Path, validator: jsonschema.Draft202012Validator) -> None:
    for results in (full_result_set(), result_set(), result_set(finished=None)):
        validator.validate(json.loads(write_result_json(tmp_path, results).read_bytes()))


@pytest.mark.parametrize("change", BAD.values(), ids=BAD)
def test_schema_and_reader_refuse_alike(
    change: Callable[[Any], None], tmp_path: Path, validator: jsonschema.Draft202012Validator
) -> None:
    path = write_result_json(tmp_path, replace(full_result_set(), finished=None))
    text = json.loads(path.read_bytes())
    change(text)
    path.write_text(json.dumps(text))
    assert not validator.is_valid(text)
    before = full_result_set().results
    try:
        record = load(tmp_path)
    except InputError as error:
        assert str(error).startswith(f"{path}: ")
    else:
        assert (record.result_set.results, len(record.warnings)) == (before[1:], 1)


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    path = write_result_json(tmp_path, full_result_set())
    text = json.loads(path.read_bytes())
    for key in ("unknown outcome", "text as number", "unknown loss"):
        BAD[key](text)
    path.write_text(json.dumps(text))
    with pytest.raises(InputError) as raised:
        load(tmp_path)
    assert all(each.endswith(".") for each in raised.value.problems)
    told = "\n".join(raised.value.problems)
    assert "results[0].verdict.outcome: Input should be 'succeeded'" in told
    assert "manifest.id: " in told
    assert "manifest.test_cases[1].link.forward.loss" in told


def test_an_unknown_schema_version_is_told(tmp_path: Path) -> None:
    journal = written(tmp_path, runs(5e6))
    document_path = write_result_json(tmp_path, load(tmp_path).result_set)
    document_path.write_text(document_path.read_text().replace('"schema_version": 2', '"schema_version": 7'))
    first, rest = journal.read_text().split("\n", 1)
    journal.write_text(sealed_again(first.replace('"schema_version": 2', '"schema_version": 7')) + "\n" + rest)
    for place in (document_path, journal, tmp_path):
        with pytest.raises(InputError, match="schema version 7; this program reads versions 1 and 2"):
            load(place)
    with pytest.raises(InputError, match="schema version 7"):
        Journal.open(tmp_path)


def reseal(body: bytes) -> bytes:
    """A line with the right checksum, whatever it says."""
    return body + b', "sum": "' + document._checksum(body) + b'"}'


def test_results_of_before_lateness_was_recorded(tmp_path: Path) -> None:
    """Journals of older versions have neither lateness nor the times of containers."""
    counters = DirectionReport(1, 1, 0, 0)
    report = SimulatorReport(0.0, True, 0.0, 0.02, 0, counters, counters)
    [result] = runs(5e6)
    result = replace(result, evidence=replace(result.evidence, simulator=report, client=Exit(0)))
    path = written(tmp_path, [result])
    manifest, line = path.read_text().splitlines()
    for member in (', "lateness": null', ', "life": null'):
        assert line.count(member) > 0
        line = line.replace(member, "")
    path.write_text(f"{manifest}\n{sealed_again(line)}\n")
    record = load(tmp_path)
    assert record.warnings == ()
    assert record.result_set.results == (result,)


@pytest.mark.parametrize("name", ["../../etc", "a/b", "", "a" * 65, "x\x1b[31m", "..", "<b>"])
def test_names_that_no_path_may_have_are_refused(name: str, tmp_path: Path) -> None:
    results = result_set([run_result(server=name)], servers=(name,))
    path = write_result_json(tmp_path, results)
    with pytest.raises(InputError, match="has the name") as raised:
        load(path)
    assert "\x1b" not in str(raised.value)
    with pytest.raises(InputError, match="has the name"):
        Journal.create(tmp_path, results.manifest)
    assert not (tmp_path / "journal.jsonl").exists()
    line = document.ManifestLine(at="", data=results.manifest)
    (tmp_path / "journal.jsonl").write_bytes(document.seal(line))
    with pytest.raises(InputError, match="has the name"):
        load(tmp_path)


FAMILY = Family("lossy", "LOS", (SweptValue("loss", "5 %", 0.05, "%", 0.01),))
MEMBER = replace(SAT, name="lossy@loss=5pct", abbreviation="LOS@5pct", family=FAMILY)
WITH_FLOWS = replace(SAT, name="sat~same_0.1s", abbreviation="SAT~same_0.1s", flows=(Flow(start=0.1),))


@pytest.mark.parametrize(
    ("case", "faults"),
    [
        (MEMBER, [{"name": "lossy@loss=5%"}, {"family": replace(FAMILY, abbreviation="../LOS")}]),
        (MEMBER, [{"abbreviation": text} for text in ("LOS@5/", "LOS@" + "1" * 100)]),
        (WITH_FLOWS, [{"abbreviation": text} for text in ("SAT~", "SAT~../x", "SAT~same/", "SAT~" + "1" * 200)]),
    ],
    ids=["member of a family", "abbreviation of a member", "further flows"],
)
def test_composed_names_are_stored_and_read(case: TestCase, faults: list[dict[str, Any]], tmp_path: Path) -> None:
    results = result_set([run_result(test_case=case.name)], test_cases=(case,))
    assert load(write_result_json(tmp_path, results)).result_set.manifest.test_cases == (case,)
    for fault in faults:
        wrong = result_set([], test_cases=(replace(case, **fault),))
        with pytest.raises(InputError, match="has the name"):
            load(write_result_json(tmp_path, wrong))


def test_names_must_be_told_apart(tmp_path: Path) -> None:
    results = result_set(servers=("quiche", "quiche"), test_cases=(SAT, SAT))
    with pytest.raises(InputError) as raised:
        Journal.create(tmp_path, results.manifest)
    told = [problem.rpartition(" names ")[2] for problem in raised.value.problems]
    assert told == ["a server twice.", "a test case twice.", "an abbreviation twice."]


@pytest.mark.parametrize("repetitions", [0, -1, 10**12])
def test_impossible_numbers_of_repetitions_are_refused(repetitions: int, tmp_path: Path) -> None:
    path = write_result_json(tmp_path, result_set(repetitions=7))
    path.write_text(path.read_text().replace('"repetitions": 7', f'"repetitions": {repetitions}'))
    with pytest.raises(InputError, match=r"test_cases\[0\]\.repetitions"):
        load(path)


def test_results_of_no_run_of_the_manifest(tmp_path: Path) -> None:
    membership_fault = [run_result(server="nobody"), run_result(client="nobody"), run_result(test_case="no")]
    record = load(write_result_json(tmp_path, result_set([*membership_fault, run_result()], finished=None)))
    assert (record.result_set.results, len(record.warnings)) == ((run_result(),), 3)
    path = written(tmp_path, [run_result()])
    with Journal.open(tmp_path) as journal:
        for result in membership_fault:
            with pytest.raises(HarnessFault, match="belongs to no run of the manifest"):
                journal.append_result(result)
    with path.open("ab") as file:
        file.writelines(document.seal(document.ResultLine(at="", data=result)) for result in membership_fault)
    record = load(tmp_path)
    assert record.result_set.results == (run_result(),)
    assert len(record.warnings) == 3


def mutated(content: bytes, generator: random.Random) -> bytes:
    """The content with a few bytes changed, cut out, doubled, or values replaced by odd ones."""
    odd = [*b'null NaN -1e999 "\\ud800" {} \xff\xfe true ""'.split(), b"1" + b"0" * 5000, b"[" * 5000]
    for _ in range(generator.randint(1, 4)):
        at = generator.randrange(len(content))
        until = min(len(content), at + generator.choice([1, 1, 8, 200]))
        match generator.randrange(5):
            case 0:
                content = content[:at] + bytes([generator.randrange(256)]) + content[at + 1 :]
            case 1:
                content = content[:at] + content[until:] or b" "
            case 2:
                content = content[:until] + content[at:]
            case 3:
                content = content[:at] + generator.choice(odd) + content[until:]
            case _:
                colon = content.find(b": ", at) + 2
                end = min((e for e in (content.find(c, colon) for c in (b",", b"}", b"\n")) if e > 0), default=colon)
                content = content[:colon] + generator.choice(odd) + content[end:]
    return content


def test_mutated_documents_raise_nothing_but_user_errors(tmp_path: Path) -> None:
    path = write_result_json(tmp_path, full_result_set())
    good = path.read_bytes()
    generator = random.Random(2)
    refused = 0
    for _ in range(250):
        path.write_bytes(mutated(good, generator))
        try:
            load(tmp_path)
        except UserError as error:
            refused += 1
            assert "result.json" in str(error)
    assert refused > 200


def test_mutated_journals_raise_nothing_but_user_errors(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal.create(tmp_path, full_result_set().manifest) as journal:
        for result in full_result_set().results:
            journal.append_result(result)
        journal.finish()
    good = path.read_bytes()
    bodies = [line[: line.rindex(b', "sum"')] for line in good.splitlines()]
    generator = random.Random(3)
    told = 0
    for number in range(250):
        if number % 2:
            path.write_bytes(mutated(good, generator))
        else:
            which = generator.randrange(len(bodies))
            changed = mutated(bodies[which], generator).replace(b"\n", b"")
            path.write_bytes(b"\n".join(reseal(b) for b in [*bodies[:which], changed, *bodies[which + 1 :]]) + b"\n")
        try:
            told += bool(load(tmp_path).warnings)
            Journal.open(tmp_path).close()
        except UserError:
            told += 1
    assert told > 200


def test_links_are_followed_above_a_campaign_and_not_below(tmp_path: Path) -> None:
    root = tmp_path / "results"
    for name in ("mine", "other"):
        (root / name / "a_b").mkdir(parents=True)
        write_result_json(root / name, result_set())
    (root / "latest").symlink_to("mine")
    (root / "mine/c_d").symlink_to(root / "other/a_b")
    mine, place = find_campaign(root / "latest/c_d/sat/1")
    assert (mine, place) == (root / "mine", root / "mine/c_d/sat/1")
    assert find_campaign(root / "latest") == (root / "mine", root / "mine")
    assert find_campaign(root / "latest/../other/a_b") == (root / "other", root / "other/a_b")
    assert find_campaign(tmp_path / "nowhere") == (None, tmp_path / "nowhere")
    write_result_json(root, result_set())
    assert find_campaign(root / "other/a_b/sat/1") == (root / "other", root / "other/a_b/sat/1")
    assert find_campaign(root / "mine/c_d/sat/1") == (root / "mine", root / "mine/c_d/sat/1")
    assert find_campaign(root / "latest/a_b") == (root, root / "latest/a_b")


@pytest.mark.parametrize(("begin", "program"), [(b"\x1f\x8b\x08", "gunzip --keep"), (b"\x28\xb5\x2f\xfd", "unzstd")])
def test_a_compressed_file_has_the_command_that_unpacks_it(tmp_path: Path, begin: bytes, program: str) -> None:
    packed = tmp_path / f"{DOCUMENT}.x"
    packed.write_bytes(begin + b"more")
    with pytest.raises(InputError, match=re.escape(f"{packed}: is compressed. To unpack it: {program} {packed}")):
        load(packed)
    with pytest.raises(InputError, match=re.escape(f"{tmp_path}: holds no results but {packed.name}")):
        load(tmp_path)


@pytest.mark.parametrize("name", [JOURNAL, DOCUMENT])
def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path, name: str) -> None:
    """It is sparse, so that it takes no place on the disk."""
    with (tmp_path / name).open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(InputError, match=f"{name}: cannot be read: it has more than {LARGEST} bytes"):
        load(tmp_path)


def test_a_damaged_file_takes_no_multiple_of_its_size(tmp_path: Path) -> None:
    """The faults of a thousand empty objects took 6 MB."""
    path = write_result_json(tmp_path, full_result_set())
    plain = json.loads(path.read_bytes())
    plain["results"][0]["measurement"]["objects"] = [{}] * 1000
    plain["summary"] = [{}] * 1000
    path.write_text(json.dumps(plain))
    load(tmp_path)
    tracemalloc.start()
    found = load(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.result_set.results) == len(full_result_set().results) - 1
    assert peak < 2**20


def test_a_journal_of_damaged_lines_is_refused(tmp_path: Path) -> None:
    with Journal.create(tmp_path, result_set([]).manifest):
        pass
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b"\n" * 10_001)
    with pytest.raises(InputError, match="more than 10000 damaged lines"):
        load(tmp_path)
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b"\n" * 300_000)
    with pytest.raises(InputError, match="more than 300000 lines"):
        load(tmp_path)


@pytest.mark.parametrize("name", [JOURNAL, DOCUMENT])
def test_results_that_need_too_much_memory_are_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal.create(tmp_path, MANIFEST) as journal:
        for result in runs(1e6, 2e6):
            journal.append_result(result)
    write_result_json(tmp_path, load(tmp_path).result_set)
    if name == DOCUMENT:
        (tmp_path / JOURNAL).unlink()
    monkeypatch.setattr(document, "_STEP", 1)
    assert load(tmp_path).warnings == ()
    monkeypatch.setattr(document, "_MEMORY", -1)
    with pytest.raises(InputError, match="memory"):
        load(tmp_path)


def test_a_line_of_too_many_values_is_damaged(tmp_path: Path) -> None:
    with Journal.create(tmp_path, result_set([]).manifest):
        pass
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(reseal(b'{"kind": "result", "data": [' + b"[]," * 250_001 + b"[]]") + b"\n")
    [warning] = load(tmp_path).warnings
    assert "more than 250000 values" in warning
