"""Each promise in SECURITY.md names a test that exists."""

import ast
import re
from pathlib import Path

import pytest

from tests.documentation.pages import ROOT, text_of

_ROW = re.compile(r"^\| (.+?) \| (.+?) \|$", re.M)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def promises(text: str) -> list[tuple[str, str]]:
    """Promise and cell with its tests of each row of the tables below ``## Promises``."""
    section = text.partition("\n## Promises\n")[2].partition("\n## ")[0]
    return [row for row in _ROW.findall(section) if row[0] != "promise"]


def unknown(tests: str) -> list[str]:
    """What is no test in the second cell of a row; the whole cell if it names none."""
    found = _TEST.findall(tests)
    if not found or _TEST.sub("", tests).strip(", "):
        return [tests]
    return [f"{file}::{name}" for file, name in found if name not in _defined(ROOT / file)]


def _defined(file: Path) -> set[str]:
    tree = ast.parse(file.read_bytes()) if file.is_file() else ast.Module([], [])
    return {each.name for each in tree.body if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")}


PROMISES = promises(text_of(ROOT / "SECURITY.md"))


@pytest.mark.parametrize(("promise", "tests"), PROMISES)
def test_a_promise_names_tests_that_exist(promise: str, tests: str) -> None:
    assert promise.endswith(".")
    assert unknown(tests) == []


def test_what_is_no_test_is_found() -> None:
    here = "tests/documentation/test_security.py::test_what_is_no_test_is_found"
    rows = promises(f"\n## Promises\n\n| promise | test |\n|---|---|\n| A. | `{here}` |\n| B. | – |\n\n## Next\n")
    assert [(promise, unknown(tests)) for promise, tests in rows] == [("A.", []), ("B.", ["–"])]
    assert unknown(f"`{here}`, `{here}_more`") == [f"{here}_more"]
    assert unknown("`tests/none.py::test_none`") == ["tests/none.py::test_none"]
    assert len(PROMISES) >= 10
