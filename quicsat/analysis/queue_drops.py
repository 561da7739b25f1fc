"""How many packets the queue dropped and how many the link lost behind it, and which ones; pure."""

from __future__ import annotations

import numpy as np

from quicsat.model.arrays import Flags, Floats, Integers
from quicsat.model.emulated_link import DirectionReport, EmulatedLink, Queue, QueueDiscipline, SimulatorReport
from quicsat.model.real_link import RealLink
from quicsat.traces.series import Packets

NEARLY_FULL = 0.8
"""Share of the longest wait from which a packet may have found the queue full: it holds packets of different sizes, and
losses behind it hide the last that it took."""
LARGEST_DIFFERENCE = 0.02
"""Between the drops that are found and the simulator's count, share of the latter; or ``FEW``."""
FEW = 2


def queue_loss(report: SimulatorReport) -> float | None:
    """Share of the server's packets that did not fit into the forward queue, by the simulator's count."""
    return report.forward.queue_drops / report.forward.received if report.forward.received else None


def link_loss(report: SimulatorReport) -> float | None:
    """Share of the server's packets that passed the forward queue and that the link then lost, by the same count."""
    passed = report.forward.received - report.forward.queue_drops
    return report.forward.own_drops / passed if passed else None


def client_side_loss(report: SimulatorReport) -> float | None:
    """Share of the packets to the client that the link at its side lost, by the simulator's count."""
    counters = report.client_side and report.client_side.forward
    return counters.loss_drops / counters.received if counters and counters.received else None


def client_side_queue_loss(report: SimulatorReport) -> float | None:
    """Share of the packets to the client that did not fit into the queue at its side, by the simulator's count."""
    counters = report.client_side and report.client_side.forward
    return counters.queue_drops / counters.received if counters and counters.received else None


def link_losses(packets: Packets, link: EmulatedLink | RealLink, counters: DirectionReport | None) -> Flags | None:
    """Of the packets that passed the queue, in the order of sending: whether the link lost them; None if unknown.

    ``packets`` are those of the only flow, ``counters`` the simulator's of their direction, forward. If both the queue
    and the link lost packets, they are told apart by the times at which a link with a constant rate and a drop-tail
    queue delivers: a packet that the link loses has taken its time on the link, one that the queue drops has not.
    """
    known = packets.lost | ~np.isnan(packets.arrived)
    lost = packets.lost[known]
    if counters is None or isinstance(link, RealLink):
        return None
    if counters.queue_drops == 0:
        return lost
    if counters.own_drops == 0:
        return lost[~lost]
    if not _is_regular(link) or lost.all():
        return None
    return _apart(packets.sent[known], packets.arrived[known], packets.size[known], link.forward.rate, counters)


def _is_regular(link: EmulatedLink) -> bool:
    """Whether the times of delivery follow from the rate and the queue alone."""
    queue = link.forward.queue
    others = (link.forward.profile, link.forward.jitter, link.forward.reordering, link.forward.duplication)
    behind = link.client_side.forward if link.client_side else None
    beside = (link.cross_traffic, link.forward.udp_cross_traffic, behind and (behind.rate or behind.jitter))
    drop_tail = not isinstance(queue, Queue) or queue.discipline is QueueDiscipline.DROP_TAIL
    return drop_tail and not any((*others, *beside))


def _apart(sent: Floats, arrived: Floats, size: Integers, rate: float, counters: DirectionReport) -> Flags | None:
    came = np.flatnonzero(~np.isnan(arrived))
    delay = arrived[came] - sent[came]
    shortest = float(delay.min())
    waited = delay - shortest
    on_link = 8 * (size + _header(arrived[came], size[came], waited, np.diff(came) == 1, rate)) / rate
    full = NEARLY_FULL * float(waited.max())
    fates: list[bool] = [True] * int(came[0])  # before the first one that came, the queue was empty
    for row, following, wait in zip(came[:-1], came[1:], waited[1:], strict=True):
        between = slice(row + 1, following)
        count = int(following - row - 1)
        dropped = int((arrived[row] - sent[between] - shortest >= full).sum()) if count else 0
        if dropped and wait > on_link[following]:  # the link was never idle: the rest of its time was for lost packets
            free = float(arrived[following] - arrived[row] - on_link[following])
            dropped = count - min(max(round(free / float(on_link[between].mean())), 0), count)
        fates += [False, *[True] * (count - dropped)]
    fates += [False, *[True] * (len(sent) - int(came[-1]) - 1)]
    difference = abs(len(sent) - len(fates) - counters.queue_drops)
    return np.array(fates) if difference <= max(FEW, LARGEST_DIFFERENCE * counters.queue_drops) else None


def _header(arrived: Floats, size: Integers, waited: Floats, adjacent: Flags, rate: float) -> float:
    """Bytes that each packet has on the link beside those in ``size``, from the gaps while the link was never idle."""
    gaps = np.diff(arrived) * rate / 8 - size[1:]
    busy = adjacent & (waited[1:] > 16 * float(size.max()) / rate)
    return float(np.median(gaps[busy])) if busy.any() else 0.0
