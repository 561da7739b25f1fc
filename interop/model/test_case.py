"""Test cases: what is transferred over which link, how often, and what must hold."""

from __future__ import annotations

from dataclasses import dataclass

from interop.model.emulated_link import EmulatedLink
from interop.model.functional_checks import Check, Rules
from interop.model.implementation import Protocol
from interop.model.real_link import RealLink

Link = EmulatedLink | RealLink
"""What carries the packets of a test case."""


@dataclass(frozen=True)
class TestCase:
    """What is transferred over which link, how often, and what must hold."""

    __test__ = False  # pytest: not a class of tests

    name: str
    abbreviation: str
    description: str
    link: Link
    file_sizes: tuple[int, ...]
    """Bytes of each file that the client has to fetch."""
    repetitions: int
    timeout: float
    """Deadline of the transfer, from the start of the client, seconds."""
    client_test: str = "transfer"
    server_test: str = "transfer"
    """What the endpoints see as TESTCASE."""
    server_name: str = "server4"
    """Host part of the URLs: server4, server6 or server46."""
    source: str = ""
    """File that the test case was read from."""
    check: Check | None = None
    """What a functional test must pass; None for a measurement."""
    rules: Rules = Rules.STANDARD
    chain_length: int = 1
    """Certificates that the server sends: the leaf and those between it and the root."""
    name_length: int = 16
    """Characters of each file's name."""

    @property
    def emulated(self) -> EmulatedLink:
        """Its link, which must be emulated; raises TypeError if it is real."""
        if isinstance(self.link, EmulatedLink):
            return self.link
        raise TypeError(f"{self.name} has a real link")

    @property
    def real(self) -> bool:
        """Whether its link is a real one."""
        return isinstance(self.link, RealLink)

    @property
    def functional(self) -> bool:
        """Whether runs of it only pass or fail."""
        return self.check is not None

    @property
    def total_size(self) -> int:
        """Bytes of all files together."""
        return sum(self.file_sizes)


TRANSFER = "transfer"
PROTOCOL_TESTS = {Protocol.HQ: TRANSFER, Protocol.H3: "http3", Protocol.TCP: "tcp"}
"""The TESTCASE in which endpoints transfer files over a protocol."""
