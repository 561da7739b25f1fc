"""The tables of campaigns that ``run.py tables`` and ``run.py compare`` show; pure."""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence

from quicsat.model.implementation import CongestionControl, Implementation
from quicsat.model.results import ResultSet
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.model.units import mbit_per_s, percent
from quicsat.report.table import Column, Table, Unit
from quicsat.results.summary import FRAGILE, VIRTUAL_ONLY, figures
from quicsat.statistics.comparison import (
    ALL,
    CHANGED,
    COARSEST,
    UNSURE,
    Change,
    Comparison,
    Conclusion,
    Doubt,
    PairChange,
    change_in_words,
    detectable_in_words,
    geometric_mean_ratio,
    time_in_words,
)
from quicsat.statistics.history import (
    Trend,
    TrendClass,
    count_classes,
    in_words,
    ordered,
    pair_trends,
    server_trends,
    with_joint_steps,
)
from quicsat.statistics.intervals import FEWEST, of_repetitions
from quicsat.statistics.overview import FAMILIES, THRESHOLD, UNKNOWN, Scenario, by_family, marginals, relation, scenario
from quicsat.statistics.samples import (
    EFFICIENCY,
    GOODPUT,
    STREAM_GOODPUT,
    PairOutcome,
    inconclusive,
    positive,
    samples,
)
from quicsat.statistics.significance import LEVEL, SMALLEST_CHANGE
from quicsat.statistics.variance import decompose

MOST_NAMES = 3
"""Pairs that a note of a comparison names."""


def summary(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """Table II: mean and maximum goodput and efficiency, T and × as count and as share, n."""
    rows = [scenario(results, case) for case in cases]
    columns = (
        Column("test case"),
        Column("mean", Unit.RATE),
        Column("mean efficiency", Unit.SHARE, 0),
        Column("max", Unit.RATE, 1),
        Column("max efficiency", Unit.SHARE, 0),
        Column("T", Unit.COUNT),
        Column("×", Unit.COUNT),
        Column("T share", Unit.SHARE, 1),
        Column("× share", Unit.SHARE, 1),
        Column("pairs", Unit.COUNT),
        Column("n", Unit.COUNT),
        Column("median", Unit.RATE),
        Column("standard deviation", Unit.RATE),
    )
    notes = [
        _SUMMARY_NOTE,
        *(
            f"Not included in {row.test_case.abbreviation}: {inconclusive(row.left_out)}."
            for row in rows
            if row.left_out
        ),
    ]
    return Table("summary", "Goodput and efficiency per test case", columns, tuple(map(_summary_row, rows)), (*notes,))


_SUMMARY_NOTE = (
    "The mean, median, standard deviation and maximum are those of the n successful repetitions of all pairs. The "
    "columns T (timed out) and × (failed) count pairs by their first repetition that did not succeed. Shares are "
    "relative to the number of conclusive pairs, that is, pairs that succeeded, timed out or failed."
)


def _summary_row(row: Scenario) -> tuple[float | int | str | None, ...]:
    return (
        row.test_case.abbreviation, row.mean, row.mean_efficiency, row.maximum, row.highest_efficiency,
        row.timeouts, row.failures, row.share(row.timeouts), row.share(row.failures), row.pairs, row.repetitions,
        row.median, row.deviation,
    )  # fmt: skip


def congestion(known: Sequence[Implementation]) -> Table:
    """Table III: congestion control algorithms per implementation, with source and date; unknown where unknown."""
    columns = tuple(map(Column, ("implementation", "default", "known", "HyStart", "source", "date")))
    rows = []
    for each in known:
        control = each.congestion_control or CongestionControl()
        hystart = {True: "yes", False: "no", None: UNKNOWN}[control.hystart]
        words = (control.default, ", ".join(control.known), hystart, control.source, control.date)
        rows.append((each.name, *(word or UNKNOWN for word in words)))
    return Table("congestion", "Congestion control per implementation", columns, tuple(rows))


def implementations(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """Mean efficiency of each implementation in each role."""
    columns = (
        Column("test case"),
        Column("implementation"),
        Column("role"),
        Column("mean efficiency", Unit.SHARE, 1),
        Column("geometric mean", Unit.SHARE, 1),
        Column("low", Unit.SHARE, 1),
        Column("high", Unit.SHARE, 1),
        Column("pairs", Unit.COUNT),
        Column("conclusive pairs", Unit.COUNT),
    )
    rows = [
        (
            case.abbreviation, each.implementation, each.role.value, each.mean, each.typical, each.low, each.high,
            each.pairs, each.conclusive,
        )
        for case in cases
        for each in marginals(samples(results, case.name, EFFICIENCY))
    ]  # fmt: skip
    means = (
        "Means are over the pairs with a successful repetition, and each pair has the same weight. A partner is an "
        "implementation at the other end of the connection."
    )
    intervals = (
        "Low and high bound the 95 % confidence interval of the geometric mean, generalised to other partners and "
        "repetitions. With only one repetition, the interval generalises only to other partners, for the same seed."
    )
    missing = (
        "No interval is given for a single partner (n = 1), or if too many runs are missing to separate the effect of "
        "seeds from that of individual runs."
    )
    return Table(
        "implementations", "Efficiency per implementation and role", columns, tuple(rows), (means, intervals, missing)
    )


def variance(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """Share of the variance of the efficiency due to server, client, pair, seed and repetition."""
    columns = (
        Column("test case"),
        Column("source"),
        Column("share of variance", Unit.SHARE, 0),
        Column("low", Unit.SHARE, 0),
        Column("high", Unit.SHARE, 0),
        Column("pairs", Unit.COUNT),
        Column("n", Unit.COUNT),
    )
    rows, notes, single, incomplete = [], [], [], []
    for case in cases:
        many = samples(results, case.name, EFFICIENCY)
        found = decompose(many)
        if found is None:
            notes.append(f"{case.abbreviation} has too few pairs with values to separate servers from clients.")
            continue
        rows += [
            (
                case.abbreviation,
                part.source,
                part.share,
                *((None, None) if found.outlying else (part.low, part.high)),
                found.pairs,
                found.repetitions,
            )
            for part in found.shares
            if part.source not in ("repetition", "seed") or found.repetitions > found.pairs
        ]
        if found.outlying:
            notes.append(f"{case.abbreviation} has no intervals, because of outliers: {', '.join(found.outlying)}.")
        if found.repetitions == found.pairs:
            single.append(case.abbreviation)
        if empty := sum(not sample.values for sample in many):
            incomplete.append(f"{empty} in {case.abbreviation}")
    if single:
        notes.append(
            f"With one repetition per pair ({', '.join(single)}), the interaction includes the variance "
            "between repetitions."
        )
    if incomplete:
        notes.append(f"Pairs without a successful repetition are not included: {', '.join(incomplete)}.")
    notes.append(
        "The table shows variance components of logarithms, with all sources as random effects. Low and high are the "
        "limits of the 95 % confidence interval. Seed is the variance that all pairs of a repetition have in common, "
        "and repetition is the remaining variance between the repetitions of a pair."
    )
    return Table("variance", "Sources of the variance of the efficiency", columns, tuple(rows), tuple(notes))


def pairs(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """Every pair in every test case."""
    known = any(key[2] == case.name for key in results.virtual_only for case in cases)
    columns = (
        Column("test case"), Column("server"), Column("client"), Column("outcome"), Column("mean", Unit.RATE),
        Column("stream goodput", Unit.RATE), Column("standard deviation", Unit.RATE), Column("lowest", Unit.RATE),
        Column("highest", Unit.RATE), Column("fragile"),
        Column("mean efficiency", Unit.SHARE, 1), Column("succeeded", Unit.COUNT), Column("of", Unit.COUNT),
        *([Column("virtual only")] if known else []),
    )  # fmt: skip
    rows = []
    for case in cases:
        found = (samples(results, case.name, metric) for metric in (GOODPUT, STREAM_GOODPUT, EFFICIENCY))
        for sample, stream, efficiency in zip(*found, strict=True):
            values, mean, spread = sample.values, sample.mean, figures(sample.values)
            key = (sample.server, sample.client, case.name)
            rows.append(
                (
                    case.abbreviation, sample.server, sample.client, sample.pair_outcome.value, mean,
                    stream.mean, statistics.stdev(values) if len(values) > 1 else None, min(values, default=None),
                    max(values, default=None), "yes" if spread and spread.fragile else "", efficiency.mean,
                    sample.succeeded, sample.conclusive,
                    *(["yes" if key in results.virtual_only else ""] if known else []),
                )
            )  # fmt: skip
    notes = (*_GOODPUTS, *([f"Virtual only: the pair {VIRTUAL_ONLY}."] if known else []))
    return Table("pairs", "Goodput per pair", columns, tuple(rows), notes)


def families(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """Every pair in every member of a family, by the values of the swept keys."""
    columns = (
        Column("family"), Column("swept values"), Column("server"), Column("client"), Column("mean", Unit.RATE),
        Column("low", Unit.RATE), Column("high", Unit.RATE), Column("mean completion", Unit.SECONDS, 2),
        Column("succeeded", Unit.COUNT), Column("of", Unit.COUNT),
    )  # fmt: skip
    rows = []
    for members in by_family(cases).values():
        for case in members:
            times = samples(results, case.name, "completion_time")
            for sample, time in zip(samples(results, case.name, GOODPUT), times, strict=True):
                mean = of_repetitions(sample.values)
                numbers = (mean.value, *(mean.ends or (None, None))) if mean else (None, None, None)
                rows.append(
                    (
                        case.family.name if case.family else "", case.family.words if case.family else "",
                        sample.server, sample.client, *numbers,
                        time.mean, sample.succeeded, sample.conclusive,
                    )
                )  # fmt: skip
    note = (
        "The table shows the geometric mean of the goodput of the successful repetitions. Low and high are the limits "
        f"of its 95 % confidence interval over repetitions; with fewer than {FEWEST} of them, they are the lowest and "
        "the highest repetition. All members of a family have the same seeds."
    )
    return Table("families", "Goodput of families", columns, tuple(rows), (note,))


_GOODPUTS = (
    (
        f"A pair is fragile if the standard deviation is more than {percent(FRAGILE)} of the mean: a small difference "
        "of conditions may change its goodput as much."
    ),
    (
        "The goodput (mean, standard deviation, lowest, highest) is the size of the files divided by the time from the "
        "first to the last 1-RTT packet that the client receives."
    ),
    (
        "The stream goodput (QUIC only) is the size divided by the time from the first to the last new byte of the "
        "streams. It therefore excludes idle time before the response and a late CONNECTION_CLOSE."
    ),
)


def clusters(results: ResultSet, x: str, y: str) -> Table:
    """The two clusters of Fig. 6: pairs above and below 10 % in ``y``, by the congestion control of their servers."""
    points = relation(results, x, y)
    columns = (
        Column("server's congestion control"),
        Column(f"pairs above {percent(THRESHOLD)}", Unit.COUNT),
        Column(f"pairs up to {percent(THRESHOLD)}", Unit.COUNT),
        Column(f"highest efficiency in {y}", Unit.SHARE, 1),
        Column(f"servers above {percent(THRESHOLD)}"),
    )
    rows = []
    for name in FAMILIES:
        group = [point for point in points if point.family == name]
        fast = [point for point in group if point.fast]
        if group:
            servers = ", ".join(sorted({point.server for point in fast}))
            rows.append((name, len(fast), len(group) - len(fast), max(point.y for point in group), servers))
    note = (
        f"The table includes the n = {counted(len(points), 'pair')} with a successful repetition in both {x} and {y}."
    )
    return Table("clusters", f"Clusters of pairs in {y}", columns, tuple(rows), (note,))


# ---- compare --------------------------------------------------------------------------------


def comparison(
    found: Comparison, first: str, second: str, unit: Unit = Unit.RATE, *, everything: bool = False
) -> Table:
    """Implementations and pairs that changed from ``first`` to ``second``; pairs without a change too, if asked for."""
    members = any(pair.members for pair in (*found.groups, *found.pairs))
    columns = (
        Column("test case"), Column("server"), Column("client"), Column("change"),
        Column(f"mean, {first}", unit), Column(f"mean, {second}", unit), Column("difference", Unit.SHARE, 1),
        Column("low", Unit.SHARE, 1), Column("high", Unit.SHARE, 1), Column("corrected p", Unit.P),
        Column(f"succeeded, {first}"), Column(f"succeeded, {second}"),
        *([Column("members in this direction")] if members else []),
    )  # fmt: skip
    rows = [
        (
            pair.first.test_case, pair.first.server, pair.first.client, change_in_words(pair.change, found.metric),
            pair.first.mean, pair.second.mean, pair.ratio,
            *((pair.effect and pair.effect.interval) or (None, None)), pair.p,
            f"{pair.first.succeeded}/{pair.first.conclusive}", f"{pair.second.succeeded}/{pair.second.conclusive}",
            *([pair.members] if members else []),
        )
        for pair in (*found.groups, *found.pairs)
        if everything or pair.change in CHANGED or pair.perhaps_worse
    ]  # fmt: skip
    return Table("comparison", f"{first} → {second}", columns, tuple(rows), tuple(_verdict(found)))


def _verdict(found: Comparison) -> list[str]:
    counts = found.counts
    changes = ", ".join(
        f"{counts[change]} {change_in_words(change, found.metric)}" for change in Change if counts[change]
    )
    overall = geometric_mean_ratio(found.pairs)
    notes = [f"Of {counted(len(found.pairs), 'pair')}: {changes or 'none to compare'}."]
    notes += [f"Image that changed: {each}." for each in found.changed_images]
    if overall is not None:
        change = f"{overall * 100:+.1f} % (geometric mean)"
        notes.append(f"The change of {found.metric} over all pairs with numbers in both is {change}.")
    if found.identical:
        notes.append(
            f"{_pairs(found.identical)} gave the same results to the bit with all common seeds, so no test is needed."
        )
    notes += found.notes
    if found.tests or found.identical < len(found.pairs) or not found.pairs:
        zero = any(
            pair.ratio is not None and not positive(pair.first.values, pair.second.values) for pair in found.pairs
        )
        means = "geometric means, and with a value of 0, of arithmetic means" if zero else "geometric means"
        notes.append(f"{_correction(found.tests, found.metric)} Differences are those of {means}.")
    notes += [f"{time_in_words(each)}." for each in found.times]
    if sizes := detectable_in_words(found):
        notes.append(sizes)
    return [*notes, *_not_shown(found)]


def _not_shown(found: Comparison) -> list[str]:
    """What the comparison cannot show."""
    notes, side = [], "campaign" if found.metric == GOODPUT else "test case"
    if any(found.counts[change] for change in UNSURE):
        notes.append(
            "Changes that are not significant may be due to chance: there are too few repetitions to be certain."
        )
    for doubt, words in _DOUBTS.items():
        if some := found.with_doubt(doubt):
            notes.append(f"{_pairs(len(some))} {words.format(metric=found.metric, side=side)}{_with(some)}.")
    if lost := found.counts[Change.LOST]:
        notes.append(f"{_pairs(lost)} had a valid result in the first {side}, and none in the second.")
    if found.errors:
        notes.append(f"Some runs of the second {side} ended with a fault of quicsat or of the machine.")
    if found.nothing:
        notes.append(f"No pair has a valid result in both {side}s.")
    notes += [*found.gaps, *([f"Second {side}: {found.unfinished}"] if found.unfinished else [])]
    if found.conclusion is Conclusion.UNDECIDED:
        notes.append("Undecided: something may be worse that this comparison cannot show.")
    if found.unlike:
        notes += [*found.unlike, f"{found.conclusion.value.capitalize()}."]
    return notes


_DOUBTS = {
    Doubt.BLIND: f"could have {percent(COARSEST)} less {{metric}} without a significant change",
    Doubt.MISSING: "had no result in some repetitions",
    Doubt.NO_NUMBER: "succeeded, and {metric} is not known of all runs",
    Doubt.NEW_FAILURE: "failed, and had no valid result in the first {side}",
    Doubt.PROTOCOL: "used another application protocol than in the first {side}",
}


def _with(some: Sequence[PairChange]) -> str:
    """Which pairs, if these are few."""
    names = [f"{each.first.test_case}, {each.first.server}, {each.first.client}" for each in some]
    return f": {'; '.join(names)}" if len(names) <= MOST_NAMES else ""


def _pairs(count: int) -> str:
    return counted(count, "pair")


def _correction(tests: int, metric: str) -> str:
    """How p-values were corrected, or why there are none."""
    if not tests:
        return (
            f"No change can be significant (p at most {LEVEL:g}), because there are too few repetitions for any test."
        )
    corrected = (
        f"p-values are corrected for {tests} tests (Holm)" if tests > 1 else "p-values are those of the only test"
    )
    rule = f"A change is significant if its p-value is at most {LEVEL:g}"
    return f"{corrected}. {rule}, a change of {metric} only if it is also at least {percent(SMALLEST_CHANGE)}."


# ---- long term ------------------------------------------------------------------------------


def history(campaigns: Sequence[ResultSet], cases: Sequence[TestCase]) -> Table:
    """Every pair, and every server over all its pairs, in all campaigns: class, steps of goodput, new images."""
    columns = (
        Column("test case"), Column("server"), Column("client"), Column("class"), Column("campaigns"),
        Column("last", Unit.RATE), Column("steps"), Column("images changed"),
    )  # fmt: skip
    in_order = ordered(campaigns)
    dates = [results.manifest.started[:10] for results in in_order]
    rows, kinds = [], Counter[TrendClass]()
    many = [trends(in_order, case.name, GOODPUT) for case in cases for trends in (server_trends, pair_trends)]
    tested = iter(with_joint_steps(*many))
    for case in cases:
        servers, pairs = next(tested), next(tested)
        kinds.update(count_classes(pairs))
        rows += [_history_row(case, (trend.name[1], ALL), trend, dates) for trend in servers]
        rows += [_history_row(case, trend.name, trend, dates) for trend in pairs]
    notes = [f"Pairs: {in_words(kinds) or 'none'}."]
    if any(row[2] == ALL for row in rows):
        notes.append(_ALL_NOTE)
    return Table("history", counted(len(in_order), "campaign"), columns, tuple(rows), tuple(notes))


_ALL_NOTE = (
    "Rows with the client 'all' show the classes of the server's pairs. ✓ means that all of them succeeded, and ~ that "
    "some of them did."
)


def _history_row(
    case: TestCase, names: tuple[str, ...], trend: Trend, dates: Sequence[str]
) -> tuple[float | str | None, ...]:
    steps = ", ".join(f"{dates[step.at]}: {mbit_per_s(step.before)} → {mbit_per_s(step.after)}" for step in trend.steps)
    signs = {PairOutcome.SUCCEEDED: "✓", PairOutcome.FAILED: "×", PairOutcome.TIMEOUT: "T", PairOutcome.NOT_RUN: "·"}
    outcomes = "".join(
        "~" if names[1] == ALL and outcome in (PairOutcome.FAILED, PairOutcome.TIMEOUT) and mean is not None
        else signs.get(outcome, "?")
        for outcome, mean in zip(trend.outcomes, trend.means, strict=True)
    )  # fmt: skip
    last = next((mean for mean in reversed(trend.means) if mean is not None), None)
    return (
        case.abbreviation, *names, trend.class_in_words, outcomes, last, steps,
        ", ".join(dates[mark] for mark in trend.marks),
    )  # fmt: skip


PER_CAMPAIGN: dict[str, Callable[[ResultSet, Sequence[TestCase]], Table]] = {
    "summary": summary,
    "pairs": pairs,
    "families": families,
    "congestion": lambda results, _: congestion(results.manifest.implementations),
    "implementations": implementations,
    "variance": variance,
}
"""Tables of one campaign, by name; ``clusters`` takes two test cases, ``history`` several campaigns."""
