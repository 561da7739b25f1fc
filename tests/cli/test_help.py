"""``./run.py help``: the overview fits on one screen and names every command once, in its group."""

import pytest

from quicsat.cli import commands, reference
from quicsat.cli.commands import parser_of
from quicsat.cli.help import overview
from tests.cli.conftest import ROOT, CommandLine


def test_the_overview_fits_on_one_screen() -> None:
    lines = overview().splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 100


def test_the_overview_names_every_command_in_its_group() -> None:
    lines = overview().splitlines()
    for title, group in commands.GROUPS.items():
        begin = lines.index(f"{title}:") + 1
        assert [line.split()[0] for line in lines[begin : begin + len(group)]] == list(group)


@pytest.mark.parametrize("name", commands.SUMMARIES)
def test_every_command_has_a_test_and_a_head_that_can_be_read(name: str) -> None:
    command = commands.load(name)
    assert commands.GROUPS[command.GROUP[0]][name] == command.SUMMARY
    assert (ROOT / f"tests/cli/test_{name}.py").is_file()


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_all_ways_to_the_overview(words: list[str], quicsat: CommandLine) -> None:
    assert quicsat.out(*words) == overview() + "\n"


def test_help_of_a_command_is_that_of_its_option(quicsat: CommandLine) -> None:
    assert quicsat.out("help", "plot") == quicsat.out("plot", "--help") == parser_of("plot").format_help()


def test_the_reference_is_printed_too(quicsat: CommandLine) -> None:
    assert quicsat.out("help", "--markdown") == reference.markdown()
