"""A document that describes a test case to a value; what is wrong with it is noted in its fields."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import chain
from typing import TypeVar

from interop.documents import Fields
from interop.link_entries import BLANK_LINK, LINK_EXAMPLE, read_link
from interop.model import Check, Link, RealLink, TestCase
from interop.names import NAME_RULE, is_name
from interop.quantities import SIZE, count, duration, matching, one_line, one_of, size, within
from interop.real_entries import means_real_link, read_real_link
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
    "link": LINK_EXAMPLE,
    "repetitions": "10",
    "timeout": "60 s",
}
"""Keys that a test case must have if it extends none -> an example of the value; and one of FILE_SIZE_KEYS."""
FILE_SIZE_KEYS = ("file size", "file sizes")
FUNCTIONAL_KEYS = ("check", "certificate chain", "name length")
TEST_CASE_KEYS = (
    *NAMING_EXAMPLES,
    "extends",
    *EXAMPLES,
    *FILE_SIZE_KEYS,
    "endpoint test",
    "server name",
    *FUNCTIONAL_KEYS,
)


# ---- what a single value may be -------------------------------------------------------------


def parse_name(text: str) -> str:
    """A test case's name, which is a folder's name and a word of the command line too."""
    if not is_name(text) or text.endswith((".yaml", ".yml")):
        raise ValueError(f"must be {NAME_RULE}, and not end in .yaml or .yml.")
    if text in RESERVED:
        raise ValueError("stands for several test cases on the command line; choose another name.")
    return text


def parse_sizes(text: str) -> tuple[int, ...]:
    """``"2 MiB"`` -> one file's size, ``"50 × 1 KiB"`` (or with an x) -> those of fifty, ``none``; bytes."""
    if text == "none":
        return ()
    number, sign, each = re.sub("[×x]", "×", text).partition("×")
    return (_FILE_SIZE(each.strip()),) * _FILES(number.strip()) if sign else (_FILE_SIZE(text),)


_ABBREVIATION = matching(r"[A-Za-z0-9][A-Za-z0-9-]{0,9}", "1 to 10 letters, digits and hyphens")
_ENDPOINT_TEST = matching(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", "one word of letters, digits, hyphens and underscores")
_SERVER_NAME = one_of(("server4", "server6", "server46"))
_FILE_SIZE = within(size, "1 B", "10 GiB")
_FILES = within(count, "1", "10000")
_CHAIN_LENGTH = within(count, "1", "20")
_NAME_LENGTH = within(count, "8", "250")
_CHECK = one_of(check.value for check in Check)
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
    check = fields.read("check", _CHECK)
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
        check=given.check if check is None else Check(check),
        chain_length=_or(fields.read("certificate chain", _CHAIN_LENGTH), given.chain_length),
        name_length=_or(fields.read("name length", _NAME_LENGTH), given.name_length),
    )
    if file_sizes == () and test_case.check is None and len(fields.problems) == faults:
        fields.note(
            "a measurement needs a file.", fields.line_of("file sizes" if "file sizes" in fields else "file size")
        )
    if isinstance(link, RealLink) and test_case.check is not None and len(fields.problems) == faults:
        fields.note("a functional test needs an emulated link.", fields.line_of("link"))
    return test_case if len(fields.problems) == faults else None


def _read_link(fields: Fields, base: Link | None, scenarios: Collection[str], *, whole: bool) -> Link:
    if means_real_link(fields, base):
        return read_real_link(fields, base if isinstance(base, RealLink) else None, whole=whole)
    return read_link(fields, None if isinstance(base, RealLink) else base, scenarios, whole=whole)


_BLANK = TestCase("", "", "", BLANK_LINK, (), 0, 0)
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
    read = fields.read_list(used[0], parse_sizes)
    sizes = None if read is None else tuple(chain.from_iterable(read))
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
