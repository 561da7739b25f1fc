"""What the simulator is told, as words of its command line, and what it reports, as values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from interop.model import (
    Blackhole,
    Corruption,
    CorruptionMode,
    CrossTrafficReport,
    DirectionLateness,
    EmulatedLink,
    GilbertElliottLoss,
    Interval,
    Lateness,
    LinkCounters,
    Loss,
    Mapping,
    Protocol,
    Rebind,
    Rebinding,
    SimulatorReport,
    TimersFrom,
    UniformLoss,
)
from interop.units import MS, PERCENT

CROSS_PORT = 5001
"""TCP port of cross traffic at the client, as in the QUIC Interop Runner."""
ASYMMETRIC = "asymmetric-p2p"
DROP_RATE = "drop-rate"
LARGEST = 1e18
"""Numbers of a report are smaller."""
TIMERS = {TimersFrom.FIRST_PACKET: "first-packet", TimersFrom.START: "start"}


# ---- the command line -----------------------------------------------------------------------


def scenario(link: EmulatedLink, seed: int, protocol: Protocol = Protocol.HQ) -> str:
    """Name and arguments of the ns-3 program, as the simulator's environment variable SCENARIO.

    A run over TCP loses its TCP packets where others lose UDP packets, by the same seed.
    """
    words = [link.scenario, *_geometry(link)]
    for towards, loss, corruption, drops in (
        ("client", link.forward_loss, link.forward_corruption, link.forward_drops),
        ("server", link.return_loss, link.return_corruption, link.return_drops),
    ):
        words += _loss(loss, towards, upstream=link.scenario == DROP_RATE)
        words += _corruption(corruption, towards)
        words += [f"--drops_to_{towards}={','.join(map(str, drops))}"] if drops else []
    words += _timed(link.blackhole, link.rebind)
    if link.cross_traffic:
        words.append(f"--cross-port={CROSS_PORT}")
    if protocol is Protocol.TCP:
        words.append("--protocol=tcp")
    return " ".join([*words, f"--queue-mode={link.queue_mode}", f"--seed={seed}"])


def _geometry(link: EmulatedLink) -> Iterator[str]:
    both = (link.forward_delay, link.forward_rate, link.forward_queue)
    if link.scenario != ASYMMETRIC and both == (link.return_delay, link.return_rate, link.return_queue):
        yield f"--delay={_ms(link.forward_delay)}"
        yield f"--bandwidth={link.forward_rate:.0f}bps"
        yield f"--queue={link.forward_queue}"
        return
    yield f"--forward-delay={_ms(link.forward_delay)}"
    yield f"--return-delay={_ms(link.return_delay)}"
    yield f"--forward-data-rate={link.forward_rate:.0f}bps"
    yield f"--return-data-rate={link.return_rate:.0f}bps"
    yield f"--forward-queue={link.forward_queue}"
    yield f"--return-queue={link.return_queue}"


def _ms(duration: float) -> str:
    return f"{duration / MS:.6g}ms"


def _loss(loss: Loss | None, towards: str, *, upstream: bool) -> Iterator[str]:
    match loss:
        case UniformLoss(rate, longest_burst):
            names = ("rate_to_", "burst_to_") if upstream else ("drop-rate-to-", "drop-burst-to-")
            yield f"--{names[0]}{towards}={rate / PERCENT:.9g}"
            if longest_burst is not None:
                yield f"--{names[1]}{towards}={longest_burst}"
        case GilbertElliottLoss(good_to_bad, bad_to_good):
            yield f"--good-bad-prob-to-{towards}={good_to_bad:.9g}"
            yield f"--bad-good-prob-to-{towards}={bad_to_good:.9g}"


def _corruption(corruption: Corruption | None, towards: str) -> Iterator[str]:
    if corruption is None:
        return
    yield f"--rate_to_{towards}={corruption.rate / PERCENT:.9g}"
    if corruption.longest_burst is not None:
        yield f"--burst_to_{towards}={corruption.longest_burst}"
    if corruption.mode is not CorruptionMode.BYTE:
        yield f"--mode-to-{towards}={corruption.mode}"


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


# ---- the report -----------------------------------------------------------------------------


class Stall(NamedTuple):
    """A time during which late frames waited to be sent: from when the first was due until the last was sent."""

    begin: float
    end: float
    """Seconds since 1970."""
    forward: float
    back: float
    """Late frames of each direction."""
    maximum: float
    """Largest lateness, seconds."""


def read_report(document: dict[str, Any], client: Interval | None = None) -> SimulatorReport:
    """The simulator's link.json as a value; raises KeyError, TypeError or ValueError if something is missing or wrong.

    ``client``: the client's life, to which lateness is restricted; None for the whole run of the simulator.
    """
    cross, lateness = document["cross_traffic"], document.get("lateness")
    started = _number(document["started"])
    return SimulatorReport(
        started=started,
        realtime_priority=bool(document["realtime_priority"]),
        lag_mean=_number(document["lag"]["mean"]),
        lag_max=_number(document["lag"]["max"]),
        receive_overflows=_count(document["receive_overflows"]),
        forward=_counters(document["forward"]),
        back=_counters(document["return"]),
        blackholes=tuple(Interval(_number(begin), _number(end)) for begin, end in document["blackholes"]),
        rebinds=tuple(_rebinding(rebind) for rebind in document["rebinds"]),
        cross_traffic=None if cross is None else _cross_traffic(cross),
        lateness=None if lateness is None else _lateness(lateness, started, client, _number(document["stopped"])),
    )


def _lateness(document: dict[str, Any], started: float, client: Interval | None, stopped: float) -> Lateness:
    """``document`` restricted to the client's life; ``started``, ``stopped``: of the simulator, seconds since 1970."""
    life = client or Interval(started, stopped)
    stalls = [Stall(*map(_number, stall)) for stall in document["stalls"]]
    touched = [overlap for stall in stalls if (overlap := min(stall.end, life.end) - max(stall.begin, life.begin)) > 0]
    begun = [stall for stall in stalls if life.begin <= stall.begin <= life.end]
    interval = _number(document["interval"])
    if interval <= 0:
        raise ValueError(f"an interval of {interval:g} s")
    rows = slice(max(0, int((life.begin - started) / interval)), max(0, int((life.end - started) / interval) + 1))
    return Lateness(
        bound=_number(document["bound"]),
        life=life.end - life.begin,
        stalled=sum(touched),
        stalls=len(touched),
        longest_stall=max(touched, default=0.0),
        forward=_direction_lateness(document["forward"], rows, int(sum(stall.forward for stall in begun))),
        back=_direction_lateness(document["return"], rows, int(sum(stall.back for stall in begun))),
    )


def _direction_lateness(document: dict[str, Any], rows: slice, late: int) -> DirectionLateness:
    return DirectionLateness(
        frames=sum(_count(count) for count in document["frames_per_interval"][rows]),
        late=late,
        maximum=max((_number(value) for value in document["max_per_interval"][rows]), default=0.0),
        p50=_number(document["p50"]),
        p99=_number(document["p99"]),
        p999=_number(document["p999"]),
    )


def _number(value: Any) -> float:
    """``value``, which must be finite: comparisons with NaN are false, and sums with an infinity mean nothing."""
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError("a number that is too large") from error
    if not abs(number) < LARGEST:
        raise ValueError(f"{number} is no number of a report")
    return number


def _count(value: Any) -> int:
    return int(_number(value))


def _counters(document: dict[str, Any]) -> LinkCounters:
    return LinkCounters(**{name: _count(document[name]) for name in LinkCounters.__dataclass_fields__})


def _rebinding(document: dict[str, Any]) -> Rebinding:
    mappings = tuple(Mapping(str(one["inside"]), str(one["outside"])) for one in document["mappings"])
    return Rebinding(_number(document["time"]), mappings)


def _cross_traffic(document: dict[str, Any]) -> CrossTrafficReport:
    return CrossTrafficReport(
        begin=_number(document["begin"]),
        end=_number(document["end"]),
        acknowledged=_count(document["acknowledged"]),
        goodput=_number(document["goodput"]),
        per_second=tuple(_count(count) for count in document["per_second"]),
        delivered=_count(document["delivered"]),
        queue_drops=_count(document["queue_drops"]),
    )
