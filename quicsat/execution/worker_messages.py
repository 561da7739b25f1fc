"""What a campaign and the workers of a cluster send each other."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from quicsat.config.tool_version import release
from quicsat.execution.run_config import RunConfig
from quicsat.model.results import RunResult
from quicsat.model.units import MIB

CHUNK = 4 * MIB
"""Bytes of an image, or of the files of a run, in one message."""
CORE = Path(__file__).resolve().parents[1]


@cache
def code_version() -> str:
    """Version of this program with a digest of its source: campaign and worker must run the same code."""
    digest = hashlib.sha256()
    for path in sorted(CORE.glob("*/*.py")):
        digest.update(path.relative_to(CORE).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{release()} ({digest.hexdigest()[:12]})"


@dataclass(frozen=True)
class RemoteConfig:
    """What a campaign sends a worker before the first run."""

    campaign: str
    run: RunConfig
    real_time_testbeds: int
    """Maximum number of testbeds for the links of the campaign, if it runs in real time."""


@dataclass(frozen=True)
class Registration:
    """What a worker answers to a :class:`RemoteConfig`."""

    host: str
    testbeds: int
    missing_images: tuple[str, ...]
    """Names of the images that its daemon lacks."""


@dataclass(frozen=True)
class AttemptReport:
    """The result of one attempt, as a worker sends it."""

    result: RunResult
    messages: tuple[str, ...]
    """Messages for the user."""
    size: int
    """Bytes of the archive with the files of the run."""


class Service(Protocol):
    """The service of a worker, as far as its connection to the scheduler needs it."""

    name: str
    max_testbeds: int

    def close(self, campaign: str = "", key: str = "") -> None:
        """Stop a campaign and remove everything that it has created."""
