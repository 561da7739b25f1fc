"""The check of images: a small campaign with a known peer."""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from quicsat.cli import console, image_tables
from quicsat.cli.image_actions import ImageRequest, Report
from quicsat.cli.image_check import PEER, ImageCheck, Remark, check_cases, check_runs, first_case, nameless
from quicsat.cli.image_findings import findings
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
from quicsat.model.clock import Clock
from quicsat.model.errors import InputError, MachineError
from quicsat.model.implementation import Implementation
from quicsat.model.outcomes import Outcome
from quicsat.model.product_files import build_folder
from quicsat.model.test_case import TestCase
from quicsat.model.text import counted
from quicsat.plan.limits import CampaignLimits
from quicsat.plan.pairs import left_out
from quicsat.plan.select_implementations import select_images
from quicsat.plan.select_names import split
from quicsat.plan.selection import Selection


def check(request: ImageRequest, clock: Clock, wait: float, observer: Observer) -> Report:
    """A small campaign below build/checks, which leaves results/latest as it is.

    It waits for other campaigns on the daemon for up to ``wait`` seconds.
    """
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
        wait=wait,
    )
    finished = try_out(trial, observer)
    results = finished.record.result_set
    found = _as_stated(findings(ready, peer, results, finished.directory), unnamed)
    broken = any(result.verdict.outcome is Outcome.ERROR for result in results.results)
    if finished.fault:
        observer.say(finished.fault)
    if finished.signal is not None:
        left = results.manifest.planned_runs - len(results.done)
        observer.say(f"Stopped by signal {finished.signal}, before {counted(left, 'run')} of the check.")
    parts = [
        image_tables.check([*found, *lost], console.width()),
        f"Logs and traces: {display_path(finished.directory)}",
    ]
    options = ("--clock", clock) if clock is Clock.VIRTUAL else ()
    parts += image_tables.entries(found, unnamed, options)
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
    wait: float = 0.0
    """Seconds for which it waits until other campaigns have ended."""


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
        run=RunConfig(qlog=trial.qlog, parameters=environment_parameters(), clock=clock),
    )
    required = trial.cases[0].name if trial.first_alone else None
    conditions = Conditions(
        request.daemon,
        testbeds=trial.testbeds,
        wait=trial.wait,
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
