"""How the QUIC Interop Runner (commit 1d6f655) judges the ends of endpoints, before it looks at files and traces.

For functional tests with ``--strict-upstream``. Reads the output of a run.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from quicsat.analysis import run_outcome
from quicsat.analysis.functional_tests.rule import without_keys
from quicsat.model.endpoint_contract import UNSUPPORTED_STATUS
from quicsat.model.evidence import Evidence
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.run import OUTPUT
from quicsat.model.test_case import TestCase
from quicsat.results.compression import opened, stored

SIGNS_OF_127 = ("exited with code 127", "exit status 127")
"""What it looks for in the output of all containers, and in that of docker compose, which tells exit statuses."""
OUTPUT_LIMIT = 64 * 1024 * 1024
"""Bytes of the output that are read."""


def endpoints(evidence: Evidence, test_case: TestCase, directory: Path, keys: bool) -> Verdict | None:
    """What the ends of the endpoints decide; None if files and traces do. ``keys``: whether a key log is accepted.

    That both ended in time and one of them with status 0 is enough, even if the runner has ended it.
    """
    own = run_outcome.endpoint_ends(evidence, test_case) or run_outcome.transfer(evidence, test_case)
    if evidence.timed_out is not None:
        return own
    statuses = [end.status for end in (evidence.client, evidence.server) if end is not None]
    if UNSUPPORTED_STATUS in statuses or any(sign in _output(directory) for sign in SIGNS_OF_127):
        reason = "An endpoint ended with exit status 127, or the output says so: the test is not supported."
        return Verdict(Outcome.UNSUPPORTED, ErrorCode.UNSUPPORTED, reason)
    if 0 not in statuses:
        ended = " and ".join(map(str, statuses)) or "none"
        return own or run_outcome.failed(ErrorCode.CLIENT_FAILED, f"No endpoint ended with status 0 (but {ended}).")
    return without_keys(test_case.check) if test_case.check and not keys else None


def _output(directory: Path) -> str:
    with suppress(OSError), opened(stored(directory / OUTPUT)) as file:
        return file.read(OUTPUT_LIMIT).decode(errors="replace")
    return ""
