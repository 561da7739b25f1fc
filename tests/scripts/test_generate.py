"""What follows from the code is written as the code has it."""

import pytest

from scripts import generate


def test_generated_files_are_current() -> None:
    assert [*generate.stale()] == [], "write them again: make generate"


def test_a_changed_rule_makes_its_page_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    page = generate.REFERENCE / "functional-tests.md"
    monkeypatch.setitem(generate.TABLES[page], "rules", lambda: "| test |\n")
    changed = generate.stale()
    assert [*changed] == [page]
    assert "<!-- generated: rules -->\n\n| test |\n\n<!-- end -->" in changed[page]
