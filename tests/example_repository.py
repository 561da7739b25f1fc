"""The repository of an implementation that uses quicsat in its continuous integration: the files of ci/example, in git.

Its implementation is aioquic with an initial congestion window of its own.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMPLEMENTATION, PARTNER = "aioquic", "quic-go"
SOURCE = "sitecustomize.py"
"""What Python imports before all else."""
WINDOW, HALF = 10, 5
"""Initial windows in packets: that of aioquic, and that of the change."""
DOCKERFILE = f"""\
FROM {{image}}
ENV PYTHONPATH=/source
COPY {SOURCE} /source/
"""
TESTS = "tests.yaml"
CASE = "short"
TEST_CASES = f"""\
name: {CASE}
abbreviation: SHORT
description: 300 KiB over a geostationary satellite link with a queue of 1000 packets
extends: sat
link: {{queue: 1000}}
file size: 300 KiB
"""
ADAPTED = {
    "quic-go": IMPLEMENTATION,
    "picoquic quinn ngtcp2": PARTNER,
    "gate-start": CASE,
    "expect: quicsat.yml": f"expect: quicsat.yml\n          tests: {TESTS}",
    "floor: 3 Mbit/s": "floor: 100 kbit/s",
}
"""What the owner of the repository changes in the files of ci/example, as they and docs/guide/ci.md say."""
MAIN, CHANGE, MERGED = "main", "change", "refs/pull/7/merge"
PULL_REQUEST = {"number": 7, "pull_request": {"number": 7, "head": {"ref": CHANGE}, "base": {"ref": MAIN}}}
"""The event that GitHub sends of it, as far as it matters."""
IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "A"), ("EMAIL", "a@example.org"))
}


def source(window: int) -> str:
    """Content of ``SOURCE``: aioquic with this initial window."""
    return f"from aioquic.quic.congestion import base\n\nbase.K_INITIAL_WINDOW = {window}\n"


def exported_checkout(folder: Path) -> Path:
    """The files of this checkout that git knows, without its history, as a CI system downloads an action."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
    return folder


class ExampleRepository:
    """A bare repository ``origin``, and ``clone`` with a pull request's merge commit, which is what a runner sees."""

    def __init__(self, folder: Path, image: str) -> None:
        """Create it with the branch ``main``. ``image``: of the implementation, which the daemon has."""
        self.origin, self.clone = folder / "origin.git", folder / "clone"
        git(folder, "init", "--quiet", "--bare", "--initial-branch", MAIN, str(self.origin))
        git(folder, "init", "--quiet", "--initial-branch", MAIN, str(self.clone))
        git(self.clone, "remote", "add", "origin", self.origin.as_uri())
        shutil.copytree(ROOT / "ci/example", self.clone, dirs_exist_ok=True)
        for file in (*self.clone.glob("*.yml"), *self.clone.glob(".*/workflows/*.yml"), self.clone / ".gitlab-ci.yml"):
            text = file.read_text()
            for words, own in ADAPTED.items():
                text = text.replace(words, own)
            file.write_text(text)
        (self.clone / "interop").mkdir()
        (self.clone / "interop/Dockerfile").write_text(DOCKERFILE.format(image=image))
        (self.clone / TESTS).write_text(TEST_CASES)
        (self.clone / SOURCE).write_text(source(WINDOW))
        commit_all(self.clone, "An implementation")
        git(self.clone, "push", "--quiet", "origin", MAIN)

    def open_pull_request(self, files: Mapping[str, str]) -> None:
        """Push a branch that changes these files, and the merge commit that the host makes of it and ``main``."""
        git(self.clone, "checkout", "--quiet", "-b", CHANGE)
        for name, text in files.items():
            (self.clone / name).write_text(text)
        commit_all(self.clone, "A change")
        git(self.clone, "push", "--quiet", "origin", CHANGE)
        git(self.clone, "checkout", "--quiet", "--detach", MAIN)
        git(self.clone, "merge", "--quiet", "--no-ff", "-m", "Merge", CHANGE)
        git(self.clone, "push", "--quiet", "origin", f"HEAD:{MERGED}")


def commit_all(folder: Path, message: str) -> None:
    """Commit all files of a working tree."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", message)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **IDENTITY}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
