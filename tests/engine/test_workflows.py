"""The workflows of ci/example, run for a pull request on this machine: base and change built, measured and judged.

The runner is act (tests/workflow_runner.py says what is real), the engine is the real one, the measurement is in
virtual time. Of the example's files, only names and sizes are adapted, as an owner of a repository would do it. The
set-up finds the Python environment of this checkout.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.images import build_recipes
from quicsat.results.store import load
from tests.engine.conftest import ROOT, URL, need
from tests.example_repository import (
    IMPLEMENTATION,
    PARTNER,
    PULL_REQUEST,
    SOURCE,
    WINDOW,
    ExampleRepository,
    exported_checkout,
    source,
)
from tests.workflow_runner import WorkflowRunner

HARMLESS = {SOURCE: f"{source(WINDOW)}# A comment.\n"}
STARVED = 1500
"""Seconds; a job takes a minute on two idle cores."""


@pytest.fixture(scope="module")
def quicsat(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files of the action; the images of the pull requests are removed at the end."""
    need(daemon, "simulator", "virtual-time", IMPLEMENTATION, PARTNER)
    if not shutil.which("docker"):
        pytest.skip("the docker command IS MISSING, no workflow was run")
    found = exported_checkout(tmp_path_factory.mktemp("checkout") / "quicsat")
    (found / ".venv").symlink_to(ROOT / ".venv")
    yield found
    for tag in ("base", "change"):
        if image := DaemonImages(daemon).find(f"{IMPLEMENTATION}:{tag}"):
            daemon.quick.remove_image(image.reference, force=True)


@pytest.mark.timeout(STARVED)
def test_a_harmless_pull_request_is_measured_and_green(quicsat: Path, tmp_path: Path) -> None:
    """Both images are measured in one job, with the same members, and only the image of the change is another one."""
    repository = ExampleRepository(tmp_path, build_recipes.expected()[IMPLEMENTATION])
    repository.open_pull_request(HARMLESS)
    variables = {"DOCKER_HOST": URL, "ORIGIN": repository.origin.as_uri()}
    runner = WorkflowRunner(repository.clone, tmp_path, own=quicsat, variables=variables)
    done = runner.run("quicsat.yml", "pull_request", PULL_REQUEST)
    assert (done.status, done.failed_with) == (0, None), done.output
    report = tmp_path / "report"
    with zipfile.ZipFile(tmp_path / "artifacts/quicsat.zip") as archive:
        archive.extractall(report)
    assert (report / "comment.md").read_text().startswith("### ✅ ")
    assert list(report.rglob("*.pcap")) == []
    base, change = (load(report / "campaign" / name).result_set for name in ("base", "change"))
    assert len(base.results) == len(change.results) == 3 * 5
    assert base.manifest.images[IMPLEMENTATION].id != change.manifest.images[IMPLEMENTATION].id
    assert base.manifest.images[PARTNER].id == change.manifest.images[PARTNER].id
