"""Failures of a campaign: who ends alike with every peer, and in which order cells stand."""

from pathlib import Path

from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.results import RunResult
from quicsat.site import failures
from quicsat.site.campaigns import SiteCampaign
from tests.results_builder import result_set, run_result

PEERS = ("a", "b", "c")


def with_all(outcome: Outcome, code: ErrorCode | None = None) -> list[RunResult]:
    return [run_result(None, server="me", client=peer, outcome=outcome, code=code) for peer in PEERS]


def campaign(results: list[RunResult]) -> SiteCampaign:
    return SiteCampaign(Path(), "one", result_set(results, servers=("me",), clients=PEERS, repetitions=1))


def test_what_ends_alike_with_every_peer_is_named_but_not_what_nobody_has_to_mend() -> None:
    [suspect] = failures.suspects(campaign(with_all(Outcome.FAILED, ErrorCode.CLIENT_FAILED)))
    assert (suspect.implementation, suspect.role, suspect.code, suspect.peers) == ("me", "server", "client-failed", 3)
    assert failures.suspects(campaign(with_all(Outcome.UNSUPPORTED))) == []
    assert failures.suspects(campaign(with_all(Outcome.ERROR))) == []


def test_failures_stand_before_errors_of_ours_and_what_is_unsupported_comes_last() -> None:
    ended = (Outcome.UNSUPPORTED, Outcome.ERROR, Outcome.FAILED)
    results = [
        run_result(None, server="me", client=peer, outcome=outcome) for peer, outcome in zip(PEERS, ended, strict=True)
    ]
    assert [each.outcome for each in failures.cells(campaign(results))] == list(reversed(ended))
