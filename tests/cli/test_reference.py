"""The command reference: complete, and printed by `help`."""

import pytest

from quicsat.cli import commands, reference
from tests.cli.conftest import CommandLine


def test_help_prints_it(quicsat: CommandLine) -> None:
    assert quicsat.out("help", "--markdown") == reference.markdown()


@pytest.mark.parametrize("name", commands.SUMMARIES)
def test_every_command_has_a_section_and_a_link(name: str) -> None:
    page = reference.markdown()
    assert f"\n### {name}\n" in page
    assert f"(#{name})" in page


def test_tables_have_two_columns() -> None:
    rows = [line.replace("\\|", "") for line in reference.markdown().splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {3}
