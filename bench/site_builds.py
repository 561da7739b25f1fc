"""Builds one site five times at the same moment, while it is read: no page may be lost.

    make bench-site-builds
    python -m bench.site_builds --rounds 10 --changes 3

In further rounds, quicsat changes during a build: builds may then fail with a sentence, and the site stays as it was.
"""
# ruff: noqa: T201 - a script

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from prettytable import PrettyTable

from bench.kills import names, run, start
from bench.script import ROOT, judged, options_parser
from quicsat.cli import commands
from quicsat.model.errors import MachineError
from quicsat.model.whole_file import is_draft
from quicsat.site import publish
from tests.site import builder

BUILDS = 5
SITE = Path("site")
WORDS = ("site", "results", "-o", str(SITE), "--files")
OMITTED = {".git", ".venv", "build", "results", "site", "docs", "tests", "bench", "paper"}
"""Of the checkout: what the commands do not need."""
PAUSE = 0.01
"""Seconds between two looks."""
CHANGED = ("quicsat/site/publish.py", "web/templates/base.html")


def copy_program(target: Path) -> None:
    """Copy what the commands of quicsat need, as it is now."""
    for part in ROOT.iterdir():
        if part.is_dir() and part.name not in OMITTED:
            shutil.copytree(part, target / part.name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        elif part.is_file():
            shutil.copy(part, target)
    shutil.copytree(ROOT / publish.VENDOR, target / publish.VENDOR)
    (target / ".venv").symlink_to(sys.prefix)


class Reader:
    """Reads all pages of a site again and again while a block runs."""

    def __init__(self, site: Path, pages: list[str]) -> None:
        self._pages = [site / page for page in pages if page.endswith(".html")]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self.reads, self.lost = 0, set[str]()

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._ended.is_set():
            for page in self._pages:
                self.reads += 1
                try:
                    whole = page.read_bytes().rstrip().endswith(b"</html>")
                except OSError:
                    whole = False
                if not whole:
                    self.lost.add(str(page))
                time.sleep(PAUSE)


def age(place: Path, number: int) -> None:
    """Let the next build write the pages of the later campaign again."""
    os.utime(place / "results/later/result.json", (number, number))


def at_once(place: Path, expected: list[str], number: int) -> Counter[str]:
    """What happens when builds begin at the same moment."""
    age(place, number)
    with Reader(place / SITE, expected) as reader:
        statuses = [os.waitpid(each, 0)[1] for each in [start(place, run(*WORDS)) for _ in range(BUILDS)]]
    return Counter(
        {
            "builds": BUILDS,
            "builds that fail": sum(map(bool, statuses)),
            "rounds that lose a page or leave something": names(place / SITE) != expected
            or len([*place.iterdir()]) != 3,
            "pages read meanwhile": reader.reads,
            "pages missing meanwhile": len(reader.lost),
        }
    )


def during_a_change(place: Path, program: Path, expected: list[str], number: int) -> Counter[str]:
    """What happens when a module and a template of the program change while the first of the builds is under way."""
    age(place, number)
    with Reader(place / SITE, expected) as reader:
        command = [sys.executable, str(program / "run.py"), *WORDS]
        builds = [
            subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for _ in range(BUILDS)
        ]
        while not any(is_draft(each.name) for each in place.iterdir()) and any(each.poll() is None for each in builds):
            time.sleep(PAUSE)
        for name in CHANGED:
            with (program / name).open("a") as file:
                file.write("\n" * number)
        said = [each.communicate()[1] for each in builds]
    failed = [(each.returncode, words) for each, words in zip(builds, said, strict=True) if each.returncode]
    told = [words for status, words in failed if status == MachineError.exit_status and words.count("\n") == 1]
    for words in {words for _, words in failed} - {*told}:
        print(words)
    return Counter(
        {
            "builds": BUILDS,
            "builds that tell that quicsat has changed": len(told),
            "builds that fail": len(failed) - len(told),
            "rounds that lose a page or leave something": names(place / SITE) != expected,
            "pages read meanwhile": reader.reads,
            "pages missing meanwhile": len(reader.lost),
        }
    )


def main() -> int:
    """Exit status: 0 all bars are kept, 1 one is not."""
    options = options_parser(__doc__, {"--rounds": 50, "--changes": 10}).parse_args()
    commands.load("site")
    still, moving = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="quicsat-builds-") as folder:
        place, program = Path(folder, "place"), Path(folder, "program")
        builder.two_campaigns(place / "results")
        (place / "tmp").mkdir()
        program.mkdir()
        copy_program(program)
        if os.waitpid(start(place, run(*WORDS)), 0)[1]:
            raise SystemExit("the first site cannot be built")
        expected = names(place / SITE)
        for number in range(1, options.rounds + 1):
            still.update(at_once(place, expected, number))
        for number in range(1, options.changes + 1):
            moving.update(during_a_change(place, program, expected, number))
    table = PrettyTable(
        ["", f"{options.rounds} rounds", f"{options.changes} rounds in which quicsat changes"], align="r"
    )
    table.add_rows([[row, still[row], moving[row]] for row in dict.fromkeys([*still, *moving])])
    print(table)
    bars = ("builds that fail", "rounds that lose a page or leave something", "pages missing meanwhile")
    return judged(any(counts[row] for counts in (still, moving) for row in bars))


if __name__ == "__main__":
    sys.exit(main())
