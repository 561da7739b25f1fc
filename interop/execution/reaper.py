"""A process of its own that outlives a killed campaign just long enough to remove what it left at the daemon.

It reads its standard input, which the campaign holds open: end of file without a farewell means that the campaign died.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interop.errors import HarnessFault, MachineError
from interop.execution.daemon import Daemon

FAREWELL = b"done"
PASSES = 3
"""Looks in a row that must find nothing: a create that was under way may appear late."""


@contextmanager
def watched_over(url: str, campaign: str) -> Iterator[None]:
    """A reaper for ``campaign`` at the daemon ``url`` while the block runs; it does nothing if the block is left."""
    process = subprocess.Popen(
        [sys.executable, "-m", "interop.execution.reaper", url, campaign],
        cwd=Path(__file__).resolve().parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        process.communicate(FAREWELL)


def main(url: str, campaign: str) -> None:
    """Wait for the end of the campaign, and clean up after it if it said no farewell."""
    if sys.stdin.buffer.read() == FAREWELL:
        return
    try:
        Daemon(url, campaign).sweep(campaign, passes=PASSES)
    except (HarnessFault, MachineError):
        return  # the daemon is gone too; the next start sweeps


if __name__ == "__main__":
    main(*sys.argv[1:3])
