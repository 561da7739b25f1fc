"""The version of the program: from git where there is a checkout, else the package's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from quicsat import __version__
from quicsat.execution.tool_version import tool_version


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git work tree with one commit."""
    (tmp_path / "file").write_text("1")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "file")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "first")
    return tmp_path


def git(root: Path, *words: str) -> str:
    """What a git command prints."""
    return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True).stdout.strip()


def test_a_checkout_is_named_by_its_commit(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert commit.startswith(tool_version(checkout))


def test_a_tag_and_changes_are_told(checkout: Path) -> None:
    git(checkout, "-c", "user.name=a", "-c", "user.email=a@example.org", "tag", "--annotate", "v1.2", "--message", "x")
    (checkout / "file").write_text("2")
    tool_version.cache_clear()
    assert tool_version(checkout) == "v1.2-dirty"


def test_without_git_it_is_the_version_of_the_package(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = checkout / "venv" / "site-packages"
    installed.mkdir(parents=True)
    tool_version.cache_clear()
    assert tool_version(installed) == __version__
    monkeypatch.setenv("PATH", str(installed))
    assert tool_version(checkout) == __version__
    tool_version.cache_clear()


def test_a_damaged_work_tree_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("nonsense")
    assert tool_version(tmp_path) == __version__
