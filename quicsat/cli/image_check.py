"""A look at implementations: does an image keep the contract, carry files from and to a known peer, leave logs?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import Outcome
from quicsat.model.results import RunResult
from quicsat.model.run import Run
from quicsat.model.test_case import TestCase
from quicsat.model.units import KIB, MIB
from quicsat.plan.make_plan import make_plan
from quicsat.plan.pairs import left_out

PEER = "quic-go"
"""With this one every implementation is tried, in each of its roles."""
SMALL, LARGE, IPV6 = "check-1k", "check-10m", "check-ipv6"
PASSING = (Outcome.SUCCEEDED, Outcome.UNSUPPORTED)
"""What a functional test may come to."""


@dataclass(frozen=True)
class ImageCheck:
    """Result of `images check` for one implementation in one role."""

    name: str
    role: Role
    compliant: bool | None = None
    """None if it was not asked."""
    small: RunResult | None = None
    large: RunResult | None = None
    ipv6: RunResult | None = None
    functional: tuple[RunResult, ...] = ()
    key_log: bool | None = None
    """Whether the packets of the large transfer can be decrypted with its key log alone."""
    qlog: bool | None = None
    """Whether it left a qlog of the large transfer that can be read."""
    reason: str = ""
    """What went wrong first, in one sentence."""

    @property
    def sound(self) -> bool:
        """Whether it is compliant, and all transfers and all tests that it knows succeeded; no logs are asked for."""
        transfers = all(outcome_of(run) is Outcome.SUCCEEDED for run in (self.small, self.large, self.ipv6))
        return bool(self.compliant) and transfers and all(outcome_of(run) in PASSING for run in self.functional)


def outcome_of(result: RunResult | None) -> Outcome | None:
    """What a run came to, None if there was none."""
    return result.verdict.outcome if result else None


def check_cases(terrestrial: TestCase) -> tuple[TestCase, TestCase, TestCase]:
    """The transfers of a check: one file of 1 KiB, one of 10 MiB, one of 1 KiB over IPv6, once each."""
    small = replace(
        terrestrial,
        name=SMALL,
        abbreviation="C1K",
        description="Check: 1 KiB over a terrestrial link",
        file_sizes=(KIB,),
        repetitions=1,
    )
    text = "Check: 10 MiB over a terrestrial link"
    large = replace(small, name=LARGE, abbreviation="C10M", description=text, file_sizes=(10 * MIB,))
    text = "Check: 1 KiB over a terrestrial link and IPv6"
    return small, large, replace(small, name=IPV6, abbreviation="C6", description=text, server_name="server6")


def check_runs(
    implementations: Iterable[Implementation], peer: Implementation, cases: Sequence[TestCase], seed: int
) -> tuple[Run, ...]:
    """Each implementation in each of its roles with the peer, where they have a protocol in common."""
    runs: list[Run] = []
    for implementation in implementations:
        for role in sorted(implementation.roles):
            server, client = (implementation, peer) if role is Role.SERVER else (peer, implementation)
            if not left_out([server], [client]):
                runs += make_plan([server], [client], cases, seed=seed)
    return tuple(dict.fromkeys(runs))
