"""Takes over from the old site what has not changed: the pages of a campaign but its start page, as hard links."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath

import interop
from interop.results.store import DOCUMENT, JOURNAL
from interop.site import address, figures
from interop.site.campaign_pages import Put
from interop.site.campaigns import SiteCampaign

KEYS = "keys"
"""In the site's marker: the key of each campaign by its folder."""
_START = ("index.html", "matrix")
"""Of a campaign's folder: what tells of other campaigns, and is made anew."""


def key(campaign: SiteCampaign, root: Path, assets: str, *, files: bool) -> str:
    """What decides the pages of a campaign: its results, its figures, this program and its templates, the options.

    Results and figures by size and time of change. A run's files are not looked at: `analyse` writes the results, too.
    """
    paths = [campaign.directory / name for name in (JOURNAL, DOCUMENT)]
    paths += [path for figure in figures.find(campaign.directory) for path in figure.forms]
    found = [(str(path), path.stat()) for path in paths if path.is_file()]
    stats = [(name, status.st_size, status.st_mtime_ns) for name, status in found]
    return hashlib.sha256(repr([stats, assets, files, _program(root)]).encode("utf-8", "replace")).hexdigest()


def known(old: Path) -> dict[str, str]:
    """The keys of the site that is there; empty if it has none."""
    try:
        found = json.loads((old / address.MARKER).read_bytes()).get(KEYS)
    except (OSError, ValueError, AttributeError):
        return {}
    return found if isinstance(found, dict) else {}


def take_over(old: Path, new: Path, campaign: PurePosixPath) -> list[Put]:
    """Link the files of a campaign, whose folder below both sites is ``campaign``; what was put. Raises OSError."""
    put = []
    for path in _files(old / campaign):
        target = new / campaign / path.relative_to(old / campaign)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.hardlink_to(path)
        except OSError:  # this file system has no links, or the file has too many
            shutil.copyfile(path, target)
        put.append(Put(path.suffix == ".html", path.stat().st_size))
    return put


def _files(folder: Path) -> Iterator[Path]:
    for place, directories, names in os.walk(folder):
        if place == str(folder):
            directories[:] = [name for name in directories if name not in _START]
            names = [name for name in names if name not in _START]
        yield from (path for name in names if not (path := Path(place, name)).is_symlink())


@lru_cache(maxsize=4)
def _program(root: Path) -> str:
    """A digest of this program and of the templates."""
    sources = sorted((Path(interop.__file__).parent).rglob("*.py")) + sorted((root / "web" / "templates").iterdir())
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
