"""Emulated links in test case files: what is inherited, and faults with file, line and what is allowed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from quicsat.config import emulated_links, gateways, link_profiles
from quicsat.config.profile_generators import GENERATORS
from quicsat.model.emulated_link import Blackhole, QueueDiscipline
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


# ---- wrong values and keys of each mapping ----------------------------------------------------

WORD, LIST = "nonsense", "[[1]]"
"""Wrong for every key."""


class Part(NamedTuple):
    """A mapping in the description of a link."""

    where: str
    """Where its keys stand, as ``%s``."""
    keys: Collection[str]
    """All that it supports."""
    needed: Mapping[str, str] = {}
    """Keys that must be there, with values that are right."""


def queue(discipline: QueueDiscipline) -> Part:
    needed = {"discipline": discipline.value, "limit": "90"}
    thresholds = {"minimum": "20", "maximum": "60"} if discipline is QueueDiscipline.RED else {}
    return Part("queue: {%s}", ("discipline", *emulated_links.QUEUE_KEYS_OF[discipline]), needed | thresholds)


PARTS = {
    "link": Part("%s", emulated_links.LINK_KEYS),
    "uniform loss": Part("loss: {%s}", emulated_links.UNIFORM_LOSS, {"rate": "1 %"}),
    "bursts of loss": Part(
        "forward loss: {%s}", emulated_links.BURSTS_OF_LOSS, {"good to bad": "0.1", "bad to good": "0.5"}
    ),
    "jitter": Part("return jitter: {%s}", emulated_links.JITTER, {"size": "5 ms"}),
    "reordering": Part("reordering: {%s}", emulated_links.REORDERING, {"rate": "1 %", "delay": "20 ms"}),
    "UDP cross traffic": Part(
        "forward udp cross traffic: {%s}", emulated_links.UDP_CROSS_TRAFFIC, {"rate": "5 Mbit/s"}
    ),
    **{f"queue {discipline}": queue(discipline) for discipline in QueueDiscipline},
    "corruption": Part("scenario: corrupt-rate, corruption: {%s}", emulated_links.CORRUPTION, {"rate": "2 %"}),
    "blackhole": Part("scenario: blackhole, blackhole: {%s}", emulated_links.BLACKHOLE, {"on": "5 s", "off": "2 s"}),
    "rebind": Part("scenario: rebind, rebind: {%s}", emulated_links.REBIND, {"first": "1 s"}),
    "cross traffic": Part("scenario: tcp-cross-traffic, cross traffic: {%s}", emulated_links.CROSS_TRAFFIC),
    "pep": Part("pep: {%s}", gateways.PEP),
    "endpoint tcp": Part("endpoint tcp: {%s}", gateways.ENDPOINT_TCP),
    "client side": Part("client side: {%s}", emulated_links.CLIENT_SIDE_KEYS),
    "vpn": Part("vpn: {%s}", gateways.VPN, {"program": "openvpn", "transport": "tcp"}),
    "capacity on demand": Part("return access: {dama: {%s}}", link_profiles.DEMAND),
    "profile of a file": Part(
        "return profile: {%s}", (*link_profiles.FILE_KEYS, *link_profiles.COMMON_KEYS), {"file": "up.trace"}
    ),
    "profile of a generator": Part("profile: {%s}", GENERATORS),
    **{
        name: Part(f"profile: {{{name}: {{%s}}}}", [key.replace("_", " ") for key in (*each.parameters, "seed")])
        for name, each in GENERATORS.items()
    },
}


@pytest.fixture(autouse=True)
def trace(in_folder: None) -> None:
    """A trace that a profile may name."""
    Path("up.trace").write_text("500\n1000\n")


def faults_of(part: Part, keys: Mapping[str, str]) -> tuple[str, ...]:
    """Of a link like that of ``sat`` in which the part has these keys."""
    return faults(extending("sat", part.where % ", ".join(f"{key}: {value}" for key, value in keys.items())))


@pytest.mark.parametrize(("name", "key"), [(name, key) for name, part in PARTS.items() for key in part.keys])
def test_a_wrong_value_is_one_sentence(name: str, key: str) -> None:
    for text, shown in ((WORD, f'"{WORD}" '), (LIST, '"[')):  # keys with several values name one of them
        [fault] = faults_of(PARTS[name], {**PARTS[name].needed, key: text})
        assert fault.startswith('my.yaml:4: "mine": ')
        assert f"{key} {shown}" in fault


OUT_OF_RANGE: Mapping[str, Mapping[tuple[str, ...], tuple[str, str, str]]] = {
    # part: {keys: (range, a value below it, a value above it)}
    "link": {
        ("delay", "forward delay", "return delay"): ("0 s to 60 s", "-1 us", "61 s"),
        ("rate", "forward rate", "return rate"): ("1 bit/s to 100 Gbit/s", "0 bit/s", "101 Gbit/s"),
        ("queue", "forward queue", "return queue"): ("1 to 1000000", "0 packets", "1000001 packets"),
        ("loss", "duplication", "corruption", "forward loss"): ("0 % to 100 %", "-1 %", "100.1 %"),
        ("jitter", "forward jitter", "return jitter"): ("0 s to 10 s", "-1 us", "11 s"),
        ("udp cross traffic", "return udp cross traffic"): ("0 bit/s to 100 Gbit/s", "-1 Mbit/s", "101 Gbit/s"),
        ("drops", "forward drops"): ("1 to 1000000", "0", "1000001"),
    },
    "uniform loss": {
        ("rate",): ("0 % to 100 %", "-1 %", "100.1 %"),
        ("longest burst",): ("1 to 1000000", "0", "1000001"),
    },
    "bursts of loss": {
        ("good to bad", "bad to good", "loss in good", "loss in bad"): ("0 to 1", "-0.1", "1.1"),
    },
    "jitter": {("size",): ("0 s to 10 s", "-1 us", "11 s")},
    "reordering": {
        ("rate",): ("0 % to 100 %", "-1 %", "100.1 %"),
        ("delay",): ("1 ms to 10 s", "0 ms", "11 s"),
        ("gap",): ("1 to 1000", "0", "1001"),
    },
    "UDP cross traffic": {
        ("rate",): ("0 bit/s to 100 Gbit/s", "-1 Mbit/s", "101 Gbit/s"),
        ("packet size",): ("28 B to 1500 B", "27 B", "1501 B"),
        ("start",): ("0 s to 1 h", "-1 us", "61 min"),
    },
    "queue codel": {("target",): ("100 us to 10 s", "99 us", "11 s"), ("interval",): ("1 ms to 60 s", "0 ms", "61 s")},
    "queue fq-codel": {("limit",): ("1 to 1000000", "0", "1000001")},
    "queue drop-tail": {("mark above",): ("10 us to 10 s", "9 us", "11 s")},
    "queue red": {
        ("minimum", "maximum"): ("1 to 1000000", "0", "1000001"),
        ("probability",): ("0.0001 to 1", "0.00009", "1.1"),
        ("weight",): ("0.000001 to 1", "0", "1.1"),
    },
    "corruption": {("longest burst",): ("1 to 1000000", "0", "1000001")},
    "blackhole": {("on", "off"): ("1 ms to 1 h", "0 ms", "61 min"), ("repeat",): ("1 to 1000", "0", "1001")},
    "rebind": {("first", "period"): ("1 ms to 1 h", "0 ms", "61 min")},
    "pep": {
        ("send buffer", "receive buffer"): ("64 KiB to 1 GiB", "63 KiB", "2 GiB"),
        ("initial window",): ("1 to 1000", "0", "1001"),
    },
    "endpoint tcp": {("send buffer", "receive buffer"): ("64 KiB to 1 GiB", "63 KiB", "2 GiB")},
    "client side": {
        ("delay", "return delay"): ("0 s to 60 s", "-1 us", "61 s"),
        ("rate", "forward rate"): ("1 bit/s to 100 Gbit/s", "0 bit/s", "101 Gbit/s"),
    },
    "vpn": {("mtu",): ("1280 to 1420", "1279", "1421"), ("initial window",): ("1 to 1000", "0", "1001")},
    "capacity on demand": {
        ("frame",): ("1 ms to 1 s", "0 ms", "2 s"),
        ("request delay",): ("0 s to 60 s", "-1 us", "61 s"),
        ("slot",): ("1 B to 1 MB", "0 B", "2 MB"),
        ("constant rate",): ("0 bit/s to 100 Gbit/s", "-1 Mbit/s", "101 Gbit/s"),
    },
    "profile of a file": {("step",): ("1 ms to 1 h", "0 ms", "61 min"), ("start",): ("0 s to 1 h", "-1 us", "61 min")},
    "leo": {
        ("round trip",): ("1 ms to 60 s", "0 ms", "61 s"),
        ("handover", "length", "step"): ("1 ms to 1 h", "0 ms", "61 min"),
        ("outage", "burst"): ("0 s to 1 h", "-1 us", "61 min"),
        ("burst loss",): ("0 % to 100 %", "-1 %", "100.1 %"),
        ("seed",): ("1 to 4294967295", "0", "4294967296"),
    },
    "meo": {
        ("pass",): ("1 ms to 1 h", "0 ms", "61 min"),
        ("rate",): ("1 bit/s to 100 Gbit/s", "0 bit/s", "101 Gbit/s"),
    },
    "fade": {
        ("clear sky", "margin", "depth", "scintillation"): ("0 dB to 60 dB", "-1 dB", "61 dB"),
        ("slope",): ("0.001 dB/s to 60 dB/s", "0 dB/s", "61 dB/s"),
        ("hold", "loop delay"): ("0 s to 1 h", "-1 us", "61 min"),
    },
}


@pytest.mark.parametrize(
    ("name", "key", "allowed", "values"),
    [
        pytest.param(name, key, allowed, values, id=f"{name}, {key}")
        for name, of_part in OUT_OF_RANGE.items()
        for keys, (allowed, *values) in of_part.items()
        for key in keys
    ],
)
def test_a_value_out_of_range_is_refused_with_the_range(
    name: str, key: str, allowed: str, values: Sequence[str]
) -> None:
    for text in values:
        [fault] = faults_of(PARTS[name], {**PARTS[name].needed, key: text})
        assert f'{key} "{text}" ' in fault
        assert allowed in fault


@pytest.mark.parametrize("name", PARTS)
def test_an_unknown_key_is_named_with_all_that_are_known(name: str) -> None:
    found = faults_of(PARTS[name], {**PARTS[name].needed, "colour": "green"})
    assert any('unknown key "colour". Allowed: ' in fault for fault in found)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        (name, key)
        for name, part in PARTS.items()
        if "loss" not in name and "profile" not in name  # without its keys, it is of another kind
        for key in part.needed
        if key != "transport"
    ],
)
def test_a_missing_key_is_named_with_an_example(name: str, key: str) -> None:
    part = PARTS[name]
    found = faults_of(part, {"colour": "green", **{each: part.needed[each] for each in part.needed if each != key}})
    assert any(f'missing key "{key}"; write for example {key}: ' in fault for fault in found)
