"""Synthetic campaigns of any size, always the same for a seed, in which servers and clients matter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from quicsat.model.emulated_link import UniformLoss
from quicsat.model.implementation import CongestionControl
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ImageFacts, Measurement, ObjectTimes, ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.time_shares import TimeShare
from quicsat.model.units import MBPS
from quicsat.model.workload import ObjectType, RequestOrder, Workload
from tests.results_builder import SAT, SATLOSS, result_set, run_result

TERRESTRIAL = replace(
    SAT, name="terrestrial", abbreviation="T", description="10 MiB over a terrestrial link",
    link=replace(SAT.emulated.with_both(delay=0.015).with_back(rate=20 * MBPS), scenario="simple-p2p"),
    timeout=60.0,
)  # fmt: skip
SMALL = replace(
    SAT, name="small", abbreviation="SMALL", description="100 KiB over the satellite", file_sizes=(102_400,)
)
PAGE = replace(
    SAT, name="sat+page", abbreviation="SAT-PG", description="A page over the satellite",
    file_sizes=(18_000, 5000, 5000, 20_000, 20_000, 20_000),
    workload=Workload(
        "page", RequestOrder.ORDERED, (0, 1, 1, 1, 1, 4),
        (ObjectType.HTML, ObjectType.CSS, ObjectType.CSS, ObjectType.IMAGE, ObjectType.IMAGE, ObjectType.IMAGE),
    ),
)  # fmt: skip
LOSSES = tuple(
    replace(
        SAT, name=f"loss-{rate:g}", abbreviation=f"L{rate:g}", description=f"{rate:%} loss",
        link=SAT.emulated.with_both(loss=UniformLoss(rate)),
    )
    for rate in (0.0001, 0.001)
)  # fmt: skip
NAMES = (
    "quic-go", "aioquic", "picoquic", "quiche", "ngtcp2", "lsquic", "msquic", "mvfst", "xquic", "neqo", "kwik",
    "quicly", "quinn", "s2n-quic", "nginx", "haproxy",
)  # fmt: skip
CONTROLS = {
    "quic-go": "newreno", "aioquic": "reno", "picoquic": "bbr", "quiche": "cubic", "ngtcp2": "cubic", "lsquic": "bbr",
    "msquic": "cubic", "mvfst": "bbr", "xquic": "bbr", "neqo": "newreno", "kwik": "newreno", "quicly": "reno",
}  # fmt: skip
LEVEL = {"terrestrial": 0.75, "sat": 0.28, "satloss": 0.06, "small": 0.05, "loss-0.0001": 0.22, "loss-0.001": 0.13}


@dataclass(frozen=True)
class Shape:
    """What a synthetic campaign is like."""

    servers: tuple[str, ...] = NAMES[:12]
    clients: tuple[str, ...] = NAMES[:12]
    test_cases: tuple[TestCase, ...] = (TERRESTRIAL, SAT, SATLOSS)
    repetitions: int = 10
    spread: float = 0.1
    """Standard deviation of the repetitions, share of the pair's mean."""
    failing: float = 0.06
    """Share of the pairs that fail or time out, half of them always."""
    seed: int = 1
    noise_seed: int | None = None
    """Of the repetitions, where it shall differ from that of the pairs."""
    started: str = "2026-11-21T06:00:00Z"
    factors: Mapping[tuple[str, str], float] | None = None
    """(server, client) -> what their goodput is multiplied with."""
    images: Mapping[str, str] | None = None
    """Implementation -> digest of its image."""


def campaign(shape: Shape | None = None) -> ResultSet:
    """All its results."""
    made = shape or Shape()
    pairs, noise = np.random.default_rng(made.seed), np.random.default_rng((made.noise_seed or 0, made.seed))
    skill = {name: float(pairs.uniform(0.5, 1.25)) for name in dict.fromkeys((*NAMES, *made.servers, *made.clients))}
    results = [
        result
        for case in made.test_cases
        for client in made.clients
        for server in made.servers
        for result in _pair(made, case, server, client, _level(case, server, client, skill, pairs), (pairs, noise))
    ]
    found = result_set(results, servers=made.servers, clients=made.clients, test_cases=made.test_cases,
                       repetitions=made.repetitions)  # fmt: skip
    known = tuple(
        replace(each, congestion_control=CongestionControl(CONTROLS.get(each.name)))
        for each in found.manifest.implementations
    )
    images = {name: ImageFacts(f"example/{name}", digest) for name, digest in (made.images or {}).items()}
    manifest = replace(found.manifest, implementations=known, started=made.started, id=made.started, images=images)
    return replace(found, manifest=manifest)


def _level(case: TestCase, server: str, client: str, skill: Mapping[str, float], pairs: np.random.Generator) -> float:
    """Mean efficiency of a pair: mostly the server's doing; algorithms that keep up with loss gain there."""
    level = LEVEL.get(case.name, 0.3) * skill[server] * (0.7 + 0.3 * skill[client]) * float(pairs.uniform(0.85, 1.15))
    if case.emulated.forward.loss is not None and CONTROLS.get(server) in ("bbr", "cubic"):
        level *= 6 if CONTROLS[server] == "bbr" else 2.5
    return min(level, 0.95)


def _pair(
    made: Shape,
    case: TestCase,
    server: str,
    client: str,
    level: float,
    sources: tuple[np.random.Generator, np.random.Generator],
) -> Sequence[RunResult]:
    pairs, noise = sources
    pair_outcome, share = float(pairs.uniform()), float(pairs.choice([1.0, 0.3]))
    bad = Outcome.TIMEOUT if float(pairs.uniform()) < 0.5 else Outcome.FAILED
    level *= (made.factors or {}).get((server, client), 1.0)
    found: list[RunResult] = []
    for repetition in range(1, made.repetitions + 1):
        factor, luck = float(noise.normal(1, made.spread)), float(noise.uniform())
        failed = pair_outcome < made.failing and luck < share
        rate = None if failed else float(np.clip(level * factor, 0.001, 0.98)) * case.link.forward.rate
        result = run_result(
            rate, server=server, client=client, test_case=case.name, repetition=repetition,
            outcome=bad if failed else None, forward_rate=case.link.forward.rate,
        )  # fmt: skip
        found.append(_dated(made, case, result, len(found), rate))
    return found


def _dated(made: Shape, case: TestCase, result: RunResult, number: int, rate: float | None) -> RunResult:
    """At its hour, one repetition each half hour, and with a completion time."""
    moment = datetime.fromisoformat(made.started).astimezone(UTC) + timedelta(minutes=31 * number)
    evidence = replace(result.evidence, started=moment.strftime("%Y-%m-%dT%H:%M:%SZ"))
    if result.measurement is None or rate is None:
        return replace(result, evidence=evidence)
    time = 8 * case.total_size / rate + 3 * case.link.round_trip_delay
    shares = {share.metric: time * (place + 1) / 105 for place, share in enumerate(TimeShare)}
    numbers = Measurement(
        {**result.measurement.values, **shares, "completion_time": time}, objects=_objects(case, rate)
    )
    return replace(result, evidence=evidence, measurement=numbers)


def _objects(case: TestCase, rate: float) -> tuple[ObjectTimes, ...]:
    """Of a page: each takes a round trip and its share of ``rate``, bit/s, from the end of the one before it."""
    if case.workload is None:
        return ()
    found: list[ObjectTimes] = []
    rows = zip(case.file_sizes, case.workload.types, case.workload.after, strict=True)
    for size, kind, after in rows:
        asked = found[after - 1].finished if after else 0.6
        first = asked + case.link.round_trip_delay
        found.append(ObjectTimes(size, kind, asked, first, first + 8 * size / rate, 0.0))
    return tuple(found)
