"""What became of a run and why: outcomes, error codes, and a verdict made of both."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What became of a run."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"
    ERROR = "error"
    """Our fault; it says nothing about the pair."""


class ErrorCode(StrEnum):
    """Why a run did not succeed. Those that QIR-SE knows too are translated by ``interop.export``."""

    NONE = ""
    # of the pair
    UNSUPPORTED = "unsupported"
    NOT_COMPLIANT = "not-compliant"
    TIMEOUT = "timeout"
    SERVER_NOT_READY = "server-not-ready"
    SERVER_EXITED = "server-exited"
    CLIENT_FAILED = "client-failed"
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out-of-memory"
    FILE_MISSING = "file-missing"
    FILE_EXTRA = "file-extra"
    FILE_SIZE = "file-size"
    FILE_CONTENT = "file-content"
    HANDSHAKE_COUNT = "handshake-count"
    WRONG_VERSION = "wrong-version"
    # of the pair, in functional tests
    KEY_LOG_MISSING = "key-log-missing"
    VERSION_NEGOTIATION = "version-negotiation"
    UNEXPECTED_RETRY = "unexpected-retry"
    HTTP3_MISSING = "http3-missing"
    IPV4_USED = "ipv4-used"
    # ours
    TRACE_EMPTY = "trace-empty"
    TRACE_TRUNCATED = "trace-truncated"
    TRACE_CORRUPT = "trace-corrupt"
    TRACE_MISMATCH = "trace-mismatch"
    ANALYSIS_FAILED = "analysis-failed"
    SIMULATOR_FAILED = "simulator-failed"
    SIMULATOR_LAG = "simulator-lag"
    HOST_STARVED = "host-starved"
    IMAGE_MISSING = "image-missing"
    ARTEFACT_LIMIT = "artefact-limit"
    DAEMON_FAULT = "daemon-fault"
    DISK_FULL = "disk-full"
    INTERRUPTED = "interrupted"
    HARNESS_FAULT = "harness-fault"


@dataclass(frozen=True)
class Verdict:
    """Outcome of a run with its reason."""

    outcome: Outcome
    code: ErrorCode = ErrorCode.NONE
    reason: str = ""
    """One sentence."""
