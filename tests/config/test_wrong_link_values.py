"""Each key of a link, with a wrong value: one sentence with the key and the value."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from quicsat.config import emulated_links, gateways, link_profiles
from quicsat.config.profile_generators import GENERATORS
from quicsat.model.emulated_link import QueueDiscipline
from tests.config.my_yaml import extending, faults

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
