"""A look at implementations: does an image keep the contract, carry files from and to a known peer, leave logs?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from interop.model.errors import HarnessFault
from interop.model.implementation import Implementation, Role
from interop.model.outcomes import ErrorCode, Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.run import Run, RunKey
from interop.model.test_case import TestCase
from interop.model.units import KIB, MIB
from interop.plan.selection import left_out, make_plan
from interop.traces import qlog
from interop.traces.columns import Form
from interop.traces.key_log import key_lines
from interop.traces.trace import read

PEER = "quic-go"
"""With this one every implementation is tried, in each of its roles."""
SMALL, LARGE, IPV6 = "check-1k", "check-10m", "check-ipv6"
CLIENT_TRACE = "sim/trace_node_left.pcap"
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


def findings(
    implementations: Iterable[Implementation], peer: Implementation, results: ResultSet, directory: Path
) -> tuple[ImageCheck, ...]:
    """What the runs of a check have shown; their files lie below ``directory``."""
    return tuple(
        _finding(implementation, role, peer, results, directory)
        for implementation in implementations
        for role in sorted(implementation.roles)
    )


def _finding(
    implementation: Implementation, role: Role, peer: Implementation, results: ResultSet, directory: Path
) -> ImageCheck:
    name = implementation.name
    server, client = (implementation, peer) if role is Role.SERVER else (peer, implementation)
    compliance = next((each for each in results.compliance if (each.implementation, each.role) == (name, role)), None)
    runs = {
        result.test_case: result
        for result in results.results
        if (result.server, result.client) == (server.name, client.name)
    }
    small, large, ipv6 = (runs.get(case) for case in (SMALL, LARGE, IPV6))
    functional = tuple(run for case, run in runs.items() if case not in (SMALL, LARGE, IPV6))
    reasons = [compliance.reason] if compliance else []
    reasons += [
        f"{case}: {run.verdict.reason}" if run.verdict.reason else ""
        for case, run in runs.items()
        if run.verdict.code is not ErrorCode.NOT_COMPLIANT
        and not (run in functional and run.verdict.outcome in PASSING)
    ]
    if not runs:
        reasons.append(left_out([server], [client]))
    place = directory / RunKey(server.name, client.name, LARGE, 1).path
    ran = outcome_of(large) not in (None, Outcome.ERROR, Outcome.UNSUPPORTED)
    return ImageCheck(
        name=name,
        role=role,
        compliant=compliance.compliant if compliance else None,
        small=small,
        large=large,
        ipv6=ipv6,
        functional=functional,
        key_log=_decrypts(place, role) if ran else None,
        qlog=_has_qlog(place / role) if ran else None,
        reason=next(filter(None, reasons), ""),
    )


def _decrypts(place: Path, role: Role) -> bool:
    """Whether 1-RTT packets can be decrypted in a run's client-side trace with the key log of one side."""
    keys = key_lines(place / role / "keys.log")
    try:
        trace = read(place / CLIENT_TRACE, keys) if keys else None
    except HarnessFault:
        return False
    return trace is not None and bool((trace.decrypted & (trace.form == Form.ONE_RTT)).any())


def _has_qlog(logs: Path) -> bool:
    for path in (*logs.glob("qlog/**/*"), *logs.glob("*qlog")):
        try:
            if path.is_file() and qlog.read(path):
                return True
        except (OSError, ValueError):
            continue
    return False
