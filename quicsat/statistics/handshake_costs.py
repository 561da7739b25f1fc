"""How long implementations compute for a handshake, from the packets of runs in real time; pure.

An endpoint computes for its handshake while its partner waits. What a handshake takes beyond what the link needs is
therefore the sum of the times of client and server. The times that explain the sums of all pairs best are those of the
endpoints. Only sums are known, so one number is open, the share of clients and servers: endpoints whose times are known
already decide it; without them, the median of the clients is that of the servers.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from quicsat.model.clock import Clock
from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.implementation import Role
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.test_case import TestCase

INITIAL = 1200
"""Bytes of the smallest datagrams in which client and server begin a handshake (RFC 9000, section 14.1)."""
RESOLUTION = 0.1e-3
"""Seconds below which errors of sums count like this one."""
STEPS = 50
"""Repetitions of the weighted fit: more do not change the times by a microsecond."""

Endpoint = tuple[str, Role]
Pair = tuple[Endpoint, Endpoint]


def handshake_costs(
    campaigns: Iterable[ResultSet], links: Collection[str], known: Mapping[Endpoint, float]
) -> dict[Endpoint, float]:
    """Seconds of each endpoint that takes part in a run with a handshake.

    ``links``: names of the test cases that count; ``known``: the seconds that are known already.

    Of each pair counts the test case with the smallest median: all that disturbs a handshake makes it longer. The times
    have the smallest sum of absolute errors (by weighted least squares), so that a pair that disagrees counts little.
    """
    sums = _sums(campaigns, links)
    found: dict[Endpoint, float] = {}
    for group in _connected(sums):
        times = _fitted({pair: measured for pair, measured in sums.items() if pair[0] in group})
        shift = _shift(times, {each: known[each] for each in times if each in known})
        found |= {each: max(time + (shift if each[1] is Role.SERVER else -shift), 0.0) for each, time in times.items()}
    return found


def _connected(sums: Iterable[Pair]) -> list[set[Endpoint]]:
    """Endpoints that took part in runs with each other, directly or through others."""
    groups: list[set[Endpoint]] = []
    for pair in sums:
        joined = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in joined] + [set(pair).union(*joined)]
    return groups


def _fitted(sums: Mapping[Pair, float]) -> dict[Endpoint, float]:
    """Times with the smallest absolute errors; a number could be added for all servers, and subtracted for clients."""
    endpoints = list(dict.fromkeys(endpoint for pair in sums for endpoint in pair))
    pairs = np.array([[endpoint in pair for endpoint in endpoints] for pair in sums], dtype=np.float64)
    measured = np.array(list(sums.values()))
    times, weights = np.zeros(len(endpoints)), np.ones(len(sums))
    for _ in range(STEPS):
        times[:] = np.linalg.lstsq(pairs * weights[:, None], measured * weights, rcond=None)[0]
        weights[:] = np.sqrt(RESOLUTION / np.maximum(np.abs(pairs @ times - measured), RESOLUTION))
    return dict(zip(endpoints, times.tolist(), strict=True))


def _shift(times: Mapping[Endpoint, float], known: Mapping[Endpoint, float]) -> float:
    """What is to be added for servers, and subtracted for clients."""
    if known:
        errors = [known[each] - times[each] for each in known]
        return float(
            np.median(
                [error if role is Role.SERVER else -error for (_, role), error in zip(known, errors, strict=True)]
            )
        )
    servers, clients = ([time for (_, of), time in times.items() if of is role] for role in (Role.SERVER, Role.CLIENT))
    return float(np.median(clients) - np.median(servers)) / 2


def _sums(campaigns: Iterable[ResultSet], links: Collection[str]) -> dict[Pair, float]:
    """Seconds that handshakes of a server and a client take beyond what the link needs."""
    found: dict[Pair, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for campaign in campaigns:
        cases = {case.name: case for case in campaign.manifest.test_cases if case.name in links and is_plain(case)}
        for result in campaign.results:
            if result.test_case in cases and (beyond := _beyond_link(result, cases[result.test_case])) is not None:
                pair = (result.server, Role.SERVER), (result.client, Role.CLIENT)
                found[pair][result.test_case].append(beyond)
    return {pair: min(float(np.median(each)) for each in cases.values()) for pair, cases in found.items()}


def is_plain(case: TestCase) -> bool:
    """Whether it is a transfer over an emulated link without gateways, by one client."""
    simple = isinstance(case.link, EmulatedLink) and not case.link.has_gateways
    return simple and not case.functional and not case.flows


def _beyond_link(result: RunResult, case: TestCase) -> float | None:
    if result.verdict.outcome is not Outcome.SUCCEEDED or result.evidence.clock is not Clock.REAL:
        return None
    duration = result.measurement.values.get("handshake_time") if result.measurement else None
    link = case.emulated
    if duration is None or not link.forward.rate or not link.back.rate:
        return None
    least = link.round_trip_delay + 8 * INITIAL * (1 / link.forward.rate + 1 / link.back.rate)
    return max(duration - least, 0.0)
