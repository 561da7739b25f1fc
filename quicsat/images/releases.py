"""Which implementations are built from the newest releases of their packages."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from pathlib import Path

from quicsat.config.releases import package_of, release_named, series_of
from quicsat.docker.provenance import VERSION, arguments_of, labels_of
from quicsat.images.archives import Releases, look_up, versions_of
from quicsat.images.build_recipes import recipe_of
from quicsat.images.registries import upstream
from quicsat.model.errors import MachineError
from quicsat.model.implementation import Implementation
from quicsat.model.package import Package, Registry


class ReleaseState(StrEnum):
    """Of the version from which an image is built."""

    CURRENT = "current"
    OUTDATED = "outdated"
    UNKNOWN = "unknown"
    """The registry did not answer."""


@dataclass(frozen=True)
class Release:
    """The pinned version of an implementation's package beside the newest one."""

    name: str
    package: Package
    version: str
    state: ReleaseState
    newest: str = ""
    released: date | None = None
    newest_released: date | None = None
    fault: str = ""
    """Why the registry did not answer."""
    costs_of: str = ""
    """Another version, with which the CPU cost was measured; empty if it is of this one, or its version is unknown."""


def pinned_version(root: Path, implementation: Implementation) -> str:
    """The version of the package that the implementation's Dockerfile pins; raises :class:`MachineError`.

    Versions of Debian are without Debian's revision. A pin may name the package, as in ``apt-get install
    curl=8.14.1``.
    """
    package = implementation.package
    assert package is not None
    recipe = recipe_of(root, implementation)
    version = arguments_of(recipe.folder / "Dockerfile", recipe.arguments).get(package.argument, "").rpartition("=")[2]
    if not version:
        file = f"{implementation.build}/Dockerfile"
        raise MachineError(f"{implementation.name}: {file} has no ARG {package.argument} with a value.")
    return upstream(version) if package.registry is Registry.DEBIAN else version


def releases_of(root: Path, implementations: Iterable[Implementation]) -> list[Release]:
    """A release for each implementation that names its package, asked now; raises :class:`MachineError`."""
    chosen = [each for each in implementations if each.package]
    pinned = {each.name: (each.package, pinned_version(root, each)) for each in chosen if each.package}
    answers = look_up(pinned.values())
    found = {name: _release(name, *key, answers[key]) for name, key in pinned.items()}
    return [replace(found[each.name], costs_of=costs_of_another(root, each)) for each in chosen]


def costs_of_another(root: Path, implementation: Implementation) -> str:
    """The version with which the CPU cost was measured, if the image is now built from another one, else empty."""
    measured = implementation.cpu_cost.version
    recipe = recipe_of(root, implementation)
    built = labels_of(recipe.folder / "Dockerfile", recipe.arguments).get(VERSION, "")
    return measured if measured != built else ""


def buildable(implementation: Implementation) -> tuple[Implementation, ...]:
    """The releases of an implementation that its folder builds, the oldest first, without pre-releases.

    The registry is asked now. Raises :class:`InputError` if the folder builds one version only, and
    :class:`MachineError` if the registry does not answer.
    """
    versions = versions_of(package_of(implementation))
    return tuple(release_named(implementation, each) for each in versions if series_of(implementation, each))


def _release(name: str, package: Package, version: str, answer: Releases | MachineError) -> Release:
    if isinstance(answer, MachineError):
        return Release(name, package, version, ReleaseState.UNKNOWN, fault=str(answer))
    state = ReleaseState.CURRENT if answer.newest == version else ReleaseState.OUTDATED
    dates = answer.dates
    return Release(name, package, version, state, answer.newest, dates.get(version), dates.get(answer.newest))
