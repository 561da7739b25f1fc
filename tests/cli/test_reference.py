"""The command reference: complete, and printed by `help`."""

from __future__ import annotations

from pathlib import Path

import pytest

from quicsat.cli import commands, main, reference

ROOT = Path(__file__).resolve().parents[2]


def test_help_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(ROOT, ["help", "--markdown"]) == 0
    assert capsys.readouterr().out == reference.markdown()


@pytest.mark.parametrize("name", commands.SUMMARIES)
def test_every_command_has_a_section_and_a_link(name: str) -> None:
    page = reference.markdown()
    assert f"\n### {name}\n" in page
    assert f"(#{name})" in page


def test_tables_have_two_columns() -> None:
    rows = [line.replace("\\|", "") for line in reference.markdown().splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {3}
