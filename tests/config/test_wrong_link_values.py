"""Each key of a link, with each kind of wrong value: one sentence with the key, the value and what is allowed."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from quicsat.config import emulated_links, gateways, link_profiles
from quicsat.config.profile_generators import GENERATORS
from quicsat.model.emulated_link import QueueDiscipline
from tests.config.my_yaml import extending, faults

NO_VALUE, WORD, LIST = "", "nonsense", "[[1]]"
"""Wrong for every key."""


@dataclass(frozen=True)
class Values:
    """What a key may have."""

    allowed: str
    """What every message says of it."""
    wrong: tuple[str, ...]
    """Values of its own that are wrong, beside those that are wrong for every key."""
    optional: bool = False
    """The key may have no value."""
    text: bool = False
    """The key may have any text, so that a message about a list only asks for a single value."""


@dataclass(frozen=True)
class Part:
    """A mapping in the description of a link."""

    where: str
    """Where its keys stand, as ``%s``."""
    keys: Collection[str]
    """All that it supports."""
    values: Mapping[str, Values]
    needed: Mapping[str, str]
    """Keys that must be there, with values that are right."""


def part(where: str, keys: Collection[str], values: Mapping[str, Values], **needed: str) -> Part:
    return Part(where, keys, values, {key.replace("_", " "): value for key, value in needed.items()})


def duration(least: str, most: str, *wrong: str) -> Values:
    return Values(f"{least} to {most}", ("5", "5 parsec", "1 000 ms", "-1 us", *wrong))


def share() -> Values:
    return Values("0 % to 100 %", ("0.5", "5 ms", "-1 %", "100.1 %"))


def number(least: int, most: int) -> Values:
    return Values(f"{least} to {most}", (f"{least - 1}", f"{most + 1}", "1.5", "2 packets"))


def probability(least: str) -> Values:
    return Values(f"{least} to 1", ("-0.1", "1.1", "101 %", "5 ms"))


def word(*allowed: str) -> Values:
    return Values(", ".join(allowed), ("5",))


OTHERS = Values("", ())
"""Of a key that is not listed here: what is wrong for every key is."""


def mapping(key: str) -> Values:
    return Values(f"must be a mapping; write for example {key}: {{", ("5 s",))


FLAG = Values("must be true, false or null", ("5", "yes"), optional=True)
RATE = Values("1 bit/s to 100 Gbit/s", ("20", "20 Mbps", "0 bit/s", "-1 Mbit/s", "101 Gbit/s"))
RATE_OR_NONE = Values("0 bit/s to 100 Gbit/s", ("20", "20 Mbps", "-1 Mbit/s", "101 Gbit/s"))
LEVEL = Values("0 dB to 60 dB", ("5", "5 m", "-1 dB", "61 dB"))
BUFFER = Values("64 KiB to 1 GiB", ("5", "5 mB", "63 KiB", "2 GiB", "1000000.5 B"))
LIMIT = Values("1 to 1000000", ("0", "0 packets", "1000001 packets", "many packets", "5 B", "2 GiB", "5 packet"))
CONGESTION_CONTROL = word("cubic", "reno", "bbr")
INITIAL_WINDOW = number(1, 1000)
BURST = number(1, 1_000_000)
SEED = number(1, 4_294_967_295)
MOMENT, MOMENT_OR_NONE = duration("1 ms", "1 h", "0 ms", "61 min"), duration("0 s", "1 h", "61 min")
ROUND_TRIP = duration("1 ms", "60 s", "0 ms", "61 s")
JITTER = duration("0 s", "10 s", "11 s")
TIMERS_FROM = word("first packet", "start")
PROFILE = Values("names no file in the directory of the test case; allowed: a CSV table, a Mahimahi trace, "
                 "{leo: {}}, {meo: {}}, {fade: {}}, none.",
                 ("5", "leo", "/nowhere.csv"), text=True)  # fmt: skip
EITHER_WAY = {
    "delay": duration("0 s", "60 s", "61 s"),
    "rate": RATE,
    "queue": LIMIT,
    "loss": share(),
    "jitter": JITTER,
    "duplication": share(),
    "udp cross traffic": RATE_OR_NONE,
    "corruption": share(),
    "drops": BURST,
    "profile": PROFILE,
}
WAYS = ("", "forward ", "return ")
LINK = {
    **dict.fromkeys(emulated_links.LINK_KEYS, OTHERS),
    **{f"{way}{key}": values for key, values in EITHER_WAY.items() for way in WAYS},
    **{f"{way}reordering": mapping(f"{way}reordering") for way in WAYS},
    **{key: mapping(key) for key in ("blackhole", "rebind", "cross traffic")},
    "scenario": word("asymmetric-p2p", "blackhole", "corrupt-rate"),
    "queue mode": word("exact", "paper"),
    "pep": word("A", "B", "C", "D", "none"),
    "endpoint tcp": Values("is neither none nor a mapping; write for example {send buffer", ("5",)),
    "return access": Values("dedicated, {dama: {…}}", ("5",)),
    "vpn": word("openvpn", "wireguard", "none"),
    "client side": Values("is neither none nor a mapping; write for example {delay", ("5",)),
}
QUEUE = {
    "discipline": word("drop-tail", "codel", "fq-codel", "pie", "red"),
    "limit": LIMIT,
    "target": duration("100 us", "10 s", "99 us", "11 s"),
    "interval": duration("1 ms", "60 s", "0 ms", "61 s"),
    "ecn": FLAG,
    "mark above": duration("10 us", "10 s", "9 us", "11 s"),
    "minimum": LIMIT,
    "maximum": LIMIT,
    "probability": probability("0.0001"),
    "weight": probability("0.000001"),
}
TCP = {"send buffer": BUFFER, "receive buffer": BUFFER}
TCP_SENDER = {**TCP, "initial window": INITIAL_WINDOW, "congestion control": CONGESTION_CONTROL}


def queue(discipline: QueueDiscipline) -> Part:
    thresholds = {"minimum": "20", "maximum": "60"} if discipline is QueueDiscipline.RED else {}
    keys = ("discipline", *emulated_links.QUEUE_KEYS_OF[discipline])
    values = {key: QUEUE[key] for key in keys}
    return part("queue: {%s}", keys, values, discipline=discipline.value, limit="90", **thresholds)


def generator(name: str, **values: Values) -> Part:
    keys = (*GENERATORS[name].parameters, "seed")
    known = {"rate": RATE, "step": MOMENT, "seed": SEED, **values}
    return part(f"profile: {{{name}: {{%s}}}}", keys, {key.replace("_", " "): value for key, value in known.items()})


PARTS = {
    "link": part("%s", emulated_links.LINK_KEYS, LINK),
    "uniform loss": part(
        "loss: {%s}", emulated_links.UNIFORM_LOSS, {"rate": share(), "longest burst": BURST}, rate="1 %"
    ),
    "bursts of loss": part(
        "forward loss: {%s}",
        emulated_links.BURSTS_OF_LOSS,
        dict.fromkeys(("good to bad", "bad to good", "loss in good", "loss in bad"), probability("0")),
        good_to_bad="0.1",
        bad_to_good="0.5",
    ),
    "jitter": part(
        "return jitter: {%s}",
        emulated_links.JITTER,
        {"size": JITTER, "shape": word("uniform", "exponential", "normal"), "overtake": FLAG},
        size="5 ms",
    ),
    "reordering": part(
        "reordering: {%s}",
        emulated_links.REORDERING,
        {"rate": share(), "delay": duration("1 ms", "10 s", "0 ms", "11 s"), "gap": number(1, 1000)},
        rate="1 %",
        delay="20 ms",
    ),
    "UDP cross traffic": part(
        "forward udp cross traffic: {%s}",
        emulated_links.UDP_CROSS_TRAFFIC,
        {
            "rate": RATE_OR_NONE,
            "packet size": Values("28 B to 1500 B", ("5", "27 B", "1501 B", "30.5 B")),
            "start": MOMENT_OR_NONE,
        },
        rate="5 Mbit/s",
    ),
    **{f"queue {discipline}": queue(discipline) for discipline in QueueDiscipline},
    "corruption": part(
        "scenario: corrupt-rate, corruption: {%s}",
        emulated_links.CORRUPTION,
        {"rate": share(), "longest burst": BURST, "mode": word("byte", "loss")},
        rate="2 %",
    ),
    "blackhole": part(
        "scenario: blackhole, blackhole: {%s}",
        emulated_links.BLACKHOLE,
        {
            "on": MOMENT,
            "off": MOMENT,
            "repeat": number(1, 1000),
            "direction": word("both", "forward", "return"),
            "from": TIMERS_FROM,
        },
        on="5 s",
        off="2 s",
    ),
    "rebind": part(
        "scenario: rebind, rebind: {%s}",
        emulated_links.REBIND,
        {"first": MOMENT, "period": MOMENT, "address": FLAG, "from": TIMERS_FROM},
        first="1 s",
    ),
    "cross traffic": part(
        "scenario: tcp-cross-traffic, cross traffic: {%s}",
        emulated_links.CROSS_TRAFFIC,
        {"congestion control": CONGESTION_CONTROL},
    ),
    "pep": part("pep: {%s}", gateways.PEP, TCP_SENDER),
    "endpoint tcp": part("endpoint tcp: {%s}", gateways.ENDPOINT_TCP, {**TCP, "fast open": FLAG}),
    "client side": part(
        "client side: {%s}",
        emulated_links.CLIENT_SIDE_KEYS,
        {f"{way}{key}": EITHER_WAY[key] for key in ("delay", "loss", "rate", "queue", "jitter") for way in WAYS},
    ),
    "vpn": part(
        "vpn: {%s}",
        gateways.VPN,
        {
            "program": word("openvpn", "wireguard"),
            "transport": word("udp", "tcp"),
            "mtu": number(1280, 1420),
            "nagle": FLAG,
        }
        | TCP_SENDER,
        program="openvpn",
        transport="tcp",
    ),
    "capacity on demand": part(
        "return access: {dama: {%s}}",
        link_profiles.DEMAND,
        {
            "frame": duration("1 ms", "1 s", "0 ms", "2 s"),
            "request delay": duration("0 s", "60 s", "61 s"),
            "slot": Values("1 B to 1 MB", ("5", "0 B", "2 MB", "1.5 B")),
            "constant rate": RATE_OR_NONE,
        },
    ),
    "profile of a file": part(
        "return profile: {%s}",
        (*link_profiles.FILE_KEYS, *link_profiles.COMMON_KEYS),
        {"file": PROFILE, "step": MOMENT, "loop": FLAG, "start": MOMENT_OR_NONE},
        file="up.trace",
    ),
    "profile of a generator": part("profile: {%s}", GENERATORS, {name: mapping(name) for name in GENERATORS}),
    "leo": generator(
        "leo",
        round_trip=ROUND_TRIP,
        handover=MOMENT,
        outage=MOMENT_OR_NONE,
        burst=MOMENT_OR_NONE,
        burst_loss=share(),
        length=MOMENT,
    ),
    "meo": generator("meo", round_trip=ROUND_TRIP, **{"pass": MOMENT}, outage=MOMENT_OR_NONE),
    "fade": generator(
        "fade",
        clear_sky=LEVEL,
        margin=LEVEL,
        depth=LEVEL,
        scintillation=LEVEL,
        slope=Values("0.001 dB/s to 60 dB/s", ("5", "5 dB", "0 dB/s", "61 dB/s")),
        hold=MOMENT_OR_NONE,
        loop_delay=MOMENT_OR_NONE,
        length=MOMENT,
    ),
}


def cases() -> Iterator[object]:
    for name, of_part in PARTS.items():
        for key, values in of_part.values.items():
            for text in (WORD, LIST, *([] if values.optional else [NO_VALUE]), *values.wrong):
                yield pytest.param(name, key, text, id=f"{name}, {key}: {text}")


@pytest.fixture(autouse=True)
def trace(in_folder: None) -> None:
    """A trace that a profile may name."""
    Path("up.trace").write_text("500\n1000\n")


def faults_of(name: str, key: str, text: str) -> tuple[str, ...]:
    """Of a link like that of ``sat`` in which ``key`` has the value ``text``."""
    keys = {**PARTS[name].needed, key: text}
    link = PARTS[name].where % ", ".join(f"{each}: {value}" for each, value in keys.items())
    return faults(extending("sat", link))


@pytest.mark.parametrize(("name", "key", "text"), [*cases()])
def test_a_wrong_value_is_one_sentence(name: str, key: str, text: str) -> None:
    values = PARTS[name].values[key]
    [fault] = faults_of(name, key, text)
    assert fault.startswith('my.yaml:4: "mine": ')
    shown = '"[' if text == LIST else f'"{text}" ' if text else ""  # keys with several values name one of them
    assert f"{key} {shown}" in fault
    assert ("must be a single value." if values.text and text == LIST else values.allowed) in fault


@pytest.mark.parametrize("name", PARTS)
def test_every_key_has_wrong_values(name: str) -> None:
    assert set(PARTS[name].values) == set(PARTS[name].keys)


@pytest.mark.parametrize("name", PARTS)
def test_an_unknown_key_is_named_with_all_that_are_known(name: str) -> None:
    assert any('unknown key "colour". Allowed: ' in fault for fault in faults_of(name, "colour", "green"))
