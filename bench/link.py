"""Measures rate, delay, loss and queue of a testbed against the configured values; `make bench-link`.

python -m bench.link                                        # everything, in real time: on an idle machine
python -m bench.link --clock virtual --cases changing       # some cases, in virtual time: on any machine
"""
# ruff: noqa: T201 - a script

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

from bench.changing_links import changing_links
from bench.disturbances import disciplines, disturbances
from bench.hops import hops
from bench.result_rows import LAG_BAR, Figure, errors_of, exactly, figure, lag, show
from bench.scenarios import scenarios
from bench.script import DAEMON, ROOT, run
from bench.stalls import stalls
from bench.testbed_traffic import (
    PING_SIZE,
    PPP,
    UDP_IPV4,
    UDP_IPV6,
    WAYS,
    Bench,
    Flow,
    Traffic,
    rate_in_trace,
    stream_both_ways,
)
from bench.virtual_traffic import VirtualBench
from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.execution.lock import NONE, Patience, exclusive
from quicsat.execution.reaper import start_reaper
from quicsat.images.pull_or_build import Images, Policy
from quicsat.links.ns3_testbed import Abilities, Ns3Backend, probe
from quicsat.model.clock import Clock
from quicsat.model.emulated_link import Direction, EmulatedLink, QueueMode, UniformLoss
from quicsat.model.real_link import Host
from quicsat.model.units import MBPS, MS, PERCENT

QUEUE = 25
TERRESTRIAL = EmulatedLink.symmetric("simple-p2p", Direction(15 * MS, 20 * MBPS, QUEUE))
SAT = EmulatedLink("asymmetric-p2p", Direction(300 * MS, 20 * MBPS, QUEUE), Direction(300 * MS, 2 * MBPS, QUEUE))
FAST = TERRESTRIAL.with_both(rate=100 * MBPS, queue=1000)
OVERLOAD, NEARLY_FULL = 1.3, 0.95
RATES = (20.0, 50.0)
LADDER = (100.0, 150.0, 200.0, 250.0, 300.0, 350.0, 400.0, 600.0, 800.0, 1000.0)
"""Mbit/s tried beyond those that have a bar, until one is missed: 250 if the machine can, else what it can."""
MOST_BITS = 800 * MBPS
"""Sent over fast links, which bounds the traces of a guest."""
LOSS = UniformLoss(1 * PERCENT)
LOSSY_PACKETS, LOSSY_RATE = 100_000, 10_000
"""Packets per direction and per second."""
BUSY_LOOPS = 3
STALLS = 100

RATE_BAR = 1 * PERCENT
LOSS_BAR = 0.1 * PERCENT


# ---- cases ----------------------------------------------------------------------------------


def nominal_round_trip(link: EmulatedLink, overhead: int) -> float:
    """Propagation and serialisation of a ping in both directions, seconds."""
    bits = (PING_SIZE + overhead + PPP) * 8
    return link.round_trip_delay + bits / link.forward.rate + bits / link.back.rate


def round_trips(bench: Traffic, case: str, link: EmulatedLink, version: int, n: int) -> list[Figure]:
    """Error of the round-trip time on an idle link."""
    seen = bench.ping(link, version, n)
    nominal = nominal_round_trip(link, UDP_IPV4 if version == 4 else UDP_IPV6)
    errors = [(value - nominal) / MS for value in seen.round_trips]
    return [errors_of(case, f"RTT error, nominal {nominal / MS:.3f} ms", errors, n), *lag(case, seen)]


def nearly_full(bench: Traffic, name: str, link: EmulatedLink) -> list[Figure]:
    """A stream at 95 % of the rate, in both directions at once, loses nothing."""
    rates = (link.forward.rate, link.back.rate)
    seen = bench.stream(link, [Flow(way, NEARLY_FULL * rate, 4.0) for way, rate in zip(WAYS, rates, strict=True)])
    lost = [
        exactly(name, f"{way} at 95 %: lost of {flow.sent}", flow.sent - flow.received)
        for way, flow in seen.flows.items()
    ]
    return [*lost, *lag(name, seen)]


def delivered_rate(bench: Traffic, rate: float, *, judged: bool = True) -> tuple[list[Figure], bool]:
    """Rate of the link at 130 % load, from the trace behind it; and whether the simulator kept up.

    The receiver's own figure is lower where the receiver, not the link, loses packets for want of a CPU.
    """
    case = f"rate {rate:.0f} Mbit/s"
    link = TERRESTRIAL.with_both(rate=rate * MBPS, queue=250)
    duration = min(4.0, MOST_BITS / (rate * MBPS))
    seen = bench.stream(link, [Flow("forward", OVERLOAD * rate * MBPS, duration, catch_up=1.0)])
    flow = seen.flows["forward"]
    traced = rate_in_trace(seen.left) / MBPS
    fine = abs(traced / rate - 1) <= RATE_BAR
    bar = "+-1 %" if judged else ""
    figures = [
        figure(case, "in the trace", [traced], "Mbit/s", bar, fine if judged else None),
        figure(case, "by the receiver's clock", [flow.steady_rate / MBPS], "Mbit/s"),
        figure(case, "offered", [flow.sent * flow.wire_bits / flow.duration / MBPS], "Mbit/s"),
    ]
    report = seen.report
    sustained = fine and report.lag_max <= LAG_BAR and report.receive_overflows == 0
    return [*figures, *lag(case, seen, judged=judged)], sustained


def rates(bench: Traffic) -> Iterator[list[Figure]]:
    """Delivered rates that have a bar, and the highest that this machine sustains."""
    highest = 0.0
    for rate in (*RATES, *LADDER):
        figures, sustained = delivered_rate(bench, rate, judged=rate in RATES)
        yield figures
        if sustained:
            highest = rate
        elif rate not in RATES:
            break
    yield [figure("rate", "highest sustained", [highest], "Mbit/s")]


def losses(bench: Traffic, version: int, n: int = LOSSY_PACKETS) -> list[Figure]:
    """1 % loss per direction, both at once."""
    case = f"loss IPv{version}"
    link = FAST.with_both(loss=LOSS)
    seen = stream_both_ways(bench, link, n, per_second=LOSSY_RATE, version=version)
    figures = []
    for way, flow in seen.flows.items():
        share = 1 - flow.received / flow.sent
        # over fewer packets chance alone leaves the bar
        passed = abs(share - LOSS.rate) <= LOSS_BAR if n >= LOSSY_PACKETS else None
        bar = "1.0 +-0.1" if passed is not None else ""
        figures.append(figure(case, f"{way}, {flow.sent} packets", [share / PERCENT], "%", bar, passed))
    return [*figures, *lag(case, seen)]


def repeatable_losses(bench: Traffic) -> list[Figure]:
    """The same packets are lost for the same seed, whatever the rate; others for another seed."""
    link = FAST.with_both(loss=LOSS)
    slow = link.with_both(rate=40 * MBPS)
    n = 20_000
    first = stream_both_ways(bench, link, n, per_second=LOSSY_RATE)
    again = stream_both_ways(bench, slow, n, per_second=LOSSY_RATE / 2)
    other = stream_both_ways(bench, link, n, seed=8, per_second=LOSSY_RATE)
    figures = []
    for way in WAYS:
        lost, repeated, different = (set(seen.flows[way].missing) for seen in (first, again, other))
        case = "loss, seeds"
        figures.append(exactly(case, f"{way}: not lost in both, same seed, half rate", len(lost ^ repeated)))
        common = len(lost & different)
        figures.append(figure(case, f"{way}: lost in both, other seed", [common], "packets", "< 20", common < 20))
    return figures


def queues(bench: Traffic) -> Iterator[list[Figure]]:
    """Packets that the buffer holds, from the longest queueing delay at 130 % load."""
    for link, extra in ((TERRESTRIAL, 1), (SAT.with_both(delay=15 * MS), 100)):
        for mode in QueueMode:
            expected = QUEUE + (extra if mode is QueueMode.PAPER else 0)
            seen = bench.stream(replace(link, queue_mode=mode), [Flow("forward", OVERLOAD * link.forward.rate, 3.0)])
            flow = seen.flows["forward"]
            serialisation = flow.wire_bits / link.forward.rate
            # a packet in the last place waits for all before it, and for the rest of the one on its way
            held = [(delay - link.forward.delay) / serialisation - 1 for delay in flow.delays]
            case = f"queue {link.scenario} {mode.value}"
            passed = expected - 0.5 <= held[2] and held[1] <= expected + 1
            bar = f"{expected} (p95)"
            middle, p95, longest = held[1:]
            buffer = Figure(case, "packets held", flow.received, middle, p95, longest, "packets", bar, passed)
            yield [buffer, *lag(case, seen)]


def contention(bench: Bench, name: str, loops: int) -> list[Figure]:
    """Round trips beside a stream while busy loops want the CPUs."""
    with bench.busy(loops):
        seen = bench.ping(TERRESTRIAL, 4, 200, Flow("forward", 15 * MBPS, 5.0))
    nominal = nominal_round_trip(TERRESTRIAL, UDP_IPV4)
    errors = [(value - nominal) / MS for value in seen.round_trips]
    return [figure(name, "RTT error beside 15 Mbit/s", errors, "ms"), *lag(name, seen, judged=False)]


# ---- the whole ------------------------------------------------------------------------------


def idle(bench: Traffic) -> Iterator[list[Figure]]:
    """Round trips on idle links."""
    for version in (4, 6):
        yield round_trips(bench, f"idle terrestrial IPv{version}", TERRESTRIAL, version, 200)
        yield round_trips(bench, f"idle sat IPv{version}", SAT, version, 200)


def full(bench: Traffic) -> Iterator[list[Figure]]:
    """Links that are all but full."""
    yield nearly_full(bench, "terrestrial", TERRESTRIAL)
    yield nearly_full(bench, "sat", SAT)


def lossy(bench: Traffic) -> Iterator[list[Figure]]:
    """Loss, and that it repeats."""
    yield losses(bench, 4)
    yield losses(bench, 6, 30_000)
    yield repeatable_losses(bench)


def stalled(bench: Bench) -> Iterator[list[Figure]]:
    """Lateness, against stalls of known length."""
    yield stalls(bench, TERRESTRIAL, STALLS, gap=1.0)


CASES: dict[str, Callable[[Traffic], Iterable[list[Figure]]]] = {
    "idle": idle,
    "full": full,
    "queue": queues,
    "loss": lossy,
    "rate": rates,
    "disturbances": disturbances,
    "disciplines": disciplines,
    "changing": changing_links,
    "hops": hops,
}
"""What can be asked for with ``--cases``, with either clock."""
REAL_CASES: dict[str, Callable[[Bench], Iterable[list[Figure]]]] = {"scenarios": scenarios, "stalls": stalled}
"""The same, in real time."""


def contended(open_bench: Callable[[Abilities], Any], abilities: Abilities) -> Iterator[list[Figure]]:
    """With and without real-time priority, with and without busy loops."""
    plain = replace(abilities, realtime_priority=False)
    for name, chosen in (("real-time", abilities), ("no real-time", plain)):
        with open_bench(chosen) as bench:
            for loops in (0, BUSY_LOOPS):
                yield contention(bench, f"{loops} busy loops, {name}", loops)


def steal() -> float:
    """CPU time that the hypervisor gave to others instead, seconds; nothing in this machine can prevent it."""
    return int(Path("/proc/stat").read_text().split()[8]) / os.sysconf("SC_CLK_TCK")


def in_real_time(daemon: Daemon, images: Images, cases: list[str], *, contention: bool) -> Iterator[list[Figure]]:
    """Figures of all cases, and of busy loops with ``contention``."""
    image, gateways = (images.ensure_own(name).reference for name in ("simulator", "link-gateways"))
    abilities = probe(daemon, image)
    numbers = count(1)

    def open_bench(chosen: Abilities) -> Any:
        return Bench.open(daemon, image, Ns3Backend(daemon, image, chosen, gateways=gateways), numbers)

    with open_bench(abilities) as bench:
        for case in cases:
            yield from (CASES | REAL_CASES)[case](bench)
    if contention:
        yield from contended(open_bench, abilities)


def in_virtual_time(daemon: Daemon, images: Images, cases: list[str]) -> Iterator[list[Figure]]:
    """Figures of all cases."""
    ids = {name: images.ensure_own(name).id for name in ("simulator", "virtual-time", "link-gateways")}
    with VirtualBench.open(daemon, ids) as bench:
        for case in cases:
            yield from CASES[case](bench)


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--contention", action="store_true", help="also with busy loops and without real-time priority")
    parser.add_argument("--wait", action="store_true", help="wait until no campaign is under way")
    parser.add_argument("--clock", type=Clock, choices=list(Clock), default=Clock.REAL, help="(default: real)")
    known = [*CASES, *REAL_CASES]
    parser.add_argument("--cases", nargs="*", choices=known, help="(default: all that the clock allows)")
    options = parser.parse_args()
    allowed = known if options.clock is Clock.REAL else [*CASES]
    options.cases = allowed if options.cases is None else options.cases
    if options.clock is Clock.VIRTUAL and (options.contention or set(options.cases) - {*allowed}):
        parser.error(f"--contention and {', '.join(REAL_CASES)} need --clock real")
    return options


def main() -> int:
    """Exit status: 0 all bars held, 1 one was missed, 3 the machine lacks something, 75 a campaign is under way."""
    options = read_options()
    daemon = Daemon(DAEMON, f"bench-{os.getpid()}")
    images = Images(DaemonImages(daemon), ROOT, Policy.AUTO, lambda text: print(text, flush=True))
    figures: list[Figure] = []
    begin, load, stolen = time.monotonic(), os.getloadavg()[0], steal()
    patience = Patience(inf, print) if options.wait else NONE
    with exclusive(daemon.id, "bench/link.py", patience), start_reaper([Host("", daemon.url)], daemon.campaign):
        if options.clock is Clock.VIRTUAL:
            measured = in_virtual_time(daemon, images, options.cases)
        else:
            measured = in_real_time(daemon, images, options.cases, contention=options.contention)
        for some in measured:
            show(some)
            figures += some
    missed = sum(one.passed is False for one in figures)
    judged = sum(one.passed is not None for one in figures)
    duration = time.monotonic() - begin
    stolen = steal() - stolen
    print(f"{missed} of {judged} bars missed; {duration:.0f} s; load before {load:.1f}; CPU time stolen {stolen:.2f} s")
    if options.json:
        document = {
            "clock": options.clock,
            "load_before": load,
            "seconds": duration,
            "stolen": stolen,
            "figures": [asdict(one) for one in figures],
        }
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    run(main)
