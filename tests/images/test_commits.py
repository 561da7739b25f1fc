"""Ranges of commits and builds of them, from repositories that are hostile."""

import subprocess
from pathlib import Path

import pytest

from quicsat.images.commits import MARK, WORKING_TREE, Repository, builds_alone, ends_of, image_of
from quicsat.model.errors import InputError
from quicsat.model.stored_files import resolved
from tests.example_repository import commit_all
from tests.example_repository import git as run_git


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with five commits on its main branch, the fourth one a merge, tagged v0 to v4."""
    folder = resolved(tmp_path) / "checkout"
    run_git(tmp_path, "init", "--quiet", "--initial-branch", "main", str(folder))
    for number in range(3):
        commit(folder, number)
    run_git(folder, "checkout", "--quiet", "-b", "side", "v1")
    (folder / "side").write_text("side")
    commit_all(folder, "On the side")
    run_git(folder, "checkout", "--quiet", "main")
    run_git(folder, "merge", "--quiet", "--no-ff", "-m", "Merge side", "side")
    run_git(folder, "tag", "v3")
    commit(folder, 4)
    return folder


def commit(folder: Path, number: int, title: str = "") -> None:
    (folder / "number").write_text(f"{number}\n")
    commit_all(folder, title or f"Number {number}")
    run_git(folder, "tag", f"v{number}")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = resolved(tmp_path) / "work"
    place.mkdir()
    return place


def build(checkout: Path, work: Path, name: str, command: str) -> str:
    repository = Repository(checkout)
    found = repository.commits(f"v0..{name}")[-1]
    with builds_alone(work, print) as held:
        return repository.build(found, command, work, held)


def log_of(checkout: Path, work: Path, name: str) -> str:
    return (work / f"{Repository(checkout).commits(f'v0..{name}')[-1].short}.log").read_text()


def test_a_range_has_first_parents_in_order(checkout: Path) -> None:
    found = Repository(checkout).commits("v0..main")
    assert [each.title for each in found] == ["Number 0", "Number 1", "Number 2", "Merge side", "Number 4"]
    assert found[-1].id == run_git(checkout, "rev-parse", "main").strip()
    assert len(found[0].date) == len("2026-11-29")


@pytest.mark.parametrize("words", [
    "v0", "..v1", "v0..", "v0...v1", "-x..v1", "v0..--output=planted", "", "..", "v0..nothing", "v1..v0", "v1..v1",
    "v2..side", "v0..v1^{tree}", "v0..v1 v2", "v0..\x1b[31m",
])  # fmt: skip
def test_what_is_no_range_is_refused(words: str, checkout: Path) -> None:
    with pytest.raises(InputError) as refused:
        Repository(checkout).commits(words)
    assert "\x1b" not in str(refused.value)
    assert not (checkout / "planted").exists()


def test_a_branch_whose_name_is_an_option_is_refused(checkout: Path) -> None:
    """git creates no such branches, but files of a repository can."""
    (checkout / ".git/refs/heads/--output=x").write_text(run_git(checkout, "rev-parse", "main"))
    with pytest.raises(InputError):
        ends_of("v0..--output=x")


def test_no_repository_is_refused(tmp_path: Path) -> None:
    for place in (tmp_path / "missing", tmp_path):
        with pytest.raises(InputError):
            Repository(place)


def test_a_build_sees_its_commit_and_the_checkout_stays(checkout: Path, work: Path) -> None:
    (checkout / "number").write_text("mine, not committed")
    (checkout / "untracked").write_text("mine")
    before = run_git(checkout, "status", "--porcelain"), run_git(checkout, "rev-parse", "HEAD")
    assert build(checkout, work, "v1", "cat number; ls; git rev-parse HEAD; echo x >number") == ""
    assert log_of(checkout, work, "v1").splitlines() == ["1", "number", run_git(checkout, "rev-parse", "v1").strip()]
    assert (run_git(checkout, "status", "--porcelain"), run_git(checkout, "rev-parse", "HEAD")) == before
    assert (checkout / "number").read_text() == "mine, not committed"
    assert run_git(checkout, "worktree", "list").count("\n") == 1
    assert not (work / WORKING_TREE).exists()


def test_a_build_that_fails_tells_why(checkout: Path, work: Path) -> None:
    assert build(checkout, work, "v1", "echo 'main.go:3:1: error: \x1b[31mno such thing'; exit 3") == (
        "main.go:3:1: error: no such thing"
    )
    assert build(checkout, work, "v1", "exit 3") == "exit status 3"
    assert build(checkout, work, "v1", "kill -9 $$") == "signal 9"


@pytest.mark.parametrize("rest", ["registered", "locked", "folder"])
def test_what_a_killed_build_has_left_is_removed(rest: str, checkout: Path, work: Path) -> None:
    place = work / WORKING_TREE
    (work / MARK).touch()
    if rest == "folder":
        place.mkdir()
        (place / "file").write_text("x")
    else:
        run_git(checkout, "worktree", "add", "--quiet", "--detach", str(place), "v2")
        if rest == "locked":
            run_git(checkout, "worktree", "lock", str(place))
            (place / ".git").unlink()
    assert build(checkout, work, "v1", "cat number") == ""
    assert log_of(checkout, work, "v1") == "1\n"
    assert run_git(checkout, "worktree", "list").count("\n") == 1


def test_a_folder_of_the_users_stays(checkout: Path, work: Path) -> None:
    """Also a working tree of the same repository, with changes that are not committed."""
    place = work / WORKING_TREE
    run_git(checkout, "worktree", "add", "--quiet", "--detach", str(place), "v2")
    (place / "number").write_text("mine, not committed")
    with pytest.raises(InputError):
        build(checkout, work, "v1", "true")
    assert (place / "number").read_text() == "mine, not committed"


def test_git_runs_nothing_that_a_repository_names(checkout: Path, work: Path, tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {planted}\ncat\n")
    script.chmod(0o755)
    hook = checkout / ".git/hooks/post-checkout"
    hook.write_text(script.read_text())
    hook.chmod(0o755)
    (checkout / ".git/info/attributes").write_text("number filter=a=b\n")
    for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "gpg.program", "diff.external"):
        run_git(checkout, "config", name, str(script))
    run_git(checkout, "config", "log.showSignature", "true")
    included = tmp_path / "included"
    included.write_text(f'[filter "a=b"]\n\tsmudge = {script}\n\tprocess = {script}\n\trequired = true\n')
    run_git(checkout, "config", "include.path", str(included))
    assert build(checkout, work, "v1", "cat number") == ""
    assert log_of(checkout, work, "v1") == "1\n"
    assert not planted.exists()


def test_a_build_that_outlives_its_program_is_waited_for(work: Path, checkout: Path) -> None:
    """Its process has inherited the lock, and nobody else builds until it ends."""
    told = list[str]()

    def say(text: str) -> None:
        told.append(text)
        child.stdin.close()

    with builds_alone(work, say) as held:
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(held,))
    with builds_alone(work, say):
        assert child.wait() == 0
    assert len(told) == 1


@pytest.mark.parametrize(("command", "image"), [
    ("docker build -t my-quic:bisect .", "my-quic:bisect"),
    ("cd interop && docker build --tag=me/it . # -t other", "me/it"),
    ("podman build --tag a/b:c -t a/b:c .", "a/b:c"),
])  # fmt: skip
def test_the_image_of_a_command(command: str, image: str) -> None:
    assert image_of(command) == image


@pytest.mark.parametrize(
    "command", ["make image", "docker build -t a . && docker build -t b .", "build -t -x", "echo '"]
)
def test_a_command_without_one_image(command: str) -> None:
    with pytest.raises(InputError, match="--build"):
        image_of(command)
