"""What an endpoint said last."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from quicsat.analysis.endpoint_log_tail import LONGEST, quote
from quicsat.model.emulated_link import Interval
from quicsat.model.evidence import Exit
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.run import OUTPUT
from tests.analysis.test_run_outcome import CASE, DONE

STAMP = "2026-11-21T17:13:32.056315986Z"


def said(directory: Path, code: ErrorCode, *lines: str, **ends: Exit) -> str:
    (directory / OUTPUT).write_text("".join(f"{line}\n" for line in lines))
    return quote(Verdict(Outcome.FAILED, code, ""), replace(DONE, **ends), CASE, directory)  # type: ignore[arg-type]


LINES = (
    f"client | {STAMP} Requesting",
    f"client | {STAMP} 0-RTT rejected",
    f"client | {STAMP}",
    f"server | {STAMP} | draining",
)


@pytest.mark.parametrize(
    ("code", "ends", "words"),
    [
        (ErrorCode.CLIENT_FAILED, {"client": Exit(1)}, 'The client\'s last line: "0-RTT rejected".'),
        (ErrorCode.SERVER_NOT_READY, {}, 'The server\'s last line: "| draining".'),
        (ErrorCode.CRASHED, {"client": Exit(139)}, "0-RTT rejected"),
        (ErrorCode.CRASHED, {"client": Exit(137, killed=True), "server": Exit(139)}, "draining"),
        (ErrorCode.OUT_OF_MEMORY, {"client": Exit(137, out_of_memory=True)}, "0-RTT rejected"),
        (ErrorCode.OUT_OF_MEMORY, {"server": Exit(137, out_of_memory=True)}, "draining"),
    ],
)
def test_the_endpoint_that_failed_is_quoted(tmp_path: Path, code: ErrorCode, ends: dict[str, Exit], words: str) -> None:
    assert words in said(tmp_path, code, *LINES, **ends)


THREAD = 'Exception in thread "main" java.util.concurrent.ExecutionException: STREAM_LIMIT_ERROR'


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([f"client | {STAMP} {THREAD}", f"client | {STAMP} \tat Interop.main(Interop.java:179)"], THREAD),
        ([f"client | {STAMP} Traceback (most recent call last):", f"client | {STAMP} OSError: gone"], "OSError: gone"),
        (LINES, ""),
        ([LINES[0], f"server | {STAMP} {THREAD}"], ""),
    ],
)
def test_of_a_client_that_still_ran_only_a_panic_is_quoted(tmp_path: Path, lines: list[str], words: str) -> None:
    found = said(tmp_path, ErrorCode.TIMEOUT, *lines, client=Exit(137, killed=True))
    assert found == (f' The client says: "{words}".' if words else "")


@pytest.mark.parametrize(
    ("code", "later", "quoted"),
    [
        (ErrorCode.CLIENT_FAILED, 2.0, True),
        (ErrorCode.TIMEOUT, 2.0, True),
        (ErrorCode.TIMEOUT, 0.1, False),  # perhaps because it was stopped
        (ErrorCode.FILE_MISSING, 2.0, False),
    ],
)
def test_a_panic_that_the_server_survived_is_quoted(
    tmp_path: Path, code: ErrorCode, later: float, quoted: bool
) -> None:
    panicked = datetime.fromisoformat(STAMP).timestamp()
    client = Exit(1, life=Interval(panicked - 5, panicked + later))
    lines = [f"server | {STAMP} Traceback (most recent call last):", f"server | {STAMP} RuntimeError: exhausted"]
    late = "server | 2026-11-21T17:13:42.056315986Z closed"
    found = said(tmp_path, code, *lines, late, client=client)
    assert found == (' The server says: "RuntimeError: exhausted".' if quoted else "")


def test_nothing_to_quote(tmp_path: Path) -> None:
    assert said(tmp_path, ErrorCode.FILE_SIZE, *LINES) == ""
    assert said(tmp_path, ErrorCode.CLIENT_FAILED, LINES[-1], client=Exit(1)) == ""
    (tmp_path / OUTPUT).unlink()
    assert quote(Verdict(Outcome.FAILED, ErrorCode.CLIENT_FAILED, ""), DONE, CASE, tmp_path) == ""


def test_a_hostile_line_is_cut_and_cannot_steer_a_terminal(tmp_path: Path) -> None:
    words = said(tmp_path, ErrorCode.SERVER_EXITED, f"server | {STAMP} \x1b[2J{'x' * 100_000}")
    assert "\x1b" not in words
    assert len(words) < LONGEST + 50
