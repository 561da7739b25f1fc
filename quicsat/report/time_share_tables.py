"""What held the pairs of a campaign up, and what would be gained without it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quicsat.model.results import ResultSet, RunResult
from quicsat.model.test_case import TestCase, path_rate
from quicsat.model.text import counted
from quicsat.model.time_shares import AVOIDABLE, FLOW_CONTROL, TimeShare
from quicsat.model.units import byte_size, percent
from quicsat.report.successes import mean, successes
from quicsat.report.table import Column, Table, Unit

ATTRIBUTED = 0.95
"""Of the time of a run, from which on it counts as explained."""
Spent = dict[TimeShare, float]
"""Mean seconds of each share."""


def mean_shares(runs: Iterable[RunResult]) -> tuple[Spent, int]:
    """Of the runs whose shares are known, and how many these are."""
    known = [each.measurement.values for each in runs if each.measurement]
    known = [values for values in known if all(share.metric in values for share in TimeShare)]
    return {share: mean(values[share.metric] for values in known) or 0.0 for share in TimeShare}, len(known)


def attributed(runs: Iterable[RunResult]) -> tuple[int, int]:
    """How many runs have a known reason for ``ATTRIBUTED`` of their time at least, and how many have shares."""
    each = [mean_shares([run]) for run in runs]
    known = [spent for spent, count in each if count]
    return sum(spent[TimeShare.UNKNOWN] <= (1 - ATTRIBUTED) * sum(spent.values()) for spent in known), len(known)


def enough_window(run: RunResult, case: TestCase) -> float | None:
    """Bytes that the link carries in the shortest round trip of a run: a smaller window is a limit. None if unknown."""
    trip = run.measurement.values.get("rtt_min") if run.measurement else None
    return path_rate(case.link) * trip / 8 if trip and case.link.forward.rate else None


def time_shares(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """A row per pair and test case: the largest reason that the endpoints decide; the largest gain first."""
    columns = (
        Column("test case"), Column("server"), Column("client"), Column("completion time", Unit.SECONDS, 2),
        Column("link at its full rate", Unit.SHARE, 1), Column("largest reason"), Column("share", Unit.SHARE, 1),
        Column("time without it, at least", Unit.SECONDS, 2), Column("window that removes it"),
        Column("unknown", Unit.SHARE, 1), Column("n", Unit.COUNT),
    )  # fmt: skip
    rows = list[tuple[str | float | int, ...]]()
    for case in cases:
        found = list[tuple[str | float | int, ...]]()
        runs = successes(results.results, case)
        for server, client in dict.fromkeys((each.server, each.client) for each in runs):
            mine = [each for each in runs if (each.server, each.client) == (server, client)]
            spent, count = mean_shares(mine)
            if not count:
                continue
            total = sum(spent.values())
            reason = max((share for share in TimeShare if share in AVOIDABLE), key=spent.__getitem__)
            window = max((enough for each in mine if (enough := enough_window(each, case))), default=0.0)
            limited = reason in FLOW_CONTROL and window
            found.append((
                case.abbreviation, server, client, total, spent[TimeShare.FULL_RATE] / total, reason.label,
                spent[reason] / total, total - spent[reason], byte_size(window) if limited else "–",
                spent[TimeShare.UNKNOWN] / total, count,
            ))  # fmt: skip
        rows += sorted(found, key=lambda row: -float(row[6]))
    explained, known = attributed(run for case in cases for run in successes(results.results, case))
    unknown = f"at most {percent(1 - ATTRIBUTED)} of the time is unknown"
    note = (
        f"In {explained} of {counted(known, 'run')}, {unknown}. Values are means of n successful repetitions. The "
        "reason is the largest share of the time that the endpoints decide. If it vanished, another reason could take "
        "its place, so the time without it is a lower bound. The window is what the link carries in the shortest round "
        "trip."
    )
    return Table("time-shares", "Shares of the transfer's time", columns, tuple(rows), (note,))


PER_CAMPAIGN = {"time-shares": time_shares}
"""Tables of one campaign, by name."""
