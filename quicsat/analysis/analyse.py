"""Judges a run from its evidence, files and traces: an outcome with its reason, and the numbers if it succeeded."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from quicsat.analysis import metrics, queue_drops, run_outcome, tcp_metrics, upstream_outcome
from quicsat.analysis.causes import FailureContext, explain, explain_tcp
from quicsat.analysis.endpoint_log_tail import quote
from quicsat.analysis.failure_context import closed_by_client, failed_connection, last_sent
from quicsat.analysis.flows import FlowTransfer, flow_metrics, flow_results
from quicsat.analysis.functional_tests import resumption
from quicsat.analysis.functional_tests.rule import Observation, judge
from quicsat.analysis.link_events import LinkHistory, link_history
from quicsat.analysis.negotiated import negotiated
from quicsat.analysis.objects import object_metrics, object_times
from quicsat.analysis.queue_drops import link_losses
from quicsat.analysis.series_metrics import gilbert, sending_times, series_metrics
from quicsat.analysis.time_shares import run_time_shares
from quicsat.analysis.visits import second_visit, visit_times
from quicsat.model.bounds import LEAST_PACKETS, TooLongError, bounded_memory, bounded_time
from quicsat.model.emulated_link import SimulatorReport
from quicsat.model.errors import HarnessFault
from quicsat.model.evidence import Deadline, Evidence
from quicsat.model.flow import flow_directory
from quicsat.model.implementation import Protocol, Role
from quicsat.model.outcomes import Cause, Check, ErrorCode, Outcome, Rules, Verdict
from quicsat.model.real_link import CLOCKS
from quicsat.model.results import Measurement, ObjectTimes
from quicsat.model.run import Run
from quicsat.model.test_case import HTTP2_TESTS, MULTICONNECT, ORDERED_TESTS, PROTOCOL_TESTS, TestCase, path_rate
from quicsat.model.text import counted
from quicsat.model.trace_size import trace_packets
from quicsat.model.units import MIB, byte_size, seconds
from quicsat.model.webtransport import WebTransport
from quicsat.results.compression import compress
from quicsat.traces.columns import Trace
from quicsat.traces.key_log import upstream_lines
from quicsat.traces.packet_matching import PacketMatches
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.records import Condition
from quicsat.traces.run_traces import CLIENT_TRACE as CLIENT_TRACE
from quicsat.traces.run_traces import KEY_LOGS, RunTraces, TraceStates, check_traces, read_run
from quicsat.traces.run_traces import SERVER_TRACE as SERVER_TRACE
from quicsat.traces.series import FILE_NAME as SERIES_FILE
from quicsat.traces.series import Series, save
from quicsat.traces.tcp import TcpTrace
from quicsat.traces.tcp_events import TcpTracePair

TRACE_CODES = {
    Condition.EMPTY: ErrorCode.TRACE_EMPTY,
    Condition.TRUNCATED: ErrorCode.TRACE_TRUNCATED,
    Condition.CORRUPT: ErrorCode.TRACE_CORRUPT,
}
CLOCK_MARGIN = 0.05
"""Seconds by which clocks may differ more than expected before a note says so."""
UNSOLICITED_SHARE, UNSOLICITED_LEAST = 0.001, 10
"""Share of the packets that arrived over a real link which may come from others, and how many of a short run."""
PASSED = Verdict(Outcome.SUCCEEDED)
TRIES = 3
"""Attempts at the analysis of the same files."""
MEMORY, CPU_TIME = 1024 * MIB, 120.0
"""Bytes and seconds for the analysis of a run whose traces may have ``LEAST_PACKETS``; others have more in proportion.
"""
SPAN_MARGIN = 1.0
"""Seconds that a trace may be longer than the phases of its run together."""

NO_KEYS = "No key log: the numbers that need the streams are missing, and the streams were not checked."
WRONG_KEYS = "The key log does not fit the trace: the streams were not checked, and their numbers are missing."
SOME_KEYS = "The key log has the keys of some connections only: the others were not checked, and numbers lack them."
TCP_STREAM = "TCP: the stream holds TLS records, which were not compared with the files."
NO_STREAMS = (
    "No streams of HTTP/2 could be read, so that the times of the objects are missing: the key log is missing or does "
    "not fit, or the client used HTTP/1.1 and fetched the files one after another."
)
HTTP2 = "HTTP/2: the streams were not compared with the files."
HTTP3 = "HTTP/3: the streams were not compared with the files."


def analyse(run: Run, evidence: Evidence, directory: Path) -> tuple[Verdict, Measurement | None]:
    """What became of a run whose files lie in ``directory``, where its series are written.

    The attempt is valid or not before its outcome is known: first the faults of ours, then the disturbances of host
    and link, then whether both traces are whole and agree. Only then count exit statuses, files, and what the traces
    say. An attempt that is not valid ends in ``ERROR``, whose ``if_valid`` is the verdict that it would have had, as
    far as the evidence tells. Functional tests have no numbers; of measurements, a run that timed out has the
    measured loss, but no goodput. The link is that which the run had with its perturbation.
    """
    run = run.under(evidence.perturbation)
    broken_off = run_outcome.harness(evidence, run.test_case)
    if broken_off is not None:
        return broken_off, None
    disturbance = _disturbance(evidence, run.test_case)
    verdict, measurement = _readable_outcome(run, evidence, directory)
    if disturbance is None:
        return verdict, measurement
    return replace(disturbance, if_valid=verdict.if_valid if verdict.excluded else verdict), None


def analyse_once(run: Run, evidence: Evidence, directory: Path) -> tuple[Verdict, Measurement | None]:
    """As :func:`analyse`, right after the run; then its qlogs and large logs are compressed, as later analyses read."""
    found = analyse(run, evidence, directory)
    compress(directory)
    return found


def _readable_outcome(run: Run, evidence: Evidence, directory: Path) -> tuple[Verdict, Measurement | None]:
    """What endpoints, files and traces say. If that fails on the same files time and again, what an endpoint has sent
    or written is the reason, and the verdict counts. Only what the machine does, an OSError, is raised."""
    scale = trace_packets(run.test_case) / LEAST_PACKETS
    for _ in range(TRIES):
        try:
            with bounded_memory(round(MEMORY * scale)), bounded_time(CPU_TIME * scale):
                return _outcome(run, evidence, directory)
        except OSError:
            raise
        except TooLongError as error:  # it would be the same again
            fault = f"failed: {type(error).__name__}{_place(error)}"
            break
        except Exception as error:  # noqa: BLE001 - whatever it is, an endpoint must not escape its verdict
            fault = f"failed {TRIES} times: {type(error).__name__}{_place(error)}"
    flows = (_Flow.of(run, evidence, directory, number) for number in range(1, 2 + len(run.others)))
    verdict = next(filter(None, map(_endpoints, flows)), None)
    unread = f"The analysis of its packets and logs {fault}."
    if verdict is not None:
        return replace(verdict, reason=f"{verdict.reason} {unread}"), None
    return run_outcome.failed(ErrorCode.UNREADABLE, unread), None


def _place(error: Exception) -> str:
    """``" in analyse.py:12"``, where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" in {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""


@dataclass(frozen=True)
class _Flow:
    """One flow of a run, counted from 1, and what it left."""

    run: Run
    """Its pair and protocol."""
    evidence: Evidence
    """Of this flow alone."""
    directory: Path
    """Of the run."""
    number: int

    @classmethod
    def of(cls, run: Run, evidence: Evidence, directory: Path, number: int) -> _Flow:
        own = run if number == 1 else run.others[number - 2]
        return cls(own, run_outcome.of_flow(evidence, number), directory, number)

    @property
    def case(self) -> TestCase:
        return self.run.test_case

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.evidence.offered)

    def quoting(self, verdict: Verdict) -> Verdict:
        """The verdict with what the endpoint that failed said last."""
        said = quote(verdict, self.evidence, self.case, self.directory, self.number)
        return replace(verdict, reason=verdict.reason + said)

    def named(self, verdict: Verdict) -> Verdict:
        """The verdict on a further flow, with a reason that names it."""
        pair = f"{self.run.server.name} with {self.run.client.name}"
        return replace(verdict, reason=f"Flow {self.number}, {pair}: {verdict.reason}")


def _outcome(run: Run, evidence: Evidence, directory: Path) -> tuple[Verdict, Measurement | None]:
    """What endpoints, files and traces say of all flows; the first flow with a fault decides."""
    flow = _Flow.of(run, evidence, directory, run_outcome.first_flow_to_judge(evidence))
    verdict, measurement, first = _of_flow(flow)
    if flow.number > 1:
        return flow.named(verdict), None
    if not run.others or measurement is None or first is None:
        return verdict, measurement
    transfers = [replace(first, start=0.0)]
    for number in range(2, 2 + len(run.others)):
        flow = _Flow.of(run, evidence, directory, number)
        verdict, _, transfer = _of_flow(flow)
        if transfer is None:
            return flow.named(verdict), None
        transfers.append(replace(transfer, start=transfer.start - first.start))
    values = _known({**flow_metrics(transfers, run.test_case.link.round_trip_delay)})
    return verdict, replace(measurement, values=measurement.values | values, flows=flow_results(transfers))


def _of_flow(flow: _Flow) -> tuple[Verdict, Measurement | None, FlowTransfer | None]:
    """What is to be said of one flow; if it succeeded, with its transfer, whose start is absolute."""
    verdict = _endpoints(flow)
    if verdict is not None:
        verdict = flow.quoting(verdict)
        if verdict.excluded or not _began(flow.evidence):
            return verdict, None, None
    traces = _traces(flow, verdict)
    if isinstance(traces, Verdict):
        return traces, None, None
    if verdict is None:
        verdict, measurement = _judged(flow, traces)
        succeeded = verdict.outcome is Outcome.SUCCEEDED
        return verdict, measurement, FlowTransfer(flow.run, traces.start, traces.series()) if succeeded else None
    measured = verdict.outcome is Outcome.TIMEOUT and not flow.case.functional
    verdict = _explained(_blamed(verdict, flow, traces), flow, traces)
    return verdict, _of_timeout(flow, traces) if measured else None, None


def _traces(flow: _Flow, verdict: Verdict | None) -> RunTraces | Verdict:
    """The traces of a flow, whose series are stored; else the verdict on it.

    Faults of the traces come before what the endpoints did, which is ``verdict``. Series of damaged traces are stored,
    too, if there are none yet.
    """
    directory, case = flow.directory, flow.case
    try:
        found = check_traces(directory, flow.run.protocol, flow.number, trace_packets(case), upstream=_strict(case))
        fault = _structure(found, flow, succeeded=verdict is None)
        if fault is None and verdict is not None and _nothing_to_read(verdict, found):
            return verdict
        own = flow_directory(directory, flow.number)
        if fault is None or (found.incomplete and not (own / SERIES_FILE).exists()):
            traces = read_run(directory, flow.run.protocol, case.link, found, flow.number)
            save(traces.series(), own)
        if fault is None and not case.functional:
            fault = _unmatched_packets(traces, flow.evidence)
    except HarnessFault as broken:
        fault = _unread(broken, verdict, case)
    except OSError as error:
        fault = run_outcome.our_error(ErrorCode.DISK_FULL, f"{SERIES_FILE} could not be written: {error.strerror}.")
    if fault is None:
        return traces
    # only the traces show whether a functional test passed
    return replace(fault, if_valid=verdict or PASSED if fault.excluded and not case.functional else None)


def _unread(fault: HarnessFault, verdict: Verdict | None, test_case: TestCase) -> Verdict:
    """The verdict on a run whose traces could not be read; ``verdict``: that on a run whose endpoints failed."""
    if fault.code != ErrorCode.TRACE_LIMIT:
        return run_outcome.our_error(ErrorCode(fault.code), fault.reason)
    if verdict is not None:
        return replace(verdict, reason=f"{verdict.reason} The traces were not read: {fault.reason}.")
    return run_outcome.trace_limit(fault.reason + ".", test_case)


def _endpoints(flow: _Flow) -> Verdict | None:
    """What the endpoints did wrong, by their ends and by the files; None if nothing."""
    evidence, case = flow.evidence, flow.case
    if _strict(case):
        keys = bool(upstream_lines(*(flow.directory / key_log for key_log in KEY_LOGS)))
        ends = upstream_outcome.endpoints(evidence, case, flow.directory, keys)
    else:
        ends = run_outcome.endpoint_ends(evidence, case) or run_outcome.transfer(evidence, case)
    if ends is not None or _stopped(evidence, case):
        return ends
    if case.webtransport is not None:
        return run_outcome.session_files(evidence, case.webtransport)
    return run_outcome.files(evidence.offered, evidence.downloaded)


def _strict(test_case: TestCase) -> bool:
    """Whether the QUIC Interop Runner's rules judge the run."""
    return test_case.functional and test_case.rules is Rules.UPSTREAM


def _stopped(evidence: Evidence, test_case: TestCase) -> bool:
    """Whether the run lasted for its given time, so that the client has only a part of its file."""
    return test_case.ends_at_deadline and evidence.timed_out is Deadline.TRANSFER


def _began(evidence: Evidence) -> bool:
    """Whether the client was started; before that the link carries nothing, and leaves neither report nor traces."""
    client = evidence.client
    return (
        evidence.timed_out is not Deadline.READY and client is not None and (client.killed or client.status is not None)
    )


def _nothing_to_read(verdict: Verdict, found: TraceStates) -> bool:
    """Whether the traces of a failed run hold no cause: the test is unknown to an endpoint, or no packet was sent."""
    empty = Condition.EMPTY in (found.client.condition, found.server.condition)
    return verdict.outcome is Outcome.UNSUPPORTED or empty


def _blamed(verdict: Verdict, flow: _Flow, traces: RunTraces) -> Verdict:
    """The verdict, unless it blames a server for its end that the client had caused."""
    client, server = run_outcome.left_by_client(flow.evidence, flow.case), flow.evidence.server
    if client is None or verdict.code is not ErrorCode.SERVER_EXITED or server is None or server.life is None:
        return verdict
    if flow.evidence.real_link or not isinstance(traces.trace_pair, QuicTracePair):
        return verdict
    context = failed_connection(_context(flow, traces, traces.trace_pair))
    return flow.quoting(client) if closed_by_client(context, server.life.end) else verdict


def _explained(verdict: Verdict, flow: _Flow, traces: RunTraces) -> Verdict:
    """The verdict on a run that did not succeed, with what its traces say of the cause."""
    series = traces.series()
    if isinstance(traces.trace_pair, TcpTracePair):
        link = _link_history(flow, traces)
        cause, sentence = explain_tcp(traces.trace_pair, series, flow.size, link, flow.evidence.transfer_time)
    else:
        cause, sentence = explain(_context(flow, traces, traces.trace_pair))
    received = int(series.arrived.new.sum())
    if cause is Cause.TOO_SLOW and verdict.outcome is not Outcome.TIMEOUT:  # it ended before its time
        cause, sentence = Cause.NONE, f"{byte_size(received)} of {byte_size(flow.size)} had arrived."
    reason = " ".join(filter(None, (verdict.reason, sentence, *traces.unread)))
    return replace(verdict, reason=reason, cause=cause, received=received if len(series.arrived) else None)


def _link_history(flow: _Flow, traces: RunTraces) -> LinkHistory:
    evidence = flow.evidence
    last = max(last_sent(traces.series()), evidence.transfer_time)
    return link_history(flow.case.link, evidence.simulator, evidence.seed, traces.start, last)


def _context(flow: _Flow, traces: RunTraces, trace_pair: QuicTracePair) -> FailureContext:
    evidence, series, link = flow.evidence, traces.series(), flow.case.link
    duration, killed = evidence.transfer_time, evidence.client is not None and evidence.client.killed
    during = traces.start, traces.start + max(last_sent(series), duration)
    rate = metrics.forward_capacity(link, evidence.simulator, evidence.seed, during)
    rate = path_rate(link) if rate is None else rate
    history = _link_history(flow, traces)
    return FailureContext(trace_pair, series, flow.size, rate, killed, duration, link=history)


def _judged(flow: _Flow, traces: RunTraces) -> tuple[Verdict, Measurement | None]:
    """What the traces of a flow say that has done all that it should."""
    run, evidence = flow.run, flow.evidence
    if run.test_case.functional:
        return _functional(flow, traces)
    sizes = tuple(file.size for file in evidence.offered)
    stopped = _stopped(evidence, run.test_case)
    if stopped:
        sizes = (int(traces.series().arrived.new.sum()),)
        if not sizes[0]:
            reason = f"No data arrived within {run.test_case.timeout:g} s, or its streams could not be read."
            return Verdict(Outcome.TIMEOUT, ErrorCode.TIMEOUT, reason), None
    verdict = _trace_verdict(traces, run.endpoint_test_case, sizes, whole=not stopped)
    if verdict is not None:
        return replace(verdict, if_valid=PASSED if verdict.excluded else None), None
    return PASSED, _measure(flow, traces, sizes)


def _disturbance(evidence: Evidence, test_case: TestCase) -> Verdict | None:
    """Whether other runs took the CPU, the simulator was late, or a host was unreachable.

    It looks at nothing that depends on the outcome. A run whose client was not started has no link to judge.
    """
    starved = run_outcome.starved(evidence)
    if starved is not None or not _began(evidence):
        return starved
    if test_case.real:
        return run_outcome.real_link(evidence.real_link)
    return run_outcome.simulator(evidence.simulator, test_case.link.round_trip_delay)


def _structure(found: TraceStates, flow: _Flow, *, succeeded: bool) -> Verdict | None:
    """Whether both trace files are whole. One without packets is whole if the link has carried none.

    A success (``succeeded``) that no packet explains contradicts its trace.
    """
    for side, state in (("client", found.client), ("server", found.server)):
        if state.condition is Condition.EMPTY and not succeeded and not _carried(flow.evidence, Role(side), flow.case):
            continue
        if state.condition is not Condition.OK:
            reason = f"The {side}'s trace cannot be used: {state.reason}"
            if found.incomplete:
                reason += " The series have the packets before, without effect on the outcome."
            return run_outcome.our_error(TRACE_CODES[state.condition], reason)
        span = flow.evidence.span
        if span is not None and state.duration > span + SPAN_MARGIN:
            reason = f"The {side}'s trace covers {seconds(state.duration)} of a run of {seconds(span)}."
            return run_outcome.our_error(ErrorCode.TRACE_CORRUPT, reason)
    return None


def _carried(evidence: Evidence, side: Role, test_case: TestCase) -> int:
    """Packets of the endpoints that the link counted at one of its ends; 0 if it counts those of a tunnel."""
    if test_case.tunnelled:
        return 0
    if evidence.real_link is not None:
        report = evidence.real_link
        return report.client_capture.captured if side is Role.CLIENT else report.server_capture.captured
    if evidence.simulator is None:
        return 0
    forward, back = evidence.simulator.forward, evidence.simulator.back
    return forward.delivered + back.received if side is Role.CLIENT else forward.received + back.delivered


def _functional(flow: _Flow, traces: RunTraces) -> tuple[Verdict, Measurement | None]:
    """What both traces of a functional test say; times of visits or of an upload if it passed and is about them."""
    pair, case, values = traces.trace_pair, flow.case, dict[str, float]()
    if isinstance(pair, TcpTracePair):
        verdict = resumption.over_tcp(pair.seen) if case.check is Check.RESUMPTION else None
        return (verdict, None) if verdict is not None else (PASSED, _visits(pair.seen))
    keys = _strict(case) or bool(traces.keys)  # upstream's have been looked at
    verdict = judge(Observation(case, pair.client, pair.server, keys))
    if verdict is not None:
        return verdict, None
    if case.check in (Check.RESUMPTION, Check.ZERO_RTT):
        return PASSED, _visits(pair.client)
    if case.webtransport is WebTransport.SEND:
        values = metrics.upload_values(pair.client, pair.server, (file.size for file in flow.evidence.offered))
    return PASSED, Measurement(values) if values else None


def _visits(client: Trace | TcpTrace) -> Measurement | None:
    """Times of both visits, and what the second one negotiated; None without a second one."""
    second, values = second_visit(client), visit_times(client)
    return Measurement(values, negotiated=negotiated(client, second)) if values and second is not None else None


def _trace_verdict(traces: RunTraces, test_case: TestCase, sizes: tuple[int, ...], *, whole: bool) -> Verdict | None:
    """Whether the traces show one transfer of the files; the pair is blamed only if they can be believed.

    If the run was stopped, they need not be ``whole``.
    """
    verdict = None
    if isinstance(traces.trace_pair, QuicTracePair):
        client = traces.trace_pair.client
        connections = len(sizes) if test_case.client_test == MULTICONNECT else 1
        verdict = run_outcome.handshake_count(client, connections) or run_outcome.version(client)
    return verdict or (_useful_bytes(traces, test_case, sizes) if whole else None)


def _unmatched_packets(traces: RunTraces, evidence: Evidence) -> Verdict | None:
    """Check that every packet that arrived was sent, except those that the link reports as corrupted or duplicated."""
    report = evidence.simulator
    ways = traces.trace_pair.forward, traces.trace_pair.back
    if report:
        others = [way.corrupted + way.duplicated for way in (report.forward, report.back)]
    else:
        others = [_unsolicited(way) if evidence.real_link else 0 for way in ways]
    if traces.cut or all(way.unmatched <= other for way, other in zip(ways, others, strict=True)):
        return None
    reason = (
        f"The two traces contradict each other: {counted(ways[0].unmatched, 'packet')} arrived at the client and "
        f"{ways[1].unmatched} at the server that the other side never sent."
    )
    return run_outcome.our_error(ErrorCode.TRACE_MISMATCH, reason)


def _unsolicited(way: PacketMatches) -> int:
    """Packets of one direction that may come from third parties, who scan public addresses."""
    return max(UNSOLICITED_LEAST, int(UNSOLICITED_SHARE * (way.arrived >= 0).sum()))


def _useful_bytes(traces: RunTraces, test_case: TestCase, sizes: tuple[int, ...]) -> Verdict | None:
    """Check that the client's trace contains the files, as far as it is readable."""
    if isinstance(traces.trace_pair, QuicTracePair) and traces.readable and not _http3(test_case):
        verdict = run_outcome.coverage(traces.trace_pair.client, sizes)
        if verdict is None or not run_outcome.unread_connections(traces.trace_pair.client):
            return verdict
    if traces.payload >= sum(sizes):
        return None
    reason = (
        f"The client's trace shows {counted(traces.payload, 'byte')} from the server, but the files have {sum(sizes)}."
    )
    return run_outcome.our_error(ErrorCode.TRACE_MISMATCH, reason)


def _http3(test_case: TestCase) -> bool:
    return test_case.client_test in (PROTOCOL_TESTS[Protocol.H3], ORDERED_TESTS[Protocol.H3])


# ---- numbers --------------------------------------------------------------------------------


def _measure(flow: _Flow, traces: RunTraces, sizes: tuple[int, ...]) -> Measurement:
    """All numbers that the traces give; ``sizes``: bytes of the files that arrived."""
    series, pair, evidence, case = traces.series(), traces.trace_pair, flow.evidence, flow.run.endpoint_test_case
    size, report = sum(sizes), evidence.simulator
    values = _tcp_times(pair, series, size) if isinstance(pair, TcpTracePair) else _times(pair, size)
    rate = values["goodput"]
    values |= {
        "efficiency": _efficiency(rate, pair, evidence, case),
        "sent_per_useful_byte": metrics.sent_per_useful_byte(pair.at_server, size),
        "tunnel_overhead": traces.tunnel_overhead,
    }
    if report is not None:
        values |= {
            "queue_loss": queue_drops.queue_loss(report),
            "link_loss": queue_drops.link_loss(report),
            "client_side_loss": queue_drops.client_side_loss(report),
            "client_side_queue_loss": queue_drops.client_side_queue_loss(report),
            "cross_traffic_goodput": metrics.cross_traffic_goodput(report),
        }
    values |= metrics.endpoint_cost(evidence.use, size)
    if not traces.cut:
        values |= {"loss_forward": pair.forward.loss, "loss_return": pair.back.loss}
        values |= series_metrics(series, case.link.forward.highest_rate)
        values |= _link_losses(pair, series, case, report)
    objects = _objects(traces, series, case, sizes)
    values |= object_metrics(series, objects)
    values |= traces.optional("shares of the transfer's time", lambda: _time_shares(traces, series, flow), _NO_VALUES)
    seen = pair.seen if isinstance(pair, TcpTracePair) else pair.client
    facts = traces.optional("handshake", lambda: negotiated(seen), None)
    below = [name for name, value in values.items() if value is not None and value < 0]
    notes = (
        *_notes(traces, case, rate),
        *_clocks(series, evidence),
        *traces.unread,
        *(f"The traces give a value below 0 for {name}, which is left out." for name in below),
    )
    return Measurement(_known(values), notes, objects, negotiated=facts, sending_times=sending_times(series))


_NO_VALUES: dict[str, float | None] = {}


def _time_shares(traces: RunTraces, series: Series, flow: _Flow) -> dict[str, float | None]:
    """Seconds for which the transfer waited for each thing; nothing if it is not known."""
    found = run_time_shares(traces, series, flow.run.endpoint_test_case, flow.evidence)
    return _NO_VALUES if found is None else {share.metric: taken for share, taken in found.seconds.items()}


def _link_losses(
    pair: QuicTracePair | TcpTracePair, series: Series, test_case: TestCase, report: SimulatorReport | None
) -> dict[str, float | None]:
    """Gilbert model of the link's loss behind the queue; nothing if it cannot be told from other drops."""
    if report is None or test_case.flows or test_case.tunnelled:
        return {}
    beside = report.client_side and report.client_side.forward
    lost_beside = beside.loss_drops + beside.queue_drops if beside else 0
    behind_proxy = isinstance(pair, TcpTracePair) and pair.own is not None
    if lost_beside and not behind_proxy:
        return {}
    link = replace(test_case.emulated, client_side=None) if behind_proxy else test_case.link
    lost = link_losses(series.forward, link, report.forward)
    return {} if lost is None else {f"link_gilbert_{name}": value for name, value in gilbert(lost).items()}


def _efficiency(
    rate: float | None, trace_pair: QuicTracePair | TcpTracePair, evidence: Evidence, test_case: TestCase
) -> float | None:
    """Goodput over what the link offered in its time; None if either is unknown."""
    client = trace_pair.seen if isinstance(trace_pair, TcpTracePair) else trace_pair.client
    times = tcp_metrics.goodput_interval(client) if isinstance(client, TcpTrace) else metrics.goodput_interval(client)
    if rate is None or times is None:
        return None
    during = client.epoch + times[0], client.epoch + times[1]
    capacity = metrics.forward_capacity(test_case.link, evidence.simulator, evidence.seed, during)
    return None if capacity is None else metrics.efficiency(rate, capacity)


def _objects(traces: RunTraces, series: Series, test_case: TestCase, sizes: tuple[int, ...]) -> tuple[ObjectTimes, ...]:
    """Times of the objects of a workload; over TCP of HTTP/2 alone, since objects otherwise share a stream."""
    workload, pair = test_case.workload, traces.trace_pair
    if workload is None or workload.duration is not None:
        return ()
    if isinstance(pair, TcpTracePair) and pair.seen.http2 is None:
        return ()
    return object_times(series, sizes, workload)


def _times(trace_pair: QuicTracePair, size: int) -> dict[str, float | None]:
    """What the client of a run over QUIC saw."""
    return {
        "goodput": metrics.goodput(trace_pair.client, size),
        "stream_goodput": metrics.stream_goodput(trace_pair.client, size),
        "handshake_time": metrics.handshake_time(trace_pair.client),
        "time_to_first_byte": metrics.time_to_first_byte(trace_pair.client),
        "completion_time": metrics.completion_time(trace_pair.client),
    }


def _tcp_times(trace_pair: TcpTracePair, series: Series, size: int) -> dict[str, float | None]:
    """What the client of a run over TCP saw."""
    first, last = series.requests.first_byte, series.requests.last_byte
    return {
        "goodput": tcp_metrics.goodput(trace_pair.seen, size),
        "handshake_time": tcp_metrics.handshake_time(trace_pair.seen),
        "time_to_first_byte": float(np.nanmin(first)) if np.isfinite(first).any() else None,
        "completion_time": float(np.nanmax(last)) if np.isfinite(last).any() else None,
    }


def _notes(traces: RunTraces, test_case: TestCase, rate: float | None) -> Iterator[str]:
    if isinstance(traces.trace_pair, TcpTracePair):
        yield from _tcp_notes(traces.trace_pair, test_case)
    elif not traces.keys:
        yield NO_KEYS
    elif not traces.readable:
        yield WRONG_KEYS
    elif run_outcome.unread_connections(traces.trace_pair.client):
        yield SOME_KEYS
    elif _http3(test_case):
        yield HTTP3
    if traces.cut:
        yield (
            f"{counted(traces.cut, 'packet of the traces is', 'packets of the traces are')} cut, so "
            "that the loss could not be measured."
        )
    yield from (f"Server's qlog: {note}" for note in traces.qlog_notes)
    if rate is None:
        yield "The server sent no two 1-RTT packets at different times, so there is no goodput."


def _tcp_notes(pair: TcpTracePair, test_case: TestCase) -> Iterator[str]:
    yield TCP_STREAM if pair.seen.http2 is None else HTTP2
    if test_case.client_test in HTTP2_TESTS.values() and pair.seen.http2 is None:
        yield NO_STREAMS


def _clocks(series: Series, evidence: Evidence) -> Iterator[str]:
    """What a reader should know if the clocks of two hosts differ by more than is expected."""
    if evidence.real_link is None or not np.isfinite(series.clock.uncertainty):
        return
    expected, found = evidence.real_link.expected_skew, series.clock.offset
    if abs(found - expected) > max(CLOCK_MARGIN, series.clock.uncertainty):
        ahead = "server" if found > 0 else "client"
        yield (
            f"{CLOCKS} differ by {seconds(abs(found))}, the {ahead}'s is ahead; {seconds(abs(expected))} were "
            "expected. One-way delays are corrected by that."
        )


def _of_timeout(flow: _Flow, traces: RunTraces) -> Measurement | None:
    """The loss of a transfer that timed out, and what its time went into; None if its traces are cut."""
    if traces.cut:
        return None
    pair, series = traces.trace_pair, traces.series()
    values = {"loss_forward": pair.forward.loss, "loss_return": pair.back.loss}
    shares = traces.optional("shares of the transfer's time", lambda: _time_shares(traces, series, flow), _NO_VALUES)
    known = _known(values | shares)
    until = " and the shares of the time until the last byte that arrived were" if shares else " was"
    return Measurement(known, (f"The run timed out: only the loss{until} measured.",)) if known else None


def _known(values: dict[str, float | None]) -> dict[str, float]:
    """Without what is unknown, and what no run can have."""
    return {name: value for name, value in values.items() if value is not None and value >= 0}
