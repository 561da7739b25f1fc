"""Measures what 2,000 hostile archives and a dozen bombs write outside the target, and their CPU time.

Run it with `python -m bench.archives`, or with `make bench-faults`.
"""
# ruff: noqa: T201 - a script

from __future__ import annotations

import hashlib
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from prettytable import PrettyTable

from bench.script import counts_table, options_parser
from quicsat.docker.archive import ArchiveLimits, unpack
from quicsat.model.errors import HarnessFault
from quicsat.model.units import MIB, byte_size
from tests import hostile_archives

LIMITS = ArchiveLimits(total=1024 * MIB)
"""Of the logs of an endpoint whose files are small."""
LONGEST = 30.0
"""Seconds in which a bomb has to be cut."""


def main() -> int:
    """Exit status: 0 all bars are kept, 1 one is not."""
    options = options_parser(__doc__, {"--archives": 2000}).parse_args()
    with tempfile.TemporaryDirectory(prefix="quicsat-archives-") as folder:
        found = archives(Path(folder), options.archives)
        slow = bombs(Path(folder))
    return int(slow or any(found[what] for what in ("outside", "special", "lost", "uncaught")))


def archives(folder: Path, count: int) -> Counter[str]:
    """Unpack ``count`` archives, each beside files that must stay as they are."""
    found: Counter[str] = Counter()
    for seed in range(count):
        place = folder / str(seed)
        target = place / "deep" / "target"
        target.mkdir(parents=True)
        for name in ("secret", "deep/secret", "deep/passwd"):
            (place / name).write_text("untouched")
        before = outside(place, target)
        content, regular = hostile_archives.hostile(seed)
        try:
            unpack(iter([content]), target, ArchiveLimits(total=10**6))
        except HarnessFault as fault:
            found[f"refused: {fault.code}"] += 1
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            found["uncaught"] += 1
            print(f"archive {seed}: {type(error).__name__}: {error}")
        else:
            kept = Counter(path.read_bytes() for path in target.rglob("*") if path.is_file())
            lost = sum((Counter(regular) - kept).values())
            found["unpacked"] += 1
            found["lost"] += lost
            if lost:
                print(f"archive {seed}: {lost} regular files are lost")
        found["outside"] += outside(place, target) != before
        found["special"] += sum(
            not (each.is_file() or each.is_dir()) or each.is_symlink() for each in target.rglob("*")
        )
        found["files"] += sum(each.is_file() for each in target.rglob("*"))
        shutil.rmtree(place)
    print(
        counts_table(
            [
                ("archives", count),
                *((what, found[what]) for what in sorted(found) if what.startswith(("refused", "unpacked"))),
                ("regular files written", found["files"]),
                ("regular files lost of whole archives", found["lost"]),
                ("archives that changed anything outside of the target", found["outside"]),
                ("links, devices, pipes made", found["special"]),
                ("uncaught exceptions", found["uncaught"]),
            ]
        )
    )
    return found


def outside(place: Path, target: Path) -> set[tuple[str, str]]:
    """Names and contents of all that is not below ``target``."""
    return {
        (str(path), hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
        for path in place.rglob("*")
        if target not in path.parents
    }


def bombs(folder: Path) -> bool:
    """Unpack every bomb with the limits of an endpoint's logs; whether one burned too long or wrote too much."""
    table = PrettyTable(["bomb", "ended by", "seconds", "of them CPU", "on disk", "files"], align="l")
    bad = False
    for name, bomb in hostile_archives.BOMBS.items():
        target = folder / "bomb"
        target.mkdir()
        begin, cpu = time.monotonic(), time.process_time()
        try:
            unpack(bomb(), target, LIMITS)
            end = "its own end"
        except HarnessFault as fault:
            end = fault.code
        seconds, cpu = time.monotonic() - begin, time.process_time() - cpu
        files = [path for path in target.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        bad |= seconds > LONGEST or size > 2 * LIMITS.total or len(files) > LIMITS.files
        table.add_row([name, end, f"{seconds:.1f}", f"{cpu:.1f}", byte_size(size), len(files)])
        shutil.rmtree(target)
    print(table)
    print(f"memory at most: {byte_size(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
