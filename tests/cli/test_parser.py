"""The parser: options before and after arguments, hints for mistyped words, readable help."""

import argparse
import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from quicsat.cli import commands, main
from quicsat.cli.commands import parser_of
from tests.cli.conftest import CommandLine


def parse(line: str) -> Any:
    """What the program makes of its command line."""
    return main.parse(shlex.split(line))


A, B = Path("results/a"), Path("results/b")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tables --table accesses results/a", {"directories": [A], "table": ["accesses"]}),
        ("tables --table accesses pairs results/a results/b", {"directories": [A, B], "table": ["accesses", "pairs"]}),
        ("tables --format csv --objective 10MB=8s 1MB=2s results/a", {"directories": [A], "format": "csv"}),
        ("tables -t SAT SATL results/a", {"directories": [A], "test": ["SAT", "SATL"]}),
        ("tables results/a -t SAT SATL", {"directories": [A], "test": ["SAT", "SATL"]}),
        ("plot -p cdf heatmap results/a", {"directories": [A], "plot": ["cdf", "heatmap"]}),
        ("plot --format svg pdf results/a -p cdf", {"directories": [A], "format": ["svg", "pdf"], "plot": ["cdf"]}),
        ("plot -o out results/a --pair a_b c_d", {"directories": [A], "output": Path("out"), "pair": ["a_b", "c_d"]}),
        ("plot --pair a_b c_d results/a", {"directories": [A], "pair": ["a_b", "c_d"]}),
        ("compare -t SAT results/a results/b", {"directories": [A, B], "test": ["SAT"]}),
        ("compare results/a -t SAT results/b", {"directories": [A, B], "test": ["SAT"]}),
        ("compare --format csv results/a results/b --all", {"directories": [A, B], "format": "csv"}),
        ("resume --retry failed timeout results/a", {"directory": A, "retry": ["failed", "timeout"]}),
        ("resume results/a --retry failed", {"directory": A, "retry": ["failed"]}),
        ("resume -mj out.json results/a", {"directory": A, "json": Path("out.json"), "markdown": True}),
        ("site --serve results/a", {"directories": [A], "serve": 8000}),
        ("site --serve 8001 results/a", {"directories": [A], "serve": 8001}),
        ("packets --server results/a 1 2", {"run": A, "frames": [1, 2]}),
        ("packets results/a --server 1 2", {"run": A, "frames": [1, 2]}),
        ("merge -o results/b part-1 part-2", {"directories": [Path("part-1"), Path("part-2")], "output": B}),
        ("prune --traces 14 results", {"directory": Path("results"), "traces": 14}),
        ("export --format qir results/a out.json", {"directory": A, "file": Path("out.json")}),
        ("-s quic-go -r quic-go=me/my:dev -t ./my.yaml sat", {"replace": ["quic-go=me/my:dev"]}),
        ("-t ./my.yaml links/b.yaml -c a", {"test": ["./my.yaml", "links/b.yaml"], "client": ["a"]}),
    ],
)
def test_every_order_of_options_and_arguments(line: str, expected: dict[str, object]) -> None:
    given = vars(parse(line))
    assert {name: given[name] for name in expected} == expected


def test_directories_are_known_without_a_slash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("latest", "sat"):
        (tmp_path / name).mkdir()
    assert parse("tables --table pairs latest").directories == [Path("latest")]
    assert parse("resume --retry failed latest").directory == Path("latest")
    assert parse("tables -t SAT latest").directories == [Path("latest")]
    assert parse("site --serve latest").directories == [Path("latest")]
    given = parse("tables latest -t SATL sat")  # a test case that has the name of a directory
    assert (given.directories, given.test) == ([Path("latest")], ["SATL", "sat"])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("tables --table acesses results/a", "Did you mean accesses?"),
        ("tables --table pairs acesses results/a", "Did you mean accesses?"),
        ("tables --table pairs", "the following arguments are required: DIR"),
        ("site --serve 99999", 'argument --serve: "99999" is out of range: 0 to 65535. See'),
        ("open --port 99999", "is out of range: 0 to 65535. See"),
        ("run --clock foo", 'argument --clock: "foo" is none of real, virtual. See'),
        ("run --budget 5m", "Did you mean min? See"),
        ("run --timeout -3s", 'argument --timeout: "-3s" is out of range: 1 ms to 24 h. See'),
        ("packets RUN -5", 'argument FRAME: "-5" is out of range: 1 to 1000000000. See'),
        ("packets results/a 1 0", 'argument FRAME: "0" is out of range'),
        ("help plt", "Did you mean plot?"),
        ("resume a --timeout 5s", "unrecognized arguments: --timeout 5s. A campaign continues with its own plan"),
        ("resume a --seed=5 -m", "unrecognized arguments: --seed=5. A campaign continues with its own plan"),
        ("resume a --seed 5", "leave --seed out. See"),
        ("resume a --retri failed b", "unrecognized arguments: --retri failed b. Did you mean --retry?"),
        ("compare a b --timeout 5s", "unrecognized arguments: --timeout. See"),
        ("run --repetitions foo", 'argument --repetitions: "foo" is no whole number. See'),
        ("run --seed 99999999999999999999999", "has more than 15 digits"),
        ("run --cpu-cost-factor 1e300", "is no number without an exponent; allowed: 0 to 100. See"),
        ("run --seed 1.5", 'argument --seed: "1.5" is no whole number. See'),
        ("site --serve soon", 'argument --serve: "soon" is no whole number; allowed: 0 to 65535. See'),
    ],
)
def test_slips_are_told(line: str, told: str, quicsat: CommandLine) -> None:
    assert told in quicsat.refusal(*shlex.split(line))


# ---- help -----------------------------------------------------------------------------------


def actions() -> list[tuple[str, argparse.Action]]:
    """Every option and argument of every command."""
    return [(name, action) for name in commands.SUMMARIES for action in parser_of(name)._actions]


@pytest.mark.parametrize(("name", "action"), actions(), ids=lambda each: getattr(each, "dest", each))
def test_help_is_one_sentence_with_default_and_example(name: str, action: argparse.Action) -> None:
    text = action.help or ""
    assert text[0].isupper()
    assert text.endswith(".")
    assert ". " not in text
    if action.nargs != 0:
        assert "example: " in text
    if action.option_strings and action.nargs != 0:
        assert "default: " in text or "required" in text


@pytest.mark.parametrize("name", commands.SUMMARIES)
def test_help_has_groups_and_no_wide_lines(name: str) -> None:
    text = parser_of(name).format_help()
    assert text.startswith(f"usage: ./run.py {name} [OPTIONS]")
    assert "\ngeneral:\n" in text
    assert "\noptions:\n" not in text
    described, _, examples = text.partition("\nexamples:\n")
    assert max(map(len, described.splitlines())) <= 100
    assert not re.search(r"\w-\n", described), "a name or path is torn"
    assert max(map(len, examples.splitlines())) <= 110


@pytest.mark.parametrize("name", commands.SUMMARIES)
def test_every_option_has_a_type(name: str) -> None:
    options = commands.load(name).Options
    annotated = set().union(*map(inspect.get_annotations, options.__mro__))
    usual = {name for name in annotated if hasattr(options, name)}  # those that only other commands have
    assert annotated - options.declared.keys() - usual <= {"declared", "command", "debug", "pair"}
    assert not options.declared.keys() & usual
    assert options.declared.keys() <= annotated


@pytest.mark.parametrize(
    ("words", "nearest"), [("compare a b --format tex", "text"), ("tables a --table pear", "pairs")]
)
def test_the_nearest_choice(quicsat: CommandLine, words: str, nearest: str) -> None:
    assert f" Did you mean {nearest}? See " in quicsat.refusal(*words.split())
