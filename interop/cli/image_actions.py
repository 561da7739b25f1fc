"""The actions of ``./run.py images``: list, sources, build, pull and check."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from interop.cli import image_tables
from interop.cli.image_check import PEER, ImageCheck, check_cases, check_runs, findings
from interop.config import loader
from interop.docker import provenance
from interop.docker.client import Daemon
from interop.docker.daemon_images import DaemonImages
from interop.execution.campaign_config import CampaignConfig
from interop.execution.run_campaign import CampaignOutcome, run_campaign
from interop.execution.run_config import RunConfig, environment_parameters
from interop.images.pull_or_build import Images, Policy
from interop.images.status import Got, ImageState, builders, get_all, stock_of, stock_of_own
from interop.model.errors import InputError
from interop.model.implementation import Implementation
from interop.model.outcomes import Outcome
from interop.model.results import ImageFacts, RunResult
from interop.model.run import Run
from interop.model.test_case import TestCase
from interop.plan import selection as plan

PULLS = 4
"""Pulls at a time; the registry is slower than this machine."""


@dataclass(frozen=True)
class Report:
    """What is shown, and what decides the exit status."""

    text: str
    missing: bool = False
    """An image could not be built or pulled, or a run ended with an infrastructure error."""
    failed: bool = False
    """An implementation failed a check."""
    signal: int | None = None


@dataclass(frozen=True)
class ImageRequest:
    """An action and its arguments."""

    action: str
    names: Sequence[str]
    url: str
    """Of the Docker daemon."""
    root: Path
    """The checkout."""
    command: tuple[str, ...]
    markdown: bool = False


def perform(
    request: ImageRequest,
    say: Callable[[str], None],
    progress: Callable[[Sequence[Run]], Callable[[RunResult, int], None]],
) -> Report:
    """Carry out the action of ``request``; raises :class:`UserError` if nothing of it can be done."""
    known = loader.load_implementations(request.root / "implementations.json")
    chosen, own = plan.select_images(request.names, known)
    packages = tuple(known[name] for name in dict.fromkeys(each.name.partition(":")[0] for each in chosen))
    match request.action:
        case "list":
            return _list(request, packages, own)
        case "sources":
            return _sources(request, packages)
        case "build":
            return _build(request, packages, own, say)
        case "pull":
            return _pull(request, packages, own, say)
    return _check(request, chosen, known, say, progress)


def _list(request: ImageRequest, packages: Sequence[Implementation], own: Sequence[str]) -> Report:
    store = DaemonImages(Daemon(request.url, "images"))
    found = [stock_of_own(store, request.root, name) for name in own]
    found += [each for package in packages for each in stock_of(store, request.root, package)]
    return Report(image_tables.images(found, datetime.now(UTC)))


def _sources(request: ImageRequest, packages: Sequence[Implementation]) -> Report:
    """What each image is built from: its labels, or those of the Dockerfile if there is no current image."""
    store = DaemonImages(Daemon(request.url, "images"))
    origins: list[image_tables.Origin] = []
    for package in packages:
        for each in stock_of(store, request.root, package):
            if each.image is not None and each.state is not ImageState.OUTDATED:
                origins.append(image_tables.Origin(each.name, each.state, each.image.version, each.image.provenance))
            elif each.source == "built" and package.build is not None:
                labels = provenance.labels_of(request.root / package.build / "Dockerfile")
                origins.append(image_tables.stated(each.name, "as the Dockerfile states", labels))
    return Report(image_tables.sources(origins, markdown=request.markdown))


def _build(
    request: ImageRequest, packages: Sequence[Implementation], own: Sequence[str], say: Callable[[str], None]
) -> Report:
    daemon = Daemon(request.url, "images")
    store = DaemonImages(daemon)
    images = Images(store, request.root, Policy.BUILD, say)
    ways: dict[str, Callable[[], ImageFacts]] = {name: partial(images.ensure_own, name) for name in own}
    stocked = [stock_of_own(store, request.root, name) for name in own]
    for package in packages:
        if package.build is not None:
            ways[package.name] = partial(images.ensure, package)
            stocked += stock_of(store, request.root, package)
        elif request.names:
            message = f"{package.name} has no Dockerfile here; try `./run.py images pull {package.name}`."
            raise InputError(message)
    current = {each.name for each in stocked if each.state is ImageState.CURRENT}
    workers = builders(int(daemon.info["NCPU"]), int(daemon.info["MemTotal"]))
    return _got(get_all(ways, workers), say, current)


def _pull(
    request: ImageRequest, packages: Sequence[Implementation], own: Sequence[str], say: Callable[[str], None]
) -> Report:
    if own and request.names:
        raise InputError(f"{own[0]} is in no image registry; use `./run.py images build {own[0]}`.")
    images = Images(DaemonImages(Daemon(request.url, "images")), request.root, Policy.PULL, say)
    ways: dict[str, Callable[[], ImageFacts]] = {}
    for package in packages:
        if package.image:
            ways[package.name] = partial(images.renew, package)
        elif request.names:
            raise InputError(f"{package.name} has no public image; try `./run.py images build {package.name}`.")
    return _got(get_all(ways, PULLS), say)


def _got(attempts: Sequence[Got], say: Callable[[str], None], before: Collection[str] = ()) -> Report:
    for attempt in attempts:
        if attempt.fault:
            say(attempt.fault)
    return Report(image_tables.fetched(attempts, before), missing=any(attempt.image is None for attempt in attempts))


# ---- check ----------------------------------------------------------------------------------


def _check(
    request: ImageRequest,
    chosen: Sequence[Implementation],
    known: dict[str, Implementation],
    say: Callable[[str], None],
    progress: Callable[[Sequence[Run]], Callable[[RunResult, int], None]],
) -> Report:
    """A small campaign below build/checks, which leaves results/latest as it is."""
    daemon = Daemon(request.url, "images")
    store = DaemonImages(daemon)
    peer = known.get(PEER)
    if peer is None:
        raise InputError(f"images check needs {PEER} as the peer, which is missing in implementations.json.")
    if not request.names:
        chosen = _within_reach(store, request.root, chosen, say)
    images = Images(store, request.root, Policy.AUTO, say)
    ways: dict[str, Callable[[], ImageFacts]] = {
        each.name: partial(images.ensure, each) for each in dict.fromkeys((*chosen, peer))
    }
    got = {each.name: each for each in get_all(ways, builders(int(daemon.info["NCPU"]), int(daemon.info["MemTotal"])))}
    lost = [ImageCheck(each.name, role, reason=got[each.name].fault.splitlines()[0])
            for each in chosen if got[each.name].fault for role in sorted(each.roles)]  # fmt: skip
    ready = [each for each in chosen if not got[each.name].fault]
    if got[PEER].fault or not ready:
        if got[PEER].fault:
            say(got[PEER].fault)
        return Report(image_tables.check(lost), missing=True)
    finished = try_out(request, ready, peer, _cases(request.root), None, say, progress)
    results = finished.record.result_set
    found = findings(ready, peer, results, finished.directory)
    broken = any(result.verdict.outcome is Outcome.ERROR for result in results.results)
    if finished.fault:
        say(finished.fault)
    return Report(
        f"{image_tables.check([*found, *lost])}\n\nLogs and traces: {finished.directory}",
        missing=bool(lost or finished.fault or broken),
        failed=not all(each.sound for each in found),
        signal=finished.signal,
    )


def _within_reach(
    store: DaemonImages, root: Path, implementations: Sequence[Implementation], say: Callable[[str], None]
) -> list[Implementation]:
    """Those whose images are on this machine or can be built on it; the others are not pulled."""
    near = [
        each
        for each in implementations
        if each.build is not None or stock_of(store, root, each)[0].state is not ImageState.MISSING
    ]
    if far := [each.name for each in implementations if each not in near]:
        say(f"Skipped, since their images are not on this machine: {', '.join(far)}. To get them: ./run.py images pull")
    return near


def try_out(
    request: ImageRequest,
    ready: Sequence[Implementation],
    peer: Implementation,
    cases: Sequence[TestCase],
    directory: Path | None,
    say: Callable[[str], None],
    progress: Callable[[Sequence[Run]], Callable[[RunResult, int], None]],
    *,
    qlog: bool = True,
) -> CampaignOutcome:
    """A campaign of ``cases`` with the peer, for implementations whose images are ready, each in all its roles.

    By default it has a directory below build/checks. Raises :class:`UserError` if nothing could be started.
    """
    seed = secrets.randbelow(2**31)
    runs = check_runs(ready, peer, cases, seed)
    if not runs:
        raise InputError(f"Nothing to check: {plan.left_out([peer], ready) or plan.left_out(ready, [peer])}.")
    selection = plan.Selection(
        servers=tuple(dict.fromkeys(run.server for run in runs)),
        clients=tuple(dict.fromkeys(run.client for run in runs)),
        test_cases=tuple(cases),
    )
    config = CampaignConfig(
        url=request.url,
        root=request.root,
        results=request.root / "build" / "checks",
        directory=directory,
        policy=Policy.AUTO,
        seed=seed,
        command=request.command,
        run=RunConfig(qlog, parameters=environment_parameters()),
    )
    return run_campaign(selection, runs, config, say, progress(runs))


def _cases(root: Path) -> tuple[TestCase, ...]:
    """The transfers of a check, and all functional tests."""
    known = loader.load_known_test_cases(root / "testcases")
    if "terrestrial" not in known:
        raise InputError("images check needs the test case terrestrial, which is missing in testcases/.")
    return (*check_cases(known["terrestrial"]), *(case for case in known.values() if case.functional))
