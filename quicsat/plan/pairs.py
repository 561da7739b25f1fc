"""Which server and client make a pair, over which protocol, and which pairs are left out."""

from collections.abc import Sequence
from itertools import product

from quicsat.model.implementation import Implementation, Protocol
from quicsat.model.names import pair_folder
from quicsat.model.test_case import MULTICONNECT, PROTOCOL_TESTS, RESUMPTION, TestCase

MOST_LISTED = 30
"""Pairs without a protocol in common that are listed; more are counted."""


def left_out(
    servers: Sequence[Implementation], clients: Sequence[Implementation], test_cases: Sequence[TestCase] = ()
) -> str:
    """``left out, no protocol in common: chrome with quinn, kwik; curl with quinn``; empty if no pair is.

    A pair is left out if it can run none of ``test_cases``; without any, if it cannot transfer files.
    """
    unmatched: dict[str, list[str]] = {}
    for client, server in product(clients, servers):
        if not any(protocols_of(server, client, case) for case in test_cases or (None,)):
            unmatched.setdefault(client.name, []).append(server.name)
    count = sum(map(len, unmatched.values()))
    if count > MOST_LISTED:
        return f"left out, no protocol in common: {count} pairs"
    listing = "; ".join(f"{client} with {', '.join(names)}" for client, names in unmatched.items())
    return f"left out, no protocol in common: {listing}" if listing else ""


def protocols_of(server: Implementation, client: Implementation, case: TestCase | None = None) -> list[Protocol]:
    """The protocols of both that ``case``, or a transfer, can use, the preferred one first."""
    session = case is not None and case.webtransport is not None
    usable = (protocol for protocol in Protocol if (protocol is Protocol.WEBTRANSPORT) == session)
    return [protocol for protocol in usable if protocol in server.protocols and protocol in client.protocols]


def protocol_of(server: Implementation, client: Implementation, case: TestCase) -> Protocol:
    """The protocol that the test case requires, else the preferred one of the pair.

    Tests of WebTransport use nothing else. Other functional tests use hq, and so do several connections; of a pair that
    has only TCP, resumption and several connections use that. Pages use HTTP/3 if the pair has it.
    """
    if case.webtransport is not None:
        return Protocol.WEBTRANSPORT
    asked = {test: protocol for protocol, test in PROTOCOL_TESTS.items() if protocol is not Protocol.HQ}
    common = protocols_of(server, client)
    if case.client_test == RESUMPTION or (case.client_test == MULTICONNECT and not case.functional):
        return Protocol.TCP if common == [Protocol.TCP] else Protocol.HQ
    if case.functional:
        return asked.get(case.client_test, Protocol.HQ)
    page = case.workload is not None and bool(case.workload.types)
    return asked.get(case.client_test, Protocol.H3 if page and Protocol.H3 in common else common[0])


def shared_folders(servers: Sequence[Implementation], clients: Sequence[Implementation]) -> list[str]:
    """Names may hold underscores, so that ``a_b`` with ``c`` and ``a`` with ``b_c`` would write to one folder."""
    owners: dict[str, str] = {}
    problems = []
    for server, client in product(servers, clients):
        pair = f"{server.name} with {client.name}"
        owner = owners.setdefault(pair_folder(server.name, client.name), pair)
        if owner != pair:
            problems.append(f"{owner} and {pair} would have the same folder; run them one after the other.")
    return problems
