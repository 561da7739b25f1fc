"""The pairs and test cases that the options of a campaign select; pure: it reads nothing but its arguments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from quicsat.model.errors import InputError
from quicsat.model.flow import Flow
from quicsat.model.implementation import Implementation, Protocol, Role
from quicsat.model.test_case import TestCase, with_flows
from quicsat.model.workload import WorkloadFiles
from quicsat.plan.pairs import protocols_of, shared_folders
from quicsat.plan.select_implementations import replace_images, select_implementations
from quicsat.plan.select_names import split
from quicsat.plan.select_test_cases import (
    ALL_FUNCTIONAL_TESTS,
    NO_TEST_CASES,
    NO_WORKLOADS,
    LoadTestCases,
    select_test_cases,
)

WEBTRANSPORT_PREFIX = "webtransport-"
"""What a test of WebTransport begins with if the QUIC Interop Runner has a QUIC test of the same name."""


@dataclass(frozen=True)
class Selection:
    """The selected values, without duplicates, in the order of the command line."""

    servers: tuple[Implementation, ...]
    clients: tuple[Implementation, ...]
    test_cases: tuple[TestCase, ...]
    others: tuple[Implementation, ...] = ()
    """Those of further flows that are neither servers nor clients of the pairs."""

    @property
    def implementations(self) -> tuple[Implementation, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.servers, *self.clients, *self.others)))


def choose(
    implementations: Mapping[str, Implementation],
    test_cases: Mapping[str, TestCase],
    load: LoadTestCases,
    workloads: Mapping[str, WorkloadFiles] = NO_WORKLOADS,
    *,
    on_request: Mapping[str, TestCase] = NO_TEST_CASES,
    servers: Sequence[str] = (),
    clients: Sequence[str] = (),
    tests: Sequence[str] = (),
    images: Sequence[str] = (),
    flows: Sequence[tuple[Flow, ...]] = (),
) -> Selection:
    """The selection that the options ``-s``, ``-c``, ``-t`` and ``-r`` name; an omitted option selects everything.

    Test cases ``on_request`` are selected only if they are named. Each of ``flows`` is a set of further flows, with
    which all test cases are measured. Raises :class:`InputError` with the faults of all options.
    """
    replaced, problems = replace_images(implementations, images)
    chosen_servers, server_problems = select_implementations(servers, replaced, Role.SERVER)
    chosen_clients, client_problems = select_implementations(clients, replaced, Role.CLIENT)
    chosen_tests, test_problems = select_test_cases(tests, test_cases, load, workloads, on_request)
    problems += server_problems + client_problems + test_problems
    chosen_tests, others, flow_problems = _with_flows(chosen_tests, flows, replaced)
    problems += flow_problems
    problems += shared_folders(chosen_servers, chosen_clients)
    if problems:
        raise InputError(*dict.fromkeys(problems))
    others = tuple(each for each in others if each not in (*chosen_servers, *chosen_clients))
    return Selection(chosen_servers, chosen_clients, chosen_tests, others)


def with_webtransport(
    implementations: Mapping[str, Implementation], test_cases: Mapping[str, TestCase], names: Sequence[str]
) -> tuple[dict[str, Implementation], dict[str, TestCase], list[str]]:
    """Implementations, test cases with WebTransport only, and those of them that ``names`` select.

    Implementations without WebTransport have no role in these test cases.
    As in the QUIC Interop Runner, the name of a test case may leave ``webtransport-`` out; all are selected by none.
    """
    able = {
        name: each if Protocol.WEBTRANSPORT in each.protocols else replace(each, roles=frozenset())
        for name, each in implementations.items()
    }
    cases = {name: case for name, case in test_cases.items() if case.webtransport is not None}
    words = split(names)
    if not words or ALL_FUNCTIONAL_TESTS.casefold() in map(str.casefold, words):
        words += cases
    meant = [f"{WEBTRANSPORT_PREFIX}{word}" for word in words]
    words = [long if long.casefold() in cases else word for word, long in zip(words, meant, strict=True)]
    return able, cases, [word for word in words if word.casefold() != ALL_FUNCTIONAL_TESTS.casefold()]


def _with_flows(
    cases: Sequence[TestCase], flows: Sequence[tuple[Flow, ...]], known: Mapping[str, Implementation]
) -> tuple[tuple[TestCase, ...], tuple[Implementation, ...], list[str]]:
    """The test cases with each set of further flows, the implementations of all flows, and the faults."""
    problems: list[str] = []
    combined: list[TestCase] = [] if flows else list(cases)
    for case, chosen in product(cases, flows):
        try:
            combined.append(with_flows(case, chosen))
        except ValueError as fault:
            problems.append(f"{case.name} cannot have further flows: {fault}")
    ends: dict[str, Implementation] = {}
    for flow in (flow for case in combined for flow in case.flows if flow.server):
        pair: list[Implementation] = []
        for name, role in ((flow.server, Role.SERVER), (flow.client, Role.CLIENT)):
            found, faults = select_implementations((name,), known, role)
            problems += faults
            pair += found
            ends |= {each.name: each for each in found}
        if len(pair) == 2 and not protocols_of(pair[0], pair[1]):
            problems.append(f"The flow {flow.words} is impossible: its pair has no protocol in common.")
    return tuple(combined), tuple(ends.values()), problems
