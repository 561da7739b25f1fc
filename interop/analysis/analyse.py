"""Judges a run from its evidence, files and traces: an outcome with its reason, and the numbers if it succeeded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from interop.access import CLOCKS
from interop.analysis import checks, metrics
from interop.analysis.causes import Scene, explain, explain_tcp
from interop.analysis.facts import facts
from interop.analysis.functional import Observation, judge
from interop.analysis.last_words import quote
from interop.errors import HarnessFault
from interop.model import Deadline, ErrorCode, Evidence, Measurement, Outcome, Role, Run, TestCase, Verdict
from interop.traces.events import Ends
from interop.traces.reading import CLIENT_TRACE as CLIENT_TRACE
from interop.traces.reading import SERVER_TRACE as SERVER_TRACE
from interop.traces.reading import Reading, States, read_run, states
from interop.traces.records import Condition
from interop.traces.series import FILE_NAME as SERIES_FILE
from interop.traces.series import Series, save
from interop.traces.tcp_events import TcpEnds
from interop.units import seconds

TRACE_CODES = {
    Condition.EMPTY: ErrorCode.TRACE_EMPTY,
    Condition.TRUNCATED: ErrorCode.TRACE_TRUNCATED,
    Condition.CORRUPT: ErrorCode.TRACE_CORRUPT,
}
CLOCK_MARGIN = 0.05
"""Seconds by which clocks may differ more than expected before it is told."""
UNINVITED, UNINVITED_LEAST = 0.001, 10
"""Share of the packets that arrived over a real link which may come from others, and how many of a short run."""
PASSED = Verdict(Outcome.SUCCEEDED)
SPAN_MARGIN = 1.0
"""Seconds that a trace may be longer than the phases of its run together."""

NO_KEYS = "No key log: the numbers that need the streams are missing, and the streams were not checked."
WRONG_KEYS = "The key log does not fit the trace: the streams were not checked, and their numbers are missing."
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
    broken_off = checks.harness(evidence)
    if broken_off is not None:
        return broken_off, None
    disturbance = _disturbance(evidence, run.test_case)
    verdict, measurement = _outcome(run, evidence, directory)
    if disturbance is None:
        return verdict, measurement
    return replace(disturbance, if_valid=verdict.if_valid if verdict.excluded else verdict), None


def _outcome(run: Run, evidence: Evidence, directory: Path) -> tuple[Verdict, Measurement | None]:
    """What endpoints, files and traces say; faults of the traces come before what the endpoints did."""
    verdict = _endpoints(evidence, run.test_case)
    if verdict is not None:
        verdict = replace(verdict, reason=verdict.reason + quote(verdict, evidence, directory))
        if verdict.excluded or not _began(evidence):
            return verdict, None
    try:
        found = states(directory, run.protocol)
        fault = _structure(found, evidence, succeeded=verdict is None)
        if fault is None and verdict is not None and _nothing_to_read(verdict, found):
            return verdict, None
        if fault is None:
            reading = read_run(directory, run.protocol, run.test_case.link, found)
            series = reading.series()
            save(series, directory)
            fault = None if run.test_case.functional else _strangers(reading, evidence)
    except HarnessFault as broken:
        fault = checks.our_error(ErrorCode(broken.code), broken.reason)
    except OSError as error:
        fault = checks.our_error(ErrorCode.DISK_FULL, f"{SERIES_FILE} could not be written: {error.strerror}.")
    if fault is not None:  # of a functional test only the traces tell whether it was passed
        return replace(fault, if_valid=None if run.test_case.functional else verdict or PASSED), None
    if verdict is None:
        return _judged(run, evidence, reading, series)
    measured = verdict.outcome is Outcome.TIMEOUT and not run.test_case.functional
    return _explained(verdict, run, evidence, reading, series), _loss_only(reading) if measured else None


def _endpoints(evidence: Evidence, test_case: TestCase) -> Verdict | None:
    """What the endpoints did wrong, by their ends and by the files; None if nothing."""
    return (
        checks.endpoint_ends(evidence, test_case)
        or checks.transfer(evidence, test_case)
        or checks.files(evidence.offered, evidence.downloaded)
    )


def _began(evidence: Evidence) -> bool:
    """Whether the client was started; before that the link carries nothing, and leaves neither report nor traces."""
    client = evidence.client
    return (
        evidence.timed_out is not Deadline.READY and client is not None and (client.killed or client.status is not None)
    )


def _nothing_to_read(verdict: Verdict, found: States) -> bool:
    """Whether the traces cannot tell more of a run that did not succeed: the test is unknown, or nothing was sent."""
    empty = Condition.EMPTY in (found.client.condition, found.server.condition)
    return verdict.outcome is Outcome.UNSUPPORTED or empty


def _explained(verdict: Verdict, run: Run, evidence: Evidence, reading: Reading, series: Series) -> Verdict:
    """The verdict on a run that did not succeed, with what its traces say of the cause."""
    size = sum(file.size for file in evidence.offered)
    if isinstance(reading.ends, TcpEnds):
        cause, sentence = explain_tcp(reading.ends, series, size)
    else:
        killed = evidence.client is not None and evidence.client.killed
        duration = evidence.phases.get("transfer", 0.0)
        scene = Scene(reading.ends, series, size, run.test_case.link.forward_rate, killed, duration)
        cause, sentence = explain(scene)
    return replace(verdict, reason=f"{verdict.reason} {sentence}".rstrip(), cause=cause)


def _judged(run: Run, evidence: Evidence, reading: Reading, series: Series) -> tuple[Verdict, Measurement | None]:
    """What the traces of a run say that has done all that it should."""
    if run.test_case.functional:
        return _functional(run, reading), None
    sizes = tuple(file.size for file in evidence.offered)
    verdict = _trace_verdict(reading, run.as_told, sizes)
    if verdict is not None:
        return replace(verdict, if_valid=PASSED if verdict.excluded else None), None
    return PASSED, _measure(reading, series, evidence, run.as_told)


def _disturbance(evidence: Evidence, test_case: TestCase) -> Verdict | None:
    """Whether neighbours took the CPU from a run, its link fell behind the clock, or a host was out of reach.

    It looks at nothing that depends on the outcome. A run whose client was not started has no link to judge.
    """
    starved = checks.starved(evidence)
    if starved is not None or not _began(evidence):
        return starved
    if test_case.real:
        return checks.real_link(evidence.real_link)
    return checks.simulator(evidence.simulator, test_case.link.round_trip_delay)


def _structure(found: States, evidence: Evidence, *, succeeded: bool) -> Verdict | None:
    """Whether both trace files are whole. One without packets is whole if the link has carried none.

    A success (``succeeded``) that no packet explains contradicts its trace.
    """
    for side, state in (("client", found.client), ("server", found.server)):
        if state.condition is Condition.EMPTY and not succeeded and not _carried(evidence, Role(side)):
            continue
        if state.condition is not Condition.OK:
            reason = f"The {side}'s trace cannot be used: {state.reason}"
            return checks.our_error(TRACE_CODES[state.condition], reason)
        spent = sum(evidence.phases.values())
        if evidence.phases and state.duration > spent + SPAN_MARGIN:
            reason = f"The {side}'s trace covers {seconds(state.duration)} of a run of {seconds(spent)}."
            return checks.our_error(ErrorCode.TRACE_CORRUPT, reason)
    return None


def _carried(evidence: Evidence, side: Role) -> int:
    """Packets that the link counted at one of its ends."""
    if evidence.real_link is not None:
        report = evidence.real_link
        return report.client_capture.captured if side is Role.CLIENT else report.server_capture.captured
    if evidence.simulator is None:
        return 0
    forward, back = evidence.simulator.forward, evidence.simulator.back
    return forward.delivered + back.received if side is Role.CLIENT else forward.received + back.delivered


def _functional(run: Run, reading: Reading) -> Verdict:
    """What both traces of a functional test say."""
    if isinstance(reading.ends, TcpEnds):
        return PASSED
    return judge(Observation(run.test_case, reading.ends.client, reading.ends.server, bool(reading.keys))) or PASSED


def _trace_verdict(reading: Reading, test_case: TestCase, sizes: tuple[int, ...]) -> Verdict | None:
    """Whether the traces show one whole transfer of the files; the pair is blamed only if they can be believed."""
    verdict = None
    if isinstance(reading.ends, Ends):
        verdict = checks.handshake_count(reading.ends.client) or checks.version(reading.ends.client)
    return verdict or _useful_bytes(reading, test_case, sizes)


def _strangers(reading: Reading, evidence: Evidence) -> Verdict | None:
    """Whether every packet that arrived was sent, but for those that the link says it has corrupted."""
    report = evidence.simulator
    corrupted = (report.forward.corrupted, report.back.corrupted) if report else _uninvited(reading, evidence)
    forward, back = reading.ends.forward.strangers, reading.ends.back.strangers
    if reading.cut or (forward <= corrupted[0] and back <= corrupted[1]):
        return None
    reason = (
        f"The two traces contradict each other: {forward} packets arrived at the client and {back} at the server that "
        "the other side never sent."
    )
    return checks.our_error(ErrorCode.TRACE_MISMATCH, reason)


def _uninvited(reading: Reading, evidence: Evidence) -> tuple[int, int]:
    """Packets forward and return that may come from others: a public address is asked by whoever scans the Internet."""
    if evidence.real_link is None:
        return 0, 0
    came = (reading.ends.forward.arrived >= 0).sum(), (reading.ends.back.arrived >= 0).sum()
    return max(UNINVITED_LEAST, int(UNINVITED * came[0])), max(UNINVITED_LEAST, int(UNINVITED * came[1]))


def _useful_bytes(reading: Reading, test_case: TestCase, sizes: tuple[int, ...]) -> Verdict | None:
    """Whether the client's trace holds the files, as far as that can be seen."""
    if isinstance(reading.ends, Ends) and reading.readable and not _http3(test_case):
        return checks.coverage(reading.ends.client, sizes)
    if reading.payload >= sum(sizes):
        return None
    reason = f"The client's trace shows {reading.payload} bytes from the server, but the files have {sum(sizes)}."
    return checks.our_error(ErrorCode.TRACE_MISMATCH, reason)


def _http3(test_case: TestCase) -> bool:
    return test_case.client_test == "http3"


# ---- numbers --------------------------------------------------------------------------------


def _measure(reading: Reading, series: Series, evidence: Evidence, test_case: TestCase) -> Measurement:
    """All numbers that the traces give."""
    size, report = sum(file.size for file in evidence.offered), evidence.simulator
    values = _tcp_times(reading.ends, series, size) if isinstance(reading.ends, TcpEnds) else _times(reading.ends, size)
    rate = values["goodput"]
    values |= {
        "efficiency": metrics.efficiency(rate, test_case.link.forward_rate) if rate is not None else None,
        "sent_per_useful_byte": metrics.sent_per_useful_byte(reading.ends.at_server, size),
        "queue_loss": metrics.queue_loss(report) if report is not None else None,
        "cross_traffic_goodput": metrics.cross_traffic_goodput(report) if report is not None else None,
    }
    if not reading.cut:
        values |= {"loss_forward": reading.ends.forward.loss, "loss_return": reading.ends.back.loss}
        values |= facts(series, test_case.link.forward_rate)
    return Measurement(_known(values), (*_notes(reading, test_case, rate), *_clocks(series, evidence)))


def _times(ends: Ends, size: int) -> dict[str, float | None]:
    """What the client of a run over QUIC saw."""
    return {
        "goodput": metrics.goodput(ends.client, size),
        "stream_goodput": metrics.stream_goodput(ends.client, size),
        "handshake_time": metrics.handshake_time(ends.client),
        "time_to_first_byte": metrics.time_to_first_byte(ends.client),
        "completion_time": metrics.completion_time(ends.client),
    }


def _tcp_times(ends: TcpEnds, series: Series, size: int) -> dict[str, float | None]:
    """What the client of a run over TCP saw."""
    first, last = series.requests.first_byte, series.requests.last_byte
    return {
        "goodput": metrics.tcp_goodput(ends.client, size),
        "handshake_time": metrics.tcp_handshake_time(ends.client),
        "time_to_first_byte": float(first[0]) if np.isfinite(first).any() else None,
        "completion_time": float(last[0]) if np.isfinite(last).any() else None,
    }


def _notes(reading: Reading, test_case: TestCase, rate: float | None) -> Iterator[str]:
    if isinstance(reading.ends, TcpEnds):
        yield TCP_STREAM
    elif not reading.keys:
        yield NO_KEYS
    elif not reading.readable:
        yield WRONG_KEYS
    elif _http3(test_case):
        yield HTTP3
    if reading.cut:
        yield f"{reading.cut} packets of the traces are cut, so that the loss could not be measured."
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


def _loss_only(reading: Reading) -> Measurement | None:
    """The loss of a run that has no other numbers; None if its traces do not tell."""
    if reading.cut:
        return None
    values = _known({"loss_forward": reading.ends.forward.loss, "loss_return": reading.ends.back.loss})
    return Measurement(values, ("The run timed out: only the loss was measured.",)) if values else None


def _known(values: dict[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}
