"""Who is to blame when an endpoint crashes, at any moment, in any role, clock and manner; and what it says."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from quicsat.analysis import run_outcome
from quicsat.analysis.analyse import CLIENT_TRACE, SERVER_TRACE, analyse
from quicsat.analysis.endpoint_log_tail import quote
from quicsat.model.clock import Clock
from quicsat.model.emulated_link import Interval
from quicsat.model.evidence import COMPUTED_STATUS, LINK_END, Deadline, Evidence, Exit, FlowEvidence, ResourceUse
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.run import OUTPUT, File
from tests.analysis.test_analyse import EVIDENCE, RUN
from tests.analysis.test_analyse import directory as directory
from tests.analysis.test_run_outcome import CASE
from tests.quic_builder import EPOCH, Connection, Packet, pcap, stream_frame, varint

BEGIN = 1_767_225_600.0
MOMENTS = {"before ready": 0.5, "handshake": 1.2, "transfer": 3.0, "end": 5.0, "after the other": 5.2}
"""When the endpoint ends, seconds after the start of the server; the client starts after one, unless it is not."""
MANNERS = {
    "panic": (Exit(2), {Role.CLIENT: ErrorCode.CLIENT_FAILED, Role.SERVER: ErrorCode.SERVER_EXITED}),
    "SIGSEGV": (Exit(139), dict.fromkeys(Role, ErrorCode.CRASHED)),
    "exit 1": (Exit(1), {Role.CLIENT: ErrorCode.CLIENT_FAILED, Role.SERVER: ErrorCode.SERVER_EXITED}),
    "memory": (Exit(137, out_of_memory=True), dict.fromkeys(Role, ErrorCode.OUT_OF_MEMORY)),
}
"""How it ends by itself, and the code of the verdict."""
OTHERS = {
    "stopped": Exit(143, killed=True),
    "stopped, with an exit status of its own": Exit(1, killed=True),
    "failed because of it": Exit(1),
    "crashed because of it": Exit(134),
}
"""How the other endpoint ends a moment later."""


def of_both(role: Role, own: Exit, other: Exit, **more: object) -> Evidence:
    ends = {role: own, Role.CLIENT if role is Role.SERVER else Role.SERVER: other}
    return Evidence("", 1, client=ends[Role.CLIENT], server=ends[Role.SERVER], **more)  # type: ignore[arg-type]


PASSED = Verdict(Outcome.SUCCEEDED)


def verdict_of(evidence: Evidence) -> Verdict:
    return run_outcome.endpoint_ends(evidence, CASE) or run_outcome.transfer(evidence, CASE) or PASSED


def living(end: Exit, last: float, begin: float = 0.0) -> Exit:
    return replace(end, life=Interval(BEGIN + begin, BEGIN + last))


@pytest.mark.parametrize("clock", Clock)
@pytest.mark.parametrize(("moment", "manner"), [*product(MOMENTS, MANNERS)])
@pytest.mark.parametrize("role", Role)
def test_who_crashes_first_is_to_blame(role: Role, moment: str, manner: str, clock: Clock) -> None:
    own, codes = MANNERS[manner]
    when = MOMENTS[moment]
    for other in OTHERS.values():
        evidence = of_both(role, living(own, when), living(other, when + 0.2), clock=clock)
        if moment == "before ready" and role is Role.SERVER:
            evidence = replace(evidence, client=None, timed_out=Deadline.READY)
        elif moment == "after the other":
            evidence = of_both(role, living(own, when), living(Exit(0), when - 0.1), clock=clock)
        verdict = verdict_of(evidence)
        assert (verdict.outcome, verdict.code) == (Outcome.FAILED, codes[role])
        assert verdict.reason.startswith(f"The {role} ")
        assert ("after the client" in verdict.reason) == (
            moment == "after the other" and role is Role.SERVER and manner != "memory"
        )


@pytest.mark.parametrize("clock", Clock)
@pytest.mark.parametrize("role", Role)
def test_who_computes_without_end_misses_the_deadline(role: Role, clock: Clock) -> None:
    """In virtual time the machine ends it; in real time it has used the CPU."""
    status = COMPUTED_STATUS if clock is Clock.VIRTUAL else 137
    own, other = living(Exit(status, killed=True), 60.0), living(Exit(137, killed=True), 60.1)
    more = {"clock": clock, "phases": {"start": 30.0, "transfer": 60.0}, "use": {str(role): ResourceUse(55.0, 4.0, 1)}}
    verdict = verdict_of(of_both(role, own, other, timed_out=Deadline.TRANSFER, **more))
    assert verdict.code is ErrorCode.TIMEOUT
    said = f"The {role} computed without end" if clock is Clock.VIRTUAL else f"The {role} used 59.0 s of CPU time."
    assert said in verdict.reason
    if role is Role.SERVER:
        more["use"] = {"server": ResourceUse(29.0, 0.5, 1)}
        early = Evidence("", 1, server=own, timed_out=Deadline.READY, **more)  # type: ignore[arg-type]
        verdict = verdict_of(early)
        assert verdict.code is ErrorCode.SERVER_NOT_READY
        assert said.replace("59.0", "29.5") in verdict.reason
        assert verdict_of(of_both(role, own, living(Exit(0), 5.0), **more)) is PASSED
        gave_up = verdict_of(of_both(role, own, living(Exit(1), 35.0), **{**more, "phases": {"transfer": 30.0}}))
        assert said.replace("59.0", "29.5") in gave_up.reason


def test_a_client_that_has_all_files_may_be_stopped_after_a_server_that_has_ended_well() -> None:
    """As in the QUIC Interop Runner, the files decide."""
    file = File("f", 10, "x")
    whole = of_both(Role.CLIENT, Exit(137, killed=True), Exit(0), offered=(file,), downloaded=(file,))
    assert verdict_of(whole) is PASSED
    for other in (replace(whole, downloaded=()), replace(whole, server=Exit(1))):
        verdict = verdict_of(other)
        assert verdict.code is ErrorCode.SERVER_EXITED


@pytest.mark.parametrize("clock", Clock)
@pytest.mark.parametrize("status", [0, 1, 137, 139, 143])
def test_what_a_server_does_when_it_is_stopped_is_no_crash(clock: Clock, status: int) -> None:
    assert verdict_of(of_both(Role.SERVER, Exit(status, killed=True), Exit(0), clock=clock)) is PASSED
    assert verdict_of(of_both(Role.SERVER, Exit(0), Exit(0), clock=clock)) is PASSED


def test_without_times_or_with_those_of_two_hosts_a_server_fails_first() -> None:
    """A client fails without its server; the clocks of two hosts differ."""
    for ends in ((Exit(1), Exit(2)), (living(Exit(1), 3.0), living(Exit(2), 3.1))):
        evidence = of_both(Role.CLIENT, *ends)
        far = replace(evidence, real_link=object())  # type: ignore[arg-type]
        assert run_outcome.first_failure(far, CASE) == (Role.SERVER, ends[1])
    assert run_outcome.first_failure(evidence, CASE) == (Role.CLIENT, ends[0])


@pytest.mark.parametrize("clock", Clock)
@pytest.mark.parametrize(
    ("client", "server", "outcome", "role"),
    [
        ((127, 0.3), (139, 0.5), Outcome.UNSUPPORTED, Role.CLIENT),
        ((127, 0.5), (139, 0.3), Outcome.FAILED, Role.SERVER),
        ((139, 0.3), (127, 0.5), Outcome.FAILED, Role.CLIENT),
        ((139, 0.5), (127, 0.3), Outcome.UNSUPPORTED, Role.SERVER),
        ((127, 0.5), (0, 0.3), Outcome.FAILED, Role.SERVER),
        ((1, 0.5), (0, 0.3), Outcome.FAILED, Role.SERVER),
        ((139, 0.5), (0, 0.3), Outcome.FAILED, Role.CLIENT),
        ((1, 0.3), (0, 0.5), Outcome.FAILED, Role.CLIENT),
    ],
)
def test_what_happens_first_decides(
    client: tuple[int, float], server: tuple[int, float], outcome: Outcome, role: Role, clock: Clock
) -> None:
    """A server that leaves with success while it is needed is to blame if its client gives up, not if it crashes."""
    ends = [living(Exit(status), when) for status, when in (client, server)]
    file = File("f", 10, "x")
    evidence = replace(of_both(Role.CLIENT, *ends, clock=clock), offered=(file,))
    verdict = verdict_of(evidence)
    assert verdict.outcome is outcome
    assert verdict.reason.startswith(f"The {role} ")
    if server[0] == 0:
        complete = verdict_of(replace(evidence, downloaded=(file,)))
        assert complete.reason.startswith("The client ")  # it had all that it wanted


CLOSE = varint(0x1D) + varint(7) + varint(0)


@pytest.mark.parametrize("clock", Clock)
@pytest.mark.parametrize("client_end", [Exit(1), Exit(137, killed=True)])
@pytest.mark.parametrize(("closes", "server_end", "to_blame"), [
    ({Role.CLIENT: 2.0}, 2.4, Role.CLIENT), ({Role.CLIENT: 2.0, Role.SERVER: 2.31}, 2.4, Role.CLIENT),
    ({Role.CLIENT: 2.0, Role.SERVER: 1.9}, 2.4, Role.SERVER), ({Role.CLIENT: 2.0}, 1.9, Role.SERVER),
    ({Role.SERVER: 1.9}, 2.4, Role.SERVER), ({}, 2.4, Role.SERVER),
])  # fmt: skip
def test_who_closes_the_connection_first_is_to_blame(
    tmp_path: Path, closes: dict[Role, float], server_end: float, to_blame: Role, client_end: Exit, clock: Clock
) -> None:
    """A server ends with success when its client has closed the connection, and so a moment before the client."""
    traces, key_log = cut_short(closes)
    for name, packets in traces.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(pcap(packets))
    (tmp_path / "client").mkdir()
    (tmp_path / "client/keys.log").write_text(key_log)
    (tmp_path / OUTPUT).write_text("server | ended well\nclient | gave up\n")
    begin = Interval(float(EPOCH) - 1, EPOCH + server_end)
    evidence = replace(
        EVIDENCE, server=Exit(0, life=begin), client=replace(client_end, life=replace(begin, end=EPOCH + 4.0)),
        downloaded=(), clock=clock, phases={"transfer": 10.0},
    )  # fmt: skip
    verdict, _ = analyse(RUN, evidence, tmp_path)
    code = ErrorCode.CLIENT_FAILED if to_blame is Role.CLIENT else ErrorCode.SERVER_EXITED
    assert (verdict.outcome, verdict.code) == (Outcome.FAILED, code)
    assert verdict.reason.startswith(f"The {to_blame} ")
    assert ("gave up" in verdict.reason) == (to_blame is Role.CLIENT)


def cut_short(closes: dict[Role, float]) -> tuple[dict[Path, list[Packet]], str]:
    """Traces, by path, of a transfer of which half arrived, with a close by each side at a time; and their key log."""
    made, request = Connection(), stream_frame(0, b"GET /f\r\n", fin=True)
    sent = [
        (0.0, False, made.client_hello()), (0.3, True, made.server_hello()),
        (0.6, False, made.one_rtt(0, request, from_server=False)),
        (0.9, True, made.one_rtt(0, stream_frame(0, bytes(500)), from_server=True)),
        *((time, role is Role.SERVER, made.one_rtt(9, CLOSE, from_server=role is Role.SERVER))
          for role, time in closes.items()),
    ]  # fmt: skip
    found: dict[Path, list[Packet]] = {}
    for name, at_server in ((CLIENT_TRACE, False), (SERVER_TRACE, True)):
        seen = [Packet(time + (0.0 if side is at_server else 0.3), side, data) for time, side, data in sent]
        found[name] = sorted(seen, key=lambda packet: packet.time)
    return found, made.key_log


def test_without_times_an_unknown_test_outweighs_a_crash() -> None:
    for ends in ((Exit(127), Exit(139)), (Exit(139), Exit(127))):
        verdict = verdict_of(of_both(Role.CLIENT, *ends))
        assert verdict.outcome is Outcome.UNSUPPORTED


# ---- several flows ---------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "outcome"), [
    (139, Outcome.FAILED), (126, Outcome.FAILED), (1, Outcome.FAILED), (0, Outcome.FAILED), (127, Outcome.UNSUPPORTED)
])  # fmt: skip
def test_the_server_of_another_flow_that_is_never_ready_is_named(tmp_path: Path, status: int, outcome: Outcome) -> None:
    stopped = living(Exit(143, killed=True), 30.0)
    run = replace(RUN, others=(replace(RUN, server=replace(RUN.server, name="second")),))
    further = FlowEvidence(server=living(Exit(status), 0.5))
    evidence = Evidence("", 1, server=stopped, timed_out=Deadline.READY, flows=(further,))
    verdict, _ = analyse(run, evidence, tmp_path)
    assert verdict.outcome is outcome
    assert verdict.reason.startswith("Flow 2, second with ")
    own = replace(evidence, server=living(Exit(status), 0.5), flows=(FlowEvidence(server=stopped),))
    assert analyse(run, own, tmp_path)[0].reason.startswith("The server ")


def test_each_flow_has_its_own_use_of_the_machine() -> None:
    use = {"client": ResourceUse(1.0, 0.0, 1), "client-2": ResourceUse(2.0, 0.0, 2), "server-2": ResourceUse(3.0, 0, 3)}
    evidence = Evidence("", 1, use=use, flows=(FlowEvidence(),))
    assert run_outcome.of_flow(evidence, 1).use == {"client": use["client"]}
    assert run_outcome.of_flow(evidence, 2).use == {"client": use["client-2"], "server": use["server-2"]}


# ---- traces of crashed runs ------------------------------------------------------------------


def test_a_trace_may_be_longer_than_the_life_of_the_endpoint_that_crashed(directory: Path) -> None:
    """In virtual time, the client goes on for two seconds after the server; the traces cover five."""
    crashed = replace(
        EVIDENCE, clock=Clock.VIRTUAL, server=living(Exit(2), 3.0), client=living(Exit(137, killed=True), 5.0, 0.1)
    )
    verdict, _ = analyse(RUN, crashed, directory)
    assert (verdict.outcome, verdict.code) == (Outcome.FAILED, ErrorCode.SERVER_EXITED)


def test_the_span_in_virtual_time_is_that_of_all_endpoints() -> None:
    first = of_both(Role.SERVER, living(Exit(2), 3.0), living(Exit(0), 4.0, 1.0), clock=Clock.VIRTUAL)
    assert first.span == pytest.approx(4.0 + LINK_END)
    further = FlowEvidence(client=living(Exit(0), 9.0, 2.0), server=living(Exit(0, killed=True), 8.0, -1.0))
    assert replace(first, flows=(further,)).span == pytest.approx(10.0 + LINK_END)
    assert Evidence("", 1, client=Exit(0), clock=Clock.VIRTUAL).span is None


# ---- what a crash says -----------------------------------------------------------------------

GO = """2026/11/27 listening
panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.main()
\t/src/main.go:10 +0x1d
exit status 2"""
LOGS = {
    GO: "panic: runtime error: index out of range [5] with length 3",
    "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [select (no cases)]:\nmain.main()":
        "fatal error: all goroutines are asleep - deadlock!",
    "thread 'main' panicked at src/main.rs:4:5:\nexplicit panic\nnote: run with `RUST_BACKTRACE=1`":
        "thread 'main' panicked at src/main.rs:4:5: explicit panic",
    "thread 'worker' (77) panicked at src/a.rs:1:1:\nboom\nthread 'main' (1) panicked at b.rs:2:2:\nJoinError":
        "thread 'worker' (77) panicked at src/a.rs:1:1: boom",
    "thread 'main' panicked at 'boom', src/main.rs:4:5\nnote": "thread 'main' panicked at 'boom', src/main.rs:4:5",
    "Error: certificate expired\n\nCaused by:\n    0: chain": "Error: certificate expired",
    "terminate called after throwing an instance of 'std::runtime_error'\n  what():  no route":
        "terminate called after throwing an instance of 'std::runtime_error' what():  no route",
    "=======\n==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x6\n    #0 0x4\nSUMMARY: AddressSanitizer":
        "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x6",
    "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    x\nKeyError: 'b'\n\n"
    "During handling of the above exception, another exception occurred:\n\n"
    "Traceback (most recent call last):\n  File \"a.py\"\nValueError: no cid":
        "ValueError: no cid",
    "Exception in thread \"main\" java.lang.NullPointerException: stream\n\tat a.B.c(B.java:5)\nCaused by: x":
        'Exception in thread "main" java.lang.NullPointerException: stream',
    "#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n#  SIGSEGV (0xb) at pc=0x7f\n#\n# JRE":
        "#  SIGSEGV (0xb) at pc=0x7f",
    "malloc(): corrupted top size\nAborted (core dumped)": "malloc(): corrupted top size",
    "*** stack smashing detected ***: terminated": "*** stack smashing detected ***: terminated",
    "server: c.c:9: on_ack: Assertion `n > 0' failed.\nAborted": "server: c.c:9: on_ack: Assertion `n > 0' failed.",
    "[7:7:1/1.2:FATAL:q.cc(5)] Check failed: false. \n#0 0x55\n": "[7:7:1/1.2:FATAL:q.cc(5)] Check failed: false.",
    "/run.sh: line 9:    12 Segmentation fault      (core dumped) ./server\nbye":
        "/run.sh: line 9:    12 Segmentation fault      (core dumped) ./server",
}  # fmt: skip
"""What programs print when they crash, and the line that says why."""


@pytest.mark.parametrize(("log", "said"), LOGS.items())
def test_the_line_that_says_why_is_quoted(tmp_path: Path, log: str, said: str) -> None:
    assert _quoted(tmp_path, log) == f' The server says: "{said}".'


@pytest.mark.parametrize("log", ["Error: retrying", "panic: recovered"])
def test_what_was_survived_is_not_quoted(tmp_path: Path, log: str) -> None:
    lines = f"server | 2026-11-21T17:13:29.0Z {log}\nserver | 2026-11-21T17:13:32.1Z giving up\n"
    (tmp_path / OUTPUT).write_text(lines)
    assert _said(tmp_path, 1) == ' The server\'s last line: "giving up".'


def test_flows_are_told_apart(tmp_path: Path) -> None:
    stamp = "2026-11-21T17:13:29.0Z"
    (tmp_path / OUTPUT).write_text(f"server | {stamp} one\nserver-2 | {stamp} panic: two\nclient | {stamp} three\n")
    assert _said(tmp_path, 1) == ' The server\'s last line: "one".'
    assert _said(tmp_path, 2) == ' The server says: "panic: two".'


def _quoted(directory: Path, log: str) -> str:
    lines = (f"server | 2026-11-21T17:13:32.0{number:02}Z {line}\r" for number, line in enumerate(log.splitlines()))
    (directory / OUTPUT).write_text("\n".join([*lines, "client | 2026-11-21T17:13:33.0Z closed"]))
    return _said(directory, 1)


def _said(directory: Path, flow: int) -> str:
    evidence = of_both(Role.SERVER, Exit(2), Exit(137, killed=True))
    return quote(Verdict(Outcome.FAILED, ErrorCode.SERVER_EXITED), evidence, CASE, directory, flow)
