"""The version of the program: from git where there is a checkout, else the package's."""

import shutil
import subprocess
from pathlib import Path

import pytest

from quicsat.config.tool_version import ARCHIVAL, UNKNOWN, release, tool_version

AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.org")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git work tree with one commit."""
    (tmp_path / "file").write_text("1")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "file")
    git(tmp_path, *AUTHOR, "commit", "--quiet", "--message", "first")
    return tmp_path


def git(root: Path, *words: str) -> str:
    """What a git command prints."""
    return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True).stdout.strip()


def test_a_checkout_is_named_by_its_commit(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert commit.startswith(tool_version(checkout))


def test_a_tag_and_changes_are_told(checkout: Path) -> None:
    git(checkout, *AUTHOR, "tag", "--annotate", "v1.2", "--message", "x")
    (checkout / "file").write_text("2")
    tool_version.cache_clear()
    assert tool_version(checkout) == "v1.2-dirty"


def test_without_git_it_is_unknown(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = checkout / "below"
    below.mkdir()
    assert tool_version(below) == UNKNOWN
    monkeypatch.setenv("PATH", str(below))
    assert tool_version(checkout) == UNKNOWN
    tool_version.cache_clear()


def test_a_damaged_work_tree_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("nonsense")
    assert tool_version(tmp_path) == UNKNOWN


def test_an_archive_of_a_commit_knows_its_tag(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in (ARCHIVAL, ".gitattributes"):
        (checkout / name).write_text((ROOT / name).read_text())
    git(checkout, "add", "--all")
    git(checkout, *AUTHOR, "commit", "--quiet", "--message", "second")
    git(checkout, "tag", "v1.2.0")
    unpacked = tmp_path_factory.mktemp("archive")
    git(checkout, "archive", f"--output={unpacked / 'archive.tar'}", "HEAD")
    shutil.unpack_archive(unpacked / "archive.tar", unpacked)
    assert tool_version(unpacked) == "v1.2.0"


@pytest.mark.parametrize(
    ("described", "number"),
    [("v1.2.0", "1.2.0"), ("v1.2.0-3-gd8a2457-dirty", "1.2.0"), ("v1.2rc1-dirty", "1.2rc1"), ("d8a2457", UNKNOWN)],
)
def test_the_release_is_that_of_the_newest_tag(described: str, number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quicsat.config.tool_version.tool_version", lambda: described)
    assert release() == number
