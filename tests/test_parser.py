"""Options that take several words leave directories to the command; every documented command line can be parsed."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from interop.cli import _parser

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ns3-scenarios/README.md", *ROOT.glob("docs/*.md"))
STANDS_FOR = {
    "DIR…": "results/a results/b",
    "…": "tcp://host:8786",
    "N": "2",
    "DAYS": "14",
    "OPTIONS": "",
    "[DIR]": "results",
}
"""What a reader puts in the place of words that stand for others."""
FENCED = r"^ *```\w*\n(.*?)^ *```"
NO_COMMANDS = {"resume", "plot", "merge"}
"""Names of commands that prose mentions without their arguments."""


def parse(line: str) -> argparse.Namespace:
    """What the program makes of its command line."""
    words = shlex.split(line)
    return _parser(ROOT).parse_args(words if words and not words[0].startswith("-") else ["run", *words])


def documented() -> list[str]:
    """Every command line of ./run.py in the documents, without a comment behind it."""
    lines = []
    for document in DOCUMENTS:
        text = document.read_text().replace("\\\n", " ")
        for block in re.findall(FENCED, text, re.M | re.S):
            lines += re.findall(r"^\s*\./run\.py (.*)$", block, re.M)
        prose = re.sub(FENCED, "", text, flags=re.M | re.S)
        lines += [" ".join(line.split()) for line in re.findall(r"`\./run\.py ([^`]*)`", prose)]
        lines += re.findall(r"scripts/nightly.* -- (-[^`#\n]*)", text)
    lines = [line.split(" && ")[0].split(" #")[0].strip() for line in lines]
    return sorted({line for line in lines if line not in NO_COMMANDS})


def test_there_are_documented_command_lines() -> None:
    assert len(documented()) > 50


@pytest.mark.parametrize("line", documented())
def test_documented_command_lines_can_be_parsed(line: str) -> None:
    told = " ".join(STANDS_FOR.get(word, word) for word in line.split(" "))
    parse(told)


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
        ("site --serve soon", "invalid int value"),
    ],
)
def test_slips_are_told_as_before(line: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(line)
    assert told in capsys.readouterr().err
