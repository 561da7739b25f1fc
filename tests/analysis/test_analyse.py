"""From a run's directory to its outcome: numbers only from whole and plausible traces, and our faults stay ours."""

import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quicsat.analysis import analyse as module
from quicsat.analysis.analyse import CLIENT_TRACE, SERVER_TRACE, analyse, analyse_once
from quicsat.analysis.metrics import METRICS
from quicsat.model.emulated_link import ClientSideReport, DirectionReport, Profile, ProfileReport, Rebinding
from quicsat.model.evidence import Deadline, Evidence, Exit, HostFacts
from quicsat.model.gateways import VPNS
from quicsat.model.implementation import Implementation, Protocol
from quicsat.model.outcomes import Cause, Check, ErrorCode, Outcome, Rules, Verdict
from quicsat.model.perturbation import Perturbation
from quicsat.model.results import Measurement
from quicsat.model.run import File, Run
from quicsat.model.time_shares import TimeShare
from quicsat.model.workload import RequestOrder, Workload
from quicsat.traces import run_traces
from quicsat.traces.run_traces import RunTraces
from quicsat.traces.series import FILE_NAME, Series, load
from tests import simulated, tcp_traces
from tests.analysis.test_run_outcome import CASE, DONE, KILLED, REPORT
from tests.http2_builder import exchange, write_run
from tests.quic_builder import EPOCH, PING, Connection, Packet, pcap, stream_frame
from tests.traces.test_pcap import mutate

DATA = Path(__file__).parents[1] / "data"
SOMEONE = Implementation("someone", "someone", "", frozenset())
RUN = Run(SOMEONE, SOMEONE, CASE, 1, 1)
SIZE = 1000
EVIDENCE = replace(
    DONE,
    simulator=REPORT,
    offered=(File("f", SIZE, "x"),),
    downloaded=(File("f", SIZE, "x"),),
    phases={"transfer": 5.0},
)
PASSED = Verdict(Outcome.SUCCEEDED)
DELAY = 0.3
FIRST = [metric.name for metric in METRICS][:10]
"""Metrics of the response and its packets; the others are those of ``facts``."""


def transfer(*, lost: Sequence[int] = ()) -> tuple[list[Packet], list[Packet], str]:
    """Client's and server's trace of 1000 bytes in four packets, a second apart, and the key log."""
    made, request = Connection(), stream_frame(0, b"GET /f\r\n", fin=True)
    pieces = [stream_frame(0, bytes(250), 250 * n, fin=n == 3) for n in range(4)]
    sent = [(1.5 + n, made.one_rtt(n + 1, piece, from_server=True), n in lost) for n, piece in enumerate(pieces)]
    sent += [(4.6 + n / 10, made.one_rtt(n + 9, pieces[n], from_server=True), False) for n in lost]
    back = [(0.0, made.client_hello()), (0.9, made.one_rtt(0, request, from_server=False))]
    forth = [(DELAY, made.server_hello(), False), *sent]
    client = [Packet(time, False, data) for time, data in back]
    client += [Packet(time + DELAY, True, data) for time, data, gone in forth if not gone]
    server = [Packet(time + DELAY, False, data) for time, data in back]
    server += [Packet(time, True, data) for time, data, _ in forth]
    return sorted(client, key=lambda p: p.time), sorted(server, key=lambda p: p.time), made.key_log


def write(directory: Path, client: Sequence[Packet], server: Sequence[Packet], **form: Any) -> None:
    (directory / CLIENT_TRACE).write_bytes(pcap(client, **form))
    (directory / SERVER_TRACE).write_bytes(pcap(server, **form))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A run that went well, but for one packet."""
    for folder in ("sim", "client", "server"):
        (tmp_path / folder).mkdir()
    client, server, key_log = transfer(lost=[1])
    write(tmp_path, client, server)
    (tmp_path / "server/keys.log").write_text(key_log)
    return tmp_path


def judged(directory: Path, evidence: Evidence = EVIDENCE, **changes: object) -> tuple[Verdict, Measurement | None]:
    verdict, measurement = analyse(RUN, replace(evidence, **changes), directory)  # type: ignore[arg-type]
    assert verdict.outcome is Outcome.SUCCEEDED or verdict.reason.endswith(".")
    assert (measurement is None) == (verdict.outcome not in (Outcome.SUCCEEDED, Outcome.TIMEOUT))
    return verdict, measurement


def measured(directory: Path, **changes: object) -> Measurement:
    """The numbers of a run that succeeded."""
    verdict, measurement = judged(directory, **changes)  # type: ignore[arg-type]
    assert verdict == PASSED
    assert measurement is not None
    return measurement


def values(directory: Path, **changes: object) -> Mapping[str, float]:
    return measured(directory, **changes).values


def valid(verdict: Verdict) -> Verdict:
    """What it would be if the attempt were valid."""
    assert verdict.if_valid is not None
    return verdict.if_valid


def stored_series(directory: Path) -> Series:
    series = load(directory)
    assert series is not None
    return series


def code(directory: Path, **changes: object) -> ErrorCode:
    return judged(directory, EVIDENCE, **changes)[0].code


def test_all_numbers_of_a_good_run(directory: Path) -> None:
    measurement = measured(directory)
    assert measurement.notes == ()
    assert set(measurement.values) <= {metric.name for metric in METRICS}
    payload = sum(len(packet.payload) for packet in transfer(lost=[1])[1] if packet.from_server)
    known = {name: value for name, value in measurement.values.items() if name in FIRST}
    assert known == pytest.approx({
        "goodput": 8 * SIZE / 3.2,
        "efficiency": 8 * SIZE / 3.2 / CASE.link.forward.rate,
        "stream_goodput": 8 * SIZE / 3.2,
        "handshake_time": 0.9,
        "time_to_first_byte": 1.8,
        "completion_time": 5.0,
        "sent_per_useful_byte": payload / SIZE,
        "loss_forward": 1 / 6,
        "loss_return": 0.0,
        "queue_loss": 0.0,
    })  # fmt: skip


def test_bursts_of_the_link_are_unknown_if_packets_are_also_lost_at_the_clients_side(directory: Path) -> None:
    counters = DirectionReport(6, 6, 0, 0)
    report = replace(REPORT, forward=counters)
    for lost, known in ((0, True), (1, False)):
        beside = replace(report, client_side=ClientSideReport(replace(counters, loss_drops=lost), counters))
        found = values(directory, simulator=beside)
        assert found["client_side_loss"] == pytest.approx(lost / 6)
        assert ("link_gilbert_gg" in found) == known


def test_analysing_again_reads_the_qlogs_that_the_first_analysis_compressed(directory: Path) -> None:
    event = '{"time": %d, "name": "recovery:metrics_updated", "data": {"congestion_window": %d}}'
    lines = ['{"trace": {}}', *(event % (number, 12_000 + number) for number in range(100))]
    (directory / "server/qlog").mkdir()
    (directory / "server/qlog/a.sqlog").write_text("\n".join([*lines, event % (100, 10**30)]))
    found = analyse_once(RUN, EVIDENCE, directory)
    assert [path.name for path in (directory / "server/qlog").iterdir()] == ["a.sqlog.gz"]
    assert found[1].notes
    stored = (directory / FILE_NAME).read_bytes()
    assert analyse(RUN, EVIDENCE, directory) == found
    assert (directory / FILE_NAME).read_bytes() == stored


def test_a_qlog_that_cannot_be_read_is_named_and_decides_nothing(directory: Path) -> None:
    """A number of 400 digits is passed over; the window before it is kept."""
    event = '{"time": %d, "name": "recovery:metrics_updated", "data": {"congestion_window": %s}}'
    lines = ['{"trace": {}}', event % (0, "12000"), event % (10, "9" * 400), event % (20, "6000")]
    (directory / "server/qlog").mkdir()
    (directory / "server/qlog/a.sqlog").write_text("\n".join(lines))
    notes = measured(directory).notes
    assert notes == (
        "Server's qlog: a.sqlog: passed over of the events on congestion control: events without a usable value (1).",
    )
    assert stored_series(directory).cwnd.value.tolist() == [12000, 6000]


def test_efficiency_is_of_the_rate_that_the_link_had_in_this_run(directory: Path) -> None:
    nominal, fast = (
        analyse(RUN, replace(EVIDENCE, perturbation=Perturbation(rate=rate)), directory)[1] for rate in (1.0, 1.25)
    )
    assert fast.values["efficiency"] == pytest.approx(nominal.values["efficiency"] / 1.25)
    assert fast.values["goodput"] == nominal.values["goodput"]


def test_efficiency_over_a_changing_link_is_of_what_it_offered(directory: Path) -> None:
    """The mean of its rate is below the goodput, but the transfer took place while the rate was higher."""
    rate = 8 * SIZE / 3.2
    profile = Profile("rates.csv", 100.0, (0.0, 10.0), rates=(1.25 * rate, 0.0))
    link = CASE.emulated.with_forward(rate=profile.mean(profile.rates), profile=profile)
    run = replace(RUN, test_case=replace(CASE, link=link))
    [client, *_], *_ = transfer(lost=[1])
    report = replace(REPORT, forward=replace(REPORT.forward, profile=ProfileReport(client.time, 1)))
    _, measurement = analyse(run, replace(EVIDENCE, simulator=report), directory)
    assert measurement.values["goodput"] > link.forward.rate
    assert measurement.values["efficiency"] == pytest.approx(0.8)


def test_the_series_are_those_of_the_traces(directory: Path) -> None:
    judged(directory)
    series = stored_series(directory)
    assert series.sent.time.tolist() == pytest.approx([1.5, 2.5, 3.5, 4.5, 4.7])
    assert series.sent.retransmission.tolist() == [False, False, False, False, True]
    assert series.arrived.offset.tolist() == [0, 500, 750, 250]
    assert series.forward.lost.tolist() == [False, False, True, False, False, False]
    assert series.requests.sent.tolist() == pytest.approx([0.9])
    assert series.requests.last_byte.tolist() == pytest.approx([5.0])
    assert series.clock.offset == pytest.approx(0)


def test_without_key_log_there_is_still_a_goodput(directory: Path) -> None:
    (directory / "server/keys.log").unlink()
    measurement = measured(directory)
    assert measurement.values["goodput"] == pytest.approx(8 * SIZE / 3.2)
    assert measurement.notes == (module.NO_KEYS,)
    assert {"stream_goodput", "completion_time"}.isdisjoint(measurement.values)
    (directory / "server/keys.log").write_text(Connection(random=b"?" * 32).key_log)  # of another run
    assert measured(directory).notes == (module.WRONG_KEYS,)


def test_recorded_runs() -> None:
    for name, sizes in {"lossy": [30_000], "many": [3000, 10, 1, 5000, 7000, 0, 200], "retry": [8000, 2000]}.items():
        files = tuple(File(str(n), size, "") for n, size in enumerate(sizes))
        measured(DATA / name, offered=files, downloaded=files, phases={})


# ---- evidence first -------------------------------------------------------------------------


NOT_BEGUN = {"client": Exit(None), "timed_out": Deadline.READY, "simulator": None}
"""A run whose client was not started: the link leaves neither report nor traces."""
SILENT = replace(REPORT, forward=DirectionReport(0, 0, 0, 0), back=DirectionReport(0, 0, 0, 0))
LAGGED = replace(REPORT, lag_max=0.5, receive_overflows=3)
BUSY = HostFacts("6.1", "x86_64", 2, 1, "20", 9.0, cpu_busy=0.99, neighbours=3)


def test_a_fault_of_ours_is_known_without_traces(tmp_path: Path) -> None:
    assert code(tmp_path, fault_code="daemon-fault", fault="Gone.") is ErrorCode.DAEMON_FAULT


def test_the_evidence_is_judged_before_what_the_traces_say(directory: Path) -> None:
    assert code(directory, host=replace(BUSY, neighbours=0)) is ErrorCode.NONE
    assert code(directory, downloaded=(File("f", SIZE, "y"),)) is ErrorCode.FILE_CONTENT
    assert code(directory, client=Exit(127)) is ErrorCode.UNSUPPORTED
    assert code(directory, client=Exit(134)) is ErrorCode.CRASHED
    assert code(directory, client=Exit(1)) is ErrorCode.CLIENT_FAILED
    assert code(directory, client=KILLED, server=Exit(1)) is ErrorCode.SERVER_EXITED


def test_a_run_whose_client_was_not_started_needs_neither_report_nor_traces(tmp_path: Path) -> None:
    assert code(tmp_path, **NOT_BEGUN, server=Exit(127)) is ErrorCode.UNSUPPORTED
    assert code(tmp_path, **NOT_BEGUN, server=Exit(134)) is ErrorCode.CRASHED
    assert code(tmp_path, **NOT_BEGUN, server=Exit(1)) is ErrorCode.SERVER_EXITED
    assert code(tmp_path, **NOT_BEGUN) is ErrorCode.SERVER_NOT_READY
    assert code(tmp_path, **NOT_BEGUN, host=BUSY) is ErrorCode.HOST_STARVED


ENDS: dict[str, tuple[dict[str, object], Outcome]] = {
    "passed": ({}, Outcome.SUCCEEDED),
    "timeout": ({"timed_out": Deadline.TRANSFER, "client": KILLED}, Outcome.TIMEOUT),
    "client failed": ({"client": Exit(1)}, Outcome.FAILED),
    "client crashed": ({"client": Exit(139)}, Outcome.FAILED),
    "server crashed": ({"client": KILLED, "server": Exit(139)}, Outcome.FAILED),
    "out of memory": ({"client": Exit(137, out_of_memory=True)}, Outcome.FAILED),
    "unsupported": ({"client": Exit(127)}, Outcome.UNSUPPORTED),
    "file missing": ({"downloaded": ()}, Outcome.FAILED),
}
"""What endpoints can do, and the outcome of a valid attempt in which they do it."""
DISTURBANCES: dict[ErrorCode, dict[str, object]] = {
    ErrorCode.SIMULATOR_LAG: {"simulator": LAGGED},
    ErrorCode.SIMULATOR_FAILED: {"simulator": None},
    ErrorCode.HOST_STARVED: {"host": BUSY},
}


@pytest.mark.parametrize("check", [None, Check.HANDSHAKE])
@pytest.mark.parametrize("end", ENDS)
def test_a_disturbance_excludes_an_attempt_whatever_its_outcome(directory: Path, end: str, check: Check | None) -> None:
    run, (changes, outcome) = replace(RUN, test_case=replace(CASE, check=check)), ENDS[end]
    valid, _ = analyse(run, replace(EVIDENCE, **changes), directory)  # type: ignore[arg-type]
    assert (valid.outcome, valid.if_valid) == (outcome, None)
    for reason, disturbance in DISTURBANCES.items():
        evidence = replace(EVIDENCE, **{**changes, **disturbance})  # type: ignore[arg-type]
        verdict, measurement = analyse(run, evidence, directory)
        assert (verdict.outcome, verdict.code, verdict.if_valid) == (Outcome.ERROR, reason, valid)
        assert measurement is None


def test_a_functional_test_that_its_traces_fail_is_excluded_like_one_that_they_pass(directory: Path) -> None:
    for check, expected in ((Check.HANDSHAKE, ErrorCode.NONE), (Check.RETRY, ErrorCode.RETRY_MISSING)):
        verdict = functional(directory, check, simulator=LAGGED)
        assert (verdict.code, valid(verdict).code) == (ErrorCode.SIMULATOR_LAG, expected)


def test_repetition_does_not_change_the_share_of_passes(directory: Path) -> None:
    """Half of the attempts pass and half are late, independently: half of the runs pass, as without repetition.

    Where lateness excuses failures alone, two thirds of the runs pass.
    """
    verdicts = {
        (end, late): functional(directory, Check.HANDSHAKE, **{**ENDS[end][0], "simulator": LAGGED if late else REPORT})
        for end in ("passed", "timeout")
        for late in (False, True)
    }
    chance, passed, valid = random.Random(1), 0, 0
    for _ in range(4000):
        for _attempt in range(3):
            verdict = verdicts[chance.choice(("passed", "timeout")), chance.random() < 0.5]
            if not verdict.excluded:
                break
        valid += not verdict.excluded
        passed += verdict.outcome is Outcome.SUCCEEDED
    assert passed / valid == pytest.approx(0.5, abs=0.03)
    assert valid == pytest.approx(4000 * (1 - 0.5**3), rel=0.03)


@pytest.mark.parametrize("end", ENDS)
def test_a_broken_trace_excludes_an_attempt_whatever_its_outcome(directory: Path, end: str) -> None:
    changes, outcome = ENDS[end]
    whole = (directory / SERVER_TRACE).read_bytes()
    codes = {b"": ErrorCode.TRACE_EMPTY, whole[:-1]: ErrorCode.TRACE_TRUNCATED, b"?" + whole: ErrorCode.TRACE_CORRUPT}
    for content, expected in codes.items():
        (directory / SERVER_TRACE).write_bytes(content)
        verdict, _ = judged(directory, EVIDENCE, **changes)
        assert (verdict.outcome, verdict.code, valid(verdict).outcome) == (Outcome.ERROR, expected, outcome)
        assert verdict.reason.startswith("The server's trace cannot be used: ")
        assert functional(directory, Check.HANDSHAKE, **changes).code is expected
    (directory / SERVER_TRACE).unlink()
    assert code(directory, **changes) is ErrorCode.TRACE_EMPTY


def test_traces_that_contradict_each_other_exclude_a_failure_too(directory: Path) -> None:
    whole = (directory / CLIENT_TRACE).read_bytes()
    (directory / CLIENT_TRACE).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    for changes, outcome in (ENDS["passed"], ENDS["timeout"], ENDS["client failed"]):
        verdict, measurement = judged(directory, EVIDENCE, **changes)
        assert (verdict.code, measurement) == (ErrorCode.TRACE_MISMATCH, None)
        assert valid(verdict).outcome is outcome


def test_an_empty_trace_is_whole_if_the_link_has_carried_nothing_or_only_a_tunnel(directory: Path) -> None:
    write(directory, [], [])
    assert code(directory, client=Exit(1), simulator=SILENT) is ErrorCode.CLIENT_FAILED
    assert code(directory, client=Exit(127), simulator=SILENT) is ErrorCode.UNSUPPORTED
    assert code(directory, client=Exit(1)) is ErrorCode.TRACE_EMPTY
    assert code(directory, simulator=SILENT) is ErrorCode.TRACE_EMPTY
    tunnelled = replace(RUN, test_case=replace(CASE, link=replace(CASE.emulated, vpn=VPNS["wireguard"])))
    assert analyse(tunnelled, replace(EVIDENCE, client=Exit(1)), directory)[0].code is ErrorCode.CLIENT_FAILED


def test_a_run_that_timed_out_has_its_loss_and_no_goodput(directory: Path) -> None:
    verdict, measurement = judged(directory, timed_out=Deadline.TRANSFER, client=KILLED)
    reason = "The client had not finished after 60 s. All 1000 B of the response had arrived at the client after 5.0 s."
    assert verdict == Verdict(Outcome.TIMEOUT, ErrorCode.TIMEOUT, reason, Cause.ALL_ARRIVED, received=1000)
    known = {name: value for name, value in measurement.values.items() if name in FIRST}
    assert known == pytest.approx({"loss_forward": 1 / 6, "loss_return": 0.0})
    (directory / CLIENT_TRACE).unlink()
    assert analyse(RUN, replace(EVIDENCE, timed_out=Deadline.TRANSFER), directory)[1] is None


def test_a_run_that_timed_out_has_the_shares_of_its_time(directory: Path) -> None:
    made = simulated.transfer([300_000], simulated.Link())
    ends = [[packet for packet in each if packet.time < 2.0] for each in (made.at_client, made.at_server)]
    write(directory, ends[0], ends[1])
    (directory / "server/keys.log").write_text(made.key_log)
    _, measurement = judged(directory, timed_out=Deadline.TRANSFER, client=KILLED, offered=(File("f", 300_000, "x"),))
    shares = {share: measurement.values[share.metric] for share in TimeShare}
    last = max(packet.time for packet in ends[0] if packet.from_server)
    assert sum(shares.values()) == pytest.approx(last - ends[0][0].time)
    assert shares[TimeShare.HANDSHAKE] == pytest.approx(0.9, abs=0.02)


# ---- traces and files -----------------------------------------------------------------------


def test_a_cut_trace_leaves_series_of_what_came_before_and_the_outcome_open(directory: Path) -> None:
    """Nothing that is missing behind the cut counts against the pair, however it ended."""
    whole = (directory / CLIENT_TRACE).read_bytes()
    for share in (0.9, 0.95):
        (directory / CLIENT_TRACE).write_bytes(whole[: int(len(whole) * share)])
        for changes, outcome in (ENDS["passed"], ENDS["timeout"]):
            (directory / FILE_NAME).unlink(missing_ok=True)
            verdict, measurement = judged(directory, EVIDENCE, **changes)
            assert (verdict.code, measurement) == (ErrorCode.TRACE_TRUNCATED, None)
            assert (valid(verdict).outcome, valid(verdict).cause) == (outcome, "")
            assert 0 < len(stored_series(directory).arrived) < 4
    before = (directory / FILE_NAME).read_bytes()
    (directory / CLIENT_TRACE).write_bytes(whole[: len(whole) // 3])
    judged(directory, EVIDENCE)
    assert (directory / FILE_NAME).read_bytes() == before


def test_a_trace_longer_than_its_run(directory: Path) -> None:
    verdict, _ = judged(directory, phases={"ready": 0.5, "transfer": 3.0})
    assert verdict.code is ErrorCode.TRACE_CORRUPT
    assert verdict.reason == "The client's trace covers 5.0 s of a run of 3.5 s."


def failing(error: Exception, calls: list[object]) -> Callable[..., Any]:
    def fail(*arguments: object, **options: object) -> None:
        calls.append(arguments)
        raise error

    return fail


CRASHED = replace(EVIDENCE, client=KILLED, server=Exit(2))


def test_optional_evidence_that_cannot_be_read_decides_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers, verdict = measured(directory), judged(directory, CRASHED)[0]
    for name, what in (("recovery", "qlogs of the server"), ("negotiated", "handshake")):
        place = run_traces if hasattr(run_traces, name) else module
        with monkeypatch.context() as patch:
            patch.setattr(place, name, failing(OverflowError("int too large"), []))
            found = measured(directory)
            crashed, _ = judged(directory, CRASHED)
        said = f"The {what} could not be read (OverflowError)."
        assert (found.values, found.notes) == (numbers.values, (*numbers.notes, said))
        if place is run_traces:
            assert crashed == replace(verdict, reason=f"{verdict.reason} {said}")


@pytest.mark.parametrize("error", [ValueError("x"), OverflowError(), MemoryError(), RecursionError(), KeyError("a")])
def test_an_analysis_that_fails_on_the_same_files_excludes_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    calls: list[object] = []
    monkeypatch.setattr(module, "read_run", failing(error, calls))
    verdict, _ = judged(directory)
    assert (verdict.outcome, verdict.code, len(calls)) == (Outcome.FAILED, ErrorCode.UNREADABLE, 3)
    assert f"failed 3 times: {type(error).__name__} in test_analyse.py:" in verdict.reason
    verdict, _ = judged(directory, CRASHED)
    assert (verdict.outcome, verdict.code) == (Outcome.FAILED, ErrorCode.SERVER_EXITED)
    assert type(error).__name__ in verdict.reason
    assert code(directory, downloaded=()) is ErrorCode.FILE_MISSING
    disturbed, _ = judged(directory, CRASHED, simulator=LAGGED)
    assert (disturbed.code, disturbed.if_valid) == (ErrorCode.SIMULATOR_LAG, verdict)


def test_an_analysis_that_fails_once_is_repeated_and_one_without_files_is_a_fault_of_the_machine(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = judged(directory)
    read, calls = run_traces.read_run, list[object]()

    def once(*arguments: Any, **options: Any) -> RunTraces:
        if not calls:
            failing(MemoryError(), calls)()
        return read(*arguments, **options)

    monkeypatch.setattr(module, "read_run", once)
    assert judged(directory) == truth
    monkeypatch.setattr(module, "_judged", failing(PermissionError(), []))
    with pytest.raises(PermissionError):
        judged(directory)


def test_a_trace_with_a_hole_gives_no_number(directory: Path) -> None:
    client, _, _ = transfer(lost=[1])
    (directory / CLIENT_TRACE).write_bytes(pcap(client[:-1]))
    verdict, _ = judged(directory)
    assert (verdict.outcome, verdict.code) == (Outcome.ERROR, ErrorCode.TRACE_MISMATCH)
    assert "250 bytes missing" in verdict.reason
    (directory / "server/keys.log").unlink()
    (directory / CLIENT_TRACE).write_bytes(pcap(client[:4]))
    verdict, _ = judged(directory)
    assert "but the files have 1000" in verdict.reason


def test_a_changed_payload_is_noticed_without_keys(directory: Path) -> None:
    (directory / "server/keys.log").unlink()
    for trace in (CLIENT_TRACE, SERVER_TRACE):
        whole = (directory / trace).read_bytes()
        (directory / trace).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        verdict, _ = judged(directory)
        assert (verdict.outcome, verdict.code) == (Outcome.ERROR, ErrorCode.TRACE_MISMATCH)
        assert "1 packet arrived at the client" in verdict.reason
        back = replace(REPORT, back=replace(REPORT.back, corrupted=1))
        assert code(directory, simulator=back) is ErrorCode.TRACE_MISMATCH
        by_the_link = replace(REPORT, forward=replace(REPORT.forward, corrupted=1))
        assert code(directory, simulator=by_the_link) is ErrorCode.NONE
        (directory / trace).write_bytes(whole)


def test_copies_of_packets_are_those_that_the_link_reports(directory: Path) -> None:
    client, _, _ = transfer(lost=[1])
    of_server = max((packet for packet in client if packet.from_server), key=lambda packet: packet.time)
    (directory / CLIENT_TRACE).write_bytes(pcap([*client, of_server]))
    assert code(directory) is ErrorCode.TRACE_MISMATCH
    by_the_link = replace(REPORT, forward=replace(REPORT.forward, duplicated=1))
    assert code(directory, simulator=by_the_link) is ErrorCode.NONE


def test_two_handshakes(directory: Path) -> None:
    other = Connection(b"original2", b"client-2", b"server-2", b"R" * 32)
    more = [Packet(5.1, False, other.client_hello()), Packet(5.2, True, other.server_hello())]
    client, server, _ = transfer(lost=[1])
    write(directory, [*client, *more], [*server, *more])
    assert code(directory) is ErrorCode.HANDSHAKE_COUNT


def test_a_cut_trace_has_a_goodput_but_no_loss(directory: Path) -> None:
    write(directory, *transfer()[:2], snap_length=200)
    measurement = measured(directory)
    assert "goodput" in measurement.values
    assert "loss_forward" not in measurement.values
    assert any("are cut" in note for note in measurement.notes)


def test_a_response_at_one_moment_has_no_goodput(directory: Path) -> None:
    made = Connection()
    packets = [
        Packet(0, False, made.client_hello()),
        Packet(0.1, True, made.server_hello()),
        Packet(0.2, False, made.one_rtt(0, PING, from_server=False)),
        Packet(0.3, True, made.one_rtt(1, stream_frame(0, bytes(SIZE), fin=True), from_server=True)),
    ]
    write(directory, packets, packets)
    measurement = measured(directory)
    assert "goodput" not in measurement.values
    assert "no goodput" in measurement.notes[0]


def test_mutated_traces_end_in_a_verdict_and_never_in_a_wrong_number(directory: Path) -> None:
    chance = random.Random(7)
    whole = {trace: (directory / trace).read_bytes() for trace in (CLIENT_TRACE, SERVER_TRACE)}
    truth, outcomes = values(directory), set()
    for number in range(12):
        trace = (CLIENT_TRACE, SERVER_TRACE)[number % 2]
        (directory / trace).write_bytes(mutate(whole[trace], chance))
        verdict, measurement = judged(directory)
        (directory / trace).write_bytes(whole[trace])
        outcomes.add(verdict.outcome)
        assert verdict.code is not ErrorCode.UNREADABLE
        if measurement is not None and "goodput" in measurement.values:
            assert measurement.values["goodput"] == pytest.approx(truth["goodput"], rel=0.01)
    assert Outcome.ERROR in outcomes


def test_nothing_but_the_series_is_written(directory: Path) -> None:
    before = sorted(directory.rglob("*"))
    judged(directory)
    assert sorted(directory.rglob("*")) == sorted([*before, directory / FILE_NAME])
    shutil.rmtree(directory / "client")
    measured(directory)


# ---- functional tests -----------------------------------------------------------------------


def functional(directory: Path, check: Check, **changes: object) -> Verdict:
    run = replace(RUN, test_case=replace(CASE, check=check))
    verdict, measurement = analyse(run, replace(EVIDENCE, **changes), directory)  # type: ignore[arg-type]
    assert measurement is None
    return verdict


def test_the_rules_of_upstream_take_one_key_log_alone(directory: Path) -> None:
    """The first with SERVER_HANDSHAKE_TRAFFIC_SECRET, the client's before the server's."""
    strict = replace(RUN, test_case=replace(CASE, check=Check.MULTIPLEXING, rules=Rules.UPSTREAM))
    standard = replace(RUN, test_case=replace(CASE, check=Check.MULTIPLEXING))
    whole = (directory / "server/keys.log").read_text()
    part = "".join(line for line in whole.splitlines(keepends=True) if "SERVER_HANDSHAKE" not in line)
    (directory / "server/keys.log").write_text(part)
    verdict, _ = analyse(strict, EVIDENCE, directory)
    assert (verdict.code, verdict.reason[:27]) == (ErrorCode.KEY_LOG_MISSING, "No endpoint wrote a key log")
    (directory / "client/keys.log").write_text(whole)
    assert analyse(strict, EVIDENCE, directory)[0].code is not ErrorCode.KEY_LOG_MISSING
    (directory / "client/keys.log").write_text(part)
    (directory / "server/keys.log").write_text("\n".join(line for line in whole.splitlines() if "HANDSHAKE" in line))
    strict = replace(strict, test_case=replace(strict.test_case, check=Check.KEY_UPDATE))
    standard = replace(standard, test_case=replace(standard.test_case, check=Check.KEY_UPDATE))
    assert "No key shows the key phase" in analyse(strict, EVIDENCE, directory)[0].reason
    assert "none of them with updated keys" in analyse(standard, EVIDENCE, directory)[0].reason


def test_a_functional_test_is_passed_or_failed_without_numbers(directory: Path) -> None:
    assert functional(directory, Check.HANDSHAKE).outcome is Outcome.SUCCEEDED
    assert functional(directory, Check.RETRY).code is ErrorCode.RETRY_MISSING
    assert functional(directory, Check.HANDSHAKE, downloaded=()).code is ErrorCode.FILE_MISSING


# ---- TCP ------------------------------------------------------------------------------------


def test_a_run_over_tcp_has_the_same_numbers(directory: Path) -> None:
    client, server = tcp_traces.transfer()
    (directory / CLIENT_TRACE).write_bytes(tcp_traces.pcap(client))
    (directory / SERVER_TRACE).write_bytes(tcp_traces.pcap(server))
    files = (File("f", 5000, "x"),)
    evidence = replace(EVIDENCE, offered=files, downloaded=files)
    verdict, measurement = analyse(replace(RUN, protocol=Protocol.TCP), evidence, directory)
    assert verdict == Verdict(Outcome.SUCCEEDED)
    found = measurement.values
    assert found["goodput"] == pytest.approx(8 * 5000 / 0.25)
    assert found["handshake_time"] == pytest.approx(0.4)
    assert found["completion_time"] == pytest.approx(0.85)
    assert found["retransmitted"] == pytest.approx(1000 / 7500)
    assert found["loss_forward"] == 1 / 8
    assert measurement.notes == (module.TCP_STREAM,)
    short = replace(evidence, offered=(File("f", 50_000, "x"),), downloaded=(File("f", 50_000, "x"),))
    verdict, _ = analyse(replace(RUN, protocol=Protocol.TCP), short, directory)
    assert verdict.code is ErrorCode.TRACE_MISMATCH


def test_objects_over_http2_have_times_if_the_keys_are_known(directory: Path) -> None:
    files = File("f", 3000, "x"), File("g", 2000, "y")
    evidence = replace(EVIDENCE, offered=files, downloaded=files)
    case = replace(CASE, file_sizes=(3000, 2000), workload=Workload("", RequestOrder.CONCURRENT))
    run = replace(RUN, protocol=Protocol.TCP, test_case=case)
    write_run(directory, exchange(directory / "tls"), lose=True)
    _, measurement = analyse(run, evidence, directory)
    assert [each.size for each in measurement.objects] == [3000, 2000]
    assert measurement.values["completion_time"] == pytest.approx(max(each.finished for each in measurement.objects))
    assert measurement.values["head_of_line_blocking"] > 0.1
    assert measurement.notes == (module.HTTP2,)
    (directory / "client/keys.log").unlink()
    _, measurement = analyse(run, evidence, directory)
    assert (measurement.objects, measurement.notes) == ((), (module.TCP_STREAM, module.NO_STREAMS))


def test_a_run_over_tcp_that_failed_says_why(directory: Path) -> None:
    client, server = tcp_traces.transfer()
    reset = [tcp_traces.Tcp(0.7, True, 3000, flags=tcp_traces.RST)]
    (directory / CLIENT_TRACE).write_bytes(tcp_traces.pcap([*client[:8], *reset]))
    (directory / SERVER_TRACE).write_bytes(tcp_traces.pcap([*server[:8], *reset]))
    verdict, _ = analyse(replace(RUN, protocol=Protocol.TCP), replace(EVIDENCE, client=Exit(56)), directory)
    assert verdict.cause is Cause.CLOSED_BY_SERVER
    assert "The server reset the connection after 700.0 ms (segment 9 of the client's trace)." in verdict.reason


def test_a_transfer_that_stops_when_the_nat_rebinds(directory: Path) -> None:
    """The server sends again for long, to an address that leads nowhere."""
    client, server, key_log = transfer()
    made, lost = Connection(), stream_frame(0, bytes(250), 750, fin=True)
    kept = [packet for packet in client if packet.time < 4]
    gone = [Packet(4.5 + n, True, made.one_rtt(20 + n, lost, from_server=True)) for n in range(12)]
    write(directory, kept, [packet for packet in server if packet.time < 4] + gone)
    (directory / "server/keys.log").write_text(key_log)
    zero = EPOCH + client[0].time
    dropped = DirectionReport(16, 4, 0, 0, nat_drops=12)
    report = replace(REPORT, forward=dropped, rebinds=(Rebinding(zero + 3.9, ()),))
    late = replace(EVIDENCE, timed_out=Deadline.TRANSFER, client=KILLED, simulator=report, phases={"transfer": 60.0})
    verdict, _ = judged(directory, late)
    assert (verdict.outcome, verdict.cause) == (Outcome.TIMEOUT, Cause.NAT_REBINDING)
    assert "The NAT in front of the client changed its mappings after 3.9 s." in verdict.reason
    assert verdict.reason.endswith("in the whole run, it dropped 12 at the NAT.")
    still = replace(late, simulator=replace(report, rebinds=()))
    assert judged(directory, still)[0].cause is Cause.LINK_LOSS


def test_congestion_control_is_compared_with_what_the_link_offered(directory: Path) -> None:
    """A faded link: the goodput is far below its mean rate, but not below what it had during the run."""
    rate = 8 * SIZE / 3.2
    profile = Profile("fade.csv", 100.0, (0.0, 50.0), rates=(rate, 99 * rate))
    link = CASE.emulated.with_forward(rate=profile.mean(profile.rates), profile=profile)
    [first, *_], *_ = transfer(lost=[1])
    report = replace(REPORT, forward=replace(REPORT.forward, profile=ProfileReport(EPOCH + first.time, 0)))
    late = replace(
        EVIDENCE, timed_out=Deadline.TRANSFER, client=KILLED, simulator=report, offered=(File("f", 9 * SIZE, "x"),)
    )
    faded, _ = analyse(replace(RUN, test_case=replace(CASE, link=link)), late, directory)
    assert faded.cause is Cause.TOO_SLOW
    assert analyse(RUN, late, directory)[0].cause is Cause.CONGESTION_CONTROL


# ---- runs that last for a given time ---------------------------------------------------------


STOPPED = replace(EVIDENCE, downloaded=(), client=KILLED, timed_out=Deadline.TRANSFER)
FOR_5_S = replace(RUN, test_case=replace(CASE, workload=Workload("", RequestOrder.CONCURRENT, duration=5.0)))


def test_a_run_that_is_stopped_after_its_time_succeeds_with_what_has_arrived(directory: Path) -> None:
    """A packet that was lost has not been sent again when the client is stopped."""
    client, server, _ = transfer(lost=[1])
    write(directory, [packet for packet in client if packet.time < 4.85], server)
    verdict, measurement = analyse(FOR_5_S, STOPPED, directory)
    assert verdict.outcome is Outcome.SUCCEEDED, verdict.reason
    assert measurement.values["goodput"] == pytest.approx(8 * 750 / 3.0)
    assert judged(directory, STOPPED)[0].outcome is Outcome.TIMEOUT
    write(directory, [packet for packet in client if packet.time < 1.7], server)  # no data arrived
    verdict, measurement = analyse(FOR_5_S, STOPPED, directory)
    assert (verdict.outcome, measurement) == (Outcome.TIMEOUT, None)
