"""Arguments of the ns-3 program for an emulated link, and environment of the simulator's container."""

from __future__ import annotations

from collections.abc import Iterator

from interop.model.emulated_link import (
    Blackhole,
    Corruption,
    CorruptionMode,
    EmulatedLink,
    GilbertElliottLoss,
    Loss,
    Rebind,
    TimersFrom,
    UniformLoss,
)
from interop.model.implementation import Protocol
from interop.model.run import Run
from interop.model.units import MS, PERCENT

CROSS_PORT = 5001
"""TCP port of cross traffic at the client, as in the QUIC Interop Runner."""
ASYMMETRIC = "asymmetric-p2p"
DROP_RATE = "drop-rate"
SERVER_PATIENCE = 10
"""Seconds that the simulator waits for the server's first answer, as in the QUIC Interop Runner."""
SERVER_SILENT = 3
"""The simulator's exit status if the server never answered."""
TIMERS = {TimersFrom.FIRST_PACKET: "first-packet", TimersFrom.START: "start"}


def simulator_environment(run: Run, *, wait_for_server: bool = True) -> dict[str, str]:
    """Environment variables of the simulator's container for ``run``."""
    return {
        "SCENARIO": scenario(run.test_case.emulated, run.seed, run.protocol),
        "WAITFORSERVER": "server:443" if wait_for_server else "",
        "WAITTIMEOUT": str(SERVER_PATIENCE),
    }


def scenario(link: EmulatedLink, seed: int, protocol: Protocol = Protocol.HQ) -> str:
    """Name and arguments of the ns-3 program, as the simulator's environment variable SCENARIO.

    In a run over TCP, TCP packets are lost instead of UDP packets, with the same seed.
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
