"""Tunnels at the real engine, with both clocks: each packet of an endpoint is inside one of the tunnel.

Over two of the four links in real time, where only TCP passes, and over the other two in virtual time.
"""

from collections import Counter
from pathlib import Path

import pytest

from quicsat.docker.client import Daemon
from quicsat.model.clock import Clock
from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import Outcome
from quicsat.traces.records import records
from tests.engine.conftest import need
from tests.engine.test_command import measure
from tests.engine.test_gateways import OWN

TUNNEL = """\
name: {}
abbreviation: {}
description: 200 kB over a short link through a tunnel
link: {{scenario: simple-p2p, delay: 20 ms, rate: 20 Mbit/s, queue: 100, vpn: {}}}
file size: 200 kB
repetitions: 1
timeout: 60 s
"""
LINKS = {
    Clock.REAL: (
        TUNNEL.format("wireguard", "WG", "wireguard"),
        TUNNEL.format("openvpn-tcp", "OT", "{program: openvpn, transport: tcp}"),
    ),
    Clock.VIRTUAL: (
        TUNNEL.format("wireguard6", "WG6", "wireguard") + "server name: server6\n",
        TUNNEL.format("openvpn", "OU", "openvpn"),
    ),
}
UDP, TCP = 17, 6
OVERHEAD = {"wireguard": 60, "wireguard6": 60, "openvpn": 52}
"""Bytes of the tunnel around the largest packet; see docs/measurements/vpn.md."""
LARGEST = 1420


def sizes(trace: Path, protocol: int) -> Counter[int]:
    """How many IP packets of a trace that carry ``protocol`` have so many bytes."""
    found: Counter[int] = Counter()
    for record in records(trace):
        packet = record.data[14:]
        if packet[0] >> 4 == 4 and packet[9] == protocol:
            found[int.from_bytes(packet[2:4], "big")] += 1
        elif packet[0] >> 4 == 6 and packet[6] == protocol:
            found[40 + int.from_bytes(packet[4:6], "big")] += 1
    return found


@pytest.mark.parametrize("clock", Clock)
def test_packets_travel_in_packets_of_a_tunnel(clock: Clock, daemon: Daemon, tmp_path: Path) -> None:
    need(daemon, *OWN[clock], "simulator", "nginx", "curl", "quic-go")
    path = tmp_path / "links.yaml"
    path.write_text("---\n".join(LINKS[clock]))
    quic = ("quic-go",) if clock is Clock.VIRTUAL else ()
    words = ("-s", "nginx-tcp", *quic, "-c", "curl", *quic, "-t", path, "--skip-compliance-check")
    results = measure(tmp_path / "r", *words, "--seed", "7", "--clock", clock, "--parallel", "2")
    links = {"wireguard", "openvpn-tcp"} if clock is Clock.REAL else {"wireguard6", "openvpn"}
    assert {each.test_case for each in results} == links
    for result in results:
        assert result.verdict.outcome is Outcome.SUCCEEDED, result.verdict
        assert result.measurement.values["loss_forward"] == 0
        traces = tmp_path / "r" / result.key.path / "sim"
        outer, other = (UDP, TCP) if result.test_case in OVERHEAD else (TCP, UDP)
        tunnel = sizes(traces / "tunnel_left.pcap", outer)
        assert not sizes(traces / "tunnel_left.pcap", other)
        assert max(tunnel) <= 1500
        if result.protocol is not Protocol.TCP:
            continue
        own = sizes(traces / "trace_node_left.pcap", TCP)
        assert max(own) == LARGEST
        assert own[LARGEST] > 100
        added = result.measurement.values["tunnel_overhead"]
        own_messages = 4  # of the tunnel, such as a handshake that is sent again, in bytes per packet of the endpoints
        assert OVERHEAD.get(result.test_case, 75) - 0.1 < added < OVERHEAD.get(result.test_case, 85) + own_messages
        if result.test_case in OVERHEAD:
            assert tunnel[LARGEST + OVERHEAD[result.test_case]] >= own[LARGEST]


BEHIND = """\
name: behind
abbreviation: BH
description: 200 kB through a tunnel, and packets are lost behind it
link:
  {scenario: simple-p2p, delay: 20 ms, rate: 9 Mbit/s, queue: 99, vpn: wireguard, client side: {delay: 5 ms, loss: 3 %}}
file size: 200 kB
repetitions: 1
timeout: 60 s
"""


@pytest.mark.parametrize("clock", Clock)
def test_packets_are_lost_behind_the_tunnel(clock: Clock, daemon: Daemon, tmp_path: Path) -> None:
    need(daemon, *OWN[clock], "simulator", "nginx", "curl", "quic-go")
    path = tmp_path / "links.yaml"
    path.write_text(BEHIND)
    words = ("-s", "nginx-tcp", "quic-go", "-c", "curl", "quic-go", "-t", path, "--seed", "7", "--clock", clock)
    for each in measure(tmp_path / "r", *words, "--skip-compliance-check"):
        assert each.verdict.outcome is Outcome.SUCCEEDED, each.verdict
        report, values = each.evidence.simulator, each.measurement.values
        assert (report.forward.loss_drops, report.back.loss_drops) == (0, 0)
        beside = report.client_side.forward
        assert 0 < values["client_side_loss"] < 0.08
        assert values["loss_forward"] == pytest.approx(beside.loss_drops / beside.received, abs=0.002)
        assert values["rtt_min"] == pytest.approx(0.05, abs=0.005)
        assert values["tunnel_overhead"] == pytest.approx(60, abs=12)
