"""Root file systems are packed reproducibly, and never by halves."""

import tarfile
from pathlib import Path

import pytest

from tests.virtual_time.conftest import pack_root
from tests.virtual_time.machine import Machines


def listing(machines: Machines) -> list[str]:
    """Names in the volume, hidden ones too, and their digests."""
    status, said = machines.run_beside("cd /roots && find . -type f | sort | xargs sha256sum")
    assert status == 0
    return said.splitlines()


def test_the_same_archive_gives_the_same_file(machines: Machines, base_archive: Path) -> None:
    done = pack_root(machines.image, machines.volume, "again", base_archive)
    assert done.returncode == 0
    digests = {line.split()[1]: line.split()[0] for line in listing(machines)}
    assert digests["./again.erofs"] == digests["./base.erofs"]
    size = done.stdout.removeprefix('{"event":"root","bytes":').removesuffix("}\n")
    assert int(size) > 10_000_000
    command = ["roots"]
    with machines.container(command) as identity:
        machines.daemon.slow.start(identity)
        machines.daemon.slow.wait(identity, timeout=None)
        assert machines.daemon.slow.logs(identity) == b"again\nbase\n"


def test_files_keep_their_times(machines: Machines, base_archive: Path) -> None:
    """Python compiles a module at each start if the file has another time than its compiled form states."""
    with tarfile.open(base_archive) as archive:
        times = [str(int(archive.getmember(path).mtime)) for path in ("usr/bin/perl", "etc/debian_version")]
    assert machines.boot("stat -c %Y /usr/bin/perl /etc/debian_version").said.split() == times
    assert len({*times}) == 2


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_an_archive_that_ends_early_gives_no_file(
    machines: Machines, base_archive: Path, tmp_path: Path, share: float
) -> None:
    content = base_archive.read_bytes()
    cut = tmp_path / "cut.tar"
    cut.write_bytes(content[: int(len(content) * share)])
    before = listing(machines)
    done = pack_root(machines.image, machines.volume, "cut", cut)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "virtual-time: root: the archive of cut is not whole"
    assert listing(machines) == before


@pytest.mark.parametrize("name", ["../linux", "", ".hidden", "a b", "a/b", "-x"])
def test_a_name_that_is_a_path_is_refused(machines: Machines, base_archive: Path, name: str) -> None:
    before = listing(machines)
    done = pack_root(machines.image, machines.volume, name, base_archive)
    assert (done.returncode, done.stdout) == (1, "")
    assert "a name of letters" in done.stderr
    assert listing(machines) == before
