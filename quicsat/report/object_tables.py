"""The objects of workloads: their times by size and type, for tables and figures."""

from collections.abc import Iterable, Sequence

import numpy as np

from quicsat.model.results import ObjectTimes, ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.units import byte_size
from quicsat.report.successes import successes
from quicsat.report.table import Column, Table, Unit

LEVELS = (5, 25, 50, 75, 95)
"""Percentiles of the times of objects."""
ALL = "all"

Kind = tuple[int, str]
"""Size, bytes, and type of objects, empty if the workload is no page."""


def with_objects(results: Iterable[RunResult], case: TestCase) -> list[RunResult]:
    """The runs of a test case that succeeded and show their objects, in the order of ``results``."""
    return [each for each in successes(results, case) if each.measurement is not None and each.measurement.objects]


def by_kind(runs: Iterable[RunResult]) -> dict[Kind, list[ObjectTimes]]:
    """The objects of all ``runs`` by size and type, the smallest first."""
    groups: dict[Kind, list[ObjectTimes]] = {}
    for run in runs:
        for each in run.measurement.objects if run.measurement else ():
            groups.setdefault((each.size, each.type.value if each.type else ""), []).append(each)
    return dict(sorted(groups.items()))


def label_of(kind: Kind) -> str:
    """``10 kB`` or ``script, 25.75 KiB``."""
    size, name = kind
    return f"{name}, {byte_size(size)}" if name else byte_size(size)


def objects(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """The table of all runs of a campaign."""
    return table_of_objects(results.results, cases)


def table_of_objects(results: Sequence[RunResult], cases: Sequence[TestCase]) -> Table:
    """Percentiles of the times of objects by size, of each pair and of all pairs (Fig. 2 of the SATCOM paper)."""
    columns = (
        Column("test case"), Column("server"), Column("client"), Column("objects"),
        *(Column(f"{level} %", Unit.SECONDS, 3) for level in LEVELS),
        Column("response after, median", Unit.SECONDS, 3), Column("blocked, mean", Unit.SECONDS, 3),
        Column("n", Unit.COUNT),
    )  # fmt: skip
    rows = []
    for case in cases:
        runs = with_objects(results, case)
        pairs = dict.fromkeys((each.server, each.client) for each in runs)
        groups = [(*pair, [each for each in runs if (each.server, each.client) == pair]) for pair in pairs]
        for server, client, group in [*groups, *([(ALL, ALL, runs)] if len(pairs) > 1 else [])]:
            for kind, found in by_kind(group).items():
                rows.append((case.abbreviation, server, client, label_of(kind), *_numbers(found)))
    note = (
        "The table includes the n objects of all successful repetitions. The time of an object begins with its "
        "request, or with the start of its connection if it has its own, and ends with its last byte. An object is "
        "blocked while bytes of it that have arrived wait for earlier bytes."
    )
    return Table("objects", "Times of objects", columns, tuple(rows), (note,))


def _numbers(found: Sequence[ObjectTimes]) -> tuple[float | int, ...]:
    percentiles = np.percentile([each.duration for each in found], LEVELS)
    answers = float(np.median([each.first_byte - each.requested for each in found]))
    waited = float(np.mean([each.blocked for each in found]))
    return (*map(float, percentiles), answers, waited, len(found))
