"""`bisect` at the real engine: a functional failure is traced to its commit, also after kill -9."""

from collections.abc import Mapping
from pathlib import Path

from quicsat.docker.client import Daemon
from quicsat.model.clock import Clock
from quicsat.model.outcomes import Outcome
from quicsat.results.store import JOURNAL, load
from tests.engine.conftest import MACHINE, need
from tests.engine.test_command import UNCHECKED, call, finished, nothing_is_left, start
from tests.example_repository import commit_all, git
from tests.waiting import until

COUNT, PLANTED = 4, 3
"""Commits after the first one, and the one from which on the server does not support Retry."""
TESTS = "client: handshake transfer retry\nserver: handshake transfer{}\n"
IMAGE = "quicsat/test-bisect:latest"


def repository(folder: Path, base: str) -> list[str]:
    """A stack whose image is that of quic-go with another list of tests; the labels of its commits."""
    git(folder.parent, "init", "--quiet", "--initial-branch", "main", str(folder))
    labels = []
    for number in range(COUNT + 1):
        (folder / "Dockerfile").write_text(f"FROM {base}\nLABEL number={number}\nCOPY tests /endpoint/tests\n")
        (folder / "tests").write_text(TESTS.format(" retry" * (number < PLANTED)))
        commit_all(folder, f"Number {number}")
        labels.append(git(folder, "rev-parse", "HEAD").strip()[:12])
    return labels


def test_a_functional_failure_is_found_also_after_a_kill(
    daemon: Daemon, image_ids: Mapping[str, str], tmp_path: Path
) -> None:
    need(daemon, MACHINE)
    labels, place = repository(tmp_path / "stack", image_ids["quic-go"]), tmp_path / "results"
    words = (
        "bisect", "quic-go", f"{labels[0]}..{labels[-1]}", "--checkout", tmp_path / "stack",
        "--build", f"docker build -t {IMAGE} .", "-s", "quic-go", "-c", "quic-go", "-t", "retry", "transfer",
        "--repetitions", "1", "--second-look", "0", "--images", "local", "--no-qlog", UNCHECKED, "--wait", "-l", place,
    )  # fmt: skip
    with start(*words) as process:
        assert until(lambda: finished(place / labels[0]), 240)
        process.kill()
        process.communicate()
    assert nothing_is_left(daemon, place / labels[0])
    before = (place / labels[0] / JOURNAL).read_bytes()
    status, out, err = call(*words)
    assert status == 0, err
    assert f"It came with {labels[PLANTED]}" in out
    measured = [label for label in labels if (place / label).exists()]
    assert measured == [labels[n] for n in (0, 2, 3, 4)]  # ⌈log₂ 4⌉ + 1 measurements, the first of both ends
    assert (place / labels[0] / JOURNAL).read_bytes().startswith(before.rpartition(b"\n")[0])
    for label, expected in zip(measured, (*[Outcome.SUCCEEDED] * 2, *[Outcome.UNSUPPORTED] * 2), strict=True):
        results = load(place / label).result_set
        assert results.manifest.clock is Clock.VIRTUAL
        assert {each.attempt for each in results.results} == {1}
        outcomes = {each.test_case: each.verdict.outcome for each in results.results}
        assert outcomes == {"retry": expected, "transfer": Outcome.SUCCEEDED}
    seeds = {load(place / label).result_set.manifest.seed for label in measured}
    assert len(seeds) == 1
