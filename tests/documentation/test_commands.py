"""Commands that the documentation shows exist; tests/cli/test_documented_commands.py parses those of run.py."""

import re
import shlex
import subprocess

from tests.documentation.pages import PAGES, ROOT, commands, prose_of

TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M))
GENERATED = ("build", "results", "site", ".venv", ".git")
CURRENT = [page for page in PAGES if page.name != "CHANGELOG.md"]
PROGRAMS = re.compile(r"^((?:bench|scripts)/[\w./-]+)(?: |$)|^(?:\.venv/bin/)?python -m (bench|scripts)\.(\w+)(?: |$)")


def program(line: str) -> str | None:
    """The script or benchmark that a command runs, as a path."""
    match = PROGRAMS.match(line)
    return (match[1] or f"{match[2]}/{match[3]}.py") if match else None


def shown_targets() -> set[str]:
    """Targets of every `make …` in the documentation; variables and other options left out."""
    lines = [line for line in commands() if re.match(r"(?:sudo )?make [a-z]", line)]
    return {
        word for line in lines for word in shlex.split(line.removeprefix("sudo "))[1:] if re.fullmatch(r"[a-z-]+", word)
    }


def test_every_make_target_exists() -> None:
    assert len(shown_targets()) > 10
    assert shown_targets() - TARGETS == set()


def test_targets_are_no_files() -> None:
    rules = subprocess.run(["make", "-pn", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    phony = re.findall(r"^\.PHONY: (.*)$", rules, re.M)
    assert TARGETS - set(" ".join(phony).split()) == set()


def test_every_program_exists() -> None:
    shown = set(filter(None, map(program, commands())))
    assert len(shown) > 5
    assert {program for program in shown if not (ROOT / program).exists()} == set()


def test_every_file_exists() -> None:
    """Of this project, named in inline code; a name that ends in a colon or holds a placeholder is none."""
    roots = "|".join(sorted(path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in GENERATED))
    pattern = re.compile(rf"^(?:{roots})/[\w./+-]*$")
    shown = {
        code.rstrip("/")
        for page in CURRENT
        for code in re.findall(r"`([^`\n]+)`", prose_of(page))
        if pattern.match(code)
    }
    assert len(shown) > 20
    assert {name for name in shown if not (ROOT / name).exists()} - {"endpoints/my-quic"} == set()


def test_every_option_of_a_program_exists() -> None:
    """Of scripts and benchmarks; what follows -- is for run.py."""
    shown = {
        (name, option)
        for line in commands()
        if (name := program(line))
        for option in re.findall(r"(?<=\s)--[a-z][a-z-]+", line.split(" -- ")[0])
    }
    assert len(shown) > 10
    texts = {program: (ROOT / program).read_text(encoding="utf-8") for program, _ in shown}
    missing = {pair for pair in shown if not re.search(rf"(?<![\w-]){pair[1]}(?![\w-])", texts[pair[0]])}
    assert missing == set()
