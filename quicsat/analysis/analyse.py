"""Judges a run from its evidence, files and traces: an outcome with its reason, and the numbers if it succeeded."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from quicsat.analysis import metrics, queue_drops, run_outcome, tcp_metrics, upstream_outcome
from quicsat.analysis.causes import FailureContext, explain, explain_tcp
from quicsat.analysis.endpoint_log_tail import quote
from quicsat.analysis.failure_context import closed_by_client, failed_connection, last_sent
from quicsat.analysis.flows import FlowTransfer, flow_metrics, flow_results
from quicsat.analysis.functional_tests.rule import Observation, judge
from quicsat.analysis.link_events import LinkHistory, link_history
from quicsat.analysis.negotiated import negotiated
from quicsat.analysis.objects import object_metrics, object_times
from quicsat.analysis.queue_drops import link_losses
from quicsat.analysis.series_metrics import gilbert, sending_times, series_metrics
from quicsat.analysis.uploads import upload_values
from quicsat.analysis.visits import visit_times
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
from quicsat.model.test_case import MULTICONNECT, ORDERED_TESTS, PROTOCOL_TESTS, TestCase
from quicsat.model.text import counted
from quicsat.model.trace_size import trace_packets
from quicsat.model.units import MIB, byte_size, seconds
from quicsat.model.webtransport import WebTransport
from quicsat.results.compression import compress
from quicsat.traces.key_log import upstream_lines
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
HTTP3 = "HTTP/3: the streams were not compared with the files."


def analyse(run: Run, evidence: Evidence, directory: Path) -> tuple[Verdict, Measurement | None]:
    """What became of a run whose files lie in ``directory``, where its series are written.

    The attempt is valid or not before its outcome is known: first the faults of ours, then the disturbances of host
    and link, then whether both traces are whole and agree. Only then count exit statuses, files, and what the traces
    say. An attempt that is not valid ends in ``ERROR``, whose ``if_valid`` is the verdict that it would have had, as
    far as the evidence tells. Functional tests have no numbers; of measurements, a run that timed out has the
    measured loss, but no goodput.
    """
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
    flows = (run_outcome.of_flow(evidence, number) for number in range(1, 2 + len(run.others)))
    verdict = next(filter(None, (_endpoints(flow, run.test_case, directory) for flow in flows)), None)
    unread = f"The analysis of its packets and logs {fault}."
    if verdict is not None:
        return replace(verdict, reason=f"{verdict.reason} {unread}"), None
    return run_outcome.failed(ErrorCode.UNREADABLE, unread), None


def _place(error: Exception) -> str:
    """``" in analyse.py:12"``, where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" in {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""


def _outcome(run: Run, evidence: Evidence, directory: Path) -> tuple[Verdict, Measurement | None]:
    """What endpoints, files and traces say of all flows; the first flow with a fault decides."""
    if (number := run_outcome.first_flow_to_judge(evidence)) > 1:
        return _further(run, evidence, directory, number)[0], None
    verdict, measurement, first = _flow(run, run_outcome.of_flow(evidence, 1), directory, 1)
    if not run.others or verdict.outcome is not Outcome.SUCCEEDED or measurement is None or first is None:
        return verdict, measurement
    flows = [first]
    for number in range(2, 2 + len(run.others)):
        verdict, found = _further(run, evidence, directory, number)
        if found is None:
            return verdict, None
        flows.append(replace(found, start=found.start - first.start))
    flows[0] = replace(first, start=0.0)
    values = _known({**flow_metrics(flows, run.test_case.link.round_trip_delay)})
    return verdict, replace(measurement, values=measurement.values | values, flows=flow_results(flows))


def _further(run: Run, evidence: Evidence, directory: Path, number: int) -> tuple[Verdict, FlowTransfer | None]:
    """What is to be said of a further flow, counted from 1; if it did not succeed, the reason names it."""
    other = run.others[number - 2]
    verdict, _, found = _flow(other, run_outcome.of_flow(evidence, number), directory, number)
    if found is None:
        named = f"Flow {number}, {other.server.name} with {other.client.name}: {verdict.reason}"
        verdict = replace(verdict, reason=named)
    return verdict, found


def _flow(
    run: Run, evidence: Evidence, directory: Path, flow: int
) -> tuple[Verdict, Measurement | None, FlowTransfer | None]:
    """What is to be said of one flow, counted from 1; if it succeeded, with its transfer, whose start is absolute.

    Faults of the traces come before what the endpoints did.
    """
    own = flow_directory(directory, flow)
    verdict = _endpoints(evidence, run.test_case, directory)
    if verdict is not None:
        verdict = replace(verdict, reason=verdict.reason + quote(verdict, evidence, run.test_case, directory, flow))
        if verdict.excluded or not _began(evidence):
            return verdict, None, None
    try:
        found = check_traces(directory, run.protocol, flow, trace_packets(run.test_case))
        fault = _structure(found, evidence, run.test_case, succeeded=verdict is None)
        if fault is None and verdict is not None and _nothing_to_read(verdict, found):
            return verdict, None, None
        if fault is None or (found.incomplete and not (own / SERIES_FILE).exists()):
            traces = read_run(directory, run.protocol, run.test_case.link, found, flow, upstream=_strict(run.test_case))
            series = traces.series()
            save(series, own)
        if fault is None and not run.test_case.functional:
            fault = _unmatched_packets(traces, evidence)
    except HarnessFault as broken:
        fault = _unread(broken, verdict, run.test_case)
    except OSError as error:
        fault = run_outcome.our_error(ErrorCode.DISK_FULL, f"{SERIES_FILE} could not be written: {error.strerror}.")
    if fault is not None:  # only the traces show whether a functional test passed
        known = verdict or PASSED if fault.excluded and not run.test_case.functional else None
        return replace(fault, if_valid=known), None, None
    if verdict is None:
        verdict, measurement = _judged(run, evidence, traces, series)
        succeeded = verdict.outcome is Outcome.SUCCEEDED
        return verdict, measurement, FlowTransfer(run, traces.start, series) if succeeded else None
    measured = verdict.outcome is Outcome.TIMEOUT and not run.test_case.functional
    verdict = _blamed(verdict, run, evidence, traces, series, directory, flow)
    return _explained(verdict, run, evidence, traces, series), _loss_only(traces) if measured else None, None


def _unread(fault: HarnessFault, verdict: Verdict | None, test_case: TestCase) -> Verdict:
    """The verdict on a run whose traces could not be read; ``verdict``: that on a run whose endpoints failed."""
    if fault.code != ErrorCode.TRACE_LIMIT:
        return run_outcome.our_error(ErrorCode(fault.code), fault.reason)
    if verdict is not None:
        return replace(verdict, reason=f"{verdict.reason} The traces were not read: {fault.reason}.")
    return run_outcome.trace_limit(fault.reason + ".", test_case)


def _endpoints(evidence: Evidence, test_case: TestCase, directory: Path) -> Verdict | None:
    """What the endpoints did wrong, by their ends and by the files; None if nothing."""
    if _strict(test_case):
        keys = bool(upstream_lines(*(directory / key_log for key_log in KEY_LOGS)))
        ends = upstream_outcome.endpoints(evidence, test_case, directory, keys)
    else:
        ends = run_outcome.endpoint_ends(evidence, test_case) or run_outcome.transfer(evidence, test_case)
    return ends or (None if _stopped(evidence, test_case) else _files(evidence, test_case))


def _strict(test_case: TestCase) -> bool:
    """Whether the QUIC Interop Runner's rules judge the run."""
    return test_case.functional and test_case.rules is Rules.UPSTREAM


def _files(evidence: Evidence, test_case: TestCase) -> Verdict | None:
    if test_case.webtransport is not None:
        return run_outcome.session_files(evidence, test_case.webtransport)
    return run_outcome.files(evidence.offered, evidence.downloaded)


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


def _blamed(
    verdict: Verdict, run: Run, evidence: Evidence, traces: RunTraces, series: Series, directory: Path, flow: int
) -> Verdict:
    """The verdict, unless it blames a server for its end that the client had caused."""
    client = run_outcome.left_by_client(evidence, run.test_case)
    server = evidence.server
    if client is None or verdict.code is not ErrorCode.SERVER_EXITED or server is None or server.life is None:
        return verdict
    if evidence.real_link or not isinstance(traces.trace_pair, QuicTracePair):
        return verdict
    context = failed_connection(_context(run, evidence, traces.trace_pair, traces, series))
    if not closed_by_client(context, server.life.end):
        return verdict
    return replace(client, reason=client.reason + quote(client, evidence, run.test_case, directory, flow))


def _explained(verdict: Verdict, run: Run, evidence: Evidence, traces: RunTraces, series: Series) -> Verdict:
    """The verdict on a run that did not succeed, with what its traces say of the cause."""
    size = sum(file.size for file in evidence.offered)
    if isinstance(traces.trace_pair, TcpTracePair):
        link = _link_history(run, evidence, traces, series)
        cause, sentence = explain_tcp(traces.trace_pair, series, size, link, evidence.transfer_time)
    else:
        cause, sentence = explain(_context(run, evidence, traces.trace_pair, traces, series))
    if cause is Cause.TOO_SLOW and verdict.outcome is not Outcome.TIMEOUT:  # it ended before its time
        cause, sentence = Cause.NONE, f"{byte_size(int(series.arrived.new.sum()))} of {byte_size(size)} had arrived."
    reason = " ".join(filter(None, (verdict.reason, sentence, *traces.unread)))
    received = int(series.arrived.new.sum()) if len(series.arrived) else None
    return replace(verdict, reason=reason, cause=cause, received=received)


def _link_history(run: Run, evidence: Evidence, traces: RunTraces, series: Series) -> LinkHistory:
    last = max(last_sent(series), evidence.transfer_time)
    return link_history(run.test_case.link, evidence.simulator, evidence.seed, traces.start, last)


def _context(
    run: Run, evidence: Evidence, trace_pair: QuicTracePair, traces: RunTraces, series: Series
) -> FailureContext:
    size, duration, own = sum(file.size for file in evidence.offered), evidence.transfer_time, run.test_case.link
    killed = evidence.client is not None and evidence.client.killed
    during = traces.start, traces.start + max(last_sent(series), duration)
    rate = metrics.forward_capacity(own, evidence.simulator, evidence.seed, during)
    rate = own.forward.rate if rate is None else rate
    link = _link_history(run, evidence, traces, series)
    return FailureContext(trace_pair, series, size, rate, killed, duration, link=link)


def _judged(run: Run, evidence: Evidence, traces: RunTraces, series: Series) -> tuple[Verdict, Measurement | None]:
    """What the traces of a run say that has done all that it should."""
    if run.test_case.functional:
        judged = _functional(run, traces)
        return judged, _functional_values(run, evidence, traces) if judged.outcome is Outcome.SUCCEEDED else None
    sizes = tuple(file.size for file in evidence.offered)
    stopped = _stopped(evidence, run.test_case)
    if stopped:
        sizes = (int(series.arrived.new.sum()),)
        if not sizes[0]:
            reason = f"No data arrived within {run.test_case.timeout:g} s, or its streams could not be read."
            return Verdict(Outcome.TIMEOUT, ErrorCode.TIMEOUT, reason), None
    verdict = _trace_verdict(traces, run.endpoint_test_case, sizes, whole=not stopped)
    if verdict is not None:
        return replace(verdict, if_valid=PASSED if verdict.excluded else None), None
    return PASSED, _measure(traces, series, evidence, run.endpoint_test_case, sizes)


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


def _structure(found: TraceStates, evidence: Evidence, test_case: TestCase, *, succeeded: bool) -> Verdict | None:
    """Whether both trace files are whole. One without packets is whole if the link has carried none.

    A success (``succeeded``) that no packet explains contradicts its trace.
    """
    for side, state in (("client", found.client), ("server", found.server)):
        if state.condition is Condition.EMPTY and not succeeded and not _carried(evidence, Role(side), test_case):
            continue
        if state.condition is not Condition.OK:
            reason = f"The {side}'s trace cannot be used: {state.reason}"
            if found.incomplete:
                reason += " The series have the packets before, without effect on the outcome."
            return run_outcome.our_error(TRACE_CODES[state.condition], reason)
        span = evidence.span
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


def _functional_values(run: Run, evidence: Evidence, traces: RunTraces) -> Measurement | None:
    """Times of a first and a second visit, or of an upload, if that is what the functional test is about."""
    pair, values = traces.trace_pair, dict[str, float]()
    if isinstance(pair, TcpTracePair):
        return None
    if run.test_case.check in (Check.RESUMPTION, Check.ZERO_RTT):
        values = visit_times(pair.client)
    elif run.test_case.webtransport is WebTransport.SEND:
        values = upload_values(pair.client, pair.server, (file.size for file in evidence.offered))
    return Measurement(values) if values else None


def _functional(run: Run, traces: RunTraces) -> Verdict:
    """What both traces of a functional test say."""
    if isinstance(traces.trace_pair, TcpTracePair):
        return PASSED
    pair, keys = traces.trace_pair, _strict(run.test_case) or bool(traces.keys)  # upstream's have been looked at
    return judge(Observation(run.test_case, pair.client, pair.server, keys)) or PASSED


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
    others = _of_link(report) if report else _unsolicited(traces, evidence)
    forward, back = traces.trace_pair.forward.unmatched, traces.trace_pair.back.unmatched
    if traces.cut or (forward <= others[0] and back <= others[1]):
        return None
    reason = (
        f"The two traces contradict each other: {counted(forward, 'packet')} arrived at the client and "
        f"{back} at the server that "
        "the other side never sent."
    )
    return run_outcome.our_error(ErrorCode.TRACE_MISMATCH, reason)


def _of_link(report: SimulatorReport) -> tuple[int, int]:
    """Packets forward and return that the link made: corrupted ones, and copies."""
    return report.forward.corrupted + report.forward.duplicated, report.back.corrupted + report.back.duplicated


def _unsolicited(traces: RunTraces, evidence: Evidence) -> tuple[int, int]:
    """Packets forward and return that may come from third parties, who scan public addresses."""
    if evidence.real_link is None:
        return 0, 0
    came = (traces.trace_pair.forward.arrived >= 0).sum(), (traces.trace_pair.back.arrived >= 0).sum()
    return max(UNSOLICITED_LEAST, int(UNSOLICITED_SHARE * came[0])), max(
        UNSOLICITED_LEAST, int(UNSOLICITED_SHARE * came[1])
    )


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


def _measure(
    traces: RunTraces, series: Series, evidence: Evidence, test_case: TestCase, sizes: tuple[int, ...]
) -> Measurement:
    """All numbers that the traces give; ``sizes``: bytes of the files that arrived."""
    size, report = sum(sizes), evidence.simulator
    values = (
        _tcp_times(traces.trace_pair, series, size)
        if isinstance(traces.trace_pair, TcpTracePair)
        else _times(traces.trace_pair, size)
    )
    rate = values["goodput"]
    values |= {
        "efficiency": _efficiency(rate, traces.trace_pair, evidence, test_case),
        "sent_per_useful_byte": metrics.sent_per_useful_byte(traces.trace_pair.at_server, size),
        "queue_loss": queue_drops.queue_loss(report) if report is not None else None,
        "link_loss": queue_drops.link_loss(report) if report is not None else None,
        "client_side_loss": queue_drops.client_side_loss(report) if report is not None else None,
        "tunnel_overhead": traces.tunnel_overhead,
        "cross_traffic_goodput": metrics.cross_traffic_goodput(report) if report is not None else None,
    }
    values |= metrics.endpoint_cost(evidence.use, size)
    if not traces.cut:
        values |= {"loss_forward": traces.trace_pair.forward.loss, "loss_return": traces.trace_pair.back.loss}
        link = test_case.link
        values |= series_metrics(series, link.forward.highest_rate)
        values |= _link_losses(traces.trace_pair, series, test_case, report)
    objects = _objects(traces, series, test_case, sizes)
    values |= object_metrics(series, objects)
    pair = traces.trace_pair
    facts = (
        None if isinstance(pair, TcpTracePair) else traces.optional("handshake", lambda: negotiated(pair.client), None)
    )
    below = [name for name, value in values.items() if value is not None and value < 0]
    notes = (
        *_notes(traces, test_case, rate),
        *_clocks(series, evidence),
        *traces.unread,
        *(f"The traces give a value below 0 for {name}, which is left out." for name in below),
    )
    return Measurement(_known(values), notes, objects, negotiated=facts, sending_times=sending_times(series))


def _link_losses(
    pair: QuicTracePair | TcpTracePair, series: Series, test_case: TestCase, report: SimulatorReport | None
) -> dict[str, float | None]:
    """Gilbert model of the link's loss behind the queue; nothing if it cannot be told from other drops."""
    if report is None or test_case.flows or test_case.tunnelled:
        return {}
    lost_beside = report.client_side.forward.loss_drops if report.client_side else 0
    if lost_beside and not (isinstance(pair, TcpTracePair) and pair.own is not None):
        return {}
    lost = link_losses(series.forward, test_case.link, report.forward)
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
    """Times of the objects of a workload; over TCP, objects share a stream that is not decrypted."""
    workload = test_case.workload
    if workload is None or workload.duration is not None or not isinstance(traces.trace_pair, QuicTracePair):
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
        "time_to_first_byte": float(first[0]) if np.isfinite(first).any() else None,
        "completion_time": float(last[0]) if np.isfinite(last).any() else None,
    }


def _notes(traces: RunTraces, test_case: TestCase, rate: float | None) -> Iterator[str]:
    if isinstance(traces.trace_pair, TcpTracePair):
        yield TCP_STREAM
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


def _loss_only(traces: RunTraces) -> Measurement | None:
    """The loss of a run that has no other numbers; None if its traces are cut."""
    if traces.cut:
        return None
    values = _known({"loss_forward": traces.trace_pair.forward.loss, "loss_return": traces.trace_pair.back.loss})
    return Measurement(values, ("The run timed out: only the loss was measured.",)) if values else None


def _known(values: dict[str, float | None]) -> dict[str, float]:
    """Without what is unknown, and what no run can have."""
    return {name: value for name, value in values.items() if value is not None and value >= 0}
