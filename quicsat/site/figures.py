"""The figures that `./run.py plot` has drawn of a campaign: found in its directory, by plain names and kind."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from quicsat.model.stored_files import files, has_content, read_file
from quicsat.site import safe_svg

FOLDER = "plots"
_PICTURES = (".svg", ".png")
"""Other forms run something where they are opened, and nothing shows who has drawn them."""
_PNG = b"\x89PNG\r\n\x1a\n"
_LARGEST = 20_000_000
_OTHERS = "Others"
"""Heading of pictures that no figure of quicsat is called by."""
_PLAIN = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_+@=.-]*")


@dataclass(frozen=True)
class Figure:
    """One figure in all the forms that were drawn."""

    stem: str
    forms: tuple[Path, ...]

    @property
    def picture(self) -> str:
        """Name of the sharpest form."""
        return max((each.name for each in self.forms), key=lambda name: name.endswith(_PICTURES[0]))

    @property
    def words(self) -> str:
        """``Heatmap SAT``: its name without hyphens."""
        plain = self.stem.replace("-", " ").replace("_", " to ")
        return plain[:1].upper() + plain[1:]


def find(campaign: Path) -> tuple[Figure, ...]:
    """The figures in the directory of a campaign that can be shown, by name."""
    forms: dict[str, list[Path]] = {}
    for path in _drawn(campaign / FOLDER):
        forms.setdefault(path.stem, []).append(path)
    return tuple(Figure(stem, tuple(paths)) for stem, paths in sorted(forms.items()))


def content(path: Path) -> bytes:
    """Of a form of a figure, so that it only shows something; empty for a PNG file that is none."""
    found = read_file(path, _LARGEST)
    if path.suffix == ".svg":
        return safe_svg.safe(found)
    return found if found.startswith(_PNG) else b""


def grouped(figures: tuple[Figure, ...], headings: Mapping[str, str]) -> list[tuple[str, list[Figure]]]:
    """The figures under their headings, which ``headings`` has by kind; a heading without figures is left out."""
    found: dict[str, list[Figure]] = {title: [] for title in (*headings.values(), _OTHERS)}
    for figure in figures:
        kinds = [kind for kind in headings if f"{figure.stem}-".startswith(f"{kind}-")]
        found[headings[max(kinds, key=len)] if kinds else _OTHERS].append(figure)
    return [(title, many) for title, many in found.items() if many]


def _drawn(place: Path) -> Iterator[Path]:
    """Pictures under plain names."""
    for path in files(place):
        plain = path.name.isascii() and _PLAIN.fullmatch(path.stem) is not None
        if plain and path.suffix in _PICTURES and has_content(path, _LARGEST):
            yield path
