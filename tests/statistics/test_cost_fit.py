"""Cost models from runs whose costs are known, and from what no run can have been."""

from collections.abc import Callable
from dataclasses import astuple, replace
from itertools import chain, combinations

import numpy as np
import pytest

from quicsat.model.clock import Clock
from quicsat.model.cpu_cost import DEFAULT
from quicsat.model.evidence import Evidence, ResourceUse
from quicsat.model.gateways import PEPS
from quicsat.model.implementation import Role
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet
from quicsat.statistics import cost_fit
from quicsat.statistics.cost_fit import CostRuns, cost_runs, non_negative
from tests.costs_builder import CASES, PARTNERS, START, TRUE, campaign, samples

COUNT = len(PARTNERS) * len(CASES) * 6


def test_the_costs_of_noiseless_runs_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the usual costs weigh nothing."""
    monkeypatch.setattr(cost_fit, "DOUBT", 100.0)
    monkeypatch.setattr(cost_fit, "HANDSHAKE_DOUBT", 100.0)
    fit = cost_fit.cost_fit(samples())
    assert astuple(fit.model) == pytest.approx(astuple(replace(TRUE, handshake=DEFAULT.handshake)), rel=0.01)
    assert fit.connection == pytest.approx(TRUE.handshake, rel=0.01)
    assert fit.start == pytest.approx(START, rel=0.01)
    assert fit.runs == COUNT
    assert fit.handshake_known
    assert fit.partner_error is not None
    assert fit.link_error is not None
    assert max(fit.error, fit.partner_error, fit.link_error) < 0.001


def test_noise_of_single_runs_is_what_remains() -> None:
    fit = cost_fit.cost_fit(samples(noise=0.1))
    assert 0.04 < fit.error < 0.1  # the median of a normal distribution is at 0.67 of its standard deviation
    assert fit.error < fit.partner_error < 0.12
    large = ("send", "wait", "datagram_sent", "datagram_received")
    for name in large:  # a call that receives is too cheap to be seen
        assert getattr(fit.model, name) == pytest.approx(getattr(TRUE, name), rel=0.35)
    assert fit.connection == pytest.approx(TRUE.handshake, rel=0.35)


def test_costs_that_no_run_tells_apart_are_divided_as_usual() -> None:
    """Each call has one datagram, and there is one connection."""
    alike = [
        replace(each, sent=each.sends, receives=each.received, waits=each.received, connections=1) for each in samples()
    ]
    alike = [replace(each, cpu=each.fixed + 0.1 + 30e-6 * each.sends + 34e-6 * each.received) for each in alike]
    fit = cost_fit.cost_fit(alike)
    assert not fit.handshake_known
    model = fit.model
    assert model.send + model.datagram_sent == pytest.approx(30e-6, rel=0.03)
    assert model.receive + model.wait + model.datagram_received == pytest.approx(34e-6, rel=0.03)
    assert 1 < model.datagram_sent / model.send < 2.5
    assert 0.5e-3 < fit.connection < 5e-3


def test_the_first_handshake_is_not_what_a_connection_costs() -> None:
    fit, given = cost_fit.cost_fit(samples()), cost_fit.cost_fit(samples(), handshake=0.25)
    assert given == replace(fit, model=replace(fit.model, handshake=0.25))


def test_runs_for_judging_are_not_fitted() -> None:
    odd = [replace(each, cpu=10 * each.cpu) for each in samples()]
    fit, alone = cost_fit.cost_fit(samples(), odd), cost_fit.cost_fit(samples())
    assert (fit.model, alone.judged_error) == (alone.model, None)
    assert fit.judged_error == pytest.approx(0.9, abs=0.01)


def test_one_partner_and_one_link_and_too_few_runs() -> None:
    alone = [replace(each, partner="a", link="sat") for each in samples()]
    fit = cost_fit.cost_fit(alone)
    assert (fit.partner_error, fit.link_error) == (None, None)
    assert cost_fit.cost_fit(alone[: cost_fit.LEAST_RUNS - 1]) is None
    assert cost_fit.cost_fit([]) is None


def test_a_left_out_partner_is_not_used() -> None:
    """Whose runs cost ten times as much as the model says is not predicted."""
    odd = [replace(each, cpu=10 * each.cpu) if each.partner == "c" else each for each in samples()]
    fit = cost_fit.cost_fit([each for each in odd if each.partner != "b"])
    assert fit.partner_error > 0.85


def test_samples_are_those_of_the_runs() -> None:
    found = cost_runs([campaign()], "mine", Role.SERVER).samples
    rounded = [sorted(astuple(replace(each, cpu=round(each.cpu, 9))) for each in some) for some in (found, samples())]
    assert rounded[0] == rounded[1]
    assert cost_runs([campaign()], "mine", Role.CLIENT) == CostRuns((), 0, 0)
    assert cost_runs([campaign()], "a", Role.CLIENT) == CostRuns((), 0, COUNT // len(PARTNERS))


@pytest.mark.parametrize(
    "changed",
    [
        lambda evidence: replace(evidence, use={}),
        lambda evidence: replace(evidence, simulator=None),
        lambda evidence: replace(evidence, use={"server": ResourceUse(1.0, 0.5, 1)}),
        lambda evidence: replace(evidence, use={"server": ResourceUse(1.0, 0.5, 1, 1000)}),
        lambda evidence: replace(evidence, use={"server": ResourceUse(0.0, 0.0, 1, 1000, 1, 1, 1)}),
        lambda evidence: replace(evidence, use={"server": ResourceUse(1.0, 0.5, 1, 10, 5, 5, 5)}),
    ],
    ids=["nothing", "no simulator", "older", "old", "no time", "more than all"],
)
def test_runs_that_show_nothing(changed: Callable[[Evidence], Evidence]) -> None:
    first, *others = campaign().results
    results = replace(campaign(), results=(replace(first, evidence=changed(first.evidence)), *others))
    found = cost_runs([results], "mine", Role.SERVER)
    assert (len(found.samples), found.failed, found.uncounted) == (COUNT - 1, 0, 1)


@pytest.mark.parametrize(
    ("clock", "outcome", "failed"),
    [
        (Clock.REAL, Outcome.FAILED, 1),
        (Clock.REAL, Outcome.TIMEOUT, 1),
        (Clock.REAL, Outcome.ERROR, 1),
        (Clock.REAL, Outcome.UNSUPPORTED, 0),
        (Clock.REAL, Outcome.SKIPPED, 0),
        (Clock.VIRTUAL, Outcome.SUCCEEDED, 0),
        (Clock.VIRTUAL, Outcome.FAILED, 0),
    ],
)
def test_runs_in_real_time_that_failed_are_counted(clock: Clock, outcome: Outcome, failed: int) -> None:
    first, *others = campaign().results
    changed = replace(
        first,
        evidence=replace(first.evidence, clock=clock),
        verdict=replace(first.verdict, outcome=outcome),
    )
    found = cost_runs([replace(campaign(), results=(changed, *others))], "mine", Role.SERVER)
    assert (len(found.samples), found.failed, found.uncounted) == (COUNT - 1, failed, 0)


def test_links_with_gateways_are_left_out() -> None:
    results: ResultSet = campaign()
    first, *others = results.manifest.test_cases
    gated = replace(first, link=replace(first.emulated, pep=next(iter(PEPS.values()))))
    results = replace(results, manifest=replace(results.manifest, test_cases=(gated, *others)))
    assert {each.link for each in cost_runs([results], "mine", Role.SERVER).samples} == {case.name for case in others}


@pytest.mark.parametrize("cpu", [1e-100, 1e9])
@pytest.mark.parametrize("count", [0, 2**53])
def test_numbers_that_no_run_has(cpu: float, count: int) -> None:
    odd = [replace(each, cpu=cpu, sends=count, received=count) for each in samples()]
    fit = cost_fit.cost_fit(odd)
    assert np.isfinite([fit.start, fit.error, *astuple(fit.model)]).all()
    assert min(fit.start, *astuple(fit.model)) >= 0


def test_the_least_squares_without_negative_elements_are_those_of_the_best_choice_of_columns() -> None:
    generator = np.random.default_rng(3)
    for _ in range(50):
        matrix, target = generator.normal(size=(12, 5)), generator.normal(size=12)
        matrix[:, 4] = matrix[:, 0] * generator.choice([1.0, 2.0])
        choices = chain.from_iterable(combinations(range(5), size) for size in range(6))
        best = min(_distance(matrix, target, list(columns)) for columns in choices)
        found = non_negative(matrix, target)
        assert (found >= 0).all()
        assert np.linalg.norm(matrix @ found - target) == pytest.approx(best)
    assert non_negative(np.zeros((3, 2)), np.ones(3)).tolist() == [0, 0]


def _distance(matrix: np.ndarray, target: np.ndarray, columns: list[int]) -> float:
    part = matrix[:, columns]
    x = np.linalg.lstsq(part, target, rcond=None)[0]
    return float(np.linalg.norm(part @ x - target)) if (x >= 0).all() else float("inf")
