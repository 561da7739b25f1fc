"""The check of images: a small campaign with a known peer, and what its runs and logs show."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from quicsat.cli import image_tables
from quicsat.cli.image_actions import ImageRequest, Report
from quicsat.cli.image_check import IPV6, LARGE, PASSING, PEER, SMALL, ImageCheck, check_cases, check_runs, outcome_of
from quicsat.config.inventory import Inventory
from quicsat.docker.daemon_images import DaemonImages
from quicsat.docker.ssh_tunnel import connected
from quicsat.execution.campaign_config import CampaignOutcome, Conditions, ImageSource, NewCampaign
from quicsat.execution.observer import Observer
from quicsat.execution.run_campaign import run_campaign
from quicsat.execution.run_config import RunConfig, environment_parameters
from quicsat.images.pull_or_build import Images, Policy
from quicsat.images.status import ImageState, builders, get_all, stock_of
from quicsat.model.clock import Clock
from quicsat.model.cpu_cost import CPU_COST
from quicsat.model.errors import HarnessFault, InputError
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.product_files import build_folder
from quicsat.model.results import ResultSet
from quicsat.model.run import RunKey
from quicsat.model.stored_files import files, files_below
from quicsat.model.test_case import TestCase
from quicsat.plan.pairs import left_out
from quicsat.plan.select_implementations import select_images
from quicsat.plan.selection import Selection
from quicsat.traces import qlog
from quicsat.traces.columns import Form
from quicsat.traces.key_log import key_lines
from quicsat.traces.trace import read

CLIENT_TRACE = "sim/trace_node_left.pcap"


def check(request: ImageRequest, observer: Observer) -> Report:
    """A small campaign below build/checks, which leaves results/latest as it is."""
    known = Inventory(request.root).implementations
    chosen: Sequence[Implementation] = select_images(request.names, known)[0]
    peer = known.get(PEER)
    if peer is None:
        raise InputError(f"images check needs {PEER} as the peer, which is missing in implementations.json.")
    with connected(request.daemon, "images") as daemon:
        store = DaemonImages(daemon)
        if not request.names:
            chosen = _within_reach(store, request.root, chosen, observer)
        images = Images(store, request.root, Policy.AUTO, observer.say)
        ways = {each.name: partial(images.ensure, each) for each in dict.fromkeys((*chosen, peer))}
        workers = builders(int(daemon.info["NCPU"]), int(daemon.info["MemTotal"]))
        got = {each.name: each for each in get_all(ways, workers)}
    lost = [ImageCheck(each.name, role, reason=got[each.name].fault.splitlines()[0])
            for each in chosen if got[each.name].fault for role in sorted(each.roles)]  # fmt: skip
    ready = [each for each in chosen if not got[each.name].fault]
    if got[PEER].fault or not ready:
        if got[PEER].fault:
            observer.say(got[PEER].fault)
        return Report(image_tables.check(lost), missing=True)
    finished = try_out(Trial(request, ready, peer, _cases(request.root)), observer)
    results = finished.record.result_set
    found = findings(ready, peer, results, finished.directory)
    broken = any(result.verdict.outcome is Outcome.ERROR for result in results.results)
    if finished.fault:
        observer.say(finished.fault)
    return Report(
        f"{image_tables.check([*found, *lost])}\n\nLogs and traces: {finished.directory}",
        missing=bool(lost or finished.fault or broken),
        failed=not all(each.sound for each in found),
        signal=finished.signal,
    )


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
    testbeds: int = 1
    """Maximum number of parallel runs."""


def try_out(trial: Trial, observer: Observer) -> CampaignOutcome:
    """Make it; raises :class:`UserError` if nothing could be started."""
    request, ready, peer = trial.request, trial.ready, trial.peer
    clock = Clock.REAL
    with connected(request.daemon, "images") as daemon:
        if daemon.rootless:
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
    return run_campaign(new, Conditions(request.daemon, testbeds=trial.testbeds), observer)


def _cases(root: Path) -> tuple[TestCase, ...]:
    """The transfers of a check, and all functional tests."""
    known = Inventory(root).test_cases
    if "terrestrial" not in known:
        raise InputError("images check needs the test case terrestrial, which is missing in testcases/.")
    return (*check_cases(known["terrestrial"]), *(case for case in known.values() if case.functional))


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
    for path in (*files_below(logs / "qlog"), *(each for each in files(logs) if "qlog" in each.name)):
        with suppress(OSError, ValueError):
            if qlog.read(path).events:
                return True
    return False
