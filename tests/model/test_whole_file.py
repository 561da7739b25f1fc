"""Files are written as a whole or not at all, and never through a link."""

import errno
import multiprocessing
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from quicsat.model import whole_file
from quicsat.model.errors import MachineError
from quicsat.model.stored_files import open_directory
from quicsat.model.whole_file import (
    REMOVED,
    draft_directory,
    make_directories,
    new_file,
    new_files,
    remove_directory,
    remove_drafts,
    turn,
    write_atomically,
)
from quicsat.plots import discovery
from quicsat.plots.drawn_before import FILE_NAME, DrawnBefore
from quicsat.plots.render import save
from tests.plots.drawn import plot_request
from tests.results_builder import result_set, runs

RESULTS = result_set(runs(4e6, 5e6, 6e6), repetitions=3)


def drawn(folder: Path, name: str, *formats: str) -> list[Path]:
    plot = discovery.plots()[name]
    [first, *_] = plot.table(plot_request(RESULTS))
    return save(plot, first, folder, formats)


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("dear")
    place = tmp_path / "plots"
    place.mkdir()
    for name in ("file", "box.svg", FILE_NAME):
        (place / name).symlink_to(victim)
    with new_file(place / "file") as file:
        file.write(b"new")
    drawn(place, "box", "svg")
    DrawnBefore(place).save()
    assert victim.read_text() == "dear"
    assert sorted(each.name for each in place.iterdir()) == [FILE_NAME, "box.svg", "file"]
    assert not any(each.is_symlink() for each in place.iterdir())
    assert (place / "file").read_bytes() == b"new"


def test_an_error_leaves_the_old_content_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), new_file(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), new_files(tmp_path) as folder:
        (folder / "file").write_text("half")
        raise ZeroDivisionError
    assert ([*tmp_path.iterdir()], path.read_text()) == ([path], "old")


def killed_in(act: Callable[[], object]) -> None:
    """Run ``act`` in a process that it kills."""
    process = os.fork()
    if process == 0:
        try:
            act()
        finally:
            os._exit(1)
    assert os.waitpid(process, 0)[1] == signal.SIGKILL


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_next_write_removes_what_a_killed_one_has_left(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def half(name: Path) -> None:
        with new_file(name) as file:
            file.write(b"half")
            file.flush()
            die()

    killed_in(lambda: half(path))
    killed_in(lambda: half(tmp_path / "other"))
    drafts = {each.name.split(".")[1] for each in tmp_path.iterdir() if each != path}
    assert (drafts, path.read_bytes()) == ({"file", "other"}, b"old")
    write_atomically(path, b"new")
    assert [each.name.split(".")[1] for each in tmp_path.iterdir() if each != path] == ["other"]
    assert path.read_bytes() == b"new"


def test_a_draft_of_a_process_that_lives_stays(tmp_path: Path) -> None:
    with new_file(tmp_path / "file") as first, draft_directory(tmp_path, "file") as folder:
        first.write(b"first")
        write_atomically(tmp_path / "file", b"second")
        assert folder.is_dir()
        folder.rmdir()
    assert (tmp_path / "file").read_bytes() == b"first"
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]


def test_a_killed_removal_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "campaign"
    (place / "run").mkdir(parents=True)
    (place / "run/trace").touch()
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", die)
        killed_in(lambda: remove_directory(place))
    assert not place.exists()
    assert [*tmp_path.iterdir()]
    with open_directory(tmp_path) as directory:
        remove_drafts(directory, REMOVED)
    assert not [*tmp_path.iterdir()]


def many(folder: Path) -> None:
    for number in range(200):
        with draft_directory(folder, "file") as draft:
            (draft / "content").touch()
            shutil.rmtree(draft)
        write_atomically(folder / "file", str(number).encode())


def test_processes_that_write_at_once_remove_no_draft_of_another(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, multiprocessing.get_context("fork")) as pool:
        list(pool.map(many, [tmp_path] * 4))
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]


def test_a_name_that_only_looks_like_a_draft_stays(tmp_path: Path) -> None:
    others = {".file.new", ".file.0123456789abcdef", "file.0123456789abcdef.new", ".fil.0123456789abcdef.new"}
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / ".file.0123456789abcdef.new").symlink_to("elsewhere")
    write_atomically(tmp_path / "file", b"")
    assert {each.name for each in tmp_path.iterdir()} == {*others, "file", ".file.0123456789abcdef.new"}


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system that is almost full."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=16k,mode=755", "tmpfs", place], capture_output=True, check=False
        ).returncode
    )
    if not mounted:
        pytest.skip("needs the right to mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_full_disk_leaves_no_part_of_a_figure(small: Path) -> None:
    (small / "filler").write_bytes(bytes(12 * 1024))
    with pytest.raises(OSError) as caught:
        drawn(small, "box", "svg", "pdf")
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match=r"box\.json") as caught, new_file(small / "box.json") as file:
        file.write(bytes(12 * 1024))
    assert [*small.iterdir()] == [small / "filler"]


def test_pgf_needs_no_latex_even_for_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    [path] = drawn(tmp_path, "heatmap", "pgf")
    images = {each.name for each in tmp_path.glob("*.png")}
    assert images
    assert all(f"{{{name}}}" in path.read_text() for name in images)


def test_what_several_change_at_once_has_all_changes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")

    def add(_: int) -> None:
        for _ in range(10):
            with turn(path, lambda _: None):
                before = path.read_bytes()
                write_atomically(path, before + b"x")

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(add, range(5)))
    assert path.read_bytes() == b"x" * 50
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_turn_that_does_not_come_ends_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_file, "PATIENCE", 0.0)
    said = list[str]()
    with (
        turn(tmp_path / "file", said.append),
        pytest.raises(MachineError, match="another process"),
        turn(tmp_path / "file", said.append),
    ):
        pass
    assert len(said) == 1
    assert "Waiting" in said[0]
    with pytest.raises(MachineError, match="cannot be written"), turn(tmp_path / "none" / "file", said.append):
        pass
    assert len(said) == 1


def test_several_threads_make_the_same_directories(tmp_path: Path) -> None:
    """As the runs of a pair do that begin at the same time."""
    for number in range(20):
        path, start = tmp_path / f"{number}" / "pair" / "case", Barrier(4)

        def make(path: Path = path, start: Barrier = start) -> None:
            start.wait()
            make_directories(path)

        with ThreadPoolExecutor(4) as threads:
            for made in [threads.submit(make) for _ in range(4)]:
                made.result()
        assert path.is_dir()
