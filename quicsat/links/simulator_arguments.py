"""Arguments of the ns-3 program for an emulated link, and environment of the simulator's container."""

from __future__ import annotations

from collections.abc import Iterator

from quicsat.links.addresses import SERVER, of_flow
from quicsat.model.emulated_link import (
    Blackhole,
    ClientSide,
    Corruption,
    CorruptionMode,
    Demand,
    Direction,
    EmulatedLink,
    GilbertElliottLoss,
    Loss,
    Profile,
    Queue,
    QueueUnit,
    Rebind,
    TimersFrom,
    UdpCrossTraffic,
    UniformLoss,
)
from quicsat.model.gateways import VpnTransport
from quicsat.model.implementation import Protocol
from quicsat.model.run import Run
from quicsat.model.units import MS, PERCENT

CROSS_PORT = 5001
"""TCP port of cross traffic at the client, as in the QUIC Interop Runner."""
ASYMMETRIC = "asymmetric-p2p"
DROP_RATE = "drop-rate"
LOSS_NAMES, DROP_RATE_NAMES = ("drop-rate-to-", "drop-burst-to-"), ("rate_to_", "burst_to_")
"""Names of the options of independent loss, without the direction; those of the scenario drop-rate are upstream's."""
NANOSECOND = 1e-9
"""Seconds."""
SERVER_PATIENCE = 10
"""Seconds that the simulator waits for the server's first answer, as in the QUIC Interop Runner."""
SERVER_SILENT = 3
"""The simulator's exit status if the server never answered."""
STOPPED = 0
"""The simulator's exit status after SIGTERM: it never ends by itself with this status."""
TIMERS = {TimersFrom.FIRST_PACKET: "first-packet", TimersFrom.START: "start"}


PROFILES = "profiles"
"""Where the simulator's container has the profiles of its link."""


def simulator_files(link: EmulatedLink) -> dict[str, bytes]:
    """Files of the simulator's container by path from its root: the profiles, in the simulator's own format."""
    profiles = {"client": link.forward.profile, "server": link.back.profile}
    return {f"{PROFILES}/{towards}": _steps(profile) for towards, profile in profiles.items() if profile}


def _steps(profile: Profile) -> bytes:
    """A line for each step: nanoseconds, bit/s, nanoseconds and a share; ``-`` for what the link itself states."""
    nothing = ["-"] * len(profile.times)
    columns = (
        [f"{round(time / NANOSECOND)}" for time in profile.times],
        [f"{round(rate)}" for rate in profile.rates] or nothing,
        [f"{round(delay / NANOSECOND)}" for delay in profile.delays] or nothing,
        [f"{loss:.9g}" for loss in profile.losses] or nothing,
    )
    return "".join(f"{' '.join(step)}\n" for step in zip(*columns, strict=True)).encode()


def simulator_environment(run: Run, *, wait_for_server: bool = True) -> dict[str, str]:
    """Environment variables of the simulator's container for ``run``."""
    return {
        "SCENARIO": scenario(run.test_case.emulated, run.seed, *(flow.protocol for flow in (run, *run.others))),
        "WAITFORSERVER": " ".join(_servers(run)) if wait_for_server else "",
        "WAITTIMEOUT": str(SERVER_PATIENCE),
    }


def _servers(run: Run) -> Iterator[str]:
    yield "server:443"
    for flow, _ in enumerate(run.others, start=2):
        yield f"{of_flow(SERVER, flow)[0]}:443"


def scenario(link: EmulatedLink, seed: int, *protocols: Protocol) -> str:
    """Name and arguments of the ns-3 program, as the simulator's environment variable SCENARIO.

    ``protocols``: of all flows; QUIC if none is given. In a run over TCP, TCP packets are lost instead of UDP packets,
    with the same seed; over both, packets of both; through a VPN, those of the tunnel.
    """
    words = [link.scenario, *_geometry(link)]
    for towards, direction in (("client", link.forward), ("server", link.back)):
        words += _loss(direction.loss, towards, DROP_RATE_NAMES if link.scenario == DROP_RATE else LOSS_NAMES)
        words += _direction(direction, towards, seed)
    words += _timed(link.blackhole, link.rebind)
    words += _demand(link.demand)
    words += _client_side(link.client_side)
    if link.cross_traffic:
        words.append(f"--cross-port={CROSS_PORT}")
    tcp = {link.vpn.transport is VpnTransport.TCP} if link.vpn else {one is Protocol.TCP for one in protocols}
    if True in tcp:
        words.append("--protocol=both" if False in tcp else "--protocol=tcp")
    return " ".join([*words, f"--queue-mode={link.queue_mode}", f"--seed={seed}"])


def _geometry(link: EmulatedLink) -> Iterator[str]:
    forward, back = link.forward, link.back
    both = (forward.delay, forward.rate, forward.queue) == (back.delay, back.rate, back.queue)
    if link.scenario != ASYMMETRIC and both:
        yield f"--delay={_ms(forward.delay)}"
        yield f"--bandwidth={forward.rate:.0f}bps"
        if isinstance(forward.queue, int):
            yield f"--queue={forward.queue}"
        return
    for way, direction in (("forward", forward), ("return", back)):
        yield f"--{way}-delay={_ms(direction.delay)}"
        yield f"--{way}-data-rate={direction.rate:.0f}bps"
        if isinstance(direction.queue, int):
            yield f"--{way}-queue={direction.queue}"


def _direction(direction: Direction, towards: str, seed: int) -> Iterator[str]:
    """All but geometry and loss."""
    yield from _queue(direction.queue, towards)
    yield from _disturbance(direction, towards)
    yield from _corruption(direction.corruption, towards)
    if direction.drops:
        yield f"--drops_to_{towards}={','.join(map(str, direction.drops))}"
    yield from _profile(direction.profile, towards, seed)
    yield from _udp_cross_traffic(direction.udp_cross_traffic, towards)


def _queue(queue: int | Queue, towards: str) -> Iterator[str]:
    """A queue that is more than a number of packets."""
    if isinstance(queue, int):
        return
    values: dict[str, str | float | None] = {
        "queue-discipline": queue.discipline,
        "queue-limit": f"{queue.limit}{'p' if queue.unit is QueueUnit.PACKETS else 'B'}",
        "queue-target": None if queue.target is None else _ms(queue.target),
        "queue-interval": None if queue.interval is None else _ms(queue.interval),
        "queue-mark-above": None if queue.mark_above is None else _ms(queue.mark_above),
        "red-minimum": queue.minimum,
        "red-maximum": queue.maximum,
        "red-probability": queue.probability,
        "red-weight": queue.weight,
    }
    yield from (f"--{name}-to-{towards}={value}" for name, value in values.items() if value is not None)
    if queue.ecn:
        yield f"--queue-ecn-to-{towards}"


def _disturbance(direction: Direction, towards: str) -> Iterator[str]:
    if jitter := direction.jitter:
        yield f"--jitter-to-{towards}={_ms(jitter.size)}"
        yield f"--jitter-shape-to-{towards}={jitter.shape}"
        if jitter.overtake:
            yield f"--jitter-overtakes-to-{towards}"
    if reordering := direction.reordering:
        yield f"--reorder-rate-to-{towards}={reordering.rate / PERCENT:.9g}"
        yield f"--reorder-delay-to-{towards}={_ms(reordering.delay)}"
        if reordering.gap is not None:
            yield f"--reorder-gap-to-{towards}={reordering.gap}"
    if direction.duplication:
        yield f"--duplicate-rate-to-{towards}={direction.duplication / PERCENT:.9g}"


def _ms(duration: float) -> str:
    return f"{duration / MS:.6g}ms"


def _loss(loss: Loss | None, towards: str, names: tuple[str, str], prefix: str = "") -> Iterator[str]:
    """``names``: of the options of independent loss; ``prefix``: of all names."""
    match loss:
        case UniformLoss(rate, longest_burst):
            yield f"--{prefix}{names[0]}{towards}={rate / PERCENT:.9g}"
            if longest_burst is not None:
                yield f"--{prefix}{names[1]}{towards}={longest_burst}"
        case GilbertElliottLoss(good_to_bad, bad_to_good, loss_in_good, loss_in_bad):
            yield f"--{prefix}good-bad-prob-to-{towards}={good_to_bad:.9g}"
            yield f"--{prefix}bad-good-prob-to-{towards}={bad_to_good:.9g}"
            if loss_in_good:
                yield f"--{prefix}loss-in-good-to-{towards}={loss_in_good:.9g}"
            if loss_in_bad != 1:
                yield f"--{prefix}loss-in-bad-to-{towards}={loss_in_bad:.9g}"


def _client_side(link: ClientSide | None) -> Iterator[str]:
    if link is None:
        return
    for towards, direction in (("client", link.forward), ("server", link.back)):
        yield f"--client-side-delay-to-{towards}={_ms(direction.delay)}"
        yield from _loss(direction.loss, towards, LOSS_NAMES, "client-side-")


def _corruption(corruption: Corruption | None, towards: str) -> Iterator[str]:
    if corruption is None:
        return
    yield f"--rate_to_{towards}={corruption.rate / PERCENT:.9g}"
    if corruption.longest_burst is not None:
        yield f"--burst_to_{towards}={corruption.longest_burst}"
    if corruption.mode is not CorruptionMode.BYTE:
        yield f"--mode-to-{towards}={corruption.mode}"


def _profile(profile: Profile | None, towards: str, seed: int) -> Iterator[str]:
    if profile is None:
        return
    yield f"--profile-to-{towards}=/{PROFILES}/{towards}"
    if profile.loop:
        yield f"--profile-period-to-{towards}={_ns(profile.length)}"
    yield f"--profile-start-to-{towards}={_ns(profile.begin(seed))}"


def _demand(demand: Demand | None) -> Iterator[str]:
    if demand is None:
        return
    yield f"--demand-frame={_ns(demand.frame)}"
    yield f"--demand-delay={_ns(demand.delay)}"
    yield f"--demand-slot={demand.slot}"
    if demand.constant_rate > 0:
        yield f"--demand-constant-rate={demand.constant_rate:.0f}bps"


def _udp_cross_traffic(traffic: UdpCrossTraffic | None, towards: str) -> Iterator[str]:
    if traffic is None:
        return
    yield f"--udp-cross-rate-to-{towards}={traffic.rate:.0f}bps"
    yield f"--udp-cross-size-to-{towards}={traffic.packet_size}"
    if traffic.start:
        yield f"--udp-cross-start-to-{towards}={_ms(traffic.start)}"


def _ns(duration: float) -> str:
    return f"{round(duration / NANOSECOND)}ns"


def _timed(blackhole: Blackhole | None, rebind: Rebind | None) -> Iterator[str]:
    if blackhole:
        yield f"--on={_ms(blackhole.on)}"
        yield f"--off={_ms(blackhole.off)}"
        yield f"--repeat={blackhole.repeat}"
        yield f"--direction={blackhole.direction}"
        yield f"--timers-from={TIMERS[blackhole.timers_from]}"
    if rebind:
        yield f"--first-rebind={_ms(rebind.first)}"
        if rebind.period is not None:
            yield f"--rebind-freq={_ms(rebind.period)}"
        if rebind.address:
            yield "--rebind-addr"
        yield f"--timers-from={TIMERS[rebind.timers_from]}"
