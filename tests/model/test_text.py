"""Text from outside: nothing that it contains steers a terminal or a page, and names stay different."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quicsat.model.text import (
    LONGEST,
    command_line,
    counted,
    escaped,
    first_few,
    numbered,
    printable,
    printable_lines,
    quoted,
    without_controls,
)

ANY = st.text(st.characters() | st.sampled_from("\x1b\x9b\x9d\x90\x07[]mP\\\r\n\t\x00\u202e\u2066\ud800\udfff"))
"""Any text, lone surrogates too, with many parts of escape sequences."""


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain  text – ü ×", "plain  text – ü ×"),
        ("  both ends ", "both ends"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1b]52;c;aGFjaw==", ""),
        ("\x1bPq#0\x1b\\six", "six"),
        ("\x9b31mc1", "c1"),
        ("\x9d0;title\x9cc1", "c1"),
        ("a\r\n\tb\x0bc", "a b c"),
        ("a\x00\x07\x08b\x7f", "ab"),
        ("\u202eevil\u2066", "evil"),
        ("a\u200b\u00adb", "ab"),
        ("a\u2028b\u00a0c\u3000d", "a b c d"),
        ("\x1bcreset\x1b", "reset"),
        ("\ud800x\ue000", "x"),
        ("bad \ufffd byte", "bad \ufffd byte"),
        ("y" * 1001, "y" * 999 + "…"),
    ],
)
def test_text_from_outside_is_made_printable(text: str, clean: str) -> None:
    assert printable(text) == clean


@given(ANY)
def test_printable_text_is_one_line_that_a_terminal_shows_as_it_is(text: str) -> None:
    clean = printable(text)
    assert clean.isprintable()
    assert len(clean) <= LONGEST
    assert printable(clean) == clean
    clean.encode()


def test_the_bound_can_be_lifted_and_changed() -> None:
    assert (printable("y" * 1001, None), printable("abcdef", 3), printable("abc", 3)) == ("y" * 1001, "ab…", "abc")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\x1b[2Jb\x1b]0;title\x07c\x1bPd\r\n\ufffd31m\x00", "abc\n\ufffd31m"),
        ("\x1b\x1b[\x1b]0;never ended", ""),
        ("first\n\tindented\n  \x1b[1mbold\n\nlast\n", "first\n    indented\n  bold\n\nlast\n"),
        ("progress 1\rprogress 2\n", "progress 1 progress 2\n"),
        ("", ""),
    ],
)
def test_lines_keep_their_breaks_and_their_indentation(text: str, clean: str) -> None:
    assert printable_lines(text) == clean


@given(ANY)
def test_only_line_breaks_in_lines_are_not_printable(text: str) -> None:
    clean = printable_lines(text, 50)
    assert all(line.isprintable() for line in clean.split("\n"))
    assert clean.count("\n") == text.count("\n")
    clean.encode()


@given(ANY)
def test_escaped_and_quoted_text_can_steer_no_terminal(text: str) -> None:
    for shown in (escaped(text), quoted(text)):
        assert shown.isprintable()
        shown.encode()


def test_an_escaped_name_shows_what_is_in_it_and_a_quoted_one_is_cut() -> None:
    assert escaped("a\x1b[31m\n\ud800\u202e") == r"a\x1b[31m\n\ud800\u202e"
    assert escaped("ab") != escaped("a\x00b")
    assert (quoted("satloss"), len(quoted("x" * 1000))) == ('"satloss"', 62)


def test_no_other_module_filters_characters() -> None:
    root = Path(__file__).parents[2]
    files = [path for folder in ("quicsat", "plots") for path in (root / folder).rglob("*.py")]
    filters = [path.name for path in files if re.search(r"isprintable\(|unicodedata|\\x1b", path.read_text("utf-8"))]
    assert filters == ["text.py"]


def test_a_command_can_be_copied_to_a_shell() -> None:
    line = command_line("resume", Path("my results/$a"), "-j", "x.json", 7)
    assert line == "./run.py resume 'my results/$a' -j x.json 7"


@pytest.mark.parametrize("name", ["a\nb\x1b[2J", "\u202ex\u2028y\udc85", "it's\t\\x1b\a", "é\r", "\x1b1"])
def test_a_word_that_a_terminal_would_obey_is_escaped_for_the_shell(name: str) -> None:
    line = command_line("show", name)
    assert line.isprintable()
    said = subprocess.run(["bash", "-c", line.replace("./run.py show", "printf %s")], capture_output=True, check=True)
    assert said.stdout == os.fsencode(name)


def test_lines_for_a_terminal_keep_colours_and_nothing_else_that_acts() -> None:
    assert without_controls("\x1b[1;31mred\x1b[0m\tä\u202f\r\nline") == "\x1b[1;31mred\x1b[0m\tä\u202f\r\nline"
    assert without_controls("a\x1b[2J\u202e\r\x1b]0;t\a\x9b2J\x7f") == r"a\x1b[2J\u202e\r\x1b]0;t\x07\x9b2J\x7f"


def test_no_other_module_puts_words_into_a_command() -> None:
    root = Path(__file__).parents[2]
    files = [path for path in (root / "quicsat").rglob("*.py") if path.name not in ("text.py", "help.py")]
    assert [path.name for path in files if re.search(r"\./run\.py [^`\"\n]*\{", path.read_text("utf-8"))] == []


def test_numbers_agree_with_their_nouns() -> None:
    assert [counted(count, "run") for count in range(3)] == ["0 runs", "1 run", "2 runs"]
    assert [counted(count, "success", "successes") for count in (1, 2)] == ["1 success", "2 successes"]
    assert numbered("Repetition", [7]) == "Repetition 7"
    assert numbered("Repetition", [5, 1, 2, 3]) == "Repetitions 1-3, 5"


def test_of_many_names_the_first_few_are_told() -> None:
    assert first_few("ab", 2) == "a, b"
    assert first_few(["a", "b", "\x1b", "d"], 1, quoted) == '"a" and 3 more'
