"""Builds the site: every page and file of every campaign, put in place in one step."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

from quicsat.config.tool_version import release
from quicsat.model.errors import HarnessFault, MachineError, UserError
from quicsat.model.product_files import as_installed, build_folder
from quicsat.model.whole_file import turn
from quicsat.site import (
    address,
    atomic_publish,
    brief,
    campaign_pages,
    campaigns,
    cell_pages,
    made_files,
    report_pages,
    reuse,
)
from quicsat.site.atomic_publish import Draft
from quicsat.site.campaign_pages import History
from quicsat.site.campaigns import SiteCampaign
from quicsat.site.construction import Site
from quicsat.site.pages import Renderer
from quicsat.site.report_pages import Compared
from quicsat.site.workers import working
from quicsat.statistics.comparison import Goodputs

VENDOR = "vendor/uplot"
"""Where scripts/setup puts uPlot, below :func:`build_folder`."""
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
    """The folder with web/."""
    files: bool = False
    """Take traces, key logs, qlogs and whole logs into the site."""
    draw: Callable[[Path], Sequence[str]] | None = None
    """Draws the figures of the campaign in a directory that are missing, and returns sentences on what it could not
    draw; None to take only figures that are there."""
    headings: Mapping[str, str] = field(default_factory=dict)
    """Heading of each kind of figure, by its name, in the order of the headings."""
    now: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True)
class BuiltSite:
    """What a build has made."""

    pages: int
    size: int
    """Bytes of all files."""
    campaigns: int


def build(request: SiteRequest, say: Callable[[str], None]) -> BuiltSite:
    """As :func:`_build`; builds of sites in one directory wait for each other, since each takes over old pages."""
    reuse.program(request.root)
    try:
        request.target.absolute().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"{request.target}: cannot be made: {error.strerror}. Name another place with -o."
        raise MachineError(message) from error
    try:
        with turn(request.target, say):
            return _build(request, say)
    except Exception:
        reuse.check_program(request.root)
        raise


def _build(request: SiteRequest, say: Callable[[str], None]) -> BuiltSite:
    """Build the site and let it take the place of the old one; ``say`` gets a sentence for what is missing.

    Pages of campaigns that have not changed are taken over from the old site.
    Raises InputError if there is nothing to show or the target must not be replaced, MachineError if it cannot be
    written, or if the program has changed meanwhile; the old site then stays as it was.
    """
    old = reuse.OldSite(request.target, request.root)
    found, problems = campaigns.find(request.places, old.brief, request.now)
    atomic_publish.check(request.target, [campaign.directory for campaign in found])
    for problem in problems:
        say(problem)
    with atomic_publish.staged(request.target) as draft:
        folder, content = assets(request.root, say)
        renderer = Renderer(request.root / "web" / "templates", folder, request.now)
        uplot = set(LIBRARY) <= set(content)
        site = Site(renderer, draft.directory, tuple(found), NAVIGATION, uplot=uplot, headings=request.headings)
        for name, text in content.items():
            site.put(PurePosixPath(folder, name), text)
        if request.draw is not None:
            site.drawn.update(_figures(request.draw, old, found, say))
        options = (request.files, *request.headings.items())
        keys = {each.folder: reuse.key(each, request.root, folder, options) for each in found}
        trends = cache(lambda: report_pages.trends_by_clock(found))
        changed = [each for each in found if not _same(old, each, keys[each.folder])]
        with ExitStack() as cells:
            if found[0] in changed:  # processes write most of its pages while this one compares campaigns
                cells.enter_context(cell_pages.writing(site, found[0], say, files=request.files))
            compared = _comparisons(site, draft, old, keys, meanwhile=trends)
            shown = [each for each in compared if each.both]
            histories = report_pages.histories(found, shown, trends())
            for campaign in found:
                history = histories[campaign.folder]
                if campaign in changed:
                    if campaign is not found[0]:
                        cells.close()  # of the campaign before: one at a time
                        cells.enter_context(cell_pages.writing(site, campaign, say, files=request.files))
                    _write(site, campaign, history, files=request.files)
                else:
                    _keep(site, draft, old, campaign, history)
                if campaign is not found[0]:  # its badges come last
                    campaign.release()
            campaign_pages.write_list(site)
            report_pages.write_all(site, shown, trends()[0])
        reuse.check_program(request.root)
        site.put(address.MARKER, marker(request.root, found, keys, histories, compared, site))
    pages, sizes = zip(*site.parts.values(), strict=True)
    return BuiltSite(sum(pages), sum(sizes), len(found))


def marker(
    root: Path,
    found: Sequence[SiteCampaign],
    keys: Mapping[str, str],
    histories: Mapping[str, History],
    compared: Sequence[Compared],
    site: Site,
) -> bytes:
    """What the next build needs to know of this one: keys of what it has made, its size, what comparisons tell."""
    told: dict[str, Any] = {
        made_files.MADE_BY: f"quicsat {release()}",
        "campaigns": [each.folder for each in found],
        "keys": dict(keys),
        "starts": {name: reuse.start_keys(history) for name, history in histories.items()},
        "briefs": {reuse.results_key(each.directory, root): each.folder for each in found},
        "comparisons": {_both(each.before, each.after): [_two_keys(keys, each), each.plain] for each in compared},
        "parts": {part: size for part, size in sorted(site.parts.items()) if "." not in PurePosixPath(part).name},
        "figures": site.drawn,
    }
    return json.dumps(told, indent=1).encode()


def _figures(
    draw: Callable[[Path], Sequence[str]], old: reuse.OldSite, found: Sequence[SiteCampaign], say: Callable[[str], None]
) -> dict[str, str]:
    """Draw the figures of campaigns whose results have changed since the old site; what their results were, by folder.

    A campaign whose figures cannot be drawn keeps those that it has.
    """
    drawn = dict[str, str]()
    for campaign in found:
        state = reuse.results_state(campaign.directory)
        if old.known("figures", campaign.folder) != state:
            try:
                for sentence in draw(campaign.directory):
                    say(sentence)
            except (UserError, HarnessFault, OSError) as error:
                say(f"{campaign.folder}: its figures could not be drawn: {error}")
                continue
        drawn[campaign.folder] = state
    return drawn


def _same(old: reuse.OldSite, campaign: SiteCampaign, key: str) -> bool:
    """Whether the old site has the pages of a campaign as they would be written again."""
    return old.known("keys", campaign.folder) == key and old.has(address.campaign(campaign.folder).parent)


def _keep(site: Site, draft: Draft, old: reuse.OldSite, campaign: SiteCampaign, history: History) -> None:
    """Take over the pages of a campaign that has not changed; its start page may have to be written again."""
    folder = address.campaign(campaign.folder).parent
    newest = campaign is site.campaigns[0]
    if not newest and reuse.start_stays(history, old.known("starts", campaign.folder)):
        old.take_over(site, draft, folder, start=True)
    else:
        campaign_pages.write_start(site, campaign, history, newest=newest)
    old.take_over(site, draft, folder, start=False)


def _write(site: Site, campaign: SiteCampaign, history: History, *, files: bool) -> None:
    """All pages of one campaign but those of its cells."""
    folder = address.campaign(campaign.folder).parent
    campaign_pages.write_start(site, campaign, history, newest=campaign is site.campaigns[0])
    site.put(folder / brief.FILE_NAME, brief.encode(campaign.brief))
    site.put(folder / brief.GOODPUTS_NAME, brief.encode_goodputs(campaign.goodputs))
    campaign_pages.write(site, campaign, files=files)
    report_pages.write(site, campaign)


def _comparisons(
    site: Site, draft: Draft, old: reuse.OldSite, keys: Mapping[str, str], *, meanwhile: Callable[[], object]
) -> list[Compared]:
    """All of them, the newest first; those of two campaigns that have not changed are taken over.

    ``meanwhile``: what this process does while others compare.
    """
    found = list[Compared]()
    for after, twos in groupby(report_pages.twos(site.campaigns), key=lambda both: both[1]):
        earlier = [before for before, _ in twos]
        known = [_remembered(old, keys, before, after) for before in earlier]
        new = [before for before, compared in zip(earlier, known, strict=True) if compared is None]
        several = len(new) > 1 and after.brief.runs >= cell_pages.WORTHWHILE
        goodputs = old.goodputs(after) if new else Goodputs(after.manifest, {})
        with working(site, partial(_compare, site, old, after, goodputs), new, several=several) as made:
            if several:
                meanwhile()
            for before, compared in zip(earlier, known, strict=True):
                if compared is None:
                    found.append(report_pages.remembered(before, after, next(made)))
                    continue
                if compared.both:
                    old.take(site, draft, compared.address.parent)
                found.append(compared)
        if after is not site.campaigns[0]:  # its pages come next
            after.release()
    return found


def _compare(
    site: Site, old: reuse.OldSite, after: SiteCampaign, goodputs: Goodputs, before: SiteCampaign
) -> dict[str, Any]:
    """What a comparison tells, as JSON; its page is written."""
    compared = report_pages.compare(site, before, after, old.goodputs(before), goodputs)
    before.release()
    return compared.plain


def _remembered(
    old: reuse.OldSite, keys: Mapping[str, str], before: SiteCampaign, after: SiteCampaign
) -> Compared | None:
    try:
        key, plain = old.known("comparisons", _both(before, after))
        compared = report_pages.remembered(before, after, plain)
    except brief.DAMAGED:
        return None
    stays = key == _two_keys(keys, compared) and (not compared.both or old.has(compared.address.parent))
    return compared if stays else None


def _both(before: SiteCampaign, after: SiteCampaign) -> str:
    return f"{before.folder} {after.folder}"


def _two_keys(keys: Mapping[str, str], compared: Compared) -> list[str]:
    return [keys[compared.before.folder], keys[compared.after.folder]]


def assets(root: Path, say: Callable[[str], None]) -> tuple[str, dict[str, bytes]]:
    """Folder of style sheets and scripts, named after a digest of their content, and its files."""
    content = {path.name: path.read_bytes() for path in sorted((root / "web" / "assets").iterdir())}
    content |= {name: as_installed(text.decode()).encode() for name, text in content.items() if name.endswith(".js")}
    library = {name: build_folder() / VENDOR / origin for name, origin in LIBRARY.items()}
    if all(path.is_file() for path in library.values()):
        content |= {name: path.read_bytes() for name, path in library.items()}
    else:
        say("uPlot is not here, so the pages have no packet plots: run `make setup` where npm and its registry answer.")
    digest = hashlib.sha256(b"".join(name.encode() + text for name, text in content.items())).hexdigest()[:12]
    return f"assets/{digest}", content
