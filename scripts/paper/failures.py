"""Runs that did not succeed, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from interop.model.outcomes import Outcome
from interop.model.results import ResultSet
from interop.report.table import Column, Table, Unit
from scripts.paper.markdown import rendered

LOST = (Outcome.FAILED, Outcome.TIMEOUT)


EXAMINED: Mapping[tuple[str, str], str] = {
    ("nginx", "quinn"): (
        "nginx with quinn: quinn closes a connection if too many parts of a stream are missing. After slow start, the "
        "queue drops many packets of nginx."
    ),
    ("haproxy", "quinn"): (
        "haproxy with quinn: haproxy gives up the connection without a CONNECTION_CLOSE, and answers with stateless "
        "resets from then on. It does so at its timeout for idle clients, although quinn sends acknowledgements. Other "
        "clients of haproxy take longer and succeed. The cause is unknown."
    ),
    ("kwik", "kwik"): (
        "kwik with kwik: the server sends at a constant low rate until the time limit, as with other clients. Without "
        "a key log, the traces do not show more."
    ),
}
"""What the traces of pairs show, beyond the reasons in the results, by server and client."""


def not_successful(results: ResultSet) -> Table:
    """Runs that did not succeed, one row for those with the same reason."""
    columns = (Column("test case"), Column("outcome"), Column("reason"), Column("runs", Unit.COUNT), Column("pairs"))
    groups: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for each in results.results:
        if each.verdict.outcome is not Outcome.SUCCEEDED:
            reason = without_numbers(each.verdict.reason)
            groups.setdefault((each.test_case, each.verdict.outcome.value, reason), []).append(
                (each.server, each.client)
            )
    rows = [(*group, len(pairs), named(pairs, results.manifest.clients)) for group, pairs in groups.items()]
    note = "Pairs are named as server with client. Reasons that differ only in numbers are the same here."
    return Table("failures", "Runs without success", columns, tuple(rows), (note,))


def without_numbers(reason: str) -> str:
    """A reason with ``N`` in place of each number or list of numbers, so that equal reasons can be counted."""
    return re.sub(r"N(, N)+( and N more)?", "N", re.sub(r"\d+(\.\d+)?", "N", reason))


def named(pairs: Sequence[tuple[str, str]], clients: Sequence[str]) -> str:
    """Servers and clients in words, by server."""
    by_server: dict[str, list[str]] = {}
    for server, client in dict.fromkeys(pairs):
        by_server.setdefault(server, []).append(client)
    return "; ".join(
        f"{server} with {'all clients' if set(them) == set(clients) else ', '.join(them)}"
        for server, them in by_server.items()
    )


def failures(results: ResultSet) -> Iterator[str]:
    """How many runs succeeded, and the reasons of the others."""
    outcomes = Counter(each.verdict.outcome for each in results.results)
    excluded = sum(each.attempt - 1 for each in results.results)
    yield (
        f"Of {len(results.results)} runs, {outcomes[Outcome.SUCCEEDED]} succeeded "
        f"({100 * outcomes[Outcome.SUCCEEDED] / len(results.results):.1f} %). quicsat repeated {excluded} attempts."
    )
    yield ""
    yield from rendered(not_successful(results))
    unsuccessful = {(each.server, each.client) for each in results.results if each.verdict.outcome in LOST}
    yield from (f"- {text}" for pair, text in EXAMINED.items() if pair in unsuccessful)
