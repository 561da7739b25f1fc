"""Shares work on the site among processes. They are forked, so that nothing has to be sent to them."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from quicsat.model.processes import process_pool
from quicsat.site.construction import PartSize, Site

Task = TypeVar("Task")
Result = TypeVar("Result")

_WORK: list[tuple[Site, Callable[[Any], Any]]] = []
"""That of this process, if it is one of those that share the work."""


@contextmanager
def working(
    site: Site, work: Callable[[Task], Result], tasks: Sequence[Task], *, several: bool, niceness: int = 0
) -> Iterator[Iterator[Result]]:
    """What ``work`` returns for each task, in their order.

    With ``several``, processes work on the tasks while the caller does something else. What they put into the site is
    counted when the caller takes their results. Otherwise, this process works when the caller takes a result.
    ``niceness``: how much these processes yield to others (as nice(1)).
    """
    if not several:
        yield map(work, tasks)
        return
    with process_pool(os.cpu_count() or 1, partial(_begin, site, work, niceness)) as pool:
        yield _counted(site, pool.map(_share, tasks))


def _begin(site: Site, work: Callable[[Any], Any], niceness: int) -> None:
    gc.freeze()  # a search for cycles among what was there before writes to its memory, so the kernel copies all of it
    os.nice(niceness)
    _WORK.append((site, work))


def _share(task: Any) -> tuple[Any, dict[str, PartSize]]:
    """The work on one task, in a process of its own: its result, and what was put."""
    site, work = _WORK[-1]
    site.parts.clear()
    return work(task), dict(site.parts)


def _counted(site: Site, made: Iterator[tuple[Result, dict[str, PartSize]]]) -> Iterator[Result]:
    for result, parts in made:
        for part, size in parts.items():
            site.count(part, size)
        yield result
