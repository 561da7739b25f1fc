"""``./run.py completion``: the scripts complete words in real shells."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from quicsat.cli import completion
from tests.cli.conftest import ROOT, Checkout, CommandLine

EXPECTED = [
    ("run.py pl", {"plan", "plot"}),
    ("./run.py plot -p he", {"heatmap"}),
    ("./run.py -s picoquic:bb", {"picoquic:bbr", "picoquic:bbr1"}),
    ("run.py -s quic-go -c aio", {"aioquic", "aioquic:cubic", "aioquic:reno"}),
    ("run.py run -t terr", {"terrestrial"}),
    ("run.py run -i picoquic:bb", {"picoquic:bbr", "picoquic:bbr1"}),
    ("run.py run --require terr", {"terrestrial"}),
    ("run.py run -r ngtc", {"ngtcp2="}),
    ("run.py tables --table pai", {"pairs"}),
    ("run.py images build simu", {"simulator"}),
    ("run.py show --neg", {"--negotiated"}),
    ("run.py show . --neg", {"--negotiated"}),
    ("run.py packets --serv", {"--server"}),
]
"""A command line to the cursor, and the words that complete its last one."""
PATIENCE = 60.0
"""Seconds in which a shell on a pseudo-terminal shows something."""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The script of each shell."""
    folder = tmp_path_factory.mktemp("scripts")
    for shell in completion.SHELLS:
        done = subprocess.run([ROOT / "run.py", "completion", shell], capture_output=True, text=True, check=True)
        (folder / shell).write_text(done.stdout)
    return {shell: folder / shell for shell in completion.SHELLS}


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
@pytest.mark.parametrize(("line", "words"), EXPECTED)
def test_fish(scripts: dict[str, Path], tmp_path: Path, line: str, words: set[str]) -> None:
    command = ["fish", "--no-config", "-c", f"source {scripts['fish']}; complete -C {line!r}"]
    environment = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
    assert (done.stderr, {found.split("\t")[0] for found in done.stdout.splitlines()}) == ("", words)


INTERACTIVE = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "PS1='ready'\\> ; bind 'set bell-style none'; source {}\n"),
    "zsh": (["zsh", "-f", "-i"], "PS1='ready'\\> ; autoload -Uz compinit; compinit -u -d ./dump; eval \"$(<{})\"\n"),
}
"""How a shell starts, and what it reads first."""


@pytest.mark.parametrize("shell", INTERACTIVE)
def test_on_a_terminal(scripts: dict[str, Path], tmp_path: Path, shell: str) -> None:
    command, first = INTERACTIVE[shell]
    if not shutil.which(command[0]):
        pytest.skip(f"{shell} is not installed")
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(HOME=str(tmp_path), TERM="xterm", COLUMNS="200")
        os.chdir(tmp_path)
        os.execvp(command[0], command)
    try:
        os.write(terminal, first.format(scripts[shell]).encode())
        shown(terminal, {"ready>"})
        for line, words in EXPECTED:
            os.write(terminal, line.encode())
            ends = {end_of(word) for word in words}
            assert ends <= (found := tabbed(terminal, ends)), (line, found)
            os.write(terminal, b"\x15")  # Ctrl-U: an empty line again
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_keeps_variables(scripts: dict[str, Path]) -> None:
    complete = "COMP_WORDS=(run.py pl) COMP_CWORD=1; _quicsat_with_colons run.py pl run.py"
    names = "word typed at line before words"
    script = (
        f"source {scripts['bash']}; for each in {names}; do declare $each=mine; done; {complete}; unset each COMP_WORDS"
    )
    script += f'; echo "${{COMPREPLY[*]}}"; for each in {names}; do echo "${{!each}}"; done'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["plan plot", *["mine"] * 6]


def end_of(word: str) -> str:
    """The part that bash lists, which ends words at colons."""
    return word.rpartition(":")[2]


def tabbed(terminal: int, words: set[str]) -> set[str]:
    """What a terminal shows after one or more tabs: the first completes what all words begin with."""
    found, said = set[str](), list[str]()
    for patience in (1.0, 1.0, PATIENCE):
        if not words <= found:
            os.write(terminal, b"\t")
            found = shown(terminal, words, patience, said)
    return found


def shown(terminal: int, awaited: set[str], patience: float = PATIENCE, said: list[str] | None = None) -> set[str]:
    """The words that a terminal shows until all that are ``awaited`` have come, or ``patience`` seconds are over.

    ``said``: what it has shown before, and afterwards what it shows now as well.
    """
    said = [] if said is None else said
    end = time.monotonic() + patience
    while not awaited <= (found := {end_of(word) for word in "".join(said).split()}) and time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            said.append(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", os.read(terminal, 65536).decode(errors="replace")))
    return found


def test_the_names_are_those_of_the_checkout(checkout: Checkout) -> None:
    out = checkout.out("completion", "fish")
    assert '"good bad odd"' in out
    assert "picoquic:bbr1" not in out


def test_an_unknown_shell(quicsat: CommandLine) -> None:
    assert "invalid choice: 'tcsh'" in quicsat.refusal("completion", "tcsh")
