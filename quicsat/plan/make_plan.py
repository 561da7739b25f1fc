"""From a selection to the ordered runs of a campaign."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from quicsat.model.emulated_link import CorruptionMode, TimersFrom
from quicsat.model.errors import InputError
from quicsat.model.implementation import Implementation
from quicsat.model.outcomes import Rules
from quicsat.model.run import Run
from quicsat.model.test_case import TestCase
from quicsat.plan.pairs import left_out, protocol_of, protocols_of
from quicsat.plan.run_seed import run_seed

MOST_REPETITIONS = 10_000
MOST_RUNS = 1_000_000
"""Runs in a plan; at five seconds each these take two months."""


def make_plan(
    servers: Sequence[Implementation],
    clients: Sequence[Implementation],
    test_cases: Sequence[TestCase],
    *,
    repetitions: int | None = None,
    timeout: float | None = None,
    rules: Rules = Rules.STANDARD,
    seed: int,
    others: Sequence[Implementation] = (),
) -> tuple[Run, ...]:
    """All runs, in the order in which they are made.

    One test case after the other; in each the first repetition of all pairs, then the second, and so on, so that
    changes on the machine affect all pairs equally. ``repetitions``, ``timeout`` (seconds) and, of
    functional tests, ``rules`` replace those of the test cases. Pairs without a protocol in common are left out, see
    :func:`left_out`. ``others`` are implementations of further flows that are neither servers nor clients. Raises
    :class:`InputError` if repetitions or timeout are impossible, or the plan too large or empty.
    """
    problems = []
    if repetitions is not None and not 1 <= repetitions <= MOST_REPETITIONS:
        problems.append(f"{repetitions} repetitions are impossible; allowed are 1 to {MOST_REPETITIONS}.")
    if timeout is not None and not 0 < timeout < float("inf"):
        problems.append(f"A timeout of {timeout:g} s is impossible; it must be more than 0.")
    planned = [
        replace(
            _under(rules, case),
            repetitions=case.repetitions if repetitions is None else repetitions,
            timeout=case.timeout if case.ends_at_deadline or timeout is None else timeout,
        )
        for case in test_cases
    ]
    pairs = {
        case.name: [pair for pair in product(servers, clients) if protocols_of(pair[0], pair[1], case)]
        for case in planned
    }
    if not any(pairs.values()):
        problems.append(f"Nothing to run: {left_out(servers, clients, test_cases)}.")
    size = sum(len(pairs[case.name]) * max(case.repetitions, 0) for case in planned)
    if size > MOST_RUNS:
        problems.append(f"The plan has {size} runs, more than {MOST_RUNS}; choose fewer pairs or repetitions.")
    if problems:
        raise InputError(*problems)
    implementations = {each.name: each for each in (*servers, *clients, *others)}
    return tuple(
        _run(server, client, case, repetition, run_seed(seed, case.random_name, repetition), implementations)
        for case in planned
        for repetition in range(1, case.repetitions + 1)
        for server, client in pairs[case.name]
    )


def _run(
    server: Implementation,
    client: Implementation,
    case: TestCase,
    repetition: int,
    seed: int,
    implementations: Mapping[str, Implementation],
) -> Run:
    """A run with its further flows, whose ends are among ``implementations``."""
    first = Run(server, client, case, repetition, seed, protocol_of(server, client, case))
    pairs = [
        (implementations[flow.server], implementations[flow.client]) if flow.server else (server, client)
        for flow in case.flows
    ]
    others = (replace(first, server=one, client=two, protocol=protocol_of(one, two, case)) for one, two in pairs)
    return replace(first, others=tuple(others))


def _under(rules: Rules, case: TestCase) -> TestCase:
    """A functional test by the requested rules; upstream's links drop what they should corrupt and start early."""
    if not case.functional or rules is Rules.STANDARD:
        return case
    link = case.emulated
    forward, back = (
        corruption and replace(corruption, mode=CorruptionMode.LOSS)
        for corruption in (link.forward.corruption, link.back.corruption)
    )
    strict = replace(
        link.with_forward(corruption=forward).with_back(corruption=back),
        blackhole=link.blackhole and replace(link.blackhole, timers_from=TimersFrom.START),
        rebind=link.rebind and replace(link.rebind, timers_from=TimersFrom.START),
    )
    return replace(case, rules=rules, link=strict)
