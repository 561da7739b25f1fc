"""A quick look at implementations: does an image keep the contract, and carry files from and to a known peer?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from interop.model import ErrorCode, Implementation, Outcome, ResultSet, Role, Run, RunResult, TestCase
from interop.plan import left_out, make_plan
from interop.units import KIB, MIB

PEER = "quic-go"
"""With this one every implementation is tried, in each of its roles."""
SMALL, LARGE = "check-1k", "check-10m"


@dataclass(frozen=True)
class Finding:
    """What was found of one implementation in one role."""

    name: str
    role: Role
    compliant: bool | None = None
    """None if it was not asked."""
    small: RunResult | None = None
    large: RunResult | None = None
    key_log: bool | None = None
    qlog: bool | None = None
    reason: str = ""
    """What went wrong first, in one sentence."""

    @property
    def sound(self) -> bool:
        """Whether it is compliant and both transfers succeeded; logs are not asked for."""
        results = (self.small, self.large)
        return bool(self.compliant) and all(r is not None and r.verdict.outcome is Outcome.SUCCEEDED for r in results)


def check_cases(terrestrial: TestCase) -> tuple[TestCase, TestCase]:
    """The transfers of a check: one file of 1 KiB, one of 10 MiB, once each."""
    small = replace(
        terrestrial,
        name=SMALL,
        abbreviation="C1K",
        description="Check: 1 KiB over a terrestrial link",
        file_sizes=(KIB,),
        repetitions=1,
    )
    description = "Check: 10 MiB over a terrestrial link"
    return small, replace(small, name=LARGE, abbreviation="C10M", description=description, file_sizes=(10 * MIB,))


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
) -> tuple[Finding, ...]:
    """What the runs of a check have shown; their files lie below ``directory``."""
    return tuple(
        _finding(implementation, role, peer, results, directory)
        for implementation in implementations
        for role in sorted(implementation.roles)
    )


def _finding(
    implementation: Implementation, role: Role, peer: Implementation, results: ResultSet, directory: Path
) -> Finding:
    name = implementation.name
    server, client = (implementation, peer) if role is Role.SERVER else (peer, implementation)
    told = next((each for each in results.compliance if (each.implementation, each.role) == (name, role)), None)
    runs = {
        result.test_case: result
        for result in results.results
        if (result.server, result.client) == (server.name, client.name)
    }
    small, large = runs.get(SMALL), runs.get(LARGE)
    reasons = [told.reason] if told else []
    reasons += [run.verdict.reason for run in (small, large) if run and run.verdict.code is not ErrorCode.NOT_COMPLIANT]
    if not runs:
        reasons.append(left_out([server], [client]))
    logs = directory / f"{server.folder}_{client.folder}" / LARGE / "1" / role
    ran = large is not None and large.verdict.outcome not in (Outcome.ERROR, Outcome.UNSUPPORTED)
    return Finding(
        name=name,
        role=role,
        compliant=told.compliant if told else None,
        small=small,
        large=large,
        key_log=_filled([logs / "keys.log"]) if ran else None,
        qlog=_filled([*logs.glob("qlog/**/*"), *logs.glob("*qlog")]) if ran else None,
        reason=next(filter(None, reasons), ""),
    )


def _filled(paths: Iterable[Path]) -> bool:
    return any(path.is_file() and path.stat().st_size > 0 for path in paths)
