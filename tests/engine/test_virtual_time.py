"""Virtual time at the real engine: one seed gives the same packets, endpoints end as in real time, nothing is left."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from interop.docker.client import Daemon
from interop.docker.containers import list_containers
from interop.docker.daemon_images import DaemonImages
from interop.images import build_recipes
from interop.images.build_recipes import OWN_FOLDERS
from interop.links.virtual_machine import START, VirtualBackend, VirtualTestbed
from interop.model.clock import Clock
from interop.model.evidence import Deadline
from interop.model.implementation import Protocol, Role
from interop.model.outcomes import ErrorCode, Outcome
from interop.model.results import RunResult
from interop.model.units import MIB
from interop.results.store import load
from tests.engine.bench import Bench
from tests.engine.conftest import ROOT
from tests.engine.test_command import call, finished, leftovers, measure, start_when_free

MINE = """\
name: lossy
abbreviation: LO
description: 1 MiB over a link that loses 1 %
link: {scenario: simple-p2p, delay: 10 ms, rate: 20 Mbit/s, queue: 100, loss: 1 %}
file size: 1 MiB
repetitions: 1
timeout: 30 s
---
name: beside
abbreviation: BE
description: 1 MiB beside a TCP flow
link: {scenario: tcp-cross-traffic, delay: 10 ms, rate: 20 Mbit/s, queue: 25, cross traffic: {}}
file size: 1 MiB
repetitions: 1
timeout: 60 s
"""
VIRTUAL = ("--clock", "virtual", "--seed", "7")
MACHINE = "virtual-time"
LEFT_AFTER = 15.0
"""Seconds after which the containers of a runner that was killed are gone."""
TRACES = ("trace_node_left.pcap", "trace_node_right.pcap")


@pytest.fixture(scope="module")
def virtual_images(daemon: Daemon, image_ids: Mapping[str, str]) -> Mapping[str, str]:
    """``image_ids`` with that of the machine."""
    return {**image_ids, MACHINE: found(daemon, MACHINE)}


def found(daemon: Daemon, name: str) -> str:
    """Id of an image, without which a test is skipped."""
    own = {MACHINE: build_recipes.find_recipe(ROOT, MACHINE, OWN_FOLDERS[MACHINE]).tag}
    image = DaemonImages(daemon).find((build_recipes.expected(ROOT) | own)[name])
    if image is None:
        pytest.skip(f"AN IMAGE IS MISSING; `./run.py images build {name}`")
    return image.id


@pytest.fixture
def mine(virtual_images: Mapping[str, str], tmp_path: Path) -> tuple[str, str]:
    """Both test cases as files."""
    for name, text in zip(("lossy", "beside"), MINE.split("---\n"), strict=True):
        (tmp_path / f"{name}.yaml").write_text(text)
    return str(tmp_path / "lossy.yaml"), str(tmp_path / "beside.yaml")


# ---- campaigns ------------------------------------------------------------------------------


def traces(directory: Path, result: RunResult) -> list[bytes]:
    return [(directory / result.key.path / "sim" / name).read_bytes() for name in TRACES]


def goodput(result: RunResult) -> float:
    assert result.verdict.outcome is Outcome.SUCCEEDED, result.verdict
    assert result.measurement is not None
    return result.measurement.values["goodput"]


def test_one_seed_gives_the_same_packets(mine: tuple[str, str], tmp_path: Path) -> None:
    """Alone, and with another pair beside it: byte for byte, so at the same times as well."""
    quick = ("-t", mine[0], "--skip-compliance-check", *VIRTUAL)
    [alone] = measure(tmp_path / "a", "-s", "quic-go", "-c", "quic-go", *quick, "--parallel", "1")
    both = measure(tmp_path / "b", "-s", "quic-go", "-c", "quic-go", "aioquic", *quick, "--parallel", "2")
    [again] = [each for each in both if each.client == "quic-go"]
    assert traces(tmp_path / "a", alone) == traces(tmp_path / "b", again)
    assert goodput(alone) == goodput(again) > 1e6
    assert alone.evidence.client == again.evidence.client
    assert alone.evidence.simulator == again.evidence.simulator
    [other] = [each for each in both if each.client == "aioquic"]
    assert goodput(other) > 1e6
    assert {each.evidence.clock for each in both} == {Clock.VIRTUAL}
    assert load(tmp_path / "b").result_set.manifest.clock is Clock.VIRTUAL


def test_functional_tests_pass(virtual_images: Mapping[str, str], tmp_path: Path) -> None:
    """Handshake, Retry, and 127 for what an image does not support; images are checked first."""
    results = measure(tmp_path / "r", "-s", "quic-go", "-c", "aioquic", "-t", "H", "S", "E", *VIRTUAL)
    assert {each.test_case: each.verdict.outcome for each in results} == {
        "handshake": Outcome.SUCCEEDED, "retry": Outcome.SUCCEEDED, "ecn": Outcome.UNSUPPORTED,
    }  # fmt: skip
    compliance = load(tmp_path / "r").result_set.compliance
    assert {(each.implementation, each.role, each.compliant) for each in compliance} == {
        ("quic-go", Role.SERVER, True), ("aioquic", Role.CLIENT, True),
    }  # fmt: skip


def test_cross_traffic(mine: tuple[str, str], tmp_path: Path) -> None:
    pair = ("-s", "quic-go", "-c", "quic-go", "-t", mine[1], "--skip-compliance-check")
    [result] = measure(tmp_path / "r", *pair, *VIRTUAL)
    assert goodput(result) < 20e6
    report = result.evidence.simulator
    assert report is not None
    assert report.cross_traffic is not None
    assert report.cross_traffic.goodput > 1e6


def test_tcp(daemon: Daemon, mine: tuple[str, str], tmp_path: Path) -> None:
    for name in ("nginx", "curl"):
        found(daemon, name)
    [result] = measure(tmp_path / "r", "-s", "nginx-tcp", "-c", "curl", "-t", mine[0], *VIRTUAL)
    assert result.protocol is Protocol.TCP
    assert goodput(result) > 1e6
    report = result.evidence.simulator
    assert report is not None
    assert report.forward.loss_drops > 0


def test_kill_9_and_resume(mine: tuple[str, str], daemon: Daemon, tmp_path: Path) -> None:
    directory = tmp_path / "r"
    words = ("-s", "quic-go", "-c", "quic-go", "-t", mine[0], "--repetitions", "4", *VIRTUAL)
    with start_when_free(directory, *words) as process:
        process.kill()
        process.communicate()
    before = finished(directory)
    assert 1 <= len(before) < 4
    deadline = time.monotonic() + LEFT_AFTER
    while leftovers(daemon, directory) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert leftovers(daemon, directory) == ()
    status, _, err = call("resume", directory)
    assert status == 0, err
    results = load(directory).result_set.results
    assert sorted(each.repetition for each in results) == [1, 2, 3, 4]
    assert all(goodput(each) > 1e6 for each in results)
    assert {each.evidence.clock for each in results} == {Clock.VIRTUAL}


# ---- single runs ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def machines(lock: None, daemon: Daemon, virtual_images: Mapping[str, str]) -> Iterator[VirtualTestbed]:
    with VirtualBackend(daemon, virtual_images, 3e-6).open() as testbed:
        yield testbed
    assert list_containers(daemon, daemon.campaign) == ()


@pytest.fixture
def bench(daemon: Daemon, machines: VirtualTestbed, virtual_images: Mapping[str, str], tmp_path: Path) -> Bench:
    return Bench(daemon, machines, virtual_images, tmp_path)


def test_a_client_that_never_ends_costs_no_host_time(bench: Bench) -> None:
    verdict, evidence, spent = bench.run("sleep 1000", patience=60.0)
    assert (verdict.outcome, evidence.timed_out) == (Outcome.TIMEOUT, Deadline.TRANSFER)
    client = evidence.client
    assert client is not None
    assert client.life is not None
    assert client.killed
    assert client.life.end - client.life.begin == pytest.approx(60.0, abs=0.1)
    assert START.timestamp() < client.life.begin < START.timestamp() + 20
    assert spent < 40


@pytest.mark.parametrize("role", Role)
def test_exit_status_127_means_unsupported(bench: Bench, role: Role) -> None:
    script = "echo not I; exit 127"
    verdict, evidence, _ = bench.run(script) if role is Role.CLIENT else bench.run(server=script)
    assert verdict.outcome is Outcome.UNSUPPORTED
    ended = evidence.client if role is Role.CLIENT else evidence.server
    assert ended is not None
    assert (ended.status, ended.killed) == (127, False)
    assert "not I" in bench.output


def test_a_server_that_never_listens(bench: Bench) -> None:
    verdict, evidence, spent = bench.run(server="sleep 1000")
    assert (verdict.code, evidence.timed_out) == (ErrorCode.SERVER_NOT_READY, Deadline.READY)
    assert evidence.fault == ""
    assert spent < 40


def test_signals_and_exit_statuses_arrive(bench: Bench) -> None:
    verdict, evidence, _ = bench.run("bash -c 'kill -SEGV $$'")
    assert verdict.code == ErrorCode.CRASHED
    assert evidence.client is not None
    assert evidence.client.status == 139
    assert evidence.server is not None
    assert evidence.server.killed


def test_files_are_kept(bench: Bench) -> None:
    """What a client has left is listed and kept at the same time, and its links are not followed."""
    script = "head -c 3000000 /dev/zero >/downloads/big; ln -s /etc/passwd /downloads/link; echo keys >/logs/keys.log"
    verdict, evidence, _ = bench.run(f"{script}; exit 1", keep=True)
    assert verdict.code == ErrorCode.CLIENT_FAILED
    assert {file.name: file.size for file in evidence.downloaded} == {"big": 3_000_000}
    assert (bench.directory / "downloads/big").read_bytes() == bytes(3_000_000)
    assert not (bench.directory / "downloads/link").exists()
    assert [path.stat().st_size for path in (bench.directory / "www").iterdir()] == [100_000]
    assert (bench.directory / "client/keys.log").read_text() == "keys\n"


def test_a_client_that_takes_all_memory(bench: Bench) -> None:
    """Real time would have given it more, so the pair is not to blame."""
    verdict, evidence, _ = bench.run("exec tail /dev/zero")
    assert verdict.outcome is Outcome.ERROR
    assert evidence.fault == "the virtual machine ran out of memory"


def test_an_endpoint_that_fills_its_disk_has_no_room(bench: Bench) -> None:
    """It cannot take so much of the machine's memory that the machine no longer ends."""
    verdict, _, spent = bench.run("head -c 3000M /dev/zero >/logs/big; exit 1")
    assert verdict.code == ErrorCode.CLIENT_FAILED
    assert "No space left on device" in bench.output
    assert (bench.directory / "client/big").stat().st_size > 300 * MIB
    assert spent < 40


def test_names_and_addresses_are_those_of_the_contract(bench: Bench) -> None:
    bench.run("getent hosts server6; getent ahostsv4 server4; hostname; date -u +%F; exit 1")
    words = [line.split("| ")[1].split()[1:] for line in bench.output.splitlines() if line.startswith("client")]
    assert words[0][0] == "fd00:cafe:cafe:100::100"
    assert words[1][0] == "193.167.100.100"
    assert ["client"] in words
    assert ["2026-01-01"] in words
