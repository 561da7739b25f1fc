"""Work that is shared among processes gives the same results, files and sizes as without them."""

import os
import signal
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import pytest

from quicsat.model.errors import MachineError
from quicsat.site.construction import PartSize, Site
from quicsat.site.pages import Renderer
from quicsat.site.workers import working
from tests.site import builder


def site(place: Path) -> Site:
    templates = builder.ROOT / "web" / "templates"
    return Site(Renderer(templates, "assets", datetime.now(UTC)), place, (), (), uplot=False)


@pytest.mark.parametrize("several", [False, True])
def test_results_files_and_sizes(tmp_path: Path, several: bool) -> None:
    target = site(tmp_path)

    def work(number: int) -> tuple[int, int]:
        target.put(PurePosixPath("runs", "a", "p", f"{number}.html"), b"x" * number)
        return number**2, os.getpid()

    with working(target, work, range(1, 6), several=several) as made:
        found = list(made)
    assert [square for square, _ in found] == [1, 4, 9, 16, 25]
    assert (os.getpid() in {process for _, process in found}) is not several
    assert target.parts == {"runs/a/p": PartSize(5, 15)}
    assert sorted(path.name for path in (tmp_path / "runs/a/p").iterdir()) == [f"{n}.html" for n in range(1, 6)]


@pytest.mark.parametrize("several", [False, True])
def test_a_fault_of_the_work_is_raised(tmp_path: Path, several: bool) -> None:
    def work(number: int) -> int:
        raise OSError(28, "No space left on device", str(number))

    with pytest.raises(OSError, match="No space left"), working(site(tmp_path), work, [1], several=several) as made:
        next(made)


def test_a_killed_process_ends_the_work(tmp_path: Path) -> None:
    def work(number: int) -> int:
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    killed = pytest.raises(MachineError, match="was killed")
    with killed, working(site(tmp_path), work, [1, 2, 3], several=True) as made:
        list(made)
