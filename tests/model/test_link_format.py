"""A link in words says all that makes it different from others."""

from dataclasses import replace
from typing import Any

import pytest

from quicsat.model.emulated_link import (
    Blackhole,
    ClientSide,
    ClientSideDirection,
    Corruption,
    CorruptionMode,
    CrossTraffic,
    GilbertElliottLoss,
    Jitter,
    JitterShape,
    LinkDirection,
    Queue,
    QueueDiscipline,
    QueueMode,
    QueueUnit,
    Rebind,
    Reordering,
    UdpCrossTraffic,
    UniformLoss,
)
from quicsat.model.gateways import LINUX_ENDPOINTS, PEPS, VPNS, VpnTransport
from quicsat.model.link_format import format_link
from quicsat.model.units import MBPS, MIB
from tests.changed_links import with_values
from tests.results_builder import SAT

LINK = SAT.emulated
LOSSES = ("forward.loss", "back.loss")
TUNNEL = replace(VPNS["openvpn"], transport=VpnTransport.TCP)


BESIDE = ClientSideDirection(0.005)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "RTT 600.0 ms, queue 25 packets, no loss"),
        ({"queue_mode": QueueMode.PAPER}, "RTT 600.0 ms, queue 25 packets (as QIR-SE had it), no loss"),
        ({"forward.delay": 0.1, "back.queue": 50}, "RTT 400.0 ms, queue 25 / 50 packets, no loss"),
        ({way: UniformLoss(0.01) for way in LOSSES}, "RTT 600.0 ms, queue 25 packets, loss 1 %"),
        (
            dict(zip(LOSSES, (GilbertElliottLoss(0.01, 0.25), UniformLoss(0.001)), strict=True)),
            "RTT 600.0 ms, queue 25 packets, loss 3.85 % in bursts of 4 packets / 0.10 %",
        ),
        (
            dict(zip(LOSSES, (UniformLoss(0.0), GilbertElliottLoss(0.5, 0.0)), strict=True)),
            "RTT 600.0 ms, queue 25 packets, loss none / 100 % without end",
        ),
        (
            {"forward.loss": UniformLoss(0.3, 3)},
            "RTT 600.0 ms, queue 25 packets, loss 30 % (at most 3 in a row) / none",
        ),
        (
            {"client_side": ClientSide(BESIDE, BESIDE)},
            "RTT 610.0 ms, queue 25 packets, no loss, 5.0 ms and no loss at the client's side",
        ),
    ],
)
def test_links_in_words(changes: dict[str, Any], words: str) -> None:
    assert format_link(with_values(LINK, changes)) == f"20.00 / 2.00 Mbit/s, {words}"
    assert format_link(with_values(LINK, {**changes, "back.rate": 20 * MBPS})) == f"20.00 Mbit/s, {words}"


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        (Queue(QueueDiscipline.DROP_TAIL, 65536, QueueUnit.BYTES), "drop-tail 64 KiB"),
        (
            Queue(QueueDiscipline.CODEL, 100, target=0.005, interval=0.1, ecn=True),
            "codel 100 packets (target 5.0 ms, interval 100.0 ms, ECN)",
        ),
        (
            Queue(QueueDiscipline.RED, 90, minimum=10, maximum=30, probability=0.05, mark_above=0.001),
            "red 90 packets (10 to 30 packets, at most 5 %, marks above 1.0 ms)",
        ),
    ],
)
def test_queues_in_words(queue: Queue, words: str) -> None:
    both, forward = LINK.with_both(queue=queue), LINK.with_forward(queue=queue)
    assert format_link(both) == f"20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue {words}, no loss"
    assert format_link(forward) == f"20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue {words} / 25 packets, no loss"


@pytest.mark.parametrize(
    ("impairments", "words"),
    [
        ({"forward.corruption": Corruption(0.02), "back.corruption": Corruption(0.02)}, "corruption 2 %"),
        (
            {"forward.corruption": Corruption(0.3, 3), "back.corruption": Corruption(0.02, mode=CorruptionMode.LOSS)},
            "corruption 30 % (at most 3 in a row) / 2 % as loss",
        ),
        ({"back.drops": (2, 3)}, "drops none / no. 2, 3"),
        ({"forward.drops": tuple(range(1, 11))}, "drops no. 1, 2, 3, 4, 5, 6, 7, 8 and 2 more / none"),
        ({"blackhole": Blackhole(5, 2)}, "dark for 2.0 s after 5.0 s"),
        ({"blackhole": Blackhole(0.5, 2, 3, LinkDirection.SERVER)}, "dark return for 2.0 s after 500.0 ms, 3 times"),
        ({"rebind": Rebind(1)}, "new client port after 1.0 s"),
        ({"rebind": Rebind(1, 5, address=True)}, "new client address and port after 1.0 s, then every 5.0 s"),
        ({"cross_traffic": CrossTraffic()}, "beside a TCP flow (cubic)"),
        ({"forward.jitter": Jitter(0.005), "back.jitter": Jitter(0.005)}, "jitter uniform 5.0 ms"),
        (
            {"back.jitter": Jitter(0.001, JitterShape.EXPONENTIAL, overtake=True)},
            "jitter none / exponential 1.0 ms with overtaking",
        ),
        (
            {"forward.reordering": Reordering(0.01, 0.02), "back.reordering": Reordering(0.02, 1.0, 3)},
            "reordering 1 % by 20.0 ms / 2 % by 3 packets, at most 1.0 s",
        ),
        ({"forward.duplication": 0.005}, "duplication 0.50 % / none"),
        (
            {"forward.udp_cross_traffic": UdpCrossTraffic(5e6), "back.udp_cross_traffic": UdpCrossTraffic(5e6)},
            "beside UDP packets of 5.00 Mbit/s in packets of 540 B",
        ),
        (
            {"forward.udp_cross_traffic": UdpCrossTraffic(5e6, 1500, 20)},
            "beside UDP packets of 5.00 Mbit/s in packets of 1500 B after 20.0 s / none",
        ),
        ({"pep": PEPS["D"]}, "PEP D"),
        (
            {"client_side": ClientSide(back=ClientSideDirection(loss=UniformLoss(0.01)))},
            "loss none / 1 % at the client's side",
        ),
        (
            {"client_side": ClientSide(ClientSideDirection(rate=50 * MBPS, queue=100))},
            "50.00 Mbit/s / any rate, queue 100 packets / none and no loss at the client's side",
        ),
        (
            {"client_side": ClientSide(*(ClientSideDirection(0, None, rate * MBPS, 9) for rate in (50, 20)))},
            "50.00 / 20.00 Mbit/s, queue 9 packets and no loss at the client's side",
        ),
        (
            {"client_side": ClientSide(ClientSideDirection(jitter=Jitter(0.005)))},
            "jitter uniform 5.0 ms / none and no loss at the client's side",
        ),
        ({"vpn": VPNS["wireguard"]}, "WireGuard over UDP (MTU 1420)"),
        ({"vpn": replace(TUNNEL, nagle=False)}, "OpenVPN over TCP (MTU 1420, initial window 10, cubic, TCP_NODELAY)"),
        (
            {"vpn": replace(TUNNEL, send_buffer=2 * MIB)},
            "OpenVPN over TCP (MTU 1420, buffers 2 MiB / 6 MiB, initial window 10, cubic)",
        ),
        (
            {"pep": replace(PEPS["A"], initial_window=32), "endpoint_tcp": LINUX_ENDPOINTS},
            "PEP (buffers 4 MiB / 6 MiB, initial window 32, cubic), endpoints' TCP buffers 4 MiB / 6 MiB",
        ),
        (
            {"endpoint_tcp": replace(LINUX_ENDPOINTS, fast_open=True)},
            "endpoints' TCP buffers 4 MiB / 6 MiB, TCP Fast Open",
        ),
    ],
)
def test_impairments_in_words(impairments: dict[str, Any], words: str) -> None:
    assert format_link(with_values(LINK, impairments)) == f"{format_link(LINK)}, {words}"
