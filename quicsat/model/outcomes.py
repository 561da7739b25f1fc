"""Outcomes of runs, error codes, names of the checks of functional tests, and verdicts."""

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

    meaning: str
    """Of codes of functional tests: the entry of docs/reference/outcomes.md."""

    def __new__(cls, value: str, meaning: str = "") -> ErrorCode:
        code = str.__new__(cls, value)
        code._value_, code.meaning = value, meaning
        return code

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
    KEY_LOG_MISSING = "key-log-missing", "no key log decrypts the packets that the rule examines"
    VERSION_NEGOTIATION = "version-negotiation", "the server did not respond with Version Negotiation"
    CONNECTION_IDS = "connection-ids", "the Version Negotiation packet has the wrong connection IDs"
    UNEXPECTED_RETRY = "unexpected-retry", "the server sent a Retry"
    HTTP3_MISSING = (
        "http3-missing",
        "the endpoints negotiated another protocol, or one side did not open a unidirectional stream",
    )
    HELLO_NOT_REPEATED = (
        "hello-not-repeated",
        "the client did not send a second ack-eliciting packet before the server's first packet arrived",
    )
    WRONG_CIPHER = "wrong-cipher", "a cipher suite other than ChaCha20 was offered or chosen"
    STREAM_LIMIT = "stream-limit", "the server initially allows more than 1000 streams"
    RETRY_MISSING = "retry-missing", "the server did not send a Retry"
    RETRY_TOKEN = "retry-token", "no Initial carries the token of the Retry, or the server did not answer it"
    RETRY_WITHOUT_TOKEN = "retry-without-token", "the Retry does not contain a token"
    RETRY_CONNECTION_ID = "retry-connection-id", "the Initial after the Retry has the wrong destination connection ID"
    PACKET_NUMBER_RESET = "packet-number-reset", "the client reset its packet number after the Retry"
    CERTIFICATE_MISSING = "certificate-missing", "the first handshake does not contain a certificate"
    CERTIFICATE_RESENT = "certificate-resent", "the second handshake contains a certificate"
    SESSION_NOT_RESUMED = (
        "session-not-resumed",
        "the server did not resume the earlier session, or no file arrived over the resumed connection",
    )
    EARLY_DATA_MISSING = "early-data-missing", "the client sent no 0-RTT packet"
    EARLY_DATA_LATE = "early-data-late", "too few requests were early, or the server did not accept them"
    KEY_UPDATE_MISSING = "key-update-missing", "one side did not send packets with updated keys"
    KEY_UPDATE_ORDER = "key-update-order", "keys were updated before the handshake was confirmed"
    ECN = "ecn", "ECN marks or counts are missing or wrong"
    CHAIN_TOO_SHORT = "chain-too-short", "the server's handshake is too small for the test"
    AMPLIFICATION = "amplification", "the server exceeded the anti-amplification limit"
    PATH_UNCHANGED = "path-unchanged", "the path did not change, or was only probed"
    PATH_CHALLENGE_MISSING = "path-challenge-missing", "the server did not send a PATH_CHALLENGE on a new path"
    PATH_RESPONSE_MISSING = "path-response-missing", "the client did not respond to any PATH_CHALLENGE"
    CONNECTION_ID_REUSED = "connection-id-reused", "a connection ID was used on two paths"
    IPV4_USED = "ipv4-used", "a packet used IPv4"
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


_CODES = [*ErrorCode]
OURS = frozenset(_CODES[_CODES.index(ErrorCode.TRACE_EMPTY) :])
"""Codes of harness errors; the outcome is ``error``."""
NOT_RUN = frozenset((ErrorCode.BREAKER, ErrorCode.BUDGET, ErrorCode.REQUIREMENT))
"""Codes of runs that did not take place; the outcome is ``skipped``."""


class Check(StrEnum):
    """What a functional test proves; ``quicsat.analysis.functional_tests`` has the rule to each name."""

    VERSION_NEGOTIATION = "version negotiation"
    HANDSHAKE = "handshake"
    TRANSFER = "transfer"
    LONG_RTT = "long rtt"
    CHACHA20 = "chacha20"
    MULTIPLEXING = "multiplexing"
    RETRY = "retry"
    RESUMPTION = "resumption"
    ZERO_RTT = "0-rtt"
    HTTP3 = "http3"
    KEY_UPDATE = "key update"
    ECN = "ecn"
    AMPLIFICATION_LIMIT = "amplification limit"
    MULTICONNECT = "multiconnect"
    IPV6 = "ipv6"
    VERSION_2 = "version 2"
    REBINDING = "rebinding"
    ADDRESS_REBINDING = "address rebinding"
    MIGRATION = "migration"
    WEBTRANSPORT = "webtransport"


class Rules(StrEnum):
    """Whose rules judge a functional test."""

    STANDARD = "standard"
    """What the RFCs ask for."""
    UPSTREAM = "upstream"
    """What the QUIC Interop Runner asks for, where that differs."""


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
    STREAM_RESET = "stream-reset"
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
