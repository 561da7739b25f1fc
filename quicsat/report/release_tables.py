"""Tables of a history: releases that were measured, their goodput, and significant steps between them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from quicsat.model.implementation import Role
from quicsat.model.names import RELEASE_SIGN
from quicsat.model.results import ResultSet
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.report.table import Column, Table, Unit, Value
from quicsat.statistics.comparison import ALL, Change, effect_in_words
from quicsat.statistics.intervals import FEWEST, of_repetitions
from quicsat.statistics.releases import ReleaseStep, releases_in
from quicsat.statistics.samples import GOODPUT, samples

UNEXPLAINED = "no changelog"
MEANING = (
    "Role: that of the release. Mean goodput of the repetitions that succeeded. Low and high are the limits of its "
    f"95 % confidence interval; with fewer than {FEWEST} repetitions, they are the lowest and the highest one."
)


def built(results: ResultSet, name: str, dates: Mapping[str, date], faults: Mapping[str, str]) -> Table:
    """What was built: date, checksum and image of each release; ``faults``: why releases are missing, by release.

    Without ``dates``, there is no column for them.
    """
    rows = list[tuple[Value, ...]]()
    for release in releases_in(results, name):
        image = results.manifest.images.get(f"{name}{RELEASE_SIGN}{release}")
        released = (dates[release].isoformat() if release in dates else "",) if dates else ()
        rows.append((release, *released, image.provenance.checksum if image else "", image.id if image else ""))
    columns = (Column("release"), *([Column("date")] if dates else []), Column("checksum"), Column("image"))
    notes = tuple(f"{release} is missing: {fault}" for release, fault in faults.items())
    return Table("releases", f"Releases of {name}", columns, tuple(rows), notes)


def goodput(results: ResultSet, name: str, cases: Iterable[TestCase]) -> Table:
    """A row for each test case, role, partner and release."""
    releases = releases_in(results, name)
    places = {f"{name}{RELEASE_SIGN}{release}": release for release in releases}
    rows: list[tuple[Value, ...]] = []
    for case in cases:
        for sample in samples(results, case.name, GOODPUT):
            for role, end, partner in (
                (Role.SERVER, sample.server, sample.client), (Role.CLIENT, sample.client, sample.server),
            ):  # fmt: skip
                if end in places and sample.outcomes:
                    mean = of_repetitions(sample.values)
                    low, high = (mean.ends or (None, None)) if mean else (None, None)
                    runs = f"{sample.succeeded}/{sample.conclusive}"
                    rows.append((case.name, role, partner, places[end], runs, mean.value if mean else None, low, high))
    order = {release: place for place, release in enumerate(releases)}
    rows.sort(key=lambda row: (str(row[0]), str(row[1]), str(row[2]), order[str(row[3])]))
    columns = (
        Column("test case"), Column("role"), Column("partner"), Column("release"), Column("succeeded"),
        Column("mean", Unit.RATE), Column("low", Unit.RATE), Column("high", Unit.RATE),
    )  # fmt: skip
    return Table("goodput", f"Goodput by release of {name}", columns, tuple(rows), (MEANING,))


def steps(name: str, found: Sequence[ReleaseStep], explained: Mapping[str, str] | None = None) -> Table:
    """A row for each significant change.

    ``explained``: what the changelog of the later release says; without it, there is no column for it.
    """
    rows: list[tuple[Value, ...]] = []
    for step in found:
        for each in step.changes:
            change = each.change
            slower = change.change in (Change.SLOWER, Change.FASTER)
            rows.append(
                (
                    f"{step.before} → {step.after}",
                    each.role,
                    "all" if each.partner == ALL else each.partner,
                    "all" if each.test_case == ALL else each.test_case,
                    change.change,
                    effect_in_words(change)
                    if slower
                    else f"{change.first.succeeded}/{change.first.conclusive} → "
                    f"{change.second.succeeded}/{change.second.conclusive} succeeded",
                    change.p,
                    *([] if explained is None else [explained.get(step.after) or UNEXPLAINED]),
                )
            )
    columns = (
        Column("releases"), Column("role"), Column("partner"), Column("test case"), Column("change"), Column("effect"),
        Column("p", Unit.P), *([] if explained is None else [Column("changelog")]),
    )  # fmt: skip
    blind, pairs = sum(step.comparison.blind for step in found), sum(len(step.comparison.pairs) for step in found)
    few = f"In {blind} of {pairs} comparisons of a pair, too few repetitions succeeded for a significant difference."
    notes = (
        f"{counted(len(found), 'step')} compared as two campaigns are, all of them together at a level of 5 %.",
        *([] if rows else ["None of them changed anything significantly."]),
        *([few] if blind else []),
    )
    return Table("steps", f"Significant steps of {name}", columns, tuple(rows), notes)
