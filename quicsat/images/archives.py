"""Releases of packages in their registries: which there are, and the date and the checksum of each."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from quicsat.images.registries import REGISTRARS, Archive, Registrar
from quicsat.model.errors import MachineError
from quicsat.model.names import did_you_mean, is_version
from quicsat.model.package import PRE_RELEASE, Package, Registry
from quicsat.model.whole_file import scratch_directory

VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~:_-]{0,79}")


@dataclass(frozen=True)
class Releases:
    """What a registry says about a package."""

    newest: str
    dates: Mapping[str, date] = field(default_factory=dict)
    """Of the newest and the pinned release; those that are not known are missing."""


Answer = Releases | MachineError
"""The error says why the registry did not answer."""


# ---- the newest release --------------------------------------------------------------------------


def look_up(wanted: Iterable[tuple[Package, str]]) -> dict[tuple[Package, str], Answer]:
    """What the registries say about packages with their pinned versions.

    Registries are asked at the same time, the packages of one registry one after the other.
    """
    groups: dict[Registry, list[tuple[Package, str]]] = {}
    for each in dict.fromkeys(wanted):
        groups.setdefault(each[0].registry, []).append(each)
    if not groups:
        return {}
    with ThreadPoolExecutor(len(groups)) as pool:
        found = pool.map(lambda item: _of_registry(*item), groups.items())
        return {key: answer for answers in found for key, answer in answers.items()}


def _of_registry(registry: Registry, wanted: Iterable[tuple[Package, str]]) -> dict[tuple[Package, str], Answer]:
    registrar = REGISTRARS[registry]
    with scratch_directory() as folder:
        try:
            if registrar.prepare is not None:
                registrar.prepare(folder)
        except MachineError as error:
            return dict.fromkeys(wanted, error)
        return {key: _answer(registrar, *key, folder) for key in wanted}


def _answer(registrar: Registrar, package: Package, pinned: str, folder: Path) -> Answer:
    try:
        with _whole(package):
            versions = [each for each in registrar.versions(package.name, folder) if package.counts(each)]
            newest = next(iter(_stable(versions, pinned)), "")
            if not VERSION.fullmatch(newest):
                raise MachineError(f"{package.registry} gives no version of {package.name}.")
            days = {each: _date(registrar, package, each, folder) for each in dict.fromkeys((newest, pinned))}
            return Releases(newest, {each: day for each, day in days.items() if day})
    except MachineError as error:
        return error


def _stable(versions: Sequence[str], pinned: str) -> Sequence[str]:
    """Without pre-releases, unless one is pinned or there is nothing else."""
    stable = [each for each in versions if not PRE_RELEASE.search(each)]
    return versions if PRE_RELEASE.search(pinned) or not stable else stable


def _date(registrar: Registrar, package: Package, version: str, folder: Path) -> date | None:
    try:
        return registrar.released(package.name, version, folder)
    except MachineError:
        return None


# ---- older releases ------------------------------------------------------------------------------


def versions_of(package: Package) -> tuple[str, ...]:
    """The releases of a package without pre-releases, the oldest first; raises :class:`MachineError`."""
    with _asked(package) as (registrar, folder):
        found = reversed(registrar.versions(package.name, folder))
        return tuple(each for each in found if is_version(each) and not PRE_RELEASE.search(each))


def released(package: Package, version: str) -> date | None:
    """The date of a release, if the registry states it; raises :class:`MachineError`."""
    with _asked(package, version) as (registrar, folder):
        return registrar.released(package.name, version, folder)


@contextmanager
def fetched(package: Package, version: str) -> Iterator[Archive]:
    """The archive of a release while the block runs; raises :class:`MachineError` if the registry does not have it."""
    with _asked(package, version) as (registrar, folder):
        assert registrar.fetch is not None
        try:
            archive = registrar.fetch(package.name, version, folder)
        except MachineError as fault:
            known = [*filter(is_version, registrar.versions(package.name, folder))]
            if not known or version in known:
                raise
            reason = f"{package.registry} has no {package.name} {version}: the oldest is {known[-1]}"
            raise MachineError(f"{reason}, the newest {known[0]}.{did_you_mean(version, known)}") from fault
        yield archive


def checksum_of(package: Package, version: str) -> str:
    """That of the archive of a release; raises as :func:`fetched`."""
    with fetched(package, version) as archive:
        return archive.checksum


@contextmanager
def _asked(package: Package, version: str = "0") -> Iterator[tuple[Registrar, Path]]:
    """The registry of a package, to be asked about a version, and a folder for temporary files."""
    if not is_version(version):
        raise MachineError(f"{package.registry} has no such version of {package.name}.")
    registrar = REGISTRARS.get(package.registry)
    if registrar is None or registrar.fetch is None:
        raise MachineError(f"{package.registry} gives no older releases.")
    with scratch_directory() as folder, _whole(package):
        yield registrar, folder


@contextmanager
def _whole(package: Package) -> Iterator[None]:
    """Raise :class:`MachineError` for an answer that cannot be understood."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, OSError, RecursionError) as error:
        raise MachineError(f"{package.registry}: the answer about {package.name} is damaged: {error}") from error
