"""Tables of what endpoints negotiated: for each pair in words, for each implementation and role its limits."""

from collections.abc import Iterable, Sequence

from quicsat.model.negotiated import COMMON, DEFAULTS, UNITS
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.report.table import Column, Table
from quicsat.statistics.facts import fact_of


def negotiated(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """What each endpoint stated in each role, a row per fact that any of the runs has."""
    wanted = {case.name for case in cases}
    mine = [result for result in results.results if result.test_case in wanted]
    rows: list[tuple[str, str, str, str]] = []
    for role in ("server", "client"):
        for name in getattr(results.manifest, f"{role}s"):
            runs = [result for result in mine if getattr(result, role) == name]
            facts = [(fact, fact) for fact in COMMON] + [(each, f"{role}.{each}") for each in DEFAULTS]
            for label, fact in facts:
                unit = UNITS.get(label, "")
                if values := values_of(runs, fact):
                    rows.append((name, role, f"{label} [{unit}]" if unit else label, ", ".join(values)))
    columns = (Column("implementation"), Column("role"), Column("fact"), Column("value"))
    note = (
        "The values come from the handshakes of successful runs, over TCP from those of TLS, and of two visits from "
        "the second one. If an endpoint over QUIC did not send a transport parameter, the table shows the default "
        "value that applies. If a fact has several values, runs differ."
    )
    return Table("negotiated", "What endpoints negotiated", columns, tuple(rows), (note,))


def values_of(runs: Iterable[RunResult], fact: str) -> list[str]:
    """The different values of a fact, the most frequent first; empty if it is unknown."""
    counts: dict[str, int] = {}
    for run in runs:
        if (value := fact_of(run, fact)) is not None:
            counts[str(value)] = counts.get(str(value), 0) + 1
    return sorted(counts, key=lambda value: (-counts[value], value))
