"""Runs workflows of GitHub on this machine with act (https://nektosact.com), which ``make setup-dev`` builds.

Real: the workflow's file, expressions, conditions, ``env`` and ``run`` steps, composite actions, all on this machine
as on a runner of one's own. Replaced by ``tests/data/actions``: the actions whose sources are at GitHub. Each does what
the real one does for the inputs that our workflows give it, and says so in its description.
"""

import json
import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from quicsat.model.product_files import build_folder

ACT = build_folder() / "vendor/act/act"
ACTIONS = Path(__file__).parent / "data/actions"
OWN = "OWNER/quicsat"
"""What stands for this repository in the workflows of ci/example."""
TOKEN = "token-of-the-job"


@dataclass(frozen=True)
class Ended:
    """A workflow that has ended."""

    status: int
    """0 if all jobs have succeeded."""
    output: str
    duration: float
    """Seconds."""

    @property
    def failed_with(self) -> int | None:
        """Exit status of the step that made the job of a workflow fail."""
        found = re.search(r"^\[.*\] exit status (\d+)$", self.output, re.MULTILINE)
        return int(found[1]) if found else None


@dataclass(frozen=True)
class WorkflowRunner:
    """A machine for workflows of the repository whose clone is at ``clone``."""

    clone: Path
    folder: Path
    """For caches, artifacts and what act writes."""
    repository: str = "me/aioquic"
    own: Path | None = None
    """The files of quicsat."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """For all steps."""
    inside: Sequence[str] = ()
    """A command that runs the command behind it, in which the job runs."""

    def run(self, workflow: str, event: str, payload: Mapping[str, Any]) -> Ended:
        """Run ``.github/workflows/WORKFLOW`` for an event with a payload as GitHub sends it; skips without act."""
        if not ACT.is_file():
            pytest.skip("ACT IS MISSING, no workflow was run; `make setup-dev` builds it where there is Go")
        for name in ("artifacts", "caches"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        place = self.folder / "event.json"
        place.write_text(json.dumps(payload))
        file = self.clone / ".github/workflows" / workflow
        words = [
            ACT, event, "--directory", self.clone, "--workflows", file, "--eventpath", place,
            "--platform", "ubuntu-24.04=-self-hosted", "--no-cache-server", "--no-skip-checkout", "--pull=false",
            "--rm", "--action-cache-path", self.folder / "act", "--secret", f"GITHUB_TOKEN={TOKEN}",
            "--env", f"GITHUB_REPOSITORY={self.repository}", *self._actions(file),
        ]  # fmt: skip
        own = {"ARTIFACTS": str(self.folder / "artifacts"), "CACHES": str(self.folder / "caches")}
        began = time.monotonic()
        done = subprocess.run(
            [*self.inside, *map(str, words)], env={**os.environ, **self.variables, **own}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        return Ended(done.returncode, done.stdout, time.monotonic() - began)

    def _actions(self, workflow: Path) -> list[str]:
        """Where act finds the actions that the workflow and the action of quicsat use."""
        files = [workflow, *([self.own / "ci/github/action.yml"] if self.own else [])]
        used = {each for file in files for each in re.findall(r"uses: ([\w./-]+@\S+)", file.read_text())}
        words = []
        for each in sorted(used):
            name, _, version = each.partition("@")
            repository = "/".join(name.split("/")[:2])
            place = self.own if repository == OWN else ACTIONS / repository.removeprefix("actions/")
            words += ["--local-repository", f"{repository}@{version}={place}"]
        return words
