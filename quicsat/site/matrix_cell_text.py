"""The text of a matrix cell: state, glyph (so that colour is never the only sign) and numbers; pure."""

from dataclasses import dataclass
from typing import NamedTuple

from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import Outcome
from quicsat.model.text import counted
from quicsat.model.units import MBPS, percent
from quicsat.results.summary import FRAGILE_MARK, VIRTUAL_ONLY_MARK, Cell

MISSING = "missing"
PARTIAL = "partial"
SEALED = "sealed"
"""No key that an endpoint logged opens the packets that the test is about."""


class CellState(NamedTuple):
    """How an outcome is shown."""

    key: str
    """In addresses and style sheets."""
    glyph: str
    words: str


CELL_STATES: tuple[CellState, ...] = (
    CellState(Outcome.SUCCEEDED, "✓", "succeeded"),
    CellState(PARTIAL, "~", "fewer repetitions than planned"),
    CellState(Outcome.TIMEOUT, "T", "timeout"),
    CellState(Outcome.FAILED, "×", "failed"),
    CellState(Outcome.UNSUPPORTED, "–", "unsupported"),
    CellState(SEALED, "?", "not judged without keys"),
    CellState(Outcome.ERROR, "!", "harness error"),
    CellState(Outcome.SKIPPED, "»", "skipped"),
    CellState(MISSING, "·", "not run"),
)
BY_KEY = {state.key: state for state in CELL_STATES}
SHADES = 10
"""The best shade of efficiency; the worst is 0."""


@dataclass(frozen=True)
class CellText:
    """One cell, ready to be shown."""

    state: CellState
    value: str
    """Mean goodput, or the mean time of a workload; empty if no repetition succeeded."""
    note: str
    """Mean efficiency, with a mark if the pair is fragile, or how many repetitions ended how: ``8/10 2T``; and a mark
    if the pair holds in virtual time only."""
    shade: int | None
    """0 to ``SHADES``, of the mean efficiency."""
    protocol: str
    """Empty for the usual one."""
    attempts: str = ""
    """``4 attempts, 2 excluded``; empty if there was one per repetition, and all of them count."""
    unit: str = "Mbit/s"
    """Of ``value``: Mbit/s or s."""

    @property
    def text(self) -> str:
        """``7.96``, ``1.85 s``, or the glyph where there is no number."""
        return (f"{self.value} s" if self.unit == "s" else self.value) if self.value else self.state.glyph


def shown(cell: Cell | None) -> CellText:
    """The text of a cell in the matrix; None is a pair without a cell."""
    if cell is None:
        return CellText(BY_KEY[MISSING], "", "", None, "")
    share = cell.efficiency.mean if cell.efficiency else None
    return CellText(
        state=state(cell),
        value=f"{cell.time.mean:.3g}" if cell.time else goodput(cell.goodput.mean) if cell.goodput else "",
        note=" ".join(filter(None, (_note(cell, share), VIRTUAL_ONLY_MARK if cell.virtual_only else ""))),
        shade=None if share is None else round(min(max(share, 0.0), 1.0) * SHADES),
        protocol="" if cell.protocol is Protocol.HQ else cell.protocol.value,
        attempts=attempts(cell),
        unit="s" if cell.time else "Mbit/s",
    )


def attempts(cell: Cell) -> str:
    """``4 attempts, 2 excluded``; empty if there was one per repetition, and all of them count."""
    if not (cell.repeated or cell.excluded):
        return ""
    return f"{counted(cell.attempts, 'attempt')}, {cell.excluded} excluded"


def state(cell: Cell) -> CellState:
    """The one outcome of all planned repetitions, or ``partial`` where they differ."""
    counts = _counts(cell)
    if not counts:
        return BY_KEY[Outcome.SUCCEEDED if cell.succeeded else MISSING]
    if cell.succeeded == 0 and len(counts) == 1:
        return BY_KEY[next(iter(counts))]
    return BY_KEY[PARTIAL]


def _counts(cell: Cell) -> dict[str, int]:
    counts = {
        Outcome.TIMEOUT: cell.timeout,
        Outcome.FAILED: cell.failed,
        Outcome.UNSUPPORTED: cell.unsupported - cell.sealed,
        SEALED: cell.sealed,
        Outcome.ERROR: cell.error,
        Outcome.SKIPPED: cell.skipped,
        MISSING: cell.not_run,
    }
    return {key: count for key, count in counts.items() if count}


def _note(cell: Cell, share: float | None) -> str:
    counts = _counts(cell)
    if cell.succeeded == 0 and len(counts) == 1:
        return ""
    if counts:
        total = max(cell.planned, cell.n + cell.error + cell.skipped)
        told = " ".join(f"{count}{BY_KEY[key].glyph}" for key, count in counts.items())
        return f"{cell.succeeded}/{total} {told}"
    mark = f" {FRAGILE_MARK}" if cell.goodput and cell.goodput.fragile else ""
    return "" if share is None else f"{percent(share)}{mark}"


def goodput(rate: float) -> str:
    """``7958000.0`` bit/s -> ``"7.96"``, ``18900000.0`` -> ``"18.9"`` Mbit/s."""
    return f"{rate / MBPS:.{1 if rate >= 10 * MBPS else 2}f}"
