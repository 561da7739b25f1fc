"""The key that identifies a run, and the files that it transfers."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from quicsat.model.names import pair_folder

LEVELS = 3
"""Directories of a run's path, below its campaign."""


class RunKey(NamedTuple):
    """Identifies a run within its campaign. Its text is its path: ``quic-go_picoquic+bbr/sat/1``."""

    server: str
    client: str
    """Names of implementations or variants."""
    test_case: str
    repetition: int
    """Counted from 1."""

    @property
    def path(self) -> PurePosixPath:
        """Directory of the run, relative to the campaign's directory."""
        return PurePosixPath(str(self))

    def __str__(self) -> str:
        return f"{pair_folder(self.server, self.client)}/{self.test_case}/{self.repetition}"


@dataclass(frozen=True)
class File:
    """A file that was offered by the server, or found at the client."""

    name: str
    size: int
    sha256: str
