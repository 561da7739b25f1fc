"""The course of a run in a few lines: what happened when, and in which packets; from its result and its series."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from quicsat.model.emulated_link import DirectionReport
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.text import counted
from quicsat.model.time_shares import TimeShare
from quicsat.model.units import byte_size, mbit_per_s, percent, seconds
from quicsat.report.time_share_tables import LEAST_SHARE, Spent, what_would_help
from quicsat.results.summary import figures
from quicsat.statistics.samples import GOODPUT, samples
from quicsat.traces.series import UNKNOWN, Packets, Series, StreamData

SILENCE_TRIPS, SILENCE_LEAST = 3.0, 0.5
"""Round trips, and seconds, for which neither end sends before the story tells it."""

SHOWN = 0.005
"""Of a transfer's time, from which on a sum of small shares, or what is unknown, is not rounded to 0 %."""


@dataclass(frozen=True)
class StoryEvent:
    """Something that happened in a run."""

    time: float
    """Seconds since the client's first packet."""
    text: str
    number: int = -1
    """Of the 1-RTT packet, or over TCP of the segment, that shows it; -1 if there is none."""
    from_server: bool = False
    """Who sent this packet."""


def story(size: int, series: Series) -> list[StoryEvent]:
    """The events of a run whose files have ``size`` bytes, by time."""
    forward, back = series.forward, series.back
    found = [
        *_first(back, "client", from_server=False),
        *_first(forward, "server", from_server=True),
        *_requests(series),
        *_losses(forward, "server", from_server=True),
        *_losses(back, "client", from_server=False),
        *_silence(series),
        *_last_new_byte(series, size),
        *_last(forward, "server", from_server=True),
        *_last(back, "client", from_server=False),
    ]
    return sorted(found, key=lambda event: event.time)


def end_of(result: RunResult) -> str:
    """How the run ended by its clock: exit statuses and the time of the transfer; and losses that no series shows."""
    evidence = result.evidence
    words = []
    for side, end in (("client", evidence.client), ("server", evidence.server)):
        if end is not None and end.status is not None and not end.killed:
            words.append(f"the {side} ended with exit status {end.status}")
    if evidence.timed_out is not None:
        words.append("quicsat ended the run at its deadline")
    took = f"The transfer took {seconds(evidence.transfer_time)}" if evidence.transfer_time else "There was no transfer"
    return f"{', '.join([took, *words])}."


def hop_lines(result: RunResult) -> tuple[str, ...]:
    """What each link of a path of several did with packets, as sentences; none for a single one."""
    report = result.evidence.simulator
    if report is None or report.client_side is None:
        return ()
    beside = report.client_side
    return (
        _hop("The link", report.forward, report.back),
        _hop("The link at the client's side", beside.forward, beside.back),
    )


def _hop(name: str, forward: DirectionReport, back: DirectionReport) -> str:
    counts = {
        "dropped {} in the queue": (forward.queue_drops, back.queue_drops),
        "lost {}": (forward.own_drops, back.own_drops),
        "marked {}": (forward.ecn_marks, back.ecn_marks),
    }
    words = [verb.format(f"{to} and {of}") for verb, (to, of) in counts.items()]
    return (
        f"{name} got {forward.received} packets to the client and {back.received} from it: it {', '.join(words[:-1])} "
        f"and {words[-1]}."
    )


def time_line(spent: Spent, *, whole: bool = True) -> str:
    """What the time of the transfer went into, the largest share first; empty if it is not known.

    Shares of less than ``LEAST_SHARE`` are summed up, but for what is unknown. If the transfer was not ``whole``, the
    time ends with the last byte that arrived.
    """
    total = sum(spent.values())
    if not total:
        return ""
    order = sorted(spent, key=lambda share: -spent[share])
    least = {share: SHOWN if share is TimeShare.UNKNOWN else LEAST_SHARE for share in order}
    large = [share for share in order if spent[share] >= least[share] * total]
    words = [f"{share.label} {percent(spent[share] / total)}" for share in large]
    rest = total - sum(spent[share] for share in large)
    if rest > SHOWN * total:
        words.append(f"others {percent(rest / total)}")
    late = "" if whole else " until the last byte that arrived"
    return f"The transfer's {seconds(total)}{late}: {', '.join(words)}."


def help_line(spent: Spent, window: float) -> str:
    """What would help a run, as in the table of shares; empty if no share is large that the endpoints decide.

    ``window``: as of :func:`what_would_help`.
    """
    bounds = what_would_help(spent, window)
    return bounds and f"What would help: {bounds}."


def fragility(results: ResultSet, of: RunResult) -> str:
    """That the goodput of a run's pair is fragile in its test case, as a sentence; empty if it is not."""
    known = samples(results, of.test_case, GOODPUT)
    values = next((each.values for each in known if (each.server, each.client) == (of.server, of.client)), ())
    spread = figures(values)
    if spread is None or not spread.fragile:
        return ""
    return (
        f"The pair is fragile: the goodput of its {len(values)} runs is {mbit_per_s(spread.min)} to "
        f"{mbit_per_s(spread.max)}. A small difference of conditions may change it as much."
    )


def _arrival(delay: float) -> str:
    """How long a packet took; empty if that is unknown: it did not arrive, or its times are those of others, with which
    a capture merged it."""
    return f"; it arrives after {seconds(delay)}" if delay >= 0 else ""


def _first(packets: Packets, side: str, *, from_server: bool) -> Iterator[StoryEvent]:
    if not len(packets):
        return
    row = int(np.nanargmin(packets.sent))
    fate = "; it is lost" if packets.lost[row] else _arrival(float(packets.arrived[row] - packets.sent[row]))
    yield StoryEvent(float(packets.sent[row]), f"The {side} sends its first packet{fate}.", -1, from_server)


def _last(packets: Packets, side: str, *, from_server: bool) -> Iterator[StoryEvent]:
    if not len(packets):
        return
    row = int(np.nanargmax(packets.sent))
    text = f"The {side} sends its last of {counted(len(packets), 'packet')}{_named(packets, row)}."
    yield StoryEvent(float(packets.sent[row]), text, int(packets.number[row]), from_server)


def _named(packets: Packets, row: int) -> str:
    number = int(packets.number[row])
    return f", packet number {number}" if number >= 0 else ""


def _losses(packets: Packets, side: str, *, from_server: bool) -> Iterator[StoryEvent]:
    lost = np.flatnonzero(packets.lost)
    if not len(lost):
        return
    row = int(lost[packets.sent[lost].argmin()])
    count = (
        f"{len(lost)} of {len(packets)} {'is' if len(lost) == 1 else 'are'} lost "
        f"({percent(len(lost) / len(packets), 1)})"
    )
    text = f"A packet of the {side} is lost for the first time{_named(packets, row)}; in all, {count}."
    yield StoryEvent(float(packets.sent[row]), text, int(packets.number[row]), from_server)


def _requests(series: Series) -> Iterator[StoryEvent]:
    requests = series.requests
    if not len(requests):
        return
    text = (
        "The client sends its request"
        if len(requests) == 1
        else f"The client sends the first of {len(requests)} requests"
    )
    first = int(requests.sent.argmin())
    fate = _arrival(float(requests.arrived[first] - requests.sent[first]))
    yield StoryEvent(float(requests.sent[first]), f"{text}{fate}.")
    arrived, answers = series.arrived, requests.first_byte[np.isfinite(requests.first_byte)]
    row = int(np.searchsorted(arrived.time, answers.min(initial=np.inf)))  # over TCP, the handshake's come before it
    if row < len(arrived):
        text = f"The first byte of a response arrives at the client{_packet(arrived, row)}."
        yield StoryEvent(float(arrived.time[row]), text, int(arrived.number[row]), True)


def _packet(arrived: StreamData, row: int) -> str:
    """``, in packet number 3``; empty if it is none of the link, but of a connection behind a proxy."""
    number = int(arrived.number[row])
    return "" if number == UNKNOWN else f", in packet number {number}"


def _silence(series: Series) -> Iterator[StoryEvent]:
    ours = series.forward.sent if len(series.forward) else series.arrived.time  # without the trace of the server
    times = np.sort(np.concatenate([ours, series.back.sent]))
    gaps = np.diff(times)
    trip = float(np.median(series.rtt.value)) if len(series.rtt) else 0.0
    if len(gaps) and gaps.max() > max(SILENCE_TRIPS * trip, SILENCE_LEAST):
        row = int(gaps.argmax())
        yield StoryEvent(float(times[row]), f"Neither side sends anything for {seconds(float(gaps[row]))}.")


def _last_new_byte(series: Series, size: int) -> Iterator[StoryEvent]:
    arrived = series.arrived
    new = np.flatnonzero(arrived.new > 0)
    if not len(new):
        return
    row, total = int(new[-1]), int(arrived.new.sum())
    share = f" ({percent(total / size)} of the files)" if size and total < size else ""
    text = f"The last new byte arrives at the client{_packet(arrived, row)}: {byte_size(total)}{share}."
    yield StoryEvent(float(arrived.time[row]), text, int(arrived.number[row]), True)
