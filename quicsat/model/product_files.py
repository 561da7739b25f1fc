"""Where the files of the product lie that are no Python: test cases, implementations, sources of images, the website.

In a checkout, they are in its top-level folders. ``[tool.hatch.build.targets.wheel]`` in pyproject.toml puts them into
a folder of the package.
"""

import os
from pathlib import Path

import quicsat
from quicsat.model.text import PROGRAM

_PACKAGED = Path(quicsat.__file__).resolve().parent / "files"

FILES = _PACKAGED if _PACKAGED.is_dir() else _PACKAGED.parents[1]
"""The folder with ``implementations.json``, ``testcases/``, ``endpoints/``, ``web/`` and so on; it may be read-only."""


def is_packaged() -> bool:
    """Whether this is an installed package, not a checkout."""
    return FILES == _PACKAGED


def build_folder() -> Path:
    """Where logs of builds, checks of images and downloaded scripts go: ``build/``, or the user's cache."""
    if not is_packaged():
        return FILES / "build"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quicsat"


def as_installed(text: str) -> str:
    """A text of this program, which names its commands as in a checkout, with their names here."""
    text = text.replace("make setup", "quicsat setup") if is_packaged() else text
    return text.replace("./run.py", PROGRAM)
