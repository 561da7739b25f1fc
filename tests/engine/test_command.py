"""The command at the real engine: real transfers, interruption, kill -9, and what is not ours stays."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from quicsat.docker.client import Daemon
from quicsat.docker.containers import LABEL, list_containers, remove_container
from quicsat.model.outcomes import Outcome
from quicsat.model.results import RunResult
from quicsat.results.store import load
from quicsat.traces.pcap import check
from tests.engine.conftest import LOCK_PATIENCE, ROOT
from tests.waiting import until

MINE = """\
name: mine
abbreviation: MI
description: 1 MiB over a link that loses 1 %
link: {scenario: simple-p2p, delay: 10 ms, rate: 20 Mbit/s, queue: 100, loss: 1 %}
file size: 1 MiB
repetitions: 1
timeout: 30 s
---
name: mine6
extends: mine
abbreviation: M6
description: 300 kB over IPv6
server name: server6
link: {loss: 0 %}
file size: 300 kB
"""
PAIR = ("-s", "quic-go", "-c", "aioquic")
UNCHECKED = "--skip-compliance-check"
"""Of campaigns that are not about the compliance of images; others check it."""
BUSY = 75


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    return path


@dataclass(frozen=True)
class Measured:
    """A campaign that tests share, as none of them changes it."""

    directory: Path
    results: list[RunResult]


@pytest.fixture(scope="module")
def with_seed_7(image_ids: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Both test cases once."""
    place = tmp_path_factory.mktemp("seed-7")
    (place / "mine.yaml").write_text(MINE)
    words = ("-t", place / "mine.yaml", "--repetitions", "1", "--seed", "7")
    return Measured(place / "r", measure(place / "r", *PAIR, *words))


def start(*words: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "run.py", *map(str, words)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def call(*words: str | Path) -> tuple[int, str, str]:
    """Exit status and both streams; waits for whoever else uses the engine."""
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        with start(*words) as process:
            out, err = process.communicate()
        if process.returncode != BUSY or time.monotonic() > deadline:
            assert "Traceback" not in err, err
            return process.returncode, out, err
        time.sleep(1)


def measure(directory: Path, *words: str | Path) -> list[RunResult]:
    """Results of a campaign that must succeed."""
    status, _, err = call("run", *words, "-l", directory, "--images", "local", "--no-qlog")
    assert status == 0, err
    return list(load(directory).result_set.results)


def start_when_free(directory: Path, *words: str | Path) -> subprocess.Popen[str]:
    """A campaign under way that has its first result; the compliance of images is not checked."""
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        process = start("run", *words, "-l", directory, "--images", "local", "--no-qlog", UNCHECKED)
        while process.poll() is None and not finished(directory):
            time.sleep(0.02)
        if process.poll() is None:
            return process
        assert process.returncode == BUSY, process.communicate()
        process.communicate()
        assert time.monotonic() < deadline
        time.sleep(1)


def finished(directory: Path) -> list[tuple[str, int]]:
    """Runs that the journal has acknowledged; a torn line at its end is not one of them."""
    journal = directory / "journal.jsonl"
    if not journal.exists():
        return []
    whole = [line for line in journal.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    found = [json.loads(line) for line in whole]
    results = [line["data"] for line in found if line.get("kind") == "result"]
    return [(result["test_case"], result["repetition"]) for result in results]


def leftovers(daemon: Daemon, directory: Path) -> tuple[str, ...]:
    return list_containers(daemon, load(directory).result_set.manifest.id)


def nothing_is_left(daemon: Daemon, directory: Path) -> bool:
    """Whether the reaper of a campaign that was killed soon has removed its containers."""
    return until(lambda: not leftovers(daemon, directory))


# ---- transfers ------------------------------------------------------------------------------


def test_10_mib_over_a_satellite(image_ids: Mapping[str, str], tmp_path: Path) -> None:
    [result] = measure(tmp_path / "r", *PAIR, "-t", "sat", "--repetitions", "1", UNCHECKED)
    assert 0 < result.measurement.values["efficiency"] < 1
    assert result.measurement.values["handshake_time"] >= 0.6
    assert result.evidence.simulator is not None


def test_the_same_seed_loses_the_same_packets(with_seed_7: Measured, tmp_path: Path) -> None:
    """The loss of a direction depends on nothing but the seed and the number of the packet."""
    alone = tmp_path / "alone.yaml"
    alone.write_text(MINE.partition("---\n")[0])
    campaigns = [with_seed_7]
    for name, seed in (("b", "7"), ("c", "8")):
        words = ("-t", alone, "--repetitions", "1", "--seed", seed, UNCHECKED)
        campaigns.append(Measured(tmp_path / name, measure(tmp_path / name, *PAIR, *words)))
    lost: list[list[list[int]]] = []
    for campaign in campaigns:
        lost.append(lost_packets(campaign.directory / "quic-go_aioquic/mine/1"))
        report = campaign.results[0].evidence.simulator
        assert report.forward.loss_drops == len(lost[-1][0]) > 0
    shortest = [min(len(run[way]) for run in lost[:2]) for way in (0, 1)]
    for way in (0, 1):
        assert lost[0][way][: shortest[way] - 1] == lost[1][way][: shortest[way] - 1]
    assert lost[0][0] != lost[2][0]


def lost_packets(folder: Path) -> list[list[int]]:
    """Numbers of the packets that did not arrive, forward and return."""
    client, server = (check(folder / "sim" / f"trace_node_{side}.pcap").datagrams for side in ("left", "right"))
    ways = []
    for sender, receiver, forward in ((server, client, True), (client, server, False)):
        arrived = set(receiver.digest[receiver.from_server == forward].tolist())
        sent = sender.digest[sender.from_server == forward].tolist()
        ways.append([index for index, digest in enumerate(sent) if digest not in arrived])
    return ways


def test_ipv6(with_seed_7: Measured) -> None:
    assert [result.test_case for result in with_seed_7.results] == ["mine", "mine6"]
    assert all(result.verdict.outcome is Outcome.SUCCEEDED for result in with_seed_7.results)
    trace = (with_seed_7.directory / "quic-go_aioquic/mine6/1/sim/trace_node_left.pcap").read_bytes()
    assert bytes.fromhex("fd00cafecafe00000000000000000100") in trace


# ---- ends -----------------------------------------------------------------------------------


def test_ctrl_c(image_ids: Mapping[str, str], daemon: Daemon, tmp_path: Path, mine: Path) -> None:
    directory = tmp_path / "r"
    with start_when_free(directory, *PAIR, "-t", f"{mine}", "--repetitions", "20") as process:
        time.sleep(0.7)
        before = finished(directory)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130, err
    after = finished(directory)
    assert after[: len(before)] == before
    assert len(after) <= len(before) + 1  # no further run has begun
    assert leftovers(daemon, directory) == ()
    assert (directory / "result.json").exists()


def test_kill_9_at_any_moment(image_ids: Mapping[str, str], daemon: Daemon, tmp_path: Path, mine: Path) -> None:
    chance = random.Random(20220208)
    for number in range(2):
        directory = tmp_path / str(number)
        with start_when_free(directory, *PAIR, "-t", f"{mine}", "--repetitions", "20") as process:
            time.sleep(chance.uniform(0, 3))
            before = finished(directory)
            process.kill()
            process.communicate()
        assert nothing_is_left(daemon, directory)
        results = load(directory).result_set.results
        assert [(result.test_case, result.repetition) for result in results][: len(before)] == before
        assert len(results) >= len(before) >= 1


def test_two_at_once(image_ids: Mapping[str, str], tmp_path: Path, mine: Path) -> None:
    with start_when_free(tmp_path / "first", *PAIR, "-t", f"{mine}", "--repetitions", "20") as first:
        with start(*PAIR, "-t", f"{mine}", "-l", tmp_path / "second") as second:
            _, err = second.communicate()
        assert second.returncode == BUSY
        assert f"process {first.pid} " in err
        assert not (tmp_path / "second").exists()
        assert first.poll() is None
        first.send_signal(signal.SIGTERM)
        first.communicate()
    assert first.returncode == 128 + signal.SIGTERM


def test_clean_leaves_what_is_not_ours(image_ids: Mapping[str, str], daemon: Daemon) -> None:
    name = f"quicsat-foreign-{os.getpid()}"
    foreign = daemon.slow.create_container(image_ids["simulator"], ["true"], name=name, labels={f"{LABEL}.not": "1"})
    ours = daemon.slow.create_container(image_ids["simulator"], ["true"], labels={LABEL: "1"})
    labelled_image = daemon.slow.commit(foreign["Id"], conf={"Labels": {LABEL: "1"}})["Id"]
    of_a_labelled_image = daemon.slow.create_container(labelled_image, ["true"])
    try:
        status, out, _ = call("clean")
        assert status == 0
        assert "Removed " in out
        names = [container["Id"] for container in daemon.quick.containers(all=True)]
        assert foreign["Id"] in names
        assert of_a_labelled_image["Id"] in names
        assert ours["Id"] not in names
    finally:
        for container in (foreign, ours, of_a_labelled_image):
            remove_container(daemon, container["Id"])
        daemon.slow.remove_image(labelled_image)
