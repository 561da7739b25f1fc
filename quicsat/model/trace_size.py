"""How large the traces of a run may be: what its files need, and what its link can carry."""

from quicsat.model.bounds import LEAST_PACKETS
from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.test_case import TestCase
from quicsat.model.units import MIB

LEAST_TRACES = 2048 * MIB
"""Bytes of traces that every run may leave."""
AROUND = 60.0
"""Seconds for which the link carries packets before the transfer begins and after its deadline."""
OVERLOAD = 4
"""Multiple of the link's rate that a run may offer on average; includes record headers and small packets."""
REPEATED = 16
"""Multiple of the size of its files that a transfer may send, both directions together."""
BYTES_PER_PACKET = 4000
"""Bytes of a trace for which one packet is read: few runs come near ``OVERLOAD`` and ``REPEATED``."""


def trace_bytes(test_case: TestCase) -> int:
    """Of all traces of a run together: what its link can carry until its deadline, and what its files can need.

    A competing flow needs what the link can carry.
    """
    if test_case.own_limits.traces:
        return test_case.own_limits.traces
    link = test_case.link
    traces = _traces(test_case)
    size = test_case.flow_count * test_case.total_size
    rates = link.forward.highest_rate, link.back.highest_rate
    bits = sum(rates) * (test_case.timeout + AROUND)
    needed = traces * OVERLOAD * bits / 8
    if not (isinstance(link, EmulatedLink) and link.cross_traffic):
        needed = min(needed, traces * REPEATED * size)
    return max(LEAST_TRACES, round(needed))


def trace_packets(test_case: TestCase) -> int:
    """Packets that are read of each trace."""
    return max(LEAST_PACKETS, trace_bytes(test_case) // _traces(test_case) // BYTES_PER_PACKET)


def _traces(test_case: TestCase) -> int:
    """Two; with a VPN two more, of the packets outside the tunnel; with a link at the client's side one more."""
    link = test_case.link
    beside = isinstance(link, EmulatedLink) and link.client_side is not None
    return 2 + 2 * test_case.tunnelled + beside
