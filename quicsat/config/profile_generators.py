"""Makes link profiles of satellite links: low and medium earth orbit, and rain fade with adaptive coding.

docs/guide/links.md names the source of each number. The same parameters give the same profile with every version of
Python: only ``random.Random.random`` is used.
"""

import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from quicsat.config.profile_files import LONGEST, MOST_STEPS
from quicsat.config.quantities import count, duration, level, rate, share, slope, within
from quicsat.config.yaml_fields import Fields
from quicsat.model.emulated_link import Profile
from quicsat.model.text import quoted

_ROUND_TRIP = within(duration, "1 ms", "60 s")
_RATE = within(rate, "1 bit/s", "100 Gbit/s")
_TIME = within(duration, "0 s", "1 h")
_SPAN = within(duration, "1 ms", "1 h")
_SHARE = within(share, "0 %", "100 %")
_SEED = within(count, "1", "4294967295")
_LEVEL = within(level, "0 dB", "60 dB")
_SLOPE = within(slope, "0.001 dB/s", "60 dB/s")

MODCODS = (
    (-2.35, 0.490243), (-1.24, 0.656448), (-0.30, 0.789412), (1.00, 0.988858), (2.23, 1.188304), (3.10, 1.322253),
    (4.03, 1.487473), (4.68, 1.587196), (5.18, 1.654663), (6.20, 1.766451), (6.62, 1.980636), (7.91, 2.228124),
    (8.97, 2.637201), (10.21, 2.966728), (11.03, 3.165623), (11.61, 3.300184), (12.73, 3.703295), (13.64, 3.951571),
    (14.28, 4.119540), (15.69, 4.397854), (16.05, 4.453027),
)  # fmt: skip
"""Modulation and coding of DVB-S2 (EN 302 307-1, table 13): needed Es/N0 in dB, and bits per symbol; without those that
carry less than another one that needs no more."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a generator: how it is read, and its default in SI base units."""

    parse: Callable[[str], float]
    default: float | tuple[float, float]
    """Two values: lowest and highest."""


@dataclass(frozen=True)
class Generator:
    """A kind of profile."""

    make: Callable[[Mapping[str, float], Mapping[str, tuple[float, float]], int], Profile]
    """Makes it from its parameters, its ranges and its seed."""
    parameters: Mapping[str, Parameter]


def generate(name: str, fields: Fields) -> Profile | None:
    """The profile of a generator with the parameters in ``fields``; None if they have a fault, which is noted."""
    generator = GENERATORS[name]
    values: dict[str, float] = {}
    ranges: dict[str, tuple[float, float]] = {}
    faults = len(fields.problems)
    fields.allow_only((*generator.parameters, "seed"))
    seed = fields.read("seed", _SEED) or 1
    for key, parameter in generator.parameters.items():
        if isinstance(parameter.default, tuple):
            ranges[key] = _range(fields, key, parameter.parse, parameter.default)
        else:
            read = fields.read(key, parameter.parse)
            values[key] = parameter.default if read is None else read
    if len(fields.problems) > faults:
        return None
    try:
        return generator.make(values, ranges, seed)
    except ValueError as fault:
        fields.note(f"{name}: {fault}")
        return None


def _range(
    fields: Fields, key: str, parse: Callable[[str], float], default: tuple[float, float]
) -> tuple[float, float]:
    """Lowest and highest of a list of two; a single value is both."""
    faults = len(fields.problems)
    read = fields.read_list(key, parse)
    if read is None or len(fields.problems) > faults:
        return default
    if len(read) > 2 or read[0] > read[-1]:
        shown = quoted(fields.in_words(key))
        fields.note(f"{key} {shown} must be one value, or the lowest and then the highest.", fields.line_of(key))
        return default
    return read[0], read[-1]


def _grid(length: float, step: float, marks: Iterable[float] = ()) -> list[float]:
    """Times from 0 until ``length``, ``step`` apart, and the ``marks`` among them, in whole milliseconds."""
    every = {round(1000 * step * index) for index in range(math.ceil(length / step - 1e-9))}
    last = round(1000 * length)
    times = sorted({time for time in every | {round(1000 * mark) for mark in marks} if time < last})
    if max(len(every), len(times)) > MOST_STEPS:
        raise ValueError(f"more than {MOST_STEPS} steps; choose a longer step or a shorter length.")
    return [time / 1000 for time in times]


def _between(limits: tuple[float, float], share_of_range: float) -> float:
    return limits[0] + (limits[1] - limits[0]) * share_of_range


# ---- low earth orbit ------------------------------------------------------------------------


def _leo(values: Mapping[str, float], ranges: Mapping[str, tuple[float, float]], seed: int) -> Profile:
    """Between handovers, the delay goes from one value to another, and the rate is constant."""
    every, step, length = values["handover"], values["step"], values["length"]
    outage, burst = values["outage"], values["burst"]
    if outage + burst >= every:
        raise ValueError("outage and burst together must be shorter than the time between handovers.")
    passes = math.ceil(length / every - 1e-9)
    length = passes * every
    if length > LONGEST:
        raise ValueError("the length, in whole handovers, must be at most 1 h.")
    marks = [index * every + mark for index in range(passes) for mark in (0.0, outage, outage + burst)]
    times = _grid(length, step, marks)
    delays_random, rates_random = random.Random(f"leo delay {seed}"), random.Random(f"leo rate {seed}")
    ends = [(delays_random.random(), delays_random.random()) for _ in range(passes)]
    drawn = [_between(ranges["rate"], rates_random.random()) for _ in range(passes)]
    rates, delays, losses = list[float](), list[float](), list[float]()
    for time in times:
        index = min(int((time + 5e-4) // every), passes - 1)
        since = time - index * every
        first, last = (_between(ranges["round trip"], end) / 2 for end in ends[index])
        delays.append(first + (last - first) * since / every)
        rates.append(0.0 if since < outage - 5e-4 else float(round(drawn[index])))
        losses.append(values["burst loss"] if outage - 5e-4 <= since < outage + burst - 5e-4 else 0.0)
    return _columns(length, times, rates, delays, losses)


# ---- medium earth orbit ---------------------------------------------------------------------


def _meo(values: Mapping[str, float], ranges: Mapping[str, tuple[float, float]], seed: int) -> Profile:
    """During a pass, the round trip falls to its shortest, when the satellite is highest, and rises again."""
    length, step, outage = values["pass"], values["step"], values["outage"]
    if outage >= length:
        raise ValueError("the outage must be shorter than the pass.")
    times = _grid(length, step, [outage])
    shortest, longest = ranges["round trip"]
    drawn = float(round(_between(ranges["rate"], random.Random(f"meo rate {seed}").random())))
    delays = [(shortest + (longest - shortest) * (2 * time / length - 1) ** 2) / 2 for time in times]
    rates = [0.0 if time < outage - 5e-4 else drawn for time in times]
    return _columns(length, times, rates, delays, [])


# ---- geostationary orbit in rain ------------------------------------------------------------


def _fade(values: Mapping[str, float], ranges: Mapping[str, tuple[float, float]], seed: int) -> Profile:
    """Attenuation rises, stays and falls; the sender follows with the most efficient code that it believes to hold."""
    length, step = values["length"], values["step"]
    depth, hold, slope_of_fade = values["depth"], values["hold"], values["slope"]
    ramp = depth / slope_of_fade
    if 2 * ramp + hold > length:
        raise ValueError(f"the fade takes {2 * ramp + hold:g} s, longer than the length.")
    begin = (length - 2 * ramp - hold) / 2
    noise = random.Random(f"fade {seed}")
    times = _grid(length, step)
    # a sum of twelve numbers is close enough to a normal distribution
    ripple = [values["scintillation"] * (math.fsum(noise.random() for _ in range(12)) - 6) for _ in times]

    def attenuation(time: float) -> float:
        return min(max(min(time - begin, length - begin - time) * slope_of_fade, 0.0), depth)

    clear = values["clear sky"]
    levels = [clear - attenuation(time) + each for time, each in zip(times, ripple, strict=True)]
    lag = math.ceil(values["loop delay"] / step - 1e-9)
    best = clear - values["margin"]
    rates, losses = list[float](), list[float]()
    for index, now in enumerate(levels):
        needed, efficiency = _modcod(min(levels[index - lag] - values["margin"], best))
        rates.append(float(round(values["rate"] * efficiency / _modcod(best)[1])))
        losses.append(1.0 if now < needed else 0.0)
    return _columns(length, times, rates, [], losses)


def _modcod(at_most: float) -> tuple[float, float]:
    """The most efficient code that needs no more Es/N0, or the most robust one."""
    return max((each for each in MODCODS if each[0] <= at_most), default=MODCODS[0])


# ---- all ------------------------------------------------------------------------------------


def _columns(
    length: float, times: list[float], rates: list[float], delays: list[float], losses: list[float]
) -> Profile:
    """Without steps that change nothing, and without losses that are all 0."""
    columns = [column for column in (rates, delays, losses) if column]
    kept = [
        index for index in range(len(times)) if index == 0 or any(each[index] != each[index - 1] for each in columns)
    ]
    picked = [tuple(column[index] for index in kept) if any(column) else () for column in (rates, delays, losses)]
    return Profile("", length, tuple(times[index] for index in kept), picked[0], picked[1], picked[2])


GENERATORS: Mapping[str, Generator] = {
    "leo": Generator(
        _leo,
        {
            "rate": Parameter(_RATE, (50e6, 150e6)),
            "round trip": Parameter(_ROUND_TRIP, (0.020, 0.060)),
            "handover": Parameter(_SPAN, 15.0),
            "outage": Parameter(_TIME, 0.140),
            "burst": Parameter(_TIME, 0.0),
            "burst loss": Parameter(_SHARE, 0.5),
            "step": Parameter(_SPAN, 0.1),
            "length": Parameter(_SPAN, 300.0),
        },
    ),
    "meo": Generator(
        _meo,
        {
            "rate": Parameter(_RATE, (50e6, 50e6)),
            "round trip": Parameter(_ROUND_TRIP, (0.108, 0.159)),
            "pass": Parameter(_SPAN, 1800.0),
            "outage": Parameter(_TIME, 0.0),
            "step": Parameter(_SPAN, 1.0),
        },
    ),
    "fade": Generator(
        _fade,
        {
            "rate": Parameter(_RATE, 20e6),
            "clear sky": Parameter(_LEVEL, 14.0),
            "margin": Parameter(_LEVEL, 0.7),
            "depth": Parameter(_LEVEL, 12.0),
            "slope": Parameter(_SLOPE, 0.5),
            "hold": Parameter(_TIME, 20.0),
            "scintillation": Parameter(_LEVEL, 0.2),
            "loop delay": Parameter(_TIME, 1.0),
            "step": Parameter(_SPAN, 0.5),
            "length": Parameter(_SPAN, 90.0),
        },
    ),
}
"""By the name that a test case uses."""
