"""Every command line that README, CONTRIBUTING and docs show can be parsed."""

import re
import shlex

import pytest

from quicsat.cli import commands, main
from tests.documentation.pages import PAGES, blocks_of, prose_of

HISTORY = "CHANGELOG.md"
"""A page that may show commands of earlier versions."""
PROGRAM = r"(?:\./|\S*python3? )run\.py|quicsat"
CALL = re.compile(rf"^\s*(?:\$ )?(?:\w+=\S+ |sudo |nohup |time )*(?:{PROGRAM})(?= |$)")
PLACEHOLDERS = {
    "[OPTIONS]": "", "OPTIONS": "", "COMMAND": "run", "[COMMAND]": "run", "ACTION": "list", "[NAME...]": "quic-go",
    "DIR": "results/a", "DIR…": "results/a results/b", "DIR...": "results/a results/b", "[DIR]": "results",
    "[DIR...]": "results", "FILE": "all.json", "RUN": "results/a/b_c/sat/1", "FRAME": "1", "FRAME...": "1 2",
    "FRAME…": "1 2", "ADDRESS": "tcp://host:8786", "…": "tcp://host:8786", "KIND": "tests", "[KIND]": "tests",
    "[FRAME...]": "1", "SHELL": "bash", "save|check": "save", "N": "2", "I/N": "1/2", "DAYS": "14", "TIME": "06:00",
}  # fmt: skip
"""Placeholder → what a reader puts in its place."""


def commands_in(block: str) -> list[str]:
    """The words after the program's name in each of its calls in a code block."""
    found = []
    for line in block.replace("\\\n", " ").splitlines():
        for call in re.split(r" (?:&&|\|\|?|;) ", re.sub(r"(^| )#.*", "", line)):
            if match := CALL.match(call):
                found.append(re.sub(r" *(?:\d?>{1,2} *\S+|2>&1|&)$", "", call[match.end() :].strip()).strip())
    return found


def documented() -> list[str]:
    """Every command line in a code block or between backticks; a command's bare name there is only mentioned."""
    lines = []
    for page in (page for page in PAGES if page.name != HISTORY):
        for block in blocks_of(page):
            lines += commands_in(block)
            lines += re.findall(r"scripts/nightly.* -- (-[^`#\n]*)", block)
        prose = prose_of(page)
        inline = [" ".join(span.split()) for span in re.findall(r"`((?:\./run\.py|quicsat) [^`]*)`", prose)]
        lines += [line for span in inline for line in commands_in(span) if line not in commands.SUMMARIES]
        lines += re.findall(r"scripts/nightly.* -- (-[^`#\n]*)", prose)
    return sorted({line.strip() for line in lines})


def filled_in(line: str) -> list[str]:
    """The words of a command line, with values for placeholders."""
    return shlex.split(" ".join(PLACEHOLDERS.get(word, word) for word in line.split(" ")))


def test_there_are_documented_command_lines() -> None:
    assert len(documented()) > 100


@pytest.mark.parametrize("line", documented())
def test_documented_command_lines_can_be_parsed(line: str) -> None:
    if filled_in(line) != ["--version"]:
        try:
            main.parse(filled_in(line))
        except SystemExit as end:
            assert end.code in (None, 0)  # of --help


@pytest.mark.parametrize(
    ("block", "found"),
    [
        ("./run.py list\n", ["list"]),
        ("$ DOCKER_HOST=unix:///x sudo ./run.py doctor  # comment\n", ["doctor"]),
        ("make setup && .venv/bin/python run.py -s a \\\n  -c b | tee log\n", ["-s a    -c b"]),
        ("quicsat show -m > matrix.md\ncd quicsat\n", ["show -m"]),
        ("./run.py\n", [""]),
    ],
)
def test_calls_are_found(block: str, found: list[str]) -> None:
    assert commands_in(block) == found


@pytest.mark.parametrize("name", commands.SUMMARIES)
def test_examples_of_help_can_be_parsed(name: str) -> None:
    examples = commands.load(name).EXAMPLES
    assert examples
    for example in examples:
        [line] = commands_in(f"./run.py {example}")
        options = main.parse(shlex.split(line))
        assert options.command == name
