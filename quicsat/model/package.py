"""The package of a registry from which an image is built."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Registry(StrEnum):
    """A registry of packages; the values are the names in implementations.json and in tables."""

    CRATES = "crates.io"
    GO = "Go"
    PYPI = "PyPI"
    NPM = "npm"
    MAVEN = "Maven"
    DEBIAN = "Debian"


@dataclass(frozen=True)
class Package:
    """A package, and the argument of the Dockerfile that pins its version."""

    registry: Registry
    name: str
    argument: str = "VERSION"
    unmaintained: str = ""
    """Why no further release is expected; empty for a maintained project."""
