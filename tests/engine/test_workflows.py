"""The workflows of ci/example, run for a pull request on this machine: base and change built, measured and judged.

The runner is act (tests/workflow_runner.py says what is real), the engine is the real one, the measurement is in
virtual time. Of the example's files, only names and sizes are adapted, as an owner of a repository would do it. The
set-up finds the Python environment of this checkout.
"""

import shutil
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from quicsat.cli.exit_status import ExitStatus
from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.images import build_recipes
from quicsat.results.store import load
from tests.engine.conftest import ROOT, need
from tests.engine_lock import URL
from tests.example_repository import (
    HALF,
    IMPLEMENTATION,
    PARTNER,
    PULL_REQUEST,
    SOURCE,
    WINDOW,
    ExampleRepository,
    exported_checkout,
    source,
)
from tests.workflow_runner import Ended, WorkflowRunner

HARMLESS, HALVED = {SOURCE: f"{source(WINDOW)}# A comment.\n"}, {SOURCE: source(HALF)}
HERE, OTHER = "", "Emulated CPU"
"""Names of processors: this machine's own, and another one."""
CPUINFO = f"processor\t: 0\nvendor_id\t: Emulated\ncpu family\t: 1\nmodel name\t: {OTHER}\nflags\t\t: fpu sse sse2\n\n"
MOUNTED = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /proc/cpuinfo && exec "$@"')

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


def run(folder: Path, quicsat: Path, change: Mapping[str, str], processor: str) -> Ended:
    """Run the job for a pull request that changes these files, on a machine with this processor."""
    repository = ExampleRepository(folder, build_recipes.expected()[IMPLEMENTATION])
    repository.open_pull_request(change)
    variables = {"DOCKER_HOST": URL, "ORIGIN": repository.origin.as_uri()}
    (folder / "cpuinfo").write_text(CPUINFO)
    inside = (*MOUNTED, str(folder / "cpuinfo")) if processor else ()
    runner = WorkflowRunner(repository.clone, folder, own=quicsat, variables=variables, inside=inside)
    return runner.run("quicsat.yml", "pull_request", PULL_REQUEST)


@pytest.mark.timeout(STARVED)
@pytest.mark.parametrize(
    ("change", "processor", "status"),
    [(HARMLESS, HERE, ExitStatus.SUCCESS), (HALVED, OTHER, ExitStatus.FAILURE)],
    ids=["harmless", "halved, another processor"],
)
def test_a_pull_request_is_measured_and_judged(
    quicsat: Path, tmp_path: Path, change: Mapping[str, str], processor: str, status: ExitStatus
) -> None:
    """Both images are measured in one job, on whichever processor; a smaller initial window is found."""
    done = run(tmp_path, quicsat, change, processor)
    failed = status != ExitStatus.SUCCESS
    assert (done.status, done.failed_with) == ((1, status) if failed else (0, None)), done.output
    report = tmp_path / "report"
    with zipfile.ZipFile(tmp_path / "artifacts/quicsat.zip") as archive:
        archive.extractall(report)
    comment = (report / "comment.md").read_text()
    assert comment.startswith("### ")
    assert ("the goodput changed by -" in comment) is failed
    assert list(report.rglob("*.pcap")) == []
    for name in ("base", "change"):
        measured = load(report / "campaign" / name).result_set
        assert len(measured.results) == 3 * 5
        assert (OTHER in measured.manifest.processor) is bool(processor)
