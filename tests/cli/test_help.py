"""``./run.py help``: the overview fits on one screen and names every command once, in its group."""

from __future__ import annotations

from pathlib import Path

import pytest

from quicsat.cli import commands, main
from quicsat.cli.commands import parser_of
from quicsat.cli.help import overview

ROOT = Path(__file__).resolve().parents[2]
NOT_COMMANDS = {
    "__init__", "campaign_report", "commands", "console", "continuous_integration", "dry_run", "entry_point",
    "exit_status", "foreign_inputs", "image_actions", "image_check", "image_tables", "image_trial", "live_view",
    "machine_check", "main", "options", "other_runners", "outcome_status", "output_files", "parser",
    "program", "progress", "reference", "select_runs", "stored_campaigns",
}  # fmt: skip


def test_the_overview_fits_on_one_screen() -> None:
    lines = overview().splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100


def test_the_overview_names_every_command_in_its_group() -> None:
    lines = overview().splitlines()
    for title, group in commands.GROUPS.items():
        begin = lines.index(f"{title}:") + 1
        assert [line.split()[0] for line in lines[begin : begin + len(group)]] == list(group)


def test_every_command_has_a_module_and_a_test() -> None:
    modules = {path.stem for path in (ROOT / "quicsat/cli").glob("*.py")}
    assert modules - NOT_COMMANDS == set(commands.SUMMARIES)
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "tests/cli").glob("test_*.py")}
    assert set(commands.SUMMARIES) - tests == set()


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_all_ways_to_the_overview(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(ROOT, words) == 0
    assert capsys.readouterr().out == overview() + "\n"


def test_help_of_a_command_is_that_of_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(ROOT, ["help", "plot"]) == 0
    told = capsys.readouterr().out
    assert told == parser_of("plot").format_help()
    with pytest.raises(SystemExit) as ended:
        main.main(ROOT, ["plot", "--help"])
    assert (ended.value.code, capsys.readouterr().out) == (0, told)
