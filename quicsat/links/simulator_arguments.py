"""Arguments of the ns-3 program for an emulated link, and environment of the simulator's container."""

from collections.abc import Iterator, Mapping

from quicsat.links.addresses import SERVER, of_flow
from quicsat.model.emulated_link import (
    ClientSide,
    CorruptionMode,
    Direction,
    EmulatedLink,
    GilbertElliottLoss,
    Jitter,
    Loss,
    Profile,
    Queue,
    QueueUnit,
    TimersFrom,
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
UDP, TCP, BOTH = "udp", "tcp", "both"
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
    with the same seed; over both, packets of both; through a VPN, those of the tunnel, except at the client's side.
    """
    words = [link.scenario, *_geometry(link)]
    for towards, direction in (("client", link.forward), ("server", link.back)):
        words += _loss(direction.loss, towards, DROP_RATE_NAMES if link.scenario == DROP_RATE else LOSS_NAMES)
        words += _direction(direction, towards, seed)
    words += _of_both_directions(link)
    own = _packets(*(one is Protocol.TCP for one in protocols))
    outside = _packets(link.vpn.transport is VpnTransport.TCP) if link.vpn else own
    words += _options({"protocol": outside if outside != UDP else None})
    if link.client_side:
        words += _options({"client-side-protocol": own if own != outside else None})
    return " ".join([*words, f"--queue-mode={link.queue_mode}", f"--seed={seed}"])


def _packets(*tcp: bool) -> str:
    """What losses are about; ``tcp``: whether each flow is one over TCP."""
    return (BOTH if False in tcp else TCP) if True in tcp else UDP


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


Values = Mapping[str, str | float | None]


def _options(values: Values, end: str = "") -> Iterator[str]:
    """``--name=value`` for each value, ``--name`` if it is True, nothing if it is None or False; ``end``: of names."""
    for name, value in values.items():
        if value is True:
            yield f"--{name}{end}"
        elif value is not None and value is not False:
            yield f"--{name}{end}={value}"


def _direction(direction: Direction, towards: str, seed: int) -> Iterator[str]:
    """All but geometry and loss."""
    end = f"-to-{towards}"
    if isinstance(direction.queue, Queue):
        yield from _options(_queue(direction.queue), end)
    yield from _options(_jitter(direction.jitter), end)
    if reordering := direction.reordering:
        rate, delay = _percent(reordering.rate), _ms(reordering.delay)
        yield from _options({"reorder-rate": rate, "reorder-delay": delay, "reorder-gap": reordering.gap}, end)
    if direction.duplication:
        yield f"--duplicate-rate{end}={_percent(direction.duplication)}"
    if corruption := direction.corruption:
        names: Values = {"rate": _percent(corruption.rate), "burst": corruption.longest_burst}
        yield from _options(names, f"_to_{towards}")
        yield from _options({"mode": None if corruption.mode is CorruptionMode.BYTE else corruption.mode}, end)
    if direction.drops:
        yield f"--drops_to_{towards}={','.join(map(str, direction.drops))}"
    if profile := direction.profile:
        period, start = _ns(profile.length) if profile.loop else None, _ns(profile.begin(seed))
        place = f"/{PROFILES}/{towards}"
        yield from _options({"profile": place, "profile-period": period, "profile-start": start}, end)
    if traffic := direction.udp_cross_traffic:
        rate, later = f"{traffic.rate:.0f}bps", _ms(traffic.start) if traffic.start else None
        size = traffic.packet_size
        yield from _options({"udp-cross-rate": rate, "udp-cross-size": size, "udp-cross-start": later}, end)


def _queue(queue: Queue) -> Values:
    """A queue that is more than a number of packets."""
    return {
        "queue-discipline": queue.discipline,
        "queue-limit": f"{queue.limit}{'p' if queue.unit is QueueUnit.PACKETS else 'B'}",
        "queue-target": None if queue.target is None else _ms(queue.target),
        "queue-interval": None if queue.interval is None else _ms(queue.interval),
        "queue-mark-above": None if queue.mark_above is None else _ms(queue.mark_above),
        "red-minimum": queue.minimum,
        "red-maximum": queue.maximum,
        "red-probability": queue.probability,
        "red-weight": queue.weight,
        "queue-ecn": queue.ecn,
    }


def _jitter(jitter: Jitter | None) -> Values:
    if jitter is None:
        return {}
    return {"jitter": _ms(jitter.size), "jitter-shape": jitter.shape, "jitter-overtakes": jitter.overtake}


def _loss(loss: Loss | None, towards: str, names: tuple[str, str], prefix: str = "") -> Iterator[str]:
    """``names``: of the options of independent loss; ``prefix``: of all names."""
    match loss:
        case UniformLoss(rate, longest_burst):
            first, second = (f"{prefix}{name}{towards}" for name in names)
            yield from _options({first: _percent(rate), second: longest_burst})
        case GilbertElliottLoss():
            values: Values = {
                "good-bad-prob": f"{loss.good_to_bad:.9g}",
                "bad-good-prob": f"{loss.bad_to_good:.9g}",
                "loss-in-good": f"{loss.loss_in_good:.9g}" if loss.loss_in_good else None,
                "loss-in-bad": f"{loss.loss_in_bad:.9g}" if loss.loss_in_bad != 1 else None,
            }
            yield from _options({f"{prefix}{name}": value for name, value in values.items()}, f"-to-{towards}")


def _client_side(link: ClientSide) -> Iterator[str]:
    for towards, direction in (("client", link.forward), ("server", link.back)):
        own: dict[str, str | float | None] = {
            "delay": _ms(direction.delay),
            "data-rate": None if direction.rate is None else f"{direction.rate:.0f}bps",
            "queue": direction.queue if isinstance(direction.queue, int) else None,
        }
        own |= _queue(direction.queue) if isinstance(direction.queue, Queue) else {}
        own |= _jitter(direction.jitter)
        yield from _options({f"client-side-{name}": value for name, value in own.items()}, f"-to-{towards}")
        yield from _loss(direction.loss, towards, LOSS_NAMES, "client-side-")


def _of_both_directions(link: EmulatedLink) -> Iterator[str]:
    """What concerns the link as a whole."""
    if hole := link.blackhole:
        times: Values = {"on": _ms(hole.on), "off": _ms(hole.off), "repeat": hole.repeat}
        yield from _options({**times, "direction": hole.direction, "timers-from": TIMERS[hole.timers_from]})
    if rebind := link.rebind:
        period = None if rebind.period is None else _ms(rebind.period)
        moments: Values = {"first-rebind": _ms(rebind.first), "rebind-freq": period, "rebind-addr": rebind.address}
        yield from _options({**moments, "timers-from": TIMERS[rebind.timers_from]})
    if demand := link.demand:
        frames: Values = {"frame": _ns(demand.frame), "delay": _ns(demand.delay), "slot": demand.slot}
        constant = f"{demand.constant_rate:.0f}bps" if demand.constant_rate > 0 else None
        words: Values = {**frames, "constant-rate": constant}
        yield from _options({f"demand-{name}": value for name, value in words.items()})
    if link.client_side:
        yield from _client_side(link.client_side)
    if link.cross_traffic:
        yield f"--cross-port={CROSS_PORT}"


def _percent(share: float) -> str:
    return f"{share / PERCENT:.9g}"


def _ms(duration: float) -> str:
    return f"{duration / MS:.6g}ms"


def _ns(duration: float) -> str:
    return f"{round(duration / NANOSECOND)}ns"
