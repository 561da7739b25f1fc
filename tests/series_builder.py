"""Series of a transfer that never took place, exact to the microsecond: for tests of figures, pages and numbers."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from quicsat.model.arrays import Floats, Integers
from quicsat.model.implementation import Protocol
from quicsat.traces.clock_offset import ClockOffset
from quicsat.traces.series import Packets, Requests, Samples, Series, StreamData

HEAD = 40
"""Bytes of a datagram that are no stream data."""
SPIN_LATE = 0.001
"""Seconds that each period of the spin bit takes beyond the round trip."""


@dataclass(frozen=True)
class Transfer:
    """A file that a server sends at a steady pace over a link without a queue."""

    size: int = 100_000
    delay: float = 0.3
    """One way, seconds."""
    rate: float = 1e6
    """At which the server sends, bit/s of stream data."""
    piece: int = 1000
    """Bytes of stream data in a packet."""
    lost: Collection[int] = ()
    """Packet numbers from the server that are lost; each is sent again, a round trip after the last one was."""
    protocol: Protocol = Protocol.HQ


def series(transfer: Transfer | None = None) -> Series:
    """All its events.

    The client sends its first packet at 0, its request after one round trip, which the server answers at once. Each
    packet that arrives is acknowledged. Retransmissions are never lost. The file is stream 0.
    """
    made = transfer or Transfer()
    count, start = -(-made.size // made.piece), 3 * made.delay
    offset = np.arange(count) * made.piece
    sent = start + 8 * offset / made.rate
    lost = np.array(sorted(set(made.lost)), dtype=np.int64)
    again = sent[-1] + 2 * made.delay + np.arange(len(lost)) * 8 * made.piece / made.rate
    times, offsets = np.concatenate([sent, again]), np.concatenate([offset, offset[lost]])
    numbers = np.arange(len(times))
    gone = np.isin(numbers, lost)
    lengths = np.minimum(made.piece, made.size - offsets)
    came = np.where(gone, np.nan, times + made.delay)
    acknowledged = came[~gone]
    return Series(
        protocol=made.protocol,
        clock=ClockOffset(0.0, 0.0005),
        sent=StreamData(times, 0 * numbers, offsets, lengths, numbers, np.where(numbers < count, lengths, 0),
                        0 * numbers),
        arrived=StreamData(acknowledged, 0 * numbers[~gone], offsets[~gone], lengths[~gone], numbers[~gone],
                           lengths[~gone], 0 * numbers[~gone]),
        forward=Packets(times, came, gone, numbers, lengths + HEAD, 0 * numbers),
        back=_back(made, acknowledged),
        rtt=Samples(acknowledged + made.delay, np.full(len(acknowledged), 2 * made.delay)),
        in_flight=_in_flight(times, lengths + HEAD, 2 * made.delay),
        cwnd=Samples.of(time=times[:3], value=[12_000, 24_000, 48_000][: len(times[:3])]),
        requests=Requests.of(
            connection=[0], stream=[0], sent=[2 * made.delay], arrived=[start],
            first_byte=[float(acknowledged.min())], last_byte=[float(acknowledged.max())],
        ),
        spin=_spin(start, 2 * made.delay + SPIN_LATE),
    )  # fmt: skip


def _back(made: Transfer, acknowledged: Floats | Integers) -> Packets:
    """The client's first packet, its request, and acknowledgements."""
    times = np.concatenate([[0.0, 2 * made.delay], acknowledged])
    count = len(times)
    sizes = np.concatenate([[1200, 60], np.full(count - 2, HEAD)])
    return Packets(times, times + made.delay, np.zeros(count, dtype=np.bool_), np.arange(count), sizes, 0 * sizes)


def _spin(start: float, period: float) -> Samples:
    """Four periods of the spin bit."""
    return Samples.in_order([(start + period * number, period) for number in range(1, 5)])


def _in_flight(times: Floats | Integers, sizes: Floats | Integers, trip: float) -> Samples:
    """Bytes in flight; a lost packet counts until a round trip after it was sent, too."""
    moments = np.concatenate([times, times + trip])
    changes = np.concatenate([sizes, -sizes])
    order = np.argsort(moments, kind="stable")
    return Samples(moments[order], np.cumsum(changes[order]).astype(np.float64))
