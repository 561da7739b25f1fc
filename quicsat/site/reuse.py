"""Takes over from the old site what has not changed: pages of campaigns, start pages, comparisons."""

import hashlib
import sys
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import quicsat
from quicsat.model.errors import MachineError
from quicsat.model.stored_files import entries, is_directory, is_file, resolved, status
from quicsat.model.whole_file import take_file
from quicsat.results.store import DOCUMENT, JOURNAL
from quicsat.site import address, brief, figures, made_files
from quicsat.site.atomic_publish import Draft
from quicsat.site.brief import Brief
from quicsat.site.campaign_pages import History
from quicsat.site.campaigns import SiteCampaign
from quicsat.site.construction import PartSize, Site
from quicsat.statistics.comparison import Goodputs

START = (address.HOME.name, "matrix")
"""Of a campaign's folder: what also tells of other campaigns."""


class OldSite:
    """The site that is there: the keys in its marker, and its files."""

    def __init__(self, place: Path, root: Path) -> None:
        """``place``: its directory; it need not exist. ``root``: the folder with web/."""
        self._place = resolved(place)
        self._root = root
        self._marker = made_files.marker(place)
        self._made = made_files.read_list(place)

    def known(self, what: str, name: str) -> Any:
        """What the marker tells: ``keys`` and ``starts`` by a campaign's folder, ``briefs`` by the key of its results,
        ``comparisons`` by both folders, ``parts`` by folder; None for nothing."""
        found = self._marker.get(what)
        return found.get(name) if isinstance(found, dict) else None

    def brief(self, directory: Path) -> Brief | None:
        """Of the campaign in ``directory``, if its results have not changed."""
        folder = self.known("briefs", results_key(directory, self._root))
        return brief.read(self._place / "runs" / str(folder) / brief.FILE_NAME) if folder else None

    def goodputs(self, campaign: SiteCampaign) -> Goodputs:
        """Of a campaign; all its results are read if they have changed."""
        folder = self.known("briefs", results_key(campaign.directory, self._root))
        place = self._place / "runs" / str(folder) / brief.GOODPUTS_NAME
        return (brief.read_goodputs(place, campaign.manifest) if folder else None) or campaign.goodputs

    def has(self, folder: PurePosixPath) -> bool:
        """Whether it has a folder with a page, and no link in it."""
        place = self._place / folder
        links = (each for each in entries(place) if each.is_symlink())
        return is_file(place / address.HOME) and not any(links)

    def take_over(self, site: Site, draft: Draft, folder: PurePosixPath, *, start: bool) -> None:
        """Take over the content of a campaign's folder or, with ``start``, only its start page and matrices.

        Raises OSError.
        """
        for each in entries(self._place / folder):
            made = self._made is None or str(folder / each.name) in self._made
            if made and (each.name in START) == start:
                if is_directory(each):
                    self.take(site, draft, folder / each.name)
                else:
                    self._link(site, folder / each.name)

    def take(self, site: Site, draft: Draft, folder: PurePosixPath) -> None:
        """Take over a folder."""
        draft.kept.append(folder)
        match self.known("parts", str(folder)):
            case [int(pages), int(size)] if 0 <= pages <= size <= sys.maxsize:
                site.count(str(folder), PartSize(pages, size))

    def _link(self, site: Site, name: PurePosixPath) -> None:
        """Take over a file, which the old site has as long as it is there."""
        target = site.directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        take_file(self._place / name, target)
        site.count(str(name), PartSize(target.suffix == ".html", target.stat().st_size))


def key(campaign: SiteCampaign, root: Path, assets: str, options: tuple[object, ...]) -> str:
    """What decides the pages of a campaign: its results, its figures, this program and its templates, the options.

    Results and figures by size and time of change. A run's files are not looked at: `analyse` writes the results, too.
    """
    drawn = [path for figure in figures.find(campaign.directory) for path in figure.forms]
    return _digest([results_key(campaign.directory, root), _stats(drawn), assets, options, campaign.folder])


def results_key(directory: Path, root: Path) -> str:
    """What decides the brief of a campaign: its results, by size and time of change, and this program."""
    return _digest([results_state(directory), program(root)])


def results_state(directory: Path) -> str:
    """What decides the figures of a campaign: its results, by size and time of change."""
    return _digest(_stats([directory / name for name in (JOURNAL, DOCUMENT)]))


def start_keys(history: History) -> tuple[str, str]:
    """What decides the start page of a campaign beyond its own key: what it says of changes, and of each cell."""
    return _digest((history.since, str(history.comparison))), _digest(sorted(history.past.items()))


def start_stays(history: History, old: Any) -> bool:
    """Whether a start page still tells all of ``history``; ``old``: its ``start_keys``, as the marker has them."""
    since, past = start_keys(history)
    return old == [since, past] or (history.settled and isinstance(old, list) and old[:1] == [since])


def _stats(paths: list[Path]) -> list[tuple[str, int, int]]:
    found = [(str(path), state) for path in paths if (state := status(path)) is not None]
    return [(name, state.st_size, state.st_mtime_ns) for name, state in found]


def _digest(facts: Any) -> str:
    return hashlib.sha256(repr(facts).encode("utf-8", "replace")).hexdigest()


@lru_cache(maxsize=4)
def program(root: Path) -> str:
    """A digest of this program and of the templates, as they were when it was first asked for."""
    sources = sorted((Path(quicsat.__file__).parent).rglob("*.py")) + sorted((root / "web" / "templates").iterdir())
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


def check_program(root: Path) -> None:
    """Raise MachineError if the program has changed since: what it has made may be of both versions."""
    try:
        same = program.__wrapped__(root) == program(root)
    except OSError:  # a file has gone
        same = False
    if not same:
        raise MachineError("quicsat has changed while it built the site. The old site is as it was. Build it again.")
