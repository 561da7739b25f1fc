"""Ends containers that write more to the disk of their daemon than they may.

Few storage drivers can limit that themselves (overlay2 on XFS with project quotas). So the daemon is asked for the size
of each container's own layer, which it finds by looking at all files in it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from quicsat.docker.containers import Container
from quicsat.model.errors import HarnessFault
from quicsat.model.outcomes import ErrorCode
from quicsat.model.units import byte_size

PERIOD = 1.0
"""Seconds between two looks."""


class DiskMonitor:
    """Looks at containers while a block runs, see :meth:`watching`."""

    def __init__(self, limit: int) -> None:
        """``limit``: bytes that each container may write."""
        self._limit = limit
        self._containers: dict[str, Container] = {}
        self._fault = ""
        self._ended = threading.Event()

    def add(self, name: str, container: Container) -> None:
        """Look at a container from now on."""
        self._containers = self._containers | {name: container}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look from a background thread until the block is left.

        Raises :class:`HarnessFault` (artefact-limit) at the end of the block if a container wrote too much.
        """
        thread = threading.Thread(target=self._watch, daemon=True, name="disk")
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
        self._look()
        if self._fault:
            raise HarnessFault(ErrorCode.ARTEFACT_LIMIT, self._fault)

    def _watch(self) -> None:
        while not self._fault and not self._ended.wait(PERIOD):
            self._look()

    def _look(self) -> None:
        for name, container in self._containers.items():
            if not self._fault and (size := container.written()) > self._limit:
                self._fault = f"The {name} wrote {byte_size(size)} to its disk, more than {byte_size(self._limit)}."
                container.kill()
