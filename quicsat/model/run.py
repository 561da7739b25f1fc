"""A run of the plan, the key that identifies it, and the files that it transfers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.implementation import Implementation, Protocol, Role
from quicsat.model.perturbation import NOMINAL, Perturbation
from quicsat.model.run_key import File as File  # they belong to a run, but need less than it
from quicsat.model.run_key import RunKey as RunKey
from quicsat.model.test_case import HTTP2_TESTS, ORDERED, ORDERED_TESTS, PROTOCOL_TESTS, RESUMPTION, TRANSFER, TestCase

KEY_LOG = "keys.log"
"""Secrets of TLS, in the logs of an endpoint."""
OUTPUT = "output.txt"
"""In the directory of a run, the output of both endpoints, a line each: role, ``|``, time, and what was said."""


@dataclass(frozen=True)
class Run:
    """One run of the plan."""

    server: Implementation
    client: Implementation
    test_case: TestCase
    repetition: int
    """Counted from 1."""
    seed: int
    """Seed of the simulator's random numbers; the same for all pairs of a test case's repetition."""
    protocol: Protocol = Protocol.HQ
    others: tuple[Run, ...] = ()
    """The further flows on the link at the same time, in the order of ``test_case.flows``."""

    @property
    def ends(self) -> tuple[tuple[Implementation, Role], ...]:
        """The implementations of all flows in their roles."""
        flows = (self, *self.others)
        return tuple(end for run in flows for end in ((run.server, Role.SERVER), (run.client, Role.CLIENT)))

    @property
    def key(self) -> RunKey:
        """Its identity."""
        return RunKey(self.server.name, self.client.name, self.test_case.name, self.repetition)

    @property
    def path(self) -> PurePosixPath:
        """As :attr:`RunKey.path`."""
        return self.key.path

    @property
    def split(self) -> bool:
        """Whether proxies split its connection."""
        link = self.test_case.link
        return self.protocol is Protocol.TCP and isinstance(link, EmulatedLink) and link.pep is not None

    def under(self, by: Perturbation) -> Run:
        """The run over the link that it has with a perturbation, as all of its flows."""
        link = self.test_case.link
        if by == NOMINAL or not isinstance(link, EmulatedLink):
            return self
        case = replace(self.test_case, link=link.scaled(by.delay, by.rate))
        return replace(self, test_case=case, others=tuple(other.under(by) for other in self.others))

    @property
    def endpoint_test_case(self) -> TestCase:
        """The test case with the names that endpoints know it by: a transfer is ``http3`` or ``tcp`` over those.

        Clients fetch several files over TCP in ``http2`` and its kin; servers know that of resumption, too.
        """
        if self.test_case.webtransport is not None:
            return self.test_case
        client, server = self.test_case.client_test, self.test_case.server_test
        if self.protocol is Protocol.TCP and client in HTTP2_TESTS:
            tcp = PROTOCOL_TESTS[Protocol.TCP]
            single = client == TRANSFER and len(self.test_case.file_sizes) == 1
            own = HTTP2_TESTS[client]
            server = own if client == RESUMPTION else tcp
            return replace(self.test_case, client_test=tcp if single else own, server_test=server)
        names = {TRANSFER: PROTOCOL_TESTS[self.protocol], ORDERED: ORDERED_TESTS.get(self.protocol, ORDERED)}
        return replace(self.test_case, client_test=names.get(client, client), server_test=names.get(server, server))
