"""Names of what a sender's time went into; every moment of a transfer belongs to exactly one of them."""

from enum import StrEnum


class TimeShare(StrEnum):
    """What a transfer waited for at a moment, in the order in which figures and tables show it."""

    HANDSHAKE = "handshake"
    REQUEST = "request"
    FULL_RATE = "full_rate"
    SLOW_START = "slow_start"
    CONGESTION_WINDOW = "congestion_window"
    PACING = "pacing"
    CONNECTION_FLOW_CONTROL = "connection_flow_control"
    STREAM_FLOW_CONTROL = "stream_flow_control"
    APPLICATION = "application"
    RECOVERY = "recovery"
    PTO = "pto"
    OUTAGE = "outage"
    TAIL = "tail"
    UNKNOWN = "unknown"

    @property
    def metric(self) -> str:
        """Name of the metric with its seconds."""
        return f"time_in_{self}"

    @property
    def label(self) -> str:
        """In words, for figures and tables."""
        return LABELS[self]


LABELS = {
    TimeShare.HANDSHAKE: "handshake",
    TimeShare.REQUEST: "waiting for a request",
    TimeShare.FULL_RATE: "link at its full rate",
    TimeShare.SLOW_START: "slow start",
    TimeShare.CONGESTION_WINDOW: "congestion window",
    TimeShare.PACING: "pacing",
    TimeShare.CONNECTION_FLOW_CONTROL: "connection flow control",
    TimeShare.STREAM_FLOW_CONTROL: "stream flow control",
    TimeShare.APPLICATION: "application",
    TimeShare.RECOVERY: "recovery",
    TimeShare.PTO: "silence until a PTO",
    TimeShare.OUTAGE: "link outage",
    TimeShare.TAIL: "tail",
    TimeShare.UNKNOWN: "unknown",
}
AVOIDABLE = frozenset({
    TimeShare.SLOW_START, TimeShare.CONGESTION_WINDOW, TimeShare.PACING, TimeShare.CONNECTION_FLOW_CONTROL,
    TimeShare.STREAM_FLOW_CONTROL, TimeShare.APPLICATION, TimeShare.RECOVERY, TimeShare.PTO,
})  # fmt: skip
"""What the endpoints decide: without it, a transfer would take that much less time at most."""
FLOW_CONTROL = (TimeShare.CONNECTION_FLOW_CONTROL, TimeShare.STREAM_FLOW_CONTROL)
