"""The new site takes the place of the old one in one step."""

import os
from pathlib import Path, PurePosixPath

import pytest

from quicsat.model.errors import InputError, MachineError
from quicsat.site import atomic_publish
from quicsat.site.address import MARKER


def make(place: Path, text: str) -> None:
    with atomic_publish.staged(place) as draft:
        (draft.directory / MARKER).write_text(text)


def test_a_site_is_made_and_replaced(tmp_path: Path) -> None:
    make(tmp_path / "deep" / "site", "old")
    make(tmp_path / "deep" / "site", "new")
    assert (tmp_path / "deep" / "site" / MARKER).read_text() == "new"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["site"]


def test_an_interrupted_build_leaves_the_old_site_whole(tmp_path: Path) -> None:
    make(tmp_path / "site", "old")
    with pytest.raises(KeyboardInterrupt), atomic_publish.staged(tmp_path / "site") as draft:
        (draft.directory / MARKER).write_text("half")
        raise KeyboardInterrupt
    assert (tmp_path / "site" / MARKER).read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


FOLDERS = [PurePosixPath("runs", "one", name) for name in ("p", "data")]
LATE = "a page"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A site with two folders that do not change."""
    with atomic_publish.staged(tmp_path / "site") as draft:
        (draft.directory / MARKER).write_text("old")
        for folder in FOLDERS:
            (draft.directory / folder).mkdir(parents=True)
            (draft.directory / folder / "index.html").write_text(LATE)
    return tmp_path / "site"


def texts(site: Path) -> list[str]:
    return [(site / folder / "index.html").read_text() for folder in FOLDERS]


def test_folders_move_as_a_whole_and_nothing_of_the_old_site_is_left(old: Path) -> None:
    before = [(old / folder).stat().st_ino for folder in FOLDERS]
    with atomic_publish.staged(old) as draft:
        (draft.directory / MARKER).write_text("new")
        draft.kept.extend(FOLDERS)
    assert (old / MARKER).read_text() == "new"
    assert [(old / folder).lstat().st_ino for folder in FOLDERS] == before
    assert texts(old) == [LATE, LATE]
    assert [path.name for path in old.parent.iterdir()] == ["site"]


def test_the_old_site_has_every_page_at_every_moment(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(one: Path, other: Path) -> None:
        seen.append((texts(old), (old / MARKER).read_text()))
        exchange(one, other)
        seen.append((texts(old), (old / MARKER).read_text()))

    exchange = atomic_publish._exchange
    monkeypatch.setattr(atomic_publish, "_exchange", watched)
    with atomic_publish.staged(old) as draft:
        (draft.directory / MARKER).write_text("new")
        draft.kept.extend(FOLDERS)
    assert [marker for _, marker in seen] == ["old"] * 5 + ["new"]
    assert all(found == [LATE, LATE] for found, _ in seen)


@pytest.mark.parametrize("fails", [1, 2, 3])
def test_folders_come_back_if_a_step_fails(old: Path, monkeypatch: pytest.MonkeyPatch, fails: int) -> None:
    steps = []

    def failing(one: Path, other: Path) -> None:
        steps.append(one)
        if len(steps) == fails:
            raise OSError(28, "No space left on device")
        exchange(one, other)

    exchange = atomic_publish._exchange
    monkeypatch.setattr(atomic_publish, "_exchange", failing)
    with pytest.raises(MachineError, match="The old site is as it was"), atomic_publish.staged(old) as draft:
        (draft.directory / MARKER).write_text("new")
        draft.kept.extend(FOLDERS)
    assert (old / MARKER).read_text() == "old"
    assert texts(old) == [LATE, LATE]
    assert not any((old / folder).is_symlink() for folder in FOLDERS)
    assert [path.name for path in old.parent.iterdir()] == ["site"]


def test_the_next_build_brings_back_what_a_killed_one_has_moved(old: Path) -> None:
    secret = old.parent / "secret"
    secret.mkdir()
    (old / "runs/one/figures").symlink_to(secret)
    child = os.fork()
    if not child:
        exchange, moved = atomic_publish._exchange, []

        def killed(one: Path, other: Path) -> None:
            exchange(one, other)
            moved.append(one)
            if len(moved) == len(FOLDERS):
                os._exit(9)

        atomic_publish._exchange = killed
        with atomic_publish.staged(old) as draft:
            draft.kept.extend(FOLDERS)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert texts(old) == [LATE, LATE]
    assert (old / FOLDERS[0]).is_symlink()
    with pytest.raises(KeyboardInterrupt), atomic_publish.staged(old):
        raise KeyboardInterrupt
    assert texts(old) == [LATE, LATE]
    assert not any((old / folder).is_symlink() for folder in FOLDERS)
    assert (old / "runs/one/figures").is_symlink()
    assert sorted(path.name for path in old.parent.iterdir()) == ["secret", "site"]


def test_nothing_but_a_site_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.tex").write_text("years")
    with pytest.raises(InputError, match="not a site made by quicsat"):
        atomic_publish.check(tmp_path / "work", [])
    with pytest.raises(InputError, match="contains the results"):
        atomic_publish.check(tmp_path, [tmp_path / "results"])
    atomic_publish.check(tmp_path / "new", [tmp_path / "results"])


def test_nothing_is_brought_back_through_a_link(tmp_path: Path) -> None:
    """A link in the place of a folder of a site, to a folder with a link as of a build that was killed."""
    (tmp_path / "outside/one").mkdir(parents=True)
    draft = tmp_path / f".site.{'0' * 16}.new"
    (draft / "runs/one/p").mkdir(parents=True)
    (tmp_path / "outside/one/p").symlink_to(draft / "runs/one/p")
    (tmp_path / "site").mkdir()
    (tmp_path / "site/runs").symlink_to("../outside")
    atomic_publish._return_all(tmp_path / "site")
    assert (tmp_path / "outside/one/p").is_symlink()
