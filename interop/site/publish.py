"""Builds the site: every page and file of every campaign, put in place in one step."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from interop import __version__
from interop.site import address, campaign_pages, campaigns, cell_pages, swap
from interop.site.pages import Renderer

VENDOR = Path("build", "vendor", "uplot")
"""Where scripts/setup puts uPlot, below the checkout."""
LIBRARY = {"uPlot.iife.min.js": "uPlot.iife.min.js", "uPlot.min.css": "uPlot.min.css", "uPlot-LICENSE.txt": "LICENSE"}
"""Name in the site -> name in ``VENDOR``."""
NAVIGATION = (
    ("Results", address.HOME),
    ("Campaigns", address.CAMPAIGNS),
)


@dataclass(frozen=True)
class Request:
    """What is to be built of what."""

    places: Sequence[Path]
    target: Path
    root: Path
    """The checkout, with web/ and what the set-up has brought."""
    files: bool = False
    """Take traces, key logs, qlogs and whole logs into the site."""
    now: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True)
class Built:
    """What a build has made."""

    pages: int
    size: int
    """Bytes of all files."""
    campaigns: int


class Writer:
    """Writes pages and files below one directory, and counts them."""

    def __init__(self, directory: Path) -> None:
        """``directory`` is there and empty."""
        self.directory = directory
        self.pages = 0
        self.size = 0

    def put(self, place: PurePosixPath, content: bytes) -> None:
        """Write one file; folders are made."""
        path = self.directory / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self.pages += place.suffix == ".html"
        self.size += len(content)


def build(request: Request, say: Callable[[str], None]) -> Built:
    """Build the site and let it take the place of the old one; ``say`` gets a sentence for what is missing.

    Raises InputError if there is nothing to show or the target must not be replaced, MachineError if it cannot be
    written; the old site then stays as it was.
    """
    found, problems = campaigns.find(request.places)
    swap.check(request.target, [campaign.directory for campaign in found])
    for problem in problems:
        say(problem)
    with swap.staged(request.target) as directory:
        writer = Writer(directory)
        assets, uplot = _assets(request.root, writer, say)
        renderer = Renderer(request.root / "web" / "templates", assets, request.now)
        for campaign in found:
            site = campaign_pages.Site(renderer, writer.put, tuple(found), NAVIGATION, uplot=uplot)
            campaign_pages.write(site, campaign, newest=campaign is found[0])
            cell_pages.write(site, campaign, files=request.files)
        campaign_pages.write_list(site)
        marker: dict[str, Any] = {"made by": f"quicsat {__version__}", "campaigns": [each.folder for each in found]}
        writer.put(address.MARKER, json.dumps(marker, indent=1).encode())
    return Built(writer.pages, writer.size, len(found))


def _assets(root: Path, writer: Writer, say: Callable[[str], None]) -> tuple[str, bool]:
    """Style sheets and scripts in a folder named by their content, and whether uPlot is among them."""
    content = {path.name: path.read_bytes() for path in sorted((root / "web" / "assets").iterdir())}
    library = {name: root / VENDOR / origin for name, origin in LIBRARY.items()}
    uplot = all(path.is_file() for path in library.values())
    if uplot:
        content |= {name: path.read_bytes() for name, path in library.items()}
    else:
        say("uPlot is not here, so the pages have no packet plots: run scripts/setup where its registry answers.")
    digest = hashlib.sha256(b"".join(name.encode() + text for name, text in content.items())).hexdigest()[:12]
    for name, text in content.items():
        writer.put(PurePosixPath("assets", digest, name), text)
    return f"assets/{digest}", uplot
