"""Test cases as a user writes them, in ``my.yaml`` in the working directory."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from quicsat.config.loader import load_test_cases
from quicsat.model.errors import InputError
from quicsat.model.test_case import TestCase
from tests.ready import cases_on_request, ready_test_cases

MY_YAML = Path("my.yaml")


def read(text: str, known: Mapping[str, TestCase] | None = None) -> tuple[TestCase, ...]:
    """The test cases in ``text``, which may extend those in ``known``: by default, the ready ones."""
    MY_YAML.write_text(text, encoding="utf-8")
    if known is not None:
        return load_test_cases(MY_YAML, known)
    return load_test_cases(MY_YAML, ready_test_cases(), cases_on_request())


def faults(text: str, known: Mapping[str, TestCase] | None = None) -> tuple[str, ...]:
    """What is wrong in ``text``."""
    with pytest.raises(InputError) as caught:
        read(text, known)
    return caught.value.problems


def extending(base: str, link: str) -> str:
    """A test case with the name ``mine`` that extends ``base``, with its link in line 4."""
    return f"name: mine\nabbreviation: MINE\nextends: {base}\nlink: {{{link}}}\n"
