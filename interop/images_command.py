"""``./run.py images list|sources|build|pull|check``: what images are here, getting several, a quick look at them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from interop import inventory, lists, measure, plan, provenance
from interop.checkup import PEER, Finding, check_cases, check_runs, findings
from interop.errors import InputError
from interop.execution.daemon import Daemon
from interop.images import Images, Policy
from interop.model import ImageFacts, Implementation, Outcome, Run, RunResult, TestCase
from interop.stock import Got, State, Stocked, builders, get_all, stock_of, stock_of_simulator

ACTIONS = ("list", "sources", "build", "pull", "check")
PULLS = 4
"""At the same time: a registry is slower than the machine."""


@dataclass(frozen=True)
class Report:
    """What a person is shown, and what stands behind the exit status."""

    text: str
    missing: bool = False
    """An image could not be had, or a run ended by a fault of ours."""
    failed: bool = False
    """An implementation did not do what it should."""
    signal: int | None = None


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    action: str
    names: Sequence[str]
    url: str
    """Of the Docker daemon."""
    root: Path
    """The checkout."""
    command: tuple[str, ...]
    markdown: bool = False


def carry_out(
    request: Request,
    say: Callable[[str], None],
    progress: Callable[[Sequence[Run]], Callable[[RunResult, int], None]],
) -> Report:
    """Do what was asked; raises :class:`UserError` if nothing of it can be done."""
    known = inventory.load_implementations(request.root / "implementations.json")
    chosen, simulator = plan.select_images(request.names, known)
    packages = tuple(known[name] for name in dict.fromkeys(each.name.partition(":")[0] for each in chosen))
    match request.action:
        case "list":
            return _list(request, packages, simulator)
        case "sources":
            return _sources(request, packages)
        case "build":
            return _build(request, packages, simulator, say)
        case "pull":
            return _pull(request, packages, simulator, say)
    return _check(request, chosen, known, say, progress)


def _list(request: Request, packages: Sequence[Implementation], simulator: bool) -> Report:
    daemon = Daemon(request.url, "images")
    found = [stock_of_simulator(daemon, request.root)] if simulator else []
    found += [each for package in packages for each in stock_of(daemon, request.root, package)]
    return Report(lists.stock(found, datetime.now(UTC)))


def _sources(request: Request, packages: Sequence[Implementation]) -> Report:
    """What each image is made from: from its labels, or as the Dockerfile states it where no current image is here."""
    daemon = Daemon(request.url, "images")
    told: list[lists.Told] = []
    for package in packages:
        for each in stock_of(daemon, request.root, package):
            if each.image is not None and each.state is not State.OUTDATED:
                told.append(lists.Told(each.name, each.state, each.image.version, each.image.provenance))
            elif each.source == "built" and package.build is not None:
                labels = provenance.labels_of(request.root / package.build / "Dockerfile")
                told.append(lists.stated(each.name, "as the Dockerfile states", labels))
    return Report(lists.sources(told, markdown=request.markdown))


def _build(request: Request, packages: Sequence[Implementation], simulator: bool, say: Callable[[str], None]) -> Report:
    daemon = Daemon(request.url, "images")
    images = Images(daemon, request.root, Policy.BUILD, say)
    ways: dict[str, Callable[[], ImageFacts]] = {}
    stocked: list[Stocked] = []
    if simulator:
        ways["simulator"] = images.ensure_simulator
        stocked.append(stock_of_simulator(daemon, request.root))
    for package in packages:
        if package.build is not None:
            ways[package.name] = partial(images.ensure, package)
            stocked += stock_of(daemon, request.root, package)
        elif request.names:
            message = f"{package.name} has no folder to build it from; try `./run.py images pull {package.name}`."
            raise InputError(message)
    current = {each.name for each in stocked if each.state is State.CURRENT}
    workers = builders(int(daemon.info["NCPU"]), int(daemon.info["MemTotal"]))
    return _got(get_all(ways, workers), say, current)


def _pull(request: Request, packages: Sequence[Implementation], simulator: bool, say: Callable[[str], None]) -> Report:
    if simulator and request.names:
        raise InputError("The simulator is in no image registry; write `./run.py images build simulator`.")
    images = Images(Daemon(request.url, "images"), request.root, Policy.PULL, say)
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
    return Report(lists.got(attempts, before), missing=any(attempt.image is None for attempt in attempts))


# ---- check ----------------------------------------------------------------------------------


def _check(
    request: Request,
    chosen: Sequence[Implementation],
    known: dict[str, Implementation],
    say: Callable[[str], None],
    progress: Callable[[Sequence[Run]], Callable[[RunResult, int], None]],
) -> Report:
    """A small campaign of its own, in a place of its own, so that results/latest stays what it is."""
    daemon = Daemon(request.url, "images")
    peer = known.get(PEER)
    if peer is None:
        raise InputError(f"A check tries everything with {PEER}, which implementations.json does not have.")
    if not request.names:
        chosen = _within_reach(daemon, request.root, chosen, say)
    images = Images(daemon, request.root, Policy.AUTO, say)
    ways: dict[str, Callable[[], ImageFacts]] = {
        each.name: partial(images.ensure, each) for each in dict.fromkeys((*chosen, peer))
    }
    got = {each.name: each for each in get_all(ways, builders(int(daemon.info["NCPU"]), int(daemon.info["MemTotal"])))}
    lost = [Finding(each.name, role, reason=got[each.name].fault.splitlines()[0])
            for each in chosen if got[each.name].fault for role in sorted(each.roles)]  # fmt: skip
    ready = [each for each in chosen if not got[each.name].fault]
    if got[PEER].fault or not ready:
        if got[PEER].fault:
            say(got[PEER].fault)
        return Report(lists.checkup(lost), missing=True)
    finished = try_out(request, ready, peer, _cases(request.root), None, say, progress)
    results = finished.record.result_set
    found = findings(ready, peer, results, finished.directory)
    broken = any(result.verdict.outcome is Outcome.ERROR for result in results.results)
    if finished.fault:
        say(finished.fault)
    return Report(
        f"{lists.checkup([*found, *lost])}\n\nLogs and traces: {finished.directory}",
        missing=bool(lost or finished.fault or broken),
        failed=not all(each.sound for each in found),
        signal=finished.signal,
    )


def _within_reach(
    daemon: Daemon, root: Path, implementations: Sequence[Implementation], say: Callable[[str], None]
) -> list[Implementation]:
    """Those that are here or can be built here; a registry is not asked for all the others."""
    near = [
        each
        for each in implementations
        if each.build is not None or stock_of(daemon, root, each)[0].state is not State.MISSING
    ]
    if far := [each.name for each in implementations if each not in near]:
        say(f"left out, neither here nor to be built here: {', '.join(far)} (get them with `./run.py images pull`)")
    return near


def try_out(
    request: Request,
    ready: Sequence[Implementation],
    peer: Implementation,
    cases: Sequence[TestCase],
    directory: Path | None,
    say: Callable[[str], None],
    progress: Callable[[Sequence[Run]], Callable[[RunResult, int], None]],
    *,
    qlog: bool = True,
) -> measure.Finished:
    """A campaign of ``cases``, of implementations whose images are here, each in all its roles with the peer.

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
    settings = measure.Settings(
        url=request.url,
        root=request.root,
        results=request.root / "build" / "checks",
        directory=directory,
        policy=Policy.AUTO,
        seed=seed,
        command=request.command,
        qlog=qlog,
    )
    return measure.measure(selection, runs, settings, say, progress(runs))


def _cases(root: Path) -> tuple[TestCase, ...]:
    """The transfers of a check, and all functional tests."""
    known = inventory.load_known_test_cases(root / "testcases")
    if "terrestrial" not in known:
        raise InputError("A check needs the test case terrestrial, which testcases/ does not have.")
    return (*check_cases(known["terrestrial"]), *(case for case in known.values() if case.functional))
