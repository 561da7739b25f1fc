"""What the archive of a release says about its changes: the section of its changelog, and an address for more."""

import gzip
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from quicsat.docker.archive import CHUNK, ArchiveLimits, members
from quicsat.images.archives import fetched
from quicsat.model.errors import HarnessFault, MachineError
from quicsat.model.implementation import Implementation
from quicsat.model.text import printable
from quicsat.model.units import MIB

LARGEST = MIB
"""Bytes of a changelog that are read."""
MOST_MEMBERS = 100_000
"""Files of an archive that are looked at."""
LIMITS = ArchiveLimits(total=512 * MIB, files=MOST_MEMBERS)
"""Of a compressed archive."""
LONGEST = 600
"""Characters of a section that are shown."""
FILE = re.compile(r"(?:[^/]+/){0,8}(?:change(?:s|log)?|history|news|releases)(?:\.(?:md|rst|txt))?", re.IGNORECASE)
METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
LINK = re.compile(r"^Project-URL: change ?log, (https://[!-~]{1,300})$", re.IGNORECASE | re.MULTILINE)
"""In the metadata of a wheel (core metadata specification of Python packages)."""
HEADING = re.compile(r"^(?:#+ .*|\[?v?\d+\.\d+[^\n]*\n[-=~^]{3,} *)$", re.MULTILINE)
"""Of Markdown, or of reStructuredText: a line that begins with a version, and one that underlines it."""
SEARCHES = {"https://github.com/": "releases?q=", "https://gitlab.com/": "-/tags?search="}
"""How to find a version on a site: projects name their tags differently, for example v2.9.6 or netty-4.2.18.Final."""


@dataclass(frozen=True)
class Changes:
    """Either may be empty."""

    text: str
    """On one line."""
    link: str


def changes_in(implementation: Implementation) -> Changes:
    """Of a release that was chosen by name; without text if the registry does not answer, or carries no changelog."""
    package, version = implementation.package, implementation.release
    assert package is not None
    home = implementation.url.rstrip("/")
    link = next((f"{home}/{search}{version}" for site, search in SEARCHES.items() if home.startswith(site)), "")
    try:
        with fetched(package, version) as archive:
            texts = dict(_texts(archive.path))
    except MachineError:
        return Changes("", link)
    stated = next(
        (found[1] for name, text in texts.items() if METADATA.fullmatch(name) and (found := LINK.search(text))), ""
    )
    logs = sorted((name for name in texts if FILE.fullmatch(name)), key=lambda name: (name.count("/"), name))
    sections = (section(texts[name], version) for name in logs)
    return Changes(next(filter(None, sections), ""), stated or link)


def section(changelog: str, version: str) -> str:
    """What a changelog says below the heading that names the version, on one line; empty if there is none."""
    headings = list(HEADING.finditer(changelog))
    number = re.compile(rf"(?<![\d.]){re.escape(version.removeprefix('v'))}(?![\d.]*\d)(?!-)")
    for place, heading in enumerate(headings):
        if number.search(heading[0]):
            level = _level(heading[0])
            later = (each for each in headings[place + 1 :] if _level(each[0]) <= level)
            end = next((each.start() for each in later), len(changelog))
            return printable(" ".join(changelog[heading.end() : end].split()), LONGEST)
    return ""


def _level(heading: str) -> int:
    return len(heading) - len(heading.lstrip("#"))


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """Changelogs and metadata in an archive; raises :class:`MachineError` if it is damaged."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                for entry in packed.infolist()[:MOST_MEMBERS]:
                    if _wanted(entry.filename, entry.file_size):
                        yield entry.filename, packed.read(entry)[:LARGEST].decode(errors="replace")
        else:
            with gzip.open(path) as file:
                for member, content in members(iter(partial(file.read, CHUNK), b""), LIMITS):
                    if content is not None and _wanted(member.name, member.size):
                        yield member.name, b"".join(content).decode(errors="replace")
    except (HarnessFault, OSError, EOFError, zipfile.BadZipFile, zlib.error, ValueError, RuntimeError) as error:
        raise MachineError(f"{path.name} is damaged: {error}") from error


def _wanted(name: str, size: int) -> bool:
    return size <= LARGEST and bool(FILE.fullmatch(name) or METADATA.fullmatch(name))
