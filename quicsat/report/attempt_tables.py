"""The table of attempts: how many there were, which are excluded and why, and whether that depends on the outcome."""

from collections.abc import Sequence

from quicsat.model.results import ResultSet
from quicsat.model.test_case import TestCase
from quicsat.report.table import Column, Table, Unit, Value
from quicsat.results.attempts import Tally, by_cell, tally, together
from quicsat.statistics.exclusion import Stratum, dependence

ALL = "all"
_EXCLUDED = (
    "An attempt is excluded by what happened to machine, link or capture, before its outcome is looked at. It is then "
    "repeated, at most three times in a row. A valid attempt is repeated only if resume --retry asks for that."
)
_SHARES = (
    "Passed: valid attempts that succeeded, of those that succeeded, failed or timed out. Would have passed: excluded "
    "attempts that would have succeeded if they were valid, of those whose evidence tells that."
)
_P = (
    "p: exact, of the hypothesis that exclusion does not depend on the outcome within a pair and test case; not "
    "corrected for the number of rows. A small value says that passes and failures were not excluded alike, which "
    "biases the shares."
)


def attempts(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """Attempts per test case and pair, those that are excluded by reason, and a test for bias."""
    columns = (
        Column("test case"), Column("server"), Column("client"), Column("runs", Unit.COUNT),
        Column("attempts", Unit.COUNT), Column("valid", Unit.COUNT), Column("excluded", Unit.COUNT),
        Column("reasons"), Column("passed"), Column("would have passed"), Column("p", Unit.P),
    )  # fmt: skip
    cells = {key: tally(found) for key, found in by_cell(results).items()}
    rows: list[tuple[Value, ...]] = []
    for case in cases:
        mine = {
            key: cells[key]
            for client in results.manifest.clients
            for server in results.manifest.servers
            if (key := (server, client, case.name)) in cells
        }
        rows += [(case.abbreviation, *key[:2], *_row([found])) for key, found in mine.items()]
        if len(mine) > 1:
            rows.append((case.abbreviation, ALL, ALL, *_row([*mine.values()])))
    if len(cases) > 1:
        names = {case.name for case in cases}
        rows.append((ALL, ALL, ALL, *_row([found for key, found in cells.items() if key[2] in names])))
    return Table("attempts", "Attempts, and why some do not count", columns, tuple(rows), (_EXCLUDED, _SHARES, _P))


def _row(cells: Sequence[Tally]) -> tuple[Value, ...]:
    total = together(cells)
    p = dependence(Stratum(each.would_pass, each.would_decide, each.passed, each.decisive) for each in cells)
    reasons = [f"{count} {reason}" for reason, count in total.reasons.items()]
    reasons += [f"{total.retried} repeated with --retry"] if total.retried else []
    return (
        total.runs, total.attempts, total.valid, total.excluded, ", ".join(reasons),
        _share(total.passed, total.decisive), _share(total.would_pass, total.would_decide), p,
    )  # fmt: skip


def _share(part: int, whole: int) -> str:
    """``2/3``; empty if there is nothing to count."""
    return f"{part}/{whole}" if whole else ""
