"""What slow start allows, and what the formulas of Reno and CUBIC predict."""

import math

CUBIC_C, CUBIC_BETA = 0.4, 0.7
"""Constants of RFC 9438, sections 4.1 and 4.6."""
MTU, IP_AND_UDP, LINK_HEADER = 1500, 28, 2
"""Bytes: largest IP packet of a link, headers of IPv4 and UDP in it, and the PPP header that a link's rate counts."""
QUIC_OVERHEAD = 25
"""Bytes, about: short header, header of the STREAM frame and authentication tag of a packet."""
INITIAL_WINDOW = 10
"""Packets (RFC 9002, section 7.2)."""
PER_PACKET = MTU - IP_AND_UDP - QUIC_OVERHEAD
"""Bytes of the file in the largest packet."""
KEPT = {"quic-go": 0.7}
"""Share of its window that a server with Reno keeps after a loss, where it is not half: ``cubic_sender.go``."""
LEAST_WINDOW = {"nginx": 2 * 65527}
"""Bytes below which a window never falls, where they are more than a few packets: ``ngx_event_quic_ack.c``."""


def slow_start(size: int, rate: float, round_trip: float) -> float:
    """Goodput, bit/s, of a server that only slow start and the forward rate limit; ``size`` in bytes.

    The server begins with ``INITIAL_WINDOW`` packets, doubles this number in each round trip until it fills the link,
    and then sends at the link's rate; no packet is lost.
    """
    per_packet = 8 * (MTU + LINK_HEADER) / rate
    window, left, time = INITIAL_WINDOW, math.ceil(size / PER_PACKET), 0.0
    while window * per_packet < round_trip and window < left:
        left -= window
        time += round_trip
        window *= 2
    return 8 * size / (time + left * per_packet)


def reno(payload: float, round_trip: float, loss: float, kept: float = 0.5) -> float:
    """Bit/s of Reno (Mathis et al. 1997, every packet acknowledged); ``kept``: share of the window after a loss."""
    return 8 * payload / round_trip * math.sqrt((1 + kept) / (1 - kept) / 2 / loss)


def cubic(payload: float, round_trip: float, loss: float) -> float:
    """Bit/s of CUBIC (RFC 9438, equation 5), or of Reno if that is faster."""
    constant = math.pow(CUBIC_C * (3 + CUBIC_BETA) / 4 / (1 - CUBIC_BETA), 0.25)
    rate = 8 * payload / round_trip * constant * math.pow(round_trip / loss, 0.75)
    return max(rate, reno(payload, round_trip, loss))


def formula(server: str, control: str, payload: float, round_trip: float, loss: float) -> float:
    """Bit/s of a server with Reno or CUBIC in a steady state; ``payload``: bytes of UDP payload per packet."""
    if control == "CUBIC":
        rate = cubic(payload, round_trip, loss)
    else:
        rate = reno(payload, round_trip, loss, KEPT.get(server, 0.5))
    return max(rate, 8 * LEAST_WINDOW.get(server, 0) / round_trip)
