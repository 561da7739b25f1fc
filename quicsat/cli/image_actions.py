"""The actions of ``./run.py images``: list, sources, build, pull, check and lock."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from quicsat.cli import console, image_tables
from quicsat.cli.output_files import check_earlier
from quicsat.config.inventory import Inventory
from quicsat.config.variants import variant_named
from quicsat.docker import provenance
from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.docker.ssh_tunnel import connected
from quicsat.images.build_recipes import recipe_of
from quicsat.images.lock_file import images_here, lock_text, read_lock
from quicsat.images.pull_or_build import Images, Policy
from quicsat.images.status import Got, ImageState, builders, get_all, stock_of, stock_of_own
from quicsat.model.errors import InputError
from quicsat.model.implementation import OWN_IMAGES, Implementation
from quicsat.model.real_link import Host
from quicsat.model.results import ImageFacts
from quicsat.model.text import command_line, counted
from quicsat.model.whole_file import turn, write_atomically
from quicsat.plan.select_implementations import select_images, without_variants

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
    daemon: Host
    """That has the images."""
    root: Path
    """The folder with files of the user's own, if there are any."""
    command: tuple[str, ...]
    markdown: bool = False
    lock: Path = Path("images.lock")
    """The lock file that is written."""


def perform(request: ImageRequest, say: Callable[[str], None]) -> Report:
    """Carry out an action other than ``check``; raises :class:`UserError` if nothing of it can be done."""
    known = Inventory(request.root).implementations
    chosen, own = select_images(request.names, known)
    packages = without_variants(chosen, known)
    with connected(request.daemon, "images") as daemon:
        match request.action:
            case "list":
                return _list(request, daemon, packages, own)
            case "sources":
                return _sources(request, daemon, packages)
            case "build":
                return _build(request, daemon, packages, own, say)
            case "pull":
                return _pull(request, daemon, packages, own, say)
        return _lock(request, daemon, packages, own if request.names else OWN_IMAGES, say)


def _list(request: ImageRequest, daemon: Daemon, packages: Sequence[Implementation], own: Sequence[str]) -> Report:
    store = DaemonImages(daemon)
    found = [stock_of_own(store, name) for name in own]
    found += [each for package in packages for each in stock_of(store, request.root, package)]
    return Report(image_tables.images(found, datetime.now(UTC), console.width()))


def _sources(request: ImageRequest, daemon: Daemon, packages: Sequence[Implementation]) -> Report:
    """What each image is built from: its labels, or those of the Dockerfile if there is no current image."""
    store = DaemonImages(daemon)
    origins: list[image_tables.Origin] = []
    for package in packages:
        for each in stock_of(store, request.root, package):
            if each.image is not None and each.state is not ImageState.OUTDATED:
                origins.append(image_tables.Origin(each.name, each.state, each.image.version, each.image.provenance))
            elif each.source == "built" and package.build is not None:
                recipe = recipe_of(request.root, package)
                labels = provenance.labels_of(recipe.folder / "Dockerfile", recipe.arguments)
                origins.append(image_tables.stated(each.name, "as the Dockerfile states", labels))
    return Report(image_tables.sources(origins, width=console.width(), markdown=request.markdown))


def _build(
    request: ImageRequest,
    daemon: Daemon,
    packages: Sequence[Implementation],
    own: Sequence[str],
    say: Callable[[str], None],
) -> Report:
    store = DaemonImages(daemon)
    images = Images(store, request.root, Policy.BUILD, say)
    ways: dict[str, Callable[[], ImageFacts]] = {name: partial(images.ensure_own, name) for name in own}
    stocked = [stock_of_own(store, name) for name in own]
    for package in packages:
        if package.build is not None or request.names:
            ways[package.name] = partial(images.ensure, package)
            stocked += stock_of(store, request.root, package)
    current = {each.name for each in stocked if each.state is ImageState.CURRENT}
    workers = builders(int(daemon.info["NCPU"]), int(daemon.info["MemTotal"]))
    return _got(get_all(ways, workers), say, current)


def _pull(
    request: ImageRequest,
    daemon: Daemon,
    packages: Sequence[Implementation],
    own: Sequence[str],
    say: Callable[[str], None],
) -> Report:
    if own and request.names:
        raise InputError(f"{own[0]} is in no image registry; use `{command_line('images', 'build', own[0])}`.")
    images = Images(DaemonImages(daemon), request.root, Policy.PULL, say)
    ways: dict[str, Callable[[], ImageFacts]] = {}
    for package in packages:
        if package.image:
            ways[package.name] = partial(images.renew, package)
        elif request.names:
            raise InputError(
                f"{package.name} has no public image; try `{command_line('images', 'build', package.name)}`."
            )
    return _got(get_all(ways, PULLS), say)


def _lock(
    request: ImageRequest,
    daemon: Daemon,
    packages: Sequence[Implementation],
    own: Sequence[str],
    say: Callable[[str], None],
) -> Report:
    """Write the images that are here; with names, only their entries change."""
    chosen = {package.name: package for package in packages}
    for package in packages:
        variants = (variant_named(package, variant.name) for variant in package.variants)
        chosen |= {variant.name: variant for variant in variants}
    found = images_here(DaemonImages(daemon), request.root, chosen, tuple(own))
    asked = [*own, *(package.name for package in packages)] if request.names else []
    if missing := [name for name in asked if name not in found]:
        raise InputError(
            f"{missing[0]}: there is no image on this machine; try `{command_line('images', 'build', missing[0])}`."
        )
    if not found:
        raise InputError("There is no image on this machine; try `./run.py images build`.")
    if not request.names:
        check_earlier("--lock-file", request.lock, "lock file", _is_lock)
    with turn(request.lock, say):
        kept = read_lock(request.lock) if request.names and request.lock.exists() else {}
        changed = {*chosen, *own}
        images = {name: image for name, image in kept.items() if name not in changed} | found
        write_atomically(request.lock, lock_text(images).encode())
    count = counted(len(images), "image")
    return Report(f"{request.lock}: {count}, {len(found)} of them as they are on this machine now")


def _is_lock(file: Path) -> bool:
    try:
        read_lock(file)
    except InputError:
        return False
    return True


def _got(attempts: Sequence[Got], say: Callable[[str], None], before: Collection[str] = ()) -> Report:
    for attempt in attempts:
        if attempt.fault:
            say(attempt.fault)
    return Report(
        image_tables.fetched(attempts, before, console.width()),
        missing=any(attempt.image is None for attempt in attempts),
    )
