"""Why runs did not succeed, over a whole campaign: causes by implementation, unsteady pairs, suspects; pure."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from quicsat.model.outcomes import Outcome
from quicsat.model.results import RunResult
from quicsat.model.text import printable
from quicsat.site import address
from quicsat.site.campaigns import SiteCampaign

LEAST_PEERS = 3
"""Peers that a failure must have in common before it is laid at one endpoint's door."""
NO_FAILURE = (Outcome.SUCCEEDED, Outcome.SKIPPED)
OutcomeCode = tuple[Outcome, str]
_NO_BLAME = {Outcome.SUCCEEDED.value, Outcome.UNSUPPORTED.value}
_ORDER = (Outcome.FAILED, Outcome.TIMEOUT, Outcome.ERROR, Outcome.UNSUPPORTED)


@dataclass(frozen=True)
class CauseTable:
    """How often each implementation was part of runs that ended so."""

    columns: tuple[OutcomeCode, ...]
    """Outcome and code, the most frequent first."""
    rows: tuple[tuple[str, str, tuple[int, ...]], ...]
    """Implementation, its role, and counts by column."""


@dataclass(frozen=True)
class FailingImplementation:
    """An endpoint that ended in the same way with all its peers."""

    implementation: str
    role: str
    test_case: str
    code: str
    peers: int


@dataclass(frozen=True)
class FailedCell:
    """A cell in which not all repetitions succeeded."""

    server: str
    client: str
    test_case: str
    address: str
    outcome: Outcome
    code: str
    reason: str
    count: int
    planned: int
    flaky: bool
    """Some repetitions succeeded."""


def _code(result: RunResult) -> str:
    return result.verdict.code.value or result.verdict.outcome.value


def causes(campaign: SiteCampaign) -> CauseTable:
    """Causes by implementation and role."""
    counts: dict[tuple[str, str], Counter[OutcomeCode]] = defaultdict(Counter)
    total: Counter[OutcomeCode] = Counter()
    for result in campaign.results.results:
        if result.verdict.outcome in NO_FAILURE:
            continue
        column = (result.verdict.outcome, _code(result))
        total[column] += 1
        counts[result.server, "server"][column] += 1
        counts[result.client, "client"][column] += 1
    columns = tuple(column for column, _ in total.most_common())
    rows = [(*who, tuple(found[column] for column in columns)) for who, found in sorted(counts.items())]
    return CauseTable(columns, tuple(rows))


def suspects(campaign: SiteCampaign) -> list[FailingImplementation]:
    """Endpoints that ended in the same way with every one of several peers: the peers are hardly to blame."""
    ended: dict[tuple[str, str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for result in campaign.results.results:
        if result.verdict.outcome not in (Outcome.ERROR, Outcome.SKIPPED):
            ended[result.server, "server", result.test_case][result.client].add(_code(result))
            ended[result.client, "client", result.test_case][result.server].add(_code(result))
    found = []
    for (name, role, case), peers in sorted(ended.items()):
        codes = set().union(*peers.values())
        if len(peers) >= LEAST_PEERS and len(codes) == 1 and codes.isdisjoint(_NO_BLAME):
            found.append(FailingImplementation(name, role, case, codes.pop(), len(peers)))
    return found


def reasons(campaign: SiteCampaign) -> dict[str, Any]:
    """For a search: ``texts``, each once, and ``cells``: test case, server, client and the numbers of its texts."""
    texts: dict[str, int] = {}
    found = []
    for (server, client, case), results in campaign.runs.items():
        bad = [each for each in results if each.verdict.outcome is not Outcome.SUCCEEDED]
        words = {printable(f"{_code(each)} {each.verdict.cause.value} {each.verdict.reason or each.evidence.fault}")
                 for each in bad}  # fmt: skip
        if words:
            found.append([case, server, client, *(texts.setdefault(text, len(texts)) for text in sorted(words))])
    return {"texts": list(texts), "cells": found}


def cells(campaign: SiteCampaign) -> list[FailedCell]:
    """Every cell in which not all succeeded, with its most frequent cause; unsupported tests come last."""
    found = []
    for key, results in campaign.runs.items():
        bad = [each for each in results if each.verdict.outcome not in NO_FAILURE]
        if not bad:
            continue
        common = Counter(map(_code, bad)).most_common(1)[0][0]
        first = next(each for each in bad if _code(each) == common)
        cell = campaign.cells[key]
        found.append(
            FailedCell(
                *key,
                address=f"{address.cell(*key)}/index.html",
                outcome=first.verdict.outcome,
                code=common,
                reason=first.verdict.reason or first.evidence.fault,
                count=len(bad),
                planned=cell.planned,
                flaky=cell.succeeded > 0,
            )
        )
    return sorted(found, key=lambda each: (_ORDER.index(each.outcome), each.test_case, each.server, each.client))
