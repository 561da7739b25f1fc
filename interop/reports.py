"""The tables that ``run.py tables`` and ``run.py compare`` show: statistics -> sheets; pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence

from interop.model import Implementation, ResultSet, TestCase
from interop.sheets import Column, Sheet, Unit
from interop.statistics.comparison import (
    BETTER,
    LEVEL,
    UNSURE,
    WORSE,
    Change,
    Comparison,
    geometric_mean_ratio,
)
from interop.statistics.history import Course, classes, jointly, ordered, pair_courses, server_courses
from interop.statistics.overview import FAMILIES, THRESHOLD, UNKNOWN, Scenario, marginals, relation, scenario
from interop.statistics.samples import EFFICIENCY, GOODPUT, Fate, samples, silent
from interop.statistics.variance import decompose
from interop.units import mbit_per_s, percent


def summary(results: ResultSet, cases: Sequence[TestCase]) -> Sheet:
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
        *(f"Left out in {row.test_case.abbreviation}: {silent(row.left_out)}." for row in rows if row.left_out),
    ]
    return Sheet("summary", "Goodput and efficiency per test case", columns, tuple(map(_summary_row, rows)), (*notes,))


_SUMMARY_NOTE = (
    "Mean, median, standard deviation and maximum are over the n repetitions that succeeded, of all pairs. T timed out "
    "and × failed count pairs by their first repetition that did not succeed; shares are of the pairs that say "
    "something."
)


def _summary_row(row: Scenario) -> tuple[float | int | str | None, ...]:
    return (
        row.test_case.abbreviation, row.mean, row.efficiency(row.mean), row.maximum, row.efficiency(row.maximum),
        row.timeouts, row.failures, row.share(row.timeouts), row.share(row.failures), row.pairs, row.repetitions,
        row.median, row.deviation,
    )  # fmt: skip


def congestion(known: Sequence[Implementation]) -> Sheet:
    """Table III: congestion controls per implementation, with source and date; unknown where unknown."""
    columns = tuple(map(Column, ("implementation", "default", "known", "HyStart", "source", "date")))
    rows = []
    for each in known:
        control = each.congestion_control
        hystart = {True: "yes", False: "no", None: UNKNOWN}[control.hystart if control is not None else None]
        rows.append(
            (
                each.name,
                (control.default if control is not None else None) or UNKNOWN,
                ", ".join(control.known) if control is not None and control.known else UNKNOWN,
                hystart,
                (control.source if control is not None else "") or UNKNOWN,
                (control.date if control is not None else "") or UNKNOWN,
            )
        )
    return Sheet("congestion", "Congestion control per implementation", columns, tuple(rows))


def implementations(results: ResultSet, cases: Sequence[TestCase]) -> Sheet:
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
        Column("pairs that say something", Unit.COUNT),
    )
    rows = [
        (
            case.abbreviation, each.implementation, each.role.value, each.mean, each.typical, each.low, each.high,
            each.pairs, each.told,
        )
        for case in cases
        for each in marginals(samples(results, case.name, EFFICIENCY))
    ]  # fmt: skip
    note = (
        "Means over the pairs with a successful repetition, each counted once; low and high are the 95 % confidence "
        "interval of the geometric mean over further partners and repetitions; with one repetition, over further "
        "partners for the seed of this repetition alone. There is none with one partner (n = 1), or where so many runs "
        "are missing that seeds cannot be told from single runs."
    )
    return Sheet("implementations", "Efficiency per implementation and role", columns, tuple(rows), (note,))


def variance(results: ResultSet, cases: Sequence[TestCase]) -> Sheet:
    """How much of the variance of the efficiency is the server's, the client's, the pair's, the seed's and chance."""
    columns = (
        Column("test case"),
        Column("source"),
        Column("share of variance", Unit.SHARE, 0),
        Column("low", Unit.SHARE, 0),
        Column("high", Unit.SHARE, 0),
        Column("pairs", Unit.COUNT),
        Column("n", Unit.COUNT),
    )
    rows, notes = [], []
    for case in cases:
        many = samples(results, case.name, EFFICIENCY)
        found = decompose(many)
        if found is None:
            notes.append(f"{case.abbreviation}: too few pairs with numbers to tell servers from clients.")
            continue
        rows += [
            (case.abbreviation, part.source, part.share, part.low, part.high, found.pairs, found.repetitions)
            for part in found.shares
            if part.source not in ("repetition", "seed") or found.repetitions > found.pairs
        ]
        if found.repetitions == found.pairs:
            notes.append(f"{case.abbreviation}: one repetition per pair; interaction holds what they would differ by.")
        if empty := sum(not sample.values for sample in many):
            notes.append(f"{case.abbreviation}: {empty} pairs have no successful repetition and are left out.")
    notes.append(
        "Variance components of logarithms, all sources random; low and high are the 95 % confidence interval. Seed is "
        "what all pairs of a repetition have in common, repetition what those of a pair differ by beyond that."
    )
    return Sheet("variance", "Who decides about the efficiency?", columns, tuple(rows), tuple(notes))


def pairs(results: ResultSet, cases: Sequence[TestCase]) -> Sheet:
    """Every pair in every test case."""
    columns = (
        Column("test case"), Column("server"), Column("client"), Column("fate"), Column("mean", Unit.RATE),
        Column("standard deviation", Unit.RATE), Column("lowest", Unit.RATE), Column("highest", Unit.RATE),
        Column("mean efficiency", Unit.SHARE, 1), Column("succeeded", Unit.COUNT), Column("of", Unit.COUNT),
    )  # fmt: skip
    rows = []
    for case in cases:
        rate = case.link.forward_rate
        for sample in samples(results, case.name, GOODPUT):
            values, mean = sample.values, sample.mean
            rows.append(
                (
                    case.abbreviation, sample.server, sample.client, sample.fate.value, mean,
                    statistics.stdev(values) if len(values) > 1 else None, min(values, default=None),
                    max(values, default=None), mean / rate if mean is not None and rate else None,
                    sample.succeeded, sample.told,
                )
            )  # fmt: skip
    return Sheet("pairs", "Goodput per pair", columns, tuple(rows))


def clusters(results: ResultSet, x: str, y: str) -> Sheet:
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
    note = f"n = {len(points)} pairs with a successful repetition in both {x} and {y}."
    return Sheet("clusters", f"Clusters of pairs in {y}", columns, tuple(rows), (note,))


# ---- compare --------------------------------------------------------------------------------


def comparison(
    found: Comparison, first: str, second: str, unit: Unit = Unit.RATE, *, everything: bool = False
) -> Sheet:
    """Implementations and pairs that changed from ``first`` to ``second``; pairs without a change too, if asked for."""
    columns = (
        Column("test case"), Column("server"), Column("client"), Column("change"),
        Column(f"mean, {first}", unit), Column(f"mean, {second}", unit), Column("difference", Unit.SHARE, 1),
        Column("corrected p", Unit.P), Column(f"succeeded, {first}"), Column(f"succeeded, {second}"),
    )  # fmt: skip
    rows = [
        (
            pair.first.test_case, pair.first.server, pair.first.client, pair.change.value, pair.first.mean,
            pair.second.mean, pair.ratio, pair.p, f"{pair.first.succeeded}/{pair.first.told}",
            f"{pair.second.succeeded}/{pair.second.told}",
        )
        for pair in (*found.groups, *found.pairs)
        if everything or pair.change in WORSE | BETTER | UNSURE
    ]  # fmt: skip
    return Sheet("comparison", f"{first} → {second}", columns, tuple(rows), tuple(_verdict(found)))


def _verdict(found: Comparison) -> list[str]:
    counts = found.counts
    told = ", ".join(f"{counts[change]} {change.value}" for change in Change if counts[change])
    overall = geometric_mean_ratio(found.pairs)
    notes = [f"Of {len(found.pairs)} pairs: {told or 'none to compare'}."]
    if overall is not None:
        notes.append(f"Over all pairs with numbers in both: {overall * 100:+.1f} % (geometric mean).")
    notes.append(
        f"p-values are corrected for {found.tests} tests (Holm); a change is significant where they are at most "
        f"{LEVEL:g}. Differences are those of geometric means."
    )
    if any(counts[change] for change in UNSURE):
        notes.append("What is not significant may be chance: there are too few repetitions to tell it from flakiness.")
    if found.blind:
        notes.append(f"In {found.blind} pairs no change of speed could be shown: they have too few repetitions.")
    return notes


# ---- long term ------------------------------------------------------------------------------


def history(campaigns: Sequence[ResultSet], cases: Sequence[TestCase]) -> Sheet:
    """Every pair and every server over all campaigns: its class, the steps of its goodput, when images changed."""
    columns = (
        Column("test case"), Column("server"), Column("client"), Column("class"), Column("campaigns"),
        Column("last", Unit.RATE), Column("steps"), Column("images changed"),
    )  # fmt: skip
    in_order = ordered(campaigns)
    dates = [results.manifest.started[:10] for results in in_order]
    rows, kinds = [], Counter[str]()
    many = [courses(in_order, case.name, GOODPUT) for case in cases for courses in (server_courses, pair_courses)]
    tested = iter(jointly(*many))
    for case in cases:
        servers, pairs = next(tested), next(tested)
        kinds.update({kind.value: count for kind, count in classes(pairs).items()})
        rows += [_history_row(case, (course.name[1], "all"), course, dates) for course in servers]
        rows += [_history_row(case, course.name, course, dates) for course in pairs]
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return Sheet("history", f"{len(in_order)} campaigns", columns, tuple(rows), (f"Pairs: {told or 'none'}.",))


def _history_row(
    case: TestCase, names: tuple[str, ...], course: Course, dates: Sequence[str]
) -> tuple[float | str | None, ...]:
    steps = ", ".join(
        f"{dates[step.at]}: {mbit_per_s(step.before)} → {mbit_per_s(step.after)}" for step in course.steps
    )
    signs = {Fate.SUCCEEDED: "✓", Fate.FAILED: "×", Fate.TIMEOUT: "T", Fate.NOT_RUN: "·"}
    signs_told = "".join(signs.get(fate, "?") for fate in course.fates)
    last = next((mean for mean in reversed(course.means) if mean is not None), None)
    return (
        case.abbreviation, *names, course.kind.value, signs_told, last, steps,
        ", ".join(dates[mark] for mark in course.marks),
    )  # fmt: skip


PER_CAMPAIGN: dict[str, Callable[[ResultSet, Sequence[TestCase]], Sheet]] = {
    "summary": summary,
    "pairs": pairs,
    "congestion": lambda results, _: congestion(results.manifest.implementations),
    "implementations": implementations,
    "variance": variance,
}
"""Tables of one campaign, by name; ``clusters`` takes two test cases, ``history`` several campaigns."""
