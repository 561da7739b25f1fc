"""Hostile archives: nothing leaves the target, bombs are cut."""

import tarfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from quicsat.docker import archive
from quicsat.docker.archive import ArchiveLimits, unpack
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode
from tests.hostile_archives import BOMBS, hostile, keywords, sparse_map

SMALL = ArchiveLimits(total=4 * 1024 * 1024, files=2000)
HARMLESS = {"a negative size"}


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_hostile_archives(first: int, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("untouched")
    for seed in range(first, first + 50):
        target = tmp_path / "target" / str(seed)
        target.mkdir(parents=True)
        content, regular = hostile(seed)
        try:
            unpack(iter([content]), target, SMALL)
        except HarnessFault:
            continue
        kept = Counter(path.read_bytes() for path in target.rglob("*") if path.is_file())
        assert Counter(regular) - kept == Counter()
    assert {path.name for path in tmp_path.iterdir()} == {"secret", "target"}
    assert (tmp_path / "secret").read_text() == "untouched"
    assert all(path.name.isdecimal() for path in (tmp_path / "target").iterdir())
    made = (tmp_path / "target").rglob("*")
    assert all((path.is_file() or path.is_dir()) and not path.is_symlink() for path in made)


@pytest.mark.parametrize(
    ("bomb", "size"),
    [(keywords(30), 30 * 121_344), (keywords(30, tarfile.XGLTYPE), 30 * 121_344), (sparse_map(5000), 5000 * 512)],
    ids=["keywords", "keywords for all files", "map of a sparse file"],
)
def test_headers_take_no_multiple_of_their_size(
    bomb: Iterator[bytes], size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "LONGEST_HEADERS", size // 10)
    tracemalloc.start()
    with pytest.raises(HarnessFault):
        archive.unpack(bomb, tmp_path, SMALL)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * size


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(name: str, tmp_path: Path) -> None:
    begin = time.process_time()
    try:
        unpack(BOMBS[name](), tmp_path, SMALL)
    except HarnessFault as fault:
        assert fault.code in (ErrorCode.ARTEFACT_LIMIT, ErrorCode.DAEMON_FAULT)
    else:
        assert name in HARMLESS
    assert time.process_time() - begin < 30
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 2 * SMALL.total
