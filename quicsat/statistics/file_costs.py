"""What servers need to read the file that a client asks for, from the packets of runs in real time; pure.

A server that reads a whole file before it sends the first byte answers a request for a large file later than one for a
small file, over the same link to the same client. The difference of both times to the first byte after the handshake,
divided by that of the sizes, is the cost of reading. Of a server that reads while it sends, it is about 0.
"""

import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from quicsat.model.clock import Clock
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.test_case import Link
from quicsat.model.units import KIB
from quicsat.statistics.handshake_costs import is_plain


def file_costs(campaigns: Iterable[ResultSet], links: Collection[str]) -> dict[str, float]:
    """Seconds per KiB by server, the median of all clients; without servers that had files of one size only.

    ``links``: names of the test cases that count.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for (server, _, _), answers in _answers(campaigns, links).items():
        small, large = min(answers), max(answers)
        if small < large:
            more = statistics.median(answers[large]) - statistics.median(answers[small])
            found[server].append(more / ((large - small) / KIB))
    return {server: max(statistics.median(costs), 0.0) for server, costs in found.items()}


def _answers(
    campaigns: Iterable[ResultSet], links: Collection[str]
) -> Mapping[tuple[str, str, Link], Mapping[int, list[float]]]:
    """Seconds from the end of the handshake to the first byte, by size of the largest file, of each server, client and
    link."""
    found: dict[tuple[str, str, Link], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for campaign in campaigns:
        cases = {case.name: case for case in campaign.manifest.test_cases if case.name in links and is_plain(case)}
        for result in campaign.results:
            if (case := cases.get(result.test_case)) and (answer := _answer(result)) is not None:
                found[result.server, result.client, case.link][max(case.file_sizes)].append(answer)
    return found


def _answer(result: RunResult) -> float | None:
    if result.verdict.outcome is not Outcome.SUCCEEDED or result.evidence.clock is not Clock.REAL:
        return None
    values = result.measurement.values if result.measurement else {}
    first_byte, handshake = values.get("time_to_first_byte"), values.get("handshake_time")
    return None if first_byte is None or handshake is None else first_byte - handshake
