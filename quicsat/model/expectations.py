"""What the author of an implementation expects of a campaign: known failures, goodput floors, a baseline."""

from dataclasses import dataclass
from pathlib import Path

from quicsat.model.test_case import TestCase


@dataclass(frozen=True)
class CellPattern:
    """Cells by the names of their server, client and test case; an empty tuple fits every name."""

    servers: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    test_cases: tuple[str, ...] = ()
    """Names or abbreviations, of test cases or families."""

    def fits(self, server: str, client: str, case: TestCase) -> bool:
        """Whether a cell is meant."""
        return (
            (not self.servers or server in self.servers)
            and (not self.clients or client in self.clients)
            and (not self.test_cases or any(case.has_label(name) for name in self.test_cases))
        )

    @property
    def entry(self) -> str:
        """As an expectations file has it: ``{server: quic-go, client: [picoquic, quinn], test: sat}``."""
        parts = (("server", self.servers), ("client", self.clients), ("test", self.test_cases))
        values = ((key, names[0] if len(names) == 1 else f"[{', '.join(names)}]") for key, names in parts if names)
        return f"{{{', '.join(f'{key}: {value}' for key, value in values)}}}"

    def __str__(self) -> str:
        parts = (("server", self.servers), ("client", self.clients), ("test case", self.test_cases))
        return ", ".join(f"{role} {' or '.join(names)}" for role, names in parts if names) or "all cells"


@dataclass(frozen=True)
class KnownFailure:
    """Cells that are known not to succeed."""

    cells: CellPattern
    reason: str = ""
    """Why, for example the address of an issue."""


@dataclass(frozen=True)
class GoodputFloor:
    """The least mean goodput of cells."""

    cells: CellPattern
    rate: float
    """bit/s."""


@dataclass(frozen=True)
class Expectations:
    """All expectations of a campaign."""

    known_failures: tuple[KnownFailure, ...] = ()
    floors: tuple[GoodputFloor, ...] = ()
    baseline: Path | None = None
    """File of ``./run.py baseline save``."""
    regression: float | None = None
    """Smallest loss of goodput against the baseline that is unexpected, as a share; None: every loss that ``compare``
    finds."""
