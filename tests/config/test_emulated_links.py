"""Emulated links in test case files: each element becomes a value, or a fault with file and line."""

from dataclasses import replace
from operator import attrgetter

import pytest

from quicsat.model.emulated_link import (
    Blackhole,
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
    TimersFrom,
    UdpCrossTraffic,
    UniformLoss,
)
from tests.config.my_yaml import extending, faults, read
from tests.ready import ready_test_cases

HOLE, NAT = Blackhole(5.0, 2.0), Rebind(1.0, 5.0)
CODEL = Queue(QueueDiscipline.CODEL, 100, target=0.005, interval=0.1, ecn=True)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("rate: 5 Mbit/s", {"forward.rate": 5e6, "back.rate": 5e6}),
        ("rate: 5 Mbit/s, return rate: 1 Mbit/s", {"forward.rate": 5e6, "back.rate": 1e6}),
        ("rate: 5 Mbit/s, forward rate: 6 Mbit/s", {"forward.rate": 6e6, "back.rate": 5e6}),
        ("forward delay: 10 ms", {"forward.delay": 0.01, "back.delay": 0.3}),
        ("forward queue: 7", {"forward.queue": 7, "back.queue": 25}),
        ("loss: 0.1 %", {"forward.loss": UniformLoss(0.001), "back.loss": UniformLoss(0.001)}),
        ("forward loss: 2 %", {"forward.loss": UniformLoss(0.02), "back.loss": None}),
        ("loss: 2 %, return loss: 0 %", {"forward.loss": UniformLoss(0.02), "back.loss": None}),
        ("loss: {good to bad: 0.017, bad to good: 93.5 %}", {"back.loss": GilbertElliottLoss(0.017, 0.935)}),
        ("rtt: 560 ms", {"forward.delay": 0.28, "back.delay": 0.28}),
        ("queue: 1 BDP", {"forward.queue": 1000, "back.queue": 100}),
        ("rtt: 300 ms, forward queue: 0.5 BDP", {"forward.queue": 250, "back.queue": 25}),
        ("queue: 0.01 BDP, rate: 1 kbit/s", {"forward.queue": 1}),
        ("loss: {rate: 50 %, mean burst: 2}", {"back.loss": GilbertElliottLoss(0.5, 0.5)}),
        ("loss: {rate: 0 %, mean burst: 2}", {"back.loss": None}),
        ("queue mode: paper", {"queue_mode": QueueMode.PAPER}),
        ("scenario: simple-p2p, rate: 1 Mbit/s", {"scenario": "simple-p2p"}),
        ("scenario: drop-rate, loss: {rate: 30 %, longest burst: 3}", {"back.loss": UniformLoss(0.3, 3)}),
        ("loss: {rate: 30 %, longest burst: 3}", {"forward.loss": UniformLoss(0.3, 3)}),
        ("scenario: corrupt-rate, corruption: 2 %", {"back.corruption": Corruption(0.02)}),
        (
            "scenario: corrupt-rate, corruption: 2 %, return corruption: {rate: 1 %, longest burst: 3, mode: loss}",
            {"forward.corruption": Corruption(0.02), "back.corruption": Corruption(0.01, 3, CorruptionMode.LOSS)},
        ),
        ("scenario: droplist, return drops: [2, 3]", {"forward.drops": (), "back.drops": (2, 3)}),
        ("scenario: droplist, drops: 1", {"forward.drops": (1,), "back.drops": (1,)}),
        ("scenario: blackhole, blackhole: {on: 5 s, off: 2 s}", {"blackhole": HOLE}),
        (
            "scenario: blackhole, blackhole: {on: 5 s, off: 2 s, repeat: 3, direction: return, from: start}",
            {"blackhole": Blackhole(5.0, 2.0, 3, LinkDirection.SERVER, TimersFrom.START)},
        ),
        ("scenario: rebind, rebind: {first: 1 s, period: 5 s}", {"rebind": NAT, "forward.rate": 20e6}),
        (
            "scenario: rebind, rebind: {first: 10 ms, address: true, from: first packet}",
            {"rebind": Rebind(0.01, None, address=True)},
        ),
        ("scenario: tcp-cross-traffic, cross traffic: {}", {"cross_traffic": CrossTraffic()}),
        (
            "scenario: tcp-cross-traffic, cross traffic: {congestion control: reno}",
            {"cross_traffic.congestion_control": "reno"},
        ),
        ("queue: 100 packets", {"forward.queue": 100, "back.queue": 100}),
        ("queue: 64 KiB", {"forward.queue": Queue(QueueDiscipline.DROP_TAIL, 65536, QueueUnit.BYTES)}),
        (
            "forward queue: {discipline: codel, limit: 100, target: 5 ms, interval: 100 ms, ecn: true}",
            {"forward.queue": CODEL, "back.queue": 25},
        ),
        (
            "forward queue: {discipline: codel, limit: 1 MB, mark above: 1 ms}",
            {"forward.queue": Queue(QueueDiscipline.CODEL, 1_000_000, QueueUnit.BYTES, mark_above=0.001)},
        ),
        (
            "queue: {discipline: red, limit: 90, minimum: 10, maximum: 30 packets, probability: 5 %, weight: 0.01}",
            {"back.queue": Queue(QueueDiscipline.RED, 90, minimum=10, maximum=30, probability=0.05, weight=0.01)},
        ),
        (
            "queue: {discipline: pie, limit: 50, target: 15 ms}",
            {"forward.queue": Queue(QueueDiscipline.PIE, 50, target=0.015)},
        ),
        (
            "jitter: 5 ms, return jitter: {size: 1 ms, shape: normal, overtake: true}",
            {"forward.jitter": Jitter(0.005), "back.jitter": Jitter(0.001, JitterShape.NORMAL, overtake=True)},
        ),
        ("jitter: 5 ms, forward jitter: 0 ms", {"forward.jitter": None, "back.jitter": Jitter(0.005)}),
        (
            "reordering: {rate: 1 %, delay: 20 ms}, return reordering: {rate: 2 %, delay: 1 s, gap: 3}",
            {"forward.reordering": Reordering(0.01, 0.02), "back.reordering": Reordering(0.02, 1.0, 3)},
        ),
        ("duplication: 1 %, forward duplication: 0 %", {"forward.duplication": 0.0, "back.duplication": 0.01}),
        (
            "udp cross traffic: 5 Mbit/s, return udp cross traffic: 0 bit/s",
            {"forward.udp_cross_traffic": UdpCrossTraffic(5e6), "back.udp_cross_traffic": None},
        ),
        (
            "return udp cross traffic: {rate: 1 Mbit/s, packet size: 1500 B, start: 20 s}",
            {"forward.udp_cross_traffic": None, "back.udp_cross_traffic": UdpCrossTraffic(1e6, 1500, 20)},
        ),
        (
            "loss: {good to bad: 0.01, bad to good: 0.2, loss in good: 0.1 %, loss in bad: 50 %}",
            {"forward.loss": GilbertElliottLoss(0.01, 0.2, 0.001, 0.5)},
        ),
    ],
)
def test_elements_of_links(link: str, expected: dict[str, object]) -> None:
    [mine] = read(extending("sat", link))
    assert {name: attrgetter(name)(mine.link) for name in expected} == expected


def test_what_a_scenario_does_is_extended_with_it_and_left_with_it() -> None:
    hole = (
        "---\nname: xa\nabbreviation: XA\nextends: sat\nlink: {scenario: blackhole, blackhole: {on: 5 s, off: 2 s}}\n"
    )
    longer = "---\nname: xb\nabbreviation: XB\nextends: xa\nlink: {blackhole: {off: 3 s}, queue: 9}\n"
    back = "---\nname: xc\nabbreviation: XC\nextends: xb\nlink: {scenario: asymmetric-p2p}\n"
    links = {case.name: case.emulated for case in read(hole + longer + back)}
    assert links["xa"].blackhole == HOLE
    assert (links["xb"].blackhole, links["xb"].forward.queue) == (Blackhole(5.0, 3.0), 9)
    assert links["xc"] == ready_test_cases()["sat"].emulated.with_both(queue=9)


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ("blackhole: {on: 5 s, off: 2 s}", 'my.yaml:4: "mine": blackhole needs scenario blackhole; this is asymmetric'),
        ("scenario: droplist, corruption: 1 %, drops: 1", "corruption needs scenario corrupt-rate; this is droplist."),
        ("scenario: blackhole", 'missing key "blackhole"; write for example blackhole: {on: 5 s, off: 2 s}'),
        ("scenario: rebind", 'missing key "rebind"; write for example rebind: {first: 1 s, period: 5 s}'),
        ("scenario: corrupt-rate", 'missing key "corruption"; write for example corruption: 2 %'),
        ("scenario: droplist", 'missing key "return drops"'),
        ("scenario: tcp-cross-traffic", 'missing key "cross traffic"'),
        ("scenario: drop-rate", 'missing key "loss"; write for example loss: {rate: 30 %, longest burst: 3}'),
        ("scenario: drop-rate, loss: {good to bad: 0.1, bad to good: 1}", "drop-rate loses packets independently"),
        ("scenario: blackhole, blackhole: {on: 5 s}", 'missing key "off"; write for example off: 2 s'),
        ("scenario: rebind, rebind: {period: 1 s}", 'missing key "first"'),
        ("scenario: rebind, rebind: {first: 1 s, adress: true}", "Did you mean address? Allowed: first, period,"),
        ("scenario: corrupt-rate, corruption: {mode: loss}", 'missing key "rate"; write for example rate: 2 %'),
        ("scenario: droplist, drops: []", 'drops is an empty list: "" is no whole number; allowed: 1 to 1000000.'),
        ("loss: {longest burst: 3}", 'missing key "rate"; write for example rate: 30 %'),
        ("loss: {rate: 1 %, good to bad: 0.1}", 'unknown key "good to bad". Allowed: rate, longest burst.'),
        (
            "loss: {rate: 90 %, mean burst: 2}",
            "bursts of 2 packets are too short for this rate: its mean burst is at least 9.",
        ),
        ("loss: {mean burst: 2}", 'missing key "rate"; write for example rate: 1 %'),
        ("loss: {rate: 1 %, mean burst: 0.5}", 'mean burst "0.5" is out of range: 1 to 1000.'),
        ("rtt: 560 ms, forward delay: 1 ms", "rtt and forward delay exclude each other; leave one of them out."),
        ("queue: 0 BDP", 'queue "0 BDP" is out of range: 0.01 to 100.'),
        ("queue: 64 KiBB", 'queue "64 KiBB" has the unknown unit "KiBB"; units: B, kB,'),
        ("queue: 100 B", "is out of range: 1502 B to 1 GiB. Or 1 to 1000000 packets, like"),
        ("queue: {limit: 100}", 'missing key "discipline"; write for example discipline: codel'),
        ("queue: {discipline: codel}", 'missing key "limit"; write for example limit: 100 packets'),
        ("queue: {discipline: codle, limit: 9}", "codel, fq-codel, pie, red. Did you mean codel?"),
        ("queue: {discipline: red, limit: 9, minimum: 2, maximum: 4, target: 5 ms}", 'unknown key "target". Allowed:'),
        ("queue: {discipline: red, limit: 9, maximum: 4}", 'missing key "minimum"; write for example minimum: 20'),
        ("queue: {discipline: red, limit: 90, minimum: 40, maximum: 40}", "allowed is minimum < maximum <= limit."),
        ("queue: {discipline: red, limit: 90, minimum: 2 kB, maximum: 9 kB}", "must all be in packets or all be in"),
        ("queue: {discipline: fq-codel, limit: 64 KiB}", "limit of fq-codel must be in packets, like 100 packets."),
        ("queue: {discipline: drop-tail, limit: 9, ecn: true}", 'unknown key "ecn". Allowed: discipline, limit, mark'),
        (
            "queue: {discipline: codel, limit: 9}, queue mode: paper",
            "queue mode paper needs a queue of so many packets",
        ),
        ("jitter: {shape: normal}", 'missing key "size"; write for example size: 5 ms'),
        ("reordering: {rate: 1 %}", 'missing key "delay"; write for example delay: 20 ms'),
        ("udp cross traffic: {start: 1 s}", 'missing key "rate"; write for example rate: 5 Mbit/s'),
        ("scenario: simple-p2p, rate: 1 Mbit/s, forward queue: 64 KiB", "has one queue for both directions"),
        ("pep: {loss: 1 %}", 'unknown key "loss". Allowed: send buffer, receive buffer, initial window, congestion'),
        ("vpn: {transport: tcp}", 'missing key "program"; write for example program: openvpn'),
        ("vpn: {program: openvpn, loss: 1 %}", 'unknown key "loss". Allowed: program, transport, mtu, send buffer'),
        ("vpn: {program: wireguard, transport: tcp}", "transport tcp needs program openvpn; this is wireguard."),
        ("vpn: {program: openvpn, initial window: 20}", "initial window needs transport tcp; this is udp."),
        ("vpn: {program: openvpn, nagle: false}", "nagle needs transport tcp; this is udp."),
        ("vpn: openvpn, pep: A", "a link has either pep or vpn; write pep: none or vpn: none."),
        ("vpn: openvpn, scenario: rebind, rebind: {first: 1 s}", "vpn does not work with scenario rebind"),
        ("vpn: {program: openvpn, transport: tcp}, delay: 2 s", "at most 1.5 s; this link has 4 s."),
        ("client side: {pep: A}", 'unknown key "pep". Allowed: delay, forward delay, return delay, loss, forward loss'),
        ("client side: {profile: a.csv}", 'unknown key "profile". Allowed: delay, forward delay, return delay, loss'),
        ("client side: {rate: 50 Mbit/s}", "rate needs queue; write for example queue: 100 packets"),
        ("client side: {forward queue: 9}", "forward queue needs forward rate; write for example forward rate"),
        ("client side: {rate: 50 Mbit/s, queue: 1 BDP}", 'queue "1 BDP"'),
        ("client side: {loss: {good to bad: 0.1}}", 'loss lacks "bad to good"; write for example bad to good: 0.935'),
        (
            "endpoint tcp: {initial window: 10}",
            'unknown key "initial window". Allowed: send buffer, receive buffer, fast',
        ),
    ],
)
def test_faults(link: str, fault: str) -> None:
    [problem] = faults(extending("sat", link))
    assert fault in problem


def test_disturbances_are_inherited_whatever_the_scenario() -> None:
    first = "---\nname: xa\nabbreviation: XA\nextends: sat\nlink: {jitter: 5 ms, duplication: 1 %, queue: 64 KiB}\n"
    second = "---\nname: xb\nabbreviation: XB\nextends: xa\nlink: {scenario: droplist, drops: 1, forward jitter: 0 s}\n"
    links = {case.name: case.emulated for case in read(first + second)}
    dropping = replace(links["xa"].with_both(drops=(1,)).with_forward(jitter=None), scenario="droplist")
    assert links["xb"] == dropping
