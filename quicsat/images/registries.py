"""The registries of packages, asked with their own clients on this machine.

The clients know the mirrors, proxies and credentials of this machine: cargo, go, pip, npm, Maven and apt-get. They
compare archives with the checksums of their registries: cargo with its index, go with the checksum database, pip and
npm with the index, and Maven with the file beside the archive.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from quicsat.images.build_log import BuildLog
from quicsat.images.build_recipes import BASE_SUITE
from quicsat.model.errors import MachineError
from quicsat.model.package import Registry, release_order
from quicsat.model.units import MIB, seconds

PATIENCE = 300.0
"""Seconds within which a client must end."""
LARGEST_ANSWER = 64 * MIB
LARGEST_PACKAGE = 20 * MIB
"""Bytes of a package of Debian that is fetched for its date."""
PYTHON = "3.13"
"""Version of Python in Debian 13, for which wheels are built."""
SHA256 = "sha256:"
NEWEST = "RELEASE"
"""For Maven, the newest release."""
FINAL = ".Final"
"""Ends the versions of some projects on Maven, of Netty's for example; here, their releases have none."""
MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
SUITES = (
    ("http://deb.debian.org/debian", BASE_SUITE),
    ("http://deb.debian.org/debian-security", f"{BASE_SUITE}-security"),
    ("http://deb.debian.org/debian", f"{BASE_SUITE}-backports"),
    ("http://deb.debian.org/debian", "sid"),
)
"""Address and name of the suites of Debian from which images can be built: stable, its updates, and unstable."""
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
EARLIEST = date(1990, 1, 1)
"""Archives that are built reproducibly can have an earlier date, which says nothing."""


@dataclass(frozen=True)
class Archive:
    """The file of a release, as its registry has it."""

    checksum: str
    """``h1:…`` of a Go module (golang.org/x/mod/sumdb/dirhash), else ``sha256:…`` of the file."""
    path: Path


@dataclass(frozen=True)
class Registrar:
    """What the client of a registry tells of a package by its name, with a folder for temporary files.

    The functions raise :class:`MachineError` if the registry does not answer, and other errors if its answer is
    damaged. A folder is for questions that are asked at about the same time.
    """

    versions: Callable[[str, Path], list[str]]
    """Those that were not withdrawn, the newest first; of some registries only the newest."""
    released: Callable[[str, str, Path], date | None]
    """The date of a version, if it is known."""
    fetch: Callable[[str, str, Path], Archive] | None = None
    """The archive of a version. None: the registry keeps no older releases, or its client tells no checksum."""
    prepare: Callable[[Path], None] | None = None
    """What comes before the first question in a folder."""


# ---- Go ------------------------------------------------------------------------------------------


def _go(*words: str, folder: Path) -> Mapping[str, Any]:
    return _mapping(_client("go", *words, folder=folder, environment={"GOFLAGS": "-mod=mod"}))


def _go_versions(name: str, folder: Path) -> list[str]:
    return _newest_first(_go("list", "-m", "-versions", "-json", name, folder=folder)["Versions"])


def _go_released(name: str, version: str, folder: Path) -> date | None:
    return _day_of(_go("list", "-m", "-json", f"{name}@{version}", folder=folder)["Time"])


def _go_fetch(name: str, version: str, folder: Path) -> Archive:
    found = _go("mod", "download", "-json", f"{name}@{version}", folder=folder)
    return Archive(str(found["Sum"]), Path(found["Zip"]))


# ---- crates.io -----------------------------------------------------------------------------------


@lru_cache(32)
def _crate(name: str, folder: Path) -> dict[str, dict[str, Any]]:
    """What the registry's index says about each release: cargo keeps it, with dates that it does not print."""
    _client("cargo", "info", "--quiet", "--registry", "crates-io", name, folder=folder)
    files = list((_cargo_home() / "registry/index").glob(f"*/.cache/*/*/{name}"))
    if not files:
        raise MachineError(f"crates.io: cargo keeps no index of {name}.")
    newest_file = max(files, key=lambda path: path.stat().st_mtime)
    entries = (json.loads(line) for line in newest_file.read_bytes().split(b"\0") if line.startswith(b"{"))
    return {entry["vers"]: entry for entry in entries}


def _cargo_home() -> Path:
    return Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")


def _crate_versions(name: str, folder: Path) -> list[str]:
    return _newest_first(version for version, entry in _crate(name, folder).items() if not entry.get("yanked"))


def _crate_released(name: str, version: str, folder: Path) -> date | None:
    stamp = _crate(name, folder).get(version, {}).get("pubtime")
    return _day_of(stamp) if stamp else None


def _crate_fetch(name: str, version: str, folder: Path) -> Archive:
    entry = _crate(name, folder).get(version)
    if entry is None:
        raise MachineError(f"crates.io has no version {version} of {name}.")
    _client("cargo", "info", "--quiet", "--registry", "crates-io", f"{name}@{version}", folder=folder)
    [path, *_] = (_cargo_home() / "registry/cache").glob(f"*/{name}-{version}.crate")
    return Archive(SHA256 + str(entry["cksum"]), path)


# ---- PyPI ----------------------------------------------------------------------------------------


def _pip(*words: str) -> str:
    return _client(sys.executable, "-m", "pip", "--disable-pip-version-check", *words)


def _wheel_versions(name: str, _folder: Path) -> list[str]:
    text = _pip("index", "versions", "--ignore-requires-python", name)
    found = re.search(r"^Available versions: (.*)$", text, re.MULTILINE)
    return found[1].split(", ") if found else []


def _wheel_released(name: str, version: str, folder: Path) -> date | None:
    """pip prints no dates: those of releases are those of the files in their wheels."""
    return _date_of_zip(_wheel_fetch(name, version, folder).path)


def _wheel_fetch(name: str, version: str, folder: Path) -> Archive:
    place = _part(folder)
    options = ("--quiet", "--no-deps", "--only-binary", ":all:", "--python-version", PYTHON, "-d", str(place))
    _pip("download", *options, f"{name}=={version}")
    [path] = place.glob("*.whl")
    return _hashed(path)


# ---- Maven ---------------------------------------------------------------------------------------


def _maven_archive(name: str, version: str, folder: Path) -> Path:
    """A copy of an archive; of :data:`NEWEST`, Maven also keeps the list of all versions."""
    place = _part(folder)
    options = ("-Dmdep.overWriteReleases=true", f"-DoutputDirectory={place}")
    copy = ("mvn", "-B", "-q", "--strict-checksums", MAVEN_COPY)
    try:
        _client(*copy, f"-Dartifact={name}:{version}", *options, folder=folder)
    except MachineError:
        if version == NEWEST:
            raise
        _client(*copy, f"-Dartifact={name}:{version}{FINAL}", *options, folder=folder)
    archive = next(place.glob(f"{name.rpartition(':')[2]}-*.jar"), None)
    if archive is None:
        raise MachineError(f"Maven gives no archive of {name}.")
    return archive


def _maven_metadata(name: str) -> list[str]:
    """The lists of versions that Maven keeps, of each repository that it asked."""
    group, _, artifact = name.partition(":")
    place = Path.home() / ".m2/repository" / group.replace(".", "/") / artifact
    return [kept.read_text(encoding="utf-8") for kept in place.glob("maven-metadata-*.xml")]


def _maven_versions(name: str, folder: Path) -> list[str]:
    _maven_archive(name, NEWEST, folder)
    found = (each for kept in _maven_metadata(name) for each in re.findall(r"<version>([^<]+)", kept))
    return _newest_first(each.removesuffix(FINAL) for each in found)


def _maven_released(name: str, version: str, folder: Path) -> date | None:
    """Maven prints no dates: it keeps that of the newest release, and archives can have those of their files."""
    for kept in _maven_metadata(name):
        stamp = re.search(r"<lastUpdated>(\d{8})", kept)
        if stamp and re.search(rf"<release>{re.escape(version)}({FINAL})?</release>", kept):
            return datetime.strptime(stamp[1], "%Y%m%d").date()
    return _date_of_zip(_maven_archive(name, version, folder))


def _maven_fetch(name: str, version: str, folder: Path) -> Archive:
    return _hashed(_maven_archive(name, version, folder))


# ---- npm -----------------------------------------------------------------------------------------


@lru_cache(32)
def _npm(name: str, folder: Path) -> Mapping[str, Any]:
    return _mapping(_client("npm", "view", "--json", name, "versions", "time", folder=folder))


def _npm_versions(name: str, folder: Path) -> list[str]:
    """npm prints the only version of a package as a text."""
    found = _npm(name, folder)["versions"]
    return _newest_first([found] if isinstance(found, str) else found)


def _npm_released(name: str, version: str, folder: Path) -> date | None:
    stamp = _npm(name, folder).get("time", {}).get(version)
    return _day_of(stamp) if stamp else None


def _npm_fetch(name: str, version: str, folder: Path) -> Archive:
    place = _part(folder)
    _client("npm", "pack", "--silent", "--pack-destination", str(place), f"{name}@{version}", folder=place)
    [path] = place.glob("*.tgz")
    return _hashed(path)


# ---- Debian --------------------------------------------------------------------------------------


def _apt(folder: Path) -> list[str]:
    """Options of apt that keep everything in a folder."""
    paths = {
        "Dir::State::lists": "lists", "Dir::State::status": "status", "Dir::Cache": "cache",
        "Dir::Etc::sourcelist": "sources.list", "Dir::Etc::sourceparts": "etc", "Dir::Etc::preferences": "none",
        "Dir::Etc::preferencesparts": "etc/preferences.d",
    }  # fmt: skip
    options = [f"{key}={folder / name}" for key, name in paths.items()]
    options += ["APT::Sandbox::User=root", "APT::Update::Error-Mode=any", "Acquire::Languages=none"]
    return [word for option in options for word in ("-o", option)]


def _debian_lists(folder: Path) -> None:
    """Of all ``SUITES``. A suite whose lists have expired still counts: a mirror may be late."""
    for name in ("lists/partial", "cache/archives/partial", "etc/preferences.d"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    lines = (f"deb [signed-by={KEYRING} check-valid-until=no] {address} {suite} main\n" for address, suite in SUITES)
    (folder / "sources.list").write_text("".join(lines), encoding="utf-8")
    _client("apt-get", *_apt(folder), "-qq", "update")


def _debian_packages(name: str, folder: Path) -> list[str]:
    """Versions with Debian's revision, the newest first."""
    rows = [line.split("|") for line in _client("apt-cache", *_apt(folder), "madison", name).splitlines()]
    return [row[1].strip() for row in rows if len(row) == 3]


def _debian_versions(name: str, folder: Path) -> list[str]:
    """Versions of the project, without Debian's revision."""
    found = _debian_packages(name, folder)
    if not found:
        raise MachineError(f"Debian has no package {name} in {', '.join(suite for _, suite in SUITES)}.")
    return list(dict.fromkeys(map(upstream, found)))


def _debian_released(name: str, version: str, folder: Path) -> date | None:
    """Of the newest package of a version, if it is small: that of its archive."""
    package = next((each for each in _debian_packages(name, folder) if upstream(each) == version), "")
    shown = _client("apt-cache", *_apt(folder), "show", f"{name}={package}") if package else ""
    size = re.search(r"^Size: (\d+)$", shown, re.MULTILINE)
    if size is None or int(size[1]) > LARGEST_PACKAGE:
        return None
    place = _part(folder)
    _client("apt-get", *_apt(folder), "-qq", "download", f"{name}={package}", folder=place)
    return next((_date_of_deb(path) for path in place.glob("*.deb")), None)


REGISTRARS: Mapping[Registry, Registrar] = {
    Registry.GO: Registrar(_go_versions, _go_released, _go_fetch),
    Registry.CRATES: Registrar(_crate_versions, _crate_released, _crate_fetch),
    Registry.PYPI: Registrar(_wheel_versions, _wheel_released, _wheel_fetch),
    Registry.MAVEN: Registrar(_maven_versions, _maven_released, _maven_fetch),
    Registry.NPM: Registrar(_npm_versions, _npm_released, _npm_fetch),
    Registry.DEBIAN: Registrar(_debian_versions, _debian_released, prepare=_debian_lists),
}


# ---- versions, dates and checksums ------------------------------------------------------------


def upstream(version: str) -> str:
    """The project's part of a version of Debian: ``1:140.12.0esr-1~deb13u1`` -> ``140.12.0esr`` (deb-version(7))."""
    return version.partition(":")[2].rpartition("-")[0] or version.rpartition("-")[0] or version


def _newest_first(versions: Iterable[str]) -> list[str]:
    return sorted({*versions}, key=release_order, reverse=True)


def _day_of(text: str) -> date:
    return datetime.fromisoformat(text).astimezone(UTC).date()


def _date_of_zip(path: Path) -> date | None:
    """The newest file in an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            days = [date(*entry.date_time[:3]) for entry in archive.infolist()]
    except (OSError, zipfile.BadZipFile, ValueError):
        return None
    return _telling(max(days, default=EARLIEST))


def _date_of_deb(path: Path) -> date | None:
    """The time of the first member (deb(5), ar(5)), which is that of the changelog's last entry."""
    head = path.read_bytes()[:68] if path.stat().st_size <= 2 * LARGEST_PACKAGE else b""
    stamp = head[24:36].strip()
    return _telling(datetime.fromtimestamp(int(stamp), UTC).date()) if stamp.isdigit() else None


def _telling(day: date) -> date | None:
    return day if EARLIEST < day <= datetime.now(UTC).date() else None


def _hashed(path: Path) -> Archive:
    return Archive(SHA256 + hashlib.sha256(path.read_bytes()).hexdigest(), path)


# ---- clients ------------------------------------------------------------------------------------


def _part(folder: Path) -> Path:
    """A new folder below one for temporary files."""
    place = folder / f"part-{len([*folder.iterdir()])}"
    place.mkdir()
    return place


def _mapping(text: str) -> Mapping[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it is no object.")
    return found


def _client(*command: str, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """What a client prints; raises :class:`MachineError` if it is missing, fails, or does not end in time."""
    name = "pip" if command[0] == sys.executable else command[0]
    variables = {**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False, cwd=folder,
            env=variables,
        )  # fmt: skip
    except FileNotFoundError:
        raise MachineError(f"{name} is not installed, so that its registry cannot be asked.") from None
    except subprocess.TimeoutExpired:
        raise MachineError(f"{name} did not end within {seconds(PATIENCE)}.") from None
    if done.returncode:
        log = BuildLog()
        for line in (done.stderr or done.stdout)[:LARGEST_ANSWER].decode(errors="replace").splitlines():
            log.add(line)
        raise MachineError(f"{name} failed: {log.why(done.returncode)}")
    if len(done.stdout) > LARGEST_ANSWER:
        raise MachineError(f"{name} printed more than {LARGEST_ANSWER // MIB} MiB.")
    return done.stdout.decode(errors="replace")
