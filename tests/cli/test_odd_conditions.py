"""Every command under odd conditions of its process: a sentence and an exit status, never a traceback.

One process imports the program, and forks for each command, which makes hundreds of starts cheap.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from quicsat.cli.commands import SUMMARIES, load
from quicsat.results.store import Journal
from tests.results_builder import result_set, runs

ROOT = Path(__file__).resolve().parents[2]
SERIES = ROOT / "tests/data/lossy/series.parquet"
STATUSES = (0, 1, 2, 3, 4, 5, 75)
DRIVER = r"""
import ctypes, io, json, os, sys, tempfile
from pathlib import Path
sys.path.insert(0, sys.argv[1])
os.environ["DOCKER_HOST"] = f"unix:///no/such{os.getpid()}"  # another test may hold the lock of the same engine
import numpy, matplotlib.figure, pyarrow.parquet, pydantic, docker, jinja2, seaborn
from quicsat.cli import entry_point, main
from quicsat.results import document

def enter(condition):
    global closed
    if condition == "bare":
        engine = os.environ["DOCKER_HOST"]
        os.environ.clear()
        os.environ.update(DOCKER_HOST=engine, PATH="/no/such", TMPDIR="/no/such", COLUMNS="0", TERM="dumb")
        tempfile.tempdir = None
    if condition == "closed":
        sys.stdin = sys.stdout = sys.stderr = None
        os.closerange(0, 3)
    if condition == "closed output":
        sys.stdout = None
        os.close(1)
    if condition == "closed errors":
        sys.stderr = None
        os.close(2)
    if condition in ("broken output", "broken errors"):
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1 if condition == "broken output" else 2)
    if condition in ("ascii", "latin-1"):
        os.environ["PYTHONIOENCODING"] = condition
        sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False), encoding=condition)
        sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), encoding=condition)
    if condition in ("20", "40"):
        os.environ.update(COLUMNS=condition, TERM="dumb")
        sys.stdout.isatty = sys.stderr.isatty = lambda: True
    if condition.startswith("/"):  # a small disk there
        libc = ctypes.CDLL(None, use_errno=True)
        called = [
            libc.unshare(0x20000),  # CLONE_NEWNS
            libc.mount(None, b"/", None, 0x44000, None),  # MS_REC | MS_PRIVATE
            libc.mount(b"small", condition.encode(), b"tmpfs", 0, b"size=64k"),
        ]
        assert called == [0, 0, 0], os.strerror(ctypes.get_errno())
        Path(condition, "other").write_bytes(bytes(64 << 10))
    if condition == "full":
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    if condition == "removed":
        os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
        place = tempfile.mkdtemp()
        os.chdir(place)
        os.rmdir(place)
    if condition == "other user":  # who has neither a name nor a home
        os.environ.pop("HOME", None)
        os.setgroups([])
        os.setgid(54321)
        os.setuid(54321)

def end(condition):
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if condition.startswith("/"):
        sys.stderr.write(str([each.name for each in Path(condition).rglob("*") if not each.is_dir()]))
        sys.stderr.flush()

found = []
for condition, words in json.load(sys.stdin):
    files = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for number, file in enumerate(files, 1):
                os.dup2(file.fileno(), number)
            sys.argv = ["./run.py", *map(os.fsdecode, map(os.fsencode, words))]
            enter(condition)
            try:
                status = entry_point.start(Path(sys.argv[0] and sys.path[0]))
                end(condition)
            except SystemExit as end:
                status = end.code
        except BaseException:
            import traceback
            os.write(files[1].fileno(), traceback.format_exc().encode())
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for file in files:
        file.seek(0)
        texts.append(file.read().decode(errors="replace"))
    found.append([status, *texts])
json.dump(found, sys.stdout)
"""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    condition: str
    command: str
    status: int
    out: str
    err: str


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Two campaigns, one below a name that is not UTF-8; all users may read them, and only their owner may write."""
    place = Path(tempfile.mkdtemp())  # those of pytest are closed to others whenever another one begins
    place.chmod(0o755)
    results = result_set(runs(5e6, 5.2e6, 5.4e6), repetitions=3)
    for name in ("a", os.fsdecode(b"run\xe9")):
        directory = place / name
        directory.mkdir()
        with Journal.create(directory, results.manifest) as journal:
            for result in results.results:
                journal.append_result(result)
            journal.finish()
        run = directory / results.results[0].key.path
        run.mkdir(parents=True)
        shutil.copy(SERIES, run)
    yield place
    shutil.rmtree(place)


GATE = ("--clock", "virtual", "-i", "quic-go", "-r", "quic-go=me/it:new", "--against", "me/it:main")


def words_of(folder: Path, campaign: Path, output: Path) -> dict[str, list[str]]:
    """A command line for each command, which writes below ``output`` if it writes: its first example, unless told."""
    one, other = str(campaign), str(folder / "a")
    pair = ["-s", "quic-go", "-c", "quic-go", "-t", "handshake"]
    examples = {name: load(name).EXAMPLES[0] for name in SUMMARIES if name not in ("setup", "demo")}
    return {name: shlex.split(line, comments=True) for name, line in examples.items()} | {
        "run": ["run", *pair, "-l", str(output / "new")],
        "gate": ["gate", *pair, *GATE, "-l", str(output / "both")],
        "plan": ["plan", *pair],
        "resume": ["resume", one],
        "list": ["list"],
        "show": ["show", one],
        "tables": ["tables", one],
        "plot": ["plot", one, "-p", "box", "-o", str(output / "figures")],
        "compare": ["compare", one, other],
        "baseline": ["baseline", "save", one, str(output / "baseline.json")],
        "analyse": ["analyse", one],
        "explain": ["explain", f"{one}/picoquic_quiche/sat/1"],
        "packets": ["packets", f"{one}/picoquic_quiche/sat/1", "1"],
        "site": ["site", one, "-o", str(output / "site")],
        "open": ["open", one],
        "export": ["export", one, str(output / "export.json")],
        "merge": ["merge", one, other, "-o", str(output / "merged")],
        "prune": ["prune", str(folder)],
        "worker": ["worker", "tcp://127.0.0.1:1"],
    }


def carry_out(conditions: Sequence[str], commands: dict[str, list[str]], **environment: str) -> list[Done]:
    """Each command under each condition."""
    every = [(condition, name) for condition in conditions for name in commands]
    orders = [
        [condition, [os.fsencode(word).decode("latin-1") for word in commands[name]]] for condition, name in every
    ]
    driver = DRIVER.replace("map(os.fsencode, words)", "[word.encode('latin-1') for word in words]")
    done = subprocess.run(
        [sys.executable, "-c", driver, str(ROOT)],
        input=json.dumps(orders),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return [Done(*order, *found) for order, found in zip(every, json.loads(done.stdout), strict=True)]


def faults(found: list[Done], *, told: bool = True) -> list[str]:
    """What no command may do; ``told``: messages can be read."""
    return [
        f"{done.command}: {done.status} {done.err[-600:]}"
        for done in found
        if done.status not in STATUSES
        or "Traceback" in done.err + done.out
        or (told and done.status > 1 and not done.err.strip() + done.out.strip())
    ]


def cheap(commands: dict[str, list[str]]) -> dict[str, list[str]]:
    """Without the commands that draw or build, whose output is only the names of files."""
    return {name: words for name, words in commands.items() if name not in ("plot", "site", "analyse", "compare")}


@pytest.mark.parametrize("condition", ["bare", "removed"])
def test_a_sentence_or_the_result(condition: str, folder: Path, tmp_path: Path) -> None:
    campaign = folder / os.fsdecode(b"run\xe9")
    found = carry_out((condition,), words_of(folder, campaign, tmp_path))
    assert not faults(found, told=condition != "removed")
    without = ("run", "bisect", "gate", "resume", "history", "images", "doctor", "clean", "worker")
    assert {done.command: done.err for done in found if (done.status == 3) != (done.command in without)} == {}
    for name in ("show", "tables", "plot", "site", "export", "baseline", "explain"):
        assert [done.status for done in found if done.command == name] == [0], name


@pytest.mark.parametrize("condition", ["full", "closed output", "closed"])
def test_a_result_that_cannot_be_printed_is_no_success(condition: str, folder: Path, tmp_path: Path) -> None:
    found = carry_out((condition,), cheap(words_of(folder, folder / "a", tmp_path)))
    assert not faults(found, told=condition != "closed")
    assert [done.command for done in found if done.status == 0] == ["export"]
    assert all(
        "standard output: the output of show is not complete: " in done.err
        for done in found
        if done.command == "show" and condition != "closed"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_results_of_another_user_in_a_directory_that_is_read_only(folder: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    found = carry_out(("other user",), words_of(folder, folder / "a", tmp_path))
    assert not faults(found)
    statuses = {done.command: done.status for done in found}
    assert [statuses[name] for name in ("show", "tables", "explain", "list")] == [0] * 4
    for name in ("plot", "site", "export", "baseline"):
        assert statuses[name] in (2, 3), name
    assert not list(tmp_path.iterdir())


NO_UTF_8 = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
PRINTING = ("list", "plan", "show", "tables", "explain", "packets", "help", "completion")
UNREADABLE = ("broken output", "broken errors", "closed errors")


@pytest.mark.parametrize(
    ("conditions", "environment"),
    [(("ascii", "latin-1", "20", "40", *UNREADABLE), {}), (("plain",), NO_UTF_8)],
    ids=["in one process", "without UTF-8"],
)
def test_the_same_status_as_without(
    conditions: tuple[str, ...], environment: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    commands = words_of(folder, folder / os.fsdecode(b"run\xe9"), tmp_path)
    found = carry_out(conditions, {name: commands[name] for name in PRINTING}, **environment)
    for condition in conditions:
        under = [done for done in found if done.condition == condition]
        assert not faults(under, told=condition not in UNREADABLE), condition
        assert [done.command for done in under if done.status] == ["packets"], condition  # its traces are not stored
        [explained] = [done for done in under if done.command == "explain"]
        assert explained.out.count(" s  ") > 5 or condition == "broken output", condition


def test_a_verdict_stays_the_same_when_its_reader_has_gone() -> None:
    """The campaign is unfinished, which `compare` reports with status 1."""
    words = ["compare", *[str(Path(__file__).parents[1] / "data" / "campaign-before-packages")] * 2]
    found = carry_out(("plain", "broken output"), {"compare": words})
    assert [done.status for done in found] == [1, 1]
    assert not faults(found)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_a_full_disk_keeps_no_half_of_a_file(folder: Path, tmp_path: Path) -> None:
    commands = words_of(folder, folder / "a", tmp_path)
    found = carry_out((str(tmp_path),), {name: commands[name] for name in ("plot", "baseline", "site", "export")})
    assert not faults(found)
    for done in found:
        assert done.status == 3, done
        assert "No space left on device" in done.err
        assert done.err.endswith("['other']")
