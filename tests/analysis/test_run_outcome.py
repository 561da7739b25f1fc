"""Each check finds exactly the fault it is made for, and says so in one sentence."""

from dataclasses import replace

import pytest

from quicsat.analysis import run_outcome
from quicsat.model.clock import Clock
from quicsat.model.emulated_link import (
    Direction,
    DirectionLateness,
    DirectionReport,
    EmulatedLink,
    Lateness,
    SimulatorReport,
)
from quicsat.model.evidence import Deadline, Evidence, Exit, HostFacts, ResourceUse
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.real_link import RealDirection, RealLink
from quicsat.model.run import File
from quicsat.model.test_case import TestCase
from quicsat.model.webtransport import WebTransport
from quicsat.traces.columns import Form, Trace
from tests.quic_builder import Row, columns

LINK = EmulatedLink.symmetric("simple-p2p", Direction(0.015, 20e6, 25))
CASE = TestCase("terrestrial", "T", "", LINK, (1000,), 10, 60.0, client_test="transfer", server_test="goodput")
KILLED = Exit(137, killed=True)
DONE = Evidence("", 1, client=Exit(0), server=KILLED, phases={"start": 10.0})
REPORT = SimulatorReport(0, True, 0, 0.001, 0, DirectionReport(1, 1, 0, 0), DirectionReport(1, 1, 0, 0))


def failed(verdict: Verdict | None, code: ErrorCode, words: str) -> bool:
    return is_fault(verdict, Outcome.FAILED, code, words)


def ours(verdict: Verdict | None, code: ErrorCode, words: str) -> bool:
    return is_fault(verdict, Outcome.ERROR, code, words)


def is_fault(verdict: Verdict | None, outcome: Outcome, code: ErrorCode, words: str) -> bool:
    assert verdict.reason[-1] == "."
    assert "\n" not in verdict.reason
    return (verdict.outcome, verdict.code, words in verdict.reason) == (outcome, code, True)


# ---- evidence -------------------------------------------------------------------------------


def test_a_run_without_fault_passes() -> None:
    assert run_outcome.harness(DONE, CASE) is None
    assert run_outcome.endpoint_ends(DONE, CASE) is None
    assert run_outcome.endpoint_ends(replace(DONE, client=KILLED, server=Exit(127, killed=True)), CASE) is None
    assert run_outcome.transfer(DONE, CASE) is None
    assert run_outcome.simulator(REPORT, 0.03) is None


def test_our_own_faults() -> None:
    full = replace(DONE, fault_code="disk-full", fault="The disk is full.")
    assert ours(run_outcome.harness(full, CASE), ErrorCode.DISK_FULL, "The disk is full.")
    odd = replace(DONE, fault_code="who-knows")
    assert ours(run_outcome.harness(odd, CASE), ErrorCode.HARNESS_FAULT, "without saying why")
    bomb = replace(DONE, fault_code="artefact-limit", fault="Too much.")
    assert failed(run_outcome.harness(bomb, CASE), ErrorCode.ARTEFACT_LIMIT, "Too much.")
    large = replace(DONE, fault_code="trace-limit", fault="Too much.")
    assert failed(run_outcome.harness(large, CASE), ErrorCode.ARTEFACT_LIMIT, "Too much.")
    far = replace(CASE, link=RealLink("a", "b", RealDirection(1e6), RealDirection(1e6), 0.1))
    assert ours(run_outcome.harness(large, far), ErrorCode.TRACE_LIMIT, "Too much.")


@pytest.mark.parametrize(
    ("changes", "outcome", "code", "words"),
    [
        ({"client": Exit(127)}, "unsupported", "unsupported", 'The client does not support the test "transfer"'),
        ({"client": KILLED, "server": Exit(127)}, "unsupported", "unsupported", 'server does not support the test "g'),
        ({"server": Exit(127), "timed_out": Deadline.READY}, "unsupported", "unsupported", "127"),
        ({"client": Exit(137, out_of_memory=True)}, "failed", "out-of-memory", "The client ran out of the memory"),
        ({"client": Exit(1), "server": Exit(139)}, "failed", "crashed", "status 139 (as after SIGSEGV)"),
        ({"client": Exit(191)}, "failed", "client-failed", "exit status 191 instead of 0"),
        ({"client": Exit(143)}, "failed", "client-failed", "exit status 143 (as after SIGTERM) instead of 0"),
        ({"client": KILLED, "server": Exit(130)}, "failed", "server-exited", "130 (as after SIGINT) before the client"),
        ({"client": Exit(137)}, "failed", "crashed", "client ended with exit status 137 (as after SIGKILL)"),
        ({"server": KILLED, "timed_out": Deadline.READY}, "failed", "server-not-ready", "not ready after 10.0 s"),
        ({"server": Exit(1), "timed_out": Deadline.READY}, "failed", "server-exited", "exit status 1 before it was"),
        ({"server": Exit(0), "timed_out": Deadline.READY}, "failed", "server-exited", "exit status 0 before it was"),
        ({"client": Exit(1)}, "failed", "client-failed", "exit status 1 instead of 0"),
        ({"client": Exit(255)}, "failed", "client-failed", "exit status 255"),
        ({"client": KILLED, "server": Exit(3)}, "failed", "server-exited", "exit status 3 before the client"),
        ({"client": KILLED, "timed_out": Deadline.TRANSFER}, "timeout", "timeout", "had not finished after 60 s"),
        ({"client": KILLED, "server": Exit(0)}, "failed", "server-exited", "exit status 0 before the client"),
        ({"client": KILLED, "server": KILLED}, "error", "harness-fault", "quicsat ended both endpoints"),
        ({"client": KILLED, "server": None}, "error", "harness-fault", "quicsat ended both endpoints"),
        ({"client": None}, "error", "harness-fault", "never ran"),
        ({"client": Exit(None)}, "error", "harness-fault", "never ran"),
    ],
)  # fmt: skip
def test_endpoints_that_gave_up_and_transfers_that_did_not_end_well(
    changes: dict[str, object], outcome: str, code: str, words: str
) -> None:
    evidence = replace(DONE, **changes)  # type: ignore[arg-type]
    verdict = run_outcome.endpoint_ends(evidence, CASE) or run_outcome.transfer(evidence, CASE)
    assert is_fault(verdict, Outcome(outcome), ErrorCode(code), words)


def test_a_simulator_that_lagged() -> None:
    assert ours(run_outcome.simulator(None, 0.03), ErrorCode.SIMULATOR_FAILED, "no report")
    lag = run_outcome.simulator(replace(REPORT, lag_max=0.0125), 0.03)
    assert ours(lag, ErrorCode.SIMULATOR_LAG, "fell 12.5 ms behind the clock; 10.0 ms are allowed")
    assert run_outcome.simulator(replace(REPORT, lag_max=run_outcome.LAG_LIMIT), 0.03) is None
    assert run_outcome.simulator(replace(REPORT, lag_max=0.030), 0.6) is None
    lag = run_outcome.simulator(replace(REPORT, lag_max=0.031), 0.6)
    assert ours(lag, ErrorCode.SIMULATOR_LAG, "fell 31.0 ms behind the clock; 30.0 ms are allowed")
    assert run_outcome.simulator(replace(REPORT, lag_max=0.2, lateness=lateness(frames=7000)), 0.03) is None
    overflow = run_outcome.simulator(replace(REPORT, receive_overflows=3), 0.03)
    assert ours(overflow, ErrorCode.SIMULATOR_LAG, "did not read 3 frames")


def lateness(frames: int, late: int = 0, life: float = 5.0, stalled: float = 0.0) -> Lateness:
    """Of a client's life in which so many frames of ``frames`` left late, half of them in each direction."""
    maximum = 0.02 if late else 0.0
    forward = DirectionLateness(frames - frames // 2, late - late // 2, maximum, 0.0001, 0.001, maximum)
    back = DirectionLateness(frames // 2, late // 2, 0.0, 0.0001, 0.001, 0.0)
    return Lateness(0.01, life, stalled, int(stalled > 0), stalled, forward, back)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (lateness(7000, late=70, stalled=0.05), ""),
        (lateness(7000, late=71, stalled=0.03), "1.0 % of 7000 frames more than 10.0 ms late, up to 20.0 ms"),
        (
            lateness(7000, late=2, stalled=0.051),
            "late frames waited during 1.0 % of the client's 5.0 s; 1 % is allowed",
        ),
        # a handshake: each frame counts
        (lateness(20, life=0.1), ""),
        (lateness(20, late=1, life=0.1, stalled=0.012), "5.0 % of 20 frames"),
        # one stall of seconds, in which a window of frames was due and nothing else was sent
        (lateness(7000, late=40, life=7.0, stalled=3.0), "during 42.9 % of the client's 7.0 s"),
        (lateness(0), ""),
        (lateness(0, life=0.0), ""),
    ],
)
def test_lateness_is_a_share_of_frames_and_of_time(found: Lateness, words: str) -> None:
    verdict = run_outcome.simulator(replace(REPORT, lateness=found), 0.03)
    assert ours(verdict, ErrorCode.SIMULATOR_LAG, words) if words else verdict is None


def test_a_busy_machine_is_no_fault_of_the_server() -> None:
    host = HostFacts("6.1", "x86_64", 2, 1, "20", 9.0, cpu_busy=0.99)
    late = replace(DONE, timed_out=Deadline.READY, client=None, server=Exit(None, killed=True), host=host)
    verdict = run_outcome.endpoint_ends(late, CASE)
    assert ours(verdict, ErrorCode.HOST_STARVED, "while 99 % of the CPU time was in use")
    busy_itself = replace(late, use={"server": ResourceUse(58.0, 0.5, 1)}, phases={"start": 30.0})
    assert failed(run_outcome.endpoint_ends(busy_itself, CASE), ErrorCode.SERVER_NOT_READY, "58.5 s of CPU time")
    calm = replace(late, host=replace(host, cpu_busy=0.5))
    assert failed(run_outcome.endpoint_ends(calm, CASE), ErrorCode.SERVER_NOT_READY, "not ready")


def test_a_short_peak_beside_others_excludes_no_run_but_a_crowded_run_is_excluded() -> None:
    host = HostFacts("6.1", "x86_64", 2, 1, "20", 9.0, cpu_busy=0.99, cpu_crowded=0.05, neighbours=3)
    assert run_outcome.starved(replace(DONE, host=host)) is None
    crowded = run_outcome.starved(replace(DONE, host=replace(host, cpu_crowded=0.11)))
    assert ours(crowded, ErrorCode.HOST_STARVED, "during 11 % of the run; 10 % are allowed")
    assert run_outcome.starved(replace(DONE, host=replace(host, cpu_crowded=1.0, neighbours=0))) is None
    old = run_outcome.starved(replace(DONE, host=replace(host, cpu_crowded=None)))
    assert ours(old, ErrorCode.HOST_STARVED, "99 % of the CPU time was in use.")


def test_no_neighbour_takes_time_from_a_run_in_virtual_time() -> None:
    host = HostFacts("6.1", "x86_64", 2, 1, "20", 9.0, cpu_busy=0.99, cpu_crowded=1.0, neighbours=3)
    assert run_outcome.starved(replace(DONE, host=host)) is not None
    assert run_outcome.starved(replace(DONE, host=host, clock=Clock.VIRTUAL)) is None


def test_a_busy_machine_keeps_no_server_from_being_ready_in_virtual_time() -> None:
    host = HostFacts("6.1", "x86_64", 2, 1, "20", 9.0, cpu_busy=0.99)
    late = Evidence("", 1, timed_out=Deadline.READY, server=KILLED, host=host, clock=Clock.VIRTUAL)
    verdict = run_outcome.endpoint_ends(late, CASE)
    assert failed(verdict, ErrorCode.SERVER_NOT_READY, "not ready at the deadline")


# ---- files ----------------------------------------------------------------------------------

A, B = File("a", 10, "x"), File("b", 20, "y")


def test_files() -> None:
    assert run_outcome.files([A, B], [B, A]) is None
    assert failed(run_outcome.files([A], []), ErrorCode.FILE_MISSING, "The file did not arrive at the client: a")
    assert failed(run_outcome.files([A, B], [B]), ErrorCode.FILE_MISSING, "1 of 2 files")
    assert failed(run_outcome.files([A], [A, B]), ErrorCode.FILE_EXTRA, "were not requested: b")
    cut = run_outcome.files([A, B], [A, replace(B, size=7)])
    assert failed(cut, ErrorCode.FILE_SIZE, "b: 7 bytes arrived instead of 20")
    other = run_outcome.files([A, B], [A, replace(B, sha256="z")])
    assert failed(other, ErrorCode.FILE_CONTENT, "not what the server offered: b")


def test_file_names_of_an_endpoint_are_shown_harmless_and_short() -> None:
    verdict = run_outcome.files([], [File("\x1b[31m\n" + "x" * 500 + str(n), 1, "") for n in range(9)])
    assert failed(verdict, ErrorCode.FILE_EXTRA, "and 6 more")
    assert verdict.reason.isprintable()
    assert len(verdict.reason) < 400


# ---- traces ---------------------------------------------------------------------------------


def initial(from_server: bool, scid: str, dcid: str, **more: object) -> Row:
    return Row(0, from_server, Form.INITIAL, scid=scid, dcid=dcid, **more)  # type: ignore[arg-type]


def connection(number: int, own: str = "c", path: str = "p") -> list[Row]:
    """Client's Initial, server's answer, client's acknowledgement."""
    mine = own + str(number) if own else ""
    return [
        initial(False, mine, f"first{number}", path=path),
        initial(True, f"server{number}", mine, path=path),
        initial(False, mine, f"server{number}", path=path),
    ]


def test_handshake_count() -> None:
    assert run_outcome.handshake_count(columns(*connection(1))) is None
    two = run_outcome.handshake_count(columns(*connection(1), *connection(2)))
    assert failed(two, ErrorCode.HANDSHAKE_COUNT, "2 handshakes instead of 1")
    middle = run_outcome.handshake_count(columns(Row(0, True), Row(1, False)))
    assert ours(middle, ErrorCode.TRACE_MISMATCH, "begins in the middle")


def test_version() -> None:
    assert run_outcome.version(columns(initial(True, "s", "c"), initial(False, "c", "s", version=5))) is None
    corrupted = initial(True, "s", "c", version=0x68, decrypted=False)
    assert run_outcome.version(columns(initial(True, "s", "c"), corrupted)) is None
    other = run_outcome.version(columns(initial(True, "s", "c"), initial(True, "s", "c", version=0x6B3343CF)))
    assert failed(other, ErrorCode.SEVERAL_VERSIONS, "0x00000001, 0x6b3343cf instead of 0x00000001")
    assert failed(run_outcome.version(columns()), ErrorCode.WRONG_VERSION, "was none")


def answers(*frames: tuple[int, int, int]) -> Trace:
    return columns(Row(0, True, frames=frames), Row(1, True, decrypted=False))


def test_coverage() -> None:
    assert run_outcome.coverage(answers((0, 0, 100), (0, 50, 100), (4, 0, 0), (3, 0, 7)), [150, 0]) is None
    assert run_outcome.coverage(answers((0, 0, 100), (4, 0, 100)), [100]) is None  # asked for twice
    hole = run_outcome.coverage(answers((0, 0, 50), (0, 60, 40)), [100])
    assert ours(hole, ErrorCode.TRACE_MISMATCH, "with 10 bytes missing in between")
    assert ours(hole, ErrorCode.TRACE_MISMATCH, "1 packet stayed encrypted")
    assert run_outcome.coverage(answers((0, 0, 50), (0, 60, 50)), [100]) is not None
    assert run_outcome.coverage(answers((0, 0, 99)), [100]) is not None
    assert run_outcome.coverage(answers((0, 0, 101)), [100]) is not None
    assert run_outcome.coverage(answers((0, 0, 100)), [100, 100]) is not None


def test_connections_without_keys() -> None:
    def response(connection: int, decrypted: bool) -> Row:
        return Row(connection, True, connection=connection, decrypted=decrypted)

    read, unread = response(0, decrypted=True), response(1, decrypted=False)
    assert run_outcome.unread_connections(columns(read, response(0, decrypted=False))) == 0
    assert run_outcome.unread_connections(columns(read, unread, response(2, decrypted=False))) == 2
    assert run_outcome.unread_connections(columns(read, unread, response(1, decrypted=True))) == 0


# ---- WebTransport ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", WebTransport)
def test_a_server_may_end_with_its_session(kind: WebTransport) -> None:
    left, session = replace(DONE, client=KILLED, server=Exit(0)), replace(CASE, webtransport=kind)
    assert run_outcome.transfer(left, session) is None
    for evidence, case in ((left, CASE), (replace(left, server=Exit(1)), session)):
        verdict = run_outcome.transfer(evidence, case)
        assert failed(verdict, ErrorCode.SERVER_EXITED, "before the client had finished")


def test_files_of_a_session_are_looked_for_on_the_side_that_requests_them() -> None:
    evidence = replace(DONE, offered=(File("s/a", 2, "x"),), downloaded=())
    for kind, side, other in ((WebTransport.RECEIVE, "client", "server"), (WebTransport.SEND, "server", "client")):
        missing = run_outcome.session_files(evidence, kind)
        assert failed(missing, ErrorCode.FILE_MISSING, f"did not arrive at the {side}: s/a.")
        changed = run_outcome.session_files(replace(evidence, downloaded=(File("s/a", 2, "y"),)), kind)
        assert failed(changed, ErrorCode.FILE_CONTENT, f"not what the {other} offered")
        assert run_outcome.session_files(replace(evidence, downloaded=evidence.offered), kind) is None


def test_both_sides_of_a_session_write_the_protocol_that_they_agreed_on() -> None:
    client, server = (File(f"{side}/negotiated_protocol.txt", 3, "abc") for side in ("client", "server"))
    evidence = replace(DONE, offered=(client, server))

    def told(*found: File) -> Verdict | None:
        return run_outcome.session_files(replace(evidence, downloaded=found), WebTransport.HANDSHAKE)

    assert told(client, server) is None
    missing = told(client)
    assert failed(missing, ErrorCode.FILE_MISSING, "The server did not write negotiated_protocol.txt")
    wrong = told(replace(client, sha256="xyz"), server)
    assert failed(wrong, ErrorCode.FILE_CONTENT, "In the client's negotiated_protocol.txt is not")
