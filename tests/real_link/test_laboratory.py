"""Two real daemons, two NATs and a satellite link: a run from the hosts file to its numbers, and what may break."""

import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import numpy as np
import pytest

from quicsat.analysis.analyse import CLIENT_TRACE, SERVER_TRACE
from quicsat.docker.client import Daemon
from quicsat.docker.containers import list_containers
from quicsat.docker.daemon_images import DaemonImages
from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import Outcome
from quicsat.model.real_link import CLOCKS
from quicsat.model.results import RunResult
from quicsat.results.store import load
from quicsat.traces.records import records
from quicsat.traces.run_traces import check_traces, read_run
from quicsat.traces.series import load as load_series
from tests.dockerds import call, inside, running, wait_for
from tests.engine_lock import URL
from tests.laboratory import ROOT, SERVER_ADDRESS, Laboratory, images_of, lab_case, of_image, unpack_own
from tests.links.test_real import shifted
from tests.real_link.conftest import OVER_TCP, Bench, sampled

HOUR = 3600
TUNNEL = {"client": "10.8.0.2", "server": "10.8.0.1"}


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
    assert result.measurement.values["handshake_time"] >= 0.6
    assert 0 < result.measurement.values["efficiency"] < 1
    report = result.evidence.real_link
    assert report.client_capture.captured == report.client_capture.received > 0
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


@contextmanager
def openvpn(bench: Bench, folder: Path) -> Iterator[None]:
    """A tunnel between both hosts, as their owner sets one up."""
    files = folder / "gateways"
    unpack_own(Daemon(URL, "laboratory"), "link-gateways", files)
    call("chroot", files, "openvpn", "--genkey", "secret", "/key")
    ends = {"server": f"--ifconfig {TUNNEL['server']} {TUNNEL['client']}",
            "client": f"--ifconfig {TUNNEL['client']} {TUNNEL['server']} --remote {SERVER_ADDRESS} 1194"}  # fmt: skip
    with ExitStack() as stack:
        for host, end in ends.items():
            log = folder / f"{host}.log"
            options = f"openvpn --dev tun9 --proto udp --secret /key --cipher AES-256-CBC --verb 3 {end}"
            command = [*inside(bench.lab.namespaces[host]), *of_image(files, options)]
            process = stack.enter_context(running(command, log))
        wait_for(lambda: "Initialization Sequence Completed" in log.read_text(), "OpenVPN", process, log)
        yield


def test_tcp_beside_a_vpn_of_the_hosts_and_through_it(bench: Bench, tmp_path: Path) -> None:
    """Each host has two entries; a test case chooses between them."""
    plain = bench.hosts.read_text().split("lab_server:\n")
    client, server = plain[0].removeprefix("lab_client:\n"), plain[1].replace(SERVER_ADDRESS, TUNNEL["server"])
    hosts, cases = tmp_path / "hosts.yml", tmp_path / "lab.yaml"
    hosts.write_text(f"{bench.hosts.read_text()}vpn_client:\n  interface: tun9\n{client}vpn_server:\n{server}")
    tunnel = lab_case("tunnel", "1 MiB").replace("lab_client", "vpn_client").replace("lab_server", "vpn_server")
    cases.write_text(f"{lab_case('lab', '1 MiB')}---\n{tunnel.replace('LAB', 'TUN')}")
    both = replace(bench, hosts=hosts, cases=cases)
    with openvpn(bench, tmp_path):
        run = both.measure(tmp_path / "r", "--repetitions", "1", "--skip-compliance-check", pair=OVER_TCP)
        status, _, err = bench.finish(run)
    assert status == 0, err
    results = {each.test_case: each for each in load(tmp_path / "r").result_set.results}
    for name, address in (("lab", SERVER_ADDRESS), ("tunnel", TUNNEL["server"])):
        folder = tmp_path / "r/nginx-tcp_curl" / name / "1"
        assert ip_address(address).packed in next(records(folder / CLIENT_TRACE)).data[26:34]
        windows = [int(row["congestion_window"]) // int(row["segment"]) for row in sampled(folder)]
        assert (windows[0], max(windows) > 20) == (10, True)
        series = load_series(folder)
        assert len(series.cwnd) == len(windows)
        assert min(series.cwnd.time) > -0.7  # the connection begins with the transfer
        report = results[name].evidence.real_link
        assert min(filter(None, report.baseline.round_trips)) >= 0.6


def test_a_clock_that_is_an_hour_ahead(campaign: Path, tmp_path: Path) -> None:
    directory = tmp_path / "r"
    shutil.copytree(campaign, directory)
    trace = directory / "quic-go_quic-go/lab/1" / SERVER_TRACE
    trace.write_bytes(shifted(trace.read_bytes(), HOUR))
    done = subprocess.run(
        ["./run.py", "analyse", str(directory)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    before, after = only(campaign).measurement, only(directory).measurement
    assert before.values.keys() == after.values.keys()
    for name, value in before.values.items():
        assert np.isclose(after.values[name], value, rtol=1e-6, atol=1e-4), name
    [note] = [note for note in after.notes if note.startswith(CLOCKS)]
    assert "1 h 0 min, the server's is ahead" in note
    assert not [note for note in before.notes if note.startswith(CLOCKS)]


def test_images_that_differ_are_refused_before_any_run(bench: Bench, campaign: Path, tmp_path: Path) -> None:
    client = Daemon(bench.lab.sockets["client"], "test")
    [tools, quic_go] = images_of(ROOT, "link-tools", "quic-go")
    right = DaemonImages(client).find(quic_go)
    other = DaemonImages(client).find(tools)
    DaemonImages(client).tag(other.id, quic_go)
    try:
        status, _, err = bench.finish(bench.measure(tmp_path / "r"))
    finally:
        DaemonImages(client).tag(right.id, quic_go)
    assert status == 3
    [line] = [line for line in err.splitlines() if line.startswith("quic-go is ")]
    assert "lab_client" in line
    assert not (tmp_path / "r").exists()


def reset_ssh(lab: Laboratory) -> bool:
    """Reset the connections of ssh; whether one was there within 30 s, and is gone."""
    deadline = time.monotonic() + 30
    while not (before := lab.ssh_connections()) and time.monotonic() < deadline:
        time.sleep(0.1)
    lab.reset_ssh()
    return bool(before - lab.ssh_connections())


def test_ssh_that_breaks(bench: Bench, tmp_path: Path) -> None:
    """No result is lost, nothing is left, and no pair is blamed."""
    chance = random.Random(20220208)
    process = bench.measure(tmp_path / "r", "--repetitions", "3", "--skip-compliance-check")
    bench.wait_for_runs(tmp_path / "r", 1, process)
    finished = load(tmp_path / "r").history
    for _ in range(2):
        time.sleep(chance.uniform(0, 8))
        assert reset_ssh(bench.lab)
    status, _, err = bench.finish(process)
    record = load(tmp_path / "r")
    assert status == 0, err
    assert [result.verdict.outcome for result in record.result_set.results] == [Outcome.SUCCEEDED] * 3
    assert record.history[: len(finished)] == finished
    assert containers(bench) == []
