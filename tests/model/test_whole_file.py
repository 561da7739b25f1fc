"""Files are written as a whole or not at all, and never through a link."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.model.whole_file import new_file, new_files
from plots import discovery
from plots.drawn_before import FILE_NAME, DrawnBefore
from plots.render import save
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
