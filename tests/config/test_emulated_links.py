"""Emulated links in test case files: each element becomes a value, or a fault with file and line."""

from dataclasses import replace

import pytest

from quicsat.model.emulated_link import Blackhole
from tests.config.my_yaml import extending, faults, read
from tests.ready import ready_test_cases

HOLE = Blackhole(5.0, 2.0)


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
        ("scenario: rebind, rebind: {first: 1 s, adress: true}", "Did you mean address? Allowed: first, period,"),
        ("scenario: droplist, drops: []", 'drops is an empty list: "" is no whole number; allowed: 1 to 1000000.'),
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
        ("queue: {discipline: codle, limit: 9}", "codel, fq-codel, pie, red. Did you mean codel?"),
        ("queue: {discipline: red, limit: 90, minimum: 40, maximum: 40}", "allowed is minimum < maximum <= limit."),
        ("queue: {discipline: red, limit: 90, minimum: 2 kB, maximum: 9 kB}", "must all be in packets or all be in"),
        ("queue: {discipline: fq-codel, limit: 64 KiB}", "limit of fq-codel must be in packets, like 100 packets."),
        (
            "queue: {discipline: codel, limit: 9}, queue mode: paper",
            "queue mode paper needs a queue of so many packets",
        ),
        ("scenario: simple-p2p, rate: 1 Mbit/s, forward queue: 64 KiB", "has one queue for both directions"),
        ("vpn: {program: wireguard, transport: tcp}", "transport tcp needs program openvpn; this is wireguard."),
        ("vpn: {program: openvpn, initial window: 20}", "initial window needs transport tcp; this is udp."),
        ("vpn: {program: openvpn, nagle: false}", "nagle needs transport tcp; this is udp."),
        ("vpn: openvpn, pep: A", "a link has either pep or vpn; write pep: none or vpn: none."),
        ("vpn: openvpn, scenario: rebind, rebind: {first: 1 s}", "vpn does not work with scenario rebind"),
        ("vpn: {program: openvpn, transport: tcp}, delay: 2 s", "at most 1.5 s; this link has 4 s."),
        ("client side: {rate: 50 Mbit/s}", "rate needs queue; write for example queue: 100 packets"),
        ("client side: {forward queue: 9}", "forward queue needs forward rate; write for example forward rate"),
        ("client side: {rate: 50 Mbit/s, queue: 1 BDP}", 'queue "1 BDP"'),
        ("client side: {loss: {good to bad: 0.1}}", 'loss lacks "bad to good"; write for example bad to good: 0.935'),
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
