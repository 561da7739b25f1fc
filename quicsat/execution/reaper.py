"""The reaper: a process that removes the containers of a campaign that was killed.

It reads its standard input, which the campaign holds open: end of file without ``FAREWELL`` means that the campaign was
killed.
"""

import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from quicsat.docker.containers import remove_containers
from quicsat.docker.ssh_tunnel import connected
from quicsat.model.errors import HarnessFault, MachineError
from quicsat.model.real_link import Host

FAREWELL = b"done"
PASSES = 3
"""Empty listings in a row before it ends: a container that was being created may appear late."""


@contextmanager
def start_reaper(hosts: Sequence[Host], campaign: str) -> Iterator[None]:
    """Run a reaper for ``campaign`` at the daemons of ``hosts``; it does nothing if the block is left.

    It gets the hosts through its standard input: their addresses are private, but command lines are public.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "quicsat.execution.reaper", campaign],
        cwd=Path(__file__).resolve().parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(pickle.dumps(hosts))
    process.stdin.flush()
    try:
        yield
    finally:
        process.communicate(FAREWELL)


def main(campaign: str) -> None:
    """Wait for the end of the campaign; remove its containers if it was killed."""
    hosts: Sequence[Host] = pickle.load(sys.stdin.buffer)
    if sys.stdin.buffer.read() == FAREWELL:
        return
    threads = [threading.Thread(target=_clean, args=(host, campaign)) for host in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _clean(host: Host, campaign: str) -> None:
    try:
        with connected(host, campaign) as daemon:
            remove_containers(daemon, campaign, passes=PASSES)
    except (HarnessFault, MachineError):
        return  # the daemon is gone, too; the next campaign removes them


if __name__ == "__main__":
    main(sys.argv[1])
