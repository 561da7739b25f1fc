"""Dispatch, errors common to all commands, lazy imports, and hints for mistyped words."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys

import pytest

from interop import __version__
from interop.cli import commands
from interop.cli import main as cli
from interop.execution.lock import exclusive
from tests.cli.conftest import ROOT, Checkout

GOOD = ("-s", "good", "-c", "good", "-t", "tiny")


def test_no_engine(checkout: Checkout) -> None:
    checkout.engine.gone = True
    for words in (GOOD, ("clean",)):
        status, _, err = checkout(*words)
        assert status == 3
        assert "No Docker daemon answers" in err


def test_another_campaign(checkout: Checkout) -> None:
    with exclusive("fake", "campaign 4711"):
        for words in (GOOD, ("clean",)):
            status, _, err = checkout(*words)
            assert status == 75
            assert f"process {os.getpid()}" in err
            assert "campaign 4711" in err
    assert checkout.engine.all_lives == []


WITHOUT_ENGINE = [
    ("--help",),
    ("list",),
    ("--version",),
    ("help", "--markdown"),
    *((name, "--help") for name in commands.SUMMARIES),
]
"""Command lines that need no engine."""
EACH_IN_A_FORK = """
import json, os
from pathlib import Path
from interop.cli import main
for words in json.loads(sys.argv[1]):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            main.main(Path("."), words)
        except SystemExit as end:
            assert not end.code
        print("\\n" + json.dumps([words, [*sys.modules]]), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, words
"""


@pytest.fixture(scope="module")
def imported() -> dict[tuple[str, ...], set[str]]:
    """What processes import that run the command lines without engine; each begins as a copy of the same process."""
    command = [sys.executable, "-c", f"import sys\n{EACH_IN_A_FORK}", json.dumps(WITHOUT_ENGINE)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('[["')]
    return {tuple(words): set(modules) for words, modules in told}


@pytest.mark.parametrize("words", WITHOUT_ENGINE)
def test_what_needs_no_engine_imports_no_docker(
    imported: dict[tuple[str, ...], set[str]], words: tuple[str, ...]
) -> None:
    assert LARGE & imported[words] == set()


FIGURES = {"matplotlib", "seaborn", "pandas", "scipy"}
LARGE = FIGURES | {"docker", "requests", "numpy", "pyarrow", "pyshark", "dask", "distributed", "jinja2", "PIL"}
"""Libraries that take a tenth of a second or more to import."""


def large_libraries(script: str, *words: str) -> set[str]:
    """The large libraries that a process imports for ``script``, with ``words`` as its arguments."""
    whole = f"import sys\n{script}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", whole, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return LARGE & set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("run -s none", set()),
        ("show {}", set()),
        ("export {} /dev/null/none", set()),
        ("prune {}", set()),
        ("plot none", set()),
        ("site none", {"jinja2", "numpy", "pyarrow"}),
        ("tables {}", {"numpy", "pyarrow"}),
        ("compare {0} {0}", {"numpy", "pyarrow"}),
        ("packets {} 1", {"numpy", "pyarrow"}),
    ],
)
def test_a_command_imports_only_the_large_libraries_that_it_needs(
    places: list[str], line: str, needed: set[str]
) -> None:
    script = "from pathlib import Path\nfrom interop.cli import main\nmain.main(Path('.'), sys.argv[1:])"
    assert large_libraries(script, *line.format(places[0]).split()) <= needed


@pytest.mark.parametrize(
    ("module", "needed"), [("image_actions", {"docker", "requests"}), ("machine_check", {"docker", "requests"})]
)
def test_what_asks_the_engine_imports_only_its_client(module: str, needed: set[str]) -> None:
    assert large_libraries(f"import interop.cli.{module}") == needed


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["pln"], "Did you mean plan?"),
        (["run", "--repetitons", "1"], "Did you mean --repetitions?"),
        (["-s", "quic-go", "-m", "plan"], "plan is a command; write it first: ./run.py plan."),
        (["show", "--markdwn"], "Did you mean --markdown?"),
        (["run", "-o", "x"], "unrecognized arguments: -o x. See"),
    ],
)
def test_a_mistyped_option_or_command_gets_the_nearest_one(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(ROOT, words)
    assert (ended.value.code, hint in capsys.readouterr().err) == (2, True)


def test_debug_messages_are_not_those_of_each_request(checkout: Checkout, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert checkout("list", "tests", "-d")[0] == 0
    levels = {name: logging.getLogger(name).getEffectiveLevel() for name in ("urllib3.connectionpool", "docker", "any")}
    assert levels == {"urllib3.connectionpool": logging.WARNING, "docker": logging.WARNING, "any": logging.DEBUG}


def test_the_version_names_release_and_commit(checkout: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    assert checkout("--version")[1] == f"quicsat {__version__}\n"
    assert cli.main(ROOT, ["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"quicsat {__version__} (")


def test_an_option_without_a_command_measures() -> None:
    for words in ([], ["-s", "a", "-c", "b"], ["--test", "sat"]):
        assert cli.parse(words).command == "run"


def test_a_file_that_cannot_be_read_is_one_line(checkout: Checkout) -> None:
    (checkout.root / "implementations.json").unlink()
    (checkout.root / "implementations.json").mkdir()
    status, out, err = checkout("list", "implementations")
    assert (status in (2, 3), out, len(err.splitlines())) == (True, "", 1)
