"""Follows packets from one end of the link to the other, and brings the clocks of both ends together; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from quicsat.model.arrays import Digests, Flags, Floats, Integers
from quicsat.traces.clock_offset import ClockOffset, clock_offset
from quicsat.traces.columns import Datagrams

UNSEEN_WINDOW = 5.0
"""Seconds before the end of a trace in which a packet may still be in flight if none ever arrived."""

AnyTrace = TypeVar("AnyTrace")


@dataclass(frozen=True, eq=False)
class PacketMatches:
    """What became of the packets of one direction; rows are those of the two ``Datagrams``."""

    sent: Integers
    """Row of each packet in the sender's trace, in the order of sending."""
    arrived: Integers
    """Its row in the receiver's trace, -1 if it is not there."""
    lost: Flags
    """It did not arrive, although it would have had the time."""
    unsent: Integers
    """Rows of the receiver's trace that the other side never sent: a damaged trace, or the link corrupts or copies."""
    delay: Floats
    """Seconds from the sender's to the receiver's trace, each by its own clock; NaN if it did not arrive."""

    @property
    def unmatched(self) -> int:
        """How many packets arrived that the other side never sent."""
        return len(self.unsent)

    @property
    def judged(self) -> int:
        """Packets whose fate is known."""
        return int((self.lost | (self.arrived >= 0)).sum())

    @property
    def loss(self) -> float | None:
        """Share of the packets that were lost; None if no fate is known."""
        return int(self.lost.sum()) / self.judged if self.judged else None


def match_packets(sender: Datagrams, receiver: Datagrams, *, forward: bool) -> PacketMatches:
    """Follow the packets of one direction by the fingerprint of what no link changes, address translation neither.

    Equal packets are matched in the order of sending. A packet that did not arrive counts as lost only if even with
    the longest delay of the others (or with 5 s, if none arrived) it would have arrived before the last packet of the
    receiver's trace, of whatever direction: what was sent later may have been in flight when the capture ended. The
    clocks of the two traces need not agree.
    """
    sent = np.flatnonzero(sender.from_server == forward)
    came = np.flatnonzero(receiver.from_server == forward)
    pairs = _pairs(sender.digest[sent], receiver.digest[came])
    arrived = np.append(came, -1)[pairs]
    return _fates(sender, receiver, sent, arrived, np.setdiff1d(came, arrived))


@dataclass(frozen=True, eq=False)
class DatagramContents:
    """Datagrams that an endpoint logged, and the packets in them."""

    datagrams: Datagrams
    row: Integers
    """Row in ``datagrams`` of each packet."""
    digest: Digests
    """Fingerprint of each packet."""


def match_contents(sender: DatagramContents, receiver: DatagramContents, *, forward: bool) -> PacketMatches:
    """As :func:`match_packets`, of datagrams that arrived if one of their packets did.

    Endpoints do not log packets that they cannot decrypt, and may log coalesced packets apart.
    """
    ends = sender, receiver
    sent, came = (np.flatnonzero(each.datagrams.from_server[each.row] == forward) for each in ends)
    pairs = _pairs(sender.digest[sent], receiver.digest[came])
    there, nowhere = pairs >= 0, len(receiver.datagrams)
    seen = receiver.row[came[pairs[there]]]
    firsts = np.full(len(sender.datagrams), nowhere, dtype=np.int64)
    np.minimum.at(firsts, sender.row[sent[there]], seen)
    sent, came = (np.flatnonzero(each.datagrams.from_server == forward) for each in ends)
    arrived = np.where(firsts < nowhere, firsts, -1)[sent]
    return _fates(sender.datagrams, receiver.datagrams, sent, arrived, np.setdiff1d(came, seen))


def _pairs(wanted: Digests, digests: Digests) -> Integers:
    """Place of each fingerprint among ``digests``, -1 if it is not there; equal ones in their order."""
    order, marks = _distinct(digests)
    wanted_order, wanted = _distinct(wanted)
    _, in_wanted, in_marks = np.intersect1d(wanted, marks, return_indices=True)
    found = np.full(len(wanted), -1, dtype=np.int64)
    found[wanted_order[in_wanted]] = order[in_marks]
    return found


def _fates(
    sender: Datagrams, receiver: Datagrams, sent: Integers, arrived: Integers, unsent: Integers
) -> PacketMatches:
    shift = receiver.epoch - sender.epoch
    delay = np.full(len(sent), np.nan)
    there = arrived >= 0
    delay[there] = receiver.time[arrived[there]] + shift - sender.time[sent[there]]
    lost = np.zeros(len(sent), dtype=np.bool_)
    if len(receiver):
        longest = float(delay[there].max()) if there.any() else UNSEEN_WINDOW
        lost = ~there & (sender.time[sent] + longest <= float(receiver.time.max()) + shift)
    return PacketMatches(sent, arrived, lost, unsent, delay)


def _distinct(digests: Digests) -> tuple[Integers, Digests]:
    """Rows and fingerprints that distinguish the n-th of equal packets from the others; sorted."""
    order = np.argsort(digests, kind="stable")
    ordered = digests[order]
    rows = np.arange(len(ordered))
    begins = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)]
    place = rows - np.maximum.accumulate(np.where(begins, rows, 0))
    with np.errstate(over="ignore"):
        return order, ordered + place.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class TracePair(Generic[AnyTrace]):
    """Both traces of a run, and what became of the packets between them."""

    client: AnyTrace
    server: AnyTrace
    at_client: Datagrams
    at_server: Datagrams
    forward: PacketMatches
    back: PacketMatches
    one_clock: bool = False
    """One process wrote both traces by one clock, as the simulator does; otherwise each host has its own."""

    @property
    def clock(self) -> ClockOffset:
        """How the two clocks were brought together: known if there is only one, otherwise estimated."""
        return ClockOffset(0.0, 0.0) if self.one_clock else clock_offset(self.forward.delay, self.back.delay)

    @property
    def zeros(self) -> tuple[float, float]:
        """When the client sent its first packet: in the times of ``at_client`` and of ``at_server``."""
        first = self.at_client.time[~self.at_client.from_server]
        return self._zeros(float(first.min()) if len(first) else 0.0)

    def _zeros(self, start: float) -> tuple[float, float]:
        return start, start + self.clock.offset + self.at_client.epoch - self.at_server.epoch
