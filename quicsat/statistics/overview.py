"""Table II of arXiv 2202.08228 and its relatives: test cases and implementations in a few numbers; pure."""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quicsat.model.emulated_link import loss_share
from quicsat.model.implementation import Implementation, Role
from quicsat.model.results import ResultSet
from quicsat.model.test_case import TestCase
from quicsat.statistics.intervals import over_partners
from quicsat.statistics.samples import EFFICIENCY, GOODPUT, PairOutcome, Sample, find, samples

THRESHOLD = 0.1
"""Efficiency between the two clusters of Fig. 6."""


@dataclass(frozen=True)
class Scenario:
    """A row of Table II. Means and maxima are over the repetitions that succeeded, of whichever pair."""

    test_case: TestCase
    repetitions: int
    """That succeeded and have a goodput."""
    mean: float | None
    median: float | None
    deviation: float | None
    """Standard deviation of a sample."""
    maximum: float | None
    """Goodput, bit/s."""
    mean_efficiency: float | None
    highest_efficiency: float | None
    """Goodput as a share of what the forward link offered (equation 1 of the paper); None where that is unknown."""
    pairs: int
    """Conclusive pairs: succeeded, timed out or failed."""
    timeouts: int
    failures: int
    """Pairs, by their first repetition that did not succeed."""
    left_out: Mapping[PairOutcome, int]
    """Inconclusive pairs: unsupported, not run, or with harness errors only."""

    def share(self, pairs: int) -> float | None:
        """Share of the conclusive pairs, 0..1."""
        return pairs / self.pairs if self.pairs else None


def scenario(result_set: ResultSet, case: TestCase) -> Scenario:
    """A row of Table II."""
    many = samples(result_set, case.name, GOODPUT)
    values = [value for sample in many for value in sample.values]
    shares = [value for sample in samples(result_set, case.name, EFFICIENCY) for value in sample.values]
    pair_outcomes = Counter(sample.pair_outcome for sample in many)
    pairs = (
        pair_outcomes[PairOutcome.SUCCEEDED] + pair_outcomes[PairOutcome.TIMEOUT] + pair_outcomes[PairOutcome.FAILED]
    )
    inconclusive = (PairOutcome.UNSUPPORTED, PairOutcome.ERROR, PairOutcome.NOT_RUN)
    return Scenario(
        case,
        repetitions=len(values),
        mean=statistics.fmean(values) if values else None,
        median=statistics.median(values) if values else None,
        deviation=statistics.stdev(values) if len(values) > 1 else None,
        maximum=max(values, default=None),
        mean_efficiency=statistics.fmean(shares) if shares else None,
        highest_efficiency=max(shares, default=None),
        pairs=pairs,
        timeouts=pair_outcomes[PairOutcome.TIMEOUT],
        failures=pair_outcomes[PairOutcome.FAILED],
        left_out={
            pair_outcome: pair_outcomes[pair_outcome] for pair_outcome in inconclusive if pair_outcomes[pair_outcome]
        },
    )


# ---- implementations ------------------------------------------------------------------------


@dataclass(frozen=True)
class Marginal:
    """An implementation in one role, over all its partners; each pair counts once."""

    implementation: str
    role: Role
    mean: float | None
    """Of the pairs' mean efficiencies, 0..1."""
    typical: float | None
    """Geometric mean of the efficiency over partners and repetitions, each partner counted once."""
    low: float | None
    high: float | None
    """Ends of the 95 % confidence interval of ``typical`` over further partners and repetitions, at most 1; None with
    fewer than two partners, or where nothing spreads. With one repetition it holds for the seed of this one alone."""
    pairs: int
    """With a number."""
    conclusive: int
    """Conclusive pairs."""


def marginals(many: Sequence[Sample]) -> tuple[Marginal, ...]:
    """Each implementation as server and as client; partners with which nothing was transferred have no number."""
    found = []
    for role in (Role.SERVER, Role.CLIENT):
        groups: dict[str, list[Sample]] = {}
        for sample in many:
            groups.setdefault(sample.server if role is Role.SERVER else sample.client, []).append(sample)
        found += [_marginal(name, role, group) for name, group in groups.items()]
    return tuple(found)


def _marginal(name: str, role: Role, group: Sequence[Sample]) -> Marginal:
    means = [sample.mean for sample in group if sample.mean is not None]
    found = over_partners([sample.by_repetition for sample in group])
    low, high = (found.low, found.high) if found is not None else (None, None)
    conclusive = sum(sample.conclusive > 0 for sample in group)
    return Marginal(
        name,
        role,
        mean=statistics.fmean(means) if means else None,
        typical=found.value if found is not None else None,
        low=low,
        high=min(1.0, high) if high is not None else None,
        pairs=len(means),
        conclusive=conclusive,
    )


# ---- congestion control ---------------------------------------------------------------------

UNKNOWN = "unknown"
FAMILIES = ("Reno", "NewReno", "CUBIC", "BBR", "other", UNKNOWN)
"""As in Fig. 6 of the paper, and what it did not meet."""


def family(implementation: Implementation | None) -> str:
    """One of :data:`FAMILIES`: the default congestion control, all versions of BBR being one."""
    control = implementation.congestion_control if implementation is not None else None
    name = (control.default or "").lower() if control is not None else ""
    if not name:
        return UNKNOWN
    for known in ("newreno", "reno", "cubic", "bbr"):
        if name.replace(" ", "").startswith(known):
            return {"newreno": "NewReno", "reno": "Reno", "cubic": "CUBIC", "bbr": "BBR"}[known]
    return "other"


@dataclass(frozen=True)
class Relation:
    """One pair in two test cases: a point of Fig. 6."""

    server: str
    client: str
    x: float
    y: float
    """Mean efficiencies, 0..1."""
    family: str
    """Of the server's congestion control."""

    @property
    def fast(self) -> bool:
        """Whether it belongs to the upper of the paper's two clusters: above 10 % in the second test case."""
        return self.y > THRESHOLD


def relation(result_set: ResultSet, x: str, y: str) -> tuple[Relation, ...]:
    """Pairs that have a mean in both test cases, which are names or abbreviations; empty if there is no such case."""
    cases = find(result_set, x), find(result_set, y)
    if cases[0] is None or cases[1] is None:
        return ()
    known = {each.name: each for each in result_set.manifest.implementations}
    other = _means(samples(result_set, cases[1].name, EFFICIENCY))
    return tuple(
        Relation(server, client, mean, other[server, client], family(known.get(server)))
        for (server, client), mean in _means(samples(result_set, cases[0].name, EFFICIENCY)).items()
        if (server, client) in other
    )


def _means(many: Iterable[Sample]) -> dict[tuple[str, str], float]:
    return {(sample.server, sample.client): sample.mean for sample in many if sample.mean is not None}


# ---- test cases that belong together --------------------------------------------------------


def sweeps(cases: Sequence[TestCase]) -> list[list[TestCase]]:
    """Groups of test cases that differ in the loss of their links alone, the least loss first; only those of two."""
    groups: dict[object, list[TestCase]] = {}
    for case in cases:
        if case.real:
            continue
        bare = case.emulated.with_both(loss=None)
        groups.setdefault((repr(bare), case.file_sizes), []).append(case)
    ordered = (sorted(group, key=lambda case: loss_share(case.link.forward.loss)) for group in groups.values())
    return [group for group in ordered if len({loss_share(case.link.forward.loss) for case in group}) > 1]


def by_family(cases: Sequence[TestCase]) -> dict[str, list[TestCase]]:
    """The members of each family by its name, in their order."""
    groups: dict[str, list[TestCase]] = {}
    for case in cases:
        if case.family:
            groups.setdefault(case.family.name, []).append(case)
    return groups
