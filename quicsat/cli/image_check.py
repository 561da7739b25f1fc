"""A look at implementations: does an image keep the contract, carry files from and to a known peer, leave logs?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quicsat.model.errors import InputError
from quicsat.model.implementation import Implementation, Protocol, Role
from quicsat.model.names import NAME_RULE, is_image, is_name
from quicsat.model.outcomes import Check, Outcome
from quicsat.model.results import RunResult
from quicsat.model.run import Run
from quicsat.model.test_case import TestCase
from quicsat.model.units import KIB, MIB
from quicsat.plan.make_plan import make_plan
from quicsat.plan.pairs import left_out

PEER = "quic-go"
"""With this one every implementation is tried, in each of its roles."""
SMALL, LARGE, IPV6 = "check-1k", "check-10m", "check-ipv6"
PEER_FAILS = {Role.CLIENT: frozenset({Check.VERSION_NEGOTIATION}), Role.SERVER: frozenset({Check.AMPLIFICATION_LIMIT})}
"""Functional tests that the peer fails in a role with every implementation (docs/measurements/functional-tests.md)."""


@dataclass(frozen=True)
class Remark:
    """Something that a check has found in one role of an implementation."""

    about: str
    """A test case, or what else was looked at."""
    text: str
    run: Path | None = None
    """Directory of the run that shows it."""
    output: str = ""
    """What the container wrote, in lines."""


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
    without_role: bool = False
    """The image does not know the first test in this role, and no entry says that it has the role."""
    problems: tuple[Remark, ...] = ()
    """All that is wrong."""
    notes: tuple[Remark, ...] = ()
    """What else its author may want to know: logs are not required, and the peer has faults of its own."""

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong: it is compliant, and all transfers and all tests that it knows succeeded."""
        return not self.problems


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


def nameless(image: str, taken: Iterable[str]) -> Implementation | None:
    """An implementation for an image that no entry names, in both roles; None if ``image`` is no image reference.

    Its name comes from the image's: ``registry.example.org/me/my-quic:dev`` -> ``my-quic``.
    """
    if not is_image(image):
        return None
    name = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    name = f"{name}-image" if name in taken else name
    if not is_name(name):
        raise InputError(f"{image}: its name, {name}, must be {NAME_RULE}; give it another one with `docker tag`.")
    return Implementation(name, image, "", frozenset(Role), replaced=True)


def first_case(implementations: Iterable[Implementation], cases: Iterable[TestCase]) -> str:
    """The test case without which no other one is tried: the simplest that all can do."""
    shake = next((case.name for case in cases if case.check is Check.HANDSHAKE), SMALL)
    return shake if all(Protocol.HQ in each.protocols for each in implementations) else SMALL


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
