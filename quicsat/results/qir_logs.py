"""Log directories of the QUIC Interop Runner (QIR) and of QIR-SE: finds runs and reads their logs.

A run is ``<server>_<client>/<test case>``, or ``<server>_<client>/<test case>/<repetition>``, with ``client/``,
``server/``, ``sim/`` and ``output.txt``. The content is untrusted: symbolic links are not followed, text
is bounded, and names are escaped for output.
"""

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from quicsat.model.endpoint_contract import UNSUPPORTED_STATUS
from quicsat.model.errors import InputError
from quicsat.model.run import OUTPUT
from quicsat.model.stored_files import is_file, open_file
from quicsat.model.text import escaped
from quicsat.results.compression import stored
from quicsat.results.store import DOCUMENT, JOURNAL, is_campaign

PARTS = ("client", "server", "sim")
FILES = ("sim/trace_node_left.pcap", "sim/trace_node_right.pcap", "client/keys.log", "server/keys.log", OUTPUT)
"""What a run leaves, by the paths of both runners."""
ONE_CLOCK = Path("sim", "one-clock")
"""In the directory of a run whose two captures are made of one that quicsat exported, by one clock."""
QLOGS = ".qlogs"
"""Folder with the qlogs of a run that was named by them and has no captures, see :mod:`quicsat.analysis.qlog_runs`."""
DEEPEST, MOST_PLACES, MOST_ENTRIES = 8, 100_000, 100_000
"""Levels of directories, directories in all, and entries of one directory that are read."""
MOST_OUTPUT, MOST_LINES = 32 * 1024 * 1024, 1_000_000
"""Bytes of an output.txt that are read."""
MOST_FILES = 100_000
"""Files whose sizes are added up."""
LONGEST_NAME = 100
"""Characters of a name that are shown."""

_REPETITION = re.compile(r"[1-9][0-9]{0,5}")
_CAPTURE = re.compile(r"(trace_node_(?:left|right))[^/]*\.pcap")
"""QIR-SE leaves captures with secrets under other names; others compress them."""
_STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} "
"""Begins what the runner says itself; endpoints' lines begin with the endpoint's name, so they cannot pass for it."""
_SIZE = re.compile(_STAMP + r"Generated random file: \S+ of size: (\d{1,12})")
_TIMEOUT = re.compile(_STAMP + r"Test failed: took longer than (\d{1,6})s\.")
_CHECKED = re.compile(_STAMP + r"Check of downloaded files succeeded\.")
_SCENARIO = re.compile(_STAMP + r'Command: .{0,4000}?\bSCENARIO="([^"]{1,1000})"')
_EXIT = re.compile(r"(client|server|sim) exited with code (\d{1,3})")
"""Of docker compose, as QIR keeps it."""
_EXIT_SE = re.compile(_STAMP + r"(client|server|sim) *\| exit status (\d{1,3})")
_RATE = re.compile(r"--(?:bandwidth|forward-data-rate)=(\d{1,6}(?:\.\d{1,6})?)(k|M|G)bps")
_UNITS = {"k": 1e3, "M": 1e6, "G": 1e9}
UNKNOWN_OUTCOME = "unknown"
"""Of a run whose output.txt tells nothing."""


@dataclass(frozen=True)
class RunnerOutput:
    """Contents of a runner's output.txt; missing values are None, empty or False."""

    timeout: int | None = None
    """Seconds after which the runner gave up."""
    exits: tuple[tuple[str, int], ...] = ()
    """Exit status of each container."""
    size: int | None = None
    """Bytes of all files that were offered."""
    checked: bool = False
    """The runner verified the client's files."""
    scenario: str = ""
    """Command line of the simulator."""

    @property
    def outcome(self) -> str:
        """In words; ``UNKNOWN_OUTCOME`` if it says nothing."""
        exits = dict(self.exits)
        if self.timeout is not None:
            return f"timeout after {self.timeout} s"
        if UNSUPPORTED_STATUS in exits.values():
            return "unsupported"
        if "client" in exits:
            return "files complete" if self.checked else f"client ended with {exits['client']}"
        return "files complete" if self.checked else UNKNOWN_OUTCOME

    @property
    def forward_rate(self) -> float | None:
        """Rate of the link towards the client, bit/s."""
        found = _RATE.search(self.scenario)
        return float(found[1]) * _UNITS[found[2]] if found else None


@dataclass(frozen=True)
class ForeignRun:
    """A directory of a run."""

    directory: Path
    pair: str
    """Name of the directory of its pair; empty if there is none."""
    server: str
    client: str
    """Both empty if the name of the pair is ambiguous."""
    test_case: str
    repetition: int | None
    missing: tuple[str, ...]
    """Missing files of ``FILES``."""
    refused: str
    """Why its files are not opened; empty if they are."""
    runner_output: RunnerOutput
    above: str = ""
    """Directories above that of the pair, if they tell runs of one tree apart, such as those of several nights."""

    @property
    def name(self) -> str:
        """``quic-go_aioquic/sat/1``, with escapes for what is not printable."""
        parts = [
            self.above,
            self.pair,
            self.test_case,
            *([str(self.repetition)] if self.repetition is not None else []),
        ]
        return "/".join(escaped_name(part) for part in parts if part)


@dataclass(frozen=True)
class Tree:
    """Runs found below a directory."""

    runs: tuple[ForeignRun, ...]
    ignored: tuple[str, ...]
    """Ignored entries, one line each."""


def escaped_name(name: str) -> str:
    """A name from outside, cut and escaped."""
    return escaped(name, LONGEST_NAME)


def find_runs(root: Path, known: Collection[str] = ()) -> Tree:
    """All runs at or below ``root``; ``known`` names of implementations resolve names with ``_``.

    Raises InputError if there is no such directory.
    """
    try:
        top = root.resolve(strict=True)
        places, ignored = _walk(top)
    except OSError as error:
        raise InputError(f"{root}: cannot be read: {error.strerror}.") from error
    except RuntimeError as error:  # Path.resolve up to Python 3.12: a symbolic link that points to itself
        raise InputError(f"{root}: cannot be read: {error}.") from error
    runs = [_run(place, refused) for place, refused in places]
    names = {*known, *(name for run in runs for name in (run.server, run.client) if name)}
    runs = [run if run.server else _split(run, names) for run in runs]
    above = [_above(run, top) for run in runs]
    if len({*above}) > 1:
        runs = [replace(run, above=each) for run, each in zip(runs, above, strict=True)]
    return Tree(tuple(runs), tuple(ignored))


def _above(run: ForeignRun, top: Path) -> str:
    """The directories between ``top`` and that of the pair."""
    own = 2 if run.repetition is None else 3
    return "/".join(run.directory.relative_to(top).parts[:-own])


# ---- directories ----------------------------------------------------------------------------


def _walk(top: Path) -> tuple[list[tuple[Path, str]], list[str]]:
    """Directories of runs with the reason for not opening them, and ignored entries."""
    runs, ignored = list[tuple[Path, str]](), list[str]()
    waiting, seen = [(top, 0)], 0
    while waiting:
        place, depth = waiting.pop()
        seen += 1
        where = escaped_name(str(place.relative_to(top)))
        if seen > MOST_PLACES:
            ignored.append(f"more than {MOST_PLACES} directories: {len(waiting) + 1} were not searched")
            break
        entries = _entries(place)
        if entries is None:
            ignored.append(f"{where}: cannot be read")
            continue
        folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        links = [entry.name for entry in entries if entry.is_symlink()]
        names = {entry.name for entry in entries}
        if QLOGS in folders or ("sim" in names and ({"client", "server"} & names or _captures(place / "sim"))):
            runs.append((place, _refusal(names, {*folders})))
        elif place != top and {JOURNAL, DOCUMENT} & names and is_campaign(place):
            ignored.append(f"{where}: is a campaign of quicsat; analyse it by its own name")
        elif depth == DEEPEST:
            ignored.append(f"{where}: is more than {DEEPEST} levels deep")
        else:
            ignored += [
                f"{where}/{escaped_name(name)}: is a symbolic link, which is not followed" for name in sorted(links)
            ]
            if not folders and any(name.endswith((".pcap", ".pcapng")) for name in names):
                ignored.append(f"{where}: has traces, but not those of a run in its folder sim")
            waiting += [(place / name, depth + 1) for name in sorted(folders, key=_natural, reverse=True)]
    return runs, ignored


def _entries(place: Path) -> list[os.DirEntry[str]] | None:
    """Entries of a directory, None if it cannot be read; at most the first of a very large one."""
    try:
        with os.scandir(place) as found:
            return [entry for entry, _ in zip(found, range(MOST_ENTRIES), strict=False)]
    except OSError:
        return None


def _captures(folder: Path) -> set[str]:
    """Names of captures in the folder of the simulator, without what tools append: ``trace_node_left``."""
    found = (_CAPTURE.match(entry.name) for entry in _entries(folder) or [] if entry.is_file(follow_symlinks=False))
    return {name[1] for name in found if name}


def _natural(name: str) -> tuple[int, int, str]:
    """Repetitions in the order of their numbers, before names."""
    return (0, int(name), "") if _REPETITION.fullmatch(name) else (1, 0, name)


def _refusal(names: Collection[str], folders: Collection[str]) -> str:
    wrong = [part for part in PARTS if part in names and part not in folders]
    return f"{' and '.join(wrong)} must be a directory and no symbolic link" if wrong else ""


def _run(place: Path, refused: str) -> ForeignRun:
    above = ["", "", *place.parts[1:]]
    repetition = int(above.pop()) if _REPETITION.fullmatch(above[-1]) else None
    test_case, pair = above[-1], above[-2]
    server, _, client = pair.partition("_") if pair.count("_") == 1 else ("", "", "")
    server, client = (server, client) if server and client else ("", "")
    captures = {f"sim/{name}.pcap" for name in _captures(place / "sim")}
    if (place / QLOGS).is_dir():
        captures |= {*FILES}
    missing = tuple(name for name in FILES if name not in captures and not is_file(stored(place / name)))
    runner_output = RunnerOutput() if refused else read_output(place / OUTPUT)
    return ForeignRun(place, pair, server, client, test_case, repetition, missing, refused, runner_output)


def _split(run: ForeignRun, names: Collection[str]) -> ForeignRun:
    """The run with its server and client, if exactly one underscore separates two known names."""
    places = [place for place, sign in enumerate(run.pair) if sign == "_"]
    pairs = [(run.pair[:place], run.pair[place + 1 :]) for place in places]
    known = [pair for pair in pairs if pair[0] in names and pair[1] in names]
    return replace(run, server=known[0][0], client=known[0][1]) if len(known) == 1 else run


# ---- output.txt -----------------------------------------------------------------------------


def read_output(path: Path) -> RunnerOutput:
    """Parse the runner's output; an empty :class:`RunnerOutput` if there is no such file."""
    timeout, scenario, checked = None, "", False
    exits, sizes = dict[str, int](), list[int]()
    for line in _lines(path):
        if (found := _EXIT.fullmatch(line)) or (found := _EXIT_SE.fullmatch(line)):
            exits[found[1]] = int(found[2])
        elif found := _SIZE.fullmatch(line):
            sizes.append(int(found[1]))
        elif found := _TIMEOUT.fullmatch(line):
            timeout = int(found[1])
        elif found := _SCENARIO.match(line):
            scenario = found[1]
        elif _CHECKED.fullmatch(line):
            checked = True
    size = sum(sizes) if 0 < len(sizes) <= MOST_FILES else None
    return RunnerOutput(timeout, tuple(exits.items()), size, checked, scenario)


def _lines(path: Path) -> Iterator[str]:
    try:
        with open_file(path) as stream:
            content = stream.read(MOST_OUTPUT)
    except OSError:
        return
    for line in islice(re.finditer(rb"[^\n]+", content), MOST_LINES):
        yield line[0][:8192].decode(errors="replace").rstrip()
