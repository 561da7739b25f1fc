"""How the rule of a functional test is declared and applied, and what most of the rules ask for; pure.

Rules get both traces of a run. That the files arrived whole, and how the endpoints ended, has been looked at before.
With ``--strict-upstream`` the rules are those of the QUIC Interop Runner (commit 1d6f655), even where the RFCs ask for
more or for less. It reads packets with pyshark, which gives only the first of several fields of the same name in a
packet, and only the first QUIC packet of a datagram in some of its rules. What such a rule needs and no key opens fails
it. docs/reference/functional-tests.md states what these rules cannot copy.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from quicsat.analysis import run_outcome
from quicsat.analysis.run_outcome import failed
from quicsat.model.outcomes import Check, ErrorCode, Outcome, Rules, Verdict
from quicsat.model.test_case import TestCase
from quicsat.traces.columns import Form, Trace


@dataclass(frozen=True, eq=False)
class Observation:
    """What a run of a functional test left, read."""

    case: TestCase
    client: Trace
    """The trace at the client."""
    server: Trace
    """The trace at the server."""
    keys: bool
    """Whether an endpoint wrote a key log."""

    @property
    def upstream(self) -> bool:
        """Whether the rules are those of the QUIC Interop Runner."""
        return self.case.rules is Rules.UPSTREAM


Judge = Callable[[Observation], Verdict | None]


@dataclass(frozen=True, eq=False)
class Rule:
    """The rule of a functional test; its texts are the row of the test in docs/reference/functional-tests.md."""

    check: Check
    judge: Judge
    """What is wrong with a run; None if it passed."""
    requirement: str
    rfc: str
    """Number and sections, as in ``9000: 17.2.5``."""
    qir: str
    """In which points the rule of the QUIC Interop Runner differs."""
    needs_keys: bool
    """Whether it looks into packets that only the endpoints' keys open."""


_RULES: dict[Check, Rule] = {}


def rule(
    check: Check, *, requirement: str, rfc: str = "–", qir: str = "same requirement", needs_keys: bool = False
) -> Callable[[Judge], Judge]:
    """Declare a function as the rule of a functional test, see :class:`Rule`."""

    def declare(judge: Judge) -> Judge:
        _RULES[check] = Rule(check, judge, requirement, rfc, qir, needs_keys)
        return judge

    return declare


@cache
def rules() -> Mapping[Check, Rule]:
    """The rules of all modules of this package."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"{__package__}.{module.name}")
    return _RULES


def judge(seen: Observation) -> Verdict | None:
    """What is wrong with the run of a functional test; None if it passed.

    ``UNSUPPORTED`` if the test needs to look into packets and no endpoint wrote a key log, as upstream has it.
    """
    check = seen.case.check
    if check is None:
        return None
    return (None if seen.keys else without_keys(check)) or rules()[check].judge(seen)


def without_keys(check: Check) -> Verdict | None:
    """The verdict if no endpoint wrote a key log; None if the check needs none."""
    if not rules()[check].needs_keys:
        return None
    reason = f'No endpoint wrote a key log, without which "{check}" cannot be seen.'
    return Verdict(Outcome.UNSUPPORTED, ErrorCode.KEY_LOG_MISSING, reason)


def sealed(what: str) -> Verdict:
    """A test that cannot be judged, since a key log does not open what it is about."""
    return Verdict(Outcome.UNSUPPORTED, ErrorCode.KEY_LOG_MISSING, f"The key logs do not open {what}.")


def closed(trace: Trace, *, from_server: bool) -> bool:
    """Whether no key opens any of the 1-RTT packets of a side."""
    own = (trace.from_server == from_server) & (trace.form == Form.ONE_RTT)
    return bool(own.any()) and not trace.decrypted[own].any()


def connections(seen: Observation, expected: int = 1) -> Verdict | None:
    """Whether there are as many handshakes as there should be, and all of them in version 1."""
    if seen.upstream:
        return handshakes_by_id(seen.server, expected) or run_outcome.version(seen.server)
    return run_outcome.handshake_count(seen.client, expected) or run_outcome.version(seen.client)


def handshakes_by_id(server: Trace, expected: int = 1) -> Verdict | None:
    """The number of handshakes as upstream counts them, by the source connection ids of the server's Initials."""
    found = len(set(server.scid[server.from_server & (server.form == Form.INITIAL)].tolist()))
    if found == expected:
        return None
    reason = f"The server's Initials have {found} source connection ids instead of {expected}."
    return failed(ErrorCode.HANDSHAKE_COUNT, reason)
