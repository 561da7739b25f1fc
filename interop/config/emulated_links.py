"""Reads the emulated link of a test case; faults are added to the problems of its fields."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TypeVar

from interop.config.quantities import count, duration, one_of, probability, rate, share, within
from interop.config.yaml_fields import Fields
from interop.model.emulated_link import (
    Blackhole,
    Corruption,
    CorruptionMode,
    CrossTraffic,
    EmulatedLink,
    GilbertElliottLoss,
    LinkDirection,
    Loss,
    QueueMode,
    Rebind,
    TimersFrom,
    UniformLoss,
)

T = TypeVar("T")

LINK_EXAMPLE = "{scenario: simple-p2p, delay: 15 ms, rate: 20 Mbit/s, queue: 25}"
GEOMETRY_EXAMPLES = {"delay": "15 ms", "rate": "20 Mbit/s", "queue": "25"}
"""Keys of a link that may differ by direction and must be there if it extends none -> an example of the value."""
LOSS_EXAMPLES = {"good to bad": "0.017", "bad to good": "0.935"}
OWN_KEYS = {
    "corrupt-rate": ("corruption", "2 %"),
    "droplist": ("return drops", "[2, 3, 4]"),
    "blackhole": ("blackhole", "{on: 5 s, off: 2 s}"),
    "rebind": ("rebind", "{first: 1 s, period: 5 s}"),
    "tcp-cross-traffic": ("cross traffic", "{congestion control: cubic}"),
}
"""Scenario -> the key that only it supports, with an example value."""
PER_WAY = (*GEOMETRY_EXAMPLES, "loss", "corruption", "drops")
LINK_KEYS = (
    "scenario",
    *(f"{way}{key}" for key in PER_WAY for way in ("", "forward ", "return ")),
    "blackhole",
    "rebind",
    "cross traffic",
    "queue mode",
)
WAYS = {"both": LinkDirection.BOTH, "forward": LinkDirection.CLIENT, "return": LinkDirection.SERVER}

_QUEUE_MODE = one_of(mode.value for mode in QueueMode)
_DELAY = within(duration, "0 s", "60 s")
_RATE = within(rate, "1 bit/s", "100 Gbit/s")
_QUEUE = within(count, "1", "1000000")
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
            fields.note(f"link must be a mapping; write for example link: {LINK_EXAMPLE}", fields.line_of("link"))
        return inherited
    link = fields.mapping("link")
    faults = len(fields.problems)
    link.allow_only(LINK_KEYS)
    if whole and base is None:
        _require_geometry(link, scenarios)
    scenario = _or(link.read("scenario", one_of(scenarios)), inherited.scenario)
    merged = _read_impairments(
        link, _read_geometry(link, replace(inherited, scenario=scenario), whole=whole), inherited
    )
    if whole and len(fields.problems) == faults:
        _check_scenario(link, merged)
    return merged


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


# ---- delay, rate, queue, loss ---------------------------------------------------------------


def _require_geometry(link: Fields, scenarios: Collection[str]) -> None:
    link.require({"scenario": next(iter(scenarios), "asymmetric-p2p")})
    for key, example in GEOMETRY_EXAMPLES.items():
        ways = [f"forward {key}", f"return {key}"]
        missing = [way for way in ways if way not in link]
        if key not in link and missing:
            link.require(dict.fromkeys([key] if missing == ways else missing, example))


def _read_geometry(link: Fields, inherited: EmulatedLink, *, whole: bool) -> EmulatedLink:
    forward_delay, return_delay = _both_ways(link, "delay", _DELAY)
    forward_rate, return_rate = _both_ways(link, "rate", _RATE)
    forward_queue, return_queue = _both_ways(link, "queue", _QUEUE)
    forward_loss, return_loss = _read_losses(link, inherited, whole=whole)
    queue_mode = link.read("queue mode", _QUEUE_MODE)
    return replace(
        inherited,
        forward_delay=_or(forward_delay, inherited.forward_delay),
        return_delay=_or(return_delay, inherited.return_delay),
        forward_rate=_or(forward_rate, inherited.forward_rate),
        return_rate=_or(return_rate, inherited.return_rate),
        forward_queue=_or(forward_queue, inherited.forward_queue),
        return_queue=_or(return_queue, inherited.return_queue),
        forward_loss=forward_loss,
        return_loss=return_loss,
        queue_mode=inherited.queue_mode if queue_mode is None else QueueMode(queue_mode),
    )


def _both_ways(link: Fields, key: str, parse: Callable[[str], T]) -> tuple[T | None, T | None]:
    """Forward and return value: that of ``key`` is for both, unless a direction has its own."""
    both, forward, back = (link.read(f"{way}{key}", parse) for way in ("", "forward ", "return "))
    return (both if forward is None else forward), (both if back is None else back)


def _read_losses(link: Fields, inherited: EmulatedLink, *, whole: bool) -> tuple[Loss | None, Loss | None]:
    both, forward, back = (_read_loss(link, f"{way}loss") for way in ("", "forward ", "return "))
    return (
        _merged_loss(link, both if forward is None else forward, inherited.forward_loss, whole=whole),
        _merged_loss(link, both if back is None else back, inherited.return_loss, whole=whole),
    )


@dataclass(frozen=True)
class _PartialLoss:
    """Gilbert-Elliott probabilities; one of them may be inherited."""

    line: int
    good_to_bad: float | None
    bad_to_good: float | None
    missing: tuple[str, ...]


def _read_loss(link: Fields, key: str) -> UniformLoss | _PartialLoss | None:
    if not link.holds_mapping(key):
        rate_of_loss = link.read(key, _SHARE)
        return None if rate_of_loss is None else UniformLoss(rate_of_loss)
    fields = link.mapping(key)
    if "rate" in fields or "longest burst" in fields:
        fields.allow_only(("rate", "longest burst"))
        fields.require({"rate": "30 %"})
        return UniformLoss(_or(fields.read("rate", _SHARE), 0), fields.read("longest burst", _BURST))
    fields.allow_only((*LOSS_EXAMPLES, "rate", "longest burst"))
    good_to_bad, bad_to_good = (fields.read(name, _PROBABILITY) for name in LOSS_EXAMPLES)
    missing = tuple(name for name in LOSS_EXAMPLES if name not in fields)
    return _PartialLoss(fields.line, good_to_bad, bad_to_good, missing)


def _merged_loss(
    link: Fields, loss: UniformLoss | _PartialLoss | None, inherited: Loss | None, *, whole: bool
) -> Loss | None:
    if loss is None:
        return inherited
    if isinstance(loss, UniformLoss):
        return loss if loss.rate > 0 else None
    if isinstance(inherited, GilbertElliottLoss):
        return GilbertElliottLoss(
            _or(loss.good_to_bad, inherited.good_to_bad), _or(loss.bad_to_good, inherited.bad_to_good)
        )
    if whole:
        for name in loss.missing:
            link.note(f'loss lacks "{name}"; write for example {name}: {LOSS_EXAMPLES[name]}', loss.line)
    return GilbertElliottLoss(_or(loss.good_to_bad, 0), _or(loss.bad_to_good, 0))


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
    fields = link.mapping(key)
    fields.allow_only(("rate", "longest burst", "mode"))
    fields.require({"rate": "2 %"})
    return Corruption(
        rate=_or(fields.read("rate", _SHARE), 0),
        longest_burst=fields.read("longest burst", _BURST),
        mode=CorruptionMode(_or(fields.read("mode", _MODE), CorruptionMode.BYTE)),
    )


def _read_blackhole(link: Fields, inherited: Blackhole | None) -> Blackhole | None:
    fields = _own_mapping(link, "blackhole", ("on", "off", "repeat", "direction", "from"))
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
    fields = _own_mapping(link, "rebind", ("first", "period", "address", "from"))
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
    fields = _own_mapping(link, "cross traffic", ("congestion control",))
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
            link.note(f"{key} must be a mapping; write for example {key}: {example}", link.line_of(key))
        return None
    fields = link.mapping(key)
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
