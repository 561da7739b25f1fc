"""Whether goodput in virtual time is that in real time, pair by pair; pure, shared by the benchmarks, no script."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from quicsat.model.results import ResultSet
from quicsat.report.table import Column, Table, Unit
from quicsat.statistics.samples import GOODPUT, Sample, samples

CLOSE = 0.03
"""Share by which a virtual mean may differ from the real one outside the range of the real repetitions."""
Key = tuple[str, str, str]
"""Test case, server, client."""


class Agreement(StrEnum):
    """How the goodput of a pair in virtual time compares with that in real time."""

    IN_RANGE = "in the range"
    """The virtual mean is within the range of the real repetitions."""
    CLOSE = "within 3 %"
    """It is outside, but within ``CLOSE`` of the real mean."""
    DIFFERS = "differs"
    OUTCOME_DIFFERS = "succeeds in one only"
    FAILS = "fails in both"
    """Left out of the share, as there is no goodput to compare."""


AGREE = frozenset({Agreement.IN_RANGE, Agreement.CLOSE})


@dataclass(frozen=True)
class Distribution:
    """Goodputs of a pair by one clock."""

    values: tuple[float, ...]
    """Bit/s, of the repetitions that succeeded."""
    conclusive: int
    """Repetitions that succeeded or not."""

    @property
    def mean(self) -> float | None:
        """None if none succeeded."""
        return statistics.fmean(self.values) if self.values else None


@dataclass(frozen=True)
class PairFidelity:
    """A pair over a link by both clocks."""

    key: Key
    real: Distribution
    virtual: Distribution

    @property
    def difference(self) -> float | None:
        """By what share the virtual mean is higher; None if a mean is missing."""
        one, other = self.real.mean, self.virtual.mean
        return other / one - 1 if one and other is not None else None

    @property
    def agreement(self) -> Agreement:
        """Decided by the mean of the virtual repetitions."""
        real, mean = self.real.values, self.virtual.mean
        if not real and mean is None:
            return Agreement.FAILS
        if not real or mean is None or self.difference is None:
            return Agreement.OUTCOME_DIFFERS
        if min(real) <= mean <= max(real):
            return Agreement.IN_RANGE
        return Agreement.CLOSE if abs(self.difference) <= CLOSE else Agreement.DIFFERS


def distributions(campaigns: Iterable[ResultSet]) -> dict[Key, Distribution]:
    """Those of all pairs with a conclusive repetition, over all campaigns together."""
    found = dict[Key, list[Sample]]()
    for results in campaigns:
        for case in results.manifest.test_cases:
            for sample in samples(results, case.name, GOODPUT):
                if sample.conclusive:
                    found.setdefault((case.name, sample.server, sample.client), []).append(sample)
    return {
        key: Distribution(
            tuple(value for sample in many for value in sample.values), sum(sample.conclusive for sample in many)
        )
        for key, many in found.items()
    }


def fidelity(real: Iterable[ResultSet], virtual: Iterable[ResultSet]) -> list[PairFidelity]:
    """The pairs that both clocks have measured, in the order of the real campaigns."""
    one, other = distributions(real), distributions(virtual)
    return [PairFidelity(key, one[key], other[key]) for key in one if key in other]


def share(pairs: Sequence[PairFidelity]) -> float | None:
    """Pairs that agree, of those that succeed by at least one clock; None if there are none."""
    judged = [pair.agreement for pair in pairs if pair.agreement is not Agreement.FAILS]
    return sum(each in AGREE for each in judged) / len(judged) if judged else None


def table(pairs: Sequence[PairFidelity]) -> Table:
    """Both distributions of each pair."""
    columns = (
        Column("test case"), Column("server"), Column("client"),
        *(
            Column(f"{name}, {clock}", unit)
            for clock in ("real", "virtual")
            for name, unit in (("mean", Unit.RATE), ("lowest", Unit.RATE), ("highest", Unit.RATE), ("n", Unit.WORDS))
        ),
        Column("difference", Unit.SHARE, 1), Column("virtual mean"),
    )  # fmt: skip
    rows = [
        (
            *pair.key,
            *(
                cell
                for each in (pair.real, pair.virtual)
                for cell in (
                    each.mean, min(each.values, default=None), max(each.values, default=None),
                    f"{len(each.values)}/{each.conclusive}",
                )
            ),
            pair.difference, pair.agreement.value,
        )
        for pair in pairs
    ]  # fmt: skip
    notes = [f"{case}: {words}" for case, words in summary(pairs).items()]
    return Table("fidelity", "Goodput in real and in virtual time", columns, tuple(rows), tuple(notes))


def summary(pairs: Sequence[PairFidelity]) -> dict[str, str]:
    """By test case, and of all together, how many pairs agree."""
    groups = {name: [pair for pair in pairs if pair.key[0] == name] for name in dict.fromkeys(p.key[0] for p in pairs)}
    if len(groups) > 1:
        groups["all"] = list(pairs)
    return {name: _in_words(group) for name, group in groups.items()}


def _in_words(pairs: Sequence[PairFidelity]) -> str:
    counts = [(each, sum(pair.agreement is each for pair in pairs)) for each in Agreement]
    listed = ", ".join(f"{count} {each.value}" for each, count in counts if count)
    agree = share(pairs)
    return f"{listed}; {agree:.0%} of the pairs agree." if agree is not None else f"{listed}."


def as_json(pairs: Sequence[PairFidelity]) -> list[Mapping[str, object]]:
    """One object per pair; goodputs in bit/s."""
    return [
        {
            "test_case": pair.key[0],
            "server": pair.key[1],
            "client": pair.key[2],
            "real": pair.real.values,
            "real_repetitions": pair.real.conclusive,
            "virtual": pair.virtual.values,
            "virtual_repetitions": pair.virtual.conclusive,
            "difference": pair.difference,
            "agreement": pair.agreement.value,
        }
        for pair in pairs
    ]
