"""Two real daemons, two NATs and a satellite link: a run from the hosts file to its numbers, and what may break."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from bench.ssh_cuts import cut
from interop.analysis.analyse import CLIENT_TRACE, SERVER_TRACE
from interop.docker.client import Daemon
from interop.docker.containers import list_containers
from interop.docker.daemon_images import DaemonImages
from interop.model.implementation import Protocol
from interop.model.outcomes import Outcome
from interop.model.real_link import CLOCKS
from interop.model.results import RunResult
from interop.results.store import load
from interop.traces.records import records
from interop.traces.run_traces import check_traces, read_run
from tests.laboratory import ROOT, images_of
from tests.real_link.conftest import Bench

HOUR = 3600


@pytest.fixture(scope="module")
def campaign(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run over the real link."""
    directory = tmp_path_factory.mktemp("campaign") / "r"
    status, _, err = bench.finish(bench.measure(directory, "--repetitions", "1"))
    assert status == 0, err
    return directory


def only(directory: Path) -> RunResult:
    [result] = load(directory).result_set.results
    return result


def containers(bench: Bench) -> list[str]:
    """All that is left on both hosts."""
    return [left for url in bench.lab.sockets.values() for left in list_containers(Daemon(url, "look"))]


def test_a_run_over_a_real_link(campaign: Path, bench: Bench) -> None:
    result = only(campaign)
    assert result.verdict.outcome is Outcome.SUCCEEDED
    assert result.measurement is not None
    assert result.measurement.values["handshake_time"] >= 0.6
    assert 0 < result.measurement.values["efficiency"] < 1
    report = result.evidence.real_link
    assert report is not None
    assert report.client_capture.captured == report.client_capture.received > 0
    assert report.baseline is not None
    assert min(filter(None, report.baseline.round_trips)) >= 0.6
    assert containers(bench) == []


def test_nothing_private_is_stored(campaign: Path, bench: Bench) -> None:
    private = [b"198.51.100.2", b"10.250.", str(bench.lab.folder).encode()]
    stored = (campaign / "journal.jsonl").read_bytes() + (campaign / "result.json").read_bytes()
    command = str(bench.lab.hosts).encode()  # what was typed is kept as it was typed
    assert [word for word in private if word in stored.replace(command, b"")] == []


def test_every_packet_that_arrived_is_matched_through_both_nats(campaign: Path) -> None:
    folder = campaign / "quic-go_quic-go/lab/1"
    client, server = ({found.data[26:34] for found in records(folder / name)} for name in (CLIENT_TRACE, SERVER_TRACE))
    assert not client & server  # no pair of addresses is the same at both ends
    link = load(campaign).result_set.manifest.test_cases[0].link
    reading = read_run(folder, Protocol.HQ, link, check_traces(folder, Protocol.HQ))
    for passage, there in (
        (reading.trace_pair.forward, reading.trace_pair.at_client),
        (reading.trace_pair.back, reading.trace_pair.at_server),
    ):
        came = int((there.from_server == (passage is reading.trace_pair.forward)).sum())
        assert came > 20
        assert int((passage.arrived >= 0).sum()) >= 0.999 * came


def shift(path: Path, offset: int) -> None:
    """Let a capture's clock be ``offset`` seconds ahead."""
    data = bytearray(path.read_bytes())
    at = 24
    while at < len(data):
        stamp, _, length, _ = struct.unpack_from("<IIII", data, at)
        struct.pack_into("<I", data, at, stamp + offset)
        at += 16 + length
    path.write_bytes(data)


def test_a_clock_that_is_an_hour_ahead(campaign: Path, tmp_path: Path) -> None:
    directory = tmp_path / "r"
    shutil.copytree(campaign, directory)
    shift(directory / "quic-go_quic-go/lab/1" / SERVER_TRACE, HOUR)
    done = subprocess.run(
        ["./run.py", "analyse", str(directory)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    before, after = only(campaign).measurement, only(directory).measurement
    assert before is not None
    assert after is not None
    assert before.values.keys() == after.values.keys()
    for name, value in before.values.items():
        assert np.isclose(after.values[name], value, rtol=1e-6, atol=1e-4), name
    [note] = [note for note in after.notes if note.startswith(CLOCKS)]
    assert "60 min 0 s, the server's is ahead" in note
    assert not [note for note in before.notes if note.startswith(CLOCKS)]


def test_images_that_differ_are_refused_before_any_run(bench: Bench, campaign: Path, tmp_path: Path) -> None:
    client = Daemon(bench.lab.sockets["client"], "test")
    [tools, quic_go] = images_of(ROOT, "link-tools", "quic-go")
    right = DaemonImages(client).find(quic_go)
    other = DaemonImages(client).find(tools)
    assert right is not None
    assert other is not None
    DaemonImages(client).tag(other.id, quic_go)
    try:
        status, _, err = bench.finish(bench.measure(tmp_path / "r"))
    finally:
        DaemonImages(client).tag(right.id, quic_go)
    assert status == 3
    [line] = [line for line in err.splitlines() if line.startswith("quic-go is ")]
    assert "lab_client" in line
    assert not (tmp_path / "r").exists()


def test_ssh_that_breaks(bench: Bench, tmp_path: Path) -> None:
    """No result is lost, nothing is left, and no pair is blamed."""
    chance = random.Random(20220208)
    process = bench.measure(tmp_path / "r", "--repetitions", "3", "--skip-compliance-check")
    bench.wait_for_runs(tmp_path / "r", 1, process)
    finished = load(tmp_path / "r").history
    for _ in range(2):
        time.sleep(chance.uniform(0, 8))
        assert cut(bench.lab, silent=False)
    status, _, err = bench.finish(process)
    record = load(tmp_path / "r")
    assert status == 0, err
    assert [result.verdict.outcome for result in record.result_set.results] == [Outcome.SUCCEEDED] * 3
    assert record.history[: len(finished)] == finished
    assert containers(bench) == []
