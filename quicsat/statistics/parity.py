"""What a transfer takes over QUIC, relative to TCP behind its proxies in the same member of an ensemble; pure."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import Outcome
from quicsat.model.results import Manifest, Pair, ResultSet, RunResult
from quicsat.model.test_case import Link, TestCase
from quicsat.statistics.intervals import Mean, of_repetitions
from quicsat.statistics.samples import CONCLUSIVE_RUNS

COMPLETION = "completion_time"
MARKS = {2_000_000: "time_to_2_mb", 10_000_000: "time_to_10_mb", 100_000_000: "time_to_100_mb"}
"""Bytes, and the metric that states when so many had arrived."""

COMPLETE = 0.9
"""Share of the ratios of a server that a member must have, to count in the interval of all of them."""

Member = tuple[int, int]
"""Repetition and seed: two runs with the same ones have the same losses over the same link."""
Times = Mapping[Member, float | None]
"""Seconds; None of a run that timed out or failed."""


@dataclass(frozen=True)
class Ratio:
    """A QUIC pair and the pair over TCP that it is compared with, for so many bytes of a test case."""

    case: TestCase
    """That of the runs over TCP, with its proxies."""
    size: int
    pair: Pair
    reference: Pair
    quic: float | None
    tcp: float | None
    """Geometric means over the members that succeeded over both, seconds; None without one."""
    of_member: Mapping[int, float]
    """Time over QUIC divided by that over TCP, by repetition."""
    failed: int
    """Members in which TCP succeeded and QUIC did not."""
    failed_over_tcp: int
    """Members in which TCP did not succeed, whatever QUIC did."""

    @property
    def mean(self) -> Mean | None:
        """Over the members; below 1, QUIC is faster. None without one."""
        return of_repetitions([*self.of_member.values()])


def has_both_transports(manifest: Manifest) -> bool:
    """Whether a campaign has servers over TCP and others."""
    over_tcp = {each.protocols == (Protocol.TCP,) for each in manifest.implementations if each.name in manifest.servers}
    return len(over_tcp) > 1


def ratios(results: ResultSet, cases: Sequence[TestCase]) -> list[Ratio]:
    """Of all ``cases`` with runs over TCP, each QUIC pair with runs of the same members; the smallest ratio first.

    Proxies leave QUIC as it is: where a pair has no runs in the test case itself, those in another one count that
    differs only in what concerns TCP. The reference is the pair over TCP with the same client; if there is none, the
    fastest one.
    """
    runs: dict[str, list[RunResult]] = {}
    for each in results.results:
        if each.verdict.outcome in CONCLUSIVE_RUNS:
            runs.setdefault(each.test_case, []).append(each)
    found = list[Ratio]()
    for case in cases:
        over_tcp = [each for each in runs.get(case.name, ()) if each.protocol is Protocol.TCP]
        alike = [other for other in results.manifest.test_cases if other != case and _key(other) == _key(case)]
        over_quic = [
            [each for each in runs.get(other.name, ()) if each.protocol is not Protocol.TCP] for other in (case, *alike)
        ]
        for size in sizes(case) if over_tcp else ():
            found += sorted(_of_size(case, size, over_tcp, over_quic), key=_value)
    return found


def _value(ratio: Ratio) -> float:
    """By which ratios are sorted; those without a member come last."""
    return math.inf if ratio.mean is None else ratio.mean.value


def overall(of_server: Sequence[Ratio]) -> Mean | None:
    """One number of several ratios, each of the same weight; None if none has a member.

    Members that ``COMPLETE`` of the ratios have spread about it as their mean distances from the ratios do. The times
    to several sizes are those of the same run.
    """
    known = [each for each in of_server if each.of_member]
    if not known:
        return None
    logs = [{member: math.log(ratio) for member, ratio in each.of_member.items()} for each in known]
    means = [fmean(each.values()) for each in logs]
    counts = Counter(member for each in logs for member in each)
    members = sorted(member for member, count in counts.items() if count >= COMPLETE * len(known))
    distances = [
        fmean(each[member] - mean for each, mean in zip(logs, means, strict=True) if member in each)
        for member in members
    ]
    middle = fmean(means) - (fmean(distances) if distances else 0.0)
    runs = len({(each.case.name, each.pair) for each in known})
    found = of_repetitions([math.exp(middle + distance) for distance in distances], runs)
    return found or Mean(math.exp(middle), None, None, geometric=True, count=0)


def sizes(case: TestCase) -> list[int]:
    """Bytes whose times are compared: ``MARKS`` of a single file, and all; none if the runs have a given duration."""
    if case.ends_at_deadline or case.functional or case.flows:
        return []
    single = case.workload is None and len(case.file_sizes) == 1
    return [*(mark for mark in MARKS if single and mark < case.total_size), case.total_size]


def time_of(run: RunResult, case: TestCase, size: int) -> float | None:
    """Seconds until so many bytes of a test case had arrived; None if the run did not succeed."""
    if run.verdict.outcome is not Outcome.SUCCEEDED or run.measurement is None:
        return None
    return run.measurement.values.get(COMPLETION if size == case.total_size else MARKS[size])


def reference(client: str, over_tcp: Mapping[Pair, Times]) -> Pair | None:
    """The pair over TCP that a QUIC pair with this client is compared with; None if none has a time."""
    timed = {pair: [time for time in times.values() if time] for pair, times in over_tcp.items()}
    timed = {pair: times for pair, times in timed.items() if times}
    own = [pair for pair in timed if pair[1] == client] or [*timed]
    return min(own, key=lambda pair: (-len(timed[pair]), _geometric(timed[pair]), pair), default=None)


def times_by_pair(runs: Sequence[RunResult], case: TestCase, size: int) -> dict[Pair, Times]:
    """The times of each pair by member."""
    found: dict[Pair, dict[Member, float | None]] = {}
    for each in runs:
        member = each.repetition, each.evidence.seed
        found.setdefault((each.server, each.client), {})[member] = time_of(each, case, size)
    return {**found}


def _of_size(
    case: TestCase, size: int, over_tcp: Sequence[RunResult], over_quic: Sequence[Sequence[RunResult]]
) -> Iterator[Ratio]:
    """The ratios of all pairs. ``over_quic`` has the runs of each test case; the first run of each pair counts."""
    tcp = times_by_pair(over_tcp, case, size)
    quic: dict[Pair, Times] = {}
    for runs in over_quic:
        quic = times_by_pair(runs, case, size) | quic
    for pair, times in quic.items():
        other = reference(pair[1], tcp)
        if other is None or not times.keys() & tcp[other].keys():
            continue
        before = {member: time for member in times if (time := tcp[other].get(member))}
        both = {member: (time, before[member]) for member in before if (time := times[member])}
        yield Ratio(
            case,
            size,
            pair,
            other,
            _geometric([time for time, _ in both.values()]) if both else None,
            _geometric([time for _, time in both.values()]) if both else None,
            {repetition: time / other_time for (repetition, _), (time, other_time) in both.items()},
            len(before) - len(both),
            sum(tcp[other].get(member, 0.0) is None for member in times),
        )


def _key(case: TestCase) -> tuple[Link, tuple[int, ...], object]:
    """What test cases have in common that differ only in what concerns TCP."""
    link = case.link
    if isinstance(link, EmulatedLink):
        link = replace(link, pep=None, endpoint_tcp=None)
    return link, case.file_sizes, case.workload


def _geometric(numbers: Sequence[float]) -> float:
    return math.exp(fmean(math.log(number) for number in numbers))
