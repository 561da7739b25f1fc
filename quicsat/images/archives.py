"""Releases of packages in their registries: which there are, and the checksum and the date of each archive.

As in :mod:`quicsat.images.registries`, the registries' own clients are asked. They compare the archives with the
checksums of their registries: cargo with its index, go with the checksum database, pip with the index, and Maven with
the file beside the archive.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from quicsat.images.registries import (
    MAVEN_NEWEST,
    client,
    crate_entries,
    date_of_zip,
    day_of,
    mapping,
    maven_archive,
    maven_metadata,
)
from quicsat.model.errors import MachineError
from quicsat.model.names import did_you_mean, is_version
from quicsat.model.package import PRE_RELEASE, Package, Registry, release_order
from quicsat.model.whole_file import scratch_directory

PYTHON = "3.13"
"""Version of Python in Debian 13, for which wheels are built."""
SHA256 = "sha256:"


@dataclass(frozen=True)
class Archive:
    """A release as its registry has it."""

    version: str
    checksum: str
    """``h1:…`` of a Go module (golang.org/x/mod/sumdb/dirhash), else ``sha256:…`` of the file."""
    released: date | None
    path: Path
    """The file, which is there while :func:`fetched` lasts."""


@dataclass(frozen=True)
class Registrar:
    """What the client of a registry tells."""

    versions: Callable[[str, Path], list[str]]
    """Those of a package that were not withdrawn, in any order."""
    fetch: Callable[[str, str, Path], Archive]
    """A package, a version and a folder for temporary files -> the archive."""


def versions_of(package: Package) -> tuple[str, ...]:
    """The releases of a package without pre-releases, the oldest first; raises :class:`MachineError`."""
    with _asked(package) as (registrar, folder):
        found = registrar.versions(package.name, folder)
        usable = [each for each in found if is_version(each) and not PRE_RELEASE.search(each)]
        return tuple(sorted(usable, key=release_order))


@contextmanager
def fetched(package: Package, version: str) -> Iterator[Archive]:
    """A release with its archive; raises :class:`MachineError` if the registry does not have it."""
    if not is_version(version):
        raise MachineError(f"{package.registry} has no such version of {package.name}.")
    with _asked(package) as (registrar, folder):
        try:
            archive = registrar.fetch(package.name, version, folder)
        except MachineError as fault:
            known = sorted(filter(is_version, registrar.versions(package.name, folder)), key=release_order)
            if not known or version in known:
                raise
            reason = f"{package.registry} has no {package.name} {version}: the oldest is {known[0]}"
            raise MachineError(f"{reason}, the newest {known[-1]}.{did_you_mean(version, known)}") from fault
        yield archive


def describe(package: Package, version: str) -> Archive:
    """As :func:`fetched`, without the file."""
    with fetched(package, version) as archive:
        return archive


@contextmanager
def _asked(package: Package) -> Iterator[tuple[Registrar, Path]]:
    registrar = REGISTRARS.get(package.registry)
    if registrar is None:
        raise MachineError(f"{package.registry} gives no older releases.")
    with scratch_directory() as folder:
        try:
            yield registrar, folder
        except (ValueError, LookupError, TypeError, AttributeError, OSError) as error:
            raise MachineError(f"{package.registry}: the answer about {package.name} is damaged: {error}") from error


def _sha256(path: Path) -> str:
    return SHA256 + hashlib.sha256(path.read_bytes()).hexdigest()


# ---- Go ------------------------------------------------------------------------------------------


def _go(*words: str, folder: Path) -> Mapping[str, object]:
    return mapping(client("go", *words, folder=folder, environment={"GOFLAGS": "-mod=mod"}))


def _go_versions(name: str, folder: Path) -> list[str]:
    versions = _go("list", "-m", "-versions", "-json", name, folder=folder)["Versions"]
    return [str(each) for each in versions] if isinstance(versions, list) else []


def _go_fetch(name: str, version: str, folder: Path) -> Archive:
    found = {
        key: str(value) for key, value in _go("mod", "download", "-json", f"{name}@{version}", folder=folder).items()
    }
    told = mapping(Path(found["Info"]).read_text(encoding="utf-8"))
    return Archive(found["Version"], found["Sum"], day_of(str(told["Time"])), Path(found["Zip"]))


# ---- crates.io -----------------------------------------------------------------------------------


def _crate_versions(name: str, _folder: Path) -> list[str]:
    return [each["vers"] for each in crate_entries(name) if not each.get("yanked")]


def _crate_fetch(name: str, version: str, folder: Path) -> Archive:
    entry = next((each for each in crate_entries(name) if each["vers"] == version), None)
    if entry is None:
        raise MachineError(f"crates.io has no version {version} of {name}.")
    client("cargo", "info", "--quiet", "--registry", "crates-io", f"{name}@{version}", folder=folder)
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    path = next((home / "registry/cache").glob(f"*/{name}-{version}.crate"))
    released = day_of(entry["pubtime"]) if entry.get("pubtime") else None
    return Archive(version, SHA256 + str(entry["cksum"]), released, path)


# ---- PyPI ----------------------------------------------------------------------------------------


def _pip(*words: str) -> str:
    return client(sys.executable, "-m", "pip", "--disable-pip-version-check", *words)


def _wheel_versions(name: str, _folder: Path) -> list[str]:
    text = _pip("index", "versions", "--ignore-requires-python", name)
    found = re.search(r"^Available versions: (.*)$", text, re.MULTILINE)
    return found[1].split(", ") if found else []


def _wheel_fetch(name: str, version: str, folder: Path) -> Archive:
    options = ("--quiet", "--no-deps", "--only-binary", ":all:", "--python-version", PYTHON, "-d", str(folder))
    _pip("download", *options, f"{name}=={version}")
    path = next(folder.glob("*.whl"))
    return Archive(version, _sha256(path), date_of_zip(path), path)


# ---- Maven ---------------------------------------------------------------------------------------


def _maven_versions(name: str, folder: Path) -> list[str]:
    maven_archive(name, MAVEN_NEWEST, folder / "newest")
    return list(dict.fromkeys(each for kept in maven_metadata(name) for each in re.findall(r"<version>([^<]+)", kept)))


def _maven_fetch(name: str, version: str, folder: Path) -> Archive:
    path = maven_archive(name, version, folder / "archive")
    return Archive(version, _sha256(path), date_of_zip(path), path)


REGISTRARS: Mapping[Registry, Registrar] = {
    Registry.GO: Registrar(_go_versions, _go_fetch),
    Registry.CRATES: Registrar(_crate_versions, _crate_fetch),
    Registry.PYPI: Registrar(_wheel_versions, _wheel_fetch),
    Registry.MAVEN: Registrar(_maven_versions, _maven_fetch),
}
"""Those that keep older releases, and whose client tells a checksum."""
