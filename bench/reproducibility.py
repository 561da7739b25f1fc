"""How far repetitions of a run with one seed are the same; shared by the benchmarks, no script."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np

from quicsat.report.table import Column, Table, Unit
from quicsat.traces.pcap import check

TRACES = ("trace_node_left.pcap", "trace_node_right.pcap")
SAME_DURATION = 0.001
"""Seconds by which durations may differ and still be called the same."""


class Equality(IntEnum):
    """What two repetitions have in common, the least first."""

    NONE = 0
    DURATION = 1
    """From the first to the last packet, to the millisecond."""
    TIMES = 2
    """Time, direction and size of each packet."""
    BYTES = 3
    """Both traces, bit for bit."""

    @property
    def words(self) -> str:
        """For a table."""
        return ("different", "same duration", "same packet times", "bit for bit")[self]


@dataclass(frozen=True)
class Repetition:
    """One run."""

    goodput: float | None
    """Bit/s; None if it did not succeed."""
    traces: Path
    """Directory of both traces."""


@dataclass(frozen=True)
class Reproducibility:
    """Repetitions of a pair with one seed, on an idle and on a busy machine."""

    name: str
    idle: tuple[float, ...]
    """Goodputs, bit/s, of those that succeeded."""
    busy: tuple[float, ...]
    failed: int
    equality: Equality
    """The least that any two of all repetitions have in common with the first."""

    @property
    def difference(self) -> float | None:
        """By what share the mean on the busy machine is higher; None if a mean is missing."""
        return statistics.fmean(self.busy) / statistics.fmean(self.idle) - 1 if self.idle and self.busy else None


def deviation(values: Sequence[float]) -> float | None:
    """Standard deviation as a share of the mean; None of fewer than two."""
    return statistics.stdev(values) / statistics.fmean(values) if len(values) > 1 else None


def equality(first: Path, second: Path) -> Equality:
    """Compares the traces in two directories; a run without traces has nothing in common with any."""
    twos = [(first / name, second / name) for name in TRACES]
    if not all(path.is_file() for two in twos for path in two):
        return Equality.NONE
    if all(one.read_bytes() == other.read_bytes() for one, other in twos):
        return Equality.BYTES
    states = [(check(one), check(other)) for one, other in twos]
    if all(
        one.datagrams.epoch == other.datagrams.epoch
        and np.array_equal(one.datagrams.time, other.datagrams.time)
        and np.array_equal(one.datagrams.from_server, other.datagrams.from_server)
        and np.array_equal(one.datagrams.size, other.datagrams.size)
        for one, other in states
    ):
        return Equality.TIMES
    same = all(abs(one.duration - other.duration) < SAME_DURATION for one, other in states)
    return Equality.DURATION if same else Equality.NONE


def reproducibility(name: str, idle: Sequence[Repetition], busy: Sequence[Repetition]) -> Reproducibility:
    """What repetitions of one pair have in common."""
    both = [*idle, *busy]
    goodputs = [tuple(each.goodput for each in many if each.goodput is not None) for many in (idle, busy)]
    least = min((equality(both[0].traces, each.traces) for each in both[1:]), default=Equality.BYTES)
    return Reproducibility(name, goodputs[0], goodputs[1], sum(each.goodput is None for each in both), least)


def table(found: Sequence[Reproducibility]) -> Table:
    """A row per pair."""
    columns = (
        Column("server and client"),
        Column("n, idle", Unit.COUNT),
        Column("mean, idle", Unit.RATE, 4),
        Column("standard deviation, idle", Unit.SHARE, 3),
        Column("n, busy", Unit.COUNT),
        Column("mean, busy", Unit.RATE, 4),
        Column("standard deviation, busy", Unit.SHARE, 3),
        Column("difference of the means", Unit.SHARE, 3),
        Column("traces"),
        Column("failed", Unit.COUNT),
    )
    rows = tuple(
        (
            each.name, len(each.idle), _mean(each.idle), deviation(each.idle), len(each.busy), _mean(each.busy),
            deviation(each.busy), each.difference, each.equality.words, each.failed,
        )
        for each in found
    )  # fmt: skip
    note = (
        "Repetitions with one seed. Standard deviations are shares of the mean. Traces: what all repetitions, idle and "
        "busy, have in common."
    )
    return Table("reproducibility", "Repetitions with one seed", columns, rows, (note,))


def as_json(found: Sequence[Reproducibility]) -> list[Mapping[str, object]]:
    """One object per pair; goodputs in bit/s."""
    return [
        {
            "pair": each.name,
            "idle": each.idle,
            "busy": each.busy,
            "failed": each.failed,
            "traces": each.equality.words,
        }
        for each in found
    ]


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None
