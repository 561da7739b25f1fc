"""What the runs of a check of images and their logs show: all that is wrong, and what else is worth a note."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from signal import Signals

from quicsat.cli.image_check import IPV6, LARGE, PEER_FAILS, SMALL, ImageCheck, Remark, outcome_of
from quicsat.links.session import LOG_GRACE, STOP_GRACE
from quicsat.model.endpoint_contract import UNSUPPORTED_STATUS
from quicsat.model.errors import HarnessFault
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.results import Compliance, ResultSet, RunResult
from quicsat.model.run import RunKey
from quicsat.model.stored_files import files, files_below
from quicsat.model.text import counted
from quicsat.plan.pairs import left_out
from quicsat.traces import qlog
from quicsat.traces.columns import Form
from quicsat.traces.key_log import key_lines
from quicsat.traces.trace import read

CLIENT_TRACE = "sim/trace_node_left.pcap"
KILLED = 128 + Signals.SIGKILL
UNKNOWN_TEST = "unknown test"
NOT_CHECKED = "the answer to an unknown test name was not checked."
NOT_MADE = "the run was not made, because the check ended early."
PEER_S_FAULT = "not counted: {peer} fails it with every implementation."
NO_KEY_LOG = (
    "no key log decrypts the packets, so that quicsat measures only what it sees of encrypted packets; write the keys "
    "to the file in SSLKEYLOGFILE."
)
NO_QLOG = "no qlog can be read; if the implementation can write one, write it to the directory in QLOGDIR."
KILLED_SERVER = (
    "the server did not end after SIGTERM, so that it could not complete its logs: it must end within "
    f"{STOP_GRACE + LOG_GRACE:.0f} s; it must handle the signal, because the kernel does not end the first process of "
    "a container by default; if a shell starts it, use `exec`, because a shell does not pass the signal on."
)


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
    functional = {case: run for case, run in runs.items() if case not in (SMALL, LARGE, IPV6)}
    failing = PEER_FAILS[Role.SERVER if role is Role.CLIENT else Role.CLIENT]
    checks = {case.name: case.check for case in results.manifest.test_cases}
    excused = {case for case, run in functional.items() if checks.get(case) in failing and _failed(run)}
    place = directory / RunKey(server.name, client.name, LARGE, 1).path
    ran = outcome_of(large) not in (None, Outcome.ERROR, Outcome.UNSUPPORTED, Outcome.SKIPPED)
    found = ImageCheck(
        name=name,
        role=role,
        compliant=compliance.compliant if compliance else None,
        small=small,
        large=large,
        ipv6=ipv6,
        functional=tuple(run for case, run in functional.items() if case not in excused),
        key_log=_decrypts(place, role) if ran else None,
        qlog=_has_qlog(place / role) if ran else None,
        without_role=bool(compliance and compliance.compliant and runs) and _declines(next(iter(runs.values())), role),
    )
    return replace(
        found,
        problems=(
            *([] if runs else [Remark("transfers", left_out([server], [client]))]),
            *(Remark(case, NOT_MADE) for case in (SMALL, LARGE, IPV6) if runs and case not in runs),
            *_compliance_problems(compliance),
            *_failures([run for case, run in runs.items() if case not in excused], directory),
        ),
        notes=(
            *(
                Remark(case, PEER_S_FAULT.format(peer=peer.name), directory / functional[case].key.path)
                for case in sorted(excused)
            ),
            *_notes(found, directory),
        ),
    )


def _failed(run: RunResult) -> bool:
    return run.verdict.outcome in (Outcome.FAILED, Outcome.TIMEOUT)


def _declines(run: RunResult, role: Role) -> bool:
    """Whether the endpoint in a role ended with the status that says that it does not know the test."""
    end = run.evidence.client if role is Role.CLIENT else run.evidence.server
    return end is not None and end.status == UNSUPPORTED_STATUS


def _compliance_problems(compliance: Compliance | None) -> Iterator[Remark]:
    if compliance is None:
        yield Remark(UNKNOWN_TEST, NOT_CHECKED)
    elif not compliance.compliant:
        yield Remark(UNKNOWN_TEST, f"{compliance.reason}.", output=compliance.output)


def _failures(runs: Sequence[RunResult], directory: Path) -> Iterator[Remark]:
    """A remark for each run that did not succeed, and one for all that were skipped.

    A functional test may be unsupported; a transfer may not, nor the test on which the others depend.
    """
    skipped = [run for run in runs if run.verdict.outcome is Outcome.SKIPPED]
    for run in runs:
        outcome = run.verdict.outcome
        required = run.test_case in (SMALL, LARGE, IPV6) or skipped
        if _failed(run) or outcome is Outcome.ERROR or (outcome is Outcome.UNSUPPORTED and required):
            yield Remark(run.test_case, f"{run.verdict.summary}: {run.verdict.reason}", directory / run.key.path)
    if skipped:
        yield Remark(f"{counted(len(skipped), 'further test')}", skipped[0].verdict.reason)


def _notes(found: ImageCheck, directory: Path) -> Iterator[Remark]:
    for run in found.functional:
        if run.verdict.code is ErrorCode.KEY_LOG_MISSING:
            yield Remark(run.test_case, f"not judged: {run.verdict.reason}", directory / run.key.path)
    if found.key_log is False:
        yield Remark("key log", NO_KEY_LOG)
    if found.qlog is False:
        yield Remark("qlog", NO_QLOG)
    served = found.small if found.role is Role.SERVER else None
    server = served.evidence.server if served else None
    if served and server and server.killed and server.status == KILLED:
        yield Remark("SIGTERM", KILLED_SERVER, directory / served.key.path)


def _decrypts(place: Path, role: Role) -> bool:
    """Whether 1-RTT packets can be decrypted in a run's client-side trace with the key log of one side."""
    keys = key_lines(place / role / "keys.log")
    try:
        trace = read(place / CLIENT_TRACE, keys) if keys else None
    except HarnessFault:
        return False
    return trace is not None and bool((trace.decrypted & (trace.form == Form.ONE_RTT)).any())


def _has_qlog(logs: Path) -> bool:
    for path in (*files_below(logs / "qlog"), *(each for each in files(logs) if "qlog" in each.name)):
        with suppress(OSError, ValueError):
            if qlog.read(path).events:
                return True
    return False
