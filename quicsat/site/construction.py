"""The site under construction: its folders, and the files that are put into them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from quicsat.site import address
from quicsat.site.campaigns import SiteCampaign
from quicsat.site.pages import Renderer
from quicsat.statistics.parity import has_both_transports
from quicsat.statistics.releases import has_releases

RELEASES = "releases"
"""Page of campaigns with several releases of an implementation; others have none."""
PARITY = "parity"
"""Page of campaigns with servers over QUIC and over TCP; others have none."""
_PAGES = (
    ("Matrix", ""),
    ("Figures", "figures"),
    ("Tables", "tables"),
    ("Releases", RELEASES),
    ("QUIC and TCP", PARITY),
    ("Failures", "failures"),
    ("Method", "method"),
    ("Data", "data"),
)


class PartSize(NamedTuple):
    """What a part of the site has."""

    pages: int = 0
    size: int = 0
    """Bytes of all its files."""


@dataclass(frozen=True)
class Site:
    """The site under construction."""

    renderer: Renderer
    directory: Path
    """Where it is built."""
    campaigns: tuple[SiteCampaign, ...]
    """Newest first."""
    navigation: Sequence[tuple[str, PurePosixPath]]
    uplot: bool
    """Whether the library of the plots is here."""
    headings: Mapping[str, str] = field(default_factory=dict)
    """As in ``SiteRequest``."""
    made: set[str] = field(default_factory=set)
    """Folders that are there, below ``directory``."""
    parts: dict[str, PartSize] = field(default_factory=dict)
    """Of what was put so far, by part: a folder in a folder in one of the site's folders, or a file."""
    drawn: dict[str, str] = field(default_factory=dict)
    """By folder, the state of the results of which all figures of a campaign were drawn."""

    def put(self, place: PurePosixPath, content: bytes) -> None:
        """Write one file; folders are made."""
        name = str(place)
        folder = name.rpartition("/")[0]
        if folder not in self.made:
            (self.directory / folder).mkdir(parents=True, exist_ok=True)
            self.made.add(folder)
        (self.directory / name).write_bytes(content)
        self.count("/".join(name.split("/", 3)[:3]), PartSize(name.endswith(".html"), len(content)))

    def count(self, part: str, more: PartSize) -> None:
        """Add to the size of a part."""
        known = self.parts.get(part, PartSize())
        self.parts[part] = PartSize(known.pages + more.pages, known.size + more.size)

    def show(
        self,
        page: PurePosixPath,
        template: str,
        campaign: SiteCampaign | None,
        name: str,
        *,
        base: str = "",
        **values: Any,
    ) -> None:
        """Write a page; ``name`` is that of the link that leads to it, ``base`` where its links start.

        Its link to the method is that of ``campaign``, of ``method`` in ``values``, or of the newest campaign.
        """
        seen_from = PurePosixPath(base) / "index.html" if base else page
        method = address.campaign((campaign or self.campaigns[0]).folder, "method")
        common: dict[str, Any] = {
            "root": address.up(seen_from),
            "here": f"{address.up(seen_from)}{page}" if base else page.name,
            "navigation": self.navigation,
            "section": "" if campaign else name,
            "method": method,
        }
        if base:
            common["base"] = f"{base}/"
        if campaign:
            common |= {"campaign": campaign, "page": name, "section": "Results"}
            own = {RELEASES: has_releases(campaign.manifest), PARITY: has_both_transports(campaign.manifest)}
            missing = [page for page, there in own.items() if not there]
            common["pages"] = [
                (title, address.campaign(campaign.folder, part)) for title, part in _PAGES if part not in missing
            ]
        self.put(page, self.renderer.page(template, **(common | values)))
