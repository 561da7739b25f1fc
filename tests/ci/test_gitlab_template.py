"""The template for GitLab and its example, run by gitlab-ci-local; scripts of ci/ and Docker are replaced here.

``tests/ci/test_ci_steps.py`` tests the scripts.
"""

import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from quicsat.cli.exit_status import ExitStatus
from tests.example_repository import HALF, IMPLEMENTATION, MAIN, SOURCE, ExampleRepository, commit_all, source
from tests.pipeline_runner import PipelineRunner

ROOT = Path(__file__).resolve().parents[2]
REMOTE, SERVICE = "https://quicsat.example", "  extends: .quicsat\n"
PREPARE = """\
#!/bin/bash
echo "prepare $QUICSAT_PARTNERS" >>"$CALLS"
mkdir -p "$QUICSAT_CACHE" && echo an image >"$QUICSAT_CACHE/images.tar"
"""
MEASURE = """\
#!/bin/bash
windows=$(grep -ho '[0-9]*$' {.,base}/sitecustomize.py)
echo "measure $QUICSAT_IMPLEMENTATION $QUICSAT_IMAGE $QUICSAT_AGAINST" $windows >>"$CALLS"
[[ -f $QUICSAT_EXPECT ]] || exit 2
mkdir -p "$QUICSAT_OUTPUT/campaign/base/1"
touch "$QUICSAT_OUTPUT/comment.md" "$QUICSAT_OUTPUT/junit.xml" "$QUICSAT_OUTPUT/campaign/base/1/left.pcap" \\
    "$QUICSAT_OUTPUT/campaign/base/1/evidence.json"
exit "$STATUS"
"""


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[PipelineRunner]:
    """The example in the repository of an implementation; the template comes from a server, as GitLab gets it."""
    repository = ExampleRepository(tmp_path, "scratch")
    repository.open_pull_request({SOURCE: source(HALF)})
    quicsat = tmp_path / "quicsat"
    for name, text in (("prepare", PREPARE), ("measure", MEASURE)):
        (quicsat / "ci").mkdir(parents=True, exist_ok=True)
        (quicsat / "ci" / name).write_text(text)
        (quicsat / "ci" / name).chmod(0o755)
    shutil.copytree(ROOT / "ci/gitlab", quicsat / "ci/gitlab")
    subprocess.run(["git", "init", "--quiet", "--initial-branch", MAIN, quicsat], check=True)
    commit_all(quicsat, "quicsat")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(quicsat))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        file = repository.clone / ".gitlab-ci.yml"
        text = file.read_text().replace(f"{REMOTE}/quicsat.git", quicsat.as_uri())
        text = text.replace(REMOTE, f"http://127.0.0.1:{server.server_port}")
        file.write_text(text.replace(SERVICE, f"{SERVICE}  services: []  # the runner has an engine\n"))
        found = PipelineRunner(repository.clone, tmp_path / "runner")
        found.replace("docker")
        yield found
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    """Says nothing."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("status", [ExitStatus.SUCCESS, ExitStatus.UNDECIDED])
def test_the_job_measures_both_images_and_keeps_its_reports(
    runner: PipelineRunner, tmp_path: Path, status: ExitStatus
) -> None:
    """It keeps them, and the images of partners, whatever the exit status is, but no packet traces."""
    event = {"CI_PIPELINE_SOURCE": "merge_request_event", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": MAIN}
    done = runner.run("quicsat", {**event, "STATUS": str(status.value), "QUICSAT_PARTNERS": "a b"})
    assert (done.status == 0) is (status == ExitStatus.SUCCESS), done.output
    assert runner.calls == [
        "apt-get update -qq",
        "apt-get install -qq --no-install-recommends ca-certificates docker-cli git make",
        "prepare a b",
        f"docker build -t {IMPLEMENTATION}:change -f interop/Dockerfile .",
        f"docker build -t {IMPLEMENTATION}:base -f interop/Dockerfile base",
        f"measure {IMPLEMENTATION} {IMPLEMENTATION}:change {IMPLEMENTATION}:base 5 10",
    ]
    report = runner.artifacts / "quicsat/quicsat-report"
    kept = {str(file.relative_to(report)) for file in report.rglob("*") if file.is_file()}
    assert kept == {"comment.md", "junit.xml", "campaign/base/1/evidence.json"}
    cached = [file.name for file in runner.clone.glob(".gitlab-ci-local/cache/*/.quicsat-images/*")]
    assert cached == ["images.tar"]


def test_there_is_no_job_without_a_merge_request(runner: PipelineRunner) -> None:
    runner.run("quicsat", {"CI_PIPELINE_SOURCE": "push"})
    assert runner.calls == []
