"""The package of a registry from which an image is built."""

import re
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


WITH_BRANCHES = frozenset({Registry.CRATES, Registry.DEBIAN})
"""Registries whose clients name all versions of a package, not only the newest one."""

PRE_RELEASE = re.compile(r"\d(?:-|a|b|rc|\.dev)")
"""In a version: a release that is not yet one (Semantic Versioning 2.0.0, section 9; PEP 440)."""
_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)(.*)")


def release_order(version: str) -> tuple[tuple[int, ...], int, str]:
    """Sorts versions: a pre-release comes before its release, and ``1.0`` is ``1.0.0``."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (), 0, version
    numbers = [int(each) for each in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers), 0 if PRE_RELEASE.search(version) else 1, found[2]


@dataclass(frozen=True)
class Package:
    """A package, and the argument of the Dockerfile that pins its version."""

    registry: Registry
    name: str
    argument: str = "VERSION"
    unmaintained: str = ""
    """Why no further release is expected; empty for a maintained project."""
    branch: str = ""
    """Only versions that begin with these numbers count, such as ``3.5`` for 3.5.9; empty for all."""

    def counts(self, version: str) -> bool:
        """Whether a version belongs to the branch."""
        return not self.branch or f"{version}.".startswith(f"{self.branch}.")
