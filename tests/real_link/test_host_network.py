"""Endpoints in their hosts' own networks: what is asked of a host, a run, and that nothing of the host is changed."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.analysis.analyse import CLIENT_TRACE, SERVER_TRACE
from quicsat.docker.client import Daemon
from quicsat.docker.containers import list_containers
from quicsat.model.outcomes import Outcome
from quicsat.results.store import load
from quicsat.traces.records import records
from quicsat.traces.series import load as load_series
from tests.dockerds import inside
from tests.laboratory import SERVER_ADDRESS, SIMULATOR
from tests.real_link.conftest import Bench, sampled

HOLD_PORT = "import socket, time; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 443)); time.sleep(600)"
RENO = ("nginx-tcp:reno", "curl")
"""Each kernel allows Reno without NET_ADMIN."""
THIRD_PARTY = f"""
import socket, time
while True:
    try:
        with socket.create_connection(("{SERVER_ADDRESS}", 443), 1) as connection:
            connection.settimeout(None)
            connection.recv(1)  # until the probe of the bare link ends, and then the server
    except OSError:
        pass
    time.sleep(1)  # packets of third parties are tolerated as long as they are few
"""
SETTINGS = ("ip route show table all", "ip address", "ethtool -k up0", "iptables -S", "ip6tables -S")


@pytest.fixture(scope="module")
def shared(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Both hosts lend their networks."""
    hosts = tmp_path_factory.mktemp("hosts") / "hosts.yml"
    words = bench.hosts.read_text()
    for name in ("lab_client", "lab_server"):
        words = words.replace(f"{name}:\n", f"{name}:\n  network: host\n")
    hosts.write_text(words)
    return replace(bench, hosts=hosts)


def there(bench: Bench, host: str, command: str) -> str:
    """What a command says on a host; the simulator's files hold the programs."""
    files = bench.lab.folder / SIMULATOR
    words = [
        *inside(bench.lab.namespaces[host]),
        *(("chroot", files) if "ethtool" in command else ()),
        *command.split(),
    ]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def settings(bench: Bench) -> list[str]:
    """What endpoints like to change."""
    return [there(bench, host, command) for host in ("client", "server") for command in SETTINGS]


def refusal(bench: Bench, directory: Path) -> str:
    """Why a campaign of one run was refused before it."""
    words = ("--repetitions", "1", "--skip-compliance-check")
    status, _, err = bench.finish(bench.measure(directory, *words))
    assert status == 3, err
    assert load(directory).history == ()
    return err


@pytest.fixture(scope="module")
def prepared(shared: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Hosts whose interfaces join no packets, by the very commands that the refusals told."""
    folder = tmp_path_factory.mktemp("refused")
    for number, host in enumerate(("client", "server")):
        said = refusal(shared, folder / str(number))
        [line] = [line for line in said.splitlines() if "merges packets" in line]
        assert f"up0 of lab_{host} merges packets" in line
        there(shared, host, line.split("`")[1])
    yield shared
    for host in ("client", "server"):
        there(shared, host, "ethtool -K up0 tx on gro on")


def test_a_run_in_the_hosts_own_networks(prepared: Bench, tmp_path: Path) -> None:
    before = settings(prepared)
    status, _, err = prepared.finish(prepared.measure(tmp_path / "r", "--repetitions", "1"))
    assert status == 0, err
    [result] = load(tmp_path / "r").result_set.results
    assert result.verdict.outcome is Outcome.SUCCEEDED
    report = result.evidence.real_link
    for capture, trace in ((report.client_capture, CLIENT_TRACE), (report.server_capture, SERVER_TRACE)):
        assert capture.captured == capture.received > 0
        found = [each.data for each in records(tmp_path / "r/quic-go_quic-go/lab/1" / trace)]
        assert all(data[23] == 17 and b"\x01\xbb" in (data[34:36], data[36:38]) for data in found)  # UDP, port 443
    assert settings(prepared) == before
    assert [left for url in prepared.lab.sockets.values() for left in list_containers(Daemon(url, "look"))] == []


def test_tcp_is_sampled_but_no_connection_of_a_third_party(prepared: Bench, tmp_path: Path) -> None:
    command = [*inside(prepared.lab.namespaces["edge"]), sys.executable, "-c", THIRD_PARTY]
    with subprocess.Popen(command) as other:
        try:
            run = prepared.measure(tmp_path / "r", "--repetitions", "1", "--skip-compliance-check", pair=RENO)
            status, _, err = prepared.finish(run)
        finally:
            other.kill()
    assert status == 0, err
    folder = tmp_path / "r/nginx-tcp+reno_curl/lab/1"
    rows = sampled(folder)
    [port] = {row["port"] for row in rows if int(row["congestion_window"]) > 10 * int(row["segment"])}
    assert len({row["port"] for row in rows}) > 1
    windows = [int(row["congestion_window"]) for row in rows if row["port"] == port]
    series = load_series(folder)
    assert series.cwnd.value.tolist() == windows


def test_a_port_that_is_taken_is_nobodys_fault(prepared: Bench, tmp_path: Path) -> None:
    command = [*inside(prepared.lab.namespaces["server"]), sys.executable, "-c", HOLD_PORT]
    with subprocess.Popen(command) as other:
        try:
            assert "something else listens at port 443" in refusal(prepared, tmp_path / "r")
        finally:
            other.kill()
