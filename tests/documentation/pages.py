"""The Markdown pages of the project, and what they hold: headings, links, code, tables."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = tuple(
    sorted(
        [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("ns3-scenarios/*.md")],
        key=lambda page: page.as_posix(),
    )
)
FENCED = re.compile(r"^ *(`{3,})(\w*)[^\n]*\n(.*?)^ *\1 *$", re.M | re.S)
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.M)
LINK = re.compile(r"\]\(([^()\s]+(?:\([^()\s]*\))?)(?: \"[^\"]*\")?\)")
ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")


def text_of(page: Path) -> str:
    """A page as it is."""
    return page.read_text(encoding="utf-8")


def prose_of(page: Path) -> str:
    """A page without its code blocks."""
    return FENCED.sub("", text_of(page))


def blocks_of(page: Path) -> list[str]:
    """The code blocks of a page; lines that end in a backslash are joined."""
    return [block.replace("\\\n", " ") for _, _, block in FENCED.findall(text_of(page))]


def anchors_of(page: Path) -> set[str]:
    """Fragments that a link to the page may have, by the rules of GitHub."""
    found: set[str] = set(ANCHOR.findall(text_of(page)))
    for heading in HEADING.findall(prose_of(page)):
        slug = base = slugify(heading)
        number = 0
        while slug in found:
            number += 1
            slug = f"{base}-{number}"
        found.add(slug)
    return found


def slugify(heading: str) -> str:
    """The anchor of a heading: lower case, without punctuation, hyphens for spaces."""
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def links_of(page: Path) -> list[str]:
    """Targets of the links and images of a page that lie in this project, as written."""
    prose = re.sub(r"`[^`\n]*`", "``", prose_of(page))
    return [target for target in LINK.findall(prose) if not re.match(r"[a-z]+:", target)]


def first_column(page: Path, section: str) -> list[str]:
    """The code in the first cell of each table row below the heading ``section``, up to the next heading."""
    rest = re.split(rf"^#+ +{re.escape(section)} *$", text_of(page), maxsplit=1, flags=re.M)
    if len(rest) < 2:
        message = f"{page} has no section {section}"
        raise LookupError(message)
    body = re.split(r"^#+ ", rest[1], maxsplit=1, flags=re.M)[0]
    cells = re.findall(r"^\|([^|]*)\|", body, re.M)
    return [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]


def commands(pages: tuple[Path, ...] = PAGES) -> Iterator[str]:
    """Every line of the code blocks, and every piece of inline code, without a comment behind it."""
    for page in pages:
        for block in blocks_of(page):
            yield from (line.split(" #")[0].strip() for line in block.splitlines())
        yield from re.findall(r"`([^`\n]+)`", prose_of(page))
