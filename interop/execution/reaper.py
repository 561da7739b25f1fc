"""A process of its own that outlives a killed campaign just long enough to remove what it left at the daemon.

It reads its standard input, which the campaign holds open: end of file without a farewell means that the campaign died.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from interop.errors import HarnessFault, MachineError
from interop.execution.remote import connected, from_words, in_words
from interop.model import Host

FAREWELL = b"done"
PASSES = 3
"""Looks in a row that must find nothing: a create that was under way may appear late."""


@contextmanager
def watched_over(hosts: Sequence[Host], campaign: str) -> Iterator[None]:
    """A reaper for ``campaign`` at the daemons of ``hosts`` while the block runs; it does nothing if the block is left.

    It hears of the hosts through its standard input: their addresses are private, and words of a command are not.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "interop.execution.reaper", campaign],
        cwd=Path(__file__).resolve().parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(in_words(hosts).encode() + b"\n")
    process.stdin.flush()
    try:
        yield
    finally:
        process.communicate(FAREWELL)


def main(campaign: str) -> None:
    """Wait for the end of the campaign, and clean up after it if it said no farewell."""
    words, _, last = sys.stdin.buffer.read().partition(b"\n")
    if last == FAREWELL:
        return
    threads = [threading.Thread(target=_sweep, args=(host, campaign)) for host in from_words(words.decode())]
    for thread in threads:
        thread.start()


def _sweep(host: Host, campaign: str) -> None:
    try:
        with connected(host, campaign) as daemon:
            daemon.sweep(campaign, passes=PASSES)
    except (HarnessFault, MachineError):
        return  # the daemon is gone too; the next start sweeps


if __name__ == "__main__":
    main(sys.argv[1])
