"""Proxies at the real engine, with both clocks: TCP is split; in virtual time also over IPv6, and QUIC passes by."""

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.docker.client import Daemon
from quicsat.docker.containers import ContainerSpec, create_container
from quicsat.links.gateway_description import layout_of
from quicsat.model.clock import Clock
from quicsat.model.gateways import PEPS
from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import Outcome
from quicsat.model.results import RunResult
from tests.engine.bench import LINK
from tests.engine.conftest import need
from tests.engine.test_command import measure

LINKS = """\
name: straight
abbreviation: ST
description: 1 MB over a long link
link: {scenario: simple-p2p, delay: 200 ms, rate: 20 Mbit/s, queue: 1000}
file size: 1 MB
repetitions: 1
timeout: 60 s
---
name: split
abbreviation: SP
extends: straight
link: {pep: D}
"""
OVER_IPV6 = """\
---
name: split6
abbreviation: SP6
extends: split
server name: server6
"""
BEHIND = """\
name: behind
abbreviation: BE
description: 300 kB over a long link with loss behind the second proxy
link:
  scenario: simple-p2p
  delay: 200 ms
  rate: 20 Mbit/s
  queue: 1000
  client side: {delay: 1 ms, loss: 5 %}
  pep: D
file size: 300 kB
repetitions: 1
timeout: 60 s
"""
WITHOUT_PROXY = """\
---
name: without
abbreviation: WI
extends: behind
link: {pep: none}
random numbers: inherited
"""
OWN = {Clock.REAL: ("link-gateways",), Clock.VIRTUAL: ("link-gateways", "virtual-time")}


def value(result: RunResult, name: str) -> float:
    assert result.verdict.outcome is Outcome.SUCCEEDED, result.verdict
    return result.measurement.values[name]


def window(run: Path) -> int:
    """The congestion window over the link that the kernel told first, packets."""
    with (run / "sim/tcp_info.csv").open() as file:
        first = next(csv.DictReader(file))
    return int(first["congestion_window"]) // int(first["segment"])


Times = dict[tuple[Protocol, str], float]


def measured(links: str, more: str, clock: Clock, daemon: Daemon, folder: Path) -> tuple[list[RunResult], Times]:
    """Runs over ``links``, and over ``more`` and with QUIC in virtual time; their completion times."""
    need(daemon, *OWN[clock], "simulator", "nginx", "curl", "quic-go")
    path = folder / "links.yaml"
    path.write_text(links if clock is Clock.REAL else links + more)  # in real time, runs take longer
    words = ("-t", path, "--skip-compliance-check", "--seed", "7", "--clock", clock, "--parallel", "2")
    results = measure(folder / "nginx-tcp", "-s", "nginx-tcp", "-c", "curl", *words)
    if clock is Clock.VIRTUAL:  # not curl with quic-go, too
        results += measure(folder / "quic-go", "-s", "quic-go", "-c", "quic-go", *words)
    return results, {(each.protocol, each.test_case): value(each, "completion_time") for each in results}


@pytest.mark.parametrize("clock", Clock)
def test_proxies_begin_with_more_packets(clock: Clock, daemon: Daemon, tmp_path: Path) -> None:
    results, times = measured(LINKS, OVER_IPV6, clock, daemon, tmp_path)
    straight, split = times[Protocol.TCP, "straight"], times[Protocol.TCP, "split"]
    assert straight - split > 0.5  # almost two of the round trips in which an initial window of 10 packets grows to 100
    assert times.get((Protocol.TCP, "split6"), split) == pytest.approx(split, abs=0.2)
    if clock is Clock.VIRTUAL:
        assert times[Protocol.HQ, "split"] == pytest.approx(times[Protocol.HQ, "straight"], rel=0.1)
    first = {
        each.test_case: window(tmp_path / each.server / each.key.path)
        for each in results
        if each.protocol is Protocol.TCP
    }
    assert first == {"straight": 10, "split": 100} | ({"split6": 100} if clock is Clock.VIRTUAL else {})
    assert {"link-gateways" in each.evidence.images for each in results} == {True, False}


@pytest.mark.parametrize("clock", Clock)
def test_packets_are_lost_behind_the_second_proxy(clock: Clock, daemon: Daemon, tmp_path: Path) -> None:
    """A proxy repeats them at once; without one, and over QUIC, the server has to, after a long round trip."""
    results, times = measured(BEHIND, WITHOUT_PROXY, clock, daemon, tmp_path)
    if clock is Clock.VIRTUAL:
        assert times[Protocol.TCP, "without"] - times[Protocol.TCP, "behind"] > 1
    for each in results:
        split = (each.protocol, each.test_case) == (Protocol.TCP, "behind")
        report = each.evidence.simulator
        assert (report.forward.loss_drops, report.back.loss_drops) == (0, 0)
        assert value(each, "client_side_loss") == pytest.approx(0.05, abs=0.03)
        lost = report.client_side.forward.loss_drops / report.client_side.forward.received
        assert value(each, "loss_forward") == pytest.approx(0 if split else lost, abs=0.005)
        assert value(each, "rtt_min") == pytest.approx(0.4 if split else 0.402, abs=0.0015)


def test_a_gateway_asks_for_neighbours_at_once(daemon: Daemon, image_ids: Mapping[str, str]) -> None:
    """It asks from its link-local addresses, and Linux asks from none that is tentative, as after a reset."""
    pair = "ip link add eth0 type veth peer name eth1; ip link set eth0 up; ip link set eth1 up"
    show = "ip -6 -oneline address show scope link"
    both = f"until [[ $({show} | wc -l) == 2 ]]; do sleep 0.02; done"
    spec = ContainerSpec(
        name=f"quicsat-{daemon.campaign}-gateway",
        image=image_ids["simulator"],
        command=("bash", "-c", f"{pair}; {both}; sleep 0.3; {show}"),
        network="none",
        capabilities=("NET_ADMIN",),
        sysctls=layout_of(replace(LINK, pep=PEPS["D"])).gateway_sysctls,
    )
    with create_container(daemon, spec) as container:
        container.start()
        assert container.wait(60)
        addresses = container.output().decode().splitlines()
    assert {line.split()[2] for line in addresses} == {"eth0", "eth1"}
    assert not any("tentative" in line for line in addresses)


SHARED = """\
name: shared
abbreviation: SH
description: four flows through proxies, and a link at the client's side
link:
  scenario: simple-p2p
  delay: 50 ms
  rate: 10 Mbit/s
  queue: 200
  pep: D
  client side: {delay: 2 ms, rate: 8 Mbit/s, queue: 100}
file size: 200 kB
repetitions: 1
timeout: 60 s
flows: [same, quic-go/curl, same]
---
name: tunnelled
abbreviation: TU
description: four flows through a tunnel
extends: shared
link: {pep: none, client side: none, vpn: openvpn}
"""


@pytest.mark.parametrize("clock", Clock)
def test_four_flows_share_gateways(clock: Clock, daemon: Daemon, tmp_path: Path) -> None:
    need(daemon, *OWN[clock], "simulator", "nginx", "curl", "quic-go")
    path = tmp_path / "links.yaml"
    path.write_text(SHARED)
    words = ("-s", "nginx-tcp", "-c", "curl", "-t", path, "--skip-compliance-check", "--seed", "7", "--clock", clock)
    results = {each.test_case: each for each in measure(tmp_path / "r", *words)}
    assert [each.verdict.outcome for each in results.values()] == [Outcome.SUCCEEDED] * 2
    for each in results.values():
        assert [flow.protocol is Protocol.TCP for flow in each.measurement.flows] == [True, True, False, True]
        assert all(flow.size >= 200_000 for flow in each.measurement.flows)
    report = results["shared"].evidence.simulator
    # no packet reaches a client but over the link at their side; those of split connections are others than the link's
    assert report.client_side.forward.delivered >= 4 * 200_000 / 1460
    assert window(tmp_path / "r" / results["shared"].key.path) == 100
    assert (tmp_path / "r" / results["tunnelled"].key.path / "sim/tunnel_left.pcap").exists()
