"""What held the pairs of a campaign up, and what would be gained without it."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from statistics import fmean

from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.test_case import Link, TestCase, path_rate
from quicsat.model.text import counted
from quicsat.model.time_shares import AVOIDABLE, FLOW_CONTROL, TimeShare
from quicsat.model.units import byte_size, percent, seconds
from quicsat.report.table import Column, Table, Unit

ATTRIBUTED = 0.95
"""Of the time of a run, from which on it counts as explained."""
LEAST_SHARE = 0.05
"""Of a transfer's time, for a share that words name."""
TO_LAST_BYTE = "the time ends with the last byte that arrived"
"""What the time of a transfer is that timed out."""
NO_SHARES = "nothing states what the link did, or the packets do not show what the server waited for"
"""Why runs that ended have none; docs/reference/time-shares.md."""
Spent = dict[TimeShare, float]
"""Mean seconds of each share."""


def with_shares(results: ResultSet, case: TestCase) -> list[RunResult]:
    """The runs of a test case whose shares are known: of transfers that succeeded, and of those that timed out."""
    return [each for each in results.results if each.test_case == case.name and shares_of(each)]


def shares_of(run: RunResult) -> Spent:
    """Those that the analysis of a run stored; empty if they are not known."""
    return shares_in(values_of(run))


def values_of(run: RunResult) -> Mapping[str, float]:
    """The metrics of a run."""
    return run.measurement.values if run.measurement else {}


def shares_in(values: Mapping[str, float]) -> Spent:
    """Those among metrics; empty if they are not known."""
    if any(share.metric not in values for share in TimeShare):
        return {}
    return {share: values[share.metric] for share in TimeShare}


@dataclass(frozen=True)
class _Pair:
    """Means of the runs of a pair over a link."""

    key: tuple[str, str, str]
    """Test case, server and client."""
    spent: Spent
    window: float
    """Bytes that flow control must allow, 0 if unknown."""
    count: int
    timeouts: int

    @property
    def total(self) -> float:
        """Seconds."""
        return sum(self.spent.values())

    @property
    def reason(self) -> TimeShare:
        """The largest one that the endpoints decide."""
        return max((share for share in TimeShare if share in AVOIDABLE), key=self.spent.__getitem__)

    def share(self, of: TimeShare) -> float:
        """A share of the total."""
        return self.spent[of] / self.total


def _pairs(results: ResultSet, case: TestCase) -> list[_Pair]:
    """Those with shares, the largest gain first."""
    by_pair: dict[tuple[str, str], list[RunResult]] = {}
    for run in with_shares(results, case):
        by_pair.setdefault((run.server, run.client), []).append(run)
    found = list[_Pair]()
    for pair, runs in by_pair.items():
        each = [shares_of(run) for run in runs]
        spent = {share: fmean(one[share] for one in each) for share in TimeShare}
        window = max((enough for run in runs if (enough := enough_window(values_of(run), case.link))), default=0.0)
        found.append(_Pair((case.abbreviation, *pair), spent, window, len(runs), timeouts(runs)))
    return sorted(found, key=lambda each: -each.share(each.reason))


def _lacks_shares(run: RunResult, cases: Container[str]) -> bool:
    ended = run.verdict.outcome in (Outcome.SUCCEEDED, Outcome.TIMEOUT)
    return ended and run.test_case in cases and not shares_of(run)


def timeouts(runs: Iterable[RunResult]) -> int:
    """How many of the runs timed out."""
    return sum(run.verdict.outcome is Outcome.TIMEOUT for run in runs)


def attributed(runs: Iterable[RunResult]) -> int:
    """How many of the runs, which have shares, have a known reason for ``ATTRIBUTED`` of their time at least."""
    known = map(shares_of, runs)
    return sum(spent[TimeShare.UNKNOWN] <= (1 - ATTRIBUTED) * sum(spent.values()) for spent in known)


def enough_window(values: Mapping[str, float], link: Link) -> float | None:
    """Bytes that the link carries in the shortest round trip of a run: a smaller window is a limit. None if unknown.

    ``values``: metrics of the run; without the round trip, as of runs that timed out, the delay of the link counts.
    """
    trip = values.get("rtt_min") or link.round_trip_delay
    return path_rate(link) * trip / 8 if trip and link.forward.rate else None


def what_would_help(spent: Spent, window: float) -> str:
    """A lower bound of the time without each share that the endpoints decide, the largest first; empty if none is
    ``LEAST_SHARE`` of the time.

    ``window``: bytes that flow control must allow, 0 if unknown.
    """
    total = sum(spent.values())
    large = [share for share in TimeShare if share in AVOIDABLE and spent.get(share, 0.0) >= LEAST_SHARE * total > 0]
    parts = list[str]()
    for share in sorted(large, key=lambda each: -spent[each]):
        how = f" (a window of {byte_size(window)} or more)" if share in FLOW_CONTROL and window else ""
        parts.append(f"without {share.label}{how} at least {seconds(total - spent[share])}")
    return "; ".join(parts)


def time_shares(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """A row per pair and test case: the largest reason that the endpoints decide, and all shares.

    The largest gain of a test case comes first. The columns are always the same.
    """
    pairs = [pair for case in cases for pair in _pairs(results, case)]
    late = sum(each.timeouts for each in pairs)
    columns = (
        Column("test case"), Column("server"), Column("client"), Column("time", Unit.SECONDS, 2),
        Column("largest reason"), Column("share", Unit.SHARE, 1), Column("time without it, at least", Unit.SECONDS, 2),
        Column("what would help"), *(Column(share.label, Unit.SHARE, 1) for share in TimeShare),
        Column("n", Unit.COUNT), Column("timed out", Unit.COUNT),
    )  # fmt: skip
    rows: list[tuple[str | float | int, ...]] = [
        (
            *each.key, each.total, each.reason.label, each.share(each.reason), each.total - each.spent[each.reason],
            what_would_help(each.spent, each.window) or "–",
            *map(each.share, TimeShare), each.count, each.timeouts,
        )
        for each in pairs
    ]  # fmt: skip
    runs = [run for case in cases for run in with_shares(results, case)]
    unknown = f"at most {percent(1 - ATTRIBUTED)} of the time is unknown"
    note = (
        f"In {attributed(runs)} of {counted(len(runs), 'run')}, {unknown}. Values are means of n repetitions. The "
        "reason is the largest share of the time that the endpoints decide; what would help are all of "
        f"{percent(LEAST_SHARE)} or more. If one vanished, another could take its place, so the time without it is a "
        "lower bound. The window is what the link carries in the shortest round trip."
    )
    lacking = sum(map(_lacks_shares, results.results, repeat({case.name for case in cases if not case.functional})))
    notes = [
        *([note] if rows else []),
        *([f"{counted(late, 'run')} timed out: {TO_LAST_BYTE}."] if late else []),
        *([f"{counted(lacking, 'run has', 'runs have')} no shares: {NO_SHARES}."] if lacking else []),
    ]
    return Table("time-shares", "Shares of the transfer's time", columns, tuple(rows), tuple(notes))
