"""The test cases of this checkout, read once by each process that runs tests."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from quicsat.config.loader import load_cases_on_request, load_known_test_cases
from quicsat.model.test_case import TestCase

ROOT = Path(__file__).resolve().parents[1]


@cache
def ready_test_cases() -> Mapping[str, TestCase]:
    """The test cases by name; the mapping is read-only."""
    return MappingProxyType(load_known_test_cases(ROOT / "testcases"))


@cache
def cases_on_request() -> Mapping[str, TestCase]:
    """The test cases that run only by name; the mapping is read-only."""
    return MappingProxyType(load_cases_on_request(ROOT / "testcases", ready_test_cases()))
