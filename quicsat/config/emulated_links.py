"""Reads the emulated link of a test case; faults are added to the problems of its fields."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TypeVar

from quicsat.config.gateways import NONE, check_gateways, read_endpoint_tcp, read_pep, read_vpn
from quicsat.config.link_profiles import read_demand, read_profile
from quicsat.config.quantities import count, duration, one_of, probability, rate, share, size, within
from quicsat.config.yaml_fields import Fields
from quicsat.model.emulated_link import (
    Blackhole,
    ClientSide,
    Corruption,
    CorruptionMode,
    CrossTraffic,
    EmulatedLink,
    GilbertElliottLoss,
    Jitter,
    JitterShape,
    LinkDirection,
    Loss,
    Profile,
    Queue,
    QueueDiscipline,
    QueueMode,
    QueueUnit,
    Rebind,
    Reordering,
    TimersFrom,
    UdpCrossTraffic,
    UniformLoss,
)

T = TypeVar("T")
E = TypeVar("E", Jitter, Reordering, UdpCrossTraffic)

LINK_EXAMPLE = "{scenario: simple-p2p, delay: 15 ms, rate: 20 Mbit/s, queue: 25}"
GEOMETRY_EXAMPLES = {"delay": "15 ms", "rate": "20 Mbit/s", "queue": "25"}
"""Keys of a link that may differ by direction and must be there if it extends none -> an example of the value."""
LOSS_EXAMPLES = {"good to bad": "0.017", "bad to good": "0.935"}
STATE_LOSSES = ("loss in good", "loss in bad")
UNIFORM_LOSS_KEYS = ("rate", "longest burst")
CORRUPTION_KEYS = ("rate", "longest burst", "mode")
BLACKHOLE_KEYS = ("on", "off", "repeat", "direction", "from")
REBIND_KEYS = ("first", "period", "address", "from")
CROSS_TRAFFIC_KEYS = ("congestion control",)
QUEUE_KEYS = {
    "limit": "100 packets",
    "target": "5 ms",
    "interval": "100 ms",
    "minimum": "20 packets",
    "maximum": "60 packets",
    "probability": "10 %",
    "weight": "0.002",
    "ecn": "true",
    "mark above": "1 ms",
}
"""Keys of a queue beside its discipline -> an example of the value."""
_DELAY_KEYS = ("limit", "target", "interval", "ecn", "mark above")
QUEUE_KEYS_OF = {
    QueueDiscipline.DROP_TAIL: ("limit", "mark above"),
    QueueDiscipline.CODEL: _DELAY_KEYS,
    QueueDiscipline.FQ_CODEL: _DELAY_KEYS,
    QueueDiscipline.PIE: _DELAY_KEYS,
    QueueDiscipline.RED: ("limit", "minimum", "maximum", "probability", "weight", "ecn", "mark above"),
}
JITTER_KEYS = ("size", "shape", "overtake")
REORDERING_KEYS = {"rate": "1 %", "delay": "20 ms", "gap": "3"}
"""Key -> an example of its value; ``gap`` can be omitted."""
OWN_KEYS = {
    "corrupt-rate": ("corruption", "2 %"),
    "droplist": ("return drops", "[2, 3, 4]"),
    "blackhole": ("blackhole", "{on: 5 s, off: 2 s}"),
    "rebind": ("rebind", "{first: 1 s, period: 5 s}"),
    "tcp-cross-traffic": ("cross traffic", "{congestion control: cubic}"),
}
"""Scenario -> the key that only it supports, with an example value."""
UDP_CROSS_TRAFFIC_KEYS = ("rate", "packet size", "start")
PER_WAY = (
    *GEOMETRY_EXAMPLES, "loss", "jitter", "reordering", "duplication", "udp cross traffic", "corruption", "drops",
)  # fmt: skip
LINK_KEYS = (
    "scenario",
    *(f"{way}{key}" for key in PER_WAY for way in ("", "forward ", "return ")),
    "blackhole",
    "rebind",
    "cross traffic",
    "queue mode",
    "pep",
    "endpoint tcp",
    "profile",
    "forward profile",
    "return profile",
    "return access",
    "vpn",
    "client side",
)
CLIENT_SIDE_KEYS = tuple(f"{way}{key}" for key in ("delay", "loss") for way in ("", "forward ", "return "))
CLIENT_SIDE_EXAMPLE = "{delay: 5 ms, loss: 1 %}"
MOST_QUEUED = 1_000_000
"""Packets in a queue."""
WAYS = {"both": LinkDirection.BOTH, "forward": LinkDirection.CLIENT, "return": LinkDirection.SERVER}

_QUEUE_MODE = one_of(mode.value for mode in QueueMode)
_DELAY = within(duration, "0 s", "60 s")
_RATE = within(rate, "1 bit/s", "100 Gbit/s")
_QUEUE_PACKETS = within(count, "1", str(MOST_QUEUED))
_QUEUE_BYTES = within(size, "1502 B", "1 GiB")
_DISCIPLINE = one_of(discipline.value for discipline in QueueDiscipline)
_TARGET = within(duration, "100 us", "10 s")
_INTERVAL = within(duration, "1 ms", "60 s")
_MARK_ABOVE = within(duration, "10 us", "10 s")
_RED_PROBABILITY = within(probability, "0.0001", "1")
_WEIGHT = within(probability, "0.000001", "1")
_JITTER = within(duration, "0 s", "10 s")
_SHAPE = one_of(shape.value for shape in JitterShape)
_HOLD = within(duration, "1 ms", "10 s")
_GAP = within(count, "1", "1000")
_OTHERS_RATE = within(rate, "0 bit/s", "100 Gbit/s")
_START_OF_OTHERS = within(duration, "0 s", "1 h")
_IP_PACKET = within(size, "28 B", "1500 B")
_SHARE = within(share, "0 %", "100 %")
_PROBABILITY = within(probability, "0", "1")
_BURST = within(count, "1", "1000000")
_PACKET = within(count, "1", "1000000")
_MOMENT = within(duration, "1 ms", "1 h")
_REPEAT = within(count, "1", "1000")
_TIMERS_FROM = one_of(origin.value for origin in TimersFrom)
_MODE = one_of(mode.value for mode in CorruptionMode)
_CONGESTION_CONTROL = one_of(("cubic", "reno", "bbr"))

BLANK_LINK = EmulatedLink("", 0, 0, 0, 0, 0, 0)
"""Base of a link that extends none; each field that it lacks is noted as missing."""


def read_link(fields: Fields, base: EmulatedLink | None, scenarios: Collection[str], *, whole: bool) -> EmulatedLink:
    """The link in ``fields`` of a test case; missing keys are inherited from ``base``.

    If not ``whole`` (the extended test case is faulty), missing keys are not reported.
    """
    inherited = base or BLANK_LINK
    if not fields.holds_mapping("link"):
        if "link" in fields:
            fields.must_be_mapping("link", LINK_EXAMPLE)
        return inherited
    link = fields.mapping("link")
    faults = len(fields.problems)
    link.allow_only(LINK_KEYS)
    forward, back = _read_profiles(link, inherited)
    if whole and base is None:
        _require_geometry(link, scenarios, _given_by(forward, back))
    scenario = _or(link.read("scenario", one_of(scenarios)), inherited.scenario)
    merged = _read_impairments(
        link, _read_geometry(link, replace(inherited, scenario=scenario), whole=whole), inherited
    )
    merged = replace(
        merged,
        pep=read_pep(link, inherited.pep),
        endpoint_tcp=read_endpoint_tcp(link, inherited.endpoint_tcp),
        vpn=read_vpn(link, inherited.vpn),
        client_side=_read_client_side(link, inherited.client_side, whole=whole),
    )
    merged = _with_profiles(link, merged, forward, back)
    demand = read_demand(link, inherited.demand, merged.round_trip_delay, merged.return_rate)
    merged = replace(merged, demand=demand)
    if whole and len(fields.problems) == faults:
        _check_scenario(link, merged)
        check_gateways(link, merged)
    return merged


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


# ---- delay, rate, queue, loss ---------------------------------------------------------------


def _require_geometry(link: Fields, scenarios: Collection[str], given: Collection[str]) -> None:
    link.require({"scenario": next(iter(scenarios), "asymmetric-p2p")})
    for key, example in GEOMETRY_EXAMPLES.items():
        ways = [f"forward {key}", f"return {key}"]
        missing = [way for way in ways if way not in link and way not in given]
        if key not in link and missing:
            link.require(dict.fromkeys([key] if missing == ways else missing, example))


def _read_geometry(link: Fields, inherited: EmulatedLink, *, whole: bool) -> EmulatedLink:
    forward_delay, return_delay = _both_ways(link, "delay", _DELAY)
    forward_rate, return_rate = _both_ways(link, "rate", _RATE)
    both_queues, forward_queue, return_queue = (_read_queue(link, f"{way}queue") for way in ("", "forward ", "return "))
    jitters = [_read_jitter(link, f"{way}jitter") for way in ("", "forward ", "return ")]
    reorderings = [_read_reordering(link, f"{way}reordering") for way in ("", "forward ", "return ")]
    forward_duplication, return_duplication = _both_ways(link, "duplication", _SHARE)
    others = [_read_udp_cross_traffic(link, f"{way}udp cross traffic") for way in ("", "forward ", "return ")]
    forward_loss, return_loss = _read_losses(link, inherited, whole=whole)
    queue_mode = link.read("queue mode", _QUEUE_MODE)
    return replace(
        inherited,
        forward_delay=_or(forward_delay, inherited.forward_delay),
        return_delay=_or(return_delay, inherited.return_delay),
        forward_rate=_or(forward_rate, inherited.forward_rate),
        return_rate=_or(return_rate, inherited.return_rate),
        forward_queue=forward_queue or both_queues or inherited.forward_queue,
        return_queue=return_queue or both_queues or inherited.return_queue,
        forward_loss=forward_loss,
        return_loss=return_loss,
        forward_jitter=_positive(_some(jitters[1], jitters[0], inherited.forward_jitter)),
        return_jitter=_positive(_some(jitters[2], jitters[0], inherited.return_jitter)),
        forward_reordering=_positive(_some(reorderings[1], reorderings[0], inherited.forward_reordering)),
        return_reordering=_positive(_some(reorderings[2], reorderings[0], inherited.return_reordering)),
        forward_duplication=_or(forward_duplication, inherited.forward_duplication),
        return_duplication=_or(return_duplication, inherited.return_duplication),
        forward_udp_cross_traffic=_positive(_some(others[1], others[0], inherited.forward_udp_cross_traffic)),
        return_udp_cross_traffic=_positive(_some(others[2], others[0], inherited.return_udp_cross_traffic)),
        queue_mode=inherited.queue_mode if queue_mode is None else QueueMode(queue_mode),
    )


def _both_ways(link: Fields, key: str, parse: Callable[[str], T]) -> tuple[T | None, T | None]:
    """Forward and return value: that of ``key`` is for both, unless a direction has its own."""
    both, forward, back = (link.read(f"{way}{key}", parse) for way in ("", "forward ", "return "))
    return (both if forward is None else forward), (both if back is None else back)


def _queue_limit(text: str) -> tuple[int, QueueUnit]:
    """``"100"`` or ``"100 packets"`` -> 100 packets, ``"64 KiB"`` -> 65536 bytes."""
    packets = text.removesuffix("packets").rstrip()
    if packets.isdecimal() or packets != text:
        return _QUEUE_PACKETS(packets), QueueUnit.PACKETS
    try:
        return _QUEUE_BYTES(text), QueueUnit.BYTES
    except ValueError as fault:
        raise ValueError(f'{fault} Or 1 to {MOST_QUEUED} packets, like "100 packets".') from None


def _read_queue(link: Fields, key: str) -> int | Queue | None:
    if not link.holds_mapping(key):
        found = link.read(key, _queue_limit)
        if found is None:
            return None
        limit, unit = found
        return limit if unit is QueueUnit.PACKETS else Queue(QueueDiscipline.DROP_TAIL, limit, unit)
    fields = link.part(key)
    fields.require({"discipline": "codel"})
    word = fields.read("discipline", _DISCIPLINE)
    if word is None:
        return None
    discipline = QueueDiscipline(word)
    keys = QUEUE_KEYS_OF[discipline]
    fields.allow_only(("discipline", *keys))
    needed = ("limit", "minimum", "maximum") if discipline is QueueDiscipline.RED else ("limit",)
    fields.require({key: QUEUE_KEYS[key] for key in needed})
    limits = {name: fields.read(name, _queue_limit) for name in needed}
    limit, unit = limits["limit"] or (1, QueueUnit.PACKETS)
    if unit is QueueUnit.BYTES and discipline is QueueDiscipline.FQ_CODEL:
        fields.note("limit of fq-codel must be in packets, like 100 packets.", fields.line_of("limit"))
    if all(limits.values()) and discipline is QueueDiscipline.RED:
        _check_thresholds(fields, *(value for value in limits.values() if value))
    return Queue(
        discipline,
        limit,
        unit,
        target=fields.read("target", _TARGET),
        interval=fields.read("interval", _INTERVAL),
        ecn=_or(fields.read_flag("ecn"), False),
        mark_above=fields.read("mark above", _MARK_ABOVE),
        minimum=(limits.get("minimum") or (None,))[0],
        maximum=(limits.get("maximum") or (None,))[0],
        probability=fields.read("probability", _RED_PROBABILITY),
        weight=fields.read("weight", _WEIGHT),
    )


def _check_thresholds(fields: Fields, *limits: tuple[int, QueueUnit]) -> None:
    """Report thresholds of RED that are not in the unit of the limit or not below one another."""
    (limit, unit), (minimum, of_minimum), (maximum, of_maximum) = limits
    if not unit == of_minimum == of_maximum:
        fields.note("limit, minimum and maximum must all be in packets or all be in bytes.", fields.line_of("minimum"))
    elif not minimum < maximum <= limit:
        order = f"minimum {minimum}, maximum {maximum} and limit {limit} {unit}"
        fields.note(f"{order}: allowed is minimum < maximum <= limit.", fields.line_of("minimum"))


def _read_jitter(link: Fields, key: str) -> Jitter | None:
    if not link.holds_mapping(key):
        size_of_jitter = link.read(key, _JITTER)
        return None if size_of_jitter is None else Jitter(size_of_jitter)
    fields = link.part(key)
    fields.allow_only(JITTER_KEYS)
    fields.require({"size": "5 ms"})
    return Jitter(
        size=_or(fields.read("size", _JITTER), 0.0),
        shape=JitterShape(_or(fields.read("shape", _SHAPE), JitterShape.UNIFORM)),
        overtake=_or(fields.read_flag("overtake"), False),
    )


def _read_reordering(link: Fields, key: str) -> Reordering | None:
    if key not in link:
        return None
    if not link.holds_mapping(key):
        link.must_be_mapping(key, "{rate: 1 %, delay: 20 ms}")
        return None
    fields = link.part(key)
    fields.allow_only(REORDERING_KEYS)
    fields.require({name: REORDERING_KEYS[name] for name in ("rate", "delay")})
    return Reordering(
        rate=_or(fields.read("rate", _SHARE), 0.0),
        delay=_or(fields.read("delay", _HOLD), 0.0),
        gap=fields.read("gap", _GAP),
    )


def _read_udp_cross_traffic(link: Fields, key: str) -> UdpCrossTraffic | None:
    if not link.holds_mapping(key):
        rate_of_packets = link.read(key, _OTHERS_RATE)
        return None if rate_of_packets is None else UdpCrossTraffic(rate_of_packets)
    fields = link.part(key)
    fields.allow_only(UDP_CROSS_TRAFFIC_KEYS)
    fields.require({"rate": "5 Mbit/s"})
    usual = UdpCrossTraffic(0)
    return UdpCrossTraffic(
        rate=_or(fields.read("rate", _OTHERS_RATE), 0.0),
        packet_size=_or(fields.read("packet size", _IP_PACKET), usual.packet_size),
        start=_or(fields.read("start", _START_OF_OTHERS), usual.start),
    )


def _positive(element: E | None) -> E | None:
    """``element``, or None if it does nothing."""
    match element:
        case Jitter(size=0) | Reordering(rate=0) | UdpCrossTraffic(rate=0):
            return None
    return element


def _read_client_side(link: Fields, inherited: ClientSide | None, *, whole: bool) -> ClientSide | None:
    """The link at the client's side, whose missing keys are inherited; one that does nothing is none."""
    if not link.holds_mapping("client side"):
        word = link.read("client side", _parse_no_client_side)
        return inherited if word is None else None
    fields = link.part("client side")
    fields.allow_only(CLIENT_SIDE_KEYS)
    base = inherited or ClientSide()
    forward_delay, return_delay = _both_ways(fields, "delay", _DELAY)
    found = ClientSide(
        _or(forward_delay, base.forward_delay),
        _or(return_delay, base.return_delay),
        *_read_losses(fields, base, whole=whole),
    )
    return None if found == ClientSide() else found


def _parse_no_client_side(text: str) -> str:
    if text != NONE:
        raise ValueError(f"is neither {NONE} nor a mapping; write for example {CLIENT_SIDE_EXAMPLE}.")
    return text


def _read_losses(link: Fields, inherited: EmulatedLink | ClientSide, *, whole: bool) -> tuple[Loss | None, Loss | None]:
    both, forward, back = (_read_loss(link, f"{way}loss") for way in ("", "forward ", "return "))
    return (
        _merged_loss(link, both if forward is None else forward, inherited.forward_loss, whole=whole),
        _merged_loss(link, both if back is None else back, inherited.return_loss, whole=whole),
    )


@dataclass(frozen=True)
class _PartialLoss:
    """Gilbert-Elliott probabilities; some of them may be inherited."""

    line: int
    good_to_bad: float | None
    bad_to_good: float | None
    loss_in_good: float | None
    loss_in_bad: float | None
    missing: tuple[str, ...]


def _read_loss(link: Fields, key: str) -> UniformLoss | _PartialLoss | None:
    if not link.holds_mapping(key):
        rate_of_loss = link.read(key, _SHARE)
        return None if rate_of_loss is None else UniformLoss(rate_of_loss)
    fields = link.part(key)
    if "rate" in fields or "longest burst" in fields:
        fields.allow_only(UNIFORM_LOSS_KEYS)
        fields.require({"rate": "30 %"})
        return UniformLoss(_or(fields.read("rate", _SHARE), 0), fields.read("longest burst", _BURST))
    fields.allow_only((*LOSS_EXAMPLES, *STATE_LOSSES, *UNIFORM_LOSS_KEYS))
    good_to_bad, bad_to_good, loss_in_good, loss_in_bad = (
        fields.read(name, _PROBABILITY) for name in (*LOSS_EXAMPLES, *STATE_LOSSES)
    )
    missing = tuple(name for name in LOSS_EXAMPLES if name not in fields)
    return _PartialLoss(fields.line, good_to_bad, bad_to_good, loss_in_good, loss_in_bad, missing)


def _merged_loss(
    link: Fields, loss: UniformLoss | _PartialLoss | None, inherited: Loss | None, *, whole: bool
) -> Loss | None:
    if loss is None:
        return inherited
    if isinstance(loss, UniformLoss):
        return loss if loss.rate > 0 else None
    if isinstance(inherited, GilbertElliottLoss):
        return GilbertElliottLoss(
            _or(loss.good_to_bad, inherited.good_to_bad),
            _or(loss.bad_to_good, inherited.bad_to_good),
            _or(loss.loss_in_good, inherited.loss_in_good),
            _or(loss.loss_in_bad, inherited.loss_in_bad),
        )
    if whole:
        for name in loss.missing:
            link.note(f'loss lacks "{name}"; write for example {name}: {LOSS_EXAMPLES[name]}', loss.line)
    return GilbertElliottLoss(
        _or(loss.good_to_bad, 0), _or(loss.bad_to_good, 0), _or(loss.loss_in_good, 0), _or(loss.loss_in_bad, 1)
    )


# ---- changes over time ------------------------------------------------------------------


def _read_profiles(link: Fields, inherited: EmulatedLink) -> tuple[Profile | None, Profile | None]:
    """Forward and return profile: that of ``profile`` is for both, unless a direction has its own."""
    both, forward, back = (read_profile(link, f"{way}profile") for way in ("", "forward ", "return "))
    chosen = _some(forward, both, inherited.forward_profile), _some(back, both, inherited.return_profile)
    one, other = (each if isinstance(each, Profile) else None for each in chosen)
    return one, other


def _given_by(forward: Profile | None, back: Profile | None) -> set[str]:
    """Keys that profiles make unnecessary."""
    found: set[str] = set()
    for way, profile in (("forward", forward), ("return", back)):
        found |= {f"{way} rate"} if profile and profile.rates else set()
        found |= {f"{way} delay"} if profile and profile.delays else set()
    return found


def _with_profiles(link: Fields, merged: EmulatedLink, forward: Profile | None, back: Profile | None) -> EmulatedLink:
    """The link with its profiles, and their means as its rates and delays."""
    given = _given_by(forward, back)
    for key in ("rate", "delay"):
        both = {f"forward {key}", f"return {key}"}
        for name in sorted((given & both) | ({key} if both <= given else set())):
            if name in link:
                link.note(f"{name} is given by the profile; leave one of them out.", link.line_of(name))
    return replace(
        merged,
        forward_profile=forward,
        return_profile=back,
        forward_rate=forward.mean(forward.rates) if forward and forward.rates else merged.forward_rate,
        return_rate=back.mean(back.rates) if back and back.rates else merged.return_rate,
        forward_delay=forward.mean(forward.delays) if forward and forward.delays else merged.forward_delay,
        return_delay=back.mean(back.delays) if back and back.delays else merged.return_delay,
    )


# ---- keys of single scenarios ---------------------------------------------------------


def _read_impairments(link: Fields, merged: EmulatedLink, inherited: EmulatedLink) -> EmulatedLink:
    """Impairments of the document; those of ``inherited`` only if the scenario is the same."""
    kept = inherited if merged.scenario == inherited.scenario else BLANK_LINK
    corruptions = [_read_corruption(link, f"{way}corruption") for way in ("", "forward ", "return ")]
    drops = [link.read_list(f"{way}drops", _PACKET) for way in ("", "forward ", "return ")]
    return replace(
        merged,
        forward_corruption=_some(corruptions[1], corruptions[0], kept.forward_corruption),
        return_corruption=_some(corruptions[2], corruptions[0], kept.return_corruption),
        forward_drops=_some(drops[1], drops[0], kept.forward_drops) or (),
        return_drops=_some(drops[2], drops[0], kept.return_drops) or (),
        blackhole=_read_blackhole(link, kept.blackhole),
        rebind=_read_rebind(link, kept.rebind),
        cross_traffic=_read_cross_traffic(link, kept.cross_traffic),
    )


def _some(*values: T | None) -> T | None:
    """The first that is one."""
    return next((value for value in values if value is not None), None)


def _read_corruption(link: Fields, key: str) -> Corruption | None:
    if not link.holds_mapping(key):
        rate_of_corruption = link.read(key, _SHARE)
        return None if rate_of_corruption is None else Corruption(rate_of_corruption)
    fields = link.part(key)
    fields.allow_only(CORRUPTION_KEYS)
    fields.require({"rate": "2 %"})
    return Corruption(
        rate=_or(fields.read("rate", _SHARE), 0),
        longest_burst=fields.read("longest burst", _BURST),
        mode=CorruptionMode(_or(fields.read("mode", _MODE), CorruptionMode.BYTE)),
    )


def _read_blackhole(link: Fields, inherited: Blackhole | None) -> Blackhole | None:
    fields = _own_mapping(link, "blackhole", BLACKHOLE_KEYS)
    if fields is None:
        return inherited
    if inherited is None:
        fields.require({"on": "5 s", "off": "2 s"})
    base = inherited or Blackhole(0, 0)
    direction = fields.read("direction", one_of(WAYS))
    return Blackhole(
        on=_or(fields.read("on", _MOMENT), base.on),
        off=_or(fields.read("off", _MOMENT), base.off),
        repeat=_or(fields.read("repeat", _REPEAT), base.repeat),
        direction=base.direction if direction is None else WAYS[direction],
        timers_from=_read_timers_from(fields, base.timers_from),
    )


def _read_rebind(link: Fields, inherited: Rebind | None) -> Rebind | None:
    fields = _own_mapping(link, "rebind", REBIND_KEYS)
    if fields is None:
        return inherited
    if inherited is None:
        fields.require({"first": "1 s"})
    base = inherited or Rebind(0)
    return Rebind(
        first=_or(fields.read("first", _MOMENT), base.first),
        period=_or(fields.read("period", _MOMENT), base.period),
        address=_or(fields.read_flag("address"), base.address),
        timers_from=_read_timers_from(fields, base.timers_from),
    )


def _read_cross_traffic(link: Fields, inherited: CrossTraffic | None) -> CrossTraffic | None:
    fields = _own_mapping(link, "cross traffic", CROSS_TRAFFIC_KEYS)
    if fields is None:
        return inherited
    base = inherited or CrossTraffic()
    return CrossTraffic(_or(fields.read("congestion control", _CONGESTION_CONTROL), base.congestion_control))


def _read_timers_from(fields: Fields, inherited: TimersFrom) -> TimersFrom:
    origin = fields.read("from", _TIMERS_FROM)
    return inherited if origin is None else TimersFrom(origin)


def _own_mapping(link: Fields, key: str, allowed: Collection[str]) -> Fields | None:
    """The mapping of ``key``; None if it is missing or not a mapping, which is reported."""
    if not link.holds_mapping(key):
        if key in link:
            example = next(example for own, example in OWN_KEYS.values() if own == key)
            link.must_be_mapping(key, example)
        return None
    fields = link.part(key)
    fields.allow_only(allowed)
    return fields


# ---- consistency with the scenario ----------------------------------------------------


def _check_scenario(link: Fields, merged: EmulatedLink) -> None:
    """Report keys that the scenario does not support and keys that it lacks."""
    present = {
        "corrupt-rate": merged.forward_corruption or merged.return_corruption,
        "droplist": merged.forward_drops or merged.return_drops,
        "blackhole": merged.blackhole,
        "rebind": merged.rebind,
        "tcp-cross-traffic": merged.cross_traffic,
    }
    for scenario, found in present.items():
        key, example = OWN_KEYS[scenario]
        if found and merged.scenario != scenario:
            word = key.removeprefix("return ")
            line = next((link.line_of(each) for each in link if each.endswith(word)), 0)
            link.note(f"{word} needs scenario {scenario}; this is {merged.scenario}.", line)
        elif not found and merged.scenario == scenario:
            link.require({key: example})
    losses = (merged.forward_loss, merged.return_loss)
    if merged.scenario == "drop-rate" and any(isinstance(loss, GilbertElliottLoss) for loss in losses):
        link.note("scenario drop-rate loses packets independently; all other scenarios support good and bad states.")
    if merged.scenario == "drop-rate" and losses == (None, None):
        link.require({"loss": "{rate: 30 %, longest burst: 3}"})
    if merged.queue_mode is QueueMode.PAPER and not all(
        isinstance(queue, int) for queue in (merged.forward_queue, merged.return_queue)
    ):
        link.note("queue mode paper needs a queue of so many packets, like queue: 25.", link.line_of("queue mode"))
    if merged.scenario == "simple-p2p":
        _check_symmetry(link, merged)


def _check_symmetry(link: Fields, merged: EmulatedLink) -> None:
    for key, forward, back in (
        ("delay", merged.forward_delay, merged.return_delay),
        ("rate", merged.forward_rate, merged.return_rate),
        ("queue", merged.forward_queue, merged.return_queue),
    ):
        if forward != back:
            link.note(f"scenario simple-p2p has one {key} for both directions; asymmetric-p2p can have two.")
