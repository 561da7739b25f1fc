"""Tables of the reference hold exactly the names that the code knows."""

import json
import re
from collections.abc import Iterable
from dataclasses import fields

import pytest

from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.tables import TABLES
from quicsat.config import (
    emulated_links,
    expectations,
    hosts,
    implementations,
    quantities,
    real_links,
    test_case_limits,
    test_cases,
)
from quicsat.config.loader import load_test_cases
from quicsat.model.errors import InputError, LockedError, MachineError
from quicsat.model.outcomes import NOT_RUN, OURS, Cause, ErrorCode, Outcome
from quicsat.model.results import Manifest, RunResult
from quicsat.model.test_case import HTTP2_TESTS, ORDERED_TESTS, PROTOCOL_TESTS
from quicsat.results.document import SCHEMA_FILE
from quicsat.results.summary import Cell
from quicsat.statistics.judgement import Finding
from tests.documentation.pages import ROOT, first_column, text_of

REFERENCE = ROOT / "docs/reference"
FUNCTIONAL_CASES = load_test_cases(ROOT / "testcases/functional.yaml")
ENDPOINT_TESTS = {test for case in FUNCTIONAL_CASES for test in (case.client_test, case.server_test)}
TESTS = {*ENDPOINT_TESTS, *PROTOCOL_TESTS.values(), *ORDERED_TESTS.values(), *HTTP2_TESTS.values()}
EXPECTATION_CELL_KEYS = dict.fromkeys((*expectations.KNOWN_FAILURE_KEYS, *expectations.FLOOR_KEYS))
FUNCTIONAL = "Codes of functional tests"
SCENARIOS = {path.parent.name for path in ROOT.glob("ns3-scenarios/*/main.cc")}


def names(dataclass: type) -> list[str]:
    """Fields of a dataclass."""
    return [field.name for field in fields(dataclass)]


@pytest.mark.parametrize(
    ("page", "section", "expected"),
    [
        ("test-cases", "Keys of a test case", test_cases.TEST_CASE_KEYS),
        ("test-cases", "Limits", test_case_limits.PARSERS),
        ("test-cases", "Keys of an emulated link", emulated_links.LINK_KEYS),
        ("test-cases", "Keys of a queue", ("discipline", *emulated_links.QUEUE)),
        ("test-cases", "Scenarios", SCENARIOS),
        ("test-cases", "Keys of a real link", real_links.KEYS),
        ("implementations", "Keys of an implementation", implementations.KEYS),
        ("implementations", "Keys of congestion control", implementations.CONGESTION_CONTROL_KEYS),
        ("implementations", "Keys of a variant", implementations.VARIANT_KEYS),
        ("endpoint-contract", "Tests", TESTS),
        ("hosts", "Hosts file", hosts.KEYS),
        ("expectations", "Keys of expectations", [*expectations.KEYS, *EXPECTATION_CELL_KEYS]),
        ("expectations", "Findings", list(Finding)),
        ("outcomes", "All outcomes", list(Outcome)),
        ("outcomes", "Codes of skipped runs", list(NOT_RUN)),
        ("outcomes", "Codes of errors", OURS),
        ("outcomes", "Causes", [cause for cause in Cause if cause]),
        ("result", "Manifest", names(Manifest)),
        ("result", "Run result", names(RunResult)),
        ("result", "Cell of the summary", names(Cell)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_table_holds_the_names_of_the_code(page: str, section: str, expected: Iterable[str]) -> None:
    shown = first_column(REFERENCE / f"{page}.md", section)
    assert sorted(shown) == sorted(str(name) for name in expected)


def test_codes_of_pairs_are_complete() -> None:
    shown = [*first_column(REFERENCE / "outcomes.md", "Codes of the pair")]
    shown += first_column(REFERENCE / "outcomes.md", FUNCTIONAL)
    assert sorted(shown) == sorted(code for code in ErrorCode if code and code not in OURS | NOT_RUN)


def test_fields_of_result_json_are_those_of_the_schema() -> None:
    schema = json.loads(SCHEMA_FILE.read_bytes())
    assert sorted(first_column(REFERENCE / "result.md", "Top level")) == sorted(schema["properties"])


def test_exit_statuses_are_those_of_the_errors() -> None:
    shown = re.findall(r"^\| (\d+) \|", text_of(REFERENCE / "exit-status.md"), re.M)
    assert sorted(map(int, shown)) == sorted(ExitStatus)
    assert {InputError.exit_status, MachineError.exit_status, LockedError.exit_status} <= {*ExitStatus}


def test_units_are_those_of_quantities() -> None:
    text = text_of(REFERENCE / "test-cases.md")
    dimensions = (quantities.TIME, quantities.RATE, quantities.SIZE, quantities.SHARE)
    assert [unit for each in dimensions for unit in each.units if f"`{unit}`" not in text] == []


def test_tables_are_complete() -> None:
    results = ROOT / "docs/guide/results.md"
    assert sorted(first_column(results, "Tables")) == sorted(["--table", *TABLES])
