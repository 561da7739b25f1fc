"""Where each page and file of the site is: every address in the site is made here, from names that were checked."""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import PurePosixPath

from quicsat.model.names import folder_name

HOME = PurePosixPath("index.html")
CAMPAIGNS = PurePosixPath("runs/index.html")
CHOICES = PurePosixPath("runs/campaigns.js")
"""The newest campaigns, for the list on start pages."""
TRENDS = PurePosixPath("trends/index.html")
COMPARISONS = PurePosixPath("compare/index.html")
SIDE_BY_SIDE = PurePosixPath("compare/cells/index.html")
FEED = PurePosixPath("feed.xml")
MARKER = PurePosixPath("site.json")
"""Marks a directory as a site made by quicsat, which may be replaced."""

_REMEMBERED = 4096
"""Addresses: trends ask for those of a cell once for each campaign."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def folders(campaigns: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Of identity and start of each campaign, a folder's name of its own: letters, digits, hyphens, underscores."""
    names = dict[str, None]()
    for identity, started in campaigns:
        day, plain = (_UNSAFE.sub("-", text)[:length].strip("-") for text, length in ((started, 10), (identity, 48)))
        plain = (plain if plain.startswith(day) else f"{day}-{plain}").strip("-") or "campaign"
        name, count = plain, 1
        while name in names:
            count += 1
            name = f"{plain}-{count}"
        names[name] = None
    return tuple(names)


@lru_cache(_REMEMBERED)
def campaign(folder: str, page: str = "") -> PurePosixPath:
    """A page about one campaign: the start page, or ``figures``, ``failures`` …."""
    return PurePosixPath("runs", folder, page, "index.html")


def raw(folder: str, name: str) -> PurePosixPath:
    """A file with data of one campaign."""
    return PurePosixPath("runs", folder, "data", name)


def pair(server: str, client: str) -> PurePosixPath:
    """Folder of a pair below that of its campaign; a variant's colon is a plus, as on disk."""
    return PurePosixPath("p", folder_name(server), folder_name(client))


@lru_cache(_REMEMBERED)
def cell(server: str, client: str, test_case: str) -> PurePosixPath:
    """Folder of a pair in one test case below that of its campaign."""
    return pair(server, client) / test_case


def log_page(repetition: int, name: str) -> str:
    """Name of the page that shows a log, below the folder of its cell; the log's own name may be anything."""
    return f"log-{repetition}-{_UNSAFE.sub('-', name)[:80].strip('-')}.html"


def packets(repetition: int) -> str:
    """Name of the file with the packets of one run, below the folder of its cell."""
    return f"packets-{repetition}.js"


def sequence(repetition: int) -> str:
    """Name of the file with the sequence diagram of one run, below the folder of its cell."""
    return f"sequence-{repetition}.js"


def up(page: PurePosixPath) -> str:
    """What leads from a page to the root of the site: ``../../``, nothing from the root itself."""
    return "../" * (len(page.parts) - 1)
