"""Judges a run from its evidence, files and traces: an outcome with its reason, and the numbers if it succeeded."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from interop import checks, metrics
from interop.columns import Datagrams, Form, Trace
from interop.errors import HarnessFault
from interop.functional import Observation, judge
from interop.model import ErrorCode, Evidence, Measurement, Outcome, Run, TestCase, Verdict
from interop.pcap import TraceState, check
from interop.records import Condition
from interop.trace import key_lines, read
from interop.units import seconds

CLIENT_TRACE = Path("sim", "trace_node_left.pcap")
SERVER_TRACE = Path("sim", "trace_node_right.pcap")
KEY_LOGS = (Path("client", "keys.log"), Path("server", "keys.log"))

TRACE_CODES = {
    Condition.EMPTY: ErrorCode.TRACE_EMPTY,
    Condition.TRUNCATED: ErrorCode.TRACE_TRUNCATED,
    Condition.CORRUPT: ErrorCode.TRACE_CORRUPT,
}
SPAN_MARGIN = 1.0
"""Seconds that a trace may be longer than the phases of its run together."""

NO_KEYS = "No key log: the numbers that need the streams are missing, and the streams were not checked."
WRONG_KEYS = "The key log does not fit the trace: the streams were not checked, and their numbers are missing."
HTTP3 = "HTTP/3: the streams were not compared with the files."


def analyse(run: Run, evidence: Evidence, directory: Path) -> tuple[Verdict, Measurement | None]:
    """What became of a run whose files lie in ``directory``.

    The evidence is looked at first, then the files, the traces' structure, and what the traces say. Our own faults
    end in ``ERROR`` and never in a number. Functional tests have no numbers; of measurements, a run that timed out
    has the measured loss, but no goodput.
    Raises MachineError if there is no tshark.
    """
    verdict = _evidence_verdict(evidence, run.test_case)
    if verdict is not None:
        measured = verdict.outcome is Outcome.TIMEOUT and not run.test_case.functional
        return verdict, _loss_only(directory) if measured else None
    verdict = checks.files(evidence.offered, evidence.downloaded)
    if verdict is not None:
        return verdict, None
    if run.test_case.functional:
        return _functional(run, evidence, directory), None
    try:
        traces = _read(directory, evidence)
    except HarnessFault as fault:
        return checks.our_error(ErrorCode(fault.code), fault.reason), None
    if isinstance(traces, Verdict):
        return traces, None
    sizes = tuple(file.size for file in evidence.offered)
    verdict = _trace_verdict(traces, run.as_told, sizes)
    if verdict is not None:
        return verdict, None
    return Verdict(Outcome.SUCCEEDED), _measure(traces, evidence, run.as_told, sum(sizes))


def _evidence_verdict(evidence: Evidence, test_case: TestCase) -> Verdict | None:
    """A link that was not what it was meant to be excuses a client that failed, but not one that crashed."""
    return (
        checks.harness(evidence)
        or checks.endpoint_ends(evidence, test_case)
        or checks.simulator(evidence.simulator)
        or checks.transfer(evidence, test_case)
    )


def _structure(states: tuple[TraceState, TraceState], evidence: Evidence) -> Verdict | None:
    """Whether both trace files are whole."""
    for side, state in zip(("client", "server"), states, strict=True):
        if state.condition is not Condition.OK:
            reason = f"The {side}'s trace cannot be used: {state.reason}"
            return checks.our_error(TRACE_CODES[state.condition], reason)
        spent = sum(evidence.phases.values())
        if evidence.phases and state.duration > spent + SPAN_MARGIN:
            reason = f"The {side}'s trace covers {seconds(state.duration)} of a run of {seconds(spent)}."
            return checks.our_error(ErrorCode.TRACE_CORRUPT, reason)
    return None


# ---- functional tests -----------------------------------------------------------------------


def _functional(run: Run, evidence: Evidence, directory: Path) -> Verdict:
    """What both traces of a functional test say; raises MachineError."""
    paths = directory / CLIENT_TRACE, directory / SERVER_TRACE
    states = check(paths[0]), check(paths[1])
    verdict = _structure(states, evidence)
    if verdict is not None:
        return verdict
    keys = key_lines(*(directory / key_log for key_log in KEY_LOGS))
    try:
        with ThreadPoolExecutor(2) as pool:
            reading = [pool.submit(read, path, keys, state.packets) for path, state in zip(paths, states, strict=True)]
            client, server = (trace.result() for trace in reading)
    except HarnessFault as fault:
        return checks.our_error(ErrorCode(fault.code), fault.reason)
    seen = Observation(run.test_case, client, server, bool(keys))
    return judge(seen) or Verdict(Outcome.SUCCEEDED)


# ---- traces ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Traces:
    """Both traces of a run, read once."""

    client: Trace
    at_server: Datagrams
    forward: metrics.Passage
    back: metrics.Passage
    payload: int
    """Bytes of UDP payload that came from the server to the client."""
    keys: int
    """Lines of the key logs."""
    cut: int
    """Records of which the end is missing, because of the snap length."""

    @property
    def readable(self) -> bool:
        """Whether something of the response could be decrypted."""
        answers = self.client.from_server & (self.client.form == Form.ONE_RTT)
        return bool((answers & self.client.decrypted).any())


def _read(directory: Path, evidence: Evidence) -> _Traces | Verdict:
    """Both traces, or what is wrong with them; raises HarnessFault, MachineError.

    tshark reads the client's while the server's, of which no stream is looked at, is walked.
    """
    keys = key_lines(*(directory / key_log for key_log in KEY_LOGS))
    at_client = check(directory / CLIENT_TRACE)
    with ThreadPoolExecutor(1) as pool:
        whole = at_client.condition is Condition.OK
        reading = pool.submit(read, directory / CLIENT_TRACE, keys, at_client.packets) if whole else None
        states = at_client, check(directory / SERVER_TRACE)
        verdict = _structure(states, evidence)
        if verdict is not None or reading is None:
            return verdict or checks.our_error(TRACE_CODES[at_client.condition], at_client.reason)
        client = reading.result()
    payload = states[0].datagrams
    return _Traces(
        client, states[1].datagrams, *_passages(states[0].datagrams, states[1].datagrams),
        payload=int(payload.size[payload.from_server].sum()),
        keys=len(keys),
        cut=sum(state.cut for state in states),
    )  # fmt: skip


def _trace_verdict(traces: _Traces, test_case: TestCase, sizes: tuple[int, ...]) -> Verdict | None:
    """Whether the traces show one whole transfer of the files; the pair is blamed only if they can be believed."""
    return (
        _strangers(traces)
        or checks.handshake_count(traces.client)
        or checks.version(traces.client)
        or _useful_bytes(traces, test_case, sizes)
    )


def _strangers(traces: _Traces) -> Verdict | None:
    """Whether every packet that arrived was sent: nothing on a link changes a packet, so the traces must agree."""
    forward, back = traces.forward.strangers, traces.back.strangers
    if traces.cut or not forward + back:
        return None
    reason = (
        f"The two traces contradict each other: {forward} packets arrived at the client and {back} at the server that "
        "the other side never sent."
    )
    return checks.our_error(ErrorCode.TRACE_MISMATCH, reason)


def _useful_bytes(traces: _Traces, test_case: TestCase, sizes: tuple[int, ...]) -> Verdict | None:
    """Whether the client's trace holds the files, as far as that can be seen."""
    if traces.readable and not _http3(test_case):
        return checks.coverage(traces.client, sizes)
    if traces.payload >= sum(sizes):
        return None
    reason = f"The client's trace shows {traces.payload} bytes from the server, but the files have {sum(sizes)}."
    return checks.our_error(ErrorCode.TRACE_MISMATCH, reason)


def _http3(test_case: TestCase) -> bool:
    return test_case.client_test == "http3"


def _passages(at_client: Datagrams, at_server: Datagrams) -> tuple[metrics.Passage, metrics.Passage]:
    """Forward and return."""
    forward = metrics.passage(at_server, at_client, forward=True)
    return forward, metrics.passage(at_client, at_server, forward=False)


# ---- numbers --------------------------------------------------------------------------------


def _measure(traces: _Traces, evidence: Evidence, test_case: TestCase, size: int) -> Measurement:
    """All numbers that the traces give."""
    client, report = traces.client, evidence.simulator
    rate = metrics.goodput(client, size)
    values: dict[str, float | None] = {
        "goodput": rate,
        "efficiency": metrics.efficiency(rate, test_case.link.forward_rate) if rate is not None else None,
        "stream_goodput": metrics.stream_goodput(client, size),
        "handshake_time": metrics.handshake_time(client),
        "time_to_first_byte": metrics.time_to_first_byte(client),
        "completion_time": metrics.completion_time(client),
        "sent_per_useful_byte": metrics.sent_per_useful_byte(traces.at_server, size),
        "loss_forward": traces.forward.loss if not traces.cut else None,
        "loss_return": traces.back.loss if not traces.cut else None,
        "queue_loss": metrics.queue_loss(report) if report is not None else None,
    }
    return Measurement(_known(values), tuple(_notes(traces, test_case, rate)))


def _notes(traces: _Traces, test_case: TestCase, rate: float | None) -> Iterator[str]:
    if not traces.keys:
        yield NO_KEYS
    elif not traces.readable:
        yield WRONG_KEYS
    elif _http3(test_case):
        yield HTTP3
    if traces.cut:
        yield f"{traces.cut} packets of the traces are cut, so that the loss could not be measured."
    if rate is None:
        yield "The server sent no two 1-RTT packets at different times, so there is no goodput."


def _loss_only(directory: Path) -> Measurement | None:
    """The loss of a run that has no other numbers; None if its traces do not tell."""
    states = check(directory / CLIENT_TRACE), check(directory / SERVER_TRACE)
    if any(state.condition is not Condition.OK or state.cut for state in states):
        return None
    forward, back = _passages(states[0].datagrams, states[1].datagrams)
    values = _known({"loss_forward": forward.loss, "loss_return": back.loss})
    return Measurement(values, ("The run timed out: only the loss was measured.",)) if values else None


def _known(values: dict[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}
