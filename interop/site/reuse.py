"""Takes over from the old site what has not changed, as hard links: pages of campaigns, start pages, comparisons."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import interop
from interop.results.store import DOCUMENT, JOURNAL
from interop.site import address, brief, figures
from interop.site.brief import Brief
from interop.site.campaign_pages import History, Put
from interop.site.campaigns import SiteCampaign

START = (address.HOME.name, "matrix")
"""Of a campaign's folder: what also tells of other campaigns."""


class OldSite:
    """The site that is there: the keys in its marker, and its files."""

    def __init__(self, place: Path) -> None:
        """``place``: its directory; it need not exist."""
        self._place = place
        try:
            marker = json.loads((place / address.MARKER).read_bytes())
        except (OSError, ValueError):
            marker = None
        self._marker: dict[str, Any] = marker if isinstance(marker, dict) else {}

    def known(self, what: str, name: str) -> Any:
        """What the marker tells: ``keys`` and ``starts`` by a campaign's folder, ``briefs`` by the key of its results,
        ``comparisons`` by both folders; None for nothing."""
        found = self._marker.get(what)
        return found.get(name) if isinstance(found, dict) else None

    def brief(self, directory: Path, root: Path) -> Brief | None:
        """Of the campaign in ``directory``, if its results have not changed."""
        folder = self.known("briefs", results_key(directory, root))
        return brief.read(self._place / "runs" / str(folder) / brief.FILE_NAME) if folder else None

    def has(self, page: PurePosixPath) -> bool:
        """Whether it has a page."""
        return (self._place / page).is_file()

    def take_over(self, new: Path, folder: PurePosixPath, *, start: bool) -> list[Put]:
        """Link the files of a campaign's folder or, with ``start``, only its start page and matrices; what was put.

        Raises OSError.
        """
        old = self._place / folder
        return [self.take(new, folder / path.relative_to(old)) for path in _files(old, start=start)]

    def take(self, new: Path, name: PurePosixPath) -> Put:
        """Link one file. Raises OSError."""
        path, target = self._place / name, new / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.hardlink_to(path)
        except OSError:  # this file system has no links, or the file has too many
            shutil.copyfile(path, target)
        return Put(path.suffix == ".html", path.stat().st_size)


def key(campaign: SiteCampaign, root: Path, assets: str, *, files: bool) -> str:
    """What decides the pages of a campaign: its results, its figures, this program and its templates, the options.

    Results and figures by size and time of change. A run's files are not looked at: `analyse` writes the results, too.
    """
    drawn = [path for figure in figures.find(campaign.directory) for path in figure.forms]
    return _digest([results_key(campaign.directory, root), _stats(drawn), assets, files, campaign.folder])


def results_key(directory: Path, root: Path) -> str:
    """What decides the brief of a campaign: its results, by size and time of change, and this program."""
    return _digest([_stats([directory / name for name in (JOURNAL, DOCUMENT)]), _program(root)])


def start_keys(history: History) -> tuple[str, str]:
    """What decides the start page of a campaign beyond its own key: what it says of changes, and of each cell."""
    return _digest((history.since, str(history.comparison))), _digest(sorted(history.past.items()))


def start_stays(history: History, old: Any) -> bool:
    """Whether a start page still tells all of ``history``; ``old``: its ``start_keys``, as the marker has them."""
    since, past = start_keys(history)
    return old == [since, past] or (history.settled and isinstance(old, list) and old[:1] == [since])


def _stats(paths: list[Path]) -> list[tuple[str, int, int]]:
    found = [(str(path), path.stat()) for path in paths if path.is_file()]
    return [(name, status.st_size, status.st_mtime_ns) for name, status in found]


def _digest(facts: Any) -> str:
    return hashlib.sha256(repr(facts).encode("utf-8", "replace")).hexdigest()


def _files(folder: Path, *, start: bool) -> Iterator[Path]:
    """Of a campaign's folder: the start page and the matrices, or all but these."""
    for place, directories, names in os.walk(folder):
        if place == str(folder):
            directories[:] = [name for name in directories if (name in START) == start]
            names = [name for name in names if (name in START) == start]
        yield from (path for name in names if not (path := Path(place, name)).is_symlink())


@lru_cache(maxsize=4)
def _program(root: Path) -> str:
    """A digest of this program and of the templates."""
    sources = sorted((Path(interop.__file__).parent).rglob("*.py")) + sorted((root / "web" / "templates").iterdir())
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
