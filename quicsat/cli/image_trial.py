"""The check of images: a small campaign with a known peer, and what its runs and logs show."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from signal import Signals

from quicsat.cli import console, image_tables
from quicsat.cli.image_actions import ImageRequest, Report
from quicsat.cli.image_check import (
    IPV6,
    LARGE,
    PEER,
    PEER_FAILS,
    SMALL,
    ImageCheck,
    Remark,
    check_cases,
    check_runs,
    first_case,
    nameless,
    outcome_of,
)
from quicsat.config.inventory import Inventory
from quicsat.config.yaml_fields import display_path
from quicsat.docker import processors
from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.docker.ssh_tunnel import connected
from quicsat.execution.campaign_config import CampaignOutcome, Conditions, ImageSource, NewCampaign
from quicsat.execution.observer import Observer
from quicsat.execution.run_campaign import run_campaign
from quicsat.execution.run_config import RunConfig, environment_parameters
from quicsat.images.pull_or_build import Images, Policy
from quicsat.images.status import Got, ImageState, builders, get_all, stock_of
from quicsat.links.session import LOG_GRACE, STOP_GRACE
from quicsat.model.clock import Clock
from quicsat.model.cpu_cost import CPU_COST
from quicsat.model.endpoint_contract import UNSUPPORTED_STATUS
from quicsat.model.errors import HarnessFault, InputError, MachineError
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.product_files import build_folder
from quicsat.model.results import Compliance, ResultSet, RunResult
from quicsat.model.run import RunKey
from quicsat.model.stored_files import files, files_below
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.plan.limits import CampaignLimits
from quicsat.plan.pairs import left_out
from quicsat.plan.select_implementations import select_images
from quicsat.plan.select_names import split
from quicsat.plan.selection import Selection
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
    "no key log decrypts the packets, so that quicsat measures only what it sees of encrypted packets; write the \
keys to the file in SSLKEYLOGFILE."
)
NO_QLOG = "no qlog can be read; if the implementation can write one, write it to the directory in QLOGDIR."
KILLED_SERVER = f"the server did not end after SIGTERM, so that it could not complete its logs: it must end within \
{STOP_GRACE + LOG_GRACE:.0f} s; if a shell starts it, use `exec`, because a shell does not pass the signal on."


def check(request: ImageRequest, clock: Clock, observer: Observer) -> Report:
    """A small campaign below build/checks, which leaves results/latest as it is."""
    known = Inventory(request.root).implementations
    peer = known.get(PEER)
    if peer is None:
        raise InputError(f"images check needs {PEER} as the peer, which is missing in implementations.json.")
    with connected(request.daemon, "images") as daemon:
        store = DaemonImages(daemon)
        chosen, unnamed = _chosen(request.names, known, store)
        if not request.names:
            chosen = _within_reach(store, request.root, chosen, observer)
        images = Images(store, request.root, Policy.AUTO, observer.say)
        ways = {each.name: partial(images.ensure, each) for each in dict.fromkeys((*chosen, peer))}
        workers = builders(int(daemon.info["NCPU"]), int(daemon.info["MemTotal"]))
        got = {each.name: _that_runs(each, daemon, clock) for each in get_all(ways, workers)}
    lost = [
        ImageCheck(each.name, role, problems=(Remark("image", got[each.name].fault),))
        for each in chosen
        if got[each.name].fault
        for role in sorted(each.roles)
    ]
    ready = [each for each in chosen if not got[each.name].fault]
    if got[PEER].fault or not ready:
        if got[PEER].fault:
            observer.say(got[PEER].fault)
        return Report(image_tables.check(lost, console.width()), missing=True)
    trial = Trial(
        request,
        ready,
        peer,
        _cases(request.root, ready),
        testbeds=None if clock is Clock.VIRTUAL else 1,
        clock=clock,
        first_alone=True,
    )
    finished = try_out(trial, observer)
    results = finished.record.result_set
    found = _as_stated(findings(ready, peer, results, finished.directory), unnamed)
    broken = any(result.verdict.outcome is Outcome.ERROR for result in results.results)
    if finished.fault:
        observer.say(finished.fault)
    parts = [
        image_tables.check([*found, *lost], console.width()),
        f"Logs and traces: {display_path(finished.directory)}",
    ]
    parts += image_tables.entries(found, unnamed)
    return Report(
        "\n\n".join(parts),
        missing=bool(lost or finished.fault or broken),
        failed=not all(each.sound for each in found),
        signal=finished.signal,
    )


def _chosen(
    names: Sequence[str], known: Mapping[str, Implementation], store: DaemonImages
) -> tuple[Sequence[Implementation], dict[str, str]]:
    """What the names select: entries, and images that no entry names. The references of these images by their names.

    Raises :class:`InputError` with every fault.
    """
    if not names:
        return select_images(names, known)[0], {}
    chosen: dict[str, Implementation] = {}
    unnamed: dict[str, str] = {}
    problems: list[str] = []
    for word in split(names):
        try:
            chosen |= {each.name: each for each in select_images([word], known)[0]}
        except InputError as error:
            found = nameless(word, known)
            if found is None:
                problems += error.problems
            elif "/" in word or store.find(word) is not None:
                chosen[found.name], unnamed[found.name] = found, word
            else:
                problems += [f"{each} The Docker daemon has no image of this name either." for each in error.problems]
    if problems or not chosen:
        raise InputError(*problems or ["Name an implementation or an endpoint image to check."])
    return tuple(chosen.values()), unnamed


def _that_runs(got: Got, daemon: Daemon, clock: Clock) -> Got:
    """An image with a fault if the daemon's processor can run it in no way; the campaign says that one is emulated."""
    if got.image is None or processors.is_native(got.image, daemon):
        return got
    try:
        processors.check_all({got.name: got.image}, daemon, clock, lambda _: None)
    except MachineError as error:
        return replace(got, image=None, fault=str(error))
    return got


def _as_stated(findings: Sequence[ImageCheck], unnamed: Collection[str]) -> list[ImageCheck]:
    """An image whose roles no entry states need not have both: one is enough in which it knows the first test."""
    able = {each.name for each in findings if each.name in unnamed and not each.without_role}
    return [replace(each, problems=()) if each.without_role and each.name in able else each for each in findings]


def _within_reach(
    store: DaemonImages, root: Path, implementations: Sequence[Implementation], observer: Observer
) -> list[Implementation]:
    """Those whose images are on this machine or can be built on it; the others are not pulled."""
    near = [
        each
        for each in implementations
        if each.build is not None or stock_of(store, root, each)[0].state is not ImageState.MISSING
    ]
    if far := [each.name for each in implementations if each not in near]:
        observer.say(
            f"Skipped, since their images are not on this machine: {', '.join(far)}. To get them: ./run.py images pull"
        )
    return near


@dataclass(frozen=True)
class Trial:
    """A campaign of test cases with the peer, for implementations whose images are ready, each in all its roles."""

    request: ImageRequest
    ready: Sequence[Implementation]
    peer: Implementation
    cases: Sequence[TestCase]
    directory: Path | None = None
    """That of the campaign; None for one below build/checks."""
    qlog: bool = True
    testbeds: int | None = 1
    """Maximum number of parallel runs; None for as many as the CPUs allow."""
    clock: Clock = Clock.REAL
    first_alone: bool = False
    """Make the other runs of a pair only if the first test case succeeds."""


def try_out(trial: Trial, observer: Observer) -> CampaignOutcome:
    """Make it; raises :class:`UserError` if nothing could be started."""
    request, ready, peer = trial.request, trial.ready, trial.peer
    clock = trial.clock
    with connected(request.daemon, "images") as daemon:
        if daemon.rootless and clock is Clock.REAL:
            observer.say("The engine runs without root access, so the runs use virtual time.")
            clock = Clock.VIRTUAL
    seed = secrets.randbelow(2**31)
    runs = check_runs(ready, peer, trial.cases, seed)
    if not runs:
        raise InputError(f"Nothing to check: {left_out([peer], ready) or left_out(ready, [peer])}.")
    new = NewCampaign(
        Selection(
            servers=tuple(dict.fromkeys(run.server for run in runs)),
            clients=tuple(dict.fromkeys(run.client for run in runs)),
            test_cases=tuple(trial.cases),
        ),
        tuple(runs),
        seed,
        request.command,
        ImageSource(request.root, Policy.AUTO),
        results=build_folder() / "checks",
        directory=trial.directory,
        run=RunConfig(
            qlog=trial.qlog,
            parameters=environment_parameters(),
            clock=clock,
            cpu_cost=CPU_COST,
            own_cpu_costs=clock is Clock.VIRTUAL,
        ),
    )
    required = trial.cases[0].name if trial.first_alone else None
    conditions = Conditions(
        request.daemon,
        testbeds=trial.testbeds,
        limits=CampaignLimits(required=required),
        try_not_compliant=True,
    )
    return run_campaign(new, conditions, observer)


def _cases(root: Path, implementations: Iterable[Implementation]) -> tuple[TestCase, ...]:
    """The transfers of a check, and all functional tests; first the one without which no other makes sense."""
    known = Inventory(root).test_cases
    if "terrestrial" not in known:
        raise InputError("images check needs the test case terrestrial, which is missing in testcases/.")
    cases = (*check_cases(known["terrestrial"]), *(case for case in known.values() if case.functional))
    first = first_case(implementations, cases)
    return tuple(sorted(cases, key=lambda case: case.name != first))


# ---- findings -------------------------------------------------------------------------------


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
