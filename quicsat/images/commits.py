"""Commits of a checkout, and builds of them in a working tree of their own; the checkout's own files stay as they are.

The repository may be someone else's. Git runs none of its hooks, file system monitors and filters, which only its own
configuration names, and fetches nothing. The words of a user become options of git nowhere: all commits are resolved
to their identities first.
"""

import fcntl
import os
import shlex
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from quicsat.images.build_log import BuildLog
from quicsat.model.errors import InputError, MachineError
from quicsat.model.names import is_image
from quicsat.model.stored_files import is_directory, is_file, open_directory, open_file
from quicsat.model.text import printable, quoted
from quicsat.model.whole_file import new_file, remove_directory, remove_file

RANGE_SIGN = ".."
SHORT = 12
"""Digits of a commit that are shown."""
PATIENCE = 600.0
"""Seconds that git may take to fill a working tree."""
SAFE = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "log.showSignature": "false",
    "submodule.recurse": "false",
}
"""Settings with which git runs nothing that a repository names."""
OWN_SCOPES = ("local", "worktree")
"""Of settings that come with a repository."""
FILTERS = {"smudge": "", "clean": "", "process": "", "required": "false"}
"""Settings of a filter, with values that switch it off."""
FORMAT = "%H%x09%cs%x09%s"
WORKING_TREE = "worktree"
"""Name of the working tree for builds, always the same: Docker's cache sees it in the context of a build."""
MARK = f"{WORKING_TREE}.mark"
"""Name of the file that says that the working tree was made here, and may be removed."""
OF_A_REPOSITORY = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS",
    "GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_WORK_TREE",
)  # fmt: skip
"""Variables that name another repository, as those of a hook that calls this program."""


@dataclass(frozen=True)
class Commit:
    """A commit; date and title are for people."""

    id: str
    date: str = ""
    title: str = ""

    @property
    def short(self) -> str:
        """The first digits of its identity."""
        return self.id[:SHORT]


def ends_of(words: str) -> tuple[str, str]:
    """``good..bad`` -> ``good``, ``bad``; raises InputError if it is no such range."""
    first, sign, last = words.partition(RANGE_SIGN)
    if not (first and sign and last) or last.startswith(".") or "-" in (first[0], last[0]):
        raise InputError(f"{quoted(words)} is no range: write FIRST..LAST, for example v1.0..main.")
    return first, last


def image_of(command: str) -> str:
    """The image that ``docker build -t`` in a build command makes; raises InputError if it names none, or several."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError as error:
        raise InputError(f"--build: {quoted(command)} is no shell command: {error}.") from error
    found = dict.fromkeys(word.partition("=")[2] for word in words if word.startswith("--tag="))
    found |= dict.fromkeys(word for flag, word in pairwise(words) if flag in ("-t", "--tag"))
    if len(found) != 1 or not is_image(image := next(iter(found))):
        raise InputError("--build: the command does not name one image with -t. Name the image with --image.")
    return image


class Repository:
    """The repository of a checkout; its methods raise InputError if git refuses what the user has asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not folder.is_dir():
            raise InputError(f"{folder}: is no directory.")
        self._git("rev-parse", "--git-dir")

    def commits(self, words: str) -> list[Commit]:
        """The first commit of a range, and those that follow it up to the last one: of merges, the first parents.

        Raises InputError if there are no such commits, or the first one is no ancestor of the last one.
        """
        first, last = (self._commit(name) for name in ends_of(words))
        if first == last:
            raise InputError(f"{quoted(words)}: both names are of the commit {first[:SHORT]}.")
        if self._run("merge-base", "--is-ancestor", first, last).returncode:
            raise InputError(f"{quoted(words)}: the first commit is no ancestor of the last one. Swap them?")
        told = self._git("log", "-z", "--first-parent", "--reverse", "--no-show-signature", "--encoding=UTF-8",
                         f"--format=tformat:{FORMAT}", f"{first}..{last}", "--")  # fmt: skip
        head = self._git("log", "-z", "-1", "--encoding=UTF-8", f"--format=tformat:{FORMAT}", first, "--")
        return [Commit(*line.split("\t", 2)) for line in f"{head}{told}".split("\0") if line]

    def build(self, commit: Commit, command: str, directory: Path, held: int) -> str:
        """Run a shell command in a working tree of the commit; why it failed, empty if it did not.

        Its output is stored in ``directory``, which also has the working tree meanwhile. ``held``: descriptor of
        :func:`builds_alone`, whose lock a build keeps that outlives this program.
        """
        log = directory / f"{commit.short}.log"
        with self._working_tree(commit, directory / WORKING_TREE) as place, new_file(log) as output:
            done = subprocess.run(
                ["/bin/sh", "-c", command], cwd=place, env=_without(OF_A_REPOSITORY), stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, check=False, pass_fds=(held,),
            )  # fmt: skip
        if not done.returncode:
            return ""
        found = BuildLog()
        with open_file(log) as lines:
            for line in lines:
                found.add(line.decode(errors="replace"))
        return found.why(done.returncode)

    @contextmanager
    def _working_tree(self, commit: Commit, place: Path) -> Iterator[Path]:
        mark = place.with_name(MARK)
        if os.path.lexists(place) and not is_file(mark):
            raise InputError(f"{place}: exists, and was not made by bisect. Choose another directory with -l.")
        self._remove(place)
        with new_file(mark):
            pass
        self._git("worktree", "add", "--force", "--force", "--detach", "--", str(place), commit.id)
        try:
            yield place
        finally:
            self._remove(place)
            remove_file(mark)

    def _remove(self, place: Path) -> None:
        """Remove a working tree, also one that a killed program has left."""
        self._run("worktree", "remove", "--force", "--force", "--", str(place))
        if is_directory(place):
            remove_directory(place)

    def _commit(self, name: str) -> str:
        found = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if found.returncode:
            raise InputError(f"{self._folder}: has no commit {quoted(name)}.")
        return found.stdout.strip()

    def _git(self, *words: str) -> str:
        done = self._run(*words)
        if done.returncode:
            raise InputError(f"{self._folder}: git {words[0]} failed: {printable(done.stderr)}")
        return done.stdout

    def _run(self, *words: str, filters: bool = True) -> subprocess.CompletedProcess[str]:
        settings = SAFE | (self._filters_off if filters else {})
        try:
            return subprocess.run(
                ["git", "--no-pager", "-C", str(self._folder), *words], env=_environment(settings),
                stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False, text=True,
                encoding="utf-8", errors="replace",
            )  # fmt: skip
        except FileNotFoundError as error:
            raise MachineError("git is missing: install it.") from error
        except subprocess.TimeoutExpired as error:
            raise MachineError(f"{self._folder}: git {words[0]} did not end within {PATIENCE:g} s.") from error

    @cached_property
    def _filters_off(self) -> dict[str, str]:
        """Settings that switch off the filters of the repository's own configuration."""
        listed = self._run("config", "--list", "--includes", "--show-scope", "-z", filters=False).stdout.split("\0")
        found = dict[str, str]()
        for scope, entry in zip(listed[::2], listed[1::2], strict=False):
            section, _, name = entry.partition("\n")[0].rpartition(".")
            if scope in OWN_SCOPES and section.casefold().startswith("filter.") and name.casefold() in FILTERS:
                found |= {f"{section}.{each}": value for each, value in FILTERS.items()}
        return found


def _without(names: Collection[str]) -> dict[str, str]:
    """The environment without some variables."""
    return {name: value for name, value in os.environ.items() if name not in names}


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """That of this program, with these settings of git and no others."""
    kept = _without([name for name in os.environ if name.startswith("GIT_")])
    kept |= {"GIT_ALLOW_PROTOCOL": "", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    kept["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (name, value) in enumerate(settings.items()):
        kept |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return kept


@contextmanager
def builds_alone(directory: Path, say: Callable[[str], None]) -> Iterator[int]:
    """Wait until no other process builds for ``directory``, also none that a killed program has left.

    Gives the descriptor of the lock.
    """
    with open_directory(directory) as place:
        held = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{directory}: a build that was begun earlier still runs. Waiting until it has ended.")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield held
    finally:
        os.close(held)
