"""Checks that the simulator reports its lateness: stops it for known times; part of `make bench-link`."""

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from bench.result_rows import NAN, Figure, exactly, figure
from bench.testbed_traffic import Bench, Flow, Seen
from quicsat.links.simulator_report import Stall
from quicsat.model.arrays import Floats
from quicsat.model.emulated_link import EmulatedLink, Interval
from quicsat.model.units import MS
from quicsat.traces.packet_matching import match_packets
from quicsat.traces.pcap import check

LENGTH = 15 * MS
"""Of a stall, seconds: half as much again as a frame may be late at short round trips."""
SIZE, PER_SECOND = 100, 2000
"""Bytes of payload and packets per second of the stream: one packet is due every 0.5 ms."""
TOLERANCE = 2 * MS
"""Time from a signal to its effect, and from there until the next packet is due."""
MARGIN = 1 * MS
"""Around the times between which a packet must be due to be late for sure."""
LEAD = 1.0
"""Seconds of the stream before the first stall and after the last one."""


def stalls(bench: Bench, link: EmulatedLink, n: int, gap: float = 0.25, seed: int = 1) -> list[Figure]:
    """Stop the simulator ``n`` times, with at least ``gap`` seconds in between, at random phases."""
    random = Random(seed)
    plan = [(gap + random.uniform(0, 0.05) + (LEAD if number == 0 else 0), LENGTH) for number in range(n)]
    duration = 2 * LEAD + sum(wait + length for wait, length in plan) * 1.1
    flow = Flow("forward", 0.0, duration, SIZE)
    flow = Flow("forward", PER_SECOND * flow.wire_bits, duration, SIZE)
    seen, stopped = bench.stalled(link, flow, plan)
    return [*_found(seen, stopped), *_agreement(seen)]


def _found(seen: Seen, stopped: Sequence[Interval]) -> list[Figure]:
    """How many of the stalls the report tells of, by the lateness of frames and by the tick that looks at the clock."""
    told: dict[str, Any] = json.loads((seen.left.parent / "link.json").read_text())
    reported = [Stall(*stall) for stall in told["lateness"]["stalls"]]
    bound = told["lateness"]["bound"]
    all_stops, due = stopped, _due(seen)
    stopped = [stop for stop in all_stops if _harmful(due, stop, bound)]
    found = [[one for one in reported if _overlap(one, stop) > 0] for stop in stopped]
    missed = [stop for stop, ones in zip(stopped, found, strict=True) if not ones]
    errors = [
        (max(one.maximum for one in ones) - _longest_wait(due, stop)) / MS
        for stop, ones in zip(stopped, found, strict=True)
        if ones
    ]
    off = sum(all(_overlap(one, stop) <= 0 for stop in stopped) for one in reported)
    ticks = [lag > bound for lag in told["lag"]["max_per_second"]]
    seconds = {int(stop.begin - told["started"]) for stop in stopped}
    by_tick = sum(ticks[second] for second in seconds)
    case = f"stalls of {LENGTH / MS:.0f} ms"
    whole = min(errors, default=-LENGTH) >= -TOLERANCE / MS
    judged = len(stopped) >= len(all_stops) / 2
    return [
        figure(case, f"stalls with a packet due, of {len(all_stops)}", [len(stopped)], "stalls", ">= half", judged),
        exactly(case, f"stalls not found, of {len(stopped)}", len(missed), unit="stalls"),
        figure(
            case, "lateness less the wait of the first packet due", errors, "ms", f"min >= -{TOLERANCE / MS:.0f}", whole
        ),
        figure(case, "stalls that were not ours", [off], "stalls"),
        figure(case, f"seconds with a stall, of {len(seconds)}, that the 100 Hz tick found", [by_tick], "seconds"),
    ]


def _due(seen: Seen) -> Floats:
    """When packets were due, by the kernel's time of their arrival at the simulator and the link's delay."""
    left, right = check(seen.left).datagrams, check(seen.right).datagrams
    matches = match_packets(right, left, forward=True)
    return right.epoch + right.time[matches.sent] + float(matches.delay[matches.arrived >= 0].min())


def _harmful(due: Floats, stop: Interval, bound: float) -> bool:
    """Whether a packet was due so early in a stall that it left too late: on a busy machine the sender stalls, too."""
    return bool(((due > stop.begin + MARGIN) & (due < stop.end - bound - MARGIN)).any())


def _longest_wait(due: Floats, stop: Interval) -> float:
    """Seconds from the time when the first packet of a stall is due until its end; a busy sender may send it late."""
    return stop.end - float(due[due > stop.begin].min())


def _overlap(one: Stall, stop: Interval) -> float:
    return min(one.end, stop.end) - max(one.begin, stop.begin)


def _agreement(seen: Seen) -> list[Figure]:
    """What receiver, traces and report say of the largest delay; none of them knows of the others."""
    lateness = seen.report.lateness
    most_late = lateness.maximum if lateness else NAN
    flow = seen.flows["forward"]
    least, most = flow.delays[0], flow.delays[3]
    left, right = check(seen.left), check(seen.right)
    matches = match_packets(right.datagrams, left.datagrams, forward=True)
    delay = matches.delay[matches.arrived >= 0]
    case = f"stalls of {LENGTH / MS:.0f} ms"
    values = {"receiver": most - least, "traces": float(delay.max() - delay.min()), "report": most_late}
    spread = (max(values.values()) - min(values.values())) / MS
    words = ", ".join(f"{name} {value / MS:.2f}" for name, value in values.items())
    sound = [str(one.condition) for one in (left, right) if one.condition != "ok"]
    return [
        figure(case, f"largest lateness: {words}", [spread], "ms", "within 1", spread <= 1),
        exactly(case, "traces that cannot be read", len(sound), unit="traces"),
        exactly(case, "packets lost", flow.sent - flow.received),
    ]
