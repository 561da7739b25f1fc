"""Cost models of implementations, fitted to the CPU time that they used in runs in real time; pure.

The CPU time of an endpoint is the sum of a constant, which is the start of its program, and of a cost for each of its
handshakes, calls and datagrams (``CostModel``). The costs are those with the smallest sum of squares of the relative
errors, none of them below 0. Where the runs do not tell costs apart, such as that of a call from that of its only
datagram, they are divided as in ``USUAL``.

A connection also costs what the endpoint does for it besides the handshake, such as starting another program, and the
first handshake of a process takes longer than those after it. Virtual time charges the first handshake while its
packets wait for it, so its cost is known from packets (``handshake_costs``), not from this fit. So is the cost of
reading a file (``file_costs``).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np

from quicsat.model.arrays import Floats
from quicsat.model.clock import Clock
from quicsat.model.cpu_cost import CALL, DEFAULT, CostModel
from quicsat.model.implementation import Role
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet, RunResult
from quicsat.model.test_case import MULTICONNECT, TestCase
from quicsat.statistics.handshake_costs import is_plain

COUNTING = 0.25e-6
"""Seconds that counting adds to each system call, see docs/measurements/cost.md; they are part of no cost."""
USUAL = CostModel(send=5e-6, receive=2e-6, wait=5e-6, datagram_sent=10e-6, datagram_received=10e-6, handshake=0.3e-3)
"""The costs to which a fit tends where the runs do not tell costs apart, times a factor for slow implementations."""
DOUBT, HANDSHAKE_DOUBT, NOISE = 0.5, 3.0, 0.1
"""Standard deviations, as shares: of costs of calls and datagrams from the usual ones, of that of a handshake, which
differs more, and of CPU times from the model."""
LEAST_RUNS = 6
"""Fewer runs show no model."""
NOT_MADE = (Outcome.SKIPPED, Outcome.UNSUPPORTED)
TOLERANCE = 1e-12
"""Share of the largest possible gradient that counts as none."""


@dataclass(frozen=True)
class CostSample:
    """What an endpoint did in a run in real time, and the CPU time that it used."""

    partner: str
    link: str
    """Name of the test case."""
    cpu: float
    """Seconds, more than 0."""
    connections: int
    sends: int
    receives: int
    waits: int
    others: int
    """System calls of other kinds."""
    sent: int
    received: int
    """Datagrams at its own end of the link."""

    @property
    def calls(self) -> int:
        """System calls of all kinds."""
        return self.sends + self.receives + self.waits + self.others

    @property
    def fixed(self) -> float:
        """Seconds that no model explains: of counting, and of calls that cost the same in every program."""
        return COUNTING * self.calls + CALL * self.others

    @property
    def causes(self) -> tuple[float, ...]:
        """By what the rest of the CPU time is explained: 1 for the start of the program, then as in ``CostModel``."""
        return (1, self.sends, self.receives, self.waits, self.sent, self.received, self.connections)


@dataclass(frozen=True)
class CostRuns:
    """The runs of an implementation in a role in real time."""

    samples: tuple[CostSample, ...]
    failed: int
    """Number of runs that did not succeed."""
    uncounted: int
    """Number of runs that succeeded, but whose calls, datagrams or CPU time are not known."""


@dataclass(frozen=True)
class CostFit:
    """A model with what it leaves open."""

    model: CostModel
    start: float
    """Seconds for the start of the program, which virtual time does not charge."""
    connection: float
    """Seconds for each connection."""
    runs: int
    error: float
    """Median of the relative errors of the CPU times of all runs."""
    partner_error: float | None
    """The same for runs with partners from whose runs nothing was fitted; None if there is one partner."""
    link_error: float | None
    """The same for links; None if there is one link."""
    judged_error: float | None
    """The same for runs that are for judging only; None if there are none."""
    handshake_known: bool
    """Whether the runs differ in the number of connections; else the handshake cannot be told from the start."""


def cost_runs(campaigns: Iterable[ResultSet], name: str, role: Role) -> CostRuns:
    """What the campaigns show of an implementation in a role.

    Functional tests, links with gateways, runs with several flows and runs that were not made count nowhere.
    """
    samples, failed, uncounted = [], 0, 0
    for campaign in campaigns:
        usable = {case.name: case for case in campaign.manifest.test_cases if is_plain(case)}
        for result in campaign.results:
            own = (result.server if role is Role.SERVER else result.client) == name and result.test_case in usable
            if not own or result.evidence.clock is not Clock.REAL or result.verdict.outcome in NOT_MADE:
                continue
            if result.verdict.outcome is not Outcome.SUCCEEDED:
                failed += 1
            elif (sample := _sample(result, usable[result.test_case], role)) is None:
                uncounted += 1
            else:
                samples.append(sample)
    return CostRuns(tuple(samples), failed, uncounted)


def _sample(result: RunResult, case: TestCase, role: Role) -> CostSample | None:
    """What a run that succeeded shows; None if one of its numbers is not known."""
    use, report = result.evidence.use.get(role), result.evidence.simulator
    if not use or not report:
        return None
    total, sends, receives, waits = use.system_calls, use.sends, use.receives, use.waits
    if total is None or sends is None or receives is None or waits is None:
        return None
    cpu, others = use.cpu_user + use.cpu_system, total - sends - receives - waits
    if cpu <= 0 or others < 0:
        return None
    sent, arriving = report.forward, report.back
    partner = result.client
    if role is Role.CLIENT:
        sent, arriving, partner = arriving, sent, result.server
    connections = len(case.file_sizes) if case.client_test == MULTICONNECT else 1
    datagrams = sent.received, arriving.delivered
    return CostSample(partner, case.name, cpu, connections, sends, receives, waits, others, *datagrams)


def cost_fit(
    samples: Sequence[CostSample],
    judged: Sequence[CostSample] = (),
    handshake: float = DEFAULT.handshake,
    file_read: float = 0.0,
) -> CostFit | None:
    """The model that explains the CPU times; None if there are fewer than ``LEAST_RUNS``.

    ``handshake``: seconds of the first one of a process; ``file_read``: of 1 KiB. The model is judged on runs that were
    not used to fit it: all with one partner, and all over one link, in turn; and those that were kept for that.
    """
    if len(samples) < LEAST_RUNS:
        return None
    start, *costs = (float(cost) for cost in _costs(samples))
    model = CostModel(*costs)
    return CostFit(
        replace(model, handshake=handshake, file_read=file_read),
        start,
        model.handshake,
        len(samples),
        float(np.median(errors(samples, samples))),
        _left_out_error(samples, lambda sample: sample.partner),
        _left_out_error(samples, lambda sample: sample.link),
        float(np.median(errors(samples, judged))) if judged else None,
        len({sample.connections for sample in samples}) > 1,
    )


def _costs(samples: Sequence[CostSample]) -> Floats:
    """Seconds per cause: the most likely ones if relative errors and deviations from the usual costs are normal."""
    weights = 1 / np.array([sample.cpu for sample in samples])
    causes = np.array([sample.causes for sample in samples], dtype=np.float64) * weights[:, None]
    rest = np.array([sample.cpu - sample.fixed for sample in samples]) * weights
    usual = np.array(astuple(USUAL)[:-1])  # without that of files
    _, factor = non_negative(np.column_stack([causes[:, 0], causes[:, 1:] @ usual]), rest)
    usual *= max(factor, 1)  # polling is cheap, but does not make packets cheap
    weight = NOISE / np.array([*(len(usual) - 1) * [DOUBT], HANDSHAKE_DOUBT])
    expected = np.column_stack([np.zeros(len(usual)), np.diag(weight / usual)])
    return non_negative(np.vstack([causes, expected]), np.concatenate([rest, weight]))


def errors(fitted: Sequence[CostSample], judged: Sequence[CostSample]) -> Floats:
    """Relative errors of the CPU times of some runs, from a fit to others."""
    costs = _costs(fitted)
    predicted = np.array([sample.causes for sample in judged]) @ costs + [sample.fixed for sample in judged]
    measured = np.array([sample.cpu for sample in judged])
    found: Floats = np.abs(predicted - measured) / measured
    return found


def _left_out_error(samples: Sequence[CostSample], of: Callable[[CostSample], str]) -> float | None:
    groups = dict.fromkeys(map(of, samples))
    if len(groups) < 2:
        return None
    found = [
        errors([each for each in samples if of(each) != group], [each for each in samples if of(each) == group])
        for group in groups
    ]
    return float(np.median(np.concatenate(found)))


def non_negative(matrix: Floats, target: Floats) -> Floats:
    """The ``x`` without negative elements for which the norm of ``matrix @ x - target`` is smallest.

    The active set method NNLS (Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23).
    """
    norms = np.linalg.norm(matrix, axis=0)
    scaled = matrix / np.where(norms > 0, norms, 1)
    count = scaled.shape[1]
    x, passive = np.zeros(count), np.zeros(count, dtype=np.bool_)
    least = TOLERANCE * float(np.linalg.norm(target))
    for _ in range(10 * count):
        gradient = np.where(passive, 0, scaled.T @ (target - scaled @ x))
        if gradient.max() <= least:
            break
        passive[gradient.argmax()] = True
        while True:
            wanted = np.zeros(count)
            wanted[passive] = np.linalg.lstsq(scaled[:, passive], target, rcond=None)[0]
            below = np.flatnonzero(passive & (wanted <= 0))
            if not len(below):
                x = wanted
                break
            steps = x[below] / np.maximum(x[below] - wanted[below], np.finfo(np.float64).tiny)
            x = np.maximum(x + steps.min() * (wanted - x), 0)
            passive[below[steps.argmin()]] = False
            x[~passive] = 0
            if not passive.any():
                break
    costs: Floats = x / np.where(norms > 0, norms, 1)
    return costs
