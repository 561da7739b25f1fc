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
from interop.site import address, atomic_publish, campaign_pages, campaigns, cell_pages, report_pages, reuse
from interop.site.pages import Renderer

VENDOR = Path("build", "vendor", "uplot")
"""Where scripts/setup puts uPlot, below the checkout."""
LIBRARY = {"uPlot.iife.min.js": "uPlot.iife.min.js", "uPlot.min.css": "uPlot.min.css", "uPlot-LICENSE.txt": "LICENSE"}
"""Name in the site -> name in ``VENDOR``."""
NAVIGATION = (
    ("Results", address.HOME),
    ("Campaigns", address.CAMPAIGNS),
    ("Compare", address.COMPARISONS),
    ("Trends", address.TRENDS),
)


@dataclass(frozen=True)
class SiteRequest:
    """What is to be built of what."""

    places: Sequence[Path]
    target: Path
    root: Path
    """The checkout, with web/ and what the set-up has brought."""
    files: bool = False
    """Take traces, key logs, qlogs and whole logs into the site."""
    now: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True)
class BuiltSite:
    """What a build has made."""

    pages: int
    size: int
    """Bytes of all files."""
    campaigns: int


def build(request: SiteRequest, say: Callable[[str], None]) -> BuiltSite:
    """Build the site and let it take the place of the old one; ``say`` gets a sentence for what is missing.

    Pages of campaigns that have not changed are taken over from the old site.
    Raises InputError if there is nothing to show or the target must not be replaced, MachineError if it cannot be
    written; the old site then stays as it was.
    """
    found, problems = campaigns.find(request.places)
    atomic_publish.check(request.target, [campaign.directory for campaign in found])
    for problem in problems:
        say(problem)
    with atomic_publish.staged(request.target) as directory:
        folder, content = assets(request.root, say)
        renderer = Renderer(request.root / "web" / "templates", folder, request.now)
        uplot = set(LIBRARY) <= set(content)
        site = campaign_pages.Site(renderer, directory, tuple(found), NAVIGATION, uplot=uplot)
        for name, text in content.items():
            site.put(PurePosixPath(folder, name), text)
        compared = report_pages.compare(found)
        histories = report_pages.histories(found, compared)
        before, keys = reuse.known(request.target), dict[str, str]()
        for campaign in found:
            campaign_pages.write_start(site, campaign, histories[campaign.folder], newest=campaign is found[0])
            key = keys[campaign.folder] = reuse.key(campaign, request.root, folder, files=request.files)
            if before.get(campaign.folder) == key:
                place = address.campaign(campaign.folder).parent
                site.counted.extend(reuse.take_over(request.target, directory, place))
                continue
            campaign_pages.write(site, campaign, files=request.files)
            report_pages.write(site, campaign)
            cell_pages.write(site, campaign, files=request.files)
        campaign_pages.write_list(site)
        report_pages.write_all(site, compared)
        folders = [each.folder for each in found]
        marker: dict[str, Any] = {"made by": f"quicsat {__version__}", "campaigns": folders, reuse.KEYS: keys}
        site.put(address.MARKER, json.dumps(marker, indent=1).encode())
    pages, sizes = zip(*site.counted, strict=True)
    return BuiltSite(sum(pages), sum(sizes), len(found))


def assets(root: Path, say: Callable[[str], None]) -> tuple[str, dict[str, bytes]]:
    """Folder of style sheets and scripts, named after a digest of their content, and its files."""
    content = {path.name: path.read_bytes() for path in sorted((root / "web" / "assets").iterdir())}
    library = {name: root / VENDOR / origin for name, origin in LIBRARY.items()}
    if all(path.is_file() for path in library.values()):
        content |= {name: path.read_bytes() for name, path in library.items()}
    else:
        say("uPlot is not here, so the pages have no packet plots: run scripts/setup where its registry answers.")
    digest = hashlib.sha256(b"".join(name.encode() + text for name, text in content.items())).hexdigest()[:12]
    return f"assets/{digest}", content
