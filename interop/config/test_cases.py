"""Reads a test case from a YAML document; faults are added to the problems of its fields."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import chain
from typing import TypeVar

from interop.config.emulated_links import BLANK_LINK, LINK_EXAMPLE, read_link
from interop.config.quantities import SIZE, count, duration, matching, one_line, one_of, size, within
from interop.config.real_links import means_real_link, read_real_link
from interop.config.yaml_fields import Fields
from interop.model.functional_checks import Check
from interop.model.names import NAME_RULE, is_name
from interop.model.real_link import RealLink
from interop.model.test_case import Link, TestCase
from interop.model.units import MIB, byte_size

T = TypeVar("T")

RESERVED = ("onlytests", "onlymeasurements")
"""Words that select several test cases on the command line."""
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


# ---- single values -------------------------------------------------------------


def parse_name(text: str) -> str:
    """The name of a test case, which is also the name of a folder and a word of the command line."""
    if not is_name(text) or text.endswith((".yaml", ".yml")):
        raise ValueError(f"must be {NAME_RULE}, and not end in .yaml or .yml.")
    if text in RESERVED:
        raise ValueError("selects several test cases on the command line; choose another name.")
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

    Missing keys are inherited from ``base``. If not ``whole`` (the extended test case is faulty), missing keys are not
    reported.
    """
    faults = len(fields.problems)
    fields.allow_only(TEST_CASE_KEYS)
    fields.require(NAMING_EXAMPLES | (EXAMPLES if whole and base is None else {}))
    link = _read_link(fields, base.link if base else None, scenarios, whole=whole)
    file_sizes = _read_file_sizes(fields, needed=whole and base is None)
    client_test, server_test = _read_endpoint_tests(fields)
    check = fields.read("check", _CHECK)
    inherited = base or _BLANK
    test_case = TestCase(
        name=_or(fields.read("name", parse_name), ""),
        abbreviation=_or(fields.read("abbreviation", _ABBREVIATION), ""),
        description=_or(fields.read("description", one_line), inherited.description),
        link=link,
        file_sizes=_or(file_sizes, inherited.file_sizes),
        repetitions=_or(fields.read("repetitions", _REPETITIONS), inherited.repetitions),
        timeout=_or(fields.read("timeout", _TIMEOUT), inherited.timeout),
        client_test=_or(client_test, inherited.client_test),
        server_test=_or(server_test, inherited.server_test),
        server_name=_or(fields.read("server name", _SERVER_NAME), inherited.server_name),
        source=fields.file,
        check=inherited.check if check is None else Check(check),
        chain_length=_or(fields.read("certificate chain", _CHAIN_LENGTH), inherited.chain_length),
        name_length=_or(fields.read("name length", _NAME_LENGTH), inherited.name_length),
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
    """TESTCASE of client and server: one word for both, or a mapping."""
    if not fields.holds_mapping("endpoint test"):
        word = fields.read("endpoint test", _ENDPOINT_TEST)
        return word, word
    roles = fields.mapping("endpoint test")
    roles.allow_only(("client", "server"))
    return roles.read("client", _ENDPOINT_TEST), roles.read("server", _ENDPOINT_TEST)
