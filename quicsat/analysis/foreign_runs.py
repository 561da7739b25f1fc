"""Metrics of a run of another runner, from its traces, key logs and output.

Nothing is assumed of the link: only the runner's own output tells its rate, and nothing tells what its queue dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from quicsat.analysis import metrics
from quicsat.analysis.causes import FailureContext, explain
from quicsat.analysis.qlog_runs import QlogRun, has_qlogs, read_qlog_run
from quicsat.analysis.series_metrics import series_metrics
from quicsat.analysis.time_shares import time_shares
from quicsat.model.arrays import Flags
from quicsat.model.emulated_link import unknown_link
from quicsat.model.errors import HarnessFault, UserError
from quicsat.model.implementation import Protocol, Role
from quicsat.model.real_link import RealDirection, RealLink
from quicsat.model.stored_files import is_file
from quicsat.model.test_case import Link
from quicsat.model.text import counted
from quicsat.model.units import byte_size, percent
from quicsat.results.qir_logs import ONE_CLOCK, UNKNOWN_OUTCOME, ForeignRun
from quicsat.traces.columns import Form, Trace
from quicsat.traces.connections import handshakes
from quicsat.traces.foreign_captures import PlainCaptures, plain_captures
from quicsat.traces.network import PPP
from quicsat.traces.protection import SALTS
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.records import Condition, DamagedTraceError, unsorted_records
from quicsat.traces.run_traces import RunTraces, TraceStates, check_traces, read_run
from quicsat.traces.series import Series, save
from quicsat.traces.streams import requested_streams, responses

SIMULATOR, HOST, MIXED, QLOG = "simulator", "1970", "mixed", "qlog"
"""From when the times of traces count: the start of a simulation, 1970, one of them per trace, or those of a qlog."""
UNMATCHED = 0.05
"""Share of packets that arrived and were never sent, above which the loss is unknown."""
LEAST_SHARE = 0.9
"""Share of the packets whose fate damaged traces have to show, so that the loss is that of the run."""
STARTING = 10.0
"""Seconds of a runner's time limit in which containers may start, so that the client may not have had them."""
CUT_PACKETS = ("packet of the traces is", "packets of the traces are")
NO_STREAMS = "The client's qlog has no STREAM frames of responses."
NO_CAPTURED_LINK = "Captures do not state what the link did, so there are no shares of the time."
NO_LOSS_NO_SHARES = "The forward loss is not known, so there are no shares of the time."
NO_WINDOW = (
    "The server's qlog does not state the congestion window, so the shares of the congestion window and of pacing come "
    "from the packets alone."
)
NO_SHARES = (
    "There are no shares of the time: the qlogs do not show the requests, the acknowledgements, the response and the "
    "client's transport parameters of one connection."
)
_WITHOUT_CLIENT = (
    "Handshake, goodput and all other metrics need what the client saw, which is not here. The command packets lists "
    "what the server saw."
)
_UNUSABLE_CLIENT = "Handshake and goodput are seen at the client, whose trace cannot be used."
NO_CAUSE = "The traces do not show the cause: they are not complete."


@dataclass(frozen=True)
class Findings:
    """What could be found out about a run; SI units, None for what is not known."""

    outcome: str
    """What the runner's output says, else what the streams show."""
    clock: str = ""
    """One of ``SIMULATOR``, ``HOST``, ``MIXED`` and ``QLOG``; empty without traces."""
    size: int | None = None
    """Bytes of all files."""
    size_from: str = ""
    """Where the size comes from."""
    handshake: float | None = None
    goodput: float | None = None
    efficiency: float | None = None
    loss_forward: float | None = None
    loss_return: float | None = None
    notes: tuple[str, ...] = ()
    """A sentence each: the cause of a failure, and what could not be found out."""
    complete: bool | None = None
    """Whether the runner, the client and the streams say that nothing is missing; None if nothing is known."""
    values: Mapping[str, float] = field(default_factory=dict)
    """The metrics of ``quicsat.analysis.metrics.METRICS`` that are known, if series were wanted, and of qlogs."""
    rate: float | None = None
    """Of the forward link, bit/s."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Packets and frames in qlogs, by what they are, in words."""
    knows_link: bool = False
    """A qlog of the link tells what it dropped."""


def examine(run: ForeignRun, size: int | None, series: Path | None = None) -> Findings:
    """What the files of a run say; ``size`` of all its files in bytes, if the caller knows it.

    Nothing is written but the series of the run, if a directory for them is given.
    """
    if run.refused:
        return Findings("not read", notes=(f"Not read: {run.refused}.",))
    try:
        if has_qlogs(run.directory):
            return _examined(_from_qlogs(run), size, series)
        with plain_captures(run.directory) as captures:
            return _examined(_Source(run, captures, check_traces(captures.directory, Protocol.HQ)), size, series)
    except (HarnessFault, UserError) as fault:
        reason = str(fault)
    except Exception as error:  # noqa: BLE001 - files of strangers: one run must not cost the others
        reason = f"reading its files failed ({type(error).__name__})"
    return Findings(run.runner_output.outcome, notes=(f"Not read: {reason.removesuffix('.')}.",))


@dataclass(frozen=True, eq=False)
class _Source:
    """What the numbers of a run come from."""

    run: ForeignRun
    captures: PlainCaptures
    found: TraceStates
    qlogs: QlogRun | None = None
    """If the packets are those of qlogs."""

    @property
    def rate(self) -> float | None:
        """Rate of the forward link, bit/s."""
        of_link = self.qlogs.link.rate if self.qlogs is not None and self.qlogs.link is not None else 0.0
        return self.run.runner_output.forward_rate or of_link or None

    @property
    def clock(self) -> str:
        """From when the times count, see ``Findings.clock``."""
        if self.qlogs is not None:
            return QLOG
        states = (self.found.client, self.found.server)
        clocks = {SIMULATOR if state.simulated else HOST for state in states if state.packets}
        return MIXED if len(clocks) > 1 else next(iter(clocks), "")

    @property
    def link(self) -> Link:
        """A link with no known property except whether one clock stamped both traces."""
        one_clock = self.found.client.simulated and self.found.server.simulated
        one_clock = one_clock or is_file(self.run.directory / ONE_CLOCK)
        if one_clock if self.qlogs is None else self.qlogs.one_clock:
            return unknown_link()
        return RealLink("client", "server", RealDirection(0.0), RealDirection(0.0), 0.0)

    def traces(self) -> RunTraces:
        """Raises HarnessFault(trace-limit)."""
        traces = read_run(self.captures.directory, Protocol.HQ, self.link, self.found)
        folder = self.qlogs.server if self.qlogs is not None else None
        return traces if folder is None else replace(traces, qlogs=folder, read_qlogs=True)


def _from_qlogs(run: ForeignRun) -> _Source:
    qlogs = read_qlog_run(run.directory)
    return _Source(run, qlogs.captures, qlogs.found, qlogs)


def _examined(source: _Source, size: int | None, series: Path | None) -> Findings:
    run, captures, found = source.run, source.captures, source.found
    notes = [*captures.notes, *_unusable(captures, found)]
    nothing = Findings(run.runner_output.outcome, source.clock)
    if not len(found.client.datagrams):
        if len(found.server.datagrams):
            notes.append(_WITHOUT_CLIENT if Role.CLIENT in captures.absent else _UNUSABLE_CLIENT)
        return replace(nothing, notes=tuple(notes))
    try:
        traces = source.traces()
    except HarnessFault as fault:
        return replace(nothing, notes=(*notes, fault.reason))
    findings = _Examination(source, traces, notes).findings(size)
    if (series is None and source.qlogs is None) or captures.timeless:
        return findings
    return _with_series(findings, source, traces, series)


def _with_series(findings: Findings, source: _Source, traces: RunTraces, place: Path | None) -> Findings:
    """The findings with all metrics of a run, whose series are stored in ``place`` if it is given."""
    assert isinstance(traces.trace_pair, QuicTracePair)
    series = _without_unknown_losses(traces.series(), findings)
    if place is not None:
        place.mkdir(parents=True, exist_ok=True)
        save(series, place)
    client = traces.trace_pair.client
    values = {
        "goodput": findings.goodput,
        "efficiency": findings.efficiency,
        "handshake_time": findings.handshake,
        "loss_forward": findings.loss_forward,
        "loss_return": findings.loss_return,
    }
    if findings.complete:
        values |= {
            "time_to_first_byte": metrics.time_to_first_byte(client),
            "completion_time": metrics.completion_time(client),
        }
    if findings.complete and findings.size:
        values["stream_goodput"] = metrics.stream_goodput(client, findings.size)
        if findings.loss_forward is not None:
            values["sent_per_useful_byte"] = metrics.sent_per_useful_byte(traces.trace_pair.at_server, findings.size)
    if not traces.cut:
        values |= series_metrics(series, source.rate or 0.0)
    notes = list[str]()
    knows_link = source.qlogs is not None and source.qlogs.link is not None
    if source.qlogs is not None and source.qlogs.link is not None:
        link = source.qlogs.link.conditions
        shares = (
            traces.optional("shares of the time", lambda: time_shares(traces.trace_pair, series, link), None)
            if findings.loss_forward is not None
            else None
        )
        if shares is not None:
            values |= {share.metric: taken for share, taken in shares.seconds.items()}
            notes += [] if len(series.cwnd) else [NO_WINDOW]
        else:
            notes.append(NO_LOSS_NO_SHARES if findings.loss_forward is None else NO_SHARES)
    bursts = findings.loss_forward is not None
    known = {name: value for name, value in values.items() if value is not None and (bursts or "gilbert_" not in name)}
    counts = {} if source.qlogs is None else _counts(series, traces.trace_pair, source.qlogs, findings)
    notes[:0] = [*findings.notes, *traces.qlog_notes, *traces.unread]
    return replace(findings, values=known, counts=counts, notes=tuple(notes), knows_link=knows_link)


def _counts(series: Series, pair: QuicTracePair, qlogs: QlogRun, findings: Findings) -> dict[str, int]:
    """Packets and frames at both ends, and packets that did not arrive."""
    found = {}
    for name, trace in (("client", pair.client), ("server", pair.server)):
        if not len(trace):
            continue
        sent = int((trace.from_server == (name == "server")).sum())
        found[f"QUIC packets that the {name} sent"] = sent
        found[f"QUIC packets that the {name} received"] = len(trace) - sent
        found[f"frames at the {name}, without padding"] = (
            len(trace.frames) + len(trace.acks) + len(trace.crypto) + len(trace.signals)
        )
    ways = ("forward", series.forward, findings.loss_forward), ("return", series.back, findings.loss_return)
    for name, way, known in ways:
        if known is not None:
            found[f"datagrams that were lost, {name}"] = int(way.lost.sum())
    for (name, trigger), count in sorted(qlogs.link.dropped.items() if qlogs.link is not None else ()):
        found[f"datagrams that the link dropped, {name}: {trigger}"] = count
    return found


def _without_unknown_losses(series: Series, findings: Findings) -> Series:
    """The series without losses of the directions whose loss is not known: nothing may show what the notes deny."""
    forward, back = (
        way if loss is not None else replace(way, lost=np.zeros_like(way.lost))
        for way, loss in ((series.forward, findings.loss_forward), (series.back, findings.loss_return))
    )
    return replace(series, forward=forward, back=back)


def _unusable(captures: PlainCaptures, found: TraceStates) -> list[str]:
    """Why traces without packets have none; a trace that ends early has some."""
    sides = ((Role.CLIENT, found.client), (Role.SERVER, found.server))
    return [
        f"The {side}'s trace cannot be used: {state.reason}"
        for side, state in sides
        if state.condition is not Condition.OK and not len(state.datagrams) and side not in captures.absent
    ]


# ---- numbers --------------------------------------------------------------------------------


class _Examination:
    """What the traces of a run show; ``notes`` grow by a sentence for each thing that they do not."""

    def __init__(self, source: _Source, traces: RunTraces, notes: list[str]) -> None:
        assert isinstance(traces.trace_pair, QuicTracePair)
        self.captures, self.found, self.traces, self.notes = source.captures, source.found, traces, notes
        captures, found, self.rate, self.clock = source.captures, source.found, source.rate, source.clock
        self.output, self.pair, self.client = source.run.runner_output, traces.trace_pair, traces.trace_pair.client
        self.streams, self.changed = stream_bytes(self.client), _changed(self.client)
        gaps = captures.damaged or captures.incomplete or found.cut or self.changed or self.output.checked
        if self.streams.whole is False and gaps:
            self.streams = replace(self.streams, whole=None)
        status = dict(self.output.exits).get("client", 0)
        self.found_qlogs = source.qlogs is not None
        self.failed = self.output.timeout is not None or status != 0 or self.streams.whole is False
        """The runner, the client or the streams say that something is missing."""

    def findings(self, given_size: int | None) -> Findings:
        size, source = self._size(given_size)
        if not self.streams.arrived:
            self.notes.append(NO_STREAMS if self.found_qlogs else _undecrypted(self.client, self.found))
        handshake, goodput = self._at_client(size)
        forward, back, lacking = self._losses()
        if self.failed:
            captures = self.captures
            unclear = captures.damaged or captures.incomplete or captures.timeless or lacking
            unclear = unclear or not len(self.found.server.datagrams)
            self.notes.append(NO_CAUSE if unclear else self._cause(size))
        rate, outcome, whole = self.rate, self.output.outcome, self.streams.whole
        known = whole is not None or outcome != UNKNOWN_OUTCOME
        if outcome == UNKNOWN_OUTCOME and whole is not None:
            outcome = "streams complete" if whole else "streams incomplete"
        return Findings(
            outcome=outcome,
            clock=self.clock,
            size=size,
            size_from=source,
            handshake=handshake,
            goodput=goodput,
            efficiency=metrics.efficiency(goodput, rate) if goodput is not None and rate else None,
            loss_forward=forward,
            loss_return=back,
            notes=tuple(filter(None, self.notes)),
            complete=not self.failed if known else None,
            rate=rate,
        )

    def _size(self, given_size: int | None) -> tuple[int | None, str]:
        """Bytes of all files, and the source; None if the source contradicts the streams, or if there is none."""
        shown = self.streams.arrived if self.streams.whole and not self.streams.http3 else None
        for size, source in ((given_size, "option"), (self.output.size, "output")):
            if size is not None:
                if shown is None or shown == size:
                    return size, source
                self.notes.append(f"The streams hold {counted(shown, 'byte')}, but the {source} says {size}.")
                return None, ""
        return (shown, "streams") if shown is not None else (None, "")

    def _at_client(self, size: int | None) -> tuple[float | None, float | None]:
        """Handshake and goodput; notes tell why there are none."""
        client, found, streams, say = self.client, self.found, self.streams, self.notes.append
        handshake, connections = metrics.handshake_time(client), handshakes(client)
        if self.found_qlogs:  # they name connections, and often no connection IDs
            answers = client.from_server & (client.form == Form.INITIAL) & (client.connection >= 0)
            connections = max(connections, len(np.unique(client.connection[answers])))
        if Role.CLIENT in self.captures.timeless or not _initials(client).any() or _begins_late(client):
            return None, None
        if handshake is not None and handshake <= 0:
            say("The client's first 1-RTT packet is not later than its first Initial: its times cannot be used.")
            return None, None
        sides = ("handshake", False), ("goodput", True)
        hidden = [name for name, side in sides if _hidden(client, found, from_server=side)]
        if hidden and streams.arrived:
            say(f"{_cut_records(found)}, so the {' and the '.join(hidden)} cannot be measured.")
        handshake = None if "handshake" in hidden else handshake
        if connections != 1:
            shown = f"{connections} handshakes" if connections else "no handshake that the server answered"
            say(f"The client's trace shows {shown}, so there is no goodput of one connection.")
        elif size is None:
            say("The size of the files is not known, so there is no goodput; --file-size names it.")
        elif self.failed or "goodput" in hidden:
            pass
        elif streams.whole is None and self.changed:
            many = counted(self.changed, "packet of the server", "packets of the server")
            say(f"{many} cannot be decrypted in the client's trace, so that its response has a gap: no goodput.")
        elif streams.whole is None and (
            streams.arrived or Role.CLIENT in self.captures.damaged or self.captures.incomplete
        ):
            say("The client's trace does not show the whole response, so there is no goodput.")
        else:
            return handshake, metrics.goodput(client, size)
        return handshake, None

    def _losses(self) -> tuple[float | None, float | None, bool]:
        """Loss forward and return, None where the traces do not show it; and whether they lack packets."""
        captures, found, say = self.captures, self.found, self.notes.append
        if not len(found.server.datagrams) or captures.incomplete or captures.timeless:
            return None, None, False
        if found.cut:
            say(f"{counted(found.cut, *CUT_PACKETS)} cut, so that the loss could not be measured.")
            return None, None, False
        if captures.damaged and self._share_of_run() < LEAST_SHARE:
            say("The traces do not show what became of all packets, since they are damaged: the loss is not known.")
            return None, None, False
        if any(map(_inside_ns3, captures.sources.values())):
            say("A trace was recorded inside ns-3, behind the queue: what the queue dropped is not in the loss.")
        lacking = list[str]()
        forward, back = (self._loss(sender, lacking) for sender in (Role.SERVER, Role.CLIENT))
        # the client received more than its trace has
        gap = self.output.checked and self.streams.arrived > 0 and self.streams.whole is None
        gap = gap and not (captures.damaged or self.changed)
        if lacking:
            forward = back = None
        elif gap:
            forward = None
            say("Packets that the client received are missing in its trace, so the forward loss is not known.")
        if self.clock == MIXED:
            say("One trace counts from the start of a simulation, the other from 1970: clocks are estimated.")
        self.notes += lacking
        return forward, back, gap or bool(lacking)

    def _loss(self, sender: Role, lacking: list[str]) -> float | None:
        """The loss of a sender's packets; ``lacking`` tells if its trace has gaps: then no loss is known."""
        pair, say = self.pair, self.notes.append
        if sender is Role.SERVER:
            matches, sent, receiver, name = pair.forward, pair.at_server, pair.at_client, "forward"
        else:
            matches, sent, receiver, name = pair.back, pair.at_client, pair.at_server, "in the return direction"
        rows = np.flatnonzero(receiver.from_server == (sender is Role.SERVER))
        if sender is Role.CLIENT and not len(rows) and len(matches.sent):
            say("The server's trace has no packet of the client, so their loss is not known.")
        rows = matches.unsent
        if sender in self.captures.damaged:  # what came after the sender's trace ended was sent all the same
            rows = rows[rows <= matches.arrived.max(initial=-1)]
        arrived, unmatched = int((matches.arrived >= 0).sum()), len(rows)
        most, share = UNMATCHED * (unmatched + arrived), percent(unmatched / max(unmatched + arrived, 1))
        new = int((~np.isin(receiver.digest[rows], sent.digest)).sum())
        if arrived and new > max(most, int((matches.arrived < 0).sum())):  # more than the link can have changed
            lacking.append(
                f"{share} of the packets of the {sender} that arrived are missing in the {sender}'s trace, so the loss "
                "is not known."
            )
        elif unmatched > most:
            say(f"{share} of the packets that arrived {name} were never sent so: the loss is not known.")
        elif unmatched and self.found_qlogs:
            say(
                f"{counted(unmatched, 'packet')} that arrived {name} {'is' if unmatched == 1 else 'are'} not in the "
                f"{sender}'s qlog."
            )
        elif unmatched:
            say(f"{counted(unmatched, 'packet')} arrived {name} changed, and count{'s' * (unmatched == 1)} as lost.")
        return matches.loss if unmatched <= most else None

    def _share_of_run(self) -> float:
        """Share of the packets whose fate the traces show; 0 if both end early, and the response perhaps later."""
        if len(self.captures.damaged) > 1 and not self.streams.whole:
            return 0.0
        ways = self.pair.forward, self.pair.back
        return sum(way.judged for way in ways) / max(sum(len(way.sent) for way in ways), 1)

    def _cause(self, size: int | None) -> str:
        """The cause of the failure, as far as it can be found without the size of the files."""
        series, limit = self.traces.series(), self.output.timeout
        if size is None and len(series.arrived):
            return f"{byte_size(int(series.arrived.new.sum()))} arrived; the cause needs the size, see --file-size."
        duration, rate = max((limit or 0) - STARTING, 0.0), self.rate or 0.0
        return explain(FailureContext(self.pair, series, size or 1, rate, limit is not None, duration))[1]


def _changed(client: Trace) -> int:
    """1-RTT packets of the server that cannot be decrypted although others of their connection can."""
    answers = client.from_server & (client.form == Form.ONE_RTT)
    readable = np.unique(client.connection[answers & client.decrypted])
    return int((answers & ~client.decrypted & np.isin(client.connection, readable)).sum())


def _hidden(client: Trace, found: TraceStates, *, from_server: bool) -> bool:
    """Whether cut records may hold 1-RTT packets of a side behind others that have long headers."""
    if not found.client.cut or not len(client):
        return False
    firsts = np.flatnonzero(client.size > 0)
    cut = np.add.reduceat(client.length, firsts) < client.size[firsts]
    return bool((cut & (client.version[firsts] >= 0) & (client.from_server[firsts] == from_server)).any())


def _initials(client: Trace) -> Flags:
    found: Flags = ~client.from_server & (client.form == Form.INITIAL)
    return found


def _begins_late(client: Trace) -> bool:
    """Whether the first Initial is missing, which all Initials of known versions need to be decrypted."""
    mine = _initials(client) & np.isin(client.version, [*SALTS])
    return bool(mine.any()) and not client.decrypted[mine].any()


def _undecrypted(client: Trace, found: TraceStates) -> str:
    """Why nothing of the responses could be decrypted."""
    versions = {*client.version[_initials(client)].tolist()}
    if not versions and client.from_server.all():
        return "The client's trace has no packet of the client, so nothing can be decrypted."
    if not versions and found.client.cut:
        return f"{_cut_records(found)}, so nothing can be decrypted."
    if not versions:
        return "The client's trace begins after the handshake: it has no Initial packet, so nothing can be decrypted."
    if not client.from_server.any():
        return "The client's trace has no packet of the server."
    if not versions & SALTS.keys():
        names = ", ".join(f"0x{version:08x}" for version in sorted(versions))
        return f"The packets have QUIC version {names}, which is not decrypted."
    if found.client.cut:
        return f"{_cut_records(found)}, so the rest cannot be decrypted."
    if _begins_late(client):
        return "The client's trace does not have the client's first Initial packet, so nothing can be decrypted."
    return "No response could be decrypted: key logs are missing or do not fit, or nothing was answered."


def _cut_records(found: TraceStates) -> str:
    records = counted(found.client.cut, "record of the client's trace is", "records of the client's trace are")
    return f"{records} cut (snap length)"


@dataclass(frozen=True)
class StreamBytes:
    """What the client's trace shows of the responses."""

    arrived: int
    """Different bytes."""
    whole: bool | None
    """Every stream that was asked on is answered to its end; None if nothing of the responses could be decrypted."""
    http3: bool
    """The streams hold HTTP/3, whose frames are more than the files."""


def stream_bytes(client: Trace) -> StreamBytes:
    """The bytes of the responses and whether all are there (RFC 9000, section 3.2: all data up to the final size)."""
    answers = responses(client)
    wanted = requested_streams(client) | answers.keys()
    complete = all(stream in answers and answers[stream].whole for stream in wanted) if answers else None
    http3 = any(each.alpn.startswith("h3") for each in client.connections)
    return StreamBytes(sum(each.arrived for each in answers.values()), complete, http3)


def _inside_ns3(path: Path) -> bool:
    """Whether ns-3 wrote a trace at one of its own devices, whose link type is PPP."""
    try:
        return next(iter(unsorted_records(path))).link_type == PPP
    except (DamagedTraceError, StopIteration):
        return False
