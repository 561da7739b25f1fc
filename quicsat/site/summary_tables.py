"""What the start page of a campaign shows: a matrix per measurement, one for all other test cases; pure.

A page stays small whatever the campaign: measurements beyond ``MOST_CELLS`` have pages of their own, and stand in the
matrix of the tests on the start page.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from quicsat.model.outcomes import Outcome
from quicsat.model.test_case import TestCase
from quicsat.model.units import percent
from quicsat.results.summary import Cell, figures
from quicsat.site import address
from quicsat.site.campaigns import Key, SiteCampaign
from quicsat.site.matrix_cell_text import BY_KEY, CELL_STATES, MISSING, CellState, CellText, attempts, shown, state
from quicsat.site.recent import Past

Found = TypeVar("Found")

MOST_CELLS = 1300
"""Of measurements on the start page."""
MOST_NAMED = 10_000
"""Tests of all pairs up to which the matrix of the tests names those that succeeded; otherwise it counts them."""


@dataclass(frozen=True)
class Place:
    """A cell with the address of its page, relative to the folder of its campaign."""

    shown: CellText
    address: str
    past: Past | None = None
    """In the last campaigns."""


@dataclass(frozen=True)
class Row:
    """All cells of a client."""

    client: str
    cells: tuple[Any, ...]
    """Of each server: a ``Place`` or a ``TestPlace``."""
    total: str


@dataclass(frozen=True)
class Grid:
    """Clients by servers: a cell per pair, and what sums up each client, each server, and all."""

    rows: tuple[Row, ...]
    totals: tuple[str, ...]
    """Per server."""
    total: str


@dataclass(frozen=True)
class Matrix:
    """One measurement; mean efficiencies sum it up."""

    case: TestCase
    grid: Grid


@dataclass(frozen=True)
class OutcomeGroup:
    """Test cases of one pair that have the same outcome."""

    state: CellState
    tests: str
    """Their abbreviations, or how many there are."""


@dataclass(frozen=True)
class Tests:
    """All test cases of a pair in one cell; ``12 of 14``, tests that succeeded of the conclusive ones, sums it up."""

    cases: tuple[TestCase, ...]
    grid: Grid
    counted: bool
    """The tests of a pair that succeeded are not named."""


@dataclass(frozen=True)
class TestPlace:
    """A pair with the address of its page, empty if there is none."""

    address: str
    groups: tuple[OutcomeGroup, ...]
    attempts: str = ""
    """``DC: 4 attempts, 2 excluded; …`` of tests with more attempts than repetitions; empty if there are none."""


def split(campaign: SiteCampaign) -> tuple[tuple[TestCase, ...], tuple[TestCase, ...]]:
    """The measurements with a matrix on the start page, and those with a page of their own."""
    manifest = campaign.results.manifest
    pairs = max(1, len(manifest.servers) * len(manifest.clients))
    fitting = max(1, MOST_CELLS // pairs)
    return campaign.measurements[:fitting], campaign.measurements[fitting:]


def _grid(
    campaign: SiteCampaign,
    cells_of: Callable[[str, str], Found],
    place: Callable[[str, str, Found], object],
    total: Callable[[Iterable[Found]], str],
) -> Grid:
    """``cells_of``: what is found of a server and client, ``place``: how a cell shows it."""
    servers, clients = campaign.manifest.servers, campaign.manifest.clients
    found = [[cells_of(server, client) for server in servers] for client in clients]
    rows = tuple(
        Row(client, tuple(place(server, client, cell) for server, cell in zip(servers, row, strict=True)), total(row))
        for client, row in zip(clients, found, strict=True)
    )
    totals = tuple(total(column) for column in zip(*found, strict=True))
    return Grid(rows, totals, total(cell for row in found for cell in row))


def matrix(campaign: SiteCampaign, case: TestCase, past: Mapping[Key, Past]) -> Matrix:
    """The matrix of one measurement; ``past``: of its cells in the last campaigns."""

    def cell_of(server: str, client: str) -> Cell | None:
        return campaign.cells.get((server, client, case.name))

    def place(server: str, client: str, cell: Cell | None) -> Place:
        key = (server, client, case.name)
        return Place(shown(cell), f"{address.cell(*key)}/index.html" if cell else "", past.get(key) if cell else None)

    return Matrix(case, _grid(campaign, cell_of, place, _mean))


def _mean(cells: Iterable[Cell | None]) -> str:
    spread = figures([cell.efficiency.mean for cell in cells if cell is not None and cell.efficiency is not None])
    return percent(spread.mean) if spread else "–"


def tests(campaign: SiteCampaign) -> Tests | None:
    """The matrix of what has no matrix of its own on the start page; None if there is nothing."""
    cases = tuple(case for case in campaign.results.manifest.test_cases if case not in split(campaign)[0])
    if not cases:
        return None
    manifest = campaign.manifest
    counted = len(cases) * len(manifest.servers) * len(manifest.clients) > MOST_NAMED

    def cells_of(server: str, client: str) -> Sequence[Cell | None]:
        return [campaign.cells.get((server, client, case.name)) for case in cases]

    def place(server: str, client: str, cells: Sequence[Cell | None]) -> TestPlace:
        groups: dict[str, list[str]] = {}
        notes: list[str] = []
        for case, cell in zip(cases, cells, strict=True):
            groups.setdefault(state(cell).key if cell else MISSING, []).append(case.abbreviation)
            if cell is not None and (more := attempts(cell)):
                notes.append(f"{case.abbreviation}: {more}")
        if groups.keys() == {MISSING}:
            return TestPlace("", ())
        ordered = tuple(
            OutcomeGroup(
                BY_KEY[each.key], str(len(names)) if counted and each.key == Outcome.SUCCEEDED else " ".join(names)
            )
            for each in CELL_STATES
            if (names := groups.get(each.key))
        )
        return TestPlace(f"{address.pair(server, client)}/index.html", ordered, "; ".join(notes))

    return Tests(cases, _grid(campaign, cells_of, place, _share), counted)


def _share(pairs: Iterable[Sequence[Cell | None]]) -> str:
    conclusive = [
        cell for cells in pairs for cell in cells if cell is not None and cell.succeeded + cell.failed + cell.timeout
    ]
    good = sum(state(cell).key == Outcome.SUCCEEDED for cell in conclusive)
    return f"{good} of {len(conclusive)}" if conclusive else "–"


def legend(campaign: SiteCampaign) -> list[tuple[CellState, int]]:
    """Each state and how many cells of the campaign are in it; a cell is a pair in one test case."""
    manifest = campaign.results.manifest
    counts = Counter(
        state(cell).key if (cell := campaign.cells.get((server, client, case.name))) else MISSING
        for server in manifest.servers
        for client in manifest.clients
        for case in manifest.test_cases
    )
    return [(each, counts[each.key]) for each in CELL_STATES]


def about(campaign: SiteCampaign) -> dict[str, Any]:
    """What the filters of the page need to know beside what they find in its tables."""
    described = {each.name: each for each in campaign.results.manifest.implementations}
    controls = {
        server: control.default.casefold()
        for server in campaign.results.manifest.servers
        if (control := described[server].congestion_control) is not None and control.default
    }
    return {
        "states": {each.key: [each.glyph, each.words] for each in CELL_STATES},
        "tests": {case.abbreviation: case.name for case in campaign.results.manifest.test_cases},
        "cc": {server: controls.get(server, "unknown") for server in campaign.results.manifest.servers},
    }
