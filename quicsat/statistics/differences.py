"""What differs between the runs of a cell in a baseline and now, in sentences that help to explain a change; pure."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from quicsat.model.negotiated import FACTS, fact_in_words
from quicsat.model.results import RunResult
from quicsat.model.text import printable
from quicsat.model.time_shares import TimeShare
from quicsat.model.units import byte_size, mbit_per_s, percent, seconds
from quicsat.statistics.samples import value_of

LEAST = 0.05
"""Relative change of a metric from which on it is named."""

LEAST_TIME = 0.01
"""Seconds lost or saved in a part of a transfer from which on they are named."""


@dataclass(frozen=True)
class _Named:
    """A metric that helps to explain a change of goodput."""

    metric: str
    words: str
    unit: str
    least: float = 0.0
    """Absolute change, in its SI unit, below which it is not named."""


METRICS = (
    _Named("initial_window", "bytes that the server sends in the first round trip", "B"),
    _Named("handshake_time", "duration of the handshake", "s", 0.01),
    _Named("response_time_median", "median time from a request to its response", "s", 0.01),
    _Named("in_flight_max", "most bytes in flight", "B"),
    _Named("steady_rate", "steady rate", "bit/s"),
    _Named("startup_time", "time until the rate is steady", "s", 0.1),
    _Named("longest_burst", "most packets that the server sends back to back", "packets", 5),
    _Named("queueing_delay_95", "95th percentile of the queueing delay", "s", 0.005),
    _Named("loss_forward", "share of the server's packets that are lost", "1", 0.005),
    _Named("retransmitted", "share of the response that is sent again", "1", 0.005),
    _Named("return_packets", "packets of the client per packet of the server", "ratio", 0.02),
)
"""Metrics that are named, causes before effects. Time and goodput themselves are not among them."""
BEHAVIOUR = frozenset({"initial_window", "longest_burst", "return_packets"})
"""Metrics that an endpoint decides, and chance hardly does."""
MARKS = (
    ("time_to_first_byte", "until the first byte"),
    ("time_to_2_mb", "until 2 MB"),
    ("time_to_10_mb", "until 10 MB"),
    ("time_to_100_mb", "until 100 MB"),
    ("completion_time", "until the last byte"),
)
"""Moments of a transfer between which time is lost or saved."""


def differences(before: Sequence[RunResult], after: Sequence[RunResult]) -> tuple[str, ...]:
    """Sentences about runs with the same seeds that succeeded; about all runs that did if they have no seed in common.

    First where the time was lost or saved, then what was negotiated, then other metrics.
    """
    seeds = {each.evidence.seed for each in before} & {each.evidence.seed for each in after}
    first, second = (_chosen(many, seeds) for many in (before, after))
    return (*_times(first, second), *_facts(first, second), *_metrics(first, second)) if first and second else ()


def behaviour(before: Sequence[RunResult], after: Sequence[RunResult]) -> tuple[str, ...]:
    """Sentences about such runs that hold however fast they are: what most of them do differently of ``BEHAVIOUR``."""
    seeds = {each.evidence.seed for each in before} & {each.evidence.seed for each in after}
    first, second = (_chosen(many, seeds) for many in (before, after))
    named = [each for each in METRICS if each.metric in BEHAVIOUR]
    return tuple(_metrics(first, second, named, statistics.median)) if first and second else ()


def _chosen(many: Sequence[RunResult], seeds: set[int]) -> list[RunResult]:
    succeeded = [each for each in many if value_of(each, "goodput") is not None]
    return [each for each in succeeded if each.evidence.seed in seeds or not seeds]


def _mean(
    many: Sequence[RunResult], metric: str, middle: Callable[[list[float]], float] = statistics.fmean
) -> float | None:
    values = [value for each in many if (value := value_of(each, metric)) is not None]
    return middle(values) if len(values) == len(many) else None


def _times(before: Sequence[RunResult], after: Sequence[RunResult]) -> Iterator[str]:
    """In which part of the transfer the time was lost or saved."""
    total = (_mean(before, "completion_time"), _mean(after, "completion_time"))
    if total[0] is None or total[1] is None or not total[1] - total[0]:
        return
    change = total[1] - total[0]
    parts, done = [], 0.0
    for metric, words in MARKS:
        then, now = _mean(before, metric), _mean(after, metric)
        if then is not None and now is not None and abs(now - then - done) >= LEAST_TIME:
            parts.append(f"{_signed(now - then - done)} {words}")
            done = now - then
    longer = "longer" if change > 0 else "less"
    where = f": {', then '.join(parts)}" if parts else ""
    yield f"The transfer takes {seconds(abs(change))} {longer} ({seconds(total[1])}){where}."
    yield from _shares(before, after, change)


def _shares(before: Sequence[RunResult], after: Sequence[RunResult], change: float) -> Iterator[str]:
    """What the transfer waited longer or less for, the largest difference first; all of them sum up to ``change``."""
    found = list[tuple[float, str]]()
    for share in TimeShare:
        then, now = _mean(before, share.metric), _mean(after, share.metric)
        if then is not None and now is not None and abs(now - then) >= max(LEAST_TIME, LEAST * abs(change)):
            found.append((now - then, share.label))
    if found:
        found.sort(key=lambda each: -abs(each[0]))
        yield f"By what it waited for: {', '.join(f'{_signed(taken)} {label}' for taken, label in found)}."


def _signed(duration: float) -> str:
    return f"{'−' if duration < 0 else '+'}{abs(duration):.2f} s"


def _facts(before: Sequence[RunResult], after: Sequence[RunResult]) -> Iterator[str]:
    """What was negotiated differently; only facts that all runs of a side share."""
    then, now = _shared(before), _shared(after)
    for fact in FACTS:
        if fact in then and fact in now and then[fact] != now[fact]:
            yield f"Negotiated {fact_in_words(fact)}: {printable(then[fact])} → {printable(now[fact])}."


def _shared(many: Sequence[RunResult]) -> dict[str, str]:
    found = [each.measurement.negotiated.facts for each in many if each.measurement and each.measurement.negotiated]
    if len(found) < len(many):
        return {}
    return {fact: str(value) for fact, value in found[0].items() if all(each.get(fact) == value for each in found)}


def _metrics(
    before: Sequence[RunResult],
    after: Sequence[RunResult],
    metrics: Sequence[_Named] = METRICS,
    middle: Callable[[list[float]], float] = statistics.fmean,
) -> Iterator[str]:
    for each in metrics:
        then, now = _mean(before, each.metric, middle), _mean(after, each.metric, middle)
        if then is None or now is None or abs(now - then) < each.least or abs(now - then) <= LEAST * abs(then):
            continue
        words = f"{each.words[0].upper()}{each.words[1:]}"
        yield f"{words}: {_shown(then, each.unit)} → {_shown(now, each.unit)}."


def _shown(value: float, unit: str) -> str:
    if unit == "B":
        return byte_size(value)
    if unit == "s":
        return seconds(value)
    if unit == "bit/s":
        return mbit_per_s(value)
    return percent(value, 1) if unit == "1" else f"{value:.3g}"
