"""Turns traces into numbers, and says of each number what it is called, its unit and which way is better; pure.

The client-side trace is taken at the client's end of the link, the server-side trace at the server's: forward packets
are seen after queue and loss in the former and before them in the latter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from interop.columns import Datagrams, Floats, Form, Trace
from interop.model import SimulatorReport
from interop.streams import new_bytes, response_frames


@dataclass(frozen=True)
class Metric:
    """A number that a run can have."""

    name: str
    """Key in ``Measurement.values``."""
    unit: str
    """SI unit; ``1`` for shares and ratios."""
    label: str
    better: Literal["higher", "lower"]


METRICS: tuple[Metric, ...] = (
    Metric("goodput", "bit/s", "Goodput", "higher"),
    Metric("efficiency", "1", "Efficiency", "higher"),
    Metric("stream_goodput", "bit/s", "Goodput from first to last new stream byte", "higher"),
    Metric("handshake_time", "s", "Handshake time", "lower"),
    Metric("time_to_first_byte", "s", "Time to first byte", "lower"),
    Metric("completion_time", "s", "Completion time", "lower"),
    Metric("sent_per_useful_byte", "1", "UDP payload sent per byte of the files", "lower"),
    Metric("loss_forward", "1", "Share of packets lost, forward (queue and link)", "lower"),
    Metric("loss_return", "1", "Share of packets lost, return (queue and link)", "lower"),
    Metric("queue_loss", "1", "Share of packets dropped by the queue, forward", "lower"),
)

UNSEEN_WINDOW = 5.0
"""Seconds before the end of a trace in which a packet may still be in flight if none ever arrived."""


def goodput(client: Trace, size: int) -> float | None:
    """Size of the files over the time from the first to the last 1-RTT packet from the server, at the client; bit/s.

    The definition of the QUIC Interop Runner and of the QIR-SE paper. ``size`` in bytes. None if no time passed.
    """
    times = client.time[client.from_server & (client.form == Form.ONE_RTT)]
    return _rate(size, float(times.max() - times.min())) if len(times) else None


def efficiency(rate: float, forward_rate: float) -> float:
    """Goodput over the forward rate of the link, both in bit/s."""
    return rate / forward_rate


def stream_goodput(client: Trace, size: int) -> float | None:
    """Size of the files over the time from the first STREAM byte to the last new one from the server; bit/s.

    Unlike ``goodput`` it holds neither idle time before the response nor a late CONNECTION_CLOSE. None if nothing
    could be decrypted.
    """
    times = _response_times(client)
    return _rate(size, times[1] - times[0]) if times else None


def handshake_time(client: Trace) -> float | None:
    """Seconds from the client's first Initial to its first 1-RTT packet, at the client's end of the link.

    The client has the keys for it when its handshake is complete (RFC 9001, section 4.1.1). No key log is needed.
    """
    initials = client.time[~client.from_server & (client.form == Form.INITIAL)]
    protected = client.time[~client.from_server & (client.form == Form.ONE_RTT)]
    return float(protected.min() - initials.min()) if len(initials) and len(protected) else None


def time_to_first_byte(client: Trace) -> float | None:
    """Seconds from the client's first packet to the first STREAM data from the server, at the client."""
    times = _response_times(client)
    start = _start(client)
    return times[0] - start if times and start is not None else None


def completion_time(client: Trace) -> float | None:
    """Seconds from the client's first packet to the last new byte of the files, as the user sees it."""
    times = _response_times(client)
    start = _start(client)
    return times[1] - start if times and start is not None else None


def sent_per_useful_byte(server: Datagrams, size: int) -> float | None:
    """UDP payload that the server sent (``server``: its side of the link) per byte of the files."""
    return int(server.size[server.from_server].sum()) / size if size else None


def queue_loss(report: SimulatorReport) -> float | None:
    """Share of the server's packets that did not fit into the forward queue, by the simulator's count."""
    return report.forward.queue_drops / report.forward.received if report.forward.received else None


def _rate(size: int, duration: float) -> float | None:
    return 8 * size / duration if duration > 0 and size else None


def _start(client: Trace) -> float | None:
    times = client.time[~client.from_server]
    return float(times.min()) if len(times) else None


# ---- times of the response -------------------------------------------------------------------


def _response_times(client: Trace) -> tuple[float, float] | None:
    """When the first and the last new byte from the server arrived."""
    rows = response_frames(client) & (new_bytes(client) > 0)
    times = client.time[client.frames.packet[rows]]
    return (float(times.min()), float(times.max())) if len(times) else None


# ---- loss -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Passage:
    """What became of the UDP packets of one direction between the two traces of a run."""

    sent: int
    """Packets whose fate is known."""
    lost: int
    strangers: int
    """Packets that arrived although nobody sent them: one of the traces is damaged."""

    @property
    def loss(self) -> float | None:
        """Share of the packets that were lost; None if no fate is known."""
        return self.lost / self.sent if self.sent else None


def passage(sender: Datagrams, receiver: Datagrams, *, forward: bool) -> Passage:
    """Follow the packets of one direction by the fingerprint of their UDP payload.

    A packet that did not arrive counts as lost only if even with the longest delay of the others (or with 5 s, if none
    arrived) it would have arrived before the last packet of the receiver's trace, of whatever direction. Packets sent
    later may have been in flight when the capture ended: they count neither as sent nor as lost. The clocks of the
    two traces need not agree.
    """
    sent, digests = _one_way(sender, forward=forward)
    arrived, marks = _one_way(receiver, forward=forward)
    came = np.isin(digests, marks)
    strangers = int((~np.isin(marks, digests)).sum())
    if not len(receiver):
        return Passage(0, 0, strangers)
    shift = receiver.epoch - sender.epoch
    _, in_sent, in_arrived = np.intersect1d(digests, marks, return_indices=True)
    delays = arrived[in_arrived] + shift - sent[in_sent]
    longest = float(delays.max()) if len(delays) else UNSEEN_WINDOW
    known = came | (sent + longest <= float(receiver.time.max()) + shift)
    return Passage(int(known.sum()), int((known & ~came).sum()), strangers)


def _one_way(datagrams: Datagrams, *, forward: bool) -> tuple[Floats, NDArray[np.uint64]]:
    """Times and fingerprints of one direction."""
    rows = datagrams.from_server == forward
    return datagrams.time[rows], datagrams.digest[rows]
