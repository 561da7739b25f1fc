"""Status of images, and resolution of several at once: one failure does not affect the others."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from queue import Empty, SimpleQueue

from quicsat.docker.daemon_images import DaemonImages
from quicsat.images.build_recipes import OWN_FOLDERS, Recipe, find_recipe, recipe_of
from quicsat.model.errors import MachineError
from quicsat.model.implementation import Implementation
from quicsat.model.results import ImageFacts
from quicsat.model.units import MIB

MEMORY_OF_A_BUILD = 4096 * MIB
"""Bytes that the largest builds need."""
MOST_BUILDS = 2
"""Concurrent builds; each of them can use all CPUs."""

LOST = "it was not resolved because of a fault in quicsat; see the message above."


class ImageState(StrEnum):
    """Whether an image exists locally."""

    HERE = "here"
    CURRENT = "current"
    """Built from the current state of the folder."""
    OUTDATED = "outdated"
    """Built from an earlier state of the folder."""
    MISSING = "not here"


@dataclass(frozen=True)
class Stocked:
    """One image of an implementation; it need not exist locally."""

    name: str
    source: str
    """public, built, or given (with ``-r``)."""
    state: ImageState
    reference: str
    image: ImageFacts | None = None


@dataclass(frozen=True)
class Got:
    """Result of the resolution of one image."""

    name: str
    duration: float
    """Seconds."""
    image: ImageFacts | None
    fault: str = ""


# ---- status ---------------------------------------------------------------------------


def stock_of(store: DaemonImages, root: Path, implementation: Implementation) -> tuple[Stocked, ...]:
    """The public image if it exists locally, and the local build if there is a folder; raises :class:`MachineError`."""
    name, reference = implementation.name, implementation.image
    public = store.find(reference) if reference else None
    found = [Stocked(name, "public", ImageState.HERE, reference, public)] if public else []
    if implementation.build is not None:
        found.append(_built(store, name, recipe_of(root, implementation)))
    return tuple(found) or (Stocked(name, "public", ImageState.MISSING, reference),)


def used_by(store: DaemonImages, root: Path, implementation: Implementation) -> Stocked:
    """The image that a campaign would use, see :meth:`quicsat.images.pull_or_build.Images.ensure`."""
    if implementation.replaced:
        image = store.find(implementation.image)
        state = ImageState.HERE if image else ImageState.MISSING
        return Stocked(implementation.name, "given", state, implementation.image, image)
    return stock_of(store, root, implementation)[-1 if implementation.is_variant else 0]


def stock_of_own(store: DaemonImages, name: str) -> Stocked:
    """An image of ``OWN_IMAGES``, which is always a local build."""
    return _built(store, name, find_recipe(name, OWN_FOLDERS[name]))


def _built(store: DaemonImages, name: str, recipe: Recipe) -> Stocked:
    for reference, state in ((recipe.tag, ImageState.CURRENT), (recipe.latest, ImageState.OUTDATED)):
        if image := store.find(reference):
            return Stocked(name, "built", state, reference, image)
    return Stocked(name, "built", ImageState.MISSING, recipe.tag)


# ---- several images ------------------------------------------------------------------------


def builders(cpus: int, memory: int) -> int:
    """How many images are built at the same time on a machine with so many CPUs and bytes of memory."""
    return max(1, min(cpus, memory // MEMORY_OF_A_BUILD, MOST_BUILDS))


def get_all(ways: Mapping[str, Callable[[], ImageFacts]], workers: int) -> tuple[Got, ...]:
    """Resolve every image, ``workers`` at a time; results, failed ones too, are in the order of ``ways``.

    The threads are daemon threads: the program can be interrupted while they wait.
    """
    waiting: SimpleQueue[tuple[str, Callable[[], ImageFacts]]] = SimpleQueue()
    for item in ways.items():
        waiting.put(item)
    got: dict[str, Got] = {}
    threads = [threading.Thread(target=_work, args=(waiting, got), daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tuple(got.get(name) or Got(name, 0.0, None, f"{name}: {LOST}") for name in ways)


def _work(waiting: SimpleQueue[tuple[str, Callable[[], ImageFacts]]], got: dict[str, Got]) -> None:
    while True:
        try:
            name, get = waiting.get_nowait()
        except Empty:
            return
        begin = time.monotonic()
        try:
            image, fault = get(), ""
        except MachineError as error:
            image, fault = None, str(error)
        got[name] = Got(name, time.monotonic() - begin, image, fault)
