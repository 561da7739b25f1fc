"""Ends of endpoints as the QUIC Interop Runner judges them, and as we do."""

from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.analysis.analyse import analyse
from quicsat.analysis.upstream_outcome import endpoints
from quicsat.model.evidence import Deadline, Evidence, Exit
from quicsat.model.outcomes import Check, ErrorCode, Outcome, Rules, Verdict
from quicsat.model.run import OUTPUT
from quicsat.traces.run_traces import KEY_LOGS
from tests.analysis.test_analyse import EVIDENCE, RUN
from tests.analysis.test_analyse import directory as directory
from tests.analysis.test_run_outcome import CASE, KILLED

CLIENT_KEYS, SERVER_KEYS = KEY_LOGS[:2]
PASSES: list[tuple[str, Evidence, bool]] = [
    ("both as they should be", EVIDENCE, True),
    ("the client says that it failed, the server ends well when it is stopped",
     replace(EVIDENCE, client=Exit(1), server=Exit(0, killed=True)), False),
    ("the server ends well before a client that has all files", replace(EVIDENCE, client=KILLED, server=Exit(0)), True),
    ("the server runs out of memory", replace(EVIDENCE, server=Exit(137, out_of_memory=True)), False),
    ("the server crashes when the client has all", replace(EVIDENCE, server=Exit(139)), False),
]  # fmt: skip


def judged(directory: Path, evidence: Evidence, rules: Rules, check: Check = Check.TRANSFER) -> Verdict:
    case = replace(CASE, check=check, rules=rules, repetitions=1)
    return analyse(replace(RUN, test_case=case), evidence, directory)[0]


@pytest.mark.parametrize(("evidence", "ours"), [each[1:] for each in PASSES], ids=[each[0] for each in PASSES])
def test_one_status_of_0_is_enough_for_upstream(evidence: Evidence, ours: bool, directory: Path) -> None:
    assert judged(directory, evidence, Rules.UPSTREAM).outcome is Outcome.SUCCEEDED
    assert (judged(directory, evidence, Rules.STANDARD).outcome is Outcome.SUCCEEDED) is ours
    missing = replace(evidence, downloaded=())
    assert judged(directory, missing, Rules.UPSTREAM).code is ErrorCode.FILE_MISSING


@pytest.mark.parametrize("rules", list(Rules))
def test_without_a_status_of_0_a_run_fails(rules: Rules, directory: Path) -> None:
    for evidence, code in (
        (replace(EVIDENCE, client=Exit(1)), ErrorCode.CLIENT_FAILED),
        (replace(EVIDENCE, client=Exit(139), server=Exit(143, killed=True)), ErrorCode.CRASHED),
        (replace(EVIDENCE, client=KILLED, server=Exit(3)), ErrorCode.SERVER_EXITED),
        (replace(EVIDENCE, client=KILLED, timed_out=Deadline.TRANSFER), ErrorCode.TIMEOUT),
        (replace(EVIDENCE, client=KILLED, server=Exit(0, killed=True), timed_out=Deadline.TRANSFER), ErrorCode.TIMEOUT),
    ):
        assert judged(directory, evidence, rules).code is code


@pytest.mark.parametrize(
    ("evidence", "output", "ours"),
    [
        (replace(EVIDENCE, client=Exit(127)), "", ErrorCode.UNSUPPORTED),
        (replace(EVIDENCE, server=Exit(127, killed=True)), "", ErrorCode.NONE),
        (replace(EVIDENCE, client=Exit(1)), "client | exit status 127\n", ErrorCode.CLIENT_FAILED),
        (EVIDENCE, "server | some child exited with code 127\n", ErrorCode.NONE),
    ],
    ids=["its own status", "after SIGTERM", "go run", "a child"],
)
def test_where_upstream_looks_for_127(evidence: Evidence, output: str, ours: ErrorCode, directory: Path) -> None:
    (directory / OUTPUT).write_text(output)
    assert judged(directory, evidence, Rules.UPSTREAM).code is ErrorCode.UNSUPPORTED
    assert judged(directory, evidence, Rules.STANDARD).code is ours
    late = replace(evidence, timed_out=Deadline.TRANSFER, client=KILLED)
    assert judged(directory, late, Rules.UPSTREAM).code is ErrorCode.TIMEOUT


def test_a_missing_key_log_comes_before_missing_files(directory: Path) -> None:
    (directory / SERVER_KEYS).unlink()
    missing = replace(EVIDENCE, downloaded=())
    assert judged(directory, missing, Rules.UPSTREAM, Check.MULTIPLEXING).code is ErrorCode.KEY_LOG_MISSING
    assert judged(directory, missing, Rules.UPSTREAM).code is ErrorCode.FILE_MISSING
    assert judged(directory, missing, Rules.STANDARD, Check.MULTIPLEXING).code is ErrorCode.FILE_MISSING


def test_a_key_log_of_the_client_hides_a_better_one_of_the_server(directory: Path) -> None:
    """It is accepted by upstream although it opens nothing, and then the server's stream limit cannot be seen."""
    (directory / CLIENT_KEYS).write_text(f"SERVER_HANDSHAKE_TRAFFIC_SECRET {'00' * 32} {'11' * 32}\n")
    strict = judged(directory, EVIDENCE, Rules.UPSTREAM, Check.KEY_UPDATE)
    assert (strict.outcome, strict.code) == (Outcome.FAILED, ErrorCode.KEY_UPDATE_MISSING)
    assert "No key shows the key phase" in strict.reason
    ours = judged(directory, EVIDENCE, Rules.STANDARD, Check.KEY_UPDATE)
    assert "none of them with updated keys" in ours.reason


def test_an_output_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    case = replace(CASE, check=Check.TRANSFER, rules=Rules.UPSTREAM)
    assert endpoints(EVIDENCE, case, tmp_path, keys=False) is None
