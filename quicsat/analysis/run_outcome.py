"""Verdicts over evidence and columns: each check returns None if what it looks at is as it should be; pure.

A library: analysis and functional tests put together what a test case needs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from signal import Signals

from quicsat.model.arrays import Integers
from quicsat.model.clock import Clock
from quicsat.model.emulated_link import Lateness, SimulatorReport
from quicsat.model.endpoint_contract import UNSUPPORTED_STATUS
from quicsat.model.evidence import COMPUTED_STATUS, CROWDED, Deadline, Evidence, Exit, FlowEvidence
from quicsat.model.flow import part_name
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.real_link import RealLinkReport
from quicsat.model.run import File
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted, escaped, first_few
from quicsat.model.units import byte_size, percent, seconds
from quicsat.model.webtransport import NEGOTIATED, WebTransport
from quicsat.traces.columns import Form, Trace
from quicsat.traces.connections import handshakes
from quicsat.traces.streams import responses

COMPUTED_SHARE = 0.5
"""CPU seconds per second of a run that missed its deadline from which on the reason names them."""
LAG_LIMIT, LAG_SHARE = 0.010, 0.05
"""A frame is late if it leaves the simulator so many seconds after it is due, or that share of the link's round trip if
this is more."""
LATE_LIMIT = 0.01
"""Share of the frames of a run that may be late, and share of the client's life during which late frames may wait.

A stall of the simulator prolongs a transfer by its own length at most, so that a goodput is at most 1 % too small. The
rejection rate does not grow with the duration of runs: by Markov's inequality it is at most the share of time for which
the machine stalls, divided by this limit, whatever the duration.
"""
TOLD_BY_SIDE = frozenset(
    {
        ErrorCode.AMPLIFICATION,
        ErrorCode.ECN,
        ErrorCode.IPV4_USED,
        ErrorCode.KEY_UPDATE_ORDER,
        ErrorCode.PATH_CHALLENGE_MISSING,
        ErrorCode.WRONG_VERSION,
    }
)
"""Codes whose reasons name frames of the trace at the side with which they begin; others name the client's."""
_FRAMES = re.compile(r"\bframes? (\d{1,9}(?:, \d{1,9})*)")
CROWDED_LIMIT = 0.1
"""Share of a run beside others in which nearly all CPU time may be in use (``CROWDED``). A share, not a maximum, so
that long runs are not excluded more often than short ones."""


CRASHES = frozenset(
    {
        Signals.SIGABRT, Signals.SIGBUS, Signals.SIGFPE, Signals.SIGILL, Signals.SIGKILL, Signals.SIGQUIT,
        Signals.SIGSEGV, Signals.SIGSYS, Signals.SIGTRAP, Signals.SIGXCPU, Signals.SIGXFSZ,
    }
)  # fmt: skip
"""Signals that end a program by default, with a core dump or without its doing. Others ask it to end, and it may exit
with such a status itself."""


def failed(code: ErrorCode, reason: str) -> Verdict:
    """The pair's fault."""
    return Verdict(Outcome.FAILED, code, reason)


def our_error(code: ErrorCode, reason: str) -> Verdict:
    """Our own fault."""
    return Verdict(Outcome.ERROR, code, reason)


# ---- evidence -------------------------------------------------------------------------------


def harness(evidence: Evidence, test_case: TestCase) -> Verdict | None:
    """Whether the run took place as planned, as far as it was up to us.

    What endpoints write, and the packets that they send over an emulated link, are their own doing. On a real link,
    strangers may send packets, too.
    """
    if evidence.fault or evidence.fault_code:
        known = {code.value: code for code in ErrorCode}
        code = known.get(evidence.fault_code) or ErrorCode.HARNESS_FAULT
        if code is ErrorCode.ARTEFACT_LIMIT:
            return failed(code, evidence.fault)
        if code is ErrorCode.TRACE_LIMIT:
            return trace_limit(evidence.fault, test_case)
        return our_error(code, evidence.fault or "The run broke off without saying why.")
    return None


def trace_limit(fault: str, test_case: TestCase) -> Verdict:
    """Of a run whose packets are more than allowed: over a real link, those of strangers may be among them."""
    if test_case.real:
        return our_error(ErrorCode.TRACE_LIMIT, fault)
    return failed(ErrorCode.ARTEFACT_LIMIT, f"The endpoints sent and wrote more than allowed: {fault}")


def starved(evidence: Evidence) -> Verdict | None:
    """Whether neighbours may have taken the CPU from the run."""
    host = evidence.host
    if evidence.clock is Clock.VIRTUAL:
        return None  # the clock stands still while a program waits for a CPU
    if host is None or not host.neighbours or (host.cpu_busy or 0.0) <= CROWDED:
        return None
    if host.cpu_crowded is None:  # a result of a version that recorded the maximum alone
        reason = (
            f"With {counted(host.neighbours, 'other run')} beside, {percent(host.cpu_busy or 0)} of "
            "the CPU time was in use."
        )
        return our_error(ErrorCode.HOST_STARVED, reason)
    if host.cpu_crowded <= CROWDED_LIMIT:
        return None
    reason = (
        f"With {counted(host.neighbours, 'other run')} beside, more than {percent(CROWDED)} of the CPU "
        "time was in use during "
        f"{percent(host.cpu_crowded)} of the run; {percent(CROWDED_LIMIT)} are allowed."
    )
    return our_error(ErrorCode.HOST_STARVED, reason)


def of_flow(evidence: Evidence, flow: int) -> Evidence:
    """The evidence as if a flow, counted from 1, were alone; the deadline is missed by those that had not finished."""
    if not evidence.flows:
        return evidence
    own = FlowEvidence(evidence.client, evidence.server, evidence.downloaded) if flow == 1 else evidence.flows[flow - 2]
    finished = own.client is not None and own.client.status is not None and not own.client.killed
    late = None if finished and evidence.timed_out is Deadline.TRANSFER else evidence.timed_out
    use = {str(role): evidence.use[part] for role in Role if (part := part_name(role, flow)) in evidence.use}
    return replace(
        evidence, client=own.client, server=own.server, downloaded=own.downloaded, timed_out=late, use=use, flows=()
    )


def first_flow_to_judge(evidence: Evidence) -> int:
    """The flow, counted from 1, with whose fault a run begins: the first one; if no client was started, the one whose
    server has ended by itself, since all wait for each server."""
    flows = range(1, 2 + len(evidence.flows))
    servers = {number: of_flow(evidence, number).server for number in flows}
    ended = (number for number, end in servers.items() if end and end.status is not None and not end.killed)
    return next(ended, 1) if evidence.timed_out is Deadline.READY else 1


def endpoint_ends(evidence: Evidence, test_case: TestCase) -> Verdict | None:
    """Whether an endpoint gave up by itself: test not supported, out of memory, signal, exit status, never ready."""
    failing = first_failure(evidence, test_case)
    if failing is not None:
        return _failure(*failing, evidence, test_case)
    return _readiness(evidence) if evidence.timed_out is Deadline.READY else None


def first_failure(evidence: Evidence, test_case: TestCase) -> tuple[Role, Exit] | None:
    """The endpoint that failed by itself, and its end; of two, the one that ended first, since the other one may have
    failed because of that. None if neither did.

    A server that ends with success before its client has all files fails, too, if the client then gives up. Where the
    times are unknown, or those of two hosts, an endpoint that does not know the test, else the server: a client fails
    if its server has gone, while a server waits for other clients. What an endpoint does after the runner has stopped
    it is no failure.
    """
    failed = [(role, end) for role, end in _sides(evidence) if end.out_of_memory or (end.status and not end.killed)]
    lives = {role: end.life for role, end in _sides(evidence) if end.life is not None and evidence.real_link is None}
    if any(role not in lives for role, _ in failed):
        return next((each for each in failed if each[1].status == UNSUPPORTED_STATUS), failed[-1])
    left = evidence.server if Role.SERVER in lives and _left_early(evidence, test_case) else None
    if left is not None and [role for role, end in failed if not _crashed(end)] == [Role.CLIENT]:
        failed.append((Role.SERVER, left))
    return min(failed, key=lambda each: lives[each[0]].end, default=None)


def left_by_client(evidence: Evidence, test_case: TestCase) -> Verdict | None:
    """The verdict on a run in which the client closed its connection before it had all files, so that the server ended
    with success as it should; None if the server did not.
    """
    client = evidence.client
    if client is None or not _left_early(evidence, test_case):
        return None
    if client.killed:
        reason = "The client closed the connection before it had all files, and then did not end."
        return failed(ErrorCode.CLIENT_FAILED, reason)
    return _failure(Role.CLIENT, client, evidence, test_case) if client.status else None


def _failure(role: Role, end: Exit, evidence: Evidence, test_case: TestCase) -> Verdict:
    if end.out_of_memory:
        return failed(ErrorCode.OUT_OF_MEMORY, f"The {role} ran out of the memory that it may use.")
    if end.status == UNSUPPORTED_STATUS:
        test = test_case.client_test if role is Role.CLIENT else test_case.server_test
        reason = f'The {role} does not support the test "{test}": it ended with exit status 127.'
        return Verdict(Outcome.UNSUPPORTED, ErrorCode.UNSUPPORTED, reason)
    ended = f"The {role} ended with exit status {_status(end)}{_when(role, evidence)}"
    if _crashed(end):
        return failed(ErrorCode.CRASHED, f"{ended}.")
    if role is Role.CLIENT:
        return failed(ErrorCode.CLIENT_FAILED, f"{ended} instead of 0.{_computed(evidence)}")
    client = evidence.client
    gave_up = f", which then ended with exit status {_status(client)}" if client and not end.status else ""
    return failed(ErrorCode.SERVER_EXITED, f"{ended}{gave_up}.")


def _when(role: Role, evidence: Evidence) -> str:
    """When a server failed, with a space before it; empty for a client."""
    client = evidence.client
    if role is Role.CLIENT:
        return ""
    if evidence.timed_out is Deadline.READY:
        return " before it was ready"
    done = client is not None and client.status == 0 and not client.killed
    return f" {'after' if done else 'before'} the client had finished"


def _readiness(evidence: Evidence) -> Verdict:
    """Of a run whose server was not ready, and has not failed."""
    server = evidence.server
    if server is not None and not server.killed and server.status is not None:
        reason = f"The server ended with exit status {_status(server)} before it was ready."
        return failed(ErrorCode.SERVER_EXITED, reason)
    spent = evidence.phases.get("start")
    after = f"after {seconds(spent)}" if spent is not None else "at the deadline"
    busy = evidence.host.cpu_busy or 0.0 if evidence.host else 0.0
    computed = _computed(evidence)
    if busy > CROWDED and evidence.clock is Clock.REAL and not computed:
        reason = f"The server was not ready {after}, while {percent(busy)} of the CPU time was in use."
        return our_error(ErrorCode.HOST_STARVED, reason)
    return failed(ErrorCode.SERVER_NOT_READY, f"The server was not ready {after}.{computed}")


def real_link(report: RealLinkReport | None) -> Verdict | None:
    """Whether what a pair did not achieve may be the fault of a host that was out of reach."""
    if report is None:
        return our_error(ErrorCode.CAPTURE_FAILED, "The link left no report, so its state during the run is unknown.")
    if report.outage:
        reason = "A host was unreachable for a time during the run, so the run does not count for or against the pair."
        return our_error(ErrorCode.HOST_LOST, reason)
    return None


def simulator(report: SimulatorReport | None, round_trip: float) -> Verdict | None:
    """Whether the link was what it was meant to be; ``round_trip``: its propagation delay both ways, seconds.

    It looks at nothing that the endpoints achieved. Frames that are late before the client's start or after its end do
    not count. Old reports without lateness are judged by their largest lag over the whole life of the simulator.
    """
    if report is None:
        return our_error(
            ErrorCode.SIMULATOR_FAILED, "The simulator left no report, so the state of the link is unknown."
        )
    if report.receive_overflows:
        reason = (
            f"The simulator did not read {counted(report.receive_overflows, 'frame')} in time, "
            "which the kernel then dropped."
        )
        return our_error(ErrorCode.SIMULATOR_LAG, reason)
    limit = max(LAG_LIMIT, LAG_SHARE * round_trip)
    if report.lateness is not None:
        return _late(report.lateness)
    if report.lag_max > limit:
        reason = f"The simulator fell {seconds(report.lag_max)} behind the clock; {seconds(limit)} are allowed."
        return our_error(ErrorCode.SIMULATOR_LAG, reason)
    return None


def _late(lateness: Lateness) -> Verdict | None:
    if max(lateness.late_share, lateness.stalled_share) <= LATE_LIMIT:
        return None
    frames = lateness.forward.frames + lateness.back.frames
    late, stalled = percent(lateness.late_share, 1), percent(lateness.stalled_share, 1)
    reason = (
        f"The simulator sent {late} of {counted(frames, 'frame')} more than {seconds(lateness.bound)} late, up to "
        f"{seconds(lateness.maximum)}, and late frames waited during {stalled} of the client's "
        f"{seconds(lateness.life)}; {percent(LATE_LIMIT)} is allowed."
    )
    return our_error(ErrorCode.SIMULATOR_LAG, reason)


def transfer(evidence: Evidence, test_case: TestCase) -> Verdict | None:
    """Whether the client came to an end in time while the server was there; neither has failed by itself."""
    client, server = evidence.client, evidence.server
    if evidence.timed_out is Deadline.TRANSFER:
        if test_case.ends_at_deadline:
            return None
        late = f"The client had not finished after {test_case.timeout:g} s."
        return Verdict(Outcome.TIMEOUT, ErrorCode.TIMEOUT, f"{late}{_computed(evidence)}")
    if client is None or (client.status is None and not client.killed):
        return our_error(ErrorCode.HARNESS_FAULT, "The client never ran, and nothing says why.")
    if client.killed and not _session_over(evidence, test_case):
        if server is None or server.killed or server.status is None:
            reason = "quicsat ended both endpoints before the deadline, and nothing says why."
            return our_error(ErrorCode.HARNESS_FAULT, reason)
        return failed(
            ErrorCode.SERVER_EXITED,
            f"The server ended with exit status {_status(server)} before the client had finished.",
        )
    return None


def _computed(evidence: Evidence) -> str:
    """Which endpoint computed instead of going on, as a sentence with a space before it; empty if none did."""
    if evidence.clock is Clock.VIRTUAL:
        endless = [role for role, end in _sides(evidence) if end.killed and end.status == COMPUTED_STATUS]
        return "".join(
            f" The {role} computed without end while the simulated time stood still, so it would have missed any "
            "deadline."
            for role in endless
        )
    took = evidence.phases.get("start", 0.0) if evidence.timed_out is Deadline.READY else evidence.transfer_time
    spent = {role: evidence.use[role] for role in Role if role in evidence.use}
    used = {role: use.cpu_user + use.cpu_system for role, use in spent.items()}
    return "".join(
        f" The {role} used {seconds(cpu)} of CPU time." for role, cpu in used.items() if cpu > COMPUTED_SHARE * took > 0
    )


def _session_over(evidence: Evidence, test_case: TestCase) -> bool:
    """Whether the server ended with success before the client did: at the end of a WebTransport session, or when the
    client had all files and only did not end."""
    if evidence.server is None or evidence.server.status != 0:
        return False
    complete = bool(evidence.offered) and files(evidence.offered, evidence.downloaded) is None
    return test_case.webtransport is not None or complete


def _left_early(evidence: Evidence, test_case: TestCase) -> bool:
    """Whether the server ended with success, and the client does not have all files."""
    server = evidence.server
    left = server is not None and server.status == 0 and not server.killed
    return left and bool(evidence.offered) and not _session_over(evidence, test_case)


def _crashed(end: Exit) -> bool:
    """Whether it did not end by its own decision."""
    return end.out_of_memory or _signal(end) in CRASHES


def _sides(evidence: Evidence) -> list[tuple[Role, Exit]]:
    sides = ((Role.CLIENT, evidence.client), (Role.SERVER, evidence.server))
    return [(role, end) for role, end in sides if end is not None]


def _status(end: Exit) -> str:
    """``139 (as after SIGSEGV)``: engines do not tell a signal from the exit status by which shells report it."""
    signal = _signal(end)
    return f"{end.status} (as after {signal.name})" if signal else str(end.status)


def _signal(end: Exit) -> Signals | None:
    """The signal that may have ended a program."""
    try:
        return Signals(end.status - 128) if end.status is not None else None
    except ValueError:
        return None


# ---- files ----------------------------------------------------------------------------------


def files(offered: Iterable[File], downloaded: Iterable[File], side: Role = Role.CLIENT) -> Verdict | None:
    """Whether a side has exactly the files that the other one offered, byte by byte (SHA-256)."""
    wanted, found = {file.name: file for file in offered}, {file.name: file for file in downloaded}
    if missing := sorted(wanted.keys() - found.keys()):
        many = f"{len(missing)} of {len(wanted)} files" if len(wanted) > 1 else "The file"
        return failed(ErrorCode.FILE_MISSING, f"{many} did not arrive at the {side}: {_names(missing)}.")
    if extra := sorted(found.keys() - wanted.keys()):
        return failed(ErrorCode.FILE_EXTRA, f"The {side} has files that were not requested: {_names(extra)}.")
    if sizes := sorted(name for name in wanted if wanted[name].size != found[name].size):
        one = sizes[0]
        reason = f"{_names(sizes)}: {counted(found[one].size, 'byte')} arrived instead of {wanted[one].size}."
        return failed(ErrorCode.FILE_SIZE, reason)
    if contents := sorted(name for name in wanted if wanted[name].sha256 != found[name].sha256):
        other = Role.SERVER if side is Role.CLIENT else Role.CLIENT
        return failed(ErrorCode.FILE_CONTENT, f"The content is not what the {other} offered: {_names(contents)}.")
    return None


def session_files(evidence: Evidence, kind: WebTransport) -> Verdict | None:
    """Whether a test of WebTransport left the files that it should."""
    if kind.requester is not None:
        return files(evidence.offered, evidence.downloaded, kind.requester)
    found = {file.name: file for file in evidence.downloaded}
    for file in evidence.offered:
        side = file.name.partition("/")[0]
        if file.name not in found:
            return failed(ErrorCode.FILE_MISSING, f"The {side} did not write {NEGOTIATED}.")
        if found[file.name] != file:
            reason = f"In the {side}'s {NEGOTIATED} is not the first protocol of the client that the server has."
            return failed(ErrorCode.FILE_CONTENT, reason)
    return None


def _names(names: Sequence[str]) -> str:
    """The first three names, fit to be shown: containers can choose them."""
    return first_few(names, 3, lambda name: escaped(name, 80))


# ---- traces ---------------------------------------------------------------------------------


def unread_connections(client: Trace) -> int:
    """Connections of which no packet of the response could be decrypted: endpoints may write only some of the keys."""
    answers = client.from_server & (client.form == Form.ONE_RTT)
    read = set(client.connection[answers & client.decrypted].tolist())
    return len(set(client.connection[answers].tolist()) - read - {-1})


def frames_of(trace: Trace, rows: Integers) -> str:
    """``frame 7`` or ``frames 7, 9, 12 and 4 more``: as Wireshark numbers them."""
    numbers = list(dict.fromkeys(trace.frame[rows].tolist()))
    return f"{'frame' if len(numbers) == 1 else 'frames'} {first_few(numbers, 3)}"


def cited_frames(verdict: Verdict) -> tuple[Role, list[int]]:
    """Whose trace the reason of a verdict is about, and the numbers of the frames that it names."""
    told = verdict.code in TOLD_BY_SIDE and verdict.reason.startswith("The server")
    side = Role.SERVER if told or verdict.code is ErrorCode.PATH_RESPONSE_MISSING else Role.CLIENT
    return side, [int(number) for some in _FRAMES.findall(verdict.reason) for number in some.split(", ")]


def handshake_count(trace: Trace, expected: int = 1) -> Verdict | None:
    """Whether the client-side trace shows as many handshakes as it should."""
    found = handshakes(trace)
    if found == expected:
        return None
    if not found and not (trace.form == Form.INITIAL).any() and len(trace):
        return our_error(ErrorCode.TRACE_MISMATCH, "The trace begins in the middle: it shows packets but no handshake.")
    return failed(ErrorCode.HANDSHAKE_COUNT, f"The trace shows {counted(found, 'handshake')} instead of {expected}.")


def version(trace: Trace, expected: int = 1) -> Verdict | None:
    """Whether all Initials from the server are of one QUIC version; those that the link has corrupted do not count."""
    initials = trace.from_server & (trace.form == Form.INITIAL)
    whole = initials & trace.decrypted
    found = Counter(trace.version[whole if whole.any() else initials].tolist())
    if set(found) == {expected}:
        return None
    versions = ", ".join(f"0x{number:08x}" for number in sorted(found)) or "none"
    code = ErrorCode.SEVERAL_VERSIONS if len(found) > 1 else ErrorCode.WRONG_VERSION
    return failed(code, f"The server's QUIC version was {versions} instead of 0x{expected:08x}.")


def coverage(client: Trace, sizes: Iterable[int]) -> Verdict | None:
    """Whether the STREAM frames that arrived are exactly the files (HTTP/0.9: a stream is a file).

    Streams beside those of the files, e.g. of a request made twice, are the client's affair. Only for traces of
    which something could be decrypted. Where a byte is missing the trace is incomplete: the client has the files.
    """
    answers = responses(client).values()
    whole = Counter(each.arrived for each in answers if each.arrived == each.highest)
    wanted = Counter(sizes)
    if not wanted - whole:
        return None
    unread = int((client.from_server & (client.form == Form.ONE_RTT) & ~client.decrypted).sum())
    have, want = sum(each.arrived for each in answers), sum(wanted.elements())
    holes = sum(each.highest - each.arrived for each in answers)
    reason = (
        f"The client's trace shows {byte_size(have)} of stream data in {counted(len(answers), 'stream')}, with "
        f"{counted(holes, 'byte')} missing in between, not the {counted(wanted.total(), 'file')} of {byte_size(want)}; "
        f"{counted(unread, 'packet')} stayed encrypted."
    )
    return our_error(ErrorCode.TRACE_MISMATCH, reason)
