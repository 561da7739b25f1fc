"""The interface of a worker: its slots. A slot makes one attempt at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode, Verdict
from quicsat.model.results import Compliance, Measurement, RunResult
from quicsat.model.run import Run

DISTURBED = (ErrorCode.SIMULATOR_LAG, ErrorCode.HOST_STARVED)
"""Error codes that parallel runs can cause."""

Analyse = Callable[[Run, Evidence, Path], tuple[Verdict, Measurement | None]]
"""From evidence and traces of a run to its verdict and metrics."""


@dataclass(frozen=True)
class Outage:
    """Why a worker cannot be used at the moment."""

    reason: str
    """A clause, as ``the Docker daemon at tcp://host does not answer``."""


class Slot(Protocol):
    """Room for one run at a time on a worker."""

    @property
    def worker(self) -> Worker:
        """The worker that has this slot."""

    def attempt(self, run: Run, number: int, directory: Path) -> RunResult:
        """Make attempt ``number`` at ``run``, leave its logs and traces in ``directory`` and return its result.

        Raises ``Interrupted`` if the campaign is stopped, :class:`UserError` if it cannot continue.
        """

    def check_compliance(self, implementation: Implementation, roles: tuple[Role, ...]) -> tuple[Compliance, ...]:
        """Whether an image is compliant in ``roles``; raises :class:`HarnessFault` if the check itself fails."""

    def reset(self, *, alone: bool) -> Outage | None:
        """Remove the testbed; the next attempt opens another. Returns why the worker cannot be used, if so.

        ``alone``: no other run is under way, so remove every container of the campaign on this worker.
        """


class Worker(Protocol):
    """A machine with slots."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    @property
    def slots(self) -> Sequence[Slot]:
        """All its slots."""

    def outage(self) -> Outage | None:
        """Why it cannot be used now; None if it can."""

    def close(self) -> None:
        """Remove everything that the campaign has created there."""


def result_of(
    run: Run, attempt: int, verdict: Verdict, evidence: Evidence | None = None, measurement: Measurement | None = None
) -> RunResult:
    """The result of one attempt, as the journal stores it; without ``evidence``, of one that was not made."""
    made = evidence or Evidence(started="", seed=run.seed)
    return RunResult(*run.key, attempt, verdict, made, measurement, run.protocol)


def disturbed(result: RunResult) -> bool:
    """Whether parallel runs may have invalidated this attempt."""
    host = result.evidence.host
    return result.verdict.code in DISTURBED and host is not None and bool(host.neighbours)
