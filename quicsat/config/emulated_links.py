"""Reads the emulated link of a test case; faults are added to the problems of its fields."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from quicsat.config.gateways import NONE, check_gateways, read_endpoint_tcp, read_pep, read_vpn
from quicsat.config.link_profiles import read_demand, read_profile
from quicsat.config.quantities import (
    count,
    decimal,
    duration,
    member_of,
    one_of,
    probability,
    rate,
    share,
    size,
    within,
    word_or_mapping,
)
from quicsat.config.yaml_fields import D, Fields, Parsers
from quicsat.model.emulated_link import (
    Blackhole,
    ClientSide,
    ClientSideDirection,
    Corruption,
    CorruptionMode,
    CrossTraffic,
    Direction,
    EmulatedLink,
    GilbertElliottLoss,
    Jitter,
    JitterShape,
    LinkDirection,
    Loss,
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

W = TypeVar("W", Direction, ClientSideDirection)

LINK_EXAMPLE = "{scenario: simple-p2p, delay: 15 ms, rate: 20 Mbit/s, queue: 25}"
DELAYS = {"forward delay", "return delay"}
GEOMETRY_EXAMPLES = {"delay": "15 ms", "rate": "20 Mbit/s", "queue": "25"}
"""Keys of a link that may differ by direction and must be there if it extends none -> an example of the value."""
OWN_KEYS = {
    "corrupt-rate": ("corruption", "2 %"),
    "droplist": ("return drops", "[2, 3, 4]"),
    "blackhole": ("blackhole", "{on: 5 s, off: 2 s}"),
    "rebind": ("rebind", "{first: 1 s, period: 5 s}"),
    "tcp-cross-traffic": ("cross traffic", "{congestion control: cubic}"),
}
"""Scenario -> the key that only it supports, with an example value."""
CLIENT_SIDE_EXAMPLE = "{delay: 5 ms, loss: 1 %}"
RATE_AND_QUEUE = {"rate": "50 Mbit/s", "queue": "100 packets"}
"""Keys of the link at the client's side that need one another -> an example of the value."""
MOST_QUEUED = 1_000_000
"""Packets in a queue."""
FULL_PACKET = 1500
"""Bytes of the packets in which a bandwidth-delay product is counted."""
WAYS = {"both": LinkDirection.BOTH, "forward": LinkDirection.CLIENT, "return": LinkDirection.SERVER}
BLANK_LINK = EmulatedLink.symmetric("", Direction(0, 0, 0))
"""Base of a link that extends none; each field that it lacks is noted as missing."""

_DELAY = within(duration, "0 s", "60 s")
_RATE = within(rate, "1 bit/s", "100 Gbit/s")
_SHARE = within(share, "0 %", "100 %")
_PROBABILITY = within(probability, "0", "1")
_PACKETS = within(count, "1", str(MOST_QUEUED))
_QUEUE_BYTES = within(size, "1502 B", "1 GiB")
_FACTOR = within(decimal, "0.01", "100")
_BURST = within(decimal, "1", "1000")
_ROUND_TRIP = within(duration, "0 s", "120 s")
_MOMENT = within(duration, "1 ms", "1 h")
_TIMERS_FROM = member_of(TimersFrom)
_WAY = one_of(WAYS)
_NO_CLIENT_SIDE = word_or_mapping(NONE, f"is neither {NONE} nor a mapping; write for example {CLIENT_SIDE_EXAMPLE}")


# ---- elements: key -> parser ----------------------------------------------------------------


@dataclass(frozen=True)
class _BandwidthDelayProduct:
    """The limit of a queue that depends on the link: so many times the bandwidth-delay product of its direction."""

    factor: float

    def packets(self, rate: float, round_trip: float) -> int:
        """Packets of ``FULL_PACKET`` bytes, at least one; ``rate`` in bit/s, ``round_trip`` in seconds."""
        return min(max(round(self.factor * rate * round_trip / 8 / FULL_PACKET), 1), MOST_QUEUED)


def _plain_queue(text: str) -> tuple[int, QueueUnit] | _BandwidthDelayProduct:
    """As :func:`_queue_limit`, or ``"1 BDP"``."""
    factor = text.removesuffix("BDP")
    return _queue_limit(text) if factor == text else _BandwidthDelayProduct(_FACTOR(factor.strip()))


def _queue_limit(text: str) -> tuple[int, QueueUnit]:
    """``"100"`` or ``"100 packets"`` -> 100 packets, ``"64 KiB"`` -> 65536 bytes."""
    packets = text.removesuffix("packets").rstrip()
    if packets.isdecimal() or packets != text:
        return _PACKETS(packets), QueueUnit.PACKETS
    try:
        return _QUEUE_BYTES(text), QueueUnit.BYTES
    except ValueError as fault:
        raise ValueError(f'{fault} Or 1 to {MOST_QUEUED} packets, like "100 packets".') from None


QUEUE = {
    "limit": _queue_limit,
    "target": within(duration, "100 us", "10 s"),
    "interval": within(duration, "1 ms", "60 s"),
    "minimum": _queue_limit,
    "maximum": _queue_limit,
    "probability": within(probability, "0.0001", "1"),
    "weight": within(probability, "0.000001", "1"),
    "ecn": bool,
    "mark above": within(duration, "10 us", "10 s"),
}
LIMIT_EXAMPLES = {"limit": "100 packets", "minimum": "20 packets", "maximum": "60 packets"}
_DELAY_KEYS = ("limit", "target", "interval", "ecn", "mark above")
QUEUE_KEYS_OF = {
    QueueDiscipline.DROP_TAIL: ("limit", "mark above"),
    QueueDiscipline.CODEL: _DELAY_KEYS,
    QueueDiscipline.FQ_CODEL: _DELAY_KEYS,
    QueueDiscipline.PIE: _DELAY_KEYS,
    QueueDiscipline.RED: ("limit", "minimum", "maximum", "probability", "weight", "ecn", "mark above"),
}
UNIFORM_LOSS = {"rate": _SHARE, "longest burst": _PACKETS}
MEAN_BURST = "mean burst"
LOSS_EXAMPLES = {"good to bad": "0.017", "bad to good": "0.935"}
BURSTS_OF_LOSS = dict.fromkeys((*LOSS_EXAMPLES, "loss in good", "loss in bad"), _PROBABILITY)
JITTER = {"size": within(duration, "0 s", "10 s"), "shape": member_of(JitterShape), "overtake": bool}
REORDERING = {"rate": _SHARE, "delay": within(duration, "1 ms", "10 s"), "gap": within(count, "1", "1000")}
UDP_CROSS_TRAFFIC = {
    "rate": within(rate, "0 bit/s", "100 Gbit/s"),
    "packet size": within(size, "28 B", "1500 B"),
    "start": within(duration, "0 s", "1 h"),
}
CORRUPTION = {"rate": _SHARE, "longest burst": _PACKETS, "mode": member_of(CorruptionMode)}
BLACKHOLE = {
    "on": _MOMENT,
    "off": _MOMENT,
    "repeat": within(count, "1", "1000"),
    "direction": lambda text: WAYS[_WAY(text)],
    "from": _TIMERS_FROM,
}
REBIND = {"first": _MOMENT, "period": _MOMENT, "address": bool, "from": _TIMERS_FROM}
CROSS_TRAFFIC = {"congestion control": one_of(("cubic", "reno", "bbr"))}


def _read_element(link: Fields, key: str, blank: D, parsers: Parsers, *alone: str, **examples: str) -> D | None:
    """A mapping; ``alone``: its key whose value may stand alone; ``examples``: its keys that must be there."""
    if link.holds_mapping(key):
        return link.record(key, blank, None, parsers, examples)
    if key in link and not alone:
        link.must_be_mapping(key, f"{{{', '.join(f'{name}: {value}' for name, value in examples.items())}}}")
        return None
    return link.read(key, lambda text: replace(blank, **{name: parsers[name](text) for name in alone}))


def _read_queue(
    link: Fields, key: str, parse: Callable[[str], tuple[int, QueueUnit] | _BandwidthDelayProduct] = _plain_queue
) -> int | Queue | _BandwidthDelayProduct | None:
    if not link.holds_mapping(key):
        found = link.read(key, parse)
        if found is None or isinstance(found, _BandwidthDelayProduct):
            return found
        limit, unit = found
        return limit if unit is QueueUnit.PACKETS else Queue(QueueDiscipline.DROP_TAIL, limit, unit)
    fields = link.part(key)
    fields.require({"discipline": "codel"})
    discipline = fields.read("discipline", member_of(QueueDiscipline))
    if discipline is None:
        return None
    keys = QUEUE_KEYS_OF[discipline]
    fields.allow_only(("discipline", *keys))
    needed = {name: example for name, example in LIMIT_EXAMPLES.items() if name in keys}
    fields.require(needed)
    values = fields.values({name: QUEUE[name] for name in keys})
    limits = [values.pop(name) for name in needed if name in values]
    limit, unit = limits[0] if limits else (1, QueueUnit.PACKETS)
    if unit is QueueUnit.BYTES and discipline is QueueDiscipline.FQ_CODEL:
        fields.note("limit of fq-codel must be in packets, like 100 packets.", fields.line_of("limit"))
    if len(limits) == len(LIMIT_EXAMPLES):
        _check_thresholds(fields, *limits)
        values |= {"minimum": limits[1][0], "maximum": limits[2][0]}
    return Queue(discipline, limit, unit, **values)


def _check_thresholds(fields: Fields, *limits: tuple[int, QueueUnit]) -> None:
    """Report thresholds of RED that are not in the unit of the limit or not below one another."""
    (limit, unit), (minimum, of_minimum), (maximum, of_maximum) = limits
    if not unit == of_minimum == of_maximum:
        fields.note("limit, minimum and maximum must all be in packets or all be in bytes.", fields.line_of("minimum"))
    elif not minimum < maximum <= limit:
        order = f"minimum {minimum}, maximum {maximum} and limit {limit} {unit}"
        fields.note(f"{order}: allowed is minimum < maximum <= limit.", fields.line_of("minimum"))


@dataclass(frozen=True)
class _BurstsOfLoss:
    """Gilbert-Elliott probabilities; those that are missing may be inherited."""

    fields: Fields
    values: Mapping[str, float]


def _read_loss(link: Fields, key: str) -> UniformLoss | _BurstsOfLoss | None:
    fields = link.part(key) if link.holds_mapping(key) else None
    if fields is not None and MEAN_BURST in fields:
        return _read_mean_burst(fields)
    if fields is None or any(name in fields for name in UNIFORM_LOSS):
        return _read_element(link, key, UniformLoss(0), UNIFORM_LOSS, "rate", rate="30 %")
    fields.allow_only((*BURSTS_OF_LOSS, *UNIFORM_LOSS, MEAN_BURST))
    return _BurstsOfLoss(fields, fields.values(BURSTS_OF_LOSS))


def _read_mean_burst(fields: Fields) -> UniformLoss | _BurstsOfLoss | None:
    """Gilbert's model by the share p of lost packets and their mean number b in a row: r = 1 / b, and p r / (1 - p)."""
    fields.allow_only(("rate", MEAN_BURST))
    fields.require({"rate": "1 %"})
    found = fields.values({"rate": _SHARE, MEAN_BURST: _BURST})
    if len(found) < 2:
        return None
    share, burst = found["rate"], found["mean_burst"]
    if share > burst / (burst + 1):
        least = f"at least {share / (1 - share):.3g}" if share < 1 else "without an end"
        fields.note(f"bursts of {burst:g} packets are too short for this rate: its mean burst is {least}.")
        return None
    if not share:
        return UniformLoss(0)
    values = {"good_to_bad": share / burst / (1 - share), "bad_to_good": 1 / burst}
    return _BurstsOfLoss(fields, values | {"loss_in_good": 0.0, "loss_in_bad": 1.0})


def _merged_loss(
    link: Fields, loss: UniformLoss | _BurstsOfLoss, inherited: Loss | None, *, whole: bool
) -> Loss | None:
    if isinstance(loss, UniformLoss):
        return loss if loss.rate > 0 else None
    if isinstance(inherited, GilbertElliottLoss):
        return replace(inherited, **loss.values)
    for name, example in LOSS_EXAMPLES.items() if whole else ():
        if name not in loss.fields and MEAN_BURST not in loss.fields:
            link.note(f'loss lacks "{name}"; write for example {name}: {example}', loss.fields.line)
    return replace(GilbertElliottLoss(0, 0), **loss.values)


# ---- directions -----------------------------------------------------------------------------

Reader = Callable[[Fields, str], Any]
"""Reads the value of a key; None if it is missing or invalid (reported)."""

_DELAY_LOSS_AND_JITTER: Mapping[str, Reader] = {
    "delay": partial(Fields.read, parse=_DELAY),
    "loss": _read_loss,
    "jitter": lambda link, key: _read_element(link, key, Jitter(0), JITTER, "size", size="5 ms"),
}
_READ_RATE = partial(Fields.read, parse=_RATE)
CLIENT_SIDE_DIRECTION: Mapping[str, Reader] = {
    **_DELAY_LOSS_AND_JITTER,
    "rate": _READ_RATE,
    "queue": partial(_read_queue, parse=_queue_limit),
}
DIRECTION: Mapping[str, Reader] = {
    **_DELAY_LOSS_AND_JITTER,
    "rate": _READ_RATE,
    "queue": _read_queue,
    "reordering": lambda link, key: _read_element(link, key, Reordering(0, 0), REORDERING, rate="1 %", delay="20 ms"),
    "duplication": partial(Fields.read, parse=_SHARE),
    "udp cross traffic": lambda link, key: _read_element(
        link, key, UdpCrossTraffic(0), UDP_CROSS_TRAFFIC, "rate", rate="5 Mbit/s"
    ),
    "corruption": lambda link, key: _read_element(link, key, Corruption(0), CORRUPTION, "rate", rate="2 %"),
    "drops": partial(Fields.read_list, parse=_PACKETS),
    "profile": read_profile,
}
"""Keys of a direction -> how they are read; ``forward X`` and ``return X`` are for one, ``X`` is for both."""


def _both_ways(keys: Collection[str]) -> Iterator[str]:
    return (f"{way}{key}" for key in keys for way in ("", "forward ", "return "))


CLIENT_SIDE_KEYS = (*_both_ways(CLIENT_SIDE_DIRECTION),)
LINK_KEYS = (
    "scenario",
    "rtt",
    *_both_ways(DIRECTION),
    "blackhole",
    "rebind",
    "cross traffic",
    "queue mode",
    "pep",
    "endpoint tcp",
    "return access",
    "vpn",
    "client side",
)


def _read_directions(
    fields: Fields, readers: Mapping[str, Reader], inherited: tuple[W, W], *, whole: bool
) -> tuple[W, W]:
    """The forward and the return direction, whose missing keys are inherited."""
    both, forward, back = (
        {key: value for key, read in readers.items() if (value := read(fields, f"{way}{key}")) is not None}
        for way in ("", "forward ", "return ")
    )
    return (
        _merged(fields, both | forward, inherited[0], whole=whole),
        _merged(fields, both | back, inherited[1], whole=whole),
    )


def _merged(fields: Fields, values: dict[str, Any], inherited: W, *, whole: bool) -> W:
    """A direction with other values; an element that does nothing is none."""
    if "loss" in values:
        values["loss"] = _merged_loss(fields, values["loss"], inherited.loss, whole=whole)
    for key, value in values.items():
        match value:
            case Jitter(size=0) | Reordering(rate=0) | UdpCrossTraffic(rate=0) | "none":
                values[key] = None
    return replace(inherited, **{key.replace(" ", "_"): value for key, value in values.items()})


def _with_means(direction: Direction) -> Direction:
    """The direction with the means of its profile as its rate and delay."""
    profile = direction.profile
    if profile is None:
        return direction
    return replace(
        direction,
        rate=profile.mean(profile.rates) if profile.rates else direction.rate,
        delay=profile.mean(profile.delays) if profile.delays else direction.delay,
    )


# ---- links ----------------------------------------------------------------------------------


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
    values = link.values({"scenario": one_of(scenarios), "queue mode": member_of(QueueMode)})
    if values.get("scenario", inherited.scenario) != inherited.scenario:
        inherited = _without_own_elements(inherited)
    if "rtt" in link:
        inherited = _with_round_trip(link, inherited)
    forward, back = _read_directions(link, DIRECTION, (inherited.forward, inherited.back), whole=whole)
    by_profile = _given_by_profiles(forward, back)
    if whole and base is None:
        _require_geometry(link, scenarios, by_profile | (DELAYS if "rtt" in link else set()))
    _check_profiles(link, by_profile)
    if "rtt" in link and by_profile & DELAYS:
        link.note("rtt is given by the profile; leave one of them out.", link.line_of("rtt"))
    merged = replace(
        inherited,
        **values,
        forward=_with_means(forward),
        back=_with_means(back),
        blackhole=_read_own(link, "blackhole", Blackhole(0, 0), inherited.blackhole, BLACKHOLE, on="5 s", off="2 s"),
        rebind=_read_own(link, "rebind", Rebind(0), inherited.rebind, REBIND, first="1 s"),
        cross_traffic=_read_own(link, "cross traffic", CrossTraffic(), inherited.cross_traffic, CROSS_TRAFFIC),
        pep=read_pep(link, inherited.pep),
        endpoint_tcp=read_endpoint_tcp(link, inherited.endpoint_tcp),
        vpn=read_vpn(link, inherited.vpn),
        client_side=_read_client_side(link, inherited.client_side, whole=whole),
    )
    merged = _with_queues(merged)
    demand = read_demand(link, inherited.demand, merged.round_trip_delay, merged.back.rate)
    merged = replace(merged, demand=demand)
    if whole and len(fields.problems) == faults:
        _check_scenario(link, merged)
        check_gateways(link, merged)
    return merged


def _with_round_trip(link: Fields, inherited: EmulatedLink) -> EmulatedLink:
    """The link with half of ``rtt`` as the delay of each direction."""
    if others := [key for key in ("delay", *sorted(DELAYS)) if key in link]:
        link.note(f"rtt and {' and '.join(others)} exclude each other; leave one of them out.", link.line_of("rtt"))
    round_trip = link.read("rtt", _ROUND_TRIP)
    return inherited if round_trip is None else inherited.with_both(delay=round_trip / 2)


def _with_queues(link: EmulatedLink) -> EmulatedLink:
    """The link with packets in place of multiples of a bandwidth-delay product."""
    forward, back = (_with_queue(way, link.round_trip_delay) for way in (link.forward, link.back))
    return replace(link, forward=forward, back=back)


def _with_queue(way: Direction, round_trip: float) -> Direction:
    limit: object = way.queue
    return replace(way, queue=limit.packets(way.rate, round_trip)) if isinstance(limit, _BandwidthDelayProduct) else way


def _without_own_elements(link: EmulatedLink) -> EmulatedLink:
    """The link without those elements that only its scenario has."""
    return replace(link.with_both(corruption=None, drops=()), blackhole=None, rebind=None, cross_traffic=None)


def _read_own(link: Fields, key: str, blank: D, inherited: D | None, parsers: Parsers, **examples: str) -> D | None:
    """An element of a single scenario; missing keys are inherited."""
    if link.holds_mapping(key):
        names = {"timers_from": "from"} if "from" in parsers else {}
        return link.record(key, blank, inherited, parsers, examples, **names)
    if key in link:
        link.must_be_mapping(key, next(example for own, example in OWN_KEYS.values() if own == key))
    return inherited


def _read_client_side(link: Fields, inherited: ClientSide | None, *, whole: bool) -> ClientSide | None:
    """The link at the client's side, whose missing keys are inherited; one that does nothing is none."""
    if not link.holds_mapping("client side"):
        word = link.read("client side", _NO_CLIENT_SIDE)
        return inherited if word is None else None
    fields = link.part("client side")
    fields.allow_only(CLIENT_SIDE_KEYS)
    base = inherited or ClientSide()
    faults = len(fields.problems)
    found = ClientSide(*_read_directions(fields, CLIENT_SIDE_DIRECTION, (base.forward, base.back), whole=whole))
    if len(fields.problems) == faults:
        _check_rate_and_queue(fields, found)
    return None if found == ClientSide() else found


def _check_rate_and_queue(fields: Fields, found: ClientSide) -> None:
    """Report a rate without a queue, and a queue without a rate."""
    for way, direction in (("forward", found.forward), ("return", found.back)):
        for key, other in (("rate", "queue"), ("queue", "rate")):
            if getattr(direction, key) is not None and getattr(direction, other) is None:
                one_way = f"{way} {key}" in fields
                name = f"{way} " if one_way else ""
                example = f"write for example {name}{other}: {RATE_AND_QUEUE[other]}"
                fields.note(f"{name}{key} needs {name}{other}; {example}", fields.line_of(f"{name}{key}"))
                if not one_way:
                    return


# ---- consistency ----------------------------------------------------------------------------


def _given_by_profiles(forward: Direction, back: Direction) -> set[str]:
    """Keys that profiles make unnecessary."""
    return {
        f"{way} {key}"
        for way, profile in (("forward", forward.profile), ("return", back.profile))
        for key in ("rate", "delay")
        if profile and getattr(profile, f"{key}s")
    }


def _require_geometry(link: Fields, scenarios: Collection[str], given: Collection[str]) -> None:
    link.require({"scenario": next(iter(scenarios), "asymmetric-p2p")})
    for key, example in GEOMETRY_EXAMPLES.items():
        ways = [f"forward {key}", f"return {key}"]
        missing = [way for way in ways if way not in link and way not in given]
        if key not in link and missing:
            link.require(dict.fromkeys([key] if missing == ways else missing, example))


def _check_profiles(link: Fields, given: Collection[str]) -> None:
    """Report rates and delays beside a profile that has them."""
    for key in ("rate", "delay"):
        both = {f"forward {key}", f"return {key}"}
        for name in sorted((both & {*given}) | ({key} if both <= {*given} else set())):
            if name in link:
                link.note(f"{name} is given by the profile; leave one of them out.", link.line_of(name))


def _check_scenario(link: Fields, merged: EmulatedLink) -> None:
    """Report keys that the scenario does not support and keys that it lacks."""
    directions = (merged.forward, merged.back)
    for scenario, (key, example) in OWN_KEYS.items():
        word = key.removeprefix("return ")
        found = any(getattr(part, word.replace(" ", "_"), None) for part in (merged, *directions))
        if found and merged.scenario != scenario:
            line = next((link.line_of(each) for each in link if each.endswith(word)), 0)
            link.note(f"{word} needs scenario {scenario}; this is {merged.scenario}.", line)
        elif not found and merged.scenario == scenario:
            link.require({key: example})
    if merged.scenario == "drop-rate" and any(isinstance(each.loss, GilbertElliottLoss) for each in directions):
        link.note("scenario drop-rate loses packets independently; all other scenarios support good and bad states.")
    if merged.scenario == "drop-rate" and not any(each.loss for each in directions):
        link.require({"loss": "{rate: 30 %, longest burst: 3}"})
    if merged.queue_mode is QueueMode.PAPER and not all(isinstance(each.queue, int) for each in directions):
        link.note("queue mode paper needs a queue of so many packets, like queue: 25.", link.line_of("queue mode"))
    if merged.scenario == "simple-p2p":
        for key in GEOMETRY_EXAMPLES:
            if getattr(merged.forward, key) != getattr(merged.back, key):
                link.note(f"scenario simple-p2p has one {key} for both directions; asymmetric-p2p can have two.")
