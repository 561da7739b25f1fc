"""The second workflow of ci/example, run by act with the real ``gh``; only GitHub's API is a server of this test."""

import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.github_server import BOT, GitHub, github
from tests.workflow_runner import TOKEN, Ended, WorkflowRunner

EXAMPLE = Path(__file__).resolve().parents[2] / "ci/example"
WORKFLOW = "quicsat-comment.yml"
FORK, BRANCH, COMMIT, RUN = "someone", "change", "5" * 40, 99
MARKER = "<!-- quicsat of forks -->"
TEXT = '### quicsat: 1 cell is slower\n\n`$(touch /tmp/x)` and ${{ github.token }}, 50 % of "it"\n'
"""A fork may write anything; it is text."""
pytestmark = pytest.mark.skipif(not shutil.which("gh"), reason="gh IS MISSING; `make setup-dev` installs it")


@pytest.fixture
def server() -> Iterator[GitHub]:
    with github("me/aioquic") as found:
        found.add_pull(6, FORK, BRANCH, "4" * 40)
        found.add_pull(7, FORK, BRANCH, COMMIT)
        yield found
        assert found.unknown == []


@pytest.fixture
def runner(server: GitHub, tmp_path: Path) -> WorkflowRunner:
    shutil.copytree(EXAMPLE / ".github", tmp_path / "clone/.github")
    return WorkflowRunner(tmp_path / "clone", tmp_path, server.repository, variables=server.variables)


def artifact(server: GitHub, tmp_path: Path, files: dict[str, str]) -> None:
    """Let the run of the first workflow have uploaded these files."""
    place = tmp_path / f"{len(list(tmp_path.iterdir()))}.zip"
    with zipfile.ZipFile(place, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    server.artifacts[RUN] = {"quicsat": place}


def comment(runner: WorkflowRunner, event: str = "pull_request", commit: str = COMMIT) -> Ended:
    """Run the workflow after one of a pull request has ended."""
    head = {"head_sha": commit, "head_branch": BRANCH, "head_repository": {"owner": {"login": FORK}}}
    return runner.run(WORKFLOW, "workflow_run", {"workflow_run": {"id": RUN, "event": event, **head}})


def test_the_comment_of_the_artifact_is_posted_and_replaced_later(
    runner: WorkflowRunner, server: GitHub, tmp_path: Path
) -> None:
    server.add_comment(7, FORK, f"I know the marker\n{MARKER}")
    artifact(server, tmp_path, {"comment.md": TEXT, "junit.xml": "<testsuites/>"})
    done = comment(runner)
    assert done.status == 0, done.output
    [_, (number, posted)] = server.comments.items()
    assert (posted["pull"], posted["user"]["login"], posted["body"]) == (7, BOT, f"{TEXT}\n{MARKER}")
    assert server.tokens == {f"token {TOKEN}"}

    artifact(server, tmp_path, {"comment.md": "### quicsat: nothing is worse\n"})
    assert comment(runner).status == 0
    assert len(server.comments) == 2
    assert server.comments[number]["body"] == f"### quicsat: nothing is worse\n\n{MARKER}"


def test_nothing_is_posted_where_there_is_no_comment_or_no_pull_request(
    runner: WorkflowRunner, server: GitHub, tmp_path: Path
) -> None:
    """An artifact without a comment; a commit that is no longer the newest of its pull request; no pull request."""
    artifact(server, tmp_path, {"junit.xml": "<testsuites/>"})
    assert comment(runner).status == 0
    artifact(server, tmp_path, {"comment.md": TEXT})
    assert comment(runner, commit="3" * 40).status == 0
    assert comment(runner, event="push").status == 0
    assert server.comments == {}
