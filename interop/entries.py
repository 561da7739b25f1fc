"""A document that describes a test case to a value; what is wrong with it is noted in its fields."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from interop.documents import Fields
from interop.model import EmulatedLink, GilbertElliottLoss, Loss, QueueMode, TestCase, UniformLoss
from interop.names import NAME_RULE, is_name
from interop.quantities import (
    SIZE,
    count,
    duration,
    matching,
    one_line,
    one_of,
    probability,
    rate,
    share,
    size,
    within,
)
from interop.units import MIB, byte_size

T = TypeVar("T")

RESERVED = ("onlytests", "onlymeasurements")
"""Words that stand for several test cases on the command line."""
LARGEST_TOTAL = 10 * 1024 * MIB
"""Bytes of all files of a test case together."""

NAMING_EXAMPLES = {"name": "leo", "abbreviation": "LEO"}
"""Keys that every test case must have -> an example of the value."""
EXAMPLES = {
    "description": "10 MiB over a satellite in low earth orbit",
    "link": "{scenario: simple-p2p, delay: 15 ms, rate: 20 Mbit/s, queue: 25}",
    "repetitions": "10",
    "timeout": "60 s",
}
"""Keys that a test case must have if it extends none -> an example of the value; and one of FILE_SIZE_KEYS."""
FILE_SIZE_KEYS = ("file size", "file sizes")
TEST_CASE_KEYS = (*NAMING_EXAMPLES, "extends", *EXAMPLES, *FILE_SIZE_KEYS, "endpoint test", "server name")
LINK_EXAMPLES = {"delay": "15 ms", "rate": "20 Mbit/s", "queue": "25"}
LINK_KEYS = (
    "scenario",
    *(f"{way}{key}" for key in (*LINK_EXAMPLES, "loss") for way in ("", "forward ", "return ")),
    "queue mode",
)
LOSS_EXAMPLES = {"good to bad": "0.017", "bad to good": "0.935"}


# ---- what a single value may be -------------------------------------------------------------


def parse_name(text: str) -> str:
    """A test case's name, which is a folder's name and a word of the command line too."""
    if not is_name(text) or text.endswith((".yaml", ".yml")):
        raise ValueError(f"must be {NAME_RULE}, and not end in .yaml or .yml.")
    if text in RESERVED:
        raise ValueError("stands for several test cases on the command line; choose another name.")
    return text


_ABBREVIATION = matching(r"[A-Za-z0-9][A-Za-z0-9-]{0,9}", "1 to 10 letters, digits and hyphens")
_ENDPOINT_TEST = matching(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", "one word of letters, digits, hyphens and underscores")
_SERVER_NAME = one_of(("server4", "server6", "server46"))
_QUEUE_MODE = one_of(mode.value for mode in QueueMode)
_DELAY = within(duration, "0 s", "60 s")
_RATE = within(rate, "1 bit/s", "100 Gbit/s")
_QUEUE = within(count, "1", "1000000")
_SHARE = within(share, "0 %", "100 %")
_PROBABILITY = within(probability, "0", "1")
_FILE_SIZE = within(size, "1 B", "10 GiB")
_REPETITIONS = within(count, "1", "10000")
_TIMEOUT = within(duration, "1 ms", "24 h")


# ---- test cases -----------------------------------------------------------------------------


def read_test_case(
    fields: Fields, base: TestCase | None, scenarios: Collection[str], *, whole: bool = True
) -> TestCase | None:
    """The test case that ``fields`` describe; None if a fault was noted.

    What ``fields`` do not say is taken from ``base``. If they are not the ``whole`` (they extend a test case that is
    faulty itself), what is missing is no fault of theirs.
    """
    faults = len(fields.problems)
    fields.allow_only(TEST_CASE_KEYS)
    fields.require(NAMING_EXAMPLES | (EXAMPLES if whole and base is None else {}))
    link = _read_link(fields, base.link if base else None, scenarios, whole=whole)
    file_sizes = _read_file_sizes(fields, needed=whole and base is None)
    client_test, server_test = _read_endpoint_tests(fields)
    given = base or _BLANK
    test_case = TestCase(
        name=_or(fields.read("name", parse_name), ""),
        abbreviation=_or(fields.read("abbreviation", _ABBREVIATION), ""),
        description=_or(fields.read("description", one_line), given.description),
        link=link,
        file_sizes=_or(file_sizes, given.file_sizes),
        repetitions=_or(fields.read("repetitions", _REPETITIONS), given.repetitions),
        timeout=_or(fields.read("timeout", _TIMEOUT), given.timeout),
        client_test=_or(client_test, given.client_test),
        server_test=_or(server_test, given.server_test),
        server_name=_or(fields.read("server name", _SERVER_NAME), given.server_name),
        source=fields.file,
    )
    return test_case if len(fields.problems) == faults else None


_BLANK_LINK = EmulatedLink("", 0, 0, 0, 0, 0, 0)
_BLANK = TestCase("", "", "", _BLANK_LINK, (), 0, 0)
"""Base of a test case that has none; each field that it lacks has been noted as missing."""


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


def _read_file_sizes(fields: Fields, *, needed: bool) -> tuple[int, ...] | None:
    used = [key for key in FILE_SIZE_KEYS if key in fields]
    if len(used) > 1:
        fields.note('write either "file size" or "file sizes".', fields.line_of(used[1]))
    if not used:
        if needed:
            fields.require({FILE_SIZE_KEYS[0]: SIZE.example})
        return None
    sizes = fields.read_list(used[0], _FILE_SIZE)
    if sizes and sum(sizes) > LARGEST_TOTAL:
        fields.note(f"all files together are larger than {byte_size(LARGEST_TOTAL)}.", fields.line_of(used[0]))
    return sizes


def _read_endpoint_tests(fields: Fields) -> tuple[str | None, str | None]:
    """What client and server see as TESTCASE: one word for both, or a mapping."""
    if not fields.holds_mapping("endpoint test"):
        word = fields.read("endpoint test", _ENDPOINT_TEST)
        return word, word
    roles = fields.mapping("endpoint test")
    roles.allow_only(("client", "server"))
    return roles.read("client", _ENDPOINT_TEST), roles.read("server", _ENDPOINT_TEST)


# ---- links ----------------------------------------------------------------------------------


def _read_link(fields: Fields, base: EmulatedLink | None, scenarios: Collection[str], *, whole: bool) -> EmulatedLink:
    given = base or _BLANK_LINK
    if not fields.holds_mapping("link"):
        if "link" in fields:
            fields.note(f"link must be a mapping; write for example link: {EXAMPLES['link']}", fields.line_of("link"))
        return given
    link = fields.mapping("link")
    faults = len(fields.problems)
    link.allow_only(LINK_KEYS)
    if whole and base is None:
        _require_link_keys(link, scenarios)
    forward_delay, return_delay = _both_ways(link, "delay", _DELAY)
    forward_rate, return_rate = _both_ways(link, "rate", _RATE)
    forward_queue, return_queue = _both_ways(link, "queue", _QUEUE)
    forward_loss, return_loss = _read_losses(link, given, whole=whole)
    queue_mode = link.read("queue mode", _QUEUE_MODE)
    merged = EmulatedLink(
        scenario=_or(link.read("scenario", one_of(scenarios)), given.scenario),
        forward_delay=_or(forward_delay, given.forward_delay),
        return_delay=_or(return_delay, given.return_delay),
        forward_rate=_or(forward_rate, given.forward_rate),
        return_rate=_or(return_rate, given.return_rate),
        forward_queue=_or(forward_queue, given.forward_queue),
        return_queue=_or(return_queue, given.return_queue),
        forward_loss=forward_loss,
        return_loss=return_loss,
        queue_mode=given.queue_mode if queue_mode is None else QueueMode(queue_mode),
    )
    if whole and len(fields.problems) == faults:
        _check_symmetry(link, merged)
    return merged


def _require_link_keys(link: Fields, scenarios: Collection[str]) -> None:
    link.require({"scenario": next(iter(scenarios), "asymmetric-p2p")})
    for key, example in LINK_EXAMPLES.items():
        ways = [f"forward {key}", f"return {key}"]
        missing = [way for way in ways if way not in link]
        if key not in link and missing:
            link.require(dict.fromkeys([key] if missing == ways else missing, example))


def _both_ways(link: Fields, key: str, parse: Callable[[str], T]) -> tuple[T | None, T | None]:
    """Forward and return value: that of ``key`` is for both, unless a direction has its own."""
    both, forward, back = (link.read(f"{way}{key}", parse) for way in ("", "forward ", "return "))
    return (both if forward is None else forward), (both if back is None else back)


def _check_symmetry(link: Fields, merged: EmulatedLink) -> None:
    if merged.scenario != "simple-p2p":
        return
    for key, forward, back in (
        ("delay", merged.forward_delay, merged.return_delay),
        ("rate", merged.forward_rate, merged.return_rate),
        ("queue", merged.forward_queue, merged.return_queue),
    ):
        if forward != back:
            link.note(f"scenario simple-p2p has one {key} for both directions; asymmetric-p2p can have two.")


def _read_losses(link: Fields, given: EmulatedLink, *, whole: bool) -> tuple[Loss | None, Loss | None]:
    both, forward, back = (_read_loss(link, f"{way}loss") for way in ("", "forward ", "return "))
    return (
        _merged_loss(link, both if forward is None else forward, given.forward_loss, whole=whole),
        _merged_loss(link, both if back is None else back, given.return_loss, whole=whole),
    )


@dataclass(frozen=True)
class _PartialLoss:
    """Gilbert-Elliott probabilities of which one may be left to the test case that is extended."""

    line: int
    good_to_bad: float | None
    bad_to_good: float | None
    missing: tuple[str, ...]


def _read_loss(link: Fields, key: str) -> UniformLoss | _PartialLoss | None:
    if not link.holds_mapping(key):
        rate_of_loss = link.read(key, _SHARE)
        return None if rate_of_loss is None else UniformLoss(rate_of_loss)
    fields = link.mapping(key)
    fields.allow_only(LOSS_EXAMPLES)
    good_to_bad, bad_to_good = (fields.read(name, _PROBABILITY) for name in LOSS_EXAMPLES)
    missing = tuple(name for name in LOSS_EXAMPLES if name not in fields)
    return _PartialLoss(fields.line, good_to_bad, bad_to_good, missing)


def _merged_loss(
    link: Fields, loss: UniformLoss | _PartialLoss | None, given: Loss | None, *, whole: bool
) -> Loss | None:
    if loss is None:
        return given
    if isinstance(loss, UniformLoss):
        return loss if loss.rate > 0 else None
    if isinstance(given, GilbertElliottLoss):
        return GilbertElliottLoss(_or(loss.good_to_bad, given.good_to_bad), _or(loss.bad_to_good, given.bad_to_good))
    if whole:
        for name in loss.missing:
            link.note(f'loss lacks "{name}"; write for example {name}: {LOSS_EXAMPLES[name]}', loss.line)
    return GilbertElliottLoss(_or(loss.good_to_bad, 0), _or(loss.bad_to_good, 0))
