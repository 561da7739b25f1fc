"""Dispatch, errors common to all commands, lazy imports, and hints for mistyped words."""

import json
import logging
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from quicsat.cli import commands
from quicsat.cli import main as cli
from quicsat.config.tool_version import release, tool_version
from quicsat.execution.lock import exclusive
from tests.cli.conftest import GOOD, ROOT, Checkout, CommandLine


def test_no_engine(checkout: Checkout) -> None:
    checkout.engine.gone = True
    for words in (GOOD, ("clean",)):
        assert "No Docker daemon answers" in checkout.err(*words, status=3)


def test_another_campaign(checkout: Checkout) -> None:
    with exclusive("fake /", "campaign 4711"):
        for words in (GOOD, ("clean",)):
            err = checkout.err(*words, status=75)
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
from quicsat.cli import main
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
    script = "from pathlib import Path\nfrom quicsat.cli import main\nmain.main(Path('.'), sys.argv[1:])"
    assert large_libraries(script, *line.format(places[0]).split()) <= needed


@pytest.mark.parametrize(
    ("module", "needed"), [("image_actions", {"docker", "requests"}), ("machine_check", {"docker", "requests"})]
)
def test_what_asks_the_engine_imports_only_its_client(module: str, needed: set[str]) -> None:
    assert large_libraries(f"import quicsat.cli.{module}") == needed


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
def test_a_mistyped_option_or_command_gets_the_nearest_one(words: list[str], hint: str, quicsat: CommandLine) -> None:
    assert hint in quicsat.refusal(*words)


def test_debug_messages_name_no_account(checkout: Checkout, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert checkout("list", "tests", "-d")[0] == 0
    levels = {name: logging.getLogger(name).getEffectiveLevel() for name in ("docker.auth", "any")}
    assert levels == {"docker.auth": logging.WARNING, "any": logging.DEBUG}


class Refuses(BaseHTTPRequestHandler):
    """An engine that answers no request."""

    def do_GET(self) -> None:
        """Refuse."""
        self.send_error(500)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.mark.parametrize("debug", [True, False])
def test_debug_messages_are_those_of_each_request(debug: bool) -> None:
    with HTTPServer(("127.0.0.1", 0), Refuses) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_port}"
        words = [
            str(ROOT / "run.py"),
            "plan",
            "-s",
            "quic-go",
            "-c",
            "quic-go",
            "-t",
            "sat",
            *(["-d"] if debug else []),
        ]
        variables = {**os.environ, "DOCKER_HOST": f"tcp://{address}", "no_proxy": "*"}
        done = subprocess.run(words, env=variables, capture_output=True, text=True, check=True)
        server.shutdown()
    logged = f'urllib3.connectionpool: http://{address} "GET /version HTTP/1.1" 500'
    assert (done.stderr.count(logged), "urllib3" in done.stdout) == (int(debug), False)
    assert debug or done.stderr == ""


def test_the_version_names_release_and_commit(quicsat: CommandLine) -> None:
    tool_version.cache_clear()  # another test may have asked without git
    assert quicsat.out("--version") == f"quicsat {release()} ({tool_version()})\n"


def test_an_option_without_a_command_measures() -> None:
    for words in ([], ["-s", "a", "-c", "b"], ["--test", "sat"]):
        assert cli.parse(words).command == "run"


def test_a_file_that_cannot_be_read_is_one_line(checkout: Checkout) -> None:
    (checkout.root / "implementations.json").unlink()
    (checkout.root / "implementations.json").mkdir()
    status, out, err = checkout("list", "implementations")
    assert (status in (2, 3), out, len(err.splitlines())) == (True, "", 1)


LONG = "x" * 300
"""No file can have this name."""
WITH_A_PATH = [
    *(f"{command} PATH" for command in ("show", "explain", "open", "tables", "plot", "analyse", "resume", "prune")),
    *(f"-s good -c good -t tiny {option} PATH" for option in ("--junit", "-j", "--locked", "-l", "--expect")),
    *(f"plan -s good -c good -t tiny {option} PATH" for option in ("--comment", "-l", "--hosts", "--resume")),
    *("packets PATH 1", "site -o PATH", "plot DIR -o PATH", "tables DIR -t PATH", "site PATH"),
    *("baseline save DIR PATH", "export DIR PATH", "merge DIR -o PATH"),
]


@pytest.mark.parametrize("line", WITH_A_PATH)
@pytest.mark.parametrize("kind", ["long", "loop", "in a loop"])
def test_a_path_that_no_file_can_have(checkout: Checkout, places: list[str], line: str, kind: str) -> None:
    loop = Path(places[0]) / "loop"
    loop.symlink_to("loop")
    path = {"long": LONG, "loop": str(loop), "in a loop": f"{loop}/a/b/c"}[kind]
    words = [{"PATH": path, "DIR": places[0]}.get(word, word) for word in line.split()]
    status, out, err = checkout(*words)
    assert (status, out, "Errno" in err, checkout.engine.all_lives) == (2, "", False, [])
    if "-t PATH" not in line:
        fault = "File name too long" if kind == "long" else "Too many levels of symbolic links"
        assert err == f"{path}: cannot be read or written: {fault}.\n"


def test_a_loop_of_links_among_the_results_is_passed_over(checkout: Checkout) -> None:
    (checkout.root / "results").mkdir()
    (checkout.root / "results/loop").symlink_to("loop")
    assert checkout("plan", *GOOD)[0] == 0


@pytest.mark.parametrize(
    ("error", "told", "status"),
    [
        (OSError(28, "No space left on device", "a.json"), "a.json: cannot be read or written: No space left", 3),
        (OSError(36, "File name too long", "a/b"), "a/b: cannot be read or written: File name too long.", 2),
        (OSError(28, "No space left on device"), "Reading or writing failed: No space left on device.", 3),
        (TimeoutError("timed out"), "Reading or writing failed: timed out.", 3),
        (RuntimeError("Symlink loop from 'a'"), "Symlink loop from 'a': remove the link, or choose another path.", 2),
    ],
)
def test_an_error_of_the_system_is_a_sentence(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str, status: int
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr("quicsat.cli.list.run", fail)
    found, _, err = checkout("list")
    assert (found, err.startswith(told)) == (status, True)


@pytest.mark.parametrize("words", [["list", "tests"], ["help", "--markdown"], ["--version"], ["run", "--help"]])
def test_standard_output_on_a_full_disk(words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([ROOT / "run.py", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    name = words[0] if words[0] in commands.SUMMARIES else "the command"
    told = f"standard output: the output of {name} is not complete: No space left on device.\n"
    assert (done.returncode, done.stderr) == (3, told)
