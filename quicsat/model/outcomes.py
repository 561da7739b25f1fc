"""Outcomes of runs, error codes, and verdicts made of both."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of a run."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"
    ERROR = "error"
    """A harness error; it says nothing about the pair."""
    SKIPPED = "skipped"
    """Not run, to save time as configured; it says nothing about the pair."""


class ErrorCode(StrEnum):
    """Why a run did not succeed. Codes of QIR-SE are translated by ``quicsat.results.qir_export``."""

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
    ARTEFACT_LIMIT = "artefact-limit"
    UNREADABLE = "unreadable"
    HANDSHAKE_COUNT = "handshake-count"
    WRONG_VERSION = "wrong-version"
    SEVERAL_VERSIONS = "several-versions"
    # of the pair, in functional tests
    KEY_LOG_MISSING = "key-log-missing"
    VERSION_NEGOTIATION = "version-negotiation"
    CONNECTION_IDS = "connection-ids"
    UNEXPECTED_RETRY = "unexpected-retry"
    HTTP3_MISSING = "http3-missing"
    HELLO_NOT_REPEATED = "hello-not-repeated"
    WRONG_CIPHER = "wrong-cipher"
    STREAM_LIMIT = "stream-limit"
    RETRY_MISSING = "retry-missing"
    RETRY_TOKEN = "retry-token"
    RETRY_WITHOUT_TOKEN = "retry-without-token"
    RETRY_CONNECTION_ID = "retry-connection-id"
    PACKET_NUMBER_RESET = "packet-number-reset"
    CERTIFICATE_MISSING = "certificate-missing"
    CERTIFICATE_RESENT = "certificate-resent"
    SESSION_NOT_RESUMED = "session-not-resumed"
    EARLY_DATA_MISSING = "early-data-missing"
    EARLY_DATA_LATE = "early-data-late"
    KEY_UPDATE_MISSING = "key-update-missing"
    KEY_UPDATE_ORDER = "key-update-order"
    ECN = "ecn"
    CHAIN_TOO_SHORT = "chain-too-short"
    AMPLIFICATION = "amplification"
    PATH_UNCHANGED = "path-unchanged"
    PATH_CHALLENGE_MISSING = "path-challenge-missing"
    PATH_RESPONSE_MISSING = "path-response-missing"
    CONNECTION_ID_REUSED = "connection-id-reused"
    IPV4_USED = "ipv4-used"
    # not run
    BREAKER = "breaker"
    BUDGET = "budget"
    REQUIREMENT = "requirement"
    # ours
    TRACE_EMPTY = "trace-empty"
    TRACE_TRUNCATED = "trace-truncated"
    TRACE_CORRUPT = "trace-corrupt"
    TRACE_MISMATCH = "trace-mismatch"
    ANALYSIS_FAILED = "analysis-failed"
    CAPTURE_FAILED = "capture-failed"
    HOST_LOST = "host-lost"
    WORKER_LOST = "worker-lost"
    LINK_DOWN = "link-down"
    SIMULATOR_FAILED = "simulator-failed"
    SIMULATOR_LAG = "simulator-lag"
    VIRTUAL_MACHINE_FAILED = "virtual-machine-failed"
    HOST_STARVED = "host-starved"
    IMAGE_MISSING = "image-missing"
    TRACE_LIMIT = "trace-limit"
    DAEMON_FAULT = "daemon-fault"
    DISK_FULL = "disk-full"
    HARNESS_FAULT = "harness-fault"


OURS = frozenset(
    (
        ErrorCode.TRACE_EMPTY,
        ErrorCode.TRACE_TRUNCATED,
        ErrorCode.TRACE_CORRUPT,
        ErrorCode.TRACE_MISMATCH,
        ErrorCode.ANALYSIS_FAILED,
        ErrorCode.CAPTURE_FAILED,
        ErrorCode.HOST_LOST,
        ErrorCode.WORKER_LOST,
        ErrorCode.LINK_DOWN,
        ErrorCode.SIMULATOR_FAILED,
        ErrorCode.SIMULATOR_LAG,
        ErrorCode.VIRTUAL_MACHINE_FAILED,
        ErrorCode.HOST_STARVED,
        ErrorCode.IMAGE_MISSING,
        ErrorCode.TRACE_LIMIT,
        ErrorCode.DAEMON_FAULT,
        ErrorCode.DISK_FULL,
        ErrorCode.HARNESS_FAULT,
    )
)
"""Codes of harness errors; the outcome is ``error``."""
NOT_RUN = frozenset((ErrorCode.BREAKER, ErrorCode.BUDGET, ErrorCode.REQUIREMENT))
"""Codes of runs that did not take place; the outcome is ``skipped``."""


class Cause(StrEnum):
    """Why a run did not succeed, from its traces; finer than its code."""

    NONE = ""
    """The traces show no cause, or are not needed for it."""
    # what the link did
    NAT_REBINDING = "nat-rebinding"
    LINK_OUTAGE = "link-outage"
    LINK_CHANGE = "link-change"
    LINK_LOSS = "link-loss"
    # what the endpoints did
    NOTHING_SENT = "nothing-sent"
    SERVER_SILENT = "server-silent"
    HANDSHAKE_INCOMPLETE = "handshake-incomplete"
    CLOSED_BY_CLIENT = "closed-by-client"
    CLOSED_BY_SERVER = "closed-by-server"
    NO_REQUEST = "no-request"
    NO_RESPONSE = "no-response"
    IDLE_TIMEOUT = "idle-timeout"
    FLOW_CONTROL = "flow-control"
    CONGESTION_CONTROL = "congestion-control"
    SLOW_RECEIVER = "slow-receiver"
    SERVER_STOPPED = "server-stopped"
    TOO_SLOW = "too-slow"
    ALL_ARRIVED = "all-arrived"
    """The response is complete in the traces, so the failure came after it."""


@dataclass(frozen=True)
class Verdict:
    """Outcome of a run with its reason."""

    outcome: Outcome
    code: ErrorCode = ErrorCode.NONE
    reason: str = ""
    """One sentence; a second one states the cause, if there is one."""
    cause: Cause = Cause.NONE
    received: int | None = None
    """Bytes of the response that had arrived at the client, of a run that did not succeed; None if the traces do not
    show it, and in results of versions that did not record it."""
    if_valid: Verdict | None = None
    """Of an excluded attempt, the verdict that it would have if it were valid; None if the attempt is valid, or if its
    evidence does not decide it."""

    @property
    def summary(self) -> str:
        """``failed (crashed, link-loss)``: outcome, code and cause; a code with the name of the outcome goes."""
        kind = ", ".join(part for part in (self.code, self.cause) if part and part.value != self.outcome.value)
        return f"{self.outcome} ({kind})" if kind else str(self.outcome)

    @property
    def excluded(self) -> bool:
        """Whether the attempt is invalid, so that it says nothing about the pair."""
        return self.outcome is Outcome.ERROR
