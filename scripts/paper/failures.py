"""Runs that did not succeed, and why."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.report.table import Column, Table, Unit
from scripts.paper.goodput import arrived, known, of_case
from scripts.paper.lines import rendered

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


def unfinished(results: ResultSet) -> Table:
    """What had arrived in runs that timed out, beside the successful runs of the same server, by test case."""
    columns = (
        Column("test case"), Column("server"), Column("timed out", Unit.COUNT), Column("arrived", Unit.SHARE, 0),
        Column("goodput, timed out", Unit.RATE), Column("succeeded", Unit.COUNT),
        Column("goodput, succeeded", Unit.RATE),
    )  # fmt: skip
    rows = []
    for case in results.manifest.test_cases:
        for server in results.manifest.servers:
            mine = [run for run in of_case(results, case) if run.server == server]
            late = [run for run in mine if run.verdict.outcome is Outcome.TIMEOUT]
            good = [run for run in mine if run.verdict.outcome is Outcome.SUCCEEDED]
            files = [arrived(run) / sum(case.file_sizes) for run in late if run.evidence.downloaded]
            if late:
                share = statistics.fmean(files) if files else None
                rows.append((case.name, server, len(late), share, _mean(late), len(good), _mean(good)))
    note = (
        "Means over the clients. Arrived is the share of the file that the client had written at the time limit. "
        f"{_no_file(results)}"
    )
    return Table("unfinished", "Runs that timed out", columns, tuple(rows), (note.strip(),))


def _mean(runs: Sequence[RunResult]) -> float | None:
    values = known(runs)
    return statistics.fmean(values) if values else None


def _no_file(results: ResultSet) -> str:
    late = [run for run in results.results if run.verdict.outcome is Outcome.TIMEOUT]
    names = sorted({run.client for run in late if not run.evidence.downloaded})
    count = sum(not run.evidence.downloaded for run in late)
    return f"Not included: {count} with the client {', '.join(names)}, which left no file." if names else ""


def failures(results: ResultSet) -> Iterator[str]:
    """How many runs succeeded, what the others received, and their reasons."""
    outcomes = Counter(each.verdict.outcome for each in results.results)
    good, every = outcomes[Outcome.SUCCEEDED], len(results.results)
    yield f"Of {every} runs, {good} succeeded ({100 * good / every:.1f} %). {_repeated(results)}".strip()
    yield ""
    if outcomes[Outcome.TIMEOUT]:
        yield from rendered(unfinished(results))
    yield from rendered(not_successful(results))
    unsuccessful = {(each.server, each.client) for each in results.results if each.verdict.outcome in LOST}
    yield from (f"- {text}" for pair, text in EXAMINED.items() if pair in unsuccessful)


def _repeated(results: ResultSet) -> str:
    """How many runs were made again, and with which outcome; the last attempt counts."""
    last = {each.key: each.verdict.outcome for each in results.results}
    again = [each for each in results.earlier if each.key in last]
    if not again:
        return ""
    same = sum(last[each.key] is each.verdict.outcome for each in again)
    return (
        f"{len(again)} attempts without success were repeated with the same seed, and {same} of them ended with the "
        "same outcome again. The last attempt counts."
    )
