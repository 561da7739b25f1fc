"""Recipes of local image builds: a folder with a Dockerfile, its digest, and the build context as an archive."""

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from quicsat.docker.archive import pack
from quicsat.docker.provenance import REVISION, SOURCE
from quicsat.model import product_files
from quicsat.model.clock import Clock
from quicsat.model.errors import MachineError
from quicsat.model.implementation import OWN_IMAGES, Implementation
from quicsat.model.names import RELEASE_SIGN, base_name
from quicsat.model.package import Package
from quicsat.model.test_case import TestCase

BASE = "quicsat/base:trixie"
"""Debian 13, the base of all local builds."""
BASE_SUITE = "trixie"
SIMULATOR = "ns3-scenarios"
LINK_TOOLS = "link-tools"
VIRTUAL_TIME = "virtual-time"
LINK_GATEWAYS = "link-gateways"
BASES = {
    "ENDPOINT_BASE": ("endpoint-base", "endpoints/base"),
    "RUST_BASE": ("rust-base", "endpoints/base-rust"),
    "SIMULATOR_BASE": ("simulator", SIMULATOR),
}
"""Build argument -> name and folder of the local image that it stands for: base or build environment."""
RESERVED = frozenset({"BASE", *BASES})
"""Build arguments that quicsat sets itself."""
PINS = "PINS"
"""Argument of a Dockerfile: other packages, with the versions that a release needs or had."""
NO_ENDPOINTS = ("base", "base-rust", "TEMPLATE")
"""Folders in endpoints/ that are not endpoints."""
OWN_FOLDERS = dict(zip(OWN_IMAGES, (SIMULATOR, LINK_TOOLS, VIRTUAL_TIME, LINK_GATEWAYS), strict=True))
"""Folder of each image that is not an endpoint."""
HOST_CERTIFICATES = Path("/usr/local/share/ca-certificates")
"""Additional certificate authorities of this machine; builds behind some proxies need them."""
NOT_OF_THE_IMAGE = frozenset({"ca", "target", "__pycache__", ".git"})
"""Names inside a folder that are neither sent to the daemon nor part of the digest."""


@dataclass(frozen=True)
class Recipe:
    """An image that can be built: its folder and the build arguments that its Dockerfile declares."""

    name: str
    folder: Path
    arguments: Mapping[str, str]
    package: Package | None = None
    """Of which ``release`` is one."""
    release: str = ""
    """Release of the package that was chosen by name; empty for the version in the folder."""

    @property
    def title(self) -> str:
        """The name, with the release."""
        return f"{self.name}{RELEASE_SIGN}{self.release}" if self.release else self.name

    @property
    def labels(self) -> dict[str, str]:
        """Of a release: those that replace labels of the Dockerfile, which tell the source of the version in it."""
        if self.package is None or not self.release:
            return {}
        source = f"{self.package.registry} {self.package.name} {self.release}"
        pins = self.arguments.get(PINS, "").split()
        return {SOURCE: ", ".join([source, *pins]), REVISION: ""}

    @property
    def tag(self) -> str:
        """``quicsat/<name>:<digest>``, or ``quicsat/<name>:<release>-<digest>``.

        The digest changes with the folder's files and the build arguments.
        """
        digest = hashlib.sha256()
        for path in _files(self.folder):
            mode = "x" if path.stat().st_mode & 0o100 else "-"
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(self.folder).as_posix()}\0{mode}\0{content}\n".encode())
        for name, value in sorted(self.arguments.items()):
            digest.update(f"{name}={value}\n".encode())
        release = f"{self.release}-" if self.release else ""
        return f"quicsat/{self.name}:{release}{digest.hexdigest()[:12]}"

    @property
    def latest(self) -> str:
        """The name of the newest image that was built from any state of the folder, of this release if it is one."""
        return f"quicsat/{self.name}:{self.release or 'latest'}"


def own_images(test_cases: Collection[TestCase], clock: Clock) -> tuple[str, ...]:
    """Those of ``OWN_IMAGES`` that runs of these test cases need."""
    needed = (
        any(not case.real for case in test_cases),
        any(case.real for case in test_cases),
        clock is Clock.VIRTUAL,
        any(case.has_gateways for case in test_cases),
    )
    return tuple(name for name, needs in zip(OWN_IMAGES, needed, strict=True) if needs)


def find_recipe(name: str, folder: str, root: Path | None = None) -> Recipe:
    """How to build a folder of quicsat, or of ``root`` if it is there; :class:`MachineError` without a Dockerfile."""
    own = root / folder / "Dockerfile" if root else None
    dockerfile = own if own and own.is_file() else product_files.FILES / folder / "Dockerfile"
    if not dockerfile.is_file():
        raise MachineError(f"{name}: {folder}/Dockerfile does not exist: fix its folder or name an image with -r.")
    asked = declared(dockerfile)
    arguments: dict[str, str] = {}
    if "BASE" in asked:
        arguments["BASE"] = BASE
    arguments |= {argument: find_base(argument).tag for argument in BASES if argument in asked}
    return Recipe(name, dockerfile.parent, arguments)


def declared(dockerfile: Path) -> set[str]:
    """Names of the build arguments that a Dockerfile declares."""
    return set(re.findall(r"^ARG (\w+)", dockerfile.read_text(encoding="utf-8"), re.MULTILINE))


def find_base(argument: str) -> Recipe:
    """How to build the image that a build argument in ``BASES`` stands for; raises :class:`MachineError`."""
    return find_recipe(*BASES[argument])


def recipe_of(root: Path, implementation: Implementation) -> Recipe:
    """How to build an implementation: its image has the name of the folder, which implementations can share.

    With build arguments of its own, the image has the name of the implementation. Raises :class:`MachineError`, which
    names the implementation, if it has no folder with a Dockerfile, or the Dockerfile does not declare an argument.
    """
    name, folder = base_name(implementation.name), implementation.build or ""
    recipe = find_recipe(name, folder, root)
    given = {argument.name: argument.value for argument in implementation.build_arguments}
    if unknown := sorted(given.keys() - declared(recipe.folder / "Dockerfile")) or sorted(given.keys() & RESERVED):
        reason = "is set by quicsat" if unknown[0] in RESERVED else f"is not declared by {folder}/Dockerfile"
        raise MachineError(f"{name}: the build argument {unknown[0]} {reason}.")
    return replace(
        recipe,
        name=name if given else Path(folder).name,
        arguments={**recipe.arguments, **given},
        package=implementation.package,
        release=implementation.release,
    )


def expected() -> dict[str, str]:
    """References of all images that can be built from quicsat's folders, by name, with the simulator."""
    found = product_files.FILES.glob("endpoints/*/Dockerfile")
    folders = {path.parent.name: f"endpoints/{path.parent.name}" for path in found}
    for name in NO_ENDPOINTS:
        folders.pop(name, None)
    recipes = [find_recipe(name, folder) for name, folder in sorted(folders.items())]
    return {recipe.name: recipe.tag for recipe in (find_recipe("simulator", SIMULATOR), *recipes)}


def build_context(folder: Path, certificates: Path = HOST_CERTIFICATES) -> IO[bytes]:
    """The build context: the folder's files, and in ``ca/`` the machine's own certificate authorities.

    The same files give the same bytes, independent of owners and times.
    """
    files = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    files |= {f"ca/{path.name}": path for path in sorted(certificates.glob("*.crt"))}
    return pack(files, ("ca",), mode=0o755)


def _files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix != ".md"  # documentation does not change the digest
        and not NOT_OF_THE_IMAGE.intersection(path.relative_to(folder).parts)
    )
