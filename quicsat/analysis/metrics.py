"""Metrics of a run: names, units, which direction is better, and how traces give them; pure.

The client-side trace is taken at the client's end of the link, the server-side trace at the server's: forward packets
are seen after queue and loss in the former and before them in the latter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from quicsat.model.arrays import Floats
from quicsat.model.emulated_link import EmulatedLink, Profile, SimulatorReport
from quicsat.model.evidence import ResourceUse
from quicsat.model.implementation import Role
from quicsat.model.test_case import Link, path_rate
from quicsat.model.time_shares import TimeShare
from quicsat.model.units import MIB
from quicsat.traces.columns import Datagrams, Form, Trace
from quicsat.traces.streams import new_bytes, response_frames


@dataclass(frozen=True)
class Metric:
    """A number that a run can have."""

    name: str
    """Key in ``Measurement.values``."""
    unit: str
    """SI unit, ``B`` or ``packets``; ``1`` for shares and ratios."""
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
    Metric("loss_forward", "1", "Share of lost packets, forward (queue and link)", "lower"),
    Metric("loss_return", "1", "Share of lost packets, return (queue and link)", "lower"),
    Metric("queue_loss", "1", "Share of packets dropped by the queue, forward", "lower"),
    Metric("tunnel_overhead", "B", "Bytes that a VPN adds per packet of the server", "lower"),
    Metric("cross_traffic_goodput", "bit/s", "Goodput of the TCP flow on the same link", "higher"),
    Metric("flow_share", "1", "Share of the first flow while all flows receive data", "higher"),
    Metric("jain_index", "1", "Jain's fairness index while all flows receive data", "higher"),
    Metric("competing_goodput", "bit/s", "Total goodput while all flows receive data", "higher"),
    Metric("competing_time", "s", "Time during which all flows receive data", "higher"),
    Metric("convergence_time", "s", "Time until all flows are within 10 % of the fair share", "lower"),
    Metric("retransmitted", "1", "Share of sent response bytes that had already been sent", "lower"),
    Metric("spurious", "1", "Share of received response bytes that had already arrived", "lower"),
    Metric("time_to_2_mb", "s", "Time to 2 MB", "lower"),
    Metric("time_to_10_mb", "s", "Time to 10 MB", "lower"),
    Metric("time_to_100_mb", "s", "Time to 100 MB", "lower"),
    Metric("steady_rate", "bit/s", "Steady rate: 90th percentile of the rate received in windows of 1 s", "higher"),
    Metric("rate_10", "bit/s", "10th percentile of the rate received in windows of 1 s", "higher"),
    Metric("rate_median", "bit/s", "Median rate received in windows of 1 s", "higher"),
    Metric(
        "startup_time",
        "s",
        "Start-up: time from the first byte until the mean rate stays above 80 % of the steady rate",
        "lower",
    ),
    Metric("rtt_min", "s", "Shortest round trip at the server", "lower"),
    Metric("rtt_median", "s", "Median round trip at the server", "lower"),
    Metric("rtt_95", "s", "95th percentile of the round trips at the server", "lower"),
    Metric("rtt_inflation", "1", "95th percentile of the round trips at the server, of the shortest one", "lower"),
    Metric("spin_rtt", "s", "Median round trip by the spin bit, observed at the server's end of the link", "lower"),
    Metric(
        "spin_rtt_error",
        "1",
        "Median difference between round trips by the spin bit and those of the path, of the latter",
        "lower",
    ),
    Metric("queueing_delay_median", "s", "Median queueing delay, forward", "lower"),
    Metric("queueing_delay_95", "s", "95th percentile of the queueing delay, forward", "lower"),
    Metric("reordered_forward", "1", "Share of reordered packets, forward", "lower"),
    Metric("reordered_return", "1", "Share of reordered packets, return", "lower"),
    Metric("initial_window", "B", "Response bytes sent in the first round trip", "higher"),
    Metric("in_flight_max", "B", "Most bytes in flight", "higher"),
    Metric(
        "longest_burst",
        "packets",
        "Most packets in one burst, which is sent faster than four times the link's rate",
        "lower",
    ),
    Metric("return_packets", "1", "Return packets per packet that arrived forward", "lower"),
    Metric("return_bytes", "1", "Return bytes (UDP payload) per new response byte that arrived", "lower"),
    Metric("gilbert_gg", "1", "Gilbert model of the forward loss: P(g|g)", "higher"),
    Metric("gilbert_bg", "1", "Gilbert model of the forward loss: P(b|g)", "lower"),
    Metric("gilbert_bb", "1", "Gilbert model of the forward loss: P(b|b)", "lower"),
    Metric("gilbert_gb", "1", "Gilbert model of the forward loss: P(g|b)", "higher"),
    Metric("gilbert_longest_burst", "packets", "Most consecutive lost packets, forward", "lower"),
    Metric("link_loss", "1", "Share of packets lost behind the queue, forward", "lower"),
    Metric("link_gilbert_gg", "1", "Gilbert model of the forward loss behind the queue: P(g|g)", "higher"),
    Metric("link_gilbert_bg", "1", "Gilbert model of the forward loss behind the queue: P(b|g)", "lower"),
    Metric("link_gilbert_bb", "1", "Gilbert model of the forward loss behind the queue: P(b|b)", "lower"),
    Metric("link_gilbert_gb", "1", "Gilbert model of the forward loss behind the queue: P(g|b)", "higher"),
    Metric("link_gilbert_longest_burst", "packets", "Most consecutive packets lost behind the queue, forward", "lower"),
    Metric("client_side_loss", "1", "Share of packets lost at the client's side, forward", "lower"),
    Metric("client_side_queue_loss", "1", "Share of packets dropped in the client's side's queue, forward", "lower"),
    Metric("object_time_median", "s", "Median time of an object, from its request to its last byte", "lower"),
    Metric("object_time_95", "s", "95th percentile of the times of objects", "lower"),
    Metric("response_time_median", "s", "Median time from a request to the first byte of its response", "lower"),
    Metric("response_time_95", "s", "95th percentile of the times from request to response", "lower"),
    Metric(
        "head_of_line_blocking",
        "s",
        "Time for which an object's received bytes waited for earlier bytes of its stream, over TCP of its connection",
        "lower",
    ),
    Metric(
        "head_of_line_blocking_one_stream",
        "s",
        "Head-of-line blocking if all objects shared one stream, in sending order",
        "lower",
    ),
    Metric("first_visit_first_byte", "s", "Time to the first byte of a first visit", "lower"),
    Metric("second_visit_first_byte", "s", "Time to the first byte of a visit that resumes the session", "lower"),
    Metric("first_visit_to_100_kb", "s", "Time to 100 kB of a first visit", "lower"),
    Metric("second_visit_to_100_kb", "s", "Time to 100 kB of a visit that resumes the session", "lower"),
    Metric("first_visit_to_1_mb", "s", "Time to 1 MB of a first visit", "lower"),
    Metric("second_visit_to_1_mb", "s", "Time to 1 MB of a visit that resumes the session", "lower"),
    Metric("upload_time", "s", "Time until the last byte of an upload arrived", "lower"),
    Metric("upload_goodput", "bit/s", "Goodput of an upload", "higher"),
    Metric("server_cpu_per_mib", "s", "CPU time of the server per MiB of the files", "lower"),
    Metric("client_cpu_per_mib", "s", "CPU time of the client per MiB of the files", "lower"),
    Metric("server_cpu_user", "s", "CPU time of the server in the program itself", "lower"),
    Metric("client_cpu_user", "s", "CPU time of the client in the program itself", "lower"),
    Metric("server_cpu_system", "s", "CPU time of the server in the kernel", "lower"),
    Metric("client_cpu_system", "s", "CPU time of the client in the kernel", "lower"),
    Metric("server_memory_peak", "B", "Peak memory use of the server", "lower"),
    Metric("client_memory_peak", "B", "Peak memory use of the client", "lower"),
    Metric("server_system_calls_per_mib", "calls", "System calls of the server per MiB of the files", "lower"),
    Metric("client_system_calls_per_mib", "calls", "System calls of the client per MiB of the files", "lower"),
    *(Metric(share.metric, "s", f"Time in: {share.label}", "lower") for share in TimeShare),
    Metric("clock_uncertainty", "s", "Uncertainty of the offset between the clocks of both ends", "lower"),
)


MOST_PAYLOAD = 1500 - 20 - 20
"""Bytes of payload in a TCP segment over IPv4 on the link at most (RFC 9293, section 3.7.1)."""


def goodput(client: Trace, size: int) -> float | None:
    """Size of the files over the time from the first to the last 1-RTT packet from the server, at the client; bit/s.

    The definition of the QUIC Interop Runner and of the QIR-SE paper. ``size`` in bytes. None if no time passed.
    """
    return rate_during(size, goodput_interval(client))


def goodput_interval(client: Trace) -> tuple[float, float] | None:
    """Times of the first and last 1-RTT packet from the server, in the client's trace; None if there is none."""
    return first_and_last(client.time[client.from_server & (client.form == Form.ONE_RTT)])


def efficiency(rate: float, capacity: float) -> float:
    """Goodput over the capacity that the link offered in the same time, both in bit/s."""
    return rate / capacity


def forward_capacity(
    link: Link, report: SimulatorReport | None, seed: int, during: tuple[float, float]
) -> float | None:
    """Mean rate that the path to the client offered to the packets that arrived between two times, bit/s.

    The rate of its slowest link, or that of its profile while these packets left. Losses do not change it. ``seed``: of
    the run; ``during``: seconds since 1970. None if the link offered nothing, or if it is unknown when its profile
    began.
    """
    if not isinstance(link, EmulatedLink) or link.forward.profile is None or not link.forward.profile.rates:
        return path_rate(link) or None
    profile = link.forward.profile
    began = report.forward.profile.began if report is not None and report.forward.profile is not None else None
    if began is None:
        return None
    since = began - profile.begin(seed)
    begin, end = (max(_left(profile, link, time - since), 0.0) for time in during)
    rates = tuple(map(link.on_path, profile.rates))
    return profile.mean_between(rates, begin, end) or None if end > begin else None


def _left(profile: Profile, link: EmulatedLink, arrived: float) -> float:
    """When a packet left the queue of the link that arrived at a time of its profile, seconds."""
    if not profile.delays:
        return arrived - link.forward.delay
    return arrived - profile.at(profile.delays, max(arrived - link.forward.delay, 0.0))


def stream_goodput(client: Trace, size: int) -> float | None:
    """Size of the files over the time from the first STREAM byte to the last new one from the server; bit/s.

    Unlike ``goodput`` it holds neither idle time before the response nor a late CONNECTION_CLOSE. None if nothing
    could be decrypted.
    """
    return rate_during(size, _response_times(client))


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


def cross_traffic_goodput(report: SimulatorReport) -> float | None:
    """What the receiver of a TCP flow on the same link acknowledged, over its time; bit/s.

    None without such a flow, and if more was acknowledged than delivered: older simulators also counted
    acknowledgements of the flow of the run before, whose sequence numbers are others.
    """
    flow = report.cross_traffic
    return flow.goodput if flow and flow.acknowledged <= flow.delivered * MOST_PAYLOAD else None


def endpoint_cost(use: Mapping[str, ResourceUse], size: int) -> dict[str, float | None]:
    """CPU time, memory and system calls of both endpoints of the first flow.

    ``use`` is by part; ``size``: bytes of the files.
    """
    values: dict[str, float | None] = {}
    for role in Role:
        if (own := use.get(role)) is not None:
            calls = own.system_calls
            values |= {
                f"{role}_cpu_per_mib": (own.cpu_user + own.cpu_system) / (size / MIB) if size else None,
                f"{role}_system_calls_per_mib": None if calls is None or not size else calls / (size / MIB),
                f"{role}_cpu_user": own.cpu_user,
                f"{role}_cpu_system": own.cpu_system,
                f"{role}_memory_peak": float(own.memory_peak),
            }
    return values


def rate_during(size: int, during: tuple[float, float] | None) -> float | None:
    """Bit/s of so many bytes between two times; None if no time passed."""
    return 8 * size / (during[1] - during[0]) if during and during[1] > during[0] and size else None


def first_and_last(times: Floats) -> tuple[float, float] | None:
    """The first and the last of some times; None if there are none."""
    return (float(times.min()), float(times.max())) if len(times) else None


def _start(client: Trace) -> float | None:
    times = client.time[~client.from_server]
    return float(times.min()) if len(times) else None


# ---- times of the response -------------------------------------------------------------------


def _response_times(client: Trace) -> tuple[float, float] | None:
    """When the first and the last new byte from the server arrived."""
    rows = response_frames(client) & (new_bytes(client) > 0)
    return first_and_last(client.time[client.frames.packet[rows]])


def upload_values(client: Trace, server: Trace, sizes: Iterable[int]) -> dict[str, float]:
    """Time from the client's first packet until the last new stream byte of the client arrived, and the goodput.

    The traces have one clock. ``sizes``: bytes of the files. Empty if the streams that could be decrypted do not have
    so many, as if the files came in datagrams.
    """
    size, packets, new = sum(sizes), server.frames.packet, new_bytes(server)
    rows = np.flatnonzero(~server.from_server[packets] & (new > 0))
    sent = np.flatnonzero(~client.from_server)
    if not len(sent) or not size or new[rows].sum() < size:
        return {}
    time = server.absolute(int(packets[rows[-1]])) - client.absolute(int(sent[0]))
    return {"upload_time": time, "upload_goodput": 8 * size / time}
