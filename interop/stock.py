"""What images are here, and getting several at once: those that cannot be had cost the others nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from queue import Empty, SimpleQueue

from interop.errors import MachineError
from interop.images import ImageStore
from interop.model import ImageFacts, Implementation
from interop.recipes import SIMULATOR, Recipe, find_recipe, recipe_of
from interop.units import MIB

MEMORY_OF_A_BUILD = 4096 * MIB
"""Bytes that the largest builds need."""
MOST_BUILDS = 2
"""At the same time; each of them uses all CPUs already in its best minutes."""

LOST = "it was not got, because this program has a fault; what it said about it stands above."


class State(StrEnum):
    """Whether an image is here."""

    HERE = "here"
    CURRENT = "current"
    """Built from the folder as it is now."""
    OUTDATED = "outdated"
    """Built from the folder as it was before."""
    MISSING = "not here"


@dataclass(frozen=True)
class Stocked:
    """One image of an implementation, whether it is here or not."""

    name: str
    source: str
    """public or built."""
    state: State
    reference: str
    image: ImageFacts | None = None


@dataclass(frozen=True)
class Got:
    """What came of the attempt to get one image."""

    name: str
    duration: float
    """Seconds."""
    image: ImageFacts | None
    fault: str = ""


# ---- what is here ---------------------------------------------------------------------------


def stock_of(store: ImageStore, root: Path, implementation: Implementation) -> tuple[Stocked, ...]:
    """The public image if it is here, and our own build if there is a folder; raises :class:`MachineError`."""
    name, reference, folder = implementation.name, implementation.image, implementation.build
    public = store.find(reference) if reference else None
    found = [Stocked(name, "public", State.HERE, reference, public)] if public else []
    if folder is not None:
        found.append(_built(store, name, recipe_of(root, name, folder)))
    return tuple(found) or (Stocked(name, "public", State.MISSING, reference),)


def stock_of_simulator(store: ImageStore, root: Path) -> Stocked:
    """The simulator, which is always our own build."""
    return _built(store, "simulator", find_recipe(root, "simulator", SIMULATOR))


def _built(store: ImageStore, name: str, recipe: Recipe) -> Stocked:
    current = store.find(recipe.tag)
    if current:
        return Stocked(name, "built", State.CURRENT, recipe.tag, current)
    older = store.find(recipe.latest)
    if older:
        return Stocked(name, "built", State.OUTDATED, recipe.latest, older)
    return Stocked(name, "built", State.MISSING, recipe.tag)


# ---- getting several ------------------------------------------------------------------------


def builders(cpus: int, memory: int) -> int:
    """How many images are built at the same time on a machine with so many CPUs and bytes of memory."""
    return max(1, min(cpus, memory // MEMORY_OF_A_BUILD, MOST_BUILDS))


def get_all(ways: Mapping[str, Callable[[], ImageFacts]], workers: int) -> tuple[Got, ...]:
    """Get every image by its own way, ``workers`` at a time; in the order of ``ways``, failed ones among them.

    The threads do not hold the program up: it may be interrupted while they wait for the daemon.
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
